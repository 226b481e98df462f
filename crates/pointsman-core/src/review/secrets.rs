//! Texts that look like a secret in the lines that a change brings. The secret itself is never repeated.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::patch::{Change, Kind};
use crate::known_secrets::fingerprint;

/// The longest line that is looked at, in bytes.
const LINE_BYTES: usize = 4096;
/// The most that are told.
const TOLD: usize = 20;
/// Fewer different characters stand for a secret in a text about one.
const VARIED: usize = 6;
/// A file with a zero among its first bytes is no text, as in git.
const TEXT_BYTES: usize = 8000;

/// What stands where a secret stood.
const BLANK: &str = "[secret]";

/// Something that looks like a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    pub path: String,
    /// In which line; 0 for the file itself.
    pub line: u32,
    pub kind: SecretKind,
    /// Tells this text from others, so that a false alarm can be accepted.
    pub fingerprint: String,
}

/// The kinds of secrets that are recognized; `words::review::secret` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    PrivateKey,
    AwsAccessKey,
    GithubToken,
    GitlabToken,
    SlackToken,
    SlackWebhook,
    AnthropicKey,
    OpenAiKey,
    GoogleKey,
    NpmToken,
    PypiToken,
    StripeKey,
    SendgridKey,
    HuggingFaceToken,
    DockerToken,
    VaultToken,
    AgeKey,
    SignedToken,
    PasswordInAddress,
    /// A value behind a name such as `password`.
    Named,
    /// A file whose name says that it holds secrets.
    File,
}

/// What it is, and how it looks.
const LOOKS: [(SecretKind, &str); 20] = [
    (SecretKind::PrivateKey, r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----"),
    (SecretKind::AwsAccessKey, r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    (SecretKind::GithubToken, r"\bgh[pousr]_[A-Za-z0-9]{36,}\b"),
    (SecretKind::GithubToken, r"\bgithub_pat_[A-Za-z0-9_]{50,}\b"),
    (SecretKind::GitlabToken, r"\bglpat-[A-Za-z0-9_-]{20,}"),
    (SecretKind::SlackToken, r"\bxox[abeprs]-[A-Za-z0-9-]{10,}"),
    (SecretKind::SlackWebhook, r"hooks\.slack\.com/services/T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]+"),
    (SecretKind::AnthropicKey, r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    (SecretKind::OpenAiKey, r"\bsk-(?:proj-)?[A-Za-z0-9]{32,}"),
    (SecretKind::GoogleKey, r"\bAIza[0-9A-Za-z_-]{35}\b"),
    (SecretKind::NpmToken, r"\bnpm_[A-Za-z0-9]{36}\b"),
    (SecretKind::PypiToken, r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
    (SecretKind::StripeKey, r"\b[rs]k_live_[A-Za-z0-9]{20,}\b"),
    (SecretKind::SendgridKey, r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    (SecretKind::HuggingFaceToken, r"\bhf_[A-Za-z0-9]{34}\b"),
    (SecretKind::DockerToken, r"\bdckr_pat_[A-Za-z0-9_-]{27}"),
    (SecretKind::VaultToken, r"\bhv[sb]\.[A-Za-z0-9_-]{24,}"),
    (SecretKind::AgeKey, r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b"),
    (SecretKind::SignedToken, r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    (SecretKind::PasswordInAddress, r"[a-z][a-z0-9+.-]*://[^\s/:@]{1,64}:[^\s/:@$<{]{6,}@"),
];

static ANY: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(LOOKS.iter().map(|(_, look)| look)).expect("constants that the tests compile")
});

/// A name that says what its value is, and a value that is no placeholder.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    let named = r#"(?i)(?:password|passwd|secret|api_?key|access_?key|auth_?token|private_?key)["']?\s*[:=]\s*["']([^"'\s]{12,})["']"#;
    Regex::new(named).expect("a constant that the tests compile")
});

/// What a shell or a protocol shows of secrets: `TOKEN=…`, `Authorization: Bearer …`.
static SHOWN: LazyLock<Regex> = LazyLock::new(|| {
    let named = r#"(?i)\b[\w-]*(?:password|passwd|secret|token|api_?key|access_?key|private_?key)[\w-]*["']?\s*[:=]\s*["']?"#;
    let spoken = r"(?i)\b(?:bearer|basic|authorization:\s*token)\s+";
    Regex::new(&format!(r#"(?P<before>{named}|{spoken})[^\s"',;]{{6,}}"#))
        .expect("a constant that the tests compile")
});

/// Each look by itself.
static LOOKED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    LOOKS.iter().map(|(_, look)| Regex::new(look).expect("a constant that the tests compile")).collect()
});

/// A private key as a file shows it; one whose end or whose beginning was cut off as well.
static KEY: LazyLock<Regex> = LazyLock::new(|| {
    let (begin, end) =
        (r"-----BEGIN (?:[A-Z0-9 ]*)PRIVATE KEY-----", r"-----END (?:[A-Z0-9 ]*)PRIVATE KEY-----");
    let key = format!(r"(?s){begin}.*?(?:{end}|\z)|\A[A-Za-z0-9+/=\s]*{end}");
    Regex::new(&key).expect("a constant that the tests compile")
});

/// A text in which everything that looks like a secret is blanked. It is for showing: rather too much than too little.
pub fn blank_secrets(text: &str) -> String {
    let mut blanked = KEY.replace_all(text, BLANK).into_owned();
    for look in LOOKED.iter() {
        blanked = look.replace_all(&blanked, BLANK).into_owned();
    }
    SHOWN.replace_all(&blanked, format!("${{before}}{BLANK}")).into_owned()
}

/// Files that hold secrets by their names.
fn is_holder(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let ends = [".pem", ".p12", ".pfx", ".jks", ".keystore", ".kdbx"];
    name == ".env"
        || name == ".netrc"
        || name == ".pgpass"
        || matches!(name.as_str(), "id_rsa" | "id_dsa" | "id_ecdsa" | "id_ed25519")
        || ends.iter().any(|end| name.ends_with(end))
}

/// Everything in the new lines that looks like a secret, not more than a few.
pub fn secrets(change: &Change) -> Vec<Secret> {
    let mut found = Vec::new();
    for file in change.files.iter().filter(|file| file.kind != Kind::Deleted) {
        found.extend(holder(&file.path));
        for hunk in &file.hunks {
            found.extend(in_lines(&file.path, (hunk.at..).zip(hunk.added.iter().map(String::as_str))));
        }
    }
    found.truncate(TOLD);
    found
}

/// Everything in a whole file that looks like a secret. Files that are no text are not looked at.
pub fn secrets_in(path: &str, content: &[u8]) -> Vec<Secret> {
    let mut found: Vec<Secret> = holder(path).into_iter().collect();
    if !content.iter().take(TEXT_BYTES).any(|byte| *byte == 0) {
        let lines = content.split(|byte| *byte == b'\n');
        let lines: Vec<_> =
            lines.map(|line| String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES)])).collect();
        found.extend(in_lines(path, (1..).zip(lines.iter().map(AsRef::as_ref))));
    }
    found
}

