//! What happened last, for whoever has to understand a failure.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// As many steps are kept as fit a screen or two; `POINTSMAN_TRACE` keeps more.
const KEPT: usize = 60;

/// The last steps of a run. A handle: it outlives a run that panics.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace(Arc<Mutex<Lines>>);

#[derive(Debug)]
struct Lines {
    written: u64,
    kept: VecDeque<String>,
    limit: usize,
}

impl Default for Lines {
    fn default() -> Self {
        let asked = std::env::var("POINTSMAN_TRACE").ok().and_then(|lines| lines.parse().ok());
        Self { written: 0, kept: VecDeque::new(), limit: asked.unwrap_or(KEPT) }
    }
}

impl Trace {
    pub(super) fn say(&self, line: impl Into<String>) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.written += 1;
        let line = format!("{:5} {}", lines.written, line.into());
        if lines.kept.len() >= lines.limit {
            lines.kept.pop_front();
        }
        lines.kept.push_back(line);
    }

    pub(super) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.kept.iter().map(|line| format!("{line}\n")).collect()
    }
}
