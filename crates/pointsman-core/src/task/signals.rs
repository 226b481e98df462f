//! The signals of a step, read off the task before and after it.

use serde_json::{Value, json};

use super::event::Event;
use super::state::{State, Task};
use crate::part::contribution::QueueOutcome;
use crate::signal::Signal;

/// The signals that `event` gives off beside those of the task's session, in order.
pub fn signals(before: &Task, event: &Event, after: &Task) -> Vec<(Signal, Value)> {
    let mut given = Vec::new();
    if after.state == State::MergeQueue && before.state != State::MergeQueue {
        given.push((
            Signal::MergeReady,
            json!({ "branch": after.contribution.branch, "head": after.contribution.head(), "pr": after.contribution.pr() }),
        ));
    }
    if let Event::QueueReported { outcome: QueueOutcome::Conflict { files, .. }, .. } = event {
        given.push((Signal::MergeConflict, json!({ "branch": after.contribution.branch, "files": files })));
    }
    let merged_as = after.contribution.merged_as();
    if merged_as.is_some() && before.contribution.merged_as().is_none() {
        let branch = &after.contribution.branch;
        given.push((Signal::MergeComplete, json!({ "branch": branch, "sha": merged_as })));
    }
    given
}
