//! The fake servers themselves: for every rule of docs/fakes.md a test that asks as anybody could ask and compares the
//! answer with the real server's. `scripts/mutate-fakes` breaks each rule once; its test must turn red.

mod forgejo;
mod github;
mod gitlab;
mod homeserver;
mod pages;
mod woodpecker;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// For one exchange.
const LIMIT: Duration = Duration::from_secs(20);

/// A server, and how a token is shown to it.
struct Asker<'a> {
    url: String,
    /// The part of every path.
    base: &'a str,
    /// What stands before a token.
    scheme: &'a str,
    /// Further headers, a line each.
    headers: &'a str,
}

impl Asker<'_> {
    /// Asks with somebody's token; an empty body is none.
    fn ask(&self, method: &str, path: &str, token: &str, body: &Value) -> (u16, Value) {
        let (status, _, text) = self.exchange(method, path, token, body);
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn get(&self, path: &str, token: &str) -> (u16, Value) {
        self.ask("GET", path, token, &Value::Null)
    }

    /// The status, the headers in lower case, and the body.
    fn exchange(&self, method: &str, path: &str, token: &str, body: &Value) -> (u16, String, String) {
        let address = self.url.strip_prefix("http://").unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(
            stream,
            "{method} {}{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {} {token}\r\n{}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.base,
            self.scheme,
            self.headers,
            body.len()
        )
        .unwrap();
        let mut answer = Vec::new();
        // A server may keep the connection open; what it said so far is all.
        let mut part = [0; 4096];
        loop {
            match stream.read(&mut part) {
                Ok(0) | Err(_) => break,
                Ok(n) => answer.extend(&part[..n]),
            }
            if is_whole(&answer) {
                break;
            }
        }
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (status, head.to_lowercase(), body.to_owned())
    }
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok()).flatten()
    });
    answer.len() >= head.len() + 4 + length.unwrap_or(0)
}
