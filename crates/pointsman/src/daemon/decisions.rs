//! Decisions of people made while no daemon runs: kept without effect, shown, and settled when a person decides again.
//!
//! The core says what a decision is and when one confirms another ([`pointsman_core::decision`]). A command without a
//! daemon calls [`keep`], the loop calls [`settle`], a starting daemon [`look_through`].

use std::sync::Arc;

use pointsman_adapters::forge::Forge;
use pointsman_core::config::Config;
use pointsman_core::decision::{Decision, MEMORY, Memory as Decisions, Outcome, Question, Unconfirmed};
use pointsman_core::forge::IssueState;
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::log;
use pointsman_core::part::question::Owner;
use pointsman_core::task::{self, Event, Policy, ReviewVerdict, State};
use pointsman_core::time::Timestamp;
use pointsman_core::vault::{self, Status};
use pointsman_core::words;
use pointsman_store::{Change, Memory, Store};
use pointsman_view::forge::PullRequest;

use super::answer::failed;
use super::crash::{Side, commit_point};
use super::engine::Engine;
use super::questions;
use super::served::Served;
use crate::control::protocol::{FailureKind, ForgeCommand, InboxCommand, Reply, Request, VaultCommand};
use crate::embedded_forge::{self, EmbeddedForge};

/// Keeps a request that is a decision, in the daemon's place; nothing if it is none. One that the daemon would refuse
/// is refused now.
pub(super) fn keep(
    store: &mut Store,
    config: &Arc<Config>,
    forge: Option<&EmbeddedForge>,
    request: &Request,
    now: Timestamp,
) -> Result<Option<Reply>, pointsman_store::Error> {
    let project = &config.name;
    let (by, decision) = match decided(store, config, forge, request, now)? {
        Some(Ok(decided)) => decided,
        Some(Err(reply)) => return Ok(Some(reply)),
        None => return Ok(None),
    };
    let unconfirmed = Unconfirmed { at: now, by, decision };
    let mut memory = store.memory::<Decisions>(project, MEMORY)?.unwrap_or_default();
    if !memory.keep(unconfirmed.clone()) {
        return Ok(Some(failed(FailureKind::Refused, words::decision::too_many(project))));
    }
    let message = words::decision::kept(project, &unconfirmed.decision);
    let mut change = Change::logged(now, project, &log::Entry::DecisionKept(unconfirmed));
    change.memories.push(Memory::new(MEMORY, &memory)?);
    let changes = [change];
    commit_point(Side::Before, &changes);
    store.commit(&changes)?;
    commit_point(Side::After, &changes);
    Ok(Some(failed(FailureKind::NoDaemon, message)))
}

