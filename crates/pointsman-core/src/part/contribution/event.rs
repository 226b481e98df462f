//! Facts about a contribution as sources tell them and as the log keeps them, whoever owns the contribution.

use serde::{Deserialize, Serialize};

use super::{CiVerdict, Fact, PrFact, QueueOutcome, ReviewVerdict};
use crate::ids::{Number, Sha};
use crate::known_secrets::FoundSecrets;
use crate::review::Risk;

/// Something that became known about a contribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum Event {
    /// The branch is on the forge.
    Pushed {
        /// Its head; none if nothing beyond the main branch was pushed.
        head: Option<Sha>,
        /// The paths it changes that need a person's approval.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        protected: Vec<String>,
        /// Its risk, where that decides who looks at it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        risk: Option<Risk>,
        /// What is or looks like a secret in it. Without a head, it is why nothing was pushed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<FoundSecrets>,
    },
    Opened {
        number: Number,
    },
    /// The forge was asked about the pull request.
    Observed {
        fact: PrFact,
    },
    /// CI has begun on this commit.
    ChecksStarted {
        sha: Sha,
    },
    ChecksFinished {
        sha: Sha,
        run: u32,
        verdict: CiVerdict,
        /// Whether it was red before it was green, on the same commit.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        flaky: bool,
    },
    /// A review of this commit is on the forge.
    Reviewed {
        sha: Sha,
        verdict: ReviewVerdict,
        by: String,
        /// Whether our own review account wrote it, and not a person.
        #[serde(default)]
        by_agent: bool,
        body: String,
    },
    /// The merge queue has an answer about this head.
    QueueReported {
        head: Sha,
        outcome: QueueOutcome,
    },
}

impl Event {
    /// The fact that the part takes in.
    pub fn fact(&self) -> Fact<'_> {
        match self {
            Self::Pushed { head, protected, risk, secret } => {
                Fact::Pushed { head: head.as_ref(), protected, risk: risk.as_ref(), secret: secret.as_ref() }
            }
            Self::Opened { number } => Fact::Opened { number: *number },
            Self::Observed { fact } => Fact::Observed(fact),
            Self::ChecksStarted { sha } => Fact::ChecksStarted { sha },
            Self::ChecksFinished { sha, run, verdict, flaky: _ } => {
                Fact::ChecksFinished { sha, run: *run, verdict }
            }
            Self::Reviewed { sha, verdict, by, by_agent, body } => {
                Fact::Reviewed { sha, verdict: *verdict, by, by_agent: *by_agent, body }
            }
            Self::QueueReported { head, outcome } => Fact::QueueReported { head, outcome },
        }
    }
}
