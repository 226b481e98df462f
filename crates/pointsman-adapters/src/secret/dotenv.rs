//! The `.env` beside the state: `NAME=value` lines, as the seed's set-up has them.

use std::collections::BTreeMap;
use std::path::Path;

use super::source::{Error, read_private};

/// The values of a `.env` file. They are not put into anybody's environment.
#[derive(Clone, Default)]
pub struct Dotenv(BTreeMap<String, String>);

impl Dotenv {
    /// Reads the file; one that is not there has no values.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let read = read_private(path)?.map(|text| Self::parse(&text)).unwrap_or_default();
        for (name, value) in &read.0 {
            super::remember_named(name, value);
        }
        Ok(read)
    }

    /// Reads lines of `NAME=value`, with or without `export` and quotes. Nothing in a value is expanded.
    pub fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let line = line.trim();
            let line = line.strip_prefix("export ").unwrap_or(line);
            let (name, value) = line.split_once('=')?;
            let name = name.trim();
            let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            named.then(|| (name.to_owned(), unquoted(value.trim()).to_owned()))
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// One value; an empty one is none.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| {
        value.strip_prefix(quote).and_then(|rest| rest.split_once(quote)).map(|(inside, _)| inside)
    };
    match inside('"').or_else(|| inside('\'')) {
        Some(inside) => inside,
        // A comment needs a space before it: `#` may be part of a value.
        None => value.split(" #").next().unwrap_or_default().trim_end(),
    }
}

#[cfg(test)]
mod tests {
    use super::Dotenv;

    #[test]
    fn lines_are_read_as_a_shell_would_without_expanding_anything() {
        let read = Dotenv::parse(
            "# comment\nexport A=one\nB = \"two words\" # why\nC='$HOME'\nD=x#y # z\nE=\n=nobody\nbad name=1\n",
        );
        for (name, value) in [("A", "one"), ("B", "two words"), ("C", "$HOME"), ("D", "x#y")] {
            assert_eq!(read.get(name), Some(value), "{name}");
        }
        for name in ["E", "", "bad name"] {
            assert_eq!(read.get(name), None, "{name}");
        }
    }
}
