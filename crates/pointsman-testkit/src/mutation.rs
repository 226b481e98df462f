//! Rules of the fake servers that can be broken, one at a time, to see whether a test notices.

use std::sync::OnceLock;

/// Whether this rule is broken in this run: `POINTSMAN_FAKE_BROKEN` names one, and `scripts/mutate-fakes` sets it.
pub(crate) fn broken(rule: &str) -> bool {
    static NAMED: OnceLock<Option<String>> = OnceLock::new();
    NAMED.get_or_init(|| std::env::var("POINTSMAN_FAKE_BROKEN").ok()).as_deref() == Some(rule)
}
