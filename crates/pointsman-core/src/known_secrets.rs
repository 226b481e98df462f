//! Secrets whose value is known, in what is about to leave this machine: plain, in base64, in hexadecimal digits,
//! percent-encoded, and as JSON and HTML escape them. Texts that only look like a secret are in [`crate::review`].
//!
//! A value that was changed in another way is not found: split over several lines, compressed, encrypted, or encoded twice.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::base64;

/// Shorter values are too common to look for.
pub const SHORTEST: usize = 8;
/// A value of one class of characters only, such as a word or a number, must have this length.
pub const SHORTEST_PLAIN: usize = 16;
/// Fewer different characters make a placeholder, not a secret.
const DIFFERENT: usize = 5;
/// What stands where a secret stood.
pub const MASK: &str = "[secret]";
/// The digits of a fingerprint. They tell values apart and are too few to be mistaken for another hash.
const FINGERPRINT: usize = 16;
/// The prefix of a fingerprint in the configuration.
const PREFIX: &str = "sha256:";

/// Whether a value is long and varied enough to be looked for. Everybody's texts hold words such as `changeme`, and
/// masking them would make texts unreadable.
pub fn is_recognizable(value: &str) -> bool {
    let different = value.bytes().collect::<BTreeSet<u8>>().len();
    let classes: [fn(u8) -> bool; 4] = [
        |byte| byte.is_ascii_lowercase(),
        |byte| byte.is_ascii_uppercase(),
        |byte| byte.is_ascii_digit(),
        |byte| !byte.is_ascii_alphanumeric(),
    ];
    let mixed = classes.iter().filter(|class| value.bytes().any(class)).count() > 1;
    value.len() >= SHORTEST && different >= DIFFERENT && (mixed || value.len() >= SHORTEST_PLAIN)
}

/// The secrets that are known, ready to be looked for in one pass. It shows nothing of itself.
#[derive(Clone, Default)]
pub struct KnownSecrets {
    matcher: Option<AhoCorasick>,
    /// For each pattern of the matcher, the place of its value among the fingerprints.
    values: Vec<usize>,
    fingerprints: Vec<String>,
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KnownSecrets({} …)", self.fingerprints.len())
    }
}

/// A known secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// The place of its first byte.
    pub at: usize,
    /// Tells this value from others, in whatever form it was found.
    pub fingerprint: String,
}

impl KnownSecrets {
    /// The secrets with these values. Those that are not [recognizable](is_recognizable) are left out.
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let values: BTreeSet<&str> = values.into_iter().filter(|value| is_recognizable(value)).collect();
        let (mut patterns, mut owners, mut fingerprints) = (Vec::new(), Vec::new(), Vec::new());
        for (place, value) in values.into_iter().enumerate() {
            let forms = forms(value);
            owners.extend(forms.iter().map(|_| place));
            patterns.extend(forms);
            fingerprints.push(fingerprint(value.as_bytes()));
        }
        if patterns.is_empty() {
            return Self::default();
        }
        // The longest, so that a value is masked with all of it although another one is its beginning.
        let matcher = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        Self { matcher: matcher.ok(), values: owners, fingerprints }
    }

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.matcher.is_none()
    }

    /// The known secrets in these bytes, each value once, at its first place.
    pub fn find(&self, bytes: &[u8]) -> Vec<Leak> {
        let Some(matcher) = &self.matcher else { return Vec::new() };
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for hit in matcher.find_iter(bytes) {
            let value = self.values.get(hit.pattern().as_usize()).copied().unwrap_or_default();
            if seen.insert(value) {
                let fingerprint = self.fingerprints.get(value).cloned().unwrap_or_default();
                found.push(Leak { at: hit.start(), fingerprint });
            }
        }
        found
    }

    /// Whether one of them is in these bytes.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.matcher.as_ref().is_some_and(|matcher| matcher.is_match(bytes))
    }

    /// A text in which known secrets are masked.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.mask_bytes(text.as_bytes()) {
            Some(masked) => Cow::Owned(String::from_utf8_lossy(&masked).into_owned()),
            None => Cow::Borrowed(text),
        }
    }

    /// The same for a file; none if nothing of it has to be masked.
    pub fn mask_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let matcher = self.matcher.as_ref().filter(|matcher| matcher.is_match(bytes))?;
        let mut masked = Vec::with_capacity(bytes.len());
        matcher.replace_all_with_bytes(bytes, &mut masked, |_, _, to| {
            to.extend_from_slice(MASK.as_bytes());
            true
        });
        Some(masked)
    }

    /// Masks all texts in a JSON value, and says whether there was anything to mask.
    pub fn mask_json(&self, value: &mut Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => match self.mask_bytes(text.as_bytes()) {
                Some(masked) => {
                    *text = String::from_utf8_lossy(&masked).into_owned();
                    true
                }
                None => false,
            },
            Value::Array(values) => values.iter_mut().fold(false, |any, value| self.mask_json(value) | any),
            Value::Object(fields) => {
                fields.values_mut().fold(false, |any, value| self.mask_json(value) | any)
            }
        }
    }
}

