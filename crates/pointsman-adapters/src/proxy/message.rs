//! Messages of HTTP/1.1 as the relay reads and writes them: heads, and bodies of every framing. It reads strictly: a message whose
//! end could be seen in two places is refused, so that nothing can be hidden behind it.

use std::io::{self, BufRead, Write};

/// The longest head, and the longest line with the size of a chunk.
const HEAD_BYTES: usize = 64 << 10;
const CHUNK_LINE_BYTES: usize = 256;

/// The first line and the headers of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) first: String,
    pub(super) headers: Vec<(String, String)>,
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    /// It ends with the connection.
    ToEnd,
}

fn malformed() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

impl Head {
    /// Reads a head; none if the connection ended before it.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        loop {
            let piece = from.fill_buf()?;
            if piece.is_empty() {
                return if bytes.is_empty() { Ok(None) } else { Err(malformed()) };
            }
            // The end may lie across two pieces.
            let before = bytes.len();
            bytes.extend_from_slice(piece);
            let begin = before.saturating_sub(3);
            let end = bytes[begin..].windows(4).position(|four| four == b"\r\n\r\n").map(|at| begin + at + 4);
            let taken = match end {
                Some(end) => end - before,
                None => piece.len(),
            };
            from.consume(taken);
            if let Some(end) = end {
                bytes.truncate(end);
                return Self::parse(&bytes).map(Some).ok_or_else(malformed);
            }
            if bytes.len() > HEAD_BYTES {
                return Err(malformed());
            }
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.strip_suffix("\r\n\r\n")?;
        let mut lines = text.split("\r\n");
        let first = lines.next()?.to_owned();
        let is_name = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
        };
        let is_value = |value: &str| value.bytes().all(|b| b == b'\t' || (b >= b' ' && b != 0x7f));
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':')?;
            if !is_name(name) || !is_value(value) {
                return None;
            }
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let plain = !first.is_empty() && first.bytes().all(|b| (b' '..0x7f).contains(&b));
        plain.then_some(Self { first, headers })
    }

    /// The method and the target of a request.
    pub(super) fn request_line(&self) -> (&str, &str) {
        let mut words = self.first.split(' ');
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    fn all(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(one, _)| one.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// The framing that the headers tell; none if they tell nothing.
    fn told_framing(&self) -> io::Result<Option<Framing>> {
        let (lengths, codings) = (self.all("content-length"), self.all("transfer-encoding"));
        match (&lengths[..], &codings[..]) {
            ([], []) => Ok(None),
            ([length], []) if !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()) => {
                length.parse().map(|length| Some(Framing::Length(length))).map_err(|_| malformed())
            }
            ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => Ok(Some(Framing::Chunked)),
            _ => Err(malformed()),
        }
    }

    /// The body of a request; without a word about it there is none.
    pub(super) fn request_framing(&self) -> io::Result<Framing> {
        Ok(self.told_framing()?.unwrap_or(Framing::Length(0)))
    }

    /// The body of an answer with this status.
    pub(super) fn answer_framing(&self, status: u16, is_head: bool) -> io::Result<Framing> {
        if is_head || matches!(status, 204 | 304) {
            return Ok(Framing::Length(0));
        }
        Ok(self.told_framing()?.unwrap_or(Framing::ToEnd))
    }

    /// The status of an answer.
    pub(super) fn status(&self) -> io::Result<u16> {
        let mut words = self.first.split(' ');
        let is_version = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
        let status = words.next().and_then(|word| word.parse().ok());
        status.filter(|_| is_version).ok_or_else(malformed)
    }

    /// Whether the connection can be used again after this message.
    pub(super) fn keeps_alive(&self) -> bool {
        let is_current = self.first.contains("HTTP/1.1");
        let said = self.get("connection").unwrap_or_default().to_ascii_lowercase();
        is_current && !said.split(',').any(|word| word.trim() == "close")
    }
}

