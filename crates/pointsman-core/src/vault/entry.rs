//! The life of one action in the vault: a workflow that owns a question.
//!
//! pending → approved → firing → fired, failed or uncertain; rejected from everywhere before firing. Whoever runs the
//! handler writes `firing` down first: an action found in that state by somebody who is not running it may have been
//! fired or not. It becomes uncertain, and only a person who knows that can let it go again.
//!
//! After every event [`duty`] says what the action needs next. It is ordered once: the action remembers the order until its
//! result comes, so an action of an earlier program, which remembers none, has it ordered at its next look at the clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::action::{Action, ActionId, Risk};
use super::estimate::{Estimate, Route, route};
use super::look;
use crate::ids::{ActionKey, ProjectName};
use crate::log;
use crate::part::question::{self, Cause, Due, Kind, Owner, Question, Settled, Settlement, Source};
use crate::task::Effect;
use crate::text::clean_line;
use crate::time::Timestamp;
use crate::words;
use crate::workflow::Refused;

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
    /// The people who approved it, while it needs more of them or since it has enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<String>,
    pub decided_at: Option<Timestamp>,
    /// Why it stands where it stands.
    pub reason: Option<String>,
    /// How often its handler was about to run.
    pub firings: u32,
    /// How often people were told of the present status.
    pub told: u32,
    /// When they were told last.
    pub told_at: Option<Timestamp>,
    /// The question to a person, while one is asked.
    #[serde(default)]
    pub asked: Option<Question>,
    /// The order whose result is to come.
    #[serde(default)]
    pub under_way: Option<Order>,
}

/// An order of an action that has a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Look,
    Fire,
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
    /// The people who must approve an action of high risk.
    pub high_risk_approvals: u32,
    /// A question nobody answered is a no after this long.
    pub timeout: Duration,
    /// An approval is void after this long.
    pub approval: Duration,
    /// A person is asked again this often.
    pub renotify: Duration,
}

impl Policy {
    /// The numbers for questions.
    fn question(&self) -> question::Policy {
        question::Policy { remind: self.renotify, timeout: self.timeout }
    }
}

/// An event in the life of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Submitted {
        /// What the operator says about its type; without it the type is unknown.
        rule: Option<Estimate>,
    },
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
    /// People were told how it stands.
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

/// The next snapshot of an action, and what is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub entry: Entry,
    pub effects: Vec<Effect>,
}

impl Entry {
    /// An action as it is before its submission is taken.
    pub fn new(project: ProjectName, action: Action, now: Timestamp) -> Self {
        Self {
            hash: action.hash(&project),
            estimate: Estimate::of(&action),
            route: Route::Ask,
            awaits_look: false,
            status: Status::Pending,
            submitted_at: now,
            expires_at: None,
            decided_by: None,
            approvals: Vec::new(),
            decided_at: None,
            reason: None,
            firings: 0,
            told: 0,
            told_at: None,
            asked: None,
            under_way: None,
            project,
            action,
        }
    }

    /// Its name among all actions.
    pub fn key(&self) -> ActionKey {
        ActionKey { project: self.project.clone(), id: self.action.id.clone() }
    }