/// The decision in a request and who makes it, if the daemon would take it.
#[allow(
    clippy::type_complexity,
    reason = "a decision, a refusal, or neither; said once and taken apart at once"
)]
fn decided(
    store: &Store,
    config: &Config,
    forge: Option<&EmbeddedForge>,
    request: &Request,
    now: Timestamp,
) -> Result<Option<Result<(String, Decision), Reply>>, pointsman_store::Error> {
    let project = &config.name;
    let refused = |why: String| Ok(Some(Err(failed(FailureKind::Refused, why))));
    match request {
        Request::Answer { issue, by, text, .. } => {
            // Without a task there is nothing to keep: the usual way says so.
            let Some(task) = store.task(&TaskKey { project: project.clone(), issue: *issue })? else {
                return Ok(None);
            };
            let event = Event::Answered { by: by.clone(), text: text.clone() };
            if let Err(why) = task::step(&task, &event, &Policy::new(config), now) {
                return refused(words::decision::task_refused(*issue, &why.to_string()));
            }
            Ok(Some(Ok((by.clone(), Decision::Answer { issue: *issue, text: text.clone() }))))
        }
        Request::Vault { command, .. } => {
            let (id, event, by, decision) = match command {
                VaultCommand::Approve { id, hash, again, by } => {
                    let (hash, again) = (hash.clone(), *again);
                    let event = vault::Event::Approved { by: by.clone(), hash: hash.clone(), again };
                    (id, event, by, Decision::VaultApproval { id: id.clone(), hash, again })
                }
                VaultCommand::Reject { id, reason, by } => {
                    let event = vault::Event::Rejected { by: by.clone(), reason: reason.clone() };
                    (id, event, by, Decision::VaultRejection { id: id.clone(), reason: reason.clone() })
                }
                VaultCommand::Submit { .. } | VaultCommand::Raise { .. } => return Ok(None),
            };
            let Some(entry) = store.vault_entry(project, id)? else { return Ok(None) };
            match vault::step(&entry, &event, &vault::Policy::new(config), now) {
                Ok(_) => Ok(Some(Ok((by.clone(), decision)))),
                Err(why) => refused(words::decision::vault_refused(id, &why.to_string())),
            }
        }
        Request::Forge { command: ForgeCommand::Review { number, verdict, body, author, head }, .. } => {
            let (ReviewVerdict::Approve, Some(forge)) = (verdict, forge) else { return Ok(None) };
            Ok(Some(embedded_forge::reviewable_head(forge, *number, head.as_ref()).map(|head| {
                let decision = Decision::Approval { pr: *number, head, body: body.clone() };
                (author.clone(), decision)
            })))
        }
        Request::Forge { command: ForgeCommand::Comment { number, body, author }, .. } => {
            let task = store.task(&TaskKey { project: project.clone(), issue: *number })?;
            let asks = task.is_some_and(|task| task.escalation.is_some());
            let decision = || Decision::Comment { issue: *number, body: body.clone() };
            Ok(asks.then(|| Ok((author.clone(), decision()))))
        }
        Request::Inbox { question, command, .. } => {
            let Some(asked) = store.question(*question)?.filter(|asked| asked.source.project == *project)
            else {
                return Ok(None);
            };
            if let Some(settled) = &asked.settled {
                return refused(words::question::already_settled(asked.id, settled, now));
            }
            match questions::underlying(store, &asked, command)? {
                Some(request) => decided(store, config, forge, &request, now),
                // Nothing is kept for a session that cannot hear it.
                None => {
                    Ok(Some(Err(failed(FailureKind::NoDaemon, words::question::needs_daemon(*question)))))
                }
            }
        }
        Request::Forge { .. }
        | Request::Status
        | Request::Down
        | Request::Halt { .. }
        | Request::Resume
        | Request::Order { .. }
        | Request::Acknowledge { .. }
        | Request::Checkpoint { .. }
        | Request::Measure { .. }
        | Request::Hook { .. }
        | Request::Send { .. }
        | Request::ReloadProjects
        | Request::AddProject { .. }
        | Request::RemoveProject { .. }
        | Request::Queue { .. }
        | Request::Run { .. }
        | Request::ForgeStats { .. }
        | Request::Mask { .. }
        | Request::Health { .. }
        | Request::ResumeRole { .. }
        | Request::LookNow { .. }
        | Request::TryNotifiers { .. }
        | Request::Handover { .. }
        | Request::Web { .. }
        | Request::Read { .. }
        | Request::Claim { .. } => Ok(None),
    }
}

/// The project of a request that may be a decision.
pub(super) fn project_of(request: &Request) -> Option<&ProjectName> {
    match request {
        Request::Answer { project, .. }
        | Request::Vault { project, .. }
        | Request::Inbox { project, .. }
        | Request::Forge { project, .. } => Some(project),
        Request::Status
        | Request::Down
        | Request::Halt { .. }
        | Request::Resume
        | Request::Order { .. }
        | Request::Acknowledge { .. }
        | Request::Checkpoint { .. }
        | Request::Measure { .. }
        | Request::Hook { .. }
        | Request::Send { .. }
        | Request::ReloadProjects
        | Request::AddProject { .. }
        | Request::RemoveProject { .. }
        | Request::Queue { .. }
        | Request::Run { .. }
        | Request::ForgeStats { .. }
        | Request::Mask { .. }
        | Request::Health { .. }
        | Request::ResumeRole { .. }
        | Request::LookNow { .. }
        | Request::TryNotifiers { .. }
        | Request::Handover { .. }
        | Request::Web { .. }
        | Request::Read { .. }
        | Request::Claim { .. } => None,
    }
}

/// A decision that a person made while a daemon runs.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub project: ProjectName,
    pub question: Question,
    /// None for a decision that is never kept, such as a request for changes.
    pub decision: Option<Decision>,
}

