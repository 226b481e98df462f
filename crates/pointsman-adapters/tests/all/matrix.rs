//! The room of Matrix against a homeserver that is as strict as the real one.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pointsman_adapters::http::{Limits, RetryWait};
use pointsman_adapters::notify::Error;
use pointsman_adapters::notify::matrix::{Matrix, Message, Opening};
use pointsman_adapters::retry::Retry;
use pointsman_adapters::secret::Secret;
use pointsman_core::chat::Relation;
use pointsman_core::time::Timestamp;
use pointsman_testkit::fake_homeserver::{FakeHomeserver, Trouble};
use pointsman_testkit::http::Reply;

fn limits() -> Limits {
    Limits {
        call: Duration::from_secs(5),
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(50),
        failures: 100,
        ..Limits::default()
    }
}

fn clock() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

fn open(fake: &FakeHomeserver, name: &str, room: &str) -> Matrix {
    let token = Secret::new(&FakeHomeserver::token_of(name)).unwrap();
    let opening = Opening {
        homeserver: &fake.url(),
        room,
        token,
        clock,
        limits: limits(),
        patience: RetryWait::default(),
    };
    opening.prepare()
}

/// A room of ann's to which the bot is invited.
fn room(fake: &FakeHomeserver, alias: &str) -> String {
    let body = serde_json::json!({ "invite": ["@bot:lab.invalid"], "room_alias_name": alias }).to_string();
    let answer: serde_json::Value = call(fake, "ann", "POST", "createRoom", &body);
    answer["room_id"].as_str().unwrap().to_owned()
}

/// What a person's client does.
fn call(fake: &FakeHomeserver, name: &str, method: &str, path: &str, body: &str) -> serde_json::Value {
    let url = format!("{}/_matrix/client/v3/{path}", fake.url());
    let request = ureq::http::Request::builder()
        .method(method)
        .uri(url)
        .header("authorization", format!("Bearer {}", FakeHomeserver::token_of(name)))
        .body(body)
        .unwrap();
    static AGENT: LazyLock<ureq::Agent> =
        LazyLock::new(|| ureq::Agent::config_builder().http_status_as_error(false).build().into());
    let text = AGENT.run(request).unwrap().body_mut().read_to_string().unwrap();
    serde_json::from_str(&text).unwrap()
}

fn say(fake: &FakeHomeserver, name: &str, room: &str, words: &str) -> String {
    static SAID: AtomicUsize = AtomicUsize::new(0);
    let path = format!("rooms/{room}/send/m.room.message/{name}-{}", SAID.fetch_add(1, Ordering::Relaxed));
    let body = serde_json::json!({ "msgtype": "m.text", "body": words }).to_string();
    call(fake, name, "PUT", &path, &body)["event_id"].as_str().unwrap().to_owned()
}

fn words(title: &str) -> Message<'_> {
    Message { title, ..Message::default() }
}

#[test]
fn an_invitation_is_taken_and_a_transaction_is_one_message() {
    let fake = FakeHomeserver::start(&["bot", "ann"]);
    let id = room(&fake, "ops");
    let matrix = open(&fake, "bot", "#ops:lab.invalid");
    let there = matrix.look().unwrap();
    assert_eq!((there.me.as_str(), &there.room), ("@bot:lab.invalid", &id));
    // The deed is done and the answer lost, or cut short: the same again is the same.
    for (transaction, trouble) in [("t1", Trouble::Lost), ("t2", Trouble::Cut)] {
        fake.trouble("/send/", [trouble]);
        let first = matrix.send(&words("hello"), transaction).unwrap();
        assert_eq!(matrix.send(&words("hello"), transaction).unwrap(), first);
    }
    assert_ne!(matrix.send(&words("hello"), "t1").unwrap(), matrix.send(&words("hello"), "t3").unwrap());
    assert_eq!(fake.all_text().matches("\"body\":\"hello\"").count(), 3);
}

#[test]
fn what_the_server_asks_for_is_waited_for_or_told() {
    let fake = FakeHomeserver::start(&["bot", "ann"]);
    let id = room(&fake, "ops");
    let matrix = open(&fake, "bot", &id);
    matrix.look().unwrap();
    fake.trouble("/send/", [Trouble::Limited(10)]);
    matrix.send(&words("soon"), "t1").unwrap();
    fake.trouble("/send/", [Trouble::Limited(90_000)]);
    let error = matrix.send(&words("later"), "t2").unwrap_err();
    assert_eq!((error.retry(), error.pause()), (Retry::Later, Some(Duration::from_secs(90))));
    let asked = fake.requests().len();
    let error = matrix.send(&words("later"), "t2").unwrap_err();
    assert!(error.pause().is_some_and(|pause| pause > Duration::from_secs(80)), "{error}");
    assert_eq!(fake.requests().len(), asked, "who asks for a pause gets it");
    assert!(matrix.sync(None, Duration::ZERO).is_ok(), "and is still listened to");
}