    /// Whether it is not submitted yet. Whatever waits after that has an end.
    fn is_new(&self) -> bool {
        self.status == Status::Pending && self.expires_at.is_none()
    }

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
            let question = format!("{hash} {status} {firings} {risk} {reversible} {requires_human}");
            match self.approvals.len() {
                0 => question,
                // Whoever is second knows that somebody was first.
                approvals => format!("{question} {approvals}"),
            }
        })
    }

    /// The number of people who must approve it.
    pub fn approvals_needed(&self, policy: &Policy) -> usize {
        match self.estimate.risk {
            Risk::High => usize::try_from(policy.high_risk_approvals.max(1)).unwrap_or(usize::MAX),
            Risk::Low | Risk::Medium => 1,
        }
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
        self.under_way = None;
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
        entry.approvals.clear();
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
        entry.approvals.clear();
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

    /// Whether its time is up. Whoever was asked and slept is reminded first.
    fn is_expired(&self, now: Timestamp) -> bool {
        match &self.asked {
            Some(asked) => asked.due(now) == Due::Expiry,
            None => self.expires_at.is_some_and(|at| at <= now),
        }
    }

    /// The same with the question that belongs to it now. Another estimate or status is another question.
    pub fn asking(mut self, policy: &Policy, now: Timestamp) -> Self {
        if self.question().is_none() {
            self.asked = None;
            return self;
        }
        let source = Source {
            project: self.project.clone(),
            owner: Owner::Vault(self.action.id.clone()),
            issue: None,
            pr: None,
            session: None,
        };
        let text = words::vault::asked(&self);
        let fresh = Question::ask(Kind::Approval, Cause::Agent, source, &text, &policy.question(), now);
        let same = |asked: &Question| asked.subject == fresh.subject && asked.body == fresh.body;
        if !self.asked.as_ref().is_some_and(same) {
            // The action may have waited for something else before.
            self.asked = Some(Question { expires_at: self.expires_at, ..fresh });
        }
        self
    }

    /// People are told of the present status. The outbox keeps the order, so they count as told.
    fn told(mut self, policy: &Policy, now: Timestamp) -> Self {
        if let Some(asked) = &mut self.asked {
            match (self.told, asked.step(&question::Event::TimePassed, &policy.question(), now)) {
                (0, _) => asked.remind_at = Some(now.after(policy.renotify)),
                (_, Ok(reminded)) if reminded.is_open() => *asked = reminded,
                (_, Ok(_) | Err(_)) => {}
            }
            self.expires_at = asked.expires_at;
        }
        (self.told, self.told_at) = (self.told.saturating_add(1), Some(now));
        self
    }
}

