//! Facts about a session as sources tell them and as the log keeps them, whoever owns the session.

use serde::{Deserialize, Serialize};

use super::Fact;
use crate::session::budget::Level;
use crate::session::context::{Gauge, Symptom};
use crate::task::{Exit, Phase, Refusal};
use crate::time::Timestamp;

/// Something that became known about the session of one generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Event {
    Started,
    /// It could not be started, and trying again will not help.
    NotStarted {
        error: String,
    },
    /// Its process is gone, or was ended by us.
    Ended {
        exit: Exit,
        /// The last lines of its terminal.
        tail: String,
    },
    /// A look at a session from which no phase has come yet.
    IdleLooked {
        at_prompt: bool,
    },
    /// The phase file holds a claim that was not handled yet.
    PhaseClaimed {
        phase: Phase,
        /// Its second line.
        reason: Option<String>,
        /// A refusal found in the summary file.
        refusal: Option<Refusal>,
        /// The plan found in the plan file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<String>,
    },
    /// The phase file is not one, or says something unknown.
    PhaseRejected {
        why: String,
    },
    ContextMeasured {
        gauge: Gauge,
    },
    SymptomSeen {
        symptom: Symptom,
    },
    /// The agent compacted its context: what was known of its size is over.
    ContextCompacted,
    TurnEnded,
    /// Its service cut a turn off.
    TurnFailed {
        /// The service's name for the error.
        error: String,
        details: String,
        /// When that is over, if the service said so.
        #[serde(default)]
        until: Option<Timestamp>,
    },
    /// It ended a turn with these words, and people want to read along.
    ResponseGiven {
        /// Cleaned and cut.
        text: String,
    },
    /// Its program waits at a dialog that nobody may answer for a person.
    DialogSeen {
        what: String,
        picture: String,
    },
    /// It should have reported by now and has not: its hooks do not work.
    HooksSilent {
        /// Whether the project wants no session without them.
        required: bool,
        picture: String,
    },
    /// A budget's mark was passed.
    BudgetReached {
        level: Level,
        what: String,
        /// When there is a new budget; none if only a person can give one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// A person has given it more.
    BudgetGranted,
    /// A message was sent as often as allowed and never acknowledged.
    MessageUnacknowledged {
        message: i64,
        headline: String,
    },
}

impl Event {
    /// The fact that the part itself takes in. Claims, budgets and messages are the owner's first.
    pub fn fact(&self) -> Option<Fact<'_>> {
        Some(match self {
            Self::Started => Fact::Started,
            Self::NotStarted { error } => Fact::NotStarted { error },
            Self::Ended { tail, .. } => Fact::Ended { tail },
            Self::IdleLooked { at_prompt } => Fact::IdleLooked { at_prompt: *at_prompt },
            Self::ContextMeasured { gauge } => Fact::ContextMeasured(*gauge),
            Self::SymptomSeen { symptom } => Fact::SymptomSeen(*symptom),
            Self::ContextCompacted => Fact::ContextCompacted,
            Self::TurnEnded => Fact::TurnEnded,
            Self::TurnFailed { error, details, until } => Fact::TurnFailed { error, details, until: *until },
            Self::DialogSeen { what, .. } => Fact::DialogSeen { what },
            Self::HooksSilent { required, .. } => Fact::HooksSilent { required: *required },
            Self::PhaseClaimed { .. }
            | Self::PhaseRejected { .. }
            | Self::ResponseGiven { .. }
            | Self::BudgetReached { .. }
            | Self::BudgetGranted
            | Self::MessageUnacknowledged { .. } => return None,
        })
    }
}
