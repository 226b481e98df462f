//! One request to a proxy: `CONNECT host:port`, or a plain request with a whole address.

use std::io::{self, Read};

use pointsman_core::sandbox::network::{Destination, Refusal};

/// The longest head of a request.
const HEAD_BYTES: usize = 64 << 10;

/// The request of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    pub(super) destination: Destination,
    pub(super) kind: Kind,
}

/// What is wanted of the destination.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes in both directions.
    Tunnel,
    /// This head, which is sent before the rest of the request.
    Plain(Vec<u8>),
}

/// Reads the head of a request. What the program has sent after it is returned as well.
pub(super) fn read_head(stream: &mut impl Read) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut head = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = head.split_off(end + 4);
            return Ok(Some((head, rest)));
        }
        if head.len() > HEAD_BYTES {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        match stream.read(&mut chunk)? {
            0 => return Ok(None),
            n => head.extend_from_slice(&chunk[..n]),
        }
    }
}

/// Understands a head. A plain request is rewritten for its server: a path instead of a whole address, the connection closed
/// after it, so that the next request to another host is looked at as well, and no word to the proxy.
pub(super) fn parse(head: &[u8]) -> Result<ProxyRequest, Refusal> {
    let text = std::str::from_utf8(head).map_err(|_| Refusal::Malformed)?;
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let [method, target, version] = first.split(' ').collect::<Vec<_>>()[..] else {
        return Err(Refusal::Malformed);
    };
    if method == "CONNECT" {
        return Ok(ProxyRequest { destination: Destination::parse(target, None)?, kind: Kind::Tunnel });
    }
    let rest = target.strip_prefix("http://").ok_or(Refusal::Malformed)?;
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let destination = Destination::parse(authority, Some(80))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut plain = format!("{method} {slash}{path} {version}\r\nHost: {authority}\r\nConnection: close\r\n");
    for line in lines.filter(|line| !line.is_empty()) {
        let name = line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !matches!(
            name.as_str(),
            "host" | "connection" | "keep-alive" | "proxy-connection" | "proxy-authorization"
        ) {
            plain.push_str(line);
            plain.push_str("\r\n");
        }
    }
    plain.push_str("\r\n");
    Ok(ProxyRequest { destination, kind: Kind::Plain(plain.into_bytes()) })
}

/// The head of an answer after which the connection is closed. An interim answer stays as it is.
pub(super) fn closing(head: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(head) else { return head.to_vec() };
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    let first = lines.next().unwrap_or_default();
    if first.split(' ').nth(1).is_none_or(|status| status.starts_with('1')) {
        return head.to_vec();
    }
    let about_connection = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("connection") || name.eq_ignore_ascii_case("keep-alive")
    };
    let kept: Vec<&str> = lines.filter(|line| !about_connection(line)).collect();
    let mut closing = format!("{first}\r\n");
    for line in kept {
        closing.push_str(line);
        closing.push_str("\r\n");
    }
    closing.push_str("Connection: close\r\n\r\n");
    closing.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::closing;

    #[test]
    fn an_answer_says_that_its_connection_is_used_up() {
        let head = b"HTTP/1.1 429 Too Many Requests\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nA: b\r\n\r\n";
        assert_eq!(closing(head), b"HTTP/1.1 429 Too Many Requests\r\nA: b\r\nConnection: close\r\n\r\n");
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
        assert_eq!(closing(interim), interim);
        assert_eq!(closing(b"\xff\r\n\r\n"), b"\xff\r\n\r\n");
    }
}
