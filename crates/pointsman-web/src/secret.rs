//! Secrets of visitors: random texts, their hashes, and the tokens of forms.

use std::fs::File;
use std::io::{self, Read};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// A secret is as long as a key.
const BYTES: usize = 32;

/// A new secret, in hexadecimal digits.
pub(crate) fn new() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}

/// The hash under which a secret is kept. A secret is random, so it needs no slow one.
pub(crate) fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

/// The token of the form that a page of this login sends to this path. Nobody else can compute it.
pub(crate) fn form_token(login: &str, path: &str) -> String {
    hex(&keyed(login, path).finalize().into_bytes())
}

/// Whether a form has the token of its login and path, in constant time.
pub(crate) fn is_form_token(login: &str, path: &str, token: &str) -> bool {
    unhex(token).is_some_and(|token| keyed(login, path).verify_slice(&token).is_ok())
}

fn keyed(login: &str, path: &str) -> Hmac<Sha256> {
    let mac = Hmac::<Sha256>::new_from_slice(login.as_bytes()).expect("a key may have any length");
    mac.chain_update(path.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{form_token, hash, is_form_token, new};

    #[test]
    fn secrets_are_long_and_differ() {
        let (a, b) = (new().unwrap(), new().unwrap());
        assert_eq!((a.len(), b.len()), (64, 64));
        assert_ne!(a, b);
        // The well-known value of the empty text.
        assert!(hash("").starts_with("e3b0c44298fc1c14"));
    }

    #[test]
    fn the_token_of_a_form_counts_for_its_login_and_its_path() {
        let token = form_token("login", "/inbox/7");
        assert!(is_form_token("login", "/inbox/7", &token));
        assert!(!is_form_token("login", "/inbox/8", &token));
        assert!(!is_form_token("other", "/inbox/7", &token));
        for wrong in ["", "00", "zz", &token[..62], &format!("{token}00"), "é"] {
            assert!(!is_form_token("login", "/inbox/7", wrong), "{wrong}");
        }
    }
}
