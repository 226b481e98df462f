//! Mistakes in a configuration: what is wrong, where, and what to do about it.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::clean_line;

/// Longest part of a line that is shown.
const SHOWN_CHARS: usize = 160;

/// A mistake in a configuration or a formula. `Display` shows the line and marks the place:
///
/// ```text
/// pointsman.toml:7:1: unknown key `ci.comand`
///   |
/// 7 | comand = ["./ci.sh"]
///   | ^^^^^^
///   = did you mean `command`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Mistake>);

/// Behind a box, so that a result is not large for the sake of its rare half.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mistake {
    origin: String,
    line: usize,
    column: usize,
    width: usize,
    source_line: String,
    key: Option<String>,
    message: String,
    hint: Option<String>,
}

impl Error {
    /// An error at a byte range of the text.
    pub(crate) fn new(origin: &str, text: &str, span: std::ops::Range<usize>, message: String) -> Self {
        let start = floor_char_boundary(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let source = text[line_start..].lines().next().unwrap_or("");
        let column = text[line_start..start].chars().count() + 1;
        let end = floor_char_boundary(text, span.end.max(start).min(line_start + source.len()).max(start));
        Self(Box::new(Mistake {
            origin: origin.to_owned(),
            line: text[..line_start].matches('\n').count() + 1,
            column,
            width: text[start..end].chars().count().max(1),
            source_line: shown(source),
            key: None,
            message,
            hint: None,
        }))
    }

    /// Names the key it is about.
    pub(super) fn key(mut self, key: &str) -> Self {
        self.0.key = Some(key.to_owned());
        self
    }

    /// Adds what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Line of the mistake, from 1.
    pub fn line(&self) -> usize {
        self.0.line
    }

    /// Column of the mistake in characters, from 1.
    pub fn column(&self) -> usize {
        self.0.column
    }

    /// The offending line; the value of a secret is left out.
    pub fn source_line(&self) -> &str {
        &self.0.source_line
    }

    /// The dotted key the mistake is about, where it is about one.
    pub fn about(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// The mistake in one line.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The advice on what to do next, if there is any.
    pub fn advice(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistake { origin, line, column, width, message, source_line, hint, key: _ } = &*self.0;
        let gutter = " ".repeat(line.to_string().len());
        write!(f, "{origin}:{line}:{column}: {message}")?;
        if !source_line.is_empty() {
            // The mark may stand just behind the line, where something is missing.
            let pad = (column - 1).min(source_line.chars().count());
            let marks = (*width).min(source_line.chars().count() - pad).max(1);
            let (pad, marks) = (" ".repeat(pad), "^".repeat(marks));
            write!(f, "\n{gutter} |\n{line} | {source_line}\n{gutter} | {pad}{marks}")?;
        }
        if let Some(hint) = hint {
            write!(f, "\n{gutter} = {hint}")?;
        }
        Ok(())
    }
}

/// A line fit to be shown: each control character a space so that columns still fit, no secret.
fn shown(line: &str) -> String {
    static SECRET: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?i)(?:token|token_env|passwo?r?d|secrets?(?:_files?)?|api[_-]?key|private[_-]?key|credentials?)["']?\s*=\s*"#)
            .expect("the pattern is fixed and covered by tests")
    });
    let visible = match SECRET.find(line) {
        Some(found) => format!("{}…", &line[..found.end()]),
        None => line.to_owned(),
    };
    let spaced: String = visible
        .chars()
        .take(SHOWN_CHARS)
        // A control character, or one that `clean_line` would drop, keeps its column as a space.
        .map(|c| if clean_line(c.encode_utf8(&mut [0; 4]), 1).is_empty() { ' ' } else { c })
        .collect();
    spaced.trim_end().to_owned()
}

/// The nearest start of a character at or before `at`.
fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
