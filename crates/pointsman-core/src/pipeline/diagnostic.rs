//! Findings about a pipeline file, each with its line and column.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::syntax::Span;
use crate::text::clean_line;
use crate::words::pipeline::Sentence;

/// Longest part of a line that is shown.
const SHOWN_CHARS: usize = 160;

/// How many findings are shown about one file. Nobody reads more, and each one costs a look at the whole file.
const MAX_FINDINGS: usize = 500;

/// The weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The pipeline is not run.
    Error,
    /// The pipeline is run, but perhaps not as its author meant.
    Warning,
}

impl Severity {
    /// The word in front of a message.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Something that was found at a range of bytes, before anybody counted lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) span: Span,
    pub(super) severity: Severity,
    pub(super) rule: &'static str,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Problem {
    /// An error. `rule` is a short name that scripts can rely on.
    pub(super) fn new(span: Span, rule: &'static str, message: impl Into<String>) -> Self {
        Self { span, severity: Severity::Error, rule, message: message.into(), hint: None }
    }

    pub(super) fn warning(span: Span, rule: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::new(span, rule, message) }
    }

    /// Adds what to do about it.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A finding as people and scripts see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// The rule that was broken, as a stable word.
    pub rule: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    pub message: String,
    pub hint: Option<String>,
    /// The line of the file, made fit to be shown.
    pub source_line: String,
    /// How many characters of that line it is about.
    pub width: usize,
}

impl Diagnostic {
    pub(super) fn new(text: &str, problem: Problem) -> Self {
        let start = floor(text, problem.span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let (line, column) = place(text, start);
        let source = text[line_start..].split(['\n', '\r']).next().unwrap_or_default();
        let end = floor(text, problem.span.end.clamp(start, (line_start + source.len()).max(start)));
        let message = clean_line(&problem.message, 400);
        Self {
            severity: problem.severity,
            rule: problem.rule.to_owned(),
            line,
            column,
            message,
            hint: problem.hint.map(|hint| clean_line(&hint, 400)),
            source_line: shown(source),
            width: text[start..end].chars().count().max(1),
        }
    }

    /// The finding below the line it is about, as compilers show it. `origin` is the file's name.
    pub fn pretty(&self, origin: &str) -> String {
        let gutter = " ".repeat(self.line.to_string().len());
        let mut shown =
            format!("{origin}:{}:{}: {}: {}", self.line, self.column, self.severity.as_str(), self.message);
        if !self.source_line.is_empty() {
            let chars = self.source_line.chars().count();
            // The mark may stand just behind the line, where something is missing.
            let pad = (self.column - 1).min(chars);
            let marks = self.width.min(chars - pad).max(1);
            let (pad, marks) = (" ".repeat(pad), "^".repeat(marks));
            shown += &format!("\n{gutter} |\n{} | {}", self.line, self.source_line);
            shown += &format!("\n{gutter} | {pad}{marks}");
        }
        if let Some(hint) = &self.hint {
            shown += &format!("\n{gutter} = {hint}");
        }
        shown
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.line, self.column, self.severity.as_str(), self.message)
    }
}

/// The line and the column of a byte, both from 1.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let start = floor(text, at);
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.as_bytes()[..line_start].iter().filter(|byte| **byte == b'\n').count() + 1;
    (line, text[line_start..start].chars().count() + 1)
}

/// Counts lines and sorts: by place, errors before warnings. Of very many findings the errors are kept first.
pub(super) fn located(text: &str, mut problems: Vec<Problem>) -> Vec<Diagnostic> {
    let place = |problem: &Problem| (problem.span.start, problem.severity, problem.rule);
    problems.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.message.cmp(&b.message)));
    problems.dedup();
    let more = problems.len().saturating_sub(MAX_FINDINGS);
    if more > 0 {
        problems.sort_by_key(|problem| problem.severity);
        problems.truncate(MAX_FINDINGS);
        problems.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.message.cmp(&b.message)));
        let end = Span::new(text.len(), text.len());
        problems.push(Problem::warning(end, "size", Sentence::MoreFindings(more.to_string())));
    }
    let mut list: Vec<Diagnostic> =
        problems.into_iter().map(|problem| Diagnostic::new(text, problem)).collect();
    list.dedup();
    list
}

/// A line in which every character that must not reach a terminal is a space, so that columns still fit.
fn shown(line: &str) -> String {
    let spaced: String = line
        .chars()
        .take(SHOWN_CHARS)
        .map(|c| if clean_line(c.encode_utf8(&mut [0; 4]), 1).is_empty() { ' ' } else { c })
        .collect();
    spaced.trim_end().to_owned()
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
