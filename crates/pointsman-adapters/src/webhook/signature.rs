//! Whether a request comes from somebody who knows the secret.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::request::Head;
use crate::secret::Secret;

/// Headers with the signature of the body, and what stands before its digits.
const SIGNATURES: [(&str, &str); 3] =
    [("x-hub-signature-256", "sha256="), ("x-forgejo-signature", ""), ("x-gitea-signature", "")];

/// A check under way: the body goes through it as it comes.
pub(super) struct Check {
    body: Hmac<Sha256>,
    claim: Option<Claim>,
}

/// What the request shows.
enum Claim {
    /// A signature of its body.
    Signature(Vec<u8>),
    /// The secret itself, as something that can be compared in constant time.
    Shown(bool),
}

impl Check {
    pub(super) fn new(head: &Head, secret: &Secret) -> Self {
        let signature = SIGNATURES.iter().find_map(|(name, prefix)| {
            let text = head.header(name)?.strip_prefix(prefix)?;
            from_hex(text).map(Claim::Signature)
        });
        // For who can send a header but sign nothing: a step of a pipeline, or a GitLab, which shows the secret itself.
        let shown = || {
            let bearer = head.header("authorization").and_then(|text| text.strip_prefix("Bearer "));
            let token = bearer.or_else(|| head.header("x-gitlab-token"))?;
            let right = keyed(secret).chain_update(secret.expose().as_bytes()).finalize().into_bytes();
            let is_right = keyed(secret).chain_update(token.as_bytes()).verify_slice(&right).is_ok();
            Some(Claim::Shown(is_right))
        };
        Self { body: keyed(secret), claim: signature.or_else(shown) }
    }

    /// The next part of the body.
    pub(super) fn take(&mut self, part: &[u8]) {
        self.body.update(part);
    }

    /// Whether all was signed with the secret. Takes as long for a wrong signature as for a right one.
    pub(super) fn succeeds(self) -> bool {
        match self.claim {
            Some(Claim::Signature(signature)) => self.body.verify_slice(&signature).is_ok(),
            Some(Claim::Shown(is_right)) => is_right,
            None => false,
        }
    }
}

fn keyed(secret: &Secret) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret.expose().as_bytes()).expect("a key may have any length")
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
pub(super) fn sign(secret: &Secret, body: &[u8]) -> String {
    let signature = keyed(secret).chain_update(body).finalize().into_bytes();
    signature.iter().map(|byte| format!("{byte:02x}")).collect()
}