/// Reads a body piece by piece, as it comes.
pub(super) fn read_body(
    from: &mut impl BufRead,
    framing: Framing,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    match framing {
        Framing::Length(length) => read_exactly(from, length, &mut take),
        Framing::ToEnd => loop {
            let piece = from.fill_buf()?;
            let length = piece.len();
            if length == 0 {
                return Ok(());
            }
            take(piece)?;
            from.consume(length);
        },
        Framing::Chunked => loop {
            let line = read_line(from)?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let size = u64::from_str_radix(digits, 16).ok().filter(|_| plain).ok_or_else(malformed)?;
            if size == 0 {
                // Trailers mean nothing here.
                while !read_line(from)?.is_empty() {}
                return Ok(());
            }
            read_exactly(from, size, &mut take)?;
            if !read_line(from)?.is_empty() {
                return Err(malformed());
            }
        },
    }
}

fn read_exactly(
    from: &mut impl BufRead,
    mut left: u64,
    take: &mut impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    while left > 0 {
        let piece = from.fill_buf()?;
        if piece.is_empty() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        take(&piece[..length])?;
        from.consume(length);
        left -= length as u64;
    }
    Ok(())
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        let piece = from.fill_buf()?;
        if piece.is_empty() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(piece.len(), |at| at + 1);
        line.extend_from_slice(&piece[..length]);
        from.consume(length);
        if line.len() > CHUNK_LINE_BYTES {
            return Err(malformed());
        }
        if end.is_some() {
            let text = line.strip_suffix(b"\r\n").ok_or_else(malformed)?;
            return String::from_utf8(text.to_vec()).map_err(|_| malformed());
        }
    }
}

/// Writes one piece of a chunked body.
pub(super) fn write_chunk(mut to: impl Write, piece: &[u8], buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    write!(buffer, "{:x}\r\n", piece.len())?;
    buffer.extend_from_slice(piece);
    buffer.extend_from_slice(b"\r\n");
    to.write_all(buffer)
}

/// Ends a chunked body.
pub(super) fn end_chunks(mut to: impl Write) -> io::Result<()> {
    to.write_all(b"0\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::{Framing, Head, read_body};

    fn head(text: &str) -> Option<Head> {
        Head::read(&mut BufReader::with_capacity(3, Cursor::new(text.as_bytes().to_vec()))).ok().flatten()
    }

    #[test]
    fn a_head_is_read_across_pieces_and_nothing_after_it() {
        let mut from =
            BufReader::with_capacity(5, Cursor::new(b"GET / HTTP/1.1\r\nA: b\r\n\r\nrest".to_vec()));
        let head = Head::read(&mut from).unwrap().unwrap();
        assert_eq!((head.first.as_str(), head.get("a")), ("GET / HTTP/1.1", Some("b")));
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut from, &mut rest).unwrap();
        assert_eq!(rest, "rest");
        for odd in
            ["GET / HTTP/1.1\r\nA : b\r\n\r\n", "X\r\nA\r\n\r\n", "X\r\n A: b\r\n\r\n", "X\r\nA: b\0\r\n\r\n"]
        {
            assert_eq!(super::Head::parse(odd.as_bytes()), None, "{odd:?}");
        }
    }

    #[test]
    fn a_body_with_two_ends_is_refused() {
        let framing = |headers: &str| {
            head(&format!("POST / HTTP/1.1\r\n{headers}\r\n")).unwrap().request_framing().ok()
        };
        assert_eq!(framing("Content-Length: 5\r\n"), Some(Framing::Length(5)));
        assert_eq!(framing("transfer-encoding: Chunked\r\n"), Some(Framing::Chunked));
        assert_eq!(framing(""), Some(Framing::Length(0)));
        for odd in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 5, 5\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        ] {
            assert_eq!(framing(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn chunks_are_read_strictly() {
        let read = |text: &str| {
            let mut body = Vec::new();
            let mut from = BufReader::with_capacity(4, Cursor::new(text.as_bytes().to_vec()));
            let done = read_body(&mut from, Framing::Chunked, |piece| {
                body.extend_from_slice(piece);
                Ok(())
            });
            done.ok().map(|()| String::from_utf8(body).unwrap())
        };
        assert_eq!(
            read("3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n").as_deref(),
            Some("abc0123456789")
        );
        for odd in [
            "3\r\nabcd\r\n0\r\n\r\n",
            "-3\r\nabc\r\n0\r\n\r\n",
            "3\nabc\n0\n\n",
            "3\r\nab",
            "\r\n",
            "0x3\r\nabc\r\n",
        ] {
            assert_eq!(read(odd), None, "{odd:?}");
        }
    }
}
