//! Addresses that an action may be sent to.

use core::net::{IpAddr, Ipv6Addr};
use std::fmt;

use crate::words;

/// The server of an address that is called: `https`, or `http` on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    /// Without a port in the address.
    usual: bool,
}

impl Address {
    /// Takes an address apart; else says why it may not be called. It is never repeated in these words.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        let (rest, secure) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (rest, true),
            (None, Some(rest)) => (rest, false),
            (None, None) => return Err(words::vault::ADDRESS_NOT_SECURE),
        };
        if !rest.bytes().all(|b| b.is_ascii_graphic()) || rest.contains(['?', '#', '\\']) {
            return Err(words::vault::ADDRESS_NOT_PLAIN);
        }
        let authority = rest.split('/').next().unwrap_or_default();
        if authority.contains('@') {
            return Err(words::config::PASSWORD_IN_ADDRESS);
        }
        let end = authority.rfind(']').map_or(0, |at| at + 1);
        let colon = authority[end..].find(':').map(|at| end + at);
        let (host, port) = match colon {
            Some(at) => (&authority[..at], Some(&authority[at + 1..])),
            None => (authority, None),
        };
        let usual = if secure { 443 } else { 80 };
        let number = port.map_or(Some(usual), |port| port.parse().ok().filter(|port| *port > 0));
        let Some(port) = number.filter(|_| is_host(host)) else {
            return Err(words::vault::ADDRESS_WITHOUT_HOST);
        };
        let host = host.to_ascii_lowercase();
        if !secure && !is_loopback(&host) {
            return Err(words::vault::ADDRESS_NOT_LOCAL);
        }
        Ok(Self { host, port, usual: port == usual })
    }

    /// Whether an operator listed it. Without a port an entry stands for the usual one.
    pub fn is_listed(&self, hosts: &[String]) -> bool {
        let with_port = format!("{}:{}", self.host, self.port);
        hosts.iter().any(|listed| {
            listed.eq_ignore_ascii_case(&with_port) || (self.usual && listed.eq_ignore_ascii_case(&self.host))
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.usual { f.write_str(&self.host) } else { write!(f, "{}:{}", self.host, self.port) }
    }
}

fn is_host(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inside) => inside.parse::<Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && !host.starts_with(['.', '-'])
                && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b))
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn https_or_this_machine_and_only_who_is_listed() {
        let hosts = ["example.org", "hooks.example.org:8443", "127.0.0.1:9", "[::1]:8080", "localhost"];
        let hosts = hosts.map(str::to_owned);
        let called = |url: &str| Address::parse(url).map(|address| address.is_listed(&hosts));
        for url in [
            "https://example.org/deploy",
            "https://EXAMPLE.org:443",
            "https://hooks.example.org:8443/x",
            "http://127.0.0.1:9/x",
            "http://[::1]:8080/",
            "http://localhost/x",
        ] {
            assert_eq!(called(url), Ok(true), "{url}");
        }
        for url in [
            "https://evil.example/deploy",
            "https://example.org.evil.example/",
            "https://sub.example.org/",
            "https://example.org:8443/",
            "https://hooks.example.org/",
            "http://127.0.0.1:10/x",
            "http://127.0.0.2:9/x",
        ] {
            assert_eq!(called(url), Ok(false), "{url}");
        }
        for url in [
            "http://example.org/",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil.example/",
            "ftp://example.org/",
            "example.org",
            "https://",
            "https:///x",
            "https://example.org@evil.example/",
            "https://evil.example\\@example.org/",
            "https://example.org:x/",
            "https://example.org:0/",
            "https://example.org:/",
            "https://[::1/",
            "https://example.org/a b",
            "https://example.org/?token=1",
        ] {
            assert!(called(url).is_err(), "{url}");
        }
    }
}
