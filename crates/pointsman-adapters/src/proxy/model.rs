//! One connection of a session to the model's API: every call is looked at, gets the operator's credential, and is counted.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pointsman_core::relay::anthropic::{
    Call, REQUEST_BYTES, authorization, check_body, long_wait, passes_answer_header, passes_header, refusal,
};
use pointsman_core::relay::usage::AnswerReader;
use pointsman_core::relay::{ADDRESS, MODEL, ModelAccess, Unpassed, Upstream};
use pointsman_core::time::Timestamp;

use super::accounts::{Accounts, Admitted};
use super::message::{Framing, Head, end_chunks, read_body, write_chunk};
use super::upstream::{ANSWER_LIMIT, Connection, Connections, Unasked, ask, host_header};

/// For the rest of an answer after the agent has hung up. Then the connection is closed, so that the model stops.
const HUNG_UP_LIMIT: Duration = Duration::from_secs(5);
/// The largest answer that is kept until it is booked; a stream is booked as it passes.
const WHOLE_BYTES: usize = 16 << 20;
/// The bytes of requests that are held at a time, over all sandboxes and of one.
const HELD_BYTES: u64 = 1 << 30;
const HELD_BYTES_OF_ONE: u64 = 128 << 20;

/// The means of the relay.
pub(super) struct Relay {
    pub(super) accounts: Accounts,
    pub(super) connections: Connections,
    /// The bytes of all requests that are held at the moment.
    pub(super) held: AtomicU64,
    pub(super) now: fn() -> Timestamp,
}

/// The sandbox that a call comes from.
pub(super) struct CallOrigin<'a> {
    pub(super) sandbox: &'a str,
    pub(super) access: &'a ModelAccess,
    pub(super) private_hosts: &'a [String],
    /// The bytes of its requests that are held at the moment.
    pub(super) held: &'a AtomicU64,
}

/// The place that one request takes up, until it is dropped.
struct Held<'a> {
    all: &'a AtomicU64,
    own: &'a AtomicU64,
    bytes: u64,
}

impl Held<'_> {
    /// Takes more; says whether there was room.
    fn grow(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        let all = self.all.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let own = self.own.fetch_add(bytes, Ordering::SeqCst) + bytes;
        all <= HELD_BYTES && own <= HELD_BYTES_OF_ONE
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::SeqCst);
        self.own.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

/// Whether the connection takes another call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Another,
    Close,
}

/// The path of a request that is meant for the relay itself, not for a host behind the proxy.
pub(super) fn own_path(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return Some(target);
    }
    // Some programs ask a proxy for everything.
    let rest = target.strip_prefix("http://")?.strip_prefix(ADDRESS)?;
    let (port, path) = rest.split_at(rest.find('/')?);
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    is_port.then_some(path)
}

impl Relay {
    /// Answers one call. The error of a call that was not passed on has been told to the agent.
    pub(super) fn serve(
        &self,
        from: &CallOrigin<'_>,
        head: &Head,
        agent: &mut impl BufRead,
        mut to: impl Write,
    ) -> io::Result<(Next, Option<Unpassed>)> {
        match self.call(from, head, agent, &mut to) {
            Ok(next) => Ok((next, None)),
            Err(Failure::Unpassed(why)) => {
                let (status, wait, body) = refusal(&why);
                let wait = wait.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
                // The rest of the request was not read.
                write!(
                    to,
                    "HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
                     x-should-retry: false\r\n{wait}connection: close\r\n\r\n{body}",
                    body.len()
                )?;
                Ok((Next::Close, Some(why)))
            }
            Err(Failure::Broken(error)) => Err(error),
        }
    }

