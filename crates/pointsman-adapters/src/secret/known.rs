//! The secrets that this process has read, so that none of them leaves it in a text or a branch. The values stay here; others get
//! something that can look for them.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_core::known_secrets::{KnownSecrets, is_recognizable};
use serde_json::Value;

use super::source::read_private;

/// The most values that are looked for. An operator has far fewer; the oldest are given up first.
const MOST: usize = 2000;
/// The most tokens that are kept of those that are fetched anew now and then. Older ones have expired.
const RENEWED: usize = 50;
/// A shorter line of a key is too common to look for.
const KEY_LINE: usize = 24;
/// A shorter text in a login file is a name or a date.
const LOGIN_TEXT: usize = 24;

/// The values, and what looks for them as long as none was added.
struct Registry {
    kept: VecDeque<String>,
    renewed: VecDeque<String>,
    ready: Option<Arc<KnownSecrets>>,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { kept: VecDeque::new(), renewed: VecDeque::new(), ready: None });

/// Remembers a value as a secret, as long as this process lives. Of a key in several lines, each line is one. Short and common
/// values are not looked for.
pub fn remember(value: &str) {
    let value = value.trim();
    if value.contains('\n') {
        let lines = value.lines().map(str::trim).filter(|line| line.len() >= KEY_LINE);
        lines.filter(|line| !line.starts_with("-----")).for_each(remember);
    } else if is_recognizable(value) {
        add(value, MOST, |registry| &mut registry.kept);
    }
}

/// Remembers a token that is replaced by another one after a while.
pub fn remember_for_now(value: &str) {
    if is_recognizable(value) {
        add(value, RENEWED, |registry| &mut registry.renewed);
    }
}

/// Remembers what a variable holds, if its name or its form says that it is a secret: addresses and switches stand beside
/// them.
pub fn remember_named(name: &str, value: &str) {
    if let Some(password) = password_of(value) {
        remember(password);
    }
    if is_secret_name(name) && !value.contains("://") && !value.starts_with('/') {
        remember(value);
    }
}

/// Remembers the tokens in the login file of an agent. One that cannot be read has none.
pub fn remember_login(path: &Path) {
    let Ok(Some(text)) = read_private(path) else { return };
    if let Ok(login) = serde_json::from_str(&text) {
        remember_texts(&login);
    }
}

fn remember_texts(value: &Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) if text.len() >= LOGIN_TEXT && !text.contains(' ') => remember_for_now(text),
        Value::String(_) => {}
        Value::Array(values) => values.iter().for_each(remember_texts),
        Value::Object(fields) => fields.values().for_each(remember_texts),
    }
}

/// All secrets that are known by now.
pub fn known() -> Arc<KnownSecrets> {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(ready) = &registry.ready {
        return Arc::clone(ready);
    }
    let values = registry.kept.iter().chain(&registry.renewed);
    let ready = Arc::new(KnownSecrets::new(values.map(String::as_str)));
    registry.ready = Some(Arc::clone(&ready));
    ready
}

fn add(value: &str, most: usize, list: impl FnOnce(&mut Registry) -> &mut VecDeque<String>) {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    let values = list(&mut registry);
    if values.iter().any(|known| known == value) {
        return;
    }
    if values.len() >= most {
        values.pop_front();
    }
    values.push_back(value.to_owned());
    registry.ready = None;
}

/// Whether the last word of a variable's name is one for secrets.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let last = name.rsplit('_').next().unwrap_or_default();
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "KEY", "APIKEY", "PAT", "CREDENTIAL", "CREDENTIALS"]
        .contains(&last)
}

/// The password in an address such as `postgres://user:password@host/`.
fn password_of(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let (user, _) = rest.split('/').next()?.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

#[cfg(test)]
mod tests {
    use super::{is_secret_name, known, password_of, remember, remember_named};

    #[test]
    fn what_was_read_is_masked_from_then_on() {
        let value = "a-value-that-only-this-test-has";
        assert!(!known().is_in(value.as_bytes()));
        remember(&format!(" {value}\n"));
        assert_eq!(known().mask(&format!("x {value} y")), "x [secret] y");
        assert!(!format!("{:?}", known()).contains("only-this-test"));
    }

    #[test]
    fn each_line_of_a_key_is_a_secret() {
        let line = "MIIEpAIBAAKCAQEAthisisnokeyofanybodyatall0123456789abcdef";
        remember(&format!("-----BEGIN RSA PRIVATE KEY-----\n{line}\nshort\n-----END RSA PRIVATE KEY-----\n"));
        assert!(known().is_in(line.as_bytes()));
        assert!(!known().is_in(b"-----BEGIN RSA PRIVATE KEY-----") && !known().is_in(b"short"));
    }

    #[test]
    fn names_and_addresses_say_which_variables_hold_secrets() {
        for name in ["TOKEN", "GITHUB_TOKEN", "aws_secret_access_key", "DB_PASSWORD", "ANTHROPIC_API_KEY"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["TOKEN_URL", "KEY_FILE", "MONKEY", "PASSAGE", "AWS_REGION", "API_KEY_ID"] {
            assert!(!is_secret_name(name), "{name}");
        }
        assert_eq!(password_of("postgres://me:s3cr:et-pw@db:5432/shop"), Some("s3cr:et-pw"));
        for plain in ["postgres://me@db/shop", "https://forge.example/a:b@c", "me:pw@db"] {
            assert_eq!(password_of(plain), None, "{plain}");
        }
        remember_named("SERVICE_TOKEN", "https://forge.example/of-names-and-addresses");
        remember_named("SERVICE_URL", "https://me:pw-of-names-and-addresses@forge.example/");
        remember_named("SERVICE_KEY", "key-of-names-and-addresses");
        assert!(!known().is_in(b"https://forge.example/of-names-and-addresses"));
        assert_eq!(known().mask("pw-of-names-and-addresses key-of-names-and-addresses"), "[secret] [secret]");
    }
}
