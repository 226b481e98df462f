//! A session as its owner remembers it: from the order to start it, through crashes, full contexts, rate limits and
//! budgets, to its end.
//!
//! [`Session::happened`] takes in what became known about it and [`Session::time_passed`] what is due. Rules about single
//! observations (liveness, gauges, prices) are in [`crate::session`]; how a session is run is the business of drivers.

mod event;
mod step;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use event::Event;
pub use step::OwnerFacts;

use crate::config::Config;
use crate::session::context::{Gauge, Marks, Symptom, Urgency};
use crate::task::{Exit, Headline, Opening};
use crate::time::Timestamp;

/// The stage of the present generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// None was ever started, or the last one has ended.
    #[default]
    None,
    /// Ordered; not yet known to run.
    Starting,
    Alive,
    /// Ordered to end.
    Ending,
}

/// A session and everything that is remembered across its generations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Session {
    /// Sessions are numbered; what an older one says is refused.
    pub generation: u32,
    pub stage: Stage,
    /// Sessions that were started because one died.
    pub restarts: u32,
    /// Sessions that handed over because their context was full.
    pub handoffs: u32,
    /// A replacement is held back until then, so that a crash loop costs little.
    pub restart_at: Option<Timestamp>,
    /// The generation that was ordered last goes on where its predecessor handed over.
    pub continues: bool,
    /// The next generation begins anew, in a new tree.
    pub anew: bool,
    /// The opening of the next generation, because this one never came to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<Opening>,
    /// Consecutive looks that found it idle at its prompt.
    pub idle_looks: u32,
    /// It was asked for a phase since it wrote one, and is not asked again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reminded: bool,
    /// Outside trouble (a rate limit, an outage): nothing is expected of the agent until then.
    pub parked_until: Option<Timestamp>,
    /// It is parked because a budget is used up, and not because of trouble outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_budget: bool,
    pub context: Context,
    /// It was asked to save its work and exit; a successor follows.
    pub handoff: Option<Handoff>,
    /// A budget is used up: it ends at the next boundary of its turns.
    pub exhausted: Option<Exhausted>,
}

/// The fill of the present generation's context, as far as anybody knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    pub gauge: Option<Gauge>,
    pub measured_at: Option<Timestamp>,
    /// Signs of a full context, each once.
    pub symptoms: Vec<Symptom>,
    /// The most urgent gauge so far: each step up is acted on once.
    pub urgency: Urgency,
}

/// A hand-over from a session to its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    pub requested_at: Timestamp,
    /// Then the session is ended by force.
    pub deadline: Timestamp,
    /// It was not over by then.
    pub stuck: bool,
}

/// A budget that is used up while the agent is in the middle of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exhausted {
    pub what: String,
    /// A turn that does not end by then is cut off.
    pub deadline: Timestamp,
    /// When there is a new budget; none if only a person can give one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The owner's need of its session at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// The agent is expected to do something: silence and idleness mean something, and a dead session is replaced.
    Work,
    /// The agent waits for CI or a reviewer: it may be silent, and a dead session is replaced.
    StandBy,
    /// A person was asked. A dead session is replaced when the answer comes.
    Answer,
    /// The work is about to land. Whoever has something to say to the agent starts one.
    Landing,
    /// The work has landed; the agent has only to say that it is done.
    Farewell,
    /// No session should run.
    Nothing,
}

impl Demand {
    /// Whether a session may run at all.
    pub fn allows_session(self) -> bool {
        match self {
            Self::Work | Self::StandBy | Self::Answer | Self::Landing | Self::Farewell => true,
            Self::Nothing => false,
        }
    }

    /// Whether what the session spends counts against a budget that ends it. Work that is about to land costs nothing
    /// more.
    pub fn spends(self) -> bool {
        match self {
            Self::Work | Self::StandBy | Self::Answer => true,
            Self::Landing | Self::Farewell | Self::Nothing => false,
        }
    }

    /// Whether anything is expected of the agent, so that a successor makes sense.
    pub fn wants_agent(self) -> bool {
        match self {
            Self::Work | Self::StandBy => true,
            Self::Answer | Self::Landing | Self::Farewell | Self::Nothing => false,
        }
    }

    /// Whether a person can be asked about the session: not while one is asked already, and not about work that is over.
    pub fn may_ask(self) -> bool {
        match self {
            Self::Work | Self::StandBy | Self::Landing => true,
            Self::Answer | Self::Farewell | Self::Nothing => false,
        }
    }
}

