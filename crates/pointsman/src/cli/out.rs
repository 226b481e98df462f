//! The output of commands: data to standard output, talk to standard error.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use anstream::ColorChoice;
use serde::Serialize;

use super::failure::Failure;
use super::table::{Colours, Table, cut_coloured};

/// To the top left, and nothing below it.
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

/// The standard output of a command, as text or as JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    json: bool,
}

impl Out {
    /// An output that prints views as JSON if `json` is set.
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether data is wanted as JSON.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// One or more lines of data for people, without blanks at their ends.
    pub(crate) fn line(self, text: impl Display) -> Result<(), Failure> {
        let text = text.to_string();
        let lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches(' ')).collect();
        Ok(at_once(&format!("{}\n", lines.join("\n")))?)
    }

    /// A line of a list: cut to the terminal that reads it. A pipe gets all of it.
    pub(crate) fn listed(self, text: &str) -> Result<(), Failure> {
        match terminal_width() {
            Some(width) => self.line(cut_coloured(text, width)),
            None => self.line(text),
        }
    }

    /// A text of which no byte may be lost.
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        Ok(as_it_is(text)?)
    }

    /// One value, over several lines.
    pub(crate) fn value(self, value: &impl Serialize) -> Result<(), Failure> {
        self.json_text(serde_json::to_string_pretty(value))
    }

    /// One value on one line, for streams.
    pub(crate) fn value_line(self, value: &impl Serialize) -> Result<(), Failure> {
        self.json_text(serde_json::to_string(value))
    }

    fn json_text(self, text: serde_json::Result<String>) -> Result<(), Failure> {
        let text = text.map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{text}")?;
        Ok(stdout.flush()?)
    }

    /// A table, or `nothing` on standard error if it has no rows.
    pub(crate) fn table(self, table: &Table<'_>, nothing: &str) -> Result<(), Failure> {
        if table.is_empty() {
            self.say(nothing);
            return Ok(());
        }
        let mut text = table.text(terminal_width(), colours());
        text.push('\n');
        Ok(as_it_is(&text)?)
    }

    /// A table in place of the one before: at the top of a terminal, below it elsewhere. Written at once, so that it
    /// does not flicker.
    pub(crate) fn redraw(self, table: &Table<'_>, nothing: &str) -> Result<(), Failure> {
        let shown = || table.text(terminal_width(), colours());
        self.redraw_text(&if table.is_empty() { nothing.to_owned() } else { shown() })
    }

    /// Lines in place of those before.
    pub(crate) fn redraw_text(self, text: &str) -> Result<(), Failure> {
        let clear = if std::io::stdout().is_terminal() { CLEAR } else { "" };
        Ok(at_once(&format!("{clear}{text}\n\n"))?)
    }

    /// Talk. Standard error may be closed; that stops nothing.
    pub(crate) fn say(self, text: impl Display) {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }
}

/// Writes a text with its colours, or without where none are wanted, in as few writes as the reader allows: taking
/// colours out on the way would write every line in pieces.
fn at_once(text: &str) -> std::io::Result<()> {
    let stdout = std::io::stdout();
    let mut shown = anstream::AutoStream::new(Vec::new(), anstream::AutoStream::choice(&stdout));
    shown.write_all(text.as_bytes())?;
    let shown = shown.into_inner();
    let mut stdout = stdout.lock();
    stdout.write_all(&shown)?;
    stdout.flush()
}

/// Writes a text that has colours only if they are wanted.
fn as_it_is(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn colours() -> Colours {
    match anstream::AutoStream::choice(&std::io::stdout()) {
        ColorChoice::Never => Colours::Hidden,
        ColorChoice::Auto | ColorChoice::Always | ColorChoice::AlwaysAnsi => Colours::Shown,
    }
}

/// The width of the terminal that reads our data, if one does.
pub(crate) fn terminal_width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(&stdout)
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|width| *width > 0)
}