#[test]
fn every_trouble_has_its_words_and_none_has_the_token() {
    let fake = FakeHomeserver::start(&["bot", "ann"]);
    let id = room(&fake, "ops");
    let html = || Reply::html(200, "<!doctype html><title>Sign in</title>");
    let cases: [(Vec<Trouble>, &str, Retry); 7] = [
        (vec![Trouble::Instead(Reply::empty(500)); 3], "answered 500", Retry::Later),
        (vec![Trouble::Instead(Reply::empty(502)); 3], "answered 502", Retry::Later),
        (vec![Trouble::Instead(html()); 3], "a web page (\"Sign in\") instead of data", Retry::Later),
        (
            vec![Trouble::Instead(Reply::empty(200).body("{\"event_id\": \"$x")); 3],
            "cut off or garbled",
            Retry::Later,
        ),
        (
            vec![Trouble::Instead(Reply::json(200, &serde_json::json!({})))],
            "something unexpected",
            Retry::Later,
        ),
        (vec![Trouble::Instead(Reply::empty(404))], "answered 404", Retry::Later),
        (
            vec![Trouble::Instead(Reply::json(413, &serde_json::json!({ "error": "event too large" })))],
            "answered 413 (event too large)",
            Retry::Never,
        ),
    ];
    for (troubles, expected, retry) in cases {
        let matrix = open(&fake, "bot", &id);
        matrix.look().unwrap();
        fake.trouble("/send/", troubles);
        let error = matrix.send(&words("hello"), "t1").unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!format!("{error:?}").contains(&FakeHomeserver::token_of("bot")));
        assert_eq!(error.retry(), retry, "{error}");
        fake.recover();
    }
    let stranger = open(&fake, "mallory", &id);
    let error = stranger.look().unwrap_err();
    assert!(error.to_string().contains("answered 401 (Invalid access token passed.)"), "{error}");
}

#[test]
fn rooms_that_cannot_be_used_are_named() {
    let fake = FakeHomeserver::start(&["bot", "ann", "eve"]);
    let id = room(&fake, "ops");
    assert!(matches!(open(&fake, "eve", &id).look(), Err(Error::NotInvited { .. })));
    assert!(matches!(open(&fake, "bot", "!no:lab.invalid").look(), Err(Error::NoRoom { .. })));
    assert!(matches!(open(&fake, "bot", "#no:lab.invalid").look(), Err(Error::NoRoom { .. })));
    let matrix = open(&fake, "bot", &id);
    let since = matrix.sync(None, Duration::ZERO).unwrap().next;
    call(&fake, "ann", "PUT", &format!("rooms/{id}/state/m.room.encryption"), "{}");
    let error = matrix.sync(Some(&since), Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::Encrypted { .. }), "{error}");
    let error = matrix.send(&words("hello"), "t1").unwrap_err();
    assert!(error.to_string().contains("encrypted rooms are not supported"), "{error}");
    assert_eq!(fake.all_text().matches("hello").count(), 0);
}

#[test]
fn listening_begins_now_and_misses_nothing() {
    let fake = FakeHomeserver::start(&["bot", "ann"]);
    let id = room(&fake, "ops");
    say(&fake, "ann", &id, "before");
    let matrix = open(&fake, "bot", &id);
    let first = matrix.sync(None, Duration::ZERO).unwrap();
    assert!(first.heard.is_empty(), "what was said before is not for us");
    let idle = matrix.sync(Some(&first.next), Duration::from_millis(20)).unwrap();
    assert!(idle.heard.is_empty() && idle.next == first.next);
    // More than one answer holds, and than one page of older ones.
    for n in 0..260 {
        say(&fake, "ann", &id, &"x".repeat(n + 1));
    }
    let batch = matrix.sync(Some(&first.next), Duration::from_secs(5)).unwrap();
    let lengths: Vec<usize> = batch.heard.iter().map(|heard| heard.body.len()).collect();
    assert_eq!(lengths, (1..=260).collect::<Vec<_>>(), "all of it, in its order");
    assert!(!batch.missed);
    assert_eq!(batch.heard[0].relation, Relation::None);
    assert!(matrix.sync(Some(&batch.next), Duration::ZERO).unwrap().heard.is_empty());
    // And so much that nobody reads it all: it is said.
    for n in 260..2400 {
        say(&fake, "ann", &id, &"x".repeat(n + 1));
    }
    let much = matrix.sync(Some(&batch.next), Duration::ZERO).unwrap();
    assert!(much.missed && much.heard.len() >= 2000, "{}", much.heard.len());
}

#[test]
fn who_is_shown_the_door_says_so() {
    let fake = FakeHomeserver::start(&["bot", "ann"]);
    let id = room(&fake, "ops");
    let matrix = open(&fake, "bot", &id);
    let since = matrix.sync(None, Duration::ZERO).unwrap().next;
    call(&fake, "ann", "POST", &format!("rooms/{id}/kick"), "{\"user_id\": \"@bot:lab.invalid\"}");
    assert!(matches!(matrix.sync(Some(&since), Duration::ZERO), Err(Error::NotInvited { .. })));
    assert!(matches!(matrix.send(&words("hello"), "t1"), Err(Error::NotInvited { .. })));
}

#[test]
fn a_servers_clock_is_corrected() {
    let fake = FakeHomeserver::start(&["bot", "ann"]);
    let id = room(&fake, "ops");
    let matrix = open(&fake, "bot", &id);
    let since = matrix.sync(None, Duration::ZERO).unwrap().next;
    fake.set_ahead(3_600_000);
    say(&fake, "ann", &id, "now");
    let heard = matrix.sync(Some(&since), Duration::ZERO).unwrap().heard;
    let differ = clock().0 - heard[0].at.0;
    assert!(differ.abs() < 60_000, "{differ} ms");
}