impl Made {
    /// The decision in a request that the daemon has carried out with this answer.
    pub(crate) fn of(request: &Request, reply: &Reply) -> Option<Self> {
        let Reply::Done { value } = reply else { return None };
        let (project, decision) = match request {
            Request::Answer { project, issue, text, .. } => {
                (project, Decision::Answer { issue: *issue, text: text.clone() })
            }
            Request::Vault { project, command } => match command {
                VaultCommand::Approve { id, hash, again, .. } => {
                    let (id, hash, again) = (id.clone(), hash.clone(), *again);
                    (project, Decision::VaultApproval { id, hash, again })
                }
                VaultCommand::Reject { id, reason, .. } => {
                    (project, Decision::VaultRejection { id: id.clone(), reason: reason.clone() })
                }
                VaultCommand::Submit { .. } | VaultCommand::Raise { .. } => return None,
            },
            Request::Inbox { project, command, .. } => {
                let asked: pointsman_view::inbox::Question = serde_json::from_value(value.clone()).ok()?;
                let without = |question| Some(Self { project: project.clone(), question, decision: None });
                match (asked.owner, command) {
                    (Owner::Task(issue), InboxCommand::Answer { text, .. }) => {
                        (project, Decision::Answer { issue, text: text.clone() })
                    }
                    (Owner::Vault(id), InboxCommand::Reject { reason, .. }) => {
                        (project, Decision::VaultRejection { id, reason: reason.clone() })
                    }
                    (Owner::Vault(id), _) => return without(Question::VaultAction(id)),
                    (Owner::Task(issue), _) => return without(Question::Issue(issue)),
                    (Owner::Run(_) | Owner::Concern(_), _) => return None,
                }
            }
            Request::Forge { project, command } => {
                let otherwise = |number: u64| {
                    let question = Question::PullRequest(number);
                    Some(Self { project: project.clone(), question, decision: None })
                };
                match command {
                    ForgeCommand::Review { number, verdict: ReviewVerdict::Approve, body, .. } => {
                        let pr: PullRequest = serde_json::from_value(value.clone()).ok()?;
                        let Some(head) = pr.head_sha else { return otherwise(*number) };
                        (project, Decision::Approval { pr: *number, head, body: body.clone() })
                    }
                    ForgeCommand::Review { number, .. } | ForgeCommand::ClosePull { number } => {
                        return otherwise(*number);
                    }
                    ForgeCommand::Comment { number, body, .. } => {
                        (project, Decision::Comment { issue: *number, body: body.clone() })
                    }
                    ForgeCommand::CreateIssue { .. }
                    | ForgeCommand::CreatePull { .. }
                    | ForgeCommand::ListIssues { .. }
                    | ForgeCommand::ShowIssue { .. }
                    | ForgeCommand::Label { .. }
                    | ForgeCommand::SetIssueOpen { .. }
                    | ForgeCommand::ListPulls { .. }
                    | ForgeCommand::ShowPull { .. }
                    | ForgeCommand::MergePull { .. }
                    | ForgeCommand::ListBoard
                    | ForgeCommand::SetBoard { .. }
                    | ForgeCommand::ListChecks { .. }
                    | ForgeCommand::SetCheck { .. } => return None,
                }
            }
            Request::Status
            | Request::Down
            | Request::Halt { .. }
            | Request::Resume
            | Request::Order { .. }
            | Request::Acknowledge { .. }
            | Request::Checkpoint { .. }
            | Request::Measure { .. }
            | Request::Hook { .. }
            | Request::Send { .. }
            | Request::ReloadProjects
            | Request::AddProject { .. }
            | Request::RemoveProject { .. }
            | Request::Queue { .. }
            | Request::Run { .. }
            | Request::ForgeStats { .. }
            | Request::Mask { .. }
            | Request::Health { .. }
            | Request::ResumeRole { .. }
            | Request::LookNow { .. }
            | Request::TryNotifiers { .. }
            | Request::Handover { .. }
            | Request::Web { .. }
            | Request::Read { .. }
            | Request::Claim { .. } => return None,
        };
        Some(Self { project: project.clone(), question: decision.question(), decision: Some(decision) })
    }
}

/// Writes down that a question was decided, if a decision about it was kept. A crash before this leaves one that
/// [`look_through`] finds lapsed.
pub(super) fn settle(engine: &mut Engine, made: &Made, now: Timestamp) -> Result<(), pointsman_store::Error> {
    let Made { project, question, decision } = made;
    let Some(mut memory) = engine.store().memory::<Decisions>(project, MEMORY)? else { return Ok(()) };
    match memory.settle(question, decision.as_ref()) {
        Some((kept, outcome)) => engine.write(&[over(project, kept, outcome, &memory, now)?]).map(drop),
        None => Ok(()),
    }
}

