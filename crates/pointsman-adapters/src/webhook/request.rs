//! Reading a request: as much as is needed of HTTP, within limits of size and time.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::Reply;

/// The longest head.
const HEAD: usize = 16 << 10;
/// Read at once.
const PART: usize = 16 << 10;

/// A request without its body.
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    headers: Vec<(String, String)>,
}

impl Head {
    /// A header by its name in small letters; none as well if it is there twice, because then nobody knows which counts.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let first = found.next();
        if found.next().is_some() { None } else { first }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split("\r\n");
        let mut request = lines.next()?.split(' ');
        let (method, path, version) = (request.next()?, request.next()?, request.next()?);
        if request.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
            plain.then(|| (name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers: Option<Vec<_>> = lines.filter(|line| !line.is_empty()).map(header).collect();
        Some(Self { method: method.to_owned(), path: path.to_owned(), headers: headers? })
    }
}

/// A caller until its deadline.
pub(super) struct Caller<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
    /// Read behind the head: the beginning of the body.
    ahead: Vec<u8>,
}

impl<'a> Caller<'a> {
    pub(super) fn new(stream: &'a TcpStream, deadline: Instant) -> Self {
        Self { stream, deadline, ahead: Vec::new() }
    }

    /// Everything before the empty line.
    pub(super) fn head(&mut self) -> Result<Head, Reply> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if bytes.len() > HEAD {
                return Err(Reply::TooLarge);
            }
            let mut part = [0; PART];
            let got = self.read(&mut part)?;
            bytes.extend(&part[..got]);
        };
        self.ahead = bytes.split_off(end + 4);
        bytes.truncate(end);
        String::from_utf8(bytes).ok().and_then(|text| Head::parse(&text)).ok_or(Reply::Malformed)
    }

    /// Exactly `length` bytes, part by part.
    pub(super) fn body(&mut self, length: u64, mut take: impl FnMut(&[u8])) -> Result<(), Reply> {
        let mut left = length;
        let ahead = std::mem::take(&mut self.ahead);
        if ahead.len() as u64 > left {
            return Err(Reply::Malformed);
        }
        take(&ahead);
        left -= ahead.len() as u64;
        let mut part = [0; PART];
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(PART).min(PART);
            let got = self.read(&mut part[..wanted])?;
            take(&part[..got]);
            left -= got as u64;
        }
        Ok(())
    }

    /// At least one byte, before the deadline.
    fn read(&self, buffer: &mut [u8]) -> Result<usize, Reply> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) {
            return Err(Reply::TooSlow);
        }
        let mut stream = self.stream;
        let read = stream.set_read_timeout(Some(left)).and_then(|()| stream.read(buffer));
        match read {
            Ok(0) => Err(Reply::Malformed),
            Ok(got) => Ok(got),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Reply::TooSlow)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => self.read(buffer),
            Err(_) => Err(Reply::Malformed),
        }
    }
}
