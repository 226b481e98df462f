//! The file as text: where each key stands, which defaults lie under it, and how to point at a mistake.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::{Config, DEFAULT_TOML, Error};
use crate::text::clean_line;
use crate::words;

/// Largest file that is read: a configuration is a page or two.
const MAX_BYTES: usize = 1 << 20;
/// The tables of the machine's file, which no project may have.
const MACHINE: [&str; 6] = ["store", "web", "digest", "host", "people", "backup"];

/// Where a key and its value stand in the text.
struct KeySpan {
    key: Range<usize>,
    value: Range<usize>,
}

/// A parsed file that still knows its text.
pub(super) struct Document<'t> {
    text: &'t str,
    origin: &'t str,
    places: BTreeMap<String, KeySpan>,
}

impl<'t> Document<'t> {
    /// Parses the syntax; what the keys mean is not looked at yet.
    pub(super) fn parse(text: &'t str, origin: &'t str) -> Result<(Self, DeTable<'t>), Error> {
        let mut document = Self { text, origin, places: BTreeMap::new() };
        if text.len() > MAX_BYTES {
            return Err(document.error(0..0, words::config::FILE_TOO_LARGE.to_owned()));
        }
        let table = DeTable::parse(text)
            .map_err(|error| document.error(error.span().unwrap_or(0..0), clean_line(error.message(), 300)))?
            .into_inner();
        document.note("", &table);
        Ok((document, table))
    }

    /// Whether the file sets the key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    /// The line the key stands on, from 1.
    pub(super) fn line_of(&self, key: &str) -> Option<usize> {
        let place = self.places.get(key)?;
        Some(self.text[..place.key.start].matches('\n').count() + 1)
    }

    /// An error about a key: at its value, else at its table, else at the top of the file.
    pub(super) fn error_at(&self, key: &str, message: impl Into<String>) -> Error {
        let place = self.places.get(key).map(|place| place.value.clone());
        let table = || key.rsplit_once('.').and_then(|(table, _)| Some(self.places.get(table)?.key.clone()));
        let span = place.or_else(table).unwrap_or(0..0);
        self.error(span, message.into()).key(key)
    }

    /// A secret in the file would be in the repository's history for ever.
    pub(super) fn refuse_secrets(&self) -> Result<(), Error> {
        let secret = self.places.iter().find(|(key, _)| is_secret(key.rsplit('.').next().unwrap_or(key)));
        let Some((key, place)) = secret else { return Ok(()) };
        Err(self
            .error(place.key.clone(), words::config::secret_in_file(key))
            .key(key)
            .hint(words::config::SECRET_IN_FILE_HINT))
    }

    /// Reads the file's table over the defaults.
    pub(super) fn deserialize(&self, table: DeTable<'_>) -> Result<Config, Error> {
        let defaults =
            DeTable::parse(DEFAULT_TOML).expect("the embedded file is read by the tests").into_inner();
        self.refuse_flat_tables("", &defaults, &table)?;
        let whole = Spanned::new(0..self.text.len(), overlay(defaults, table));
        Config::deserialize(Deserializer::from(whole)).map_err(|error| self.explain(&error))
    }

