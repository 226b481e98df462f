//! The life of one action in the vault.
//!
//! pending → approved → firing → fired, failed or uncertain; rejected from everywhere before firing. Whoever runs the
//! handler writes `firing` down first: an action found in that state by somebody who is not running it may have been
//! fired or not. It becomes uncertain, and only a person who knows that can let it go again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::action::{Action, ActionId};
use super::estimate::{Estimate, Route, route};
use super::look;
use crate::ids::ProjectName;
use crate::text::clean_line;
use crate::time::Timestamp;
use crate::words;

/// Longest reason that is kept.
const REASON_CHARS: usize = 500;

/// The state of an action. The names are part of the surface that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    /// It may be fired, once.
    Approved,
    /// Its handler is about to run or runs.
    Firing,
    /// Its handler said that it is done.
    Fired,
    /// Its handler said that it could not.
    Failed,
    /// It will not be fired.
    Rejected,
    /// Nobody knows whether it was fired; a person is asked.
    Uncertain,
}

impl Status {
    /// The name that scripts see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Firing => "firing",
            Self::Fired => "fired",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Uncertain => "uncertain",
        }
    }
}

/// An action and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub project: ProjectName,
    pub action: Action,
    /// What approvals are bound to.
    pub hash: String,
    /// The submitter's estimate, raised by rules and by whoever had something to add.
    pub estimate: Estimate,
    /// What the estimate leads to.
    pub route: Route,
    /// Whether the vault's agent is to look at it before anything else happens.
    #[serde(default)]
    pub awaits_look: bool,
    pub status: Status,
    /// Since when it is here.
    pub submitted_at: Timestamp,
    /// When the question, or the approval, is void.
    pub expires_at: Option<Timestamp>,
    /// Who approved or rejected it: a person, or `rule`.
    pub decided_by: Option<String>,
    pub decided_at: Option<Timestamp>,
    /// Why it stands where it stands.
    pub reason: Option<String>,
    /// How often its handler was about to run.
    pub firings: u32,
    /// How often people were told of the present status.
    pub told: u32,
    /// When they were told last.
    pub told_at: Option<Timestamp>,
}

/// A project's rules for its vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether anything is fired without a person.
    pub auto_approve: bool,
    /// Whether the vault's agent looks first at what would be fired without a person.
    pub look: bool,
    /// Who may approve; empty: whoever has the operator's shell.
    pub people: Vec<String>,
    /// A question nobody answered is a no after this long.
    pub timeout: Duration,
    /// An approval is void after this long.
    pub approval: Duration,
    /// A person is asked again this often.
    pub renotify: Duration,
}

/// An event in the life of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A person says yes to exactly this action.
    Approved {
        by: String,
        /// The hash of what they saw.
        hash: String,
        /// They know that it may have been fired before.
        again: bool,
    },
    Rejected {
        by: String,
        reason: String,
    },
    /// Somebody thinks it more dangerous than it looked.
    Raised {
        by: String,
        estimate: Estimate,
        reason: String,
    },
    /// The vault's agent has looked at it, or could not.
    LookEnded {
        /// The hash of what it was shown.
        hash: String,
        /// What it thinks; nothing if it said nothing that can be used.
        opinion: Option<Estimate>,
        reason: String,
    },
    TimePassed,
    /// Its handler is about to run.
    FiringBegun,
    FiringEnded {
        /// Which of its runs, counted from 1.
        firing: u32,
        outcome: Outcome,
    },
    /// Whoever ran its handler is gone.
    FiringLost,
    /// People were told of the present status.
    Told,
}

/// The end of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Done,
    /// It said that it could not, or never ran.
    Failed {
        why: String,
    },
    /// It was ended before it could say.
    Unknown {
        why: String,
    },
}