    fn call(
        &self,
        from: &CallOrigin<'_>,
        head: &Head,
        agent: &mut impl BufRead,
        to: &mut impl Write,
    ) -> Result<Next, Failure> {
        let (method, target) = head.request_line();
        let path = own_path(target).and_then(|path| path.strip_prefix(MODEL)).ok_or(Unpassed::Path)?;
        let call = Call::of(method, path)?;
        let framing = head.request_framing()?;
        if call == Call::Hello {
            to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
            return Ok(if framing == Framing::Length(0) { Next::Another } else { Next::Close });
        }
        let told = match framing {
            Framing::Length(length) => length,
            Framing::Chunked | Framing::ToEnd => 0,
        };
        if told > REQUEST_BYTES {
            return Err(Unpassed::TooLarge.into());
        }
        let credential = from.access.credential;
        let secret = self.accounts.credential(credential).ok_or(Unpassed::NoCredential)?;
        let mut admitted = None;
        if call == Call::Messages {
            self.accounts.must_wait(credential)?;
            admitted = Some(self.accounts.admit(from.sandbox, from.access, told)?);
        }
        let mut held = Held { all: &self.held, own: from.held, bytes: 0 };
        let mut body = Vec::new();
        if call.has_body() {
            if head.get("expect").is_some_and(|what| what.eq_ignore_ascii_case("100-continue")) {
                to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            let (mut is_too_large, mut has_room) = (false, true);
            let read = read_body(agent, framing, |piece| {
                is_too_large = (body.len() + piece.len()) as u64 > REQUEST_BYTES;
                has_room = held.grow(piece.len() as u64);
                if is_too_large || !has_room {
                    return Err(io::Error::from(io::ErrorKind::FileTooLarge));
                }
                body.extend_from_slice(piece);
                Ok(())
            });
            if is_too_large {
                return Err(Unpassed::TooLarge.into());
            }
            if !has_room {
                return Err(Unpassed::Busy.into());
            }
            read?;
            let model = check_body(&body, from.access.of_stranger)?;
            if let Some(admitted) = &admitted {
                // Others may have begun meanwhile, and only now it is known how much this one is about.
                admitted.weigh(from.access, body.len() as u64, &model)?;
            }
        } else if framing != Framing::Length(0) {
            return Err(Unpassed::Path.into());
        }
        let upstream = Upstream::parse(&from.access.upstream).map_err(Unpassed::Upstream)?;
        let mut beta = head.get("anthropic-beta").map(str::to_owned);
        let (name, value) = authorization(credential, secret.expose(), &mut beta);
        let mut request = format!(
            "{method} {}{path} HTTP/1.1\r\nhost: {}\r\n{name}: {value}\r\naccept-encoding: identity\r\n",
            upstream.path,
            host_header(&upstream)
        );
        let own = head
            .headers
            .iter()
            .filter(|(name, _)| passes_header(name) && !name.eq_ignore_ascii_case("anthropic-beta"));
        for (name, value) in own {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(beta) = beta {
            request.push_str(&format!("anthropic-beta: {beta}\r\n"));
        }
        if call.has_body() {
            request.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        let asked = body.len() as u64;
        let mut message = request.into_bytes();
        message.append(&mut body);
        let key = &from.access.upstream;
        let (mut connection, answer) =
            ask(&self.connections, key, &upstream, from.private_hosts, &message, ANSWER_LIMIT)?;
        drop((message, held));
        let status = answer.status()?;
        if call == Call::Messages
            && let Some(seconds) = long_wait(status, |name| answer.get(name), (self.now)().0 / 1000)
        {
            self.accounts.limit(credential, seconds);
        }
        let counted = admitted.filter(|_| status == 200);
        let passed = pass_answer(&mut connection, &answer, status, to, counted.as_ref(), asked)?;
        if passed == Next::Another && answer.keeps_alive() {
            self.connections.keep(key, connection);
        }
        Ok(if passed == Next::Another && head.keeps_alive() { Next::Another } else { Next::Close })
    }
}

/// Passes an answer on, piece by piece, and counts it if it is to be counted.
pub(super) fn pass_answer(
    connection: &mut Connection,
    answer: &Head,
    status: u16,
    to: &mut impl Write,
    counted: Option<&Admitted<'_>>,
    asked: u64,
) -> io::Result<Next> {
    let framing = answer.answer_framing(status, false)?;
    let is_stream = answer.get("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut head = format!("{}\r\n", answer.first.replacen("HTTP/1.0", "HTTP/1.1", 1));
    for (name, value) in answer.headers.iter().filter(|(name, _)| passes_answer_header(name)) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match framing {
        Framing::Length(length) => head.push_str(&format!("content-length: {length}\r\n\r\n")),
        Framing::Chunked | Framing::ToEnd => head.push_str("transfer-encoding: chunked\r\n\r\n"),
    }
    let mut pipe = AnswerPipe { to, framing, hung_up: None, buffer: Vec::new() };
    pipe.write_head(head.as_bytes());
    let mut reader = counted.map(|_| AnswerReader::new(is_stream, asked));
    let mut whole = Vec::new();
    let mut booked = false;
    let mut is_short = false;
    let book_early = |reader: &mut Option<AnswerReader>| {
        if reader.as_ref().is_some_and(AnswerReader::is_complete)
            && let (Some(reader), Some(admitted)) = (reader.take(), counted)
        {
            admitted.book(&reader.finish());
        }
    };
    let socket = connection.get_ref().socket().try_clone()?;
    let read = read_body(connection, framing, |piece| {
        if let Some(reader) = &mut reader {
            reader.read(piece);
        }
        if is_stream {
            book_early(&mut reader);
        }
        // An answer that is no stream tells its figures at its end: nobody sees it before they are booked.
        match counted.is_some() && !is_stream && !booked && whole.len() + piece.len() <= WHOLE_BYTES {
            true => whole.extend_from_slice(piece),
            false => {
                booked = true;
                pipe.write(&std::mem::take(&mut whole));
                pipe.write(piece);
            }
        }
        match pipe.hung_up {
            Some(since) if since.elapsed() > HUNG_UP_LIMIT => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
            Some(_) if !is_short => {
                is_short = true;
                socket.set_read_timeout(Some(HUNG_UP_LIMIT))
            }
            Some(_) | None => Ok(()),
        }
    });
    if let (Some(reader), Some(admitted)) = (reader, counted) {
        admitted.book(&reader.finish());
    }
    pipe.write(&whole);
    read?;
    pipe.end();
    Ok(match pipe.hung_up {
        None if framing != Framing::ToEnd => Next::Another,
        Some(_) | None => Next::Close,
    })
}

/// The way of an answer to the agent, who may have hung up.
struct AnswerPipe<'a, W> {
    to: &'a mut W,
    framing: Framing,
    hung_up: Option<Instant>,
    buffer: Vec<u8>,
}

impl<W: Write> AnswerPipe<'_, W> {
    fn note(&mut self, written: io::Result<()>) {
        if written.is_err() {
            self.hung_up.get_or_insert_with(Instant::now);
        }
    }

    fn write_head(&mut self, head: &[u8]) {
        let written = self.to.write_all(head);
        self.note(written);
    }

    fn write(&mut self, piece: &[u8]) {
        if self.hung_up.is_some() || piece.is_empty() {
            return;
        }
        let written = match self.framing {
            Framing::Length(_) => self.to.write_all(piece),
            Framing::Chunked | Framing::ToEnd => write_chunk(&mut *self.to, piece, &mut self.buffer),
        };
        self.note(written);
    }

    fn end(&mut self) {
        if self.hung_up.is_none() && !matches!(self.framing, Framing::Length(_)) {
            let written = end_chunks(&mut *self.to);
            self.note(written);
        }
    }
}

/// A call that does not come through.
enum Failure {
    Unpassed(Unpassed),
    /// The connection broke, or what came over it is no message.
    Broken(io::Error),
}

impl From<Unpassed> for Failure {
    fn from(why: Unpassed) -> Self {
        Self::Unpassed(why)
    }
}

impl From<Unasked> for Failure {
    fn from(why: Unasked) -> Self {
        match why {
            Unasked::Refused(refusal) => Self::Unpassed(Unpassed::Upstream(refusal)),
            Unasked::Broken(error) => Self::Broken(error),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}
