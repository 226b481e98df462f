//! Requests and replies on the wire.

use std::io::{self, BufRead, Read, Write};

use serde_json::Value;

/// The most bytes of a request that are read.
const CAP: u64 = 256 << 20;

/// What was asked.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    /// The path, unescaped, without the query.
    pub path: String,
    /// The path as it came.
    pub raw_path: String,
    /// The query as it came.
    pub raw_query: String,
    /// Header names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter of the query.
    pub fn query(&self, name: &str) -> Option<String> {
        let pairs = self.raw_query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(known, _)| unescaped(known) == name).map(|(_, value)| unescaped(value)).next()
    }

    /// The segments of the path, each unescaped: an escaped slash is part of one.
    pub fn segments(&self) -> Vec<String> {
        self.raw_path.split('/').filter(|segment| !segment.is_empty()).map(unescaped).collect()
    }

    /// The body as a value; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Reads one request; none at the end of the connection.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let first = line(from)?;
        let mut words = first.split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Self {
            method: method.to_owned(),
            path: unescaped(path),
            raw_path: path.to_owned(),
            raw_query: query.to_owned(),
            ..Self::default()
        };
        loop {
            let header = line(from)?;
            if header.is_empty() {
                break;
            }
            let (name, value) = header.split_once(':').unwrap_or((&header, ""));
            request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        if request.header("transfer-encoding") == Some("chunked") {
            request.body = chunks(from)?;
        } else if let Some(length) = request.header("content-length").and_then(|text| text.parse().ok()) {
            from.take(u64::min(length, CAP)).read_to_end(&mut request.body)?;
        }
        Ok(Some(request))
    }
}

/// How an answer goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// It does not.
    #[default]
    None,
    /// The connection ends after so many bytes of the body.
    CutAfter(usize),
    /// The connection ends without an answer.
    Drop,
    /// Nothing comes until the server ends.
    Hang,
}

/// What is answered.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub fault: Fault,
}

impl Reply {
    /// A status and nothing else.
    pub fn empty(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// A value.
    pub fn json(status: u16, value: &Value) -> Self {
        Self::empty(status).with("Content-Type", "application/json;charset=utf-8").body(value.to_string())
    }

    /// A web page.
    pub fn html(status: u16, page: &str) -> Self {
        Self::empty(status).with("Content-Type", "text/html; charset=utf-8").body(page)
    }

    /// With a header.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With a body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// With a fault.
    pub fn faulty(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    /// Writes it; an error ends the connection, as does a fault.
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {} Told\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !matches!(self.status, 204 | 304) {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        let cut = match self.fault {
            Fault::CutAfter(bytes) => bytes.min(self.body.len()),
            Fault::None | Fault::Drop | Fault::Hang => self.body.len(),
        };
        to.write_all(format!("{head}\r\n").as_bytes())?;
        to.write_all(&self.body[..cut])?;
        to.flush()?;
        if self.fault == Fault::None { Ok(()) } else { Err(io::ErrorKind::ConnectionAborted.into()) }
    }
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.take(64 << 10).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned())
}

fn chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(from)?;
        let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16).unwrap_or(0);
        from.take(size.min(CAP)).read_to_end(&mut body)?;
        line(from)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// Percent signs and pluses resolved.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        match (bytes[at], hex.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 2;
            }
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}