/// An event that an action does not accept, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Entry {
    /// The action's name, which is unique in a project.
    pub fn id(&self) -> &ActionId {
        &self.action.id
    }

    /// The question that a person is asked now: an answer to another question is none to this one. Nothing if nobody is asked.
    pub fn question(&self) -> Option<String> {
        let Estimate { risk, reversible, requires_human } = self.estimate;
        let asked = matches!(self.status, Status::Pending | Status::Uncertain) && !self.awaits_look;
        asked.then(|| {
            let (hash, status, firings) = (&self.hash, self.status.as_str(), self.firings);
            format!("{hash} {status} {firings} {risk} {reversible} {requires_human}")
        })
    }

    /// Whether something is still to be done about it, if only to tell people.
    pub fn is_open(&self) -> bool {
        match self.status {
            Status::Pending | Status::Approved | Status::Firing | Status::Uncertain => true,
            Status::Fired | Status::Failed | Status::Rejected => self.owes_word(),
        }
    }

    /// Whether people must hear how it ended and have not yet.
    fn owes_word(&self) -> bool {
        let worth_it = match self.status {
            Status::Fired => self.route == Route::FireAndTell,
            Status::Failed => true,
            // Nobody answered: those who were asked should know what came of it.
            Status::Rejected => self.decided_by.is_none(),
            Status::Pending | Status::Approved | Status::Firing | Status::Uncertain => false,
        };
        worth_it && self.told == 0
    }

    pub(super) fn now(mut self, status: Status, reason: Option<String>) -> Self {
        self.status = status;
        self.awaits_look = false;
        self.reason = reason;
        (self.told, self.told_at, self.expires_at) = (0, None, None);
        self
    }

    pub(super) fn decided(mut self, by: Option<&str>, at: Timestamp) -> Self {
        self.decided_by = by.map(|by| clean_line(by, 100));
        self.decided_at = Some(at);
        self
    }

    fn uncertain(self, policy: &Policy, why: &str, now: Timestamp) -> Self {
        let mut entry = self.now(Status::Uncertain, Some(clean_line(why, REASON_CHARS)));
        entry.expires_at = Some(now.after(policy.timeout));
        entry
    }

    /// An approval that holds no longer: the question stands as it stood before.
    fn asks_again(self, policy: &Policy, why: &str, now: Timestamp) -> Self {
        match self.firings {
            0 => self.asks(policy, Some(why.to_owned())),
            _ => self.uncertain(policy, why, now),
        }
    }

    pub(super) fn asks(self, policy: &Policy, reason: Option<String>) -> Self {
        let expires_at = self.submitted_at.after(policy.timeout);
        let mut entry = self.now(Status::Pending, reason);
        entry.expires_at = Some(expires_at);
        (entry.decided_by, entry.decided_at) = (None, None);
        entry
    }

    /// A rule says yes.
    pub(super) fn goes(self, policy: &Policy, reason: Option<String>, now: Timestamp) -> Self {
        let mut entry = self.now(Status::Approved, reason).decided(Some("rule"), now);
        entry.expires_at = Some(now.after(policy.timeout));
        entry
    }

    fn rejected(self, by: Option<&str>, why: &str, at: Timestamp) -> Self {
        self.now(Status::Rejected, Some(clean_line(why, REASON_CHARS))).decided(by, at)
    }

    fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// A new action. `rule` is what the operator says about its type; without one the type is unknown.
pub fn submit(
    project: &ProjectName,
    action: Action,
    rule: Option<Estimate>,
    policy: &Policy,
    now: Timestamp,
) -> Entry {
    let own = Estimate::of(&action);
    let estimate = rule.map_or(own, |rule| own.raised_by(rule));
    let entry = Entry {
        project: project.clone(),
        hash: action.hash(project),
        estimate,
        route: way(estimate, policy),
        awaits_look: false,
        status: Status::Pending,
        submitted_at: now,
        expires_at: None,
        decided_by: None,
        decided_at: None,
        reason: None,
        firings: 0,
        told: 0,
        told_at: None,
        action,
    };
    match (rule, entry.route) {
        (None, _) => {
            let why = words::vault::no_handler(&entry.action.kind);
            entry.rejected(Some("rule"), &why, now)
        }
        (Some(_), Route::Ask) => entry.asks(policy, None),
        (Some(_), Route::Fire | Route::FireAndTell) if policy.look => {
            Entry { awaits_look: true, ..entry.asks(policy, None) }
        }
        (Some(_), Route::Fire | Route::FireAndTell) => entry.goes(policy, None, now),
    }
}

