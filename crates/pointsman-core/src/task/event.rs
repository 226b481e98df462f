//! Events of a task. Every input of the daemon becomes one of these.

use serde::{Deserialize, Serialize};

use super::effect::{Exit, Opening};
use super::phase::{Phase, Refusal};
use crate::ids::{Number, Sha};
use crate::known_secrets::FoundSecrets;
use crate::part::contribution::{self, CiVerdict, PrFact, QueueOutcome, ReviewVerdict};
use crate::part::session;
use crate::review::Risk;
use crate::session::budget::Level;
use crate::session::context::{Gauge, Symptom};
use crate::time::Timestamp;

/// A past fact, or an order from a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The forge was asked about the issue.
    IssueObserved {
        title: String,
        open: bool,
        labels: Vec<String>,
        /// The issues that were looked up as its dependencies. About any other issue this observation says nothing.
        #[serde(default)]
        dependencies: Vec<Number>,
        /// Those of its dependencies that are open.
        open_dependencies: Vec<Number>,
        /// The cycle of dependencies it is part of.
        cycle: Option<Vec<Number>>,
        /// When it was asked. Answers can overtake each other; events of earlier versions do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_at: Option<Timestamp>,
    },
    /// The issue carries our claim.
    Claimed,
    /// Somebody else has it, or it is closed: not ours to work on.
    ClaimLost {
        reason: String,
    },
    SessionStarted {
        generation: u32,
    },
    /// The session could not be started, and trying again will not help.
    SessionNotStarted {
        generation: u32,
        error: String,
    },
    /// The session's process is gone (or was ended by us).
    SessionEnded {
        generation: u32,
        exit: Exit,
        /// The last lines of its pane.
        tail: String,
    },
    /// A look at a session that has written no phase.
    IdleLooked {
        generation: u32,
        /// Whether it sat at its prompt without output since the last look.
        at_prompt: bool,
    },
    /// The phase file holds a claim that was not handled yet.
    PhaseClaimed {
        /// The generation whose file it is.
        generation: u32,
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
        /// The generation whose file it is.
        generation: u32,
        /// What is wrong with it.
        why: String,
    },
    /// The agent's branch was brought from its gateway to the forge.
    BranchSynced {
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
    PullRequestOpened {
        number: Number,
    },
    /// The forge was asked about the pull request.
    PullRequestObserved {
        fact: PrFact,
    },
    /// The agent's gateway holds another head than the forge.
    HeadMoved,
    /// CI has begun on this commit (it may have waited for a free runner).
    ChecksStarted {
        sha: Sha,
    },
    /// CI has an answer for this commit.
    ChecksFinished {
        sha: Sha,
        run: u32,
        verdict: CiVerdict,
        /// Whether it was red before it was green, on the same commit.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        flaky: bool,
    },
    /// A review of this commit is on the forge.
    ReviewPosted {
        /// The commit it is bound to.
        sha: Sha,
        verdict: ReviewVerdict,
        by: String,
        /// Whether our own review account wrote it, and not a person.
        #[serde(default)]
        by_agent: bool,
        body: String,
    },
    /// A person lets CI and gates reach the hosts that were refused.
    HostsAllowed {
        by: String,
    },
    /// The working tree could not be set up, so the session of this generation never started.
    SetupFailed {
        generation: u32,
        /// The opening that its successor gets.
        opening: Opening,
        /// How it ended, in a few words.
        error: String,
        /// The end of its log.
        log: String,
    },
    /// A person wants the set-up tried again.
    SetupRetried {
        by: String,
    },
    /// A person says yes or no to the agent's plan.
    PlanDecided {
        by: String,
        accepted: bool,
        /// Why not.
        reason: String,
    },
    /// The task's sessions have these ports, and no others; none after its tree is gone.
    PortsAssigned {
        ports: Vec<u16>,
    },
    /// The merge queue has an answer.
    QueueReported {
        /// The head it was asked to land.
        head: Sha,
        outcome: QueueOutcome,
    },
    /// Git was asked whether the work is on the main branch.
    MergeLooked {
        /// The commit of ours that is there.
        merged_as: Option<Sha>,
    },
    /// The session's context was measured.
    ContextMeasured {
        generation: u32,
        gauge: Gauge,
    },
    /// A sign of a full context was seen.
    SymptomSeen {
        generation: u32,
        symptom: Symptom,
    },
    /// The agent's context was compacted: whatever was known of its size is over.
    ContextCompacted {
        generation: u32,
    },
    /// The agent finished a turn: a good moment to save its work.
    TurnEnded {
        generation: u32,
    },
    /// The agent's turn was cut off by an error of its service.
    TurnFailed {
        generation: u32,
        /// The service's name for the error.
        error: String,
        /// What was said about it.
        details: String,
        /// When it is over, if the service said so.
        #[serde(default)]
        until: Option<Timestamp>,
    },
    /// The agent ended a turn with these words, and people want to read along.
    ResponseGiven {
        generation: u32,
        /// What it said, cleaned and cut.
        text: String,
    },
    /// The agent's program waits at a dialog that nobody may answer for a person.
    DialogSeen {
        generation: u32,
        /// What it asks, in one line.
        what: String,
        picture: String,
    },
    /// The agent's program should have reported by now and has not: its hooks do not work.
    HooksSilent {
        generation: u32,
        /// Whether the project wants no session without them.
        #[serde(default)]
        required: bool,
        #[serde(default)]
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
    /// A person has given its session more.
    BudgetGranted,
    /// Time went by in which this machine was not awake, or its clock was set.
    TimeSkipped {
        by_ms: i64,
    },
    /// A person answered an escalation.
    Answered {
        by: String,
        text: String,
    },
    /// A person works on it in their own checkout.
    Taken {
        by: String,
    },
    /// A person gives it back: the next session goes on from this commit.
    Given {
        by: String,
        head: Sha,
    },
    /// A person or the scheduler gave an order.
    Ordered {
        order: Order,
    },
    /// A deadline may have passed.
    TimePassed,
    /// An effect cannot be done, whatever we try.
    EffectGaveUp {
        effect: String,
        error: String,
    },
    /// A message was sent as often as allowed and never acknowledged.
    MessageUnacknowledged {
        message: i64,
        headline: String,
    },
}

impl Event {
    /// An event about the task's session of one generation.
    pub fn of_session(generation: u32, event: session::Event) -> Self {
        use session::Event as Told;
        match event {
            Told::Started => Self::SessionStarted { generation },
            Told::NotStarted { error } => Self::SessionNotStarted { generation, error },
            Told::Ended { exit, tail } => Self::SessionEnded { generation, exit, tail },
            Told::IdleLooked { at_prompt } => Self::IdleLooked { generation, at_prompt },
            Told::PhaseClaimed { phase, reason, refusal, plan } => {
                Self::PhaseClaimed { generation, phase, reason, refusal, plan }
            }
            Told::PhaseRejected { why } => Self::PhaseRejected { generation, why },
            Told::ContextMeasured { gauge } => Self::ContextMeasured { generation, gauge },
            Told::SymptomSeen { symptom } => Self::SymptomSeen { generation, symptom },
            Told::ContextCompacted => Self::ContextCompacted { generation },
            Told::TurnEnded => Self::TurnEnded { generation },
            Told::TurnFailed { error, details, until } => {
                Self::TurnFailed { generation, error, details, until }
            }
            Told::ResponseGiven { text } => Self::ResponseGiven { generation, text },
            Told::DialogSeen { what, picture } => Self::DialogSeen { generation, what, picture },
            Told::HooksSilent { required, picture } => Self::HooksSilent { generation, required, picture },
            Told::BudgetReached { level, what, until } => Self::BudgetReached { level, what, until },
            Told::BudgetGranted => Self::BudgetGranted,
            Told::MessageUnacknowledged { message, headline } => {
                Self::MessageUnacknowledged { message, headline }
            }
        }
    }
}

impl Event {
    /// An event about the task's contribution.
    pub fn of_contribution(event: contribution::Event) -> Self {
        use contribution::Event as Told;
        match event {
            Told::Pushed { head, protected, risk, secret } => {
                Self::BranchSynced { head, protected, risk, secret }
            }
            Told::Opened { number } => Self::PullRequestOpened { number },
            Told::Observed { fact } => Self::PullRequestObserved { fact },
            Told::ChecksStarted { sha } => Self::ChecksStarted { sha },
            Told::ChecksFinished { sha, run, verdict, flaky } => {
                Self::ChecksFinished { sha, run, verdict, flaky }
            }
            Told::Reviewed { sha, verdict, by, by_agent, body } => {
                Self::ReviewPosted { sha, verdict, by, by_agent, body }
            }
            Told::QueueReported { head, outcome } => Self::QueueReported { head, outcome },
        }
    }
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
    Resume,
    /// Give up, session ended, work kept.
    Stop,
    /// A new session goes on in the same tree.
    Restart,
    /// A new session begins anew, in a new tree from today's main branch. The old tree is captured.
    RestartFresh,
}
