//! Facts about a contribution, and the words of those who judge it.

use serde::{Deserialize, Serialize};

use crate::ids::{Number, Sha};
use crate::known_secrets::FoundSecrets;
use crate::review::Risk;

/// Something that became known about a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact<'a> {
    /// The branch is on the forge.
    Pushed {
        /// Its head; none if nothing beyond the main branch was pushed.
        head: Option<&'a Sha>,
        /// The paths it changes that need a person's approval.
        protected: &'a [String],
        /// Its risk, where that decides who looks at it.
        risk: Option<&'a Risk>,
        /// What is or looks like a secret in it. Without a head, it is why nothing was pushed.
        secret: Option<&'a FoundSecrets>,
    },
    /// The branch has commits that the forge does not have yet.
    HeadMoved,
    Opened {
        number: Number,
    },
    /// The forge was asked about the pull request.
    Observed(&'a PrFact),
    /// CI has begun on this commit (it may have waited for a free runner).
    ChecksStarted {
        sha: &'a Sha,
    },
    ChecksFinished {
        sha: &'a Sha,
        run: u32,
        verdict: &'a CiVerdict,
    },
    /// A review of this commit is on the forge.
    Reviewed {
        sha: &'a Sha,
        verdict: ReviewVerdict,
        by: &'a str,
        /// Whether our own review account wrote it, and not a person.
        by_agent: bool,
        body: &'a str,
    },
    /// The merge queue has an answer about this head.
    QueueReported {
        head: &'a Sha,
        outcome: &'a QueueOutcome,
    },
    /// A person lets CI and gates reach the hosts that were refused.
    HostsAllowed,
    /// Git says that it is on the main branch.
    FoundMerged {
        sha: &'a Sha,
    },
}

/// The state of a pull request on the forge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum PrFact {
    Open,
    /// Closed without a merge.
    Closed,
    /// Merged, as this commit on the main branch.
    Merged {
        sha: Sha,
    },
}

/// The verdict of CI on a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum CiVerdict {
    Passed,
    /// Red: the code is at fault.
    Failed {
        summary: String,
        /// The end of the log, cleaned.
        log: String,
    },
    /// Neither red nor green: infrastructure is at fault.
    Infra {
        reason: String,
        /// The end of the log, cleaned.
        log: String,
    },
    /// Red, after it was refused hosts that nobody listed: whoever writes commits cannot mend that.
    Unreached {
        hosts: Vec<String>,
        /// The programs that asked for them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        programs: Vec<String>,
        /// The end of the log, cleaned.
        log: String,
    },
    /// Stopped at its time limit.
    TimedOut {
        /// The end of the log, cleaned.
        log: String,
    },
}

/// The verdict of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    Approve,
    /// Must change first.
    RequestChanges,
    Discuss,
}

/// The merge queue's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum QueueOutcome {
    /// The tested candidate is on the main branch.
    Landed { sha: Sha },
    /// It does not apply to the main branch.
    Conflict {
        files: Vec<String>,
        /// The landed branch that changed them too, if it is known.
        #[serde(default)]
        with: Option<String>,
    },
    /// It applies, and its tests fail there.
    Red {
        summary: String,
        /// The end of the log, cleaned.
        log: String,
    },
    /// Infrastructure trouble, again after a retry.
    Infra {
        reason: String,
        /// The end of the log, cleaned; empty if nothing ran.
        #[serde(default)]
        log: String,
    },
    /// Its tests fail, after they were refused hosts that nobody listed.
    Unreached {
        hosts: Vec<String>,
        /// The programs that asked for them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        programs: Vec<String>,
        /// The end of the log, cleaned.
        #[serde(default)]
        log: String,
    },
    /// The branch or its pull request changed while it waited.
    Stale { reason: String },
}
