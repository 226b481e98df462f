//! Conditions that only a look at the forge shows: issues that we claimed and that nobody works on, and a forge that does not
//! answer. They are raised at every look for as long as they hold, and lifted when they are gone.

use std::collections::{BTreeMap, BTreeSet};

use pointsman_core::concern::{About, ConcernKey, Event};
use pointsman_core::forge::Issue;
use pointsman_core::ids::{Number, TaskKey};
use pointsman_core::labels::{IN_PROGRESS, has};
use pointsman_core::part::question::Kind;
use pointsman_core::task::State;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::Workflow;

use crate::daemon::board::{TaskMap, WorkflowMap};
use crate::daemon::engine::Input;
use crate::daemon::served::Served;

/// The orphans among the open issues, as questions, and the end of those that are none any more. One is told when it has been one
/// for as long as work may stand still: around a claim and at the end of a task an issue looks like one until its labels and
/// its state are written.
pub(super) fn orphans(
    served: &Served,
    open: &BTreeMap<Number, Issue>,
    picture: &TaskMap,
    workflows: &WorkflowMap,
    since: &mut BTreeMap<Number, Timestamp>,
    now: Timestamp,
) -> Vec<Input> {
    let orphans: BTreeSet<Number> =
        open.values().filter(|issue| is_orphan(served, issue, picture)).map(|issue| issue.number).collect();
    since.retain(|issue, _| orphans.contains(issue));
    for issue in &orphans {
        since.entry(*issue).or_insert(now);
    }
    let patience = served.config.health.stalled_after.duration();
    let is_told = |issue: &Number| since.get(issue).is_some_and(|since| now.since(*since) >= patience);
    let key = |issue: Number| ConcernKey {
        project: served.config.name.clone(),
        about: About::one_of(Kind::Orphan, &format!("issue-{issue}")),
    };
    let told = orphans.iter().filter(|issue| is_told(issue)).filter_map(|issue| open.get(issue));
    let told = told.map(|issue| {
        let text = words::question::orphan(issue.number, &issue.title);
        let issue = issue.number;
        let event = Event::Raised { kind: Kind::Orphan, text, issue: Some(issue), pr: None, told: false };
        Input::of_concern(key(issue), event)
    });
    let asked = workflows.values().filter_map(|workflow| match workflow {
        Workflow::Concern(concern) if concern.key.project == served.config.name => {
            let question = concern.asked.as_ref().filter(|asked| asked.kind == Kind::Orphan)?;
            question.source.issue
        }
        _ => None,
    });
    let over = asked.filter(|issue| !orphans.contains(issue)).map(|issue| {
        let why = words::question::NO_ORPHAN.to_owned();
        Input::of_concern(key(issue), Event::Lifted { why })
    });
    told.chain(over).collect()
}

/// Whether an issue carries our claim and nobody works on it. On a server our account may be a person's as well, so there an issue
/// counts only if this store knows that we claimed it.
fn is_orphan(served: &Served, issue: &Issue, picture: &TaskMap) -> bool {
    let key = TaskKey { project: served.config.name.clone(), issue: issue.number };
    let task = picture.get(&key);
    let is_claimed = has(&issue.labels, IN_PROGRESS) && issue.assignee.as_deref() == Some(served.forge.me());
    let is_ours = served.embedded.is_some() || task.is_some_and(|task| task.claims > 0);
    let is_idle = task.is_none_or(|task| match task.state {
        State::Backlog | State::WaitingDependencies | State::Closed => true,
        State::Working
        | State::AwaitingCi
        | State::AwaitingReview
        | State::MergeQueue
        | State::Escalated
        | State::Blocked
        | State::Refused
        | State::Paused
        | State::Merged => false,
    });
    is_claimed && is_ours && is_idle
}

/// The question about a forge that has not answered for long, or its end.
pub(crate) fn of_forge(served: &Served, workflows: &WorkflowMap, now: Timestamp) -> Option<Input> {
    let key =
        ConcernKey { project: served.config.name.clone(), about: About::one_of(Kind::ServiceDown, "forge") };
    let patience = served.config.health.stalled_after.duration();
    let event = match served.known().silent_since {
        Some(since) if now.since(since) > patience => {
            Event::raised(Kind::ServiceDown, words::question::forge_is_silent(since))
        }
        Some(_) => return None,
        None => {
            workflows.get(&key.clone().into())?;
            Event::Lifted { why: words::question::FORGE_ANSWERS.to_owned() }
        }
    };
    Some(Input::of_concern(key, event))
}
