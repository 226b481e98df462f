//! The relay on real sockets, against a server that stands for the model's API.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_core::relay::pool::{Ceiling, Pool, Pools};
use pointsman_core::relay::usage::SessionUsage;
use pointsman_core::relay::{CredentialName, ModelAccess, PLACEHOLDER_KEY};
use pointsman_core::role::Role;
use pointsman_core::sandbox::network::{Policy, Refusal};
use pointsman_core::time::Timestamp;
use pointsman_testkit::eventually;

use super::{CONTROL, MODEL_ACCESS, POLICY, ProxyDir, SHOWN, SOCKET, SandboxDir, serve};
use crate::secret::Secret;
use crate::unix_socket::connect_in;

const LIMIT: Duration = Duration::from_secs(20);
const KEY: &str = "sk-ant-operator-0123456789";
const ANSWER: &str =
    r#"{"model":"m","usage":{"input_tokens":70,"cache_read_input_tokens":20,"output_tokens":10}}"#;

/// An API whose answers to the requests of one connection are what `answer` writes.
struct Api {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Api {
    fn start(answer: impl Fn(&mut TcpStream, &str) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let mut to = stream.try_clone().unwrap();
                    let mut from = BufReader::new(stream);
                    while let Some(request) = read_request(&mut from) {
                        seen.lock().unwrap().push(request.clone());
                        answer(&mut to, &request);
                    }
                });
            }
        });
        Self { port, requests }
    }

    /// One that answers every call in the same way, on connections that stay.
    fn simple() -> Self {
        Self::start(|to, _| whole(to, "200 OK", "", ANSWER))
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn whole(to: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let _ = write!(
        to,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
}

fn read_request(from: &mut impl BufRead) -> Option<String> {
    let (mut text, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|read| *read > 0)?;
        text.push_str(&line);
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    text.push_str(&String::from_utf8(body).ok()?);
    Some(text)
}

/// A proxy with two sandboxes that reach the API.
struct World {
    temporary: Option<tempfile::TempDir>,
    dir: PathBuf,
    served: Option<std::thread::JoinHandle<std::io::Result<()>>>,
}

impl World {
    fn new(api: &Api, of_stranger: bool) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("proxy");
        for (name, session) in [("one", "dev-shop-1.1"), ("two", "dev-shop-2.1")] {
            let sandbox = dir.join(name);
            std::fs::create_dir_all(sandbox.join(SHOWN)).unwrap();
            let private = format!("127.0.0.1:{}", api.port);
            let policy = Policy { hosts: Vec::new(), private_hosts: vec![private], ..Policy::default() };
            std::fs::write(sandbox.join(POLICY), serde_json::to_vec(&policy).unwrap()).unwrap();
            let access = ModelAccess {
                session: session.to_owned(),
                role: Role::Dev,
                upstream: format!("http://127.0.0.1:{}/gateway", api.port),
                credential: CredentialName::ApiKey,
                of_stranger,
                pools: vec!["day".to_owned()],
            };
            std::fs::write(sandbox.join(MODEL_ACCESS), serde_json::to_vec(&access).unwrap()).unwrap();
        }
        let at = dir.clone();
        let served = std::thread::spawn(move || serve(&at, || Timestamp(1_000_000)));
        eventually("the proxy to listen", LIMIT, || connect_in(&dir, CONTROL).ok());
        let proxy = ProxyDir::at(&dir);
        proxy.learn(CredentialName::ApiKey, Secret::new(KEY).as_ref()).unwrap();
        Self { temporary: Some(temporary), dir, served: Some(served) }
    }

    fn connect(&self, sandbox: &str) -> UnixStream {
        let stream = connect_in(&self.dir.join(sandbox).join(SHOWN), SOCKET).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// One call on a connection of its own.
    fn ask(&self, sandbox: &str, head: &str, body: &str) -> String {
        let mut stream = self.connect(sandbox);
        let length = body.len();
        write!(stream, "{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn message(&self, sandbox: &str) -> String {
        self.ask(sandbox, "POST /model/v1/messages?beta=true HTTP/1.1\r\nHost: x", r#"{"messages":[]}"#)
    }

    fn usage(&self, session: &str) -> Option<SessionUsage> {
        let all = ProxyDir::at(&self.dir).usages();
        all.into_iter().map(|kept| kept.usage).find(|usage| usage.session == session)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.temporary.take());
        let served = self.served.take().unwrap().join();
        assert!(served.is_ok_and(|served| served.is_ok()) || std::thread::panicking());
    }
}

fn refusals(dir: &Path, sandbox: &str) -> Vec<(String, Refusal)> {
    let refused = SandboxDir::below(dir, sandbox).unwrap().refused().0;
    refused.into_iter().map(|(what, count)| (what, count.why)).collect()
}

#[test]
fn a_call_carries_the_operators_key_and_no_credential_of_the_agent() {
    let api = Api::simple();
    let world = World::new(&api, true);
    let head = format!(
        "POST /model/v1/messages?beta=true HTTP/1.1\r\nHost: evil.example.org\r\nX-Api-Key: {PLACEHOLDER_KEY}\r\n\
         Authorization: Bearer sk-ant-foreign\r\nCookie: a=b\r\nProxy-Authorization: Basic x\r\n\
         Accept-Encoding: gzip\r\nanthropic-version: 2023-06-01\r\nContent-Type: application/json"
    );
    let answer = world.ask("one", &head, r#"{"messages":[]}"#);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(ANSWER), "{answer}");
    let request = &api.requests()[0];
    assert!(request.starts_with("POST /gateway/v1/messages?beta=true HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("x-api-key: {KEY}\r\n")), "{request}");
    assert!(request.contains("anthropic-version: 2023-06-01\r\n") && request.ends_with(r#"{"messages":[]}"#));
    for leaked in ["foreign", PLACEHOLDER_KEY, "cookie", "Cookie", "gzip", "evil", "Basic"] {
        assert!(!request.contains(leaked), "{leaked}: {request}");
    }
    assert!(!answer.contains(KEY));
    // Some programs ask a proxy for everything.
    let answer = world.ask("one", "GET http://127.0.0.2:4711/model/v1/models HTTP/1.1\r\nHost: x", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn other_paths_sources_and_tools_never_reach_the_api() {
    let api = Api::simple();
    let world = World::new(&api, true);
    let tool = r#"{"tools":[{"type":"web_fetch_20250910","name":"x"}],"messages":[]}"#;
    let source = r#"{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}"#;
    let twice = r#"{"messages":[],"messages":[]}"#;
    for (head, body, status) in [
        ("POST /model/v1/files HTTP/1.1", "x", "404"),
        ("GET /model/v1/organizations/me HTTP/1.1", "", "404"),
        ("POST /v1/messages HTTP/1.1", "{}", "404"),
        ("POST /model/v1/messages HTTP/1.1", tool, "400"),
        ("POST /model/v1/messages HTTP/1.1", source, "400"),
        ("POST /model/v1/messages HTTP/1.1", twice, "400"),
    ] {
        let answer = world.ask("one", &format!("{head}\r\nHost: x"), body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {answer}");
        assert!(answer.contains(r#""type":"error""#) && answer.contains("Pointsman"), "{answer}");
    }
    let mut stream = world.connect("one");
    write!(stream, "POST /model/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 67108864\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "before the body comes: {answer}");
    assert_eq!(api.requests(), [""; 0]);
    let refused = refusals(&world.dir, "one");
    assert!(
        refused.contains(&("the model's API: POST /v1/files".to_owned(), Refusal::NotPassed)),
        "{refused:?}"
    );
    assert!(refused.contains(&("the model's API: web_fetch_20250910".to_owned(), Refusal::NotPassed)));
}

#[test]
fn connections_are_used_again_on_both_sides() {
    let api = Api::start(|to, request| match request.contains("models") {
        true => whole(to, "200 OK", "", "{}"),
        false => whole(to, "400 Bad Request", "", "{}"),
    });
    let world = World::new(&api, false);
    let mut stream = world.connect("one");
    for _ in 0..3 {
        write!(stream, "GET /model/v1/models HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = vec![0; 15];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, b"HTTP/1.1 200 OK");
        while !answer.ends_with(b"{}") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
    }
    assert_eq!(api.requests().len(), 3);
}

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\
    \"usage\":{\"input_tokens\":40,\"output_tokens\":1}}}\n\n";
const END: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\
    \"usage\":{\"output_tokens\":9}}\n\n";
const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

#[test]
fn a_stream_passes_as_it_comes_and_is_booked_before_its_end_is_seen() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let api = Api::start(move |to, _| {
        let _ = write!(to, "{STREAM_HEAD}{START}");
        let _ = wait.lock().unwrap().recv_timeout(LIMIT);
        let _ = write!(to, "{END}");
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    let world = World::new(&api, false);
    let mut stream = world.connect("one");
    write!(stream, "POST /model/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
    let mut seen = String::new();
    let mut read_until = |text: &str| {
        while !seen.contains(text) {
            let mut piece = [0; 512];
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    };
    read_until("message_start");
    assert_eq!(world.usage("dev-shop-1.1"), None, "the rest has not come");
    go.send(()).unwrap();
    read_until("end_turn");
    let spent = world.usage("dev-shop-1.1").unwrap().spent();
    assert_eq!((spent.classes.input, spent.classes.output), (40, 9));
}

#[test]
fn an_agent_that_hangs_up_is_counted_as_far_as_it_is_known() {
    let api = Api::start(|to, _| {
        let _ = write!(to, "{STREAM_HEAD}{START}");
        // Until the relay is gone: the model goes on talking.
        let words =
            format!("data: {{\"type\":\"content_block_delta\",\"text\":\"{}\"}}\n\n", "word ".repeat(1000));
        while to.write_all(words.as_bytes()).is_ok() {
            std::thread::park_timeout(Duration::from_millis(20));
        }
    });
    let world = World::new(&api, false);
    let mut stream = world.connect("one");
    write!(stream, "POST /model/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
    let mut piece = [0; 64];
    stream.read_exact(&mut piece).unwrap();
    drop(stream);
    let usage = eventually("the call to be booked", LIMIT, || world.usage("dev-shop-1.1"));
    assert_eq!((usage.models["m"].calls, usage.models["m"].estimated), (1, 1));
    assert_eq!(usage.models["m"].classes.input, 40);
    assert!(usage.models["m"].classes.output > 1000, "{usage:?}");
}

#[test]
fn the_call_after_the_budget_is_refused_for_every_session_of_it() {
    let api = Api::simple();
    let world = World::new(&api, false);
    let ceiling = Ceiling { tokens: Some(200), ..Ceiling::default() };
    let pool =
        Pool { what: "the day: 200 tokens".to_owned(), ceiling, sessions: vec!["dev-shop-1.1".to_owned()] };
    ProxyDir::at(&world.dir).write_pools(&Pools([("day".to_owned(), pool)].into())).unwrap();
    assert!(world.message("one").starts_with("HTTP/1.1 200"));
    assert!(world.message("two").starts_with("HTTP/1.1 200"));
    for sandbox in ["one", "two"] {
        let answer = world.message(sandbox);
        assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("the day: 200 tokens"), "{answer}");
        assert!(answer.contains("rate_limit_error") && answer.contains("x-should-retry: false"), "{answer}");
    }
    assert_eq!(api.requests().len(), 2);
    let usage = world.usage("dev-shop-2.1").unwrap();
    assert_eq!((usage.spent().tokens, usage.refused), (100, 1));
    assert_eq!(usage.spent().classes.cache_reads, 20);
}

#[test]
fn calls_that_come_together_do_not_pass_a_budget_together() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let api = Api::start(move |to, _| {
        let _ = wait.lock().unwrap().recv_timeout(LIMIT);
        whole(to, "200 OK", "", ANSWER);
    });
    let world = World::new(&api, false);
    // The first request alone is as long as the budget, which is in dollars.
    let ceiling = Ceiling { micro_usd: Some(3_000), ..Ceiling::default() };
    let sessions = vec!["dev-shop-1.1".to_owned()];
    let pool = Pool { what: "the day: 0.003 USD".to_owned(), ceiling, sessions };
    ProxyDir::at(&world.dir).write_pools(&Pools([("day".to_owned(), pool)].into())).unwrap();
    let text = "word ".repeat(1000);
    let body =
        format!(r#"{{"model":"claude-sonnet-4-5","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    // In pieces, so that no header tells how long it is.
    let request = format!(
        "POST /model/v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
         {:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let mut first = world.connect("one");
    first.write_all(request.as_bytes()).unwrap();
    eventually("the first call to be under way", LIMIT, || (!api.requests().is_empty()).then_some(()));
    let mut second = world.connect("two");
    second.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    second.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("0.003 USD"), "{answer}");
    go.send(()).unwrap();
    let mut answer = String::new();
    first.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(api.requests().len(), 1);
}

#[test]
fn a_wait_for_counting_tokens_is_none_of_the_account() {
    let api = Api::start(|to, request| match request.contains("count_tokens") {
        true => whole(to, "429 Too Many Requests", "retry-after: 3600\r\n", "{}"),
        false => whole(to, "200 OK", "", ANSWER),
    });
    let world = World::new(&api, false);
    let counted =
        world.ask("one", "POST /model/v1/messages/count_tokens HTTP/1.1\r\nHost: x", r#"{"messages":[]}"#);
    assert!(counted.starts_with("HTTP/1.1 429"), "{counted}");
    assert!(ProxyDir::at(&world.dir).limited().0.is_empty());
    assert!(world.message("two").starts_with("HTTP/1.1 200"), "the model itself can be asked");
}

#[test]
fn a_long_wait_of_the_credential_holds_for_all_sessions() {
    let api = Api::start(|to, request| match request.contains("v1/messages") {
        true => whole(to, "429 Too Many Requests", "retry-after: 3600\r\n", "{}"),
        false => whole(to, "200 OK", "", "{}"),
    });
    let world = World::new(&api, false);
    assert!(world.message("one").contains("retry-after: 3600"));
    let limited = ProxyDir::at(&world.dir).limited().0;
    assert_eq!(limited.get(&CredentialName::ApiKey), Some(&Timestamp(4_600_000)));
    let answer = world.message("two");
    assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("retry-after: 3600"), "{answer}");
    assert_eq!(api.requests().len(), 1, "nothing is asked while it waits");
    assert_eq!(world.usage("dev-shop-1.1"), None, "a refusal costs nothing");
    // Another key has to wait for nothing.
    let other = Secret::new("sk-ant-other-0123456789");
    ProxyDir::at(&world.dir).learn(CredentialName::ApiKey, other.as_ref()).unwrap();
    world.message("two");
    assert_eq!(api.requests().len(), 2);
}

#[test]
fn an_api_on_a_private_address_is_reached_only_if_the_machine_lists_it() {
    let api = Api::simple();
    let world = World::new(&api, false);
    let policy = serde_json::to_vec(&Policy::default()).unwrap();
    std::fs::write(world.dir.join("one").join(POLICY), policy).unwrap();
    let answer = world.message("one");
    assert!(answer.starts_with("HTTP/1.1 502") && !answer.contains(KEY), "{answer}");
    ProxyDir::at(&world.dir).learn(CredentialName::ApiKey, None).unwrap();
    assert!(world.message("two").starts_with("HTTP/1.1 401"));
    assert_eq!(api.requests(), [""; 0]);
}
