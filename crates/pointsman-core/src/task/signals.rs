//! The signals of a step, read off the task before and after it.

use serde_json::{Value, json};

use super::effect::Exit;
use super::event::{Event, QueueOutcome};
use super::state::{State, Task};
use crate::part::session::Stage;
use crate::session::context::{Symptom, Urgency};
use crate::signal::Signal;

/// The signals that `event` gives off, in order.
pub fn signals(before: &Task, event: &Event, after: &Task) -> Vec<(Signal, Value)> {
    let mut given = Vec::new();
    if let Event::SessionEnded { generation, exit, .. } = event {
        let session = before.key.session(*generation);
        let expected = before.session.stage == Stage::Ending
            || before.session.handoff.is_some()
            || after.state == State::Closed;
        let clean = expected || *exit == Exit::Exited;
        let signal = if clean { Signal::AgentTerminated } else { Signal::AgentCrashed };
        // Its process just went; that it was asked to is what counts.
        let asked = before.session.handoff.is_some() && matches!(exit, Exit::Crashed | Exit::Exited);
        let exit = if asked { Exit::Handoff } else { *exit };
        given.push((signal, json!({ "session": session, "exit": exit })));
    }
    // A compaction is told by itself: it saves, and changes nobody's mind about what is urgent.
    let compacting = matches!(event, Event::SymptomSeen { symptom: Symptom::Compacting, .. });
    if after.session.context.urgency > before.session.context.urgency || compacting {
        let urgency = if compacting {
            after.session.context.urgency.max(Urgency::Medium)
        } else {
            after.session.context.urgency
        };
        let warning = json!({ "urgency": urgency, "gauge": after.session.context.gauge, "symptoms": after.session.context.symptoms });
        given.push((Signal::ContextWarning, warning));
    }
    match (&before.session.handoff, &after.session.handoff) {
        (None, Some(handoff)) => {
            given.push((
                Signal::HandoffRequested,
                json!({ "session": after.session_id(), "deadline": handoff.deadline }),
            ));
        }
        (Some(was), Some(is)) if is.stuck && !was.stuck => {
            given.push((Signal::OrchestratorStuck, json!({ "session": after.session_id() })));
        }
        (None | Some(_), None) | (Some(_), Some(_)) => {}
    }
    if after.session.generation > before.session.generation {
        let predecessor =
            (before.session.generation > 0).then(|| before.key.session(before.session.generation));
        let session = after.key.session(after.session.generation);
        given.push((Signal::AgentRegistered, json!({ "session": session, "predecessor_id": predecessor })));
    }
    if before.session.continues && !after.session.continues && after.session.stage == Stage::Alive {
        given.push((Signal::HandoffComplete, json!({ "session": after.session_id() })));
    }
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
