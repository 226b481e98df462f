//! The proxy on real sockets: what goes through, and what is refused in which words.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use pointsman_core::sandbox::network::{Destination, Policy, Refusal};
use pointsman_core::time::Timestamp;
use pointsman_testkit::eventually;

use super::request::{Kind, ProxyRequest, parse};
use super::{CONTROL, POLICY, SHOWN, SOCKET, SandboxDir, serve};
use crate::unix_socket::connect_in;

const LIMIT: Duration = Duration::from_secs(20);

/// A server that answers every connection with this text, after a request or at once.
fn server(text: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 1024];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(text.as_bytes());
        }
    });
    port
}

fn ask(dir: &Path, text: &str) -> String {
    let mut stream: UnixStream = connect_in(&dir.join("one").join(SHOWN), SOCKET).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn listed_destinations_are_reached_and_others_are_refused_and_counted() {
    let world = tempfile::tempdir().unwrap();
    let dir = world.path().join("proxy");
    let (open, closed) = (server("HTTP/1.1 200 OK\r\n\r\nhello"), server("secret"));
    let sandbox = dir.join("one");
    std::fs::create_dir_all(sandbox.join(SHOWN)).unwrap();
    let policy = Policy {
        hosts: vec![format!("127.0.0.1:{open}"), format!("localhost:{closed}")],
        private_hosts: vec![format!("127.0.0.1:{open}")],
        ..Policy::default()
    };
    std::fs::write(sandbox.join(POLICY), serde_json::to_vec(&policy).unwrap()).unwrap();
    let at = dir.clone();
    let served = std::thread::spawn(move || serve(&at, || Timestamp(1)));
    eventually("the proxy to listen", LIMIT, || connect_in(&dir, CONTROL).ok());
    let plain = ask(&dir, &format!("GET http://127.0.0.1:{open}/x HTTP/1.1\r\nHost: elsewhere\r\n\r\n"));
    assert!(plain.ends_with("hello"), "{plain}");
    let tunnel = ask(&dir, &format!("CONNECT 127.0.0.1:{open} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"));
    assert!(tunnel.starts_with("HTTP/1.1 200") && tunnel.ends_with("hello"), "{tunnel}");
    for (target, why) in [
        (format!("127.0.0.1:{closed}"), "403"),
        (format!("localhost:{closed}"), "403"),
        ("unlisted.example.org:443".to_owned(), "403"),
        ("no port".to_owned(), "400"),
    ] {
        let answer = ask(&dir, &format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {why}")), "{target}: {answer}");
        assert!(!answer.contains("secret"), "{target}: {answer}");
    }
    let named = ask(&dir, "POINTSMAN-PROGRAM cargo\r\nCONNECT named.example.org:443 HTTP/1.1\r\n\r\n");
    assert!(named.starts_with("HTTP/1.1 403"), "{named}");
    let refused = SandboxDir::below(&dir, "one").unwrap().refused().0;
    assert_eq!(refused[&format!("localhost:{closed}")].why, Refusal::PrivateAddress);
    assert_eq!(refused[&format!("127.0.0.1:{closed}")].why, Refusal::AddressLiteral);
    assert_eq!(refused["unlisted.example.org:443"].count, 1);
    assert_eq!(refused["unlisted.example.org:443"].program, None);
    assert_eq!(refused["named.example.org:443"].program.as_deref(), Some("cargo"));
    drop(world);
    served.join().unwrap().unwrap();
}

#[test]
fn requests_are_understood_and_rewritten() {
    let destination = |host: &str, port| Destination { host: host.to_owned(), port };
    assert_eq!(
        parse(b"CONNECT api.example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n"),
        Ok(ProxyRequest { destination: destination("api.example.org", 443), kind: Kind::Tunnel })
    );
    let head =
        b"POST http://api.example.org:8080/v1?a=b HTTP/1.1\r\nHost: other\r\nProxy-Authorization: x\r\n\
                 Content-Length: 3\r\nConnection: keep-alive\r\n\r\n";
    let Ok(ProxyRequest { destination: to, kind: Kind::Plain(plain) }) = parse(head) else { panic!() };
    assert_eq!(to, destination("api.example.org", 8080));
    assert_eq!(
        String::from_utf8(plain).unwrap(),
        "POST /v1?a=b HTTP/1.1\r\nHost: api.example.org:8080\r\nConnection: close\r\nContent-Length: 3\r\n\r\n"
    );
    for head in ["GET / HTTP/1.1", "GET ftp://x/ HTTP/1.1", "CONNECT x HTTP/1.1", "nonsense", ""] {
        assert_eq!(parse(format!("{head}\r\n\r\n").as_bytes()), Err(Refusal::Malformed), "{head}");
    }
}
