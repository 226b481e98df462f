//! Coloured text that fits a line.

use anstyle::{AnsiColor, Style};
use pointsman_core::task::State;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(super) const PLAIN: Style = Style::new();
pub(super) const QUIET: Style = Style::new().dimmed();
pub(super) const STRONG: Style = Style::new().bold();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();

/// The colour of a state; its name says the same.
pub(super) fn of(state: State) -> Style {
    match state {
        State::Working | State::MergeQueue => AnsiColor::Cyan.on_default(),
        State::AwaitingCi | State::AwaitingReview => AnsiColor::Yellow.on_default(),
        State::Escalated => AnsiColor::Magenta.on_default().bold(),
        State::Blocked | State::Refused => BAD,
        State::Merged | State::Closed => GOOD,
        State::Backlog | State::WaitingDependencies | State::Paused => QUIET,
    }
}

/// Whether colours are wanted where the text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Coloured,
    Black,
}

/// A line made of pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line(Vec<(Style, String)>);

impl Line {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a piece.
    pub(super) fn then(mut self, style: Style, text: impl Into<String>) -> Self {
        self.0.push((style, text.into()));
        self
    }

    /// Adds a piece that takes at least `columns`.
    pub(super) fn column(self, style: Style, text: &str, columns: usize) -> Self {
        let gap = " ".repeat(columns.saturating_sub(text.width()));
        self.then(style, text).then(PLAIN, format!("{gap}  "))
    }

    /// Its pieces.
    pub(super) fn pieces(&self) -> &[(Style, String)] {
        &self.0
    }

    /// The line as text of at most `width` columns.
    pub(super) fn render(&self, ink: Ink, width: usize) -> String {
        let mut out = String::new();
        let mut left = width;
        for (style, text) in &self.0 {
            let piece = cut(text, left);
            left -= piece.width();
            match ink {
                Ink::Coloured if *style != PLAIN => out.push_str(&format!("{style}{piece}{style:#}")),
                Ink::Coloured | Ink::Black => out.push_str(piece),
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out
    }
}

/// As much of the text as fits.
fn cut(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{BAD, Ink, Line, PLAIN};

    #[test]
    fn a_line_never_takes_more_than_its_width() {
        let line = Line::new().column(BAD, "漢字", 6).then(PLAIN, "tail");
        assert_eq!(line.render(Ink::Black, 80), "漢字    tail");
        assert_eq!(line.render(Ink::Black, 10), "漢字    ta");
        assert_eq!(line.render(Ink::Black, 3), "漢");
        assert_eq!(line.render(Ink::Black, 0), "");
    }

    #[test]
    fn colours_are_only_there_if_wanted() {
        let line = Line::new().then(BAD, "no").then(PLAIN, " yes");
        assert!(!line.render(Ink::Black, 80).contains('\u{1b}'));
        assert_eq!(line.render(Ink::Coloured, 80), "\u{1b}[31mno\u{1b}[0m yes");
    }
}