/// A new action. `rule` is what the operator says about its type; without one the type is unknown.
fn submitted(entry: Entry, rule: Option<Estimate>, policy: &Policy, now: Timestamp) -> Entry {
    let estimate = rule.map_or(entry.estimate, |rule| entry.estimate.raised_by(rule));
    let entry = Entry { estimate, route: way(estimate, policy), ..entry };
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
pub fn step(entry: &Entry, event: &Event, policy: &Policy, now: Timestamp) -> Result<Transition, Refused> {
    let next = happened(entry.clone(), event, policy, now)?.asking(policy, now);
    Ok(ordering(entry, event, next, policy, now))
}

/// Orders what an action needs after an event.
fn ordering(before: &Entry, event: &Event, entry: Entry, policy: &Policy, now: Timestamp) -> Transition {
    let hash = || entry.hash.clone();
    let mut effects = Vec::new();
    let looked = matches!(event, Event::LookEnded { .. });
    if before.under_way == Some(Order::Look) && !entry.awaits_look && !looked {
        effects.push(Effect::CallOffLook { hash: hash() });
    }
    let entry = match duty(&entry, now) {
        // Time itself says so, at the next look at the clock.
        Duty::Time | Duty::Wait => entry,
        Duty::Look => {
            effects.push(Effect::LookAtAction { hash: hash() });
            Entry { under_way: Some(Order::Look), ..entry }
        }
        Duty::Fire => {
            effects.push(Effect::FireAction { firing: entry.firings.saturating_add(1) });
            Entry { under_way: Some(Order::Fire), ..entry }
        }
        Duty::Tell => {
            effects.push(Effect::NotifyAction);
            entry.told(policy, now)
        }
    };
    Transition { entry, effects }
}

fn happened(entry: Entry, event: &Event, policy: &Policy, now: Timestamp) -> Result<Entry, Refused> {
    match event {
        Event::Submitted { rule } if entry.is_new() => Ok(submitted(entry, *rule, policy, now)),
        Event::Submitted { .. } => refused(words::vault::SUBMITTED_ALREADY),
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
        Event::TimePassed => Ok(time_passed(entry, policy, now)),
        Event::FiringBegun => match entry.status {
            Status::Approved if entry.is_expired(now) => refused(words::vault::APPROVAL_EXPIRED),
            Status::Approved if entry.action.hash(&entry.project) != entry.hash => {
                Ok(entry.rejected(None, words::vault::CHANGED_AFTER_APPROVAL, now))
            }
            Status::Approved => {
                let firings = entry.firings.saturating_add(1);
                let under_way = Some(Order::Fire);
                Ok(Entry { firings, under_way, ..entry.now(Status::Firing, None) })
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
        // It was counted when it was ordered.
        Event::Told => Ok(entry),
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
        Status::Pending | Status::Uncertain if entry.approvals.iter().any(|name| name == by) => {
            refused(words::vault::ANOTHER_PERSON)
        }
        Status::Pending | Status::Uncertain if entry.approvals.len() + 1 < entry.approvals_needed(policy) => {
            let mut entry = entry;
            entry.approvals.push(clean_line(by, 100));
            // The next one is asked in other words, and told of it.
            (entry.told, entry.told_at) = (0, None);
            Ok(entry)
        }
        Status::Pending | Status::Uncertain => {
            let mut all = entry.approvals.clone();
            all.push(clean_line(by, 100));
            let mut entry = entry.now(Status::Approved, None).decided(Some(&all.join(", ")), now);
            entry.approvals = all;
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
    let route = way(raised, policy).max(entry.route);
    let entry = Entry { estimate: raised, route, approvals: Vec::new(), ..entry };
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

fn time_passed(entry: Entry, policy: &Policy, now: Timestamp) -> Entry {
    let waited = policy.timeout;
    match (entry.status, duty(&entry, now)) {
        // Nobody was asked yet.
        (Status::Pending, Duty::Time) if entry.awaits_look => {
            let asked = entry.asks(policy, Some(words::vault::not_looked_at(waited)));
            Entry { expires_at: Some(now.after(policy.timeout)), ..asked }
        }
        (Status::Pending, Duty::Time) => entry.rejected(None, &words::vault::nobody_answered(waited), now),
        (Status::Uncertain, Duty::Time) => entry.rejected(None, &words::vault::never_known(waited), now),
        (Status::Approved, Duty::Time) if entry.route == Route::Ask || entry.firings > 0 => {
            entry.asks_again(policy, words::vault::OLD_APPROVAL, now)
        }
        (Status::Approved, Duty::Time) => entry.rejected(None, &words::vault::never_fired(waited), now),
        (Status::Firing, Duty::Time) => entry.uncertain(policy, words::vault::HANDLER_LOST, now),
        (
            Status::Pending
            | Status::Approved
            | Status::Firing
            | Status::Fired
            | Status::Failed
            | Status::Rejected
            | Status::Uncertain,
            Duty::Time | Duty::Look | Duty::Fire | Duty::Tell | Duty::Wait,
        ) => entry,
    }
}

fn over<T>(entry: &Entry) -> Result<T, Refused> {
    refused(&words::vault::over(entry.status))
}

pub(super) fn refused<T>(why: &str) -> Result<T, Refused> {
    Err(Refused::NotNow(why.to_owned()))
}

/// The changes of an action's question because of an event. The one after it has its number.
pub fn questions(before: &Entry, event: &Event, after: &Entry, now: Timestamp) -> Vec<question::Change> {
    question::changes(before.asked.as_ref(), after.asked.as_ref(), || end(event, after, now))
}

/// The end of a question that the action does not ask any more.
fn end(event: &Event, after: &Entry, at: Timestamp) -> Settled {
    let withdrawn = |why: String| (None, Settlement::Withdrawn { why });
    let (by, how) = match event {
        Event::Approved { by, .. } => (Some(by.clone()), Settlement::Approved),
        Event::Rejected { by, reason } => {
            (Some(by.clone()), Settlement::Rejected { reason: clean_line(reason, REASON_CHARS) })
        }
        Event::TimePassed => (None, Settlement::Expired),
        Event::Raised { by, reason, .. } => withdrawn(words::vault::raised(by, reason)),
        Event::Submitted { .. }
        | Event::LookEnded { .. }
        | Event::FiringBegun
        | Event::FiringEnded { .. }
        | Event::FiringLost
        | Event::Told => withdrawn(words::vault::now(after.status)),
    };
    Settled { by, at, how }
}

impl Event {
    /// An order of an action can never be carried out. A handler of which nobody knows more may have run.
    pub fn effect_gave_up(effect: &Effect, error: &str) -> Self {
        if let Effect::LookAtAction { hash } = effect {
            return Self::no_opinion(hash, error);
        }
        // What people could not be told is in the outbox.
        if matches!(effect, Effect::FireAction { .. }) { Self::FiringLost } else { Self::Told }
    }

    /// The entry of the log for it, with the action before and after the event.
    pub fn entry(&self, before: &Entry, after: &Entry) -> log::Entry {
        let entry: fn(log::Action) -> log::Entry = match self {
            Self::Submitted { .. } => log::Entry::VaultSubmitted,
            Self::Approved { .. } => log::Entry::VaultApproved,
            Self::Rejected { .. } => log::Entry::VaultRejected,
            Self::Raised { .. } => log::Entry::VaultRaised,
            Self::LookEnded { .. } => log::Entry::VaultLooked,
            Self::TimePassed if before.status == Status::Firing => log::Entry::VaultLost,
            Self::TimePassed if (before.status, before.awaits_look) == (after.status, after.awaits_look) => {
                log::Entry::VaultTimePassed
            }
            Self::TimePassed => log::Entry::VaultExpired,
            Self::FiringBegun => log::Entry::VaultFiring,
            Self::FiringEnded { .. } => log::Entry::VaultFired,
            Self::FiringLost => log::Entry::VaultLost,
            Self::Told => log::Entry::VaultTold,
        };
        let event = match self {
            Self::Submitted { .. } => None,
            Self::Approved { .. }
            | Self::Rejected { .. }
            | Self::Raised { .. }
            | Self::LookEnded { .. }
            | Self::TimePassed
            | Self::FiringBegun
            | Self::FiringEnded { .. }
            | Self::FiringLost
            | Self::Told => Some(self.clone()),
        };
        entry(log::Action {
            id: after.id().clone(),
            kind: after.action.kind.clone(),
            source: after.action.source.clone(),
            hash: after.hash.clone(),
            to: after.status,
            reason: after.reason.clone(),
            decided_by: after.decided_by.clone(),
            from: event.is_some().then_some(before.status),
            event,
        })
    }
}

/// The work that an action needs now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    /// Something of it has expired, or whoever ran its handler is gone.
    Time,
    /// The vault's agent is to look at it.
    Look,
    /// Its handler is to run.
    Fire,
    /// People are to be told.
    Tell,
    Wait,
}

/// The one thing to do next.
fn duty(entry: &Entry, now: Timestamp) -> Duty {
    let reminder = || entry.asked.as_ref().is_some_and(|asked| asked.due(now) == Due::Reminder);
    let ordered = |order| entry.under_way == Some(order);
    match entry.status {
        Status::Pending | Status::Approved | Status::Uncertain if entry.is_expired(now) => Duty::Time,
        Status::Pending if entry.awaits_look => {
            if ordered(Order::Look) {
                Duty::Wait
            } else {
                Duty::Look
            }
        }
        Status::Approved => {
            if ordered(Order::Fire) {
                Duty::Wait
            } else {
                Duty::Fire
            }
        }
        // Its order is settled together with its end.
        Status::Firing => {
            if ordered(Order::Fire) {
                Duty::Wait
            } else {
                Duty::Time
            }
        }
        Status::Pending | Status::Uncertain if entry.told_at.is_none() || reminder() => Duty::Tell,
        Status::Fired | Status::Failed | Status::Rejected if entry.owes_word() => Duty::Tell,
        Status::Pending | Status::Uncertain | Status::Fired | Status::Failed | Status::Rejected => Duty::Wait,
    }
}

/// The meaning of an order to fire by the time it is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firing {
    /// The handler is to run, once it is written down that it does.
    Begin,
    /// Somebody began this run and did not come back: it may have run.
    InDoubt,
    /// It was decided otherwise meanwhile, or the run is over.
    Overtaken,
}

impl Entry {
    /// Whether a run of its handler may begin.
    pub fn firing(&self, firing: u32) -> Firing {
        match self.status {
            Status::Firing if self.firings == firing => Firing::InDoubt,
            Status::Approved if self.firings.saturating_add(1) == firing => Firing::Begin,
            Status::Pending
            | Status::Approved
            | Status::Firing
            | Status::Fired
            | Status::Failed
            | Status::Rejected
            | Status::Uncertain => Firing::Overtaken,
        }
    }

    /// The moment at which time alone will next change something.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let at_once = Some(self.submitted_at);
        let ordered = |order| self.under_way == Some(order);
        match self.status {
            Status::Pending if self.awaits_look && ordered(Order::Look) => self.expires_at,
            Status::Approved if ordered(Order::Fire) => self.expires_at,
            Status::Firing if ordered(Order::Fire) => None,
            Status::Pending if self.awaits_look => at_once,
            Status::Approved | Status::Firing => at_once,
            Status::Pending | Status::Uncertain => match &self.asked {
                Some(asked) if self.told_at.is_some() => asked.wake_at(),
                Some(_) | None => at_once,
            },
            Status::Fired | Status::Failed | Status::Rejected => at_once.filter(|_| self.owes_word()),
        }
    }
}
