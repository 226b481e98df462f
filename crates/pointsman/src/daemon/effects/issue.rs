//! Effects on issues and pull requests.

use std::path::Path;

use pointsman_adapters::phase_file;
use pointsman_core::forge::IssueState;
use pointsman_core::ids::Sha;
use pointsman_core::labels::{BACKLOG, BLOCKED, IN_PROGRESS, UNDERSPECIFIED, has};
use pointsman_core::task::{Event, Refusal, State, Task};
use pointsman_core::{json, text, words, workflow};
use pointsman_store::NewEntry;

use super::tree::TreeOwner;
use super::{EffectError, EffectPerformer, Outcome};
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::outcome::{Note, Performed};
use crate::daemon::served::Served;

/// How much of a summary an agent may write.
pub(in crate::daemon) const SUMMARY_BYTES: u64 = 256 * 1024;

impl EffectPerformer {
    pub(super) fn claim_issue(&self, served: &Served, task: &Task) -> Result<Outcome, EffectError> {
        let number = task.key.issue;
        let lost = |reason: String| Ok(Outcome::event(Event::ClaimLost { reason }));
        let Some(issue) = served.forge.issue(number)? else {
            return lost(words::daemon::issue::no_such_issue().to_owned());
        };
        if issue.state == IssueState::Closed {
            return lost(words::daemon::issue::closed().to_owned());
        }
        let me = served.forge.me();
        if let Some(other) = issue.assignee.as_deref().filter(|&a| a != me) {
            return lost(words::daemon::issue::assigned_to(other));
        }
        if has(&issue.labels, IN_PROGRESS) && issue.assignee.is_none() {
            return lost(words::daemon::issue::in_progress_elsewhere().to_owned());
        }
        // The assignee first: if we die in between, the claim is recognised as ours.
        served.forge.assign_me(number)?;
        crash_point("claim-assigned");
        let add = [IN_PROGRESS.to_owned()];
        let remove = [BACKLOG, BLOCKED, UNDERSPECIFIED].map(str::to_owned);
        served.forge.set_labels(number, &add, &remove)?;
        // Written down before any session starts, so that two never have the same.
        let ports = self.ports_for(served, &TreeOwner::of_task(task))?;
        let events = ports.into_iter().chain([workflow::Event::Task(Event::Claimed)]).collect();
        Ok(Outcome::Done(Performed { events, ..Performed::default() }))
    }

    pub(super) fn set_labels(
        served: &Served,
        task: &Task,
        add: &[String],
        remove: &[String],
    ) -> Result<Outcome, EffectError> {
        let labels = served.forge.set_labels(task.key.issue, add, remove)?;
        let as_ordered = add.iter().all(|l| has(&labels, l)) && !remove.iter().any(|l| has(&labels, l));
        if !as_ordered {
            return Err(EffectError::later(words::daemon::issue::labels_read_back(&labels)));
        }
        match task.state {
            // Seen on the issue, so that a person who lifts it at once is heard. Asked after it was set: what the forge
            // answers to an older question says nothing about it.
            State::Blocked | State::Refused => Ok(Outcome::event(Event::IssueObserved {
                title: task.title.clone(),
                open: true,
                labels,
                // None was looked up.
                dependencies: Vec::new(),
                open_dependencies: task.open_dependencies.clone(),
                cycle: None,
                asked_at: Some(clock::now()),
            })),
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Escalated
            | State::Paused
            | State::Merged
            | State::Closed => Ok(Outcome::done()),
        }
    }

    pub(super) fn comment(
        served: &Served,
        task: &Task,
        marker: &str,
        body: &str,
    ) -> Result<Outcome, EffectError> {
        served.forge.comment_once(task.key.issue, marker, body)?;
        Ok(Outcome::done())
    }

    /// Seen closed, so that whoever opens it again is heard.
    pub(super) fn close_issue(served: &Served, task: &Task) -> Result<Outcome, EffectError> {
        served.forge.close_issue(task.key.issue)?;
        Ok(Outcome::event(Event::IssueObserved {
            title: task.title.clone(),
            open: false,
            labels: Vec::new(),
            dependencies: Vec::new(),
            open_dependencies: Vec::new(),
            cycle: None,
            asked_at: Some(clock::now()),
        }))
    }

    pub(super) fn open_pull_request(served: &Served, task: &Task) -> Result<Outcome, EffectError> {
        let title = text::clean_line(&task.title, 200);
        let summary = read_summary(&served.session_files(&task.key).summary(task.session.generation));
        let body = words::comment::pull_request(task, summary.as_deref(), &served.config);
        let base = served.primary.as_str();
        // A daemon with newer records may have brought this very commit to main already.
        let earlier = served.forge.pull_request_from(&task.contribution.branch, base)?;
        if let Some(pr) = earlier.filter(|pr| pr.merged && pr.head_sha.as_ref() == task.contribution.head()) {
            return Ok(Outcome::event(Event::PullRequestOpened { number: pr.number }));
        }
        let number = served.forge.ensure_pull_request(&task.contribution.branch, base, &title, &body)?;
        Ok(Outcome::event(Event::PullRequestOpened { number }))
    }

    pub(super) fn enqueue(served: &Served, task: &Task, head: &Sha) -> Outcome {
        Outcome::note(Note::Enqueue(Box::new(NewEntry {
            project: served.config.name.clone(),
            branch: task.contribution.branch.clone(),
            issue: Some(task.key.issue),
            pr: task.contribution.pr(),
            identity: Some(task.key.identity()),
            head: head.clone(),
            requested_at: clock::now(),
            priority: 0,
            worktree: Some(served.session_files(&task.key).tree),
            style: None,
        })))
    }
}

/// What the agent says about its work, if it says anything usable.
pub(in crate::daemon) fn read_summary(path: &Path) -> Option<String> {
    let bytes = phase_file::read_result_file(path, SUMMARY_BYTES).ok().flatten()?;
    let summary = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!summary.is_empty()).then_some(summary)
}

/// The refusal in a summary file, if it is one.
pub(in crate::daemon) fn read_refusal(path: &Path) -> Option<Refusal> {
    json::read_as(&read_summary(path)?).ok()
}
