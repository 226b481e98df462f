//! A browser without pictures: it keeps a cookie, sends what browsers send, and reads forms.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use pointsman_testkit::TestDaemon;

/// A page that does not come within this time never comes.
const LIMIT: Duration = Duration::from_secs(40);

/// An answer of the server.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) headers: String,
    pub(super) body: String,
}

impl Page {
    /// The value of a header, by its name in small letters.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The hidden token of the form that is sent to this path.
    pub(super) fn token(&self, path: &str) -> String {
        let form = self.body.split("<form").find(|form| form.contains(&format!("action=\"{path}\"")));
        let form = form.unwrap_or_else(|| panic!("no form for {path}: {}", self.body));
        let (_, rest) = form.split_once("name=\"token\" value=\"").expect("every form has a token");
        rest.split('"').next().unwrap_or_default().to_owned()
    }
}

/// A browser that may be logged in.
pub(super) struct Browser {
    pub(super) host: String,
    pub(super) address: String,
    pub(super) cookie: Option<String>,
}

impl Browser {
    /// Opens a new login link, as a person does.
    pub(super) fn log_in(daemon: &TestDaemon) -> Self {
        let mut browser = Self::logged_out(daemon);
        let code = code(daemon);
        let page = browser.post("/login", &[("code", &code)]);
        assert_eq!(page.status, 303, "{page:?}");
        let cookie = page.header("set-cookie").expect("a login has a cookie");
        assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
        browser.cookie = cookie.split(';').next().map(str::to_owned);
        browser
    }

    /// A browser that nobody knows.
    pub(super) fn logged_out(daemon: &TestDaemon) -> Self {
        let link = link(daemon);
        let host = link.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
        let port = host.rsplit(':').next().unwrap_or_default();
        Self { address: format!("127.0.0.1:{port}"), host, cookie: None }
    }

    /// Sends a request as it stands, and reads the answer to its end.
    pub(super) fn send(&self, head: &str, body: &str) -> Page {
        let mut stream = self.connect();
        let text = format!("{head}Connection: close\r\n\r\n{body}");
        // A server that has had enough does not read to the end.
        let _ = stream.write_all(text.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (headers, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Page { status, headers: headers.to_owned(), body: body.to_owned() }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    pub(super) fn get(&self, path: &str) -> Page {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{}", self.host, self.cookie_line()), "")
    }

    /// Sends a form from a page of ours.
    pub(super) fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        self.post_from(&format!("http://{}", self.host), path, fields)
    }

    /// Sends a form from a page of any origin.
    pub(super) fn post_from(&self, origin: &str, path: &str, fields: &[(&str, &str)]) -> Page {
        let body =
            fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>();
        let body = body.join("&");
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nOrigin: {origin}\r\n{}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n",
            self.host,
            self.cookie_line(),
            body.len()
        );
        self.send(&head, &body)
    }

    /// The lines of a stream, as they come.
    pub(super) fn stream(&self, path: &str, headers: &str) -> impl Iterator<Item = String> + use<> {
        let mut stream = self.connect();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n{}{headers}\r\n",
            self.host,
            self.cookie_line()
        );
        stream.write_all(head.as_bytes()).unwrap();
        BufReader::new(stream).lines().map_while(Result::ok)
    }

    fn cookie_line(&self) -> String {
        self.cookie.as_ref().map(|cookie| format!("Cookie: {cookie}\r\n")).unwrap_or_default()
    }
}

/// A new login link.
pub(super) fn link(daemon: &TestDaemon) -> String {
    daemon.json(&["web", "open"])["url"].as_str().expect("a link").to_owned()
}

/// The secret of a new login link.
pub(super) fn code(daemon: &TestDaemon) -> String {
    link(daemon).split_once("code=").expect("a link has a code").1.to_owned()
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}
