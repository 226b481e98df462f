//! The signals of a step, read off the task before and after it.

use serde_json::{Value, json};

use super::event::{Event, QueueOutcome};
use super::state::{State, Task};
use crate::signal::Signal;

/// The signals that `event` gives off beside those of the task's session, in order.
pub fn signals(before: &Task, event: &Event, after: &Task) -> Vec<(Signal, Value)> {
    let mut given = Vec::new();
    if after.state == State::MergeQueue && before.state != State::MergeQueue {
        given.push((
            Signal::MergeReady,
            json!({ "branch": after.branch, "head": after.head, "pr": after.pr }),
        ));
    }
    if let Event::QueueReported { outcome: QueueOutcome::Conflict { files, .. }, .. } = event {
        given.push((Signal::MergeConflict, json!({ "branch": after.branch, "files": files })));
    }
    if after.merged_as.is_some() && before.merged_as.is_none() {
        given.push((Signal::MergeComplete, json!({ "branch": after.branch, "sha": after.merged_as })));
    }
    given
}
