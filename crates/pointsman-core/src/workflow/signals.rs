//! Signals that a step gives off, read off the workflow before and after it.

use serde_json::{Value, json};

use super::{Event, Workflow};
use crate::part::session::{self, Stage};
use crate::run;
use crate::session::context::{Symptom, Urgency};
use crate::signal::Signal;
use crate::task::{self, Exit, State};

/// The signals that `event` gives off, in order.
pub fn signals(before: &Workflow, event: &Event, after: &Workflow) -> Vec<(Signal, Value)> {
    let mut given = of_session(before, event, after);
    if let (Workflow::Task(before), Event::Task(event), Workflow::Task(after)) = (before, event, after) {
        given.extend(task::signals(before, event, after));
    }
    given
}

/// A session's end, if that is what an event tells: its generation and how it ended.
fn ended(event: &Event) -> Option<(u32, Exit)> {
    match event {
        Event::Task(task::Event::SessionEnded { generation, exit, .. })
        | Event::Run(run::Event::Session { generation, told: session::Event::Ended { exit, .. } }) => {
            Some((*generation, *exit))
        }
        Event::Task(_)
        | Event::Run(_)
        | Event::Vault(_)
        | Event::Concern(_)
        | Event::Role(_)
        | Event::Notifier(_) => None,
    }
}

fn is_compaction(event: &Event) -> bool {
    match event {
        Event::Task(event) => matches!(event, task::Event::SymptomSeen { symptom: Symptom::Compacting, .. }),
        Event::Run(event) => matches!(
            event,
            run::Event::Session { told: session::Event::SymptomSeen { symptom: Symptom::Compacting }, .. }
        ),
        Event::Vault(_) | Event::Concern(_) | Event::Role(_) | Event::Notifier(_) => false,
    }
}

/// Whether nothing is left to be done, so that the end of a session is no surprise.
fn is_finished(workflow: &Workflow) -> bool {
    match workflow {
        Workflow::Task(task) => task.state == State::Closed,
        Workflow::Run(run) => run.status.is_over() || run.phase == Some(task::Phase::Done),
        Workflow::Vault(entry) => !entry.is_open(),
        Workflow::Concern(concern) => !concern.is_open(),
        Workflow::Role(_) | Workflow::Notifier(_) => false,
    }
}

fn of_session(before: &Workflow, event: &Event, after: &Workflow) -> Vec<(Signal, Value)> {
    let mut given = Vec::new();
    let (id, was, is) = (after.id(), before.session(), after.session());
    let name = after.session_name();
    if let Some((generation, exit)) = ended(event) {
        let session = id.session(generation);
        let expected = was.stage == Stage::Ending || was.handoff.is_some() || is_finished(after);
        let clean = expected || exit == Exit::Exited;
        let signal = if clean { Signal::AgentTerminated } else { Signal::AgentCrashed };
        // Its process just went; that it was asked to is what counts.
        let asked = was.handoff.is_some() && matches!(exit, Exit::Crashed | Exit::Exited);
        let exit = if asked { Exit::Handoff } else { exit };
        given.push((signal, json!({ "session": session, "exit": exit })));
    }
    // A compaction is told by itself: it saves, and changes nobody's mind about what is urgent.
    let compacting = is_compaction(event);
    if is.context.urgency > was.context.urgency || compacting {
        let urgency = if compacting { is.context.urgency.max(Urgency::Medium) } else { is.context.urgency };
        let (gauge, symptoms) = (is.context.gauge, &is.context.symptoms);
        given.push((
            Signal::ContextWarning,
            json!({ "urgency": urgency, "gauge": gauge, "symptoms": symptoms }),
        ));
    }
    match (&was.handoff, &is.handoff) {
        (None, Some(handoff)) => {
            let requested = json!({ "session": name, "deadline": handoff.deadline });
            given.push((Signal::HandoffRequested, requested));
        }
        (Some(old), Some(new)) if new.stuck && !old.stuck => {
            given.push((Signal::OrchestratorStuck, json!({ "session": name })));
        }
        (None | Some(_), None) | (Some(_), Some(_)) => {}
    }
    if is.generation > was.generation {
        let predecessor = (was.generation > 0).then(|| id.session(was.generation));
        let session = id.session(is.generation);
        given.push((Signal::AgentRegistered, json!({ "session": session, "predecessor_id": predecessor })));
    }
    if was.continues && !is.continues && is.stage == Stage::Alive {
        given.push((Signal::HandoffComplete, json!({ "session": name })));
    }
    given
}
