//! A CI that says nothing about what was handed in.

use std::time::Duration;

use super::Checks;
use crate::review::is_code;

/// The facts about a commit whose CI has come to no end.
#[derive(Clone, Copy, Debug)]
pub struct UnreportedCi<'a> {
    /// How long it was waited for.
    pub waited: Duration,
    /// How long a CI may take.
    pub limit: Duration,
    /// Whether anything was reported: one that has begun is not one that leaves such files out.
    pub begun: bool,
    /// Whether the project names checks that there have to be.
    pub required: bool,
    /// Whether the merge queue tests with a command of its own.
    pub gate: bool,
    pub files: &'a [String],
}

impl UnreportedCi<'_> {
    /// Judges the silence. A CI may leave out changes without code, as the review agent does: if it has not begun in all its
    /// time, the merge queue's own test is enough. If that asks the same CI, it would only be waited for once more.
    pub fn checks(self) -> Checks {
        if self.waited < self.limit {
            return Checks::Open;
        }
        let left_out = !self.begun && !self.required && !self.files.iter().any(|file| is_code(file));
        if left_out && self.gate { Checks::Green } else { Checks::Silent }
    }
}
