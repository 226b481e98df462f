//! Limits on the texts that the embedded forge takes, and the treatment of those it cannot send back.
//!
//! Text is kept as it came, except for NUL. Whoever shows it makes it fit to be shown.

use std::borrow::Cow;

use pointsman_adapters::secret::known;
use pointsman_core::text::clean_line;

use super::{ACCOUNT, REVIEW_ACCOUNT};

/// The longest title, in characters.
pub(super) const TITLE_CHARS: usize = 1_000;
/// The longest body of an issue, a comment or a review, in bytes.
pub(super) const BODY_BYTES: usize = 4 << 20;
/// The longest label, in characters.
pub(super) const LABEL_CHARS: usize = 50;
/// The most labels one order may name.
pub(super) const LABELS: usize = 100;
/// The longest name of a person, in characters.
const AUTHOR_CHARS: usize = 100;

/// Why a text is not taken, and what to do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidText {
    #[error("the title is empty: give one with --title")]
    EmptyTitle,
    #[error("the title has {chars} characters, at most {TITLE_CHARS} are taken: move the rest into the body")]
    LongTitle { chars: usize },
    #[error("the text is empty: give one with --body")]
    EmptyBody,
    #[error("the text has {bytes} bytes, at most {BODY_BYTES} are taken: shorten it or link to a file")]
    LongBody { bytes: usize },
    #[error(
        "`{}` cannot be a label: use 1 to {LABEL_CHARS} characters, no comma, no control character",
        clean_line(label, LABEL_CHARS)
    )]
    Label { label: String },
    #[error("a check needs a name: give one with --context")]
    EmptyCheck,
    #[error("{count} labels at once, at most {LABELS} are taken: use fewer")]
    ManyLabels { count: usize },
}

/// A person's title.
pub(super) fn title(text: &str) -> Result<String, InvalidText> {
    let masked = known().mask(text);
    let title = without_nul(&masked);
    let chars = title.chars().count();
    match chars {
        _ if title.trim().is_empty() => Err(InvalidText::EmptyTitle),
        chars if chars > TITLE_CHARS => Err(InvalidText::LongTitle { chars }),
        _ => Ok(title.into_owned()),
    }
}

/// A person's text; an issue or a review may do without.
pub(super) fn body(text: &str) -> Result<String, InvalidText> {
    let masked = known().mask(text);
    let body = without_nul(&masked);
    match body.len() {
        bytes if bytes > BODY_BYTES => Err(InvalidText::LongBody { bytes }),
        _ => Ok(body.into_owned()),
    }
}

/// A person's comment, which is nothing without a text.
pub(super) fn comment(text: &str) -> Result<String, InvalidText> {
    let comment = body(text)?;
    if comment.trim().is_empty() { Err(InvalidText::EmptyBody) } else { Ok(comment) }
}

/// Checks the labels of one order.
pub(super) fn labels(labels: &[String]) -> Result<(), InvalidText> {
    if labels.len() > LABELS {
        return Err(InvalidText::ManyLabels { count: labels.len() });
    }
    let unfit = |label: &&String| {
        let odd = label.chars().any(|c| c.is_control() || c == ',');
        odd || label.trim().is_empty() || label.chars().count() > LABEL_CHARS
    };
    match labels.iter().find(unfit) {
        Some(label) => Err(InvalidText::Label { label: label.clone() }),
        None => Ok(()),
    }
}

/// A name on the board; empty for nobody.
pub(super) fn agent(name: &str) -> String {
    clean_line(name, AUTHOR_CHARS)
}

/// The name of a check.
pub(super) fn check(name: &str) -> Result<String, InvalidText> {
    match clean_line(name, AUTHOR_CHARS) {
        name if name.is_empty() => Err(InvalidText::EmptyCheck),
        name => Ok(name),
    }
}

/// A person's name. Nobody writes under our names: our comments are found again by them, and a person's answer
/// is told from our own words by them.
pub(super) fn person(author: &str) -> String {
    let name = clean_line(author, AUTHOR_CHARS);
    match name.as_str() {
        "" => "somebody".to_owned(),
        ACCOUNT | REVIEW_ACCOUNT => format!("{name}@localhost"),
        _ => name,
    }
}

/// Our own title: nobody is there to shorten it.
pub(super) fn cut_title(text: &str) -> String {
    without_nul(&known().mask(text)).chars().take(TITLE_CHARS).collect()
}

/// Our own text, likewise, with room for what must come after it.
pub(super) fn cut_body(text: &str, room_for: usize) -> String {
    let mut body = without_nul(&known().mask(text)).into_owned();
    let limit = BODY_BYTES.saturating_sub(room_for);
    if body.len() > limit {
        body.truncate((0..=limit).rev().find(|&at| body.is_char_boundary(at)).unwrap_or(0));
    }
    body
}

/// NUL ends a text in too many places for it to be kept.
fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "")) } else { Cow::Borrowed(text) }
}
