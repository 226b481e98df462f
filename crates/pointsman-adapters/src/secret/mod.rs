//! Tokens of services: where they come from, and a type that does not tell them.
//!
//! A token is never in `pointsman.toml`. It comes from a program, a file, a variable of the environment, or a line of
//! the `.env` beside the state, in this order. It leaves this type in two places only: the header of a request
//! (`http`) and the environment of a git that talks to the same server (`git`). Neither puts it into a text.
//! A [`Token`] is such a secret, or one that has to be fetched anew now and then.
//!
//! Every secret that was read is [`known`] from then on, so that it can be looked for in what leaves.

mod dotenv;
mod known;
mod source;
mod token;

use std::fmt;

pub use dotenv::Dotenv;
pub use known::{known, remember, remember_for_now, remember_login, remember_named};
pub use source::{Error, Source, private_text};
pub use token::{Renewed, Token};

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

#[cfg(test)]
mod tests {
    use super::Secret;

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
}
