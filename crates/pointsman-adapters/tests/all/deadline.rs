//! Waiting for something that must come true soon.

use std::time::Duration;

/// Generous for a loaded machine; a test that waits this long has failed.
const LIMIT: Duration = Duration::from_secs(20);

/// Asks again until there is an answer.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    pointsman_testkit::eventually(what, LIMIT, ask)
}

/// Takes the next event from a channel.
#[track_caller]
pub(crate) fn next<T>(events: &std::sync::mpsc::Receiver<T>) -> T {
    events.recv_timeout(LIMIT).expect("an event was due")
}