pub(super) fn way(estimate: Estimate, policy: &Policy) -> Route {
    if policy.auto_approve { route(estimate) } else { Route::Ask }
}

/// Applies an event to an action.
pub fn step(entry: &Entry, event: &Event, policy: &Policy, now: Timestamp) -> Result<Entry, Refused> {
    let entry = entry.clone();
    match event {
        Event::Approved { by, hash, again } => approved(entry, by, hash, *again, policy, now),
        Event::Rejected { by, reason } => match entry.status {
            Status::Pending | Status::Approved | Status::Uncertain => {
                Ok(entry.rejected(Some(by), reason, now))
            }
            Status::Firing => refused(words::vault::TOO_LATE_TO_REJECT),
            Status::Fired | Status::Failed | Status::Rejected => over(&entry),
        },
        Event::Raised { by, estimate, reason } => raised(entry, by, *estimate, reason, policy, now),
        Event::LookEnded { hash, opinion, reason } => look::ended(entry, hash, *opinion, reason, policy, now),
        Event::TimePassed => time_passed(entry, policy, now),
        Event::FiringBegun => match entry.status {
            Status::Approved if entry.is_expired(now) => refused(words::vault::APPROVAL_EXPIRED),
            Status::Approved if entry.action.hash(&entry.project) != entry.hash => {
                Ok(entry.rejected(None, words::vault::CHANGED_AFTER_APPROVAL, now))
            }
            Status::Approved => {
                let firings = entry.firings.saturating_add(1);
                Ok(Entry { firings, ..entry.now(Status::Firing, None) })
            }
            Status::Pending
            | Status::Firing
            | Status::Fired
            | Status::Failed
            | Status::Rejected
            | Status::Uncertain => refused(&words::vault::not_approved(entry.status)),
        },
        Event::FiringEnded { firing, outcome }
            if entry.status == Status::Firing && *firing == entry.firings =>
        {
            Ok(match outcome {
                Outcome::Done => entry.now(Status::Fired, None),
                Outcome::Failed { why } => entry.now(Status::Failed, Some(clean_line(why, REASON_CHARS))),
                Outcome::Unknown { why } => entry.uncertain(policy, why, now),
            })
        }
        Event::FiringLost if entry.status == Status::Firing => {
            Ok(entry.uncertain(policy, words::vault::HANDLER_LOST, now))
        }
        Event::FiringEnded { .. } | Event::FiringLost => refused(&words::vault::not_firing(entry.status)),
        Event::Told => {
            let told = entry.told.saturating_add(1);
            Ok(Entry { told, told_at: Some(now), ..entry })
        }
    }
}

fn approved(
    entry: Entry,
    by: &str,
    hash: &str,
    again: bool,
    policy: &Policy,
    now: Timestamp,
) -> Result<Entry, Refused> {
    if !policy.people.is_empty() && !policy.people.iter().any(|person| person == by) {
        return refused(&words::vault::not_listed(by));
    }
    if hash != entry.hash || entry.action.hash(&entry.project) != entry.hash {
        return refused(words::vault::ANOTHER_APPROVED);
    }
    match entry.status {
        Status::Pending | Status::Uncertain if entry.is_expired(now) => {
            refused(words::vault::ANSWERED_TOO_LATE)
        }
        Status::Uncertain if !again => refused(words::vault::PERHAPS_FIRED),
        Status::Pending | Status::Uncertain => {
            let mut entry = entry.now(Status::Approved, None).decided(Some(by), now);
            entry.expires_at = Some(now.after(policy.approval));
            Ok(entry)
        }
        Status::Approved => refused(words::vault::APPROVED_ALREADY),
        Status::Firing => refused(words::vault::FIRING_NOW),
        Status::Fired | Status::Failed | Status::Rejected => over(&entry),
    }
}