/// Findings in a branch, as its owner hears of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundSecrets {
    /// Where they are and what they look like, never their values.
    pub what: String,
    pub fingerprints: Vec<String>,
}

/// The decisions of people about findings, by fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretDecisions {
    /// False alarms, and values that may leave.
    pub accepted: BTreeSet<String>,
    /// Secrets, as a person says.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rejected: BTreeSet<String>,
}

impl SecretDecisions {
    /// The name under which a project remembers them.
    pub const MEMORY: &str = "secret-decisions";

    /// Takes a decision down. The last one counts.
    pub fn decide(&mut self, fingerprint: &str, accepted: bool) {
        let (to, from) = match accepted {
            true => (&mut self.accepted, &mut self.rejected),
            false => (&mut self.rejected, &mut self.accepted),
        };
        from.remove(fingerprint);
        to.insert(fingerprint.to_owned());
    }
}

/// The beginning of a value's SHA-256. It tells values apart, and a value cannot be read from it.
pub fn fingerprint(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().flat_map(|byte| hex(*byte, DIGITS)).take(FINGERPRINT).map(char::from).collect()
}

/// The fingerprint that an entry of `review.secrets_allowed` names; none if it is a path.
pub fn named_fingerprint(entry: &str) -> Option<&str> {
    entry.strip_prefix(PREFIX)
}

/// A fingerprint as the configuration names it.
pub fn shown_fingerprint(fingerprint: &str) -> String {
    format!("{PREFIX}{fingerprint}")
}

/// Whether a text is a fingerprint.
pub fn is_fingerprint(text: &str) -> bool {
    text.len() == FINGERPRINT && text.bytes().all(|byte| DIGITS.contains(&byte))
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";
const LARGE_DIGITS: &[u8; 16] = b"0123456789ABCDEF";

fn hex(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}

/// The forms in which a value may leave.
fn forms(value: &str) -> BTreeSet<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut forms = BTreeSet::from([bytes.to_vec()]);
    for shift in 0..3 {
        let standard = in_base64(bytes, shift);
        forms.insert(standard.replace('+', "-").replace('/', "_").into_bytes());
        forms.insert(standard.into_bytes());
    }
    for digits in [DIGITS, LARGE_DIGITS] {
        forms.insert(bytes.iter().flat_map(|byte| hex(*byte, digits)).collect());
        // Browsers, libraries and shells leave different characters as they are.
        for kept in ["-._~", "-_.!~*'()", "-_.*", "-._~:/?#[]@!$&'()*+,;=", ""] {
            let encoded = percent_encoded(bytes, kept, digits);
            // Forms have another character for spaces.
            forms.insert(encoded.replace("%20", "+").into_bytes());
            forms.insert(encoded.into_bytes());
        }
    }
    if let Ok(quoted) = serde_json::to_string(value) {
        forms.insert(quoted.trim_matches('"').as_bytes().to_vec());
    }
    let markup = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    forms.insert(markup.replace('"', "&quot;").replace('\'', "&#39;").into_bytes());
    forms.insert(markup.into_bytes());
    forms
}

/// The digits of base64 that a value has for certain if `shift` other bytes come before it, and others behind it.
fn in_base64(value: &[u8], shift: usize) -> String {
    let padded: Vec<u8> = std::iter::repeat_n(0, shift).chain(value.iter().copied()).collect();
    let digits = base64::encode(&padded);
    let (first, last) = ((shift * 8).div_ceil(6), padded.len() * 8 / 6);
    digits.get(first..last).unwrap_or_default().to_owned()
}

