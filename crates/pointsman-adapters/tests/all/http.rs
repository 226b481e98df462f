//! The HTTP core against a server that misbehaves on order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pointsman_adapters::http::{Client, Error, Host, Limits, Request, RetryWait, Scheme};
use pointsman_adapters::retry::Retry;
use pointsman_adapters::secret::Secret;
use pointsman_core::time::Timestamp;
use pointsman_testkit::http::{Fault, Reply, Request as Asked, Server};
use serde_json::{Value, json};

const TOKEN: &str = "s3cr3t-t0ken";

/// Sun, 06 Nov 1994 08:49:37 GMT
fn clock() -> Timestamp {
    Timestamp(784_111_777_000)
}

fn impatient() -> Limits {
    Limits {
        call: Duration::from_secs(20),
        answer_bytes: 64 << 10,
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(20),
        failures: 100,
        pages: 20,
        ..Limits::default()
    }
}

/// A server whose n-th answer (from 0) is `answer(n, request)`.
struct World {
    client: Client,
    asked: Arc<AtomicUsize>,
    _server: Server,
}

fn world(limits: Limits, answer: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static) -> World {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let server = Server::start(move |request| answer(counted.fetch_add(1, Ordering::SeqCst), request));
    let host = Host::new(&server.url(), clock, limits, RetryWait::default());
    let client = host.client(Some((Scheme::Token, Secret::new(TOKEN).unwrap())));
    World { client, asked, _server: server }
}

impl World {
    fn get(&self) -> Result<Value, Error> {
        self.client.read(&Request::get("read", &["x"]))
    }

