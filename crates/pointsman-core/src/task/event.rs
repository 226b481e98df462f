//! What can happen to a task. Every input of the daemon becomes one of these.

use serde::{Deserialize, Serialize};

use super::effect::Exit;
use super::phase::{Phase, Refusal};
use crate::ids::{Number, Sha};
use crate::session::budget::Level;
use crate::session::context::{Gauge, Symptom};
use crate::time::Timestamp;

/// A past fact, or an order from a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The forge was asked about the issue.
    IssueObserved {
        /// Its title.
        title: String,
        /// Whether it is open.
        open: bool,
        /// Its labels.
        labels: Vec<String>,
        /// Those of its dependencies that are open.
        open_dependencies: Vec<Number>,
        /// The cycle of dependencies it is part of.
        cycle: Option<Vec<Number>>,
    },
    /// The issue carries our claim.
    Claimed,
    /// Somebody else has it, or it is closed: not ours to work on.
    ClaimLost {
        /// What was found instead.
        reason: String,
    },
    /// The session runs.
    SessionStarted {
        /// Which generation.
        generation: u32,
    },
    /// The session could not be started, and trying again will not help.
    SessionNotStarted {
        /// Which generation.
        generation: u32,
        /// Why.
        error: String,
    },
    /// The session's process is gone (or was ended by us).
    SessionEnded {
        /// Which generation.
        generation: u32,
        /// How.
        exit: Exit,
        /// The last lines of its pane.
        tail: String,
    },
    /// A look at a session that has written no phase.
    IdleLooked {
        /// Which generation.
        generation: u32,
        /// Whether it sat at its prompt without output since the last look.
        at_prompt: bool,
    },
    /// The phase file holds a claim that was not handled yet.
    PhaseClaimed {
        /// The generation whose file it is.
        generation: u32,
        /// The claim.
        phase: Phase,
        /// Its second line.
        reason: Option<String>,
        /// A refusal found in the summary file.
        refusal: Option<Refusal>,
    },
    /// The phase file is not one, or says something unknown.
    PhaseRejected {
        /// The generation whose file it is.
        generation: u32,
        /// What is wrong with it.
        why: String,
    },
    /// The agent's branch was brought from its gateway to the forge.
    BranchSynced {
        /// Its head; none if nothing beyond the main branch was pushed.
        head: Option<Sha>,
    },
    /// The pull request exists.
    PullRequestOpened {
        /// Its number.
        number: Number,
    },
    /// The forge was asked about the pull request.
    PullRequestObserved {
        /// What it said.
        fact: PrFact,
    },
    /// The agent's gateway holds another head than the forge.
    HeadMoved,
    /// CI has begun on this commit (it may have waited for a free runner).
    ChecksStarted {
        /// The commit.
        sha: Sha,
    },
    /// CI has an answer for this commit.
    ChecksFinished {
        /// The commit.
        sha: Sha,
        /// Which try.
        run: u32,
        /// The answer.
        verdict: CiVerdict,
    },
    /// A review of this commit is on the forge.
    ReviewPosted {
        /// The commit it is bound to.
        sha: Sha,
        /// What it says.
        verdict: ReviewVerdict,
        /// Who.
        by: String,
        /// The text.
        body: String,
    },
    /// The merge queue has an answer.
    QueueReported {
        /// The head it was asked to land.
        head: Sha,
        /// The answer.
        outcome: QueueOutcome,
    },
    /// Git was asked whether the work is on the main branch.
    MergeLooked {
        /// The commit of ours that is there.
        merged_as: Option<Sha>,
    },
    /// The session's context was measured.
    ContextMeasured {
        /// Which generation.
        generation: u32,
        /// How full it is.
        gauge: Gauge,
    },
    /// A sign of a full context was seen.
    SymptomSeen {
        /// Which generation.
        generation: u32,
        /// Which sign.
        symptom: Symptom,
    },
    /// The agent's context was compacted: whatever was known of its size is over.
    ContextCompacted {
        /// Which generation.
        generation: u32,
    },
    /// The agent finished a turn: a good moment to save its work.
    TurnEnded {
        /// Which generation.
        generation: u32,
    },
    /// The agent's turn was cut off by an error of its service.
    TurnFailed {
        /// Which generation.
        generation: u32,
        /// The service's name for the error.
        error: String,
        /// What was said about it.
        details: String,
        /// When it is over, if the service said so.
        #[serde(default)]
        until: Option<Timestamp>,
    },
    /// The agent's program waits at a dialog that nobody may answer for a person.
    DialogSeen {
        /// Which generation.
        generation: u32,
        /// What it asks, in one line.
        what: String,
        /// What its terminal showed.
        picture: String,
    },
    /// The agent's program should have reported by now and has not: its hooks do not work.
    HooksSilent {
        /// Which generation.
        generation: u32,
    },
    /// A budget's mark was passed.
    BudgetReached {
        /// Which mark.
        level: Level,
        /// Whose budget, in words.
        what: String,
    },
    /// A person answered an escalation.
    Answered {
        /// Who.
        by: String,
        /// The text, outside text.
        text: String,
    },
    /// A person or the scheduler gave an order.
    Ordered {
        /// Which.
        order: Order,
    },
    /// A deadline may have passed.
    TimePassed,
    /// An effect cannot be done, whatever we try.
    EffectGaveUp {
        /// Which kind.
        effect: String,
        /// Why.
        error: String,
    },
    /// A message was sent as often as allowed and never acknowledged.
    MessageUnacknowledged {
        /// Its id.
        message: i64,
        /// Its headline.
        headline: String,
    },
}

/// An order about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The scheduler found a free place for a ready task.
    Begin,
    /// A person wants it started now, whatever stopped it before.
    Start,
    /// Set aside, session ended, work kept.
    Pause,
    /// Go on.
    Resume,
    /// Give up, session ended, work kept.
    Stop,
}

/// What the forge says of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum PrFact {
    /// Open.
    Open,
    /// Closed without a merge.
    Closed,
    /// Merged, as this commit on the main branch.
    Merged {
        /// The commit.
        sha: Sha,
    },
}

/// CI's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum CiVerdict {
    /// Green.
    Passed,
    /// Red: the code is at fault.
    Failed {
        /// One line.
        summary: String,
        /// The end of the log, cleaned.
        log: String,
    },
    /// Neither red nor green: infrastructure is at fault.
    Infra {
        /// Which pattern said so.
        reason: String,
        /// The end of the log, cleaned.
        log: String,
    },
    /// Stopped at its time limit.
    TimedOut {
        /// The end of the log, cleaned.
        log: String,
    },
}

/// What a review says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    /// May land.
    Approve,
    /// Must change first.
    RequestChanges,
    /// A person should decide.
    Discuss,
}

/// The merge queue's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum QueueOutcome {
    /// The tested candidate is on the main branch.
    Landed {
        /// The candidate.
        sha: Sha,
    },
    /// It does not apply to the main branch.
    Conflict {
        /// Exactly these files.
        files: Vec<String>,
        /// The landed branch that changed them too, if it is known.
        #[serde(default)]
        with: Option<String>,
    },
    /// It applies, and its tests fail there.
    Red {
        /// One line.
        summary: String,
        /// The end of the log, cleaned.
        log: String,
    },
    /// Infrastructure trouble, again after a retry.
    Infra {
        /// What.
        reason: String,
    },
    /// The branch or its pull request changed while it waited.
    Stale {
        /// How.
        reason: String,
    },
}
