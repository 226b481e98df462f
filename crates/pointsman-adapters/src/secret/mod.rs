//! Tokens of services: where they come from, and a type that does not tell them.
//!
//! A token is never in `pointsman.toml`. It comes from a program, a file, a variable of the environment, or a line of
//! the `.env` beside the state, in this order. It leaves this type in two places only: the header of a request
//! (`http`) and the environment of a git that talks to the same server (`git`). Neither puts it into a text.

mod dotenv;
mod source;

use std::fmt;

pub use dotenv::Dotenv;
pub use source::{Error, Source};

/// The longest token that is taken.
const LONGEST: usize = 8 << 10;

/// A token. It shows itself as `…`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a token that can stand in a header: visible ASCII, not empty. White space around it is not part of it.
    pub fn new(text: &str) -> Option<Self> {
        let token = text.trim();
        let fits = !token.is_empty() && token.len() <= LONGEST && token.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| Self(token.to_owned()))
    }

    /// The token itself. Not for texts.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// A text without this token.
    pub fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "…")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Base64 with padding, for basic authentication.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// What base64 stands for; whatever is no digit of it is skipped.
pub(crate) fn from_base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u8> = text.bytes().filter_map(digit).collect();
    let group = |chunk: &[u8]| {
        let number = chunk.iter().fold(0u32, |number, digit| number << 6 | u32::from(*digit));
        (number << (6 * (4 - chunk.len()))).to_be_bytes()[1..chunk.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::{Secret, base64, from_base64};

    #[test]
    fn a_token_shows_nothing_of_itself() {
        let secret = Secret::new(" tok-123\n").expect("a token");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.redact("bad token tok-123!"), "bad token …!");
    }

    #[test]
    fn what_cannot_stand_in_a_header_is_no_token() {
        for bad in ["", "  ", "a b", "a\r\nHost: evil", "ä", &"x".repeat(9000)] {
            assert!(Secret::new(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn base64_pads() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("user:pass", "dXNlcjpwYXNz")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
            assert_eq!(from_base64(coded), plain.as_bytes());
        }
    }
}