    fn post(&self) -> Result<Value, Error> {
        self.client.read(&Request::post("make", &["x"]).body(&json!({ "a": 1 })))
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn fine() -> Reply {
    Reply::json(200, &json!({ "fine": true }))
}

#[test]
fn a_request_carries_the_token_in_its_header_and_nowhere_else() {
    let world = world(impatient(), |_, request| {
        let whole =
            format!("{} {} {}", request.path, request.raw_query, String::from_utf8_lossy(&request.body));
        assert!(!whole.contains(TOKEN));
        Reply::json(200, &json!(request.header("authorization")))
    });
    assert_eq!(world.get().unwrap(), json!(format!("token {TOKEN}")));
}

#[test]
fn what_may_be_repeated_is_tried_again() {
    type Bad = fn() -> Reply;
    let troubles: [(&str, Bad); 6] = [
        ("503", || Reply::empty(503)),
        ("cut json", || Reply::json(200, &json!({ "fine": true })).body("{\"fine\": tr")),
        ("cut body", || fine().faulty(Fault::CutAfter(3))),
        ("dropped", || Reply::empty(200).faulty(Fault::Drop)),
        ("web page", || Reply::html(200, "<html><title>Log in</title></html>")),
        ("429", || Reply::empty(429).with("Retry-After", "0")),
    ];
    for (name, bad) in troubles {
        let world = world(impatient(), move |n, _| if n < 2 { bad() } else { fine() });
        assert_eq!(world.get().unwrap(), json!({ "fine": true }), "{name}");
        assert_eq!(world.asked(), 3, "{name}");
    }
}

#[test]
fn trying_has_an_end() {
    let world = world(impatient(), |_, _| Reply::json(502, &json!({ "message": "down" })));
    let error = world.get().unwrap_err();
    assert_eq!((error.retry(), error.status(), world.asked()), (Retry::Later, Some(502), 3));
    assert!(error.to_string().ends_with("answered 502 (down)"), "{error}");
    let counts = world.client.host().counts().total();
    assert_eq!((counts.calls, counts.failed), (3, 3));
}

#[test]
fn a_post_that_may_have_happened_is_looked_at_first() {
    type Bad = fn() -> Reply;
    let troubles: [(&str, Bad); 4] = [
        ("500", || Reply::empty(500)),
        ("cut body", || fine().faulty(Fault::CutAfter(3))),
        ("dropped", || Reply::empty(201).faulty(Fault::Drop)),
        ("web page", || Reply::html(200, "<!doctype html>")),
    ];
    for (name, bad) in troubles {
        let world = world(impatient(), move |_, _| bad());
        let error = world.post().unwrap_err();
        assert_eq!((error.retry(), world.asked()), (Retry::LookFirst, 1), "{name}: {error}");
    }
}

#[test]
fn a_no_is_a_no() {
    for status in [400, 401, 403, 404, 405, 409, 422] {
        let world = world(impatient(), move |_, _| Reply::json(status, &json!({ "message": "so not" })));
        let error = world.post().unwrap_err();
        assert_eq!((error.retry(), error.status(), world.asked()), (Retry::Never, Some(status), 1));
        assert_eq!(error.words(), "so not");
    }
}

#[test]
fn a_server_that_is_not_there_can_be_asked_later() {
    let world = world(impatient(), |_, _| fine());
    let url = world.client.host().name().to_owned();
    drop(world);
    let host = Host::new(&format!("http://{url}"), clock, impatient(), RetryWait::default());
    let error = host.client(None).send(&Request::post("make", &["x"])).unwrap_err();
    assert_eq!(error.retry(), Retry::Later, "{error}");
}

#[test]
fn a_call_has_a_time_limit_and_a_size_limit() {
    let limits = Limits { call: Duration::from_millis(300), tries: 1, ..impatient() };
    let world_ = world(limits, |_, _| fine().faulty(Fault::Hang));
    let error = world_.get().unwrap_err();
    assert_eq!(error.retry(), Retry::Later, "{error}");
    let world = world(impatient(), |_, _| Reply::json(200, &json!("x".repeat(100 << 10))));
    let error = world.get().unwrap_err();
    assert_eq!(error.retry(), Retry::Never, "{error}");
}

#[test]
fn a_redirect_is_told_and_not_followed() {
    let world = world(impatient(), |_, _| {
        Reply::empty(302).with("Location", "https://sso.example/login?next=secret")
    });
    let error = world.get().unwrap_err().to_string();
    assert!(error.contains("https://sso.example/login:") && error.contains("login page"), "{error}");
    assert_eq!(world.asked(), 1);
}

#[test]
fn a_server_that_repeats_our_token_is_not_quoted() {
    let world = world(impatient(), |n, _| match n {
        0 => Reply::json(401, &json!({ "message": format!("bad token {TOKEN}") })),
        1 => Reply::html(403, &format!("<title>{TOKEN}</title>")),
        2 => Reply::empty(302).with("Location", format!("https://x/{TOKEN}")),
        _ => Reply::empty(418).body(format!("no {TOKEN}")),
    });
    for _ in 0..4 {
        let error = world.get().unwrap_err();
        assert!(!format!("{error} {error:?}").contains(TOKEN), "{error:?}");
    }
}

#[test]
fn a_limit_that_is_used_up_stops_everybody_for_as_long_as_it_says() {
    let world = world(impatient(), |_, _| {
        Reply::json(403, &json!({ "message": "rate limit" }))
            .with("Date", "Sun, 06 Nov 1994 09:49:37 GMT")
            .with("X-RateLimit-Limit", "60")
            .with("X-RateLimit-Remaining", "0")
            // Two minutes after the server's own now, which is an hour ahead of ours.
            .with("X-RateLimit-Reset", "784115497")
    });
    let error = world.get().unwrap_err();
    assert_eq!(error.retry(), Retry::Later);
    assert!(error.to_string().contains("room again in 121 s"), "{error}");
    let again = world.get().unwrap_err();
    assert!(again.to_string().contains("asked again in"), "{again}");
    assert_eq!(world.asked(), 1);
    assert_eq!(world.client.host().rate_limit().unwrap().remaining, 0);
}

#[test]
fn a_host_that_keeps_failing_is_left_alone() {
    let limits = Limits { failures: 4, ..impatient() };
    let world = world(limits, |_, _| Reply::empty(500));
    for _ in 0..5 {
        assert!(world.get().is_err());
    }
    assert_eq!(world.asked(), 4);
}

#[test]
fn an_unchanged_answer_is_not_sent_again() {
    let world = world(impatient(), |_, request| match request.header("if-none-match") {
        Some("\"v1\"") => Reply::empty(304),
        _ => Reply::json(200, &json!([1, 2])).with("ETag", "\"v1\""),
    });
    for _ in 0..3 {
        assert_eq!(world.get().unwrap(), json!([1, 2]));
    }
    let counts = world.client.host().counts().total();
    assert_eq!((counts.calls, counts.unchanged, counts.received), (3, 2, 5));
    let other = world.client.host().client(None);
    assert_eq!(other.read::<Value>(&Request::get("read", &["x"])).unwrap(), json!([1, 2]));
    assert_eq!(world.client.host().counts().total().unchanged, 2, "another account sees for itself");
}

/// A list of 7 in pages of at most 3, whatever is asked for.
fn page(request: &Asked) -> (Vec<usize>, usize) {
    let number: usize = request.query("page").unwrap().parse().unwrap();
    ((0..7).skip((number - 1) * 3).take(3).collect(), number)
}

#[test]
fn a_list_is_read_to_its_end() {
    let by_link = world(impatient(), |_, request| {
        let (items, number) = page(request);
        let reply = Reply::json(200, &json!(items));
        // Under another name than the one we know it by.
        let next = format!("<http://forge.internal/x?page={}&limit=3>; rel=\"next\"", number + 1);
        reply.with("Link", if number < 3 { next } else { "<http://h/x?page=1>; rel=\"first\"".to_owned() })
    });
    let by_count =
        world(impatient(), |_, request| Reply::json(200, &json!(page(request).0)).with("X-Total-Count", "7"));
    let blind = world(impatient(), |_, request| Reply::json(200, &json!(page(request).0)));
    for (world, per_page, asked) in [(by_link, 50, 3), (by_count, 50, 3), (blind, 3, 3)] {
        let all: Vec<usize> = world.client.list(&Request::get("list", &["x"]), per_page).unwrap();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(world.asked(), asked);
    }
    let empty = world(impatient(), |_, _| Reply::json(200, &Value::Null));
    assert!(empty.client.list::<usize>(&Request::get("list", &["x"]), 50).unwrap().is_empty());
}

#[test]
fn a_list_without_an_end_is_an_error() {
    let world = world(impatient(), |_, _| Reply::json(200, &json!([1, 2, 3])));
    let error = world.client.list::<u32>(&Request::get("list", &["x"]), 3).unwrap_err();
    assert_eq!(error.retry(), Retry::Never, "{error}");
}

#[test]
fn a_server_whose_clock_is_an_hour_off_is_understood() {
    let world = world(impatient(), |_, _| fine().with("Date", "Sun, 06 Nov 1994 07:49:37 GMT"));
    world.get().unwrap();
    let host = world.client.host();
    assert_eq!(host.ahead_ms(), -3_600_000);
    assert_eq!(host.our_time(Timestamp(clock().0 - 3_600_000)), clock());
}

#[test]
fn waiting_ends_when_everything_ends() {
    let server = Server::start(|_| Reply::empty(503));
    let patience = RetryWait::default();
    let limits = Limits {
        first_pause: Duration::from_secs(3600),
        longest_pause: Duration::from_secs(3600),
        ..impatient()
    };
    let client = Host::new(&server.url(), clock, limits, patience.clone()).client(None);
    let asking = std::thread::spawn(move || client.send(&Request::get("read", &["x"])).is_err());
    patience.end();
    assert!(asking.join().unwrap());
}