fn holder(path: &str) -> Option<Secret> {
    is_holder(path).then(|| secret(path, 0, SecretKind::File, path))
}

fn in_lines<'l>(path: &str, lines: impl Iterator<Item = (u32, &'l str)>) -> Vec<Secret> {
    lines.filter_map(|(line, text)| look(text).map(|(kind, found)| secret(path, line, kind, found))).collect()
}

fn secret(path: &str, line: u32, kind: SecretKind, text: &str) -> Secret {
    Secret { path: path.to_owned(), line, kind, fingerprint: fingerprint(text.as_bytes()) }
}

/// The first text in a line that looks like a secret.
fn look(text: &str) -> Option<(SecretKind, &str)> {
    let end = (0..=text.len().min(LINE_BYTES)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let text = &text[..end];
    for place in ANY.matches(text).iter() {
        let found = LOOKED.get(place).and_then(|look| look.find(text)).map_or(text, |found| found.as_str());
        let kind = LOOKS.get(place).map(|(kind, _)| *kind);
        if let Some(kind) = kind.filter(|_| !is_sample(found)) {
            return Some((kind, found));
        }
    }
    let value = NAMED.captures(text)?.get(1)?.as_str();
    // `${TOKEN}`, `<your key>`, `xxxxxxxxxxxx`, `changeme-changeme`: somebody meant to say what goes here.
    let lower = value.to_lowercase();
    let placeholder = ["${", "{{", "<", "placeholder", "changeme", "your", "dummy", "test"];
    let meant = placeholder.iter().any(|word| lower.contains(word));
    (!meant && !is_sample(value)).then_some((SecretKind::Named, value))
}

/// Whether a text is one that a manual shows: `AKIAIOSFODNN7EXAMPLE`, or the same few characters again and again.
fn is_sample(found: &str) -> bool {
    let lower = found.to_lowercase();
    let varied = lower.bytes().collect::<std::collections::BTreeSet<_>>().len() >= VARIED;
    !varied || lower.contains("example") || lower.contains("xxxxxxxx")
}
