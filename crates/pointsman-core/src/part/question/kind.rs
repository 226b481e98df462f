//! The kinds of questions, and every difference between them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of a question: a closed list. The names are part of the surface that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A pull request waits for a person's review.
    Review,
    /// An agent, or the daemon on its behalf, does not know how to go on.
    Question,
    /// A dangerous action waits for a yes.
    Approval,
    /// A task is stuck until a person starts it again.
    Blocked,
    /// An agent turned a task down.
    Refused,
    /// A branch cannot be merged, and its agent could not resolve it.
    Conflict,
    QueuePaused,
    /// The main branch fails its own gate.
    MainRed,
    /// Something on this machine is about to fail.
    Alarm,
    /// Something that looks like a secret is in a branch.
    Secret,
    /// A configuration wants to run, reach or spend something new.
    Trust,
    /// A session wants to reach a host that is not allowed.
    HostAccess,
    /// A limit of money or tokens is reached.
    Budget,
    /// An issue is in progress, and nobody works on it.
    Orphan,
    ServiceDown,
    NotifierDown,
    /// A role hands files in that a person must look at.
    HandIn,
    /// A plan waits for a yes before it is carried out.
    Plan,
    /// A step of a pipeline waits for a person.
    Gate,
    /// Several attempts are finished, and one has to be chosen.
    Choice,
    Upgrade,
    /// A task is ready and never gets a place.
    Starved,
    /// There is no room for another working tree.
    Disk,
    /// The set-up of a working tree failed.
    Setup,
    /// A role wants to file more issues than it may.
    Filing,
    /// A snapshot cannot be read.
    Unreadable,
    HostLost,
}

/// A way in which a person can settle a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Approve,
    Reject,
    Answer,
    /// Nothing is to be done about it.
    Dismiss,
}

/// The reason why a question should not wait, most pressing first. The inbox is ordered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// Something may be lost or get out.
    Endangers,
    /// Other work waits for it.
    HoldsUp,
    /// A session is alive and costs while it waits.
    Costs,
    /// Nothing is lost by waiting.
    CanWait,
}

/// The end that a question comes to if nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    Never,
    /// After a while its owner goes on without an answer.
    AfterTimeout,
}

/// The traits of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    pub name: &'static str,
    pub urgency: Urgency,
    /// Whether people are told again as long as it is open.
    pub reminds: bool,
    pub expiry: Expiry,
    /// The ways to settle it, the usual one first. It also ends when its cause goes away.
    pub acts: &'static [Act],
}

const YES_OR_NO: &[Act] = &[Act::Approve, Act::Reject];
const YES_NO_OR_WORDS: &[Act] = &[Act::Approve, Act::Reject, Act::Answer];
const ANSWER: &[Act] = &[Act::Answer];
const DISMISS: &[Act] = &[Act::Dismiss];

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 27] = [
        Self::Review,
        Self::Question,
        Self::Approval,
        Self::Blocked,
        Self::Refused,
        Self::Conflict,
        Self::QueuePaused,
        Self::MainRed,
        Self::Alarm,
        Self::Secret,
        Self::Trust,
        Self::HostAccess,
        Self::Budget,
        Self::Orphan,
        Self::ServiceDown,
        Self::NotifierDown,
        Self::HandIn,
        Self::Plan,
        Self::Gate,
        Self::Choice,
        Self::Upgrade,
        Self::Starved,
        Self::Disk,
        Self::Setup,
        Self::Filing,
        Self::Unreadable,
        Self::HostLost,
    ];

    /// Everything in which the kinds differ. Only their wording is elsewhere ([`crate::words::question`]).
    pub const fn traits(self) -> Traits {
        use Expiry::{AfterTimeout, Never};
        use Urgency::{CanWait, Costs, Endangers, HoldsUp};
        match self {
            Self::Review => traits("review", HoldsUp, true, Never, YES_OR_NO),
            Self::Question => traits("question", Costs, true, AfterTimeout, ANSWER),
            Self::Approval => traits("approval", Costs, true, AfterTimeout, YES_OR_NO),
            // People were told when it was blocked, and the inbox keeps it.
            Self::Blocked => traits("blocked", HoldsUp, false, Never, DISMISS),
            Self::Refused => traits("refused", CanWait, false, Never, DISMISS),
            Self::Conflict => traits("conflict", HoldsUp, true, AfterTimeout, ANSWER),
            Self::QueuePaused => traits("queue_paused", HoldsUp, true, Never, &[Act::Approve]),
            Self::MainRed => traits("main_red", HoldsUp, true, Never, DISMISS),
            Self::Alarm => traits("alarm", Endangers, true, Never, DISMISS),
            Self::Secret => traits("secret", Endangers, true, Never, YES_OR_NO),
            Self::Trust => traits("trust", CanWait, true, Never, YES_OR_NO),
            Self::HostAccess => traits("host_access", Costs, true, AfterTimeout, YES_NO_OR_WORDS),
            Self::Budget => traits("budget", HoldsUp, true, Never, YES_OR_NO),
            Self::Orphan => traits("orphan", CanWait, true, Never, DISMISS),
            Self::ServiceDown => traits("service_down", Endangers, true, Never, DISMISS),
            Self::NotifierDown => traits("notifier_down", CanWait, false, Never, DISMISS),
            Self::HandIn => traits("hand_in", CanWait, true, Never, YES_OR_NO),
            Self::Plan => {
                traits("plan", Costs, true, AfterTimeout, &[Act::Approve, Act::Reject, Act::Answer])
            }
            Self::Gate => traits("gate", HoldsUp, true, Never, &[Act::Approve, Act::Reject, Act::Answer]),
            Self::Choice => traits("choice", HoldsUp, true, Never, ANSWER),
            Self::Upgrade => traits("upgrade", CanWait, false, Never, DISMISS),
            Self::Starved => traits("starved", HoldsUp, true, Never, DISMISS),
            Self::Disk => traits("disk", Endangers, true, Never, DISMISS),
            Self::Setup => traits("setup", HoldsUp, true, Never, YES_OR_NO),
            Self::Filing => traits("filing", CanWait, true, AfterTimeout, YES_OR_NO),
            Self::Unreadable => traits("unreadable", HoldsUp, true, Never, DISMISS),
            Self::HostLost => traits("host_lost", Endangers, true, Never, DISMISS),
        }
    }

    /// The name that scripts see.
    pub const fn as_str(self) -> &'static str {
        self.traits().name
    }

    /// Whether a person can settle it in this way.
    pub fn takes(self, act: Act) -> bool {
        self.traits().acts.contains(&act)
    }
}

const fn traits(
    name: &'static str,
    urgency: Urgency,
    reminds: bool,
    expiry: Expiry,
    acts: &'static [Act],
) -> Traits {
    Traits { name, urgency, reminds, expiry, acts }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