fn percent_encoded(value: &[u8], kept: &str, digits: &[u8; 16]) -> String {
    let one = |byte: &u8| {
        let [first, second] = hex(*byte, digits);
        match byte.is_ascii_alphanumeric() || kept.as_bytes().contains(byte) {
            true => vec![*byte],
            false => vec![b'%', first, second],
        }
    };
    value.iter().flat_map(one).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "tok/en+with=odd&char \"acters\"?";
    const PLAIN: &str = "another-secret-value-1";

    fn known() -> KnownSecrets {
        KnownSecrets::new([VALUE, "short", PLAIN])
    }

    fn assert_found(row: &str, value: &str) {
        let known = known();
        let text = format!("+token = \u{201e}{row}\u{201c}\n");
        let leaks = known.find(text.as_bytes());
        let [leak] = &leaks[..] else { panic!("{leaks:?} in {text}") };
        assert_eq!(leak.fingerprint, fingerprint(value.as_bytes()), "{text}");
        assert!(leak.at > 0 && known.is_in(text.as_bytes()), "{text}");
        let masked = known.mask(&text);
        assert!(masked.contains(MASK) && known.find(masked.as_bytes()).is_empty(), "{masked}");
        assert!(masked.starts_with("+token = \u{201e}") && masked.ends_with("\u{201c}\n"), "{masked}");
    }

    #[test]
    fn a_value_is_found_plain_in_hex_and_percent_encoded() {
        let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
        let component = "tok%2Fen%2Bwith%3Dodd%26char%20%22acters%22%3F";
        for row in [
            VALUE,
            &hex,
            &hex.to_uppercase(),
            component,
            &component
                .replace("%2F", "%2f")
                .replace("%2B", "%2b")
                .replace("%3D", "%3d")
                .replace("%3F", "%3f"),
            "tok%2Fen%2Bwith%3Dodd%26char+%22acters%22%3F",
            "tok/en+with=odd&char%20%22acters%22?",
            "tok/en+with=odd&char \\\"acters\\\"?",
            "tok/en+with=odd&amp;char &quot;acters&quot;?",
        ] {
            assert_found(row, VALUE);
        }
        assert_found(PLAIN, PLAIN);
    }

    #[test]
    fn a_value_is_found_at_all_three_places_in_a_larger_base64_text() {
        for value in [VALUE, PLAIN] {
            for before in ["", "x", "xy", "xyz", "user:", "Authorization"] {
                for after in ["", "y", "yz", ":after"] {
                    let encoded = base64::encode(format!("{before}{value}{after}").as_bytes());
                    assert_found(&encoded, value);
                    assert_found(encoded.trim_end_matches('='), value);
                    assert_found(&encoded.replace('+', "-").replace('/', "_"), value);
                }
            }
        }
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        let known = known();
        for text in ["a short text", "nothing here", "tok/en+with=odd", "another-secret-value-2", MASK] {
            assert_eq!((known.find(text.as_bytes()), known.mask(text).as_ref()), (vec![], text));
        }
        // As the documentation says: what is split over lines is not found.
        let encoded = base64::encode(VALUE.as_bytes());
        let (first, second) = encoded.split_at(20);
        assert!(!known.is_in(format!("{first}\n{second}").as_bytes()));
        let (first, second) = PLAIN.split_at(10);
        assert!(!known.is_in(format!("{first}\n{second}").as_bytes()));
    }

    #[test]
    fn a_short_or_common_value_masks_nothing() {
        for value in [
            "",
            "abc",
            "tok-123",
            "password",
            "changeme",
            "20261117",
            "correcthorse",
            "aaaaaaaa1",
            "1111-1111",
        ] {
            assert!(!is_recognizable(value), "{value}");
            let nothing = KnownSecrets::new([value]);
            assert!(nothing.is_empty() && !nothing.is_in(value.as_bytes()), "{value}");
        }
        for value in ["hunter2-x", "s3cr3t-9", "correcthorsebattery", "0123456789abcdef", "ghp_x1y2"] {
            assert!(is_recognizable(value), "{value}");
        }
    }

    #[test]
    fn one_value_in_several_forms_is_one_finding_and_the_longer_of_two_values_counts() {
        let known = KnownSecrets::new(["secret-token-1", "secret-token-1-and-more"]);
        let text = format!("secret-token-1 {} secret-token-1-and-more", base64::encode(b"secret-token-1"));
        let found: Vec<String> =
            known.find(text.as_bytes()).into_iter().map(|leak| leak.fingerprint).collect();
        assert_eq!(found, [fingerprint(b"secret-token-1"), fingerprint(b"secret-token-1-and-more")]);
        assert_eq!(known.mask("x secret-token-1-and-more y"), "x [secret] y");
    }

    #[test]
    fn all_texts_of_a_json_value_are_masked() {
        let known = known();
        let mut value = serde_json::json!({"a": [1, {"b": format!("x {VALUE}")}], "c": PLAIN, "d": null});
        assert!(known.mask_json(&mut value));
        assert_eq!(value, serde_json::json!({"a": [1, {"b": "x [secret]"}], "c": "[secret]", "d": null}));
        assert!(!known.mask_json(&mut value));
    }

    #[test]
    fn nothing_of_a_value_is_shown() {
        assert_eq!(format!("{:?}", known()), "KnownSecrets(2 …)");
        // As `printf %s abc | sha256sum` has it.
        assert_eq!(fingerprint(b"abc"), "ba7816bf8f01cfea");
        assert!(is_fingerprint(&fingerprint(b"abc")) && !is_fingerprint("ba7816bf8f01cfeA"));
        assert_eq!(named_fingerprint(&shown_fingerprint("ba7816bf8f01cfea")), Some("ba7816bf8f01cfea"));
        assert_eq!(named_fingerprint("docs/**"), None);
    }

    #[test]
    fn the_last_decision_about_a_finding_counts() {
        let mut decisions = SecretDecisions::default();
        decisions.decide("a", true);
        decisions.decide("a", false);
        decisions.decide("b", true);
        assert!(decisions.accepted.contains("b") && !decisions.accepted.contains("a"));
        assert!(decisions.rejected.contains("a"));
    }

    #[test]
    fn many_values_are_found_at_the_end_of_a_large_text() {
        let values: Vec<String> = (0..200).map(|n| format!("secret-value-number-{n:04}")).collect();
        let known = KnownSecrets::new(values.iter().map(String::as_str));
        let mut text =
            "+let value = compute(\"secret-value-of-another-kind\", 12345);\n".repeat(50_000).into_bytes();
        let end = text.len();
        text.extend_from_slice(b"secret-value-number-0199");
        assert_eq!(
            known.find(&text),
            [Leak { at: end, fingerprint: fingerprint(b"secret-value-number-0199") }]
        );
    }
}