fn raised(
    entry: Entry,
    by: &str,
    estimate: Estimate,
    reason: &str,
    policy: &Policy,
    now: Timestamp,
) -> Result<Entry, Refused> {
    let raised = entry.estimate.raised_by(estimate);
    match entry.status {
        Status::Pending | Status::Approved | Status::Uncertain => {}
        Status::Firing => return refused(words::vault::FIRING_NOW),
        Status::Fired | Status::Failed | Status::Rejected => return over(&entry),
    }
    if raised == entry.estimate {
        return refused(words::vault::NOT_MORE_DANGEROUS);
    }
    let entry = Entry { estimate: raised, route: way(raised, policy).max(entry.route), ..entry };
    let why = words::vault::raised(by, reason);
    // Whoever said yes, a rule or a person, said it to something more harmless.
    if entry.status == Status::Approved && entry.route == Route::Ask {
        return Ok(entry.asks_again(policy, &why, now));
    }
    if entry.awaits_look && entry.route == Route::Ask {
        return Ok(entry.asks(policy, Some(why)));
    }
    Ok(Entry { reason: Some(why), ..entry })
}

fn time_passed(entry: Entry, policy: &Policy, now: Timestamp) -> Result<Entry, Refused> {
    if !entry.is_expired(now) {
        return refused(words::vault::NOTHING_EXPIRED);
    }
    let waited = policy.timeout;
    match entry.status {
        // Nobody was asked yet.
        Status::Pending if entry.awaits_look => {
            let asked = entry.asks(policy, Some(words::vault::not_looked_at(waited)));
            Ok(Entry { expires_at: Some(now.after(policy.timeout)), ..asked })
        }
        Status::Pending => Ok(entry.rejected(None, &words::vault::nobody_answered(waited), now)),
        Status::Uncertain => {
            let why = words::vault::never_known(waited);
            Ok(entry.rejected(None, &why, now))
        }
        Status::Approved if entry.route == Route::Ask || entry.firings > 0 => {
            Ok(entry.asks_again(policy, words::vault::OLD_APPROVAL, now))
        }
        Status::Approved => Ok(entry.rejected(None, &words::vault::never_fired(waited), now)),
        Status::Firing | Status::Fired | Status::Failed | Status::Rejected => {
            refused(words::vault::NOTHING_EXPIRES)
        }
    }
}

fn over<T>(entry: &Entry) -> Result<T, Refused> {
    refused(&words::vault::over(entry.status))
}

pub(super) fn refused<T>(why: &str) -> Result<T, Refused> {
    Err(Refused(why.to_owned()))
}

/// The work that an action needs now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Something of it has expired.
    Time,
    /// The vault's agent is to look at it, or looks.
    Look,
    /// Its handler is to run.
    Fire,
    /// Its handler runs; if it does not, it is lost.
    Follow,
    /// People are to be told.
    Tell,
    Wait,
}

/// The one thing to do next.
pub fn duty(entry: &Entry, policy: &Policy, now: Timestamp) -> Duty {
    let again = |at: Timestamp| at.after(policy.renotify) <= now;
    match entry.status {
        Status::Pending | Status::Approved | Status::Uncertain if entry.is_expired(now) => Duty::Time,
        Status::Pending if entry.awaits_look => Duty::Look,
        Status::Approved => Duty::Fire,
        Status::Firing => Duty::Follow,
        Status::Pending | Status::Uncertain if entry.told_at.is_none_or(again) => Duty::Tell,
        Status::Fired | Status::Failed | Status::Rejected if entry.owes_word() => Duty::Tell,
        Status::Pending | Status::Uncertain | Status::Fired | Status::Failed | Status::Rejected => Duty::Wait,
    }
}
