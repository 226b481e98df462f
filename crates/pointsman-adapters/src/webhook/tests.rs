use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::request::{Caller, Head};
use super::signature::sign;
use super::{CALLERS, Reply, WebhookListener, WebhookNews, WebhookReceiver};
use crate::secret::Secret;

const BODY: &str = "{\"action\":\"opened\"}";

fn secret() -> Secret {
    Secret::new("open-sesame").unwrap()
}

#[derive(Default)]
struct Rung(Mutex<Vec<String>>);

impl WebhookReceiver for Rung {
    fn secret(&self, project: &str) -> Option<Secret> {
        (project == "shop").then(secret)
    }

    fn ring(&self, project: &str, _ring: WebhookNews) {
        self.0.lock().unwrap().push(project.to_owned());
    }
}

fn open() -> (WebhookListener, Arc<Rung>) {
    let rung = Arc::new(Rung::default());
    let webhook_listener =
        WebhookListener::open(SocketAddr::from(([127, 0, 0, 1], 0)), Arc::clone(&rung) as _).unwrap();
    (webhook_listener, rung)
}

/// Sends something and answers the status it gets.
fn send(webhook_listener: &WebhookListener, text: &str) -> u16 {
    let mut stream = TcpStream::connect(webhook_listener.address()).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    // Nothing, if there was no place and it hung up at once.
    let _ = stream.read_to_string(&mut answer);
    answer.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_default()
}