    /// Serde would read `pr = [[]]` as a table without its keys' names; we do not.
    fn refuse_flat_tables(
        &self,
        prefix: &str,
        defaults: &DeTable<'_>,
        file: &DeTable<'_>,
    ) -> Result<(), Error> {
        for (key, default) in defaults {
            let (DeValue::Table(inner), Some(value)) = (default.get_ref(), file.get(key)) else { continue };
            let dotted = join(prefix, key.get_ref());
            match value.get_ref() {
                DeValue::Table(table) => self.refuse_flat_tables(&dotted, inner, table)?,
                other => {
                    let message = words::config::not_a_table(&dotted, other.type_str());
                    return Err(self.error_at(&dotted, message).hint(words::config::write_table(&dotted)));
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let dotted = if prefix.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{prefix}.{}", key.get_ref())
            };
            if let DeValue::Table(inner) = value.get_ref() {
                self.note(&dotted, inner);
            }
            self.places.insert(dotted, KeySpan { key: key.span(), value: value.span() });
        }
    }

    fn error(&self, span: Range<usize>, message: String) -> Error {
        Error::new(self.origin, self.text, span, message)
    }

    /// Serde's complaint in our words, with the key it is about.
    fn explain(&self, error: &toml::de::Error) -> Error {
        let span = error.span().unwrap_or(0..0);
        let key = self.key_at(span.start).unwrap_or_default();
        let message = error.message();
        let mut quoted = message.split('`').skip(1).step_by(2);
        let complaint = if message.starts_with("unknown field") {
            let known: Vec<&str> = quoted.skip(1).collect();
            if MACHINE.contains(&key.as_str()) {
                return self
                    .error(span, words::config::of_the_machine(&key))
                    .hint(words::config::MACHINE_FILE);
            }
            let complaint = self.error(span, words::config::unknown_key(&key));
            match did_you_mean(&key, &known) {
                Some(better) => complaint.hint(words::config::did_you_mean_key(&better)),
                None => complaint.hint(words::config::known_keys(&known)),
            }
        } else if message.starts_with("unknown variant") {
            let wrong = quoted.next().unwrap_or_default();
            let known: Vec<&str> = quoted.collect();
            let hint = words::config::accepted_words(nearest(wrong, &known), &known);
            self.error(span, words::config::unknown_word(&key, wrong)).hint(hint)
        } else {
            self.error(span, words::config::wrong_value(&clean_line(&key, 60), plain_words(message)))
        };
        complaint.key(&key)
    }

    /// The innermost key whose name or value stands at this place.
    fn key_at(&self, at: usize) -> Option<String> {
        let width = |range: &Range<usize>| range.contains(&at).then(|| range.len());
        self.places
            .iter()
            .filter_map(|(key, place)| {
                let inner = width(&place.key).into_iter().chain(width(&place.value)).min()?;
                Some((inner, std::cmp::Reverse(key.len()), key))
            })
            .min()
            .map(|(_, _, key)| key.clone())
    }
}

/// Serde's message without the names of Rust's types.
fn plain_words(message: &str) -> String {
    let message = clean_line(message, 300);
    match message.rsplit_once(", expected ") {
        Some((found, expected)) => words::config::wrong_type(found, expected),
        None => message,
    }
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

/// The keys of `under`, with those of `over` in their place.
fn overlay<'t>(mut under: DeTable<'t>, over: DeTable<'t>) -> DeTable<'t> {
    for (key, value) in over {
        let span = value.span();
        let value = match (under.remove(key.get_ref().as_ref()).map(Spanned::into_inner), value.into_inner())
        {
            (Some(DeValue::Table(inner)), DeValue::Table(over)) => DeValue::Table(overlay(inner, over)),
            (_, value) => value,
        };
        under.insert(key, Spanned::new(span, value));
    }
    under
}

/// Whether a key's name says that its value is a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['_', '-'], "");
    ["token", "password", "passwd", "secret", "apikey", "privatekey", "credential", "credentials"]
        .iter()
        .any(|word| name.ends_with(word))
}

/// The known key that a dotted key was probably meant to be: one of the same table, spelt otherwise, or
/// one of the same name in another table.
fn did_you_mean(key: &str, known: &[&str]) -> Option<String> {
    let name = key.rsplit('.').next().unwrap_or(key);
    if let Some(near) = nearest(name, known) {
        return Some(near.to_owned());
    }
    let (defaults, _) = Document::parse(DEFAULT_TOML, "default.toml").ok()?;
    defaults.places.into_keys().find(|known| known.rsplit('.').next() == Some(name))
}

/// The word that needs the fewest edits, if these are few for a word of this length.
fn nearest<'w>(wrong: &str, words: &[&'w str]) -> Option<&'w str> {
    let wrong = clean_line(&wrong.to_lowercase().replace('-', "_"), 60);
    let allowed = (wrong.chars().count() / 3).max(1);
    words
        .iter()
        .map(|word| (edits(&wrong, word), *word))
        .filter(|(n, _)| *n <= allowed)
        .min()
        .map(|(_, word)| word)
}

/// How many letters must be added, removed, replaced or swapped with their neighbour.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    let shifted = rows[i - 1][j].min(rows[i][j - 1]) + 1;
                    let crossed = if swapped { rows[i - 2][j - 2] + 1 } else { usize::MAX };
                    replaced.min(shifted).min(crossed)
                }
            };
        }
    }
    rows[a.len()][b.len()]
}