/// A fact about the session of one generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<'a> {
    Started,
    /// It could not be started, and trying again will not help.
    NotStarted {
        error: &'a str,
    },
    /// Its process is gone, or was ended by us.
    Ended {
        /// The last lines of its terminal.
        tail: &'a str,
    },
    /// A look at a session from which no phase has come yet.
    IdleLooked {
        at_prompt: bool,
    },
    ContextMeasured(Gauge),
    SymptomSeen(Symptom),
    /// The agent compacted its context: what was known of its size is over.
    ContextCompacted,
    TurnEnded,
    /// Its service cut a turn off.
    TurnFailed {
        error: &'a str,
        details: &'a str,
        /// When that is over, if the service said so.
        until: Option<Timestamp>,
    },
    /// Its program waits at a dialog that nobody may answer for a person.
    DialogSeen {
        what: &'a str,
    },
    /// It should have reported by now and has not: its hooks do not work.
    HooksSilent {
        /// Whether the project wants no session without them.
        required: bool,
    },
}

/// An order that the owner passes on, or a fact that the owner draws its own conclusion from. They come in the order in
/// which they are to be dealt with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Start the present generation.
    Start { opening: Opening },
    /// End the present generation, after a capture of its work.
    End { exit: Exit },
    /// Save what is in the working tree.
    Checkpoint { why: &'static str },
    /// Say something to the present generation.
    Tell { headline: Headline, subject: String, details: String },
    /// It runs.
    CameUp,
    /// It is gone; the last lines of its terminal are at hand.
    Gone,
    /// It died and will be replaced, at once or after a pause.
    Replaced,
    /// It died too often to be replaced again.
    CrashLoop { reason: String },
    /// Nothing more can come of it.
    Fail { reason: String, exit: Exit },
    /// A person has to be asked.
    Ask { reason: String },
    /// Outside trouble: nothing is expected until then.
    Park { until: Timestamp, reason: String },
    /// The outside trouble should be over.
    Unparked,
    /// People should know that a budget's first mark was passed.
    BudgetWarning { what: String },
    /// People should know that its hooks are not heard.
    HooksSilent,
    /// It sits at its prompt without a phase: it is asked for one.
    Remind,
}

/// The numbers that sessions are handled by.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Sessions started because one died.
    pub restarts: u32,
    /// The pause before the second restart; it doubles each time.
    pub restart_backoff: Duration,
    pub restart_backoff_max: Duration,
    /// Looks at an idle prompt before a session is given up.
    pub idle_looks: u32,
    /// Sessions that hand over because of a full context.
    pub handoffs: u32,
    /// The time a session has to hand over.
    pub handoff_timeout: Duration,
    /// Outside trouble without a known end is waited for this long.
    pub park: Duration,
    /// When a context is how full.
    pub marks: Marks,
}

impl Policy {
    /// The numbers of a project's configuration.
    pub fn new(config: &Config) -> Self {
        let Config { timing, limits, context, .. } = config;
        Self {
            restarts: limits.restarts,
            restart_backoff: timing.restart_backoff.into(),
            restart_backoff_max: timing.restart_backoff_max.into(),
            idle_looks: limits.idle_looks,
            handoffs: limits.handoffs,
            handoff_timeout: timing.handoff_timeout.into(),
            park: timing.park.into(),
            marks: Marks {
                low: context.low.permille(),
                medium: context.medium.permille(),
                high: context.high.permille(),
            },
        }
    }
}

impl Session {
    /// Time went by in which this machine was not awake. Deadlines of work count only the other; reset times of services are
    /// by the clock on the wall.
    pub fn skip(&mut self, by_ms: i64) {
        let moved = |at: Timestamp| at.moved(by_ms);
        self.restart_at = self.restart_at.map(moved);
        if let Some(handoff) = &mut self.handoff {
            handoff.deadline = moved(handoff.deadline);
        }
    }

    /// The next moment at which time alone changes something about it.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let handoff = self.handoff.filter(|handoff| !handoff.stuck).map(|handoff| handoff.deadline);
        let exhausted = self.exhausted.as_ref().map(|exhausted| exhausted.deadline);
        [self.restart_at, self.parked_until, handoff, exhausted].into_iter().flatten().min()
    }

    /// Whether it can be told something now or as soon as it is up.
    pub fn is_listening(&self) -> bool {
        match self.stage {
            Stage::Starting | Stage::Alive => true,
            Stage::None | Stage::Ending => false,
        }
    }

    /// Forgets the attempts of earlier work. The generation goes on: its numbers are never used twice.
    pub fn begin_anew(&mut self) {
        self.restarts = 0;
        self.handoffs = 0;
        self.restart_at = None;
        self.idle_looks = 0;
        self.reminded = false;
    }
}