/// Drops what does not wait for anybody any more, and answers the rest.
pub(super) fn look_through(
    engine: &mut Engine,
    served: &Served,
    now: Timestamp,
) -> anyhow::Result<Vec<Unconfirmed>> {
    let project = &served.config.name;
    let Some(memory) = engine.store().memory::<Decisions>(project, MEMORY)? else { return Ok(Vec::new()) };
    let mut left = memory.clone();
    for kept in memory.decisions {
        if let Some(outcome) = ended(engine.store(), served, &kept)? {
            left.decisions.retain(|other| *other != kept);
            let change = over(project, kept, outcome, &left, now)?;
            engine.write(&[change])?;
        }
    }
    Ok(left.decisions)
}

/// The end that a kept decision has come to in the meantime; nothing while it waits.
fn ended(store: &Store, served: &Served, kept: &Unconfirmed) -> anyhow::Result<Option<Outcome>> {
    let project = &served.config.name;
    match (&kept.decision, served.embedded.as_deref()) {
        (Decision::Approval { pr, head, .. }, Some(forge)) => {
            let Some(pr) = forge.pull_request(*pr)? else { return Ok(Some(Outcome::Lapsed)) };
            // A daemon that was killed between the review and its record leaves the review.
            let confirmed = pr.reviews.iter().any(|review| {
                !review.dismissed
                    && review.verdict == ReviewVerdict::Approve
                    && review.sha == *head
                    && review.author == kept.by
                    && review.at >= kept.at
            });
            // Any later push voids an approval, a kept one as well.
            let open = pr.state == IssueState::Open && pr.head_sha.as_ref() == Some(head);
            Ok(match (confirmed, open) {
                (true, _) => Some(Outcome::Confirmed),
                (false, true) => None,
                (false, false) => Some(Outcome::Lapsed),
            })
        }
        (Decision::Approval { .. }, None) => Ok(Some(Outcome::Lapsed)),
        (
            Decision::Answer { .. }
            | Decision::Comment { .. }
            | Decision::VaultApproval { .. }
            | Decision::VaultRejection { .. },
            _,
        ) => Ok((!waits(store, project, &kept.decision)?).then_some(Outcome::Lapsed)),
    }
}

fn over(
    project: &ProjectName,
    kept: Unconfirmed,
    outcome: Outcome,
    left: &Decisions,
    now: Timestamp,
) -> Result<Change, pointsman_store::Error> {
    let mut change = Change::logged(now, project, &log::Entry::DecisionSettled { kept, outcome });
    change.memories.push(Memory::new(MEMORY, left)?);
    Ok(change)
}

/// The decisions of a project that wait for a person to confirm them.
pub(crate) fn unconfirmed(
    store: &Store,
    project: &ProjectName,
) -> Result<Vec<Unconfirmed>, pointsman_store::Error> {
    let kept = store.memory::<Decisions>(project, MEMORY)?.unwrap_or_default().decisions;
    let mut waiting = Vec::with_capacity(kept.len());
    for one in kept {
        if waits(store, project, &one.decision)? {
            waiting.push(one);
        }
    }
    Ok(waiting)
}

/// Whether the question is still there, as far as the store knows.
fn waits(store: &Store, project: &ProjectName, decision: &Decision) -> Result<bool, pointsman_store::Error> {
    Ok(match decision {
        Decision::Approval { pr, .. } => {
            let tasks = store.tasks(Some(project))?;
            !tasks.iter().any(|task| {
                task.contribution.pr() == Some(*pr)
                    && matches!(task.state, State::MergeQueue | State::Merged | State::Closed)
            })
        }
        Decision::Answer { issue, .. } | Decision::Comment { issue, .. } => {
            let task = store.task(&TaskKey { project: project.clone(), issue: *issue })?;
            task.is_some_and(|task| task.escalation.is_some())
        }
        Decision::VaultApproval { id, .. } => store
            .vault_entry(project, id)?
            .is_some_and(|entry| matches!(entry.status, Status::Pending | Status::Uncertain)),
        Decision::VaultRejection { id, .. } => store.vault_entry(project, id)?.is_some_and(|entry| {
            matches!(entry.status, Status::Pending | Status::Approved | Status::Uncertain)
        }),
    })
}
