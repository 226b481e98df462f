//! The questions that a step asks, reminds of or settles: read off the task before and after it.

use super::event::Event;
use super::state::{State, Task};
use crate::part::contribution::PrFact;
use crate::part::question::{self, Change, Question, Settled, Settlement};
use crate::time::Timestamp;
use crate::words;

/// The changes of the task's question because of `event`. The one after it has its number.
pub fn questions(before: &Task, event: &Event, after: &Task, now: Timestamp) -> Vec<Change> {
    question::changes(before.escalation.as_ref(), after.escalation.as_ref(), || end(event, after, now))
}

/// The number of tasks that wait for the issue of a question.
pub fn held_up<'t>(question: &Question, tasks: impl IntoIterator<Item = &'t Task>) -> usize {
    let source = &question.source;
    let waits = |task: &&Task| {
        task.key.project == source.project
            && source.issue.is_some_and(|issue| task.open_dependencies.contains(&issue))
    };
    tasks.into_iter().filter(waits).count()
}

/// The end of a question that the task does not ask any more.
fn end(event: &Event, after: &Task, at: Timestamp) -> Settled {
    let withdrawn = |why: &str| (None, Settlement::Withdrawn { why: why.to_owned() });
    let (by, how) = match event {
        Event::Answered { by, text } => (Some(by.clone()), Settlement::Answered { text: text.clone() }),
        Event::TimePassed if after.state == State::Blocked => (None, Settlement::Expired),
        Event::Ordered { order } => withdrawn(words::question::ordered(*order)),
        Event::ReviewPosted { by, .. } => withdrawn(&words::question::reviewed(by)),
        Event::PullRequestObserved { fact } => withdrawn(match fact {
            PrFact::Merged { .. } => words::question::MERGED,
            PrFact::Open | PrFact::Closed => words::question::PULL_REQUEST_CLOSED,
        }),
        Event::ChecksStarted { .. } | Event::ChecksFinished { .. } => withdrawn(words::question::CI_ANSWERED),
        Event::PhaseClaimed { .. } | Event::BranchSynced { .. } => withdrawn(words::question::AGENT_WENT_ON),
        Event::IssueObserved { .. }
        | Event::Claimed
        | Event::ClaimLost { .. }
        | Event::SessionStarted { .. }
        | Event::SessionNotStarted { .. }
        | Event::SessionEnded { .. }
        | Event::IdleLooked { .. }
        | Event::PhaseRejected { .. }
        | Event::PullRequestOpened { .. }
        | Event::HeadMoved
        | Event::QueueReported { .. }
        | Event::MergeLooked { .. }
        | Event::ContextMeasured { .. }
        | Event::SymptomSeen { .. }
        | Event::ContextCompacted { .. }
        | Event::TurnEnded { .. }
        | Event::TurnFailed { .. }
        | Event::DialogSeen { .. }
        | Event::ResponseGiven { .. }
        | Event::HooksSilent { .. }
        | Event::BudgetReached { .. }
        | Event::TimePassed
        | Event::EffectGaveUp { .. }
        | Event::MessageUnacknowledged { .. } => withdrawn(&words::question::task_moved_on(after.state)),
    };
    Settled { by, at, how }
}