fn post(path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

#[test]
fn the_servers_own_signatures_ring() {
    let (webhook_listener, rung) = open();
    let signature = sign(&secret(), BODY.as_bytes());
    let github = format!("sha256={signature}");
    let hook = |headers: &[(&str, &str)]| send(&webhook_listener, &post("/webhook/shop", headers, BODY));
    assert_eq!(hook(&[("X-Hub-Signature-256", &github), ("X-GitHub-Delivery", "1")]), 202);
    assert_eq!(hook(&[("X-Gitea-Signature", &signature), ("X-Gitea-Delivery", "2")]), 202);
    assert_eq!(hook(&[("x-forgejo-signature", &signature), ("x-forgejo-delivery", "3")]), 202);
    assert_eq!(hook(&[("Authorization", "Bearer open-sesame")]), 202);
    assert_eq!(rung.0.lock().unwrap().as_slice(), ["shop"; 4]);
    // The well-known example of the algorithm.
    let known = sign(&Secret::new("key").unwrap(), b"The quick brown fox jumps over the lazy dog");
    assert_eq!(known, "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
}

#[test]
fn a_delivery_rings_once() {
    let (webhook_listener, rung) = open();
    let signature = sign(&secret(), BODY.as_bytes());
    let again = post("/webhook/shop", &[("X-Gitea-Signature", &signature), ("X-Gitea-Delivery", "7")], BODY);
    assert_eq!([send(&webhook_listener, &again), send(&webhook_listener, &again)], [202, 409]);
    assert_eq!(rung.0.lock().unwrap().len(), 1);
}

#[test]
fn what_is_not_signed_with_the_secret_rings_nothing() {
    let (webhook_listener, rung) = open();
    let right = sign(&secret(), BODY.as_bytes());
    let foreign = sign(&Secret::new("another").unwrap(), BODY.as_bytes());
    let shop = "/webhook/shop";
    let cases = [
        (post(shop, &[], BODY), 401),
        (post(shop, &[("X-Gitea-Signature", &foreign)], BODY), 401),
        (post(shop, &[("X-Gitea-Signature", &right)], "{\"action\":\"closed\"}"), 401),
        (post(shop, &[("X-Gitea-Signature", &right[..62])], BODY), 401),
        (post(shop, &[("X-Gitea-Signature", "zz")], BODY), 401),
        (post(shop, &[("X-Hub-Signature-256", &right)], BODY), 401),
        (post(shop, &[("X-Gitea-Signature", &foreign), ("X-Gitea-Signature", &right)], BODY), 401),
        (post(shop, &[("Authorization", "Bearer open-sesam")], BODY), 401),
        (post(shop, &[("Authorization", "Bearer ")], BODY), 401),
        (post("/webhook/other", &[("X-Gitea-Signature", &right)], BODY), 404),
        (post("/", &[("X-Gitea-Signature", &right)], BODY), 404),
        (post(shop, &[("X-Gitea-Signature", &right)], BODY).replace("POST", "GET"), 405),
        (post(shop, &[("X-Gitea-Signature", &right)], BODY).replace("Content-Length", "X"), 411),
        (format!("POST {shop} HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"), 413),
        (format!("POST {shop} HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400),
        (format!("POST {shop} HTTP/1.1\r\nContent-Length: 50\r\n\r\ntorn"), 400),
        (format!("POST {shop} HTTP/1.1\r\nContent-Length: 1\r\n\r\ntwo"), 400),
        (format!("POST {shop} HTTP/1.1\r\nno header\r\n\r\n"), 400),
        ("hello\r\n\r\n".to_owned(), 400),
    ];
    for (text, status) in cases {
        assert_eq!(send(&webhook_listener, &text), status, "{text}");
    }
    assert!(rung.0.lock().unwrap().is_empty());
}

#[test]
fn an_endless_head_is_cut_off_and_a_slow_caller_is_not_waited_for() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    ours.write_all(b"POST / HTTP/1.1\r\n").unwrap();
    let soon = Instant::now() + Duration::from_millis(20);
    assert_eq!(Caller::new(&theirs, soon).head().err(), Some(Reply::TooSlow));
    let writing = std::thread::spawn(move || {
        // Until the other side has had enough.
        while ours
            .write_all(b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")
            .is_ok()
        {}
    });
    let later = Instant::now() + Duration::from_secs(20);
    assert_eq!(Caller::new(&theirs, later).head().err(), Some(Reply::TooLarge));
    drop(theirs);
    writing.join().unwrap();
}

#[test]
fn too_many_callers_at_once_are_sent_away_and_the_rest_is_served() {
    let (webhook_listener, _rung) = open();
    let waiting: Vec<TcpStream> =
        (0..CALLERS).map(|_| TcpStream::connect(webhook_listener.address()).unwrap()).collect();
    let signature = sign(&secret(), BODY.as_bytes());
    let knock = |name: usize| {
        let name = name.to_string();
        let headers = [("X-Gitea-Signature", signature.as_str()), ("X-Gitea-Delivery", name.as_str())];
        send(&webhook_listener, &post("/webhook/shop", &headers, BODY))
    };
    let mut turned_away = String::new();
    TcpStream::connect(webhook_listener.address()).unwrap().read_to_string(&mut turned_away).unwrap();
    assert!(turned_away.starts_with("HTTP/1.1 503 "), "{turned_away}");
    drop(waiting);
    let mut tries = 0;
    pointsman_testkit::eventually("a place to be free", Duration::from_secs(20), || {
        tries += 1;
        (knock(tries) == 202).then_some(())
    });
}

#[test]
fn a_door_that_is_shut_listens_no_more() {
    let (webhook_listener, _rung) = open();
    let address = webhook_listener.address();
    drop(webhook_listener);
    pointsman_testkit::eventually("nobody to answer", Duration::from_secs(20), || {
        TcpStream::connect(address).is_err().then_some(())
    });
}

#[test]
fn a_head_is_read_as_it_is() {
    let head = Head::parse("POST /a HTTP/1.1\r\nA-b:  c d \r\nE:\r\nf: 1\r\nF: 2").unwrap();
    assert_eq!((head.header("a-b"), head.header("e"), head.header("f")), (Some("c d"), Some(""), None));
    for bad in
        ["", "POST", "POST /", "POST / FTP", "POST / HTTP/2", "GET  / HTTP/1.1", "GET / HTTP/1.1\r\n: x"]
    {
        assert!(Head::parse(bad).is_none(), "{bad}");
    }
}
