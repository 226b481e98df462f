//! Orders to the world. They wait in the outbox until they are done.

use serde::{Deserialize, Serialize};

use crate::deed::Act;
use crate::hand_in::Need;
use crate::ids::Sha;
use crate::words;

/// One order. Performing it twice must be the same as once: each has a way to find out whether it
/// already happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Put our claim on the issue: label `backlog` goes, `in-progress` comes, we are the assignee.
    ClaimIssue,
    /// Prepare the working tree, the gateway, the phase file and the prompt, and start the agent.
    StartSession {
        generation: u32,
        /// What the first prompt tells.
        opening: Opening,
    },
    /// Capture the work, then end the session; its pane's last lines come back.
    EndSession {
        generation: u32,
        /// How this end is recorded.
        exit: Exit,
    },
    /// Save what is in the working tree, whatever the agent committed.
    Checkpoint {
        /// What it is taken for.
        why: String,
    },
    /// Bring the agent's branch from its gateway to the forge.
    SyncBranch,
    /// Find or open the pull request of the branch.
    OpenPullRequest,
    /// Have CI look at exactly this commit.
    RunChecks {
        sha: Sha,
        run: u32,
    },
    /// Ask for a review of this commit.
    RequestReview {
        sha: Sha,
    },
    /// Put the branch into the merge queue at this head.
    Enqueue {
        /// The head that is green and approved.
        head: Sha,
    },
    Dequeue,
    Deliver {
        /// The session it is for; another generation never gets it.
        generation: u32,
        /// The first words.
        headline: Headline,
        /// The rest of the line: ours, never outside text.
        subject: String,
        /// What goes into the file in the inbox; may hold outside text.
        details: String,
    },
    /// Change labels: set and read back.
    SetLabels {
        add: Vec<String>,
        /// These must not.
        remove: Vec<String>,
    },
    /// Comment on the issue, once.
    Comment {
        marker: String,
        body: String,
    },
    Notify(Notice),
    CloseIssue,
    /// Write the last CI result where the protocol has it.
    RecordCiResult {
        text: String,
    },
    /// Remove the protocol's state files; the transcript moves to the state directory.
    CleanUp,
    /// Ask git whether the work is on the main branch.
    VerifyMerge,
    /// Tell people of the question that its owner asks, in the thread of the question.
    NotifyQuestion,
    /// Tell people the help that what a run hands in needs.
    NotifyNeed {
        need: Need,
    },
    /// Find ports for the sessions of a run that nobody else has.
    ReservePorts,
    /// Read the file in which the session of a run left its result.
    ReadResult {
        generation: u32,
    },
    /// Have the vault's agent look at the action of this hash.
    LookAtAction {
        hash: String,
    },
    /// End the look at the action of this hash: nobody waits for it any more.
    CallOffLook {
        hash: String,
    },
    /// Run the handler of an approved action. One that may have begun is never begun again.
    FireAction {
        /// Which of its runs, counted from 1.
        firing: u32,
    },
    /// Tell people how the action stands.
    NotifyAction,
    /// Change something on the forge for a role or a run.
    Deed {
        /// Its name among the deeds of its owner.
        name: String,
        #[serde(flatten)]
        act: Act,
    },
    /// Tell people a notice by the notifier in whose lane it is.
    Tell {
        /// The number of the delivery that it is.
        delivery: i64,
    },
}

impl Effect {
    /// Whether it may take minutes, because a program of the operator's does it. It must not keep others waiting.
    pub fn takes_long(&self) -> bool {
        // A server of the operator's may not answer for long.
        matches!(self, Self::FireAction { .. } | Self::Tell { .. })
    }

    /// A short name for logs and keys.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ClaimIssue => "claim_issue",
            Self::StartSession { .. } => "start_session",
            Self::EndSession { .. } => "end_session",
            Self::Checkpoint { .. } => "checkpoint",
            Self::SyncBranch => "sync_branch",
            Self::OpenPullRequest => "open_pull_request",
            Self::RunChecks { .. } => "run_checks",
            Self::RequestReview { .. } => "request_review",
            Self::Enqueue { .. } => "enqueue",
            Self::Dequeue => "dequeue",
            Self::Deliver { .. } => "deliver",
            Self::SetLabels { .. } => "set_labels",
            Self::Comment { .. } => "comment",
            Self::Notify(_) => "notify",
            Self::CloseIssue => "close_issue",
            Self::RecordCiResult { .. } => "record_ci_result",
            Self::CleanUp => "clean_up",
            Self::VerifyMerge => "verify_merge",
            Self::NotifyQuestion => "notify_question",
            Self::NotifyNeed { .. } => "notify_need",
            Self::ReservePorts => "reserve_ports",
            Self::ReadResult { .. } => "read_result",
            Self::LookAtAction { .. } => "look_at_action",
            Self::CallOffLook { .. } => "call_off_look",
            Self::FireAction { .. } => "fire_action",
            Self::NotifyAction => "notify_action",
            Self::Deed { .. } => "deed",
            Self::Tell { .. } => "tell",
        }
    }
}

/// The subject of a session's first prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// The issue is new to the agent.
    Fresh,
    /// An earlier session worked on it: what changed so far, last phase, CI, reviews.
    Recovery,
    /// An earlier session handed over because its context was full.
    Continuation,
    /// A person wants a new beginning: the issue is new to the agent, and so is its tree, from today's main branch.
    Anew,
    /// A person had the work and gives it back: the tree is new, from their commit.
    Given,
}

/// The way in which a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// The task is merged and closed.
    Done,
    /// The agent said failed, or refused.
    Failed,
    /// It wrote no phase for the session time-out.
    IdleTimeout,
    /// It went back to its prompt without ever writing a phase.
    IdlePrompt,
    Crashed,
    /// Its program ended by itself, without an error.
    Exited,
    EscalationTimeout,
    /// Its limits are used up.
    Exhausted,
    /// A person paused or stopped the task, or closed the issue.
    Stopped,
    /// It saved its work and went, because its context was full.
    Handoff,
    /// It was asked to and did not, in time.
    Stuck,
}

impl Exit {
    /// Those after which a session is started only because this one is gone: the next one is a restart.
    pub const UNEXPECTED: [Self; 3] = [Self::Crashed, Self::Exited, Self::IdleTimeout];

    /// The name scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::IdleTimeout => "idle_timeout",
            Self::IdlePrompt => "idle_prompt",
            Self::Crashed => "crashed",
            Self::Exited => "exited",
            Self::EscalationTimeout => "escalation_timeout",
            Self::Exhausted => "exhausted",
            Self::Stopped => "stopped",
            Self::Handoff => "handoff",
            Self::Stuck => "stuck",
        }
    }
}

/// The first words of a message to an agent. Agents match on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Headline {
    CiPassed,
    /// CI is red; the log is attached.
    CiFailed,
    /// CI did not answer in time.
    CiTimeout,
    /// A reviewer wants changes; the text is attached.
    ChangesRequested,
    Approved,
    NoReview,
    /// `done` was claimed too early.
    NotMerged,
    /// What was claimed cannot be taken as it is.
    WritePhase,
    /// The branch does not apply to the main branch.
    MergeConflict,
    /// The work is on the main branch.
    Merged,
    Answer,
    /// The context fills up: save what is there.
    CheckpointNow,
    /// The context is full: a successor goes on.
    SaveAndExit,
}

impl Headline {
    /// The words that the agent sees first.
    pub fn text(self) -> &'static str {
        words::message::headline(self)
    }

    /// Whether it stands for what a person says. Claude Code tells its model about everything that comes through a hook
    /// or a socket that no user has said it, so this is typed.
    pub fn is_from_a_person(self) -> bool {
        match self {
            Self::Answer => true,
            Self::CiPassed
            | Self::CiFailed
            | Self::CiTimeout
            | Self::ChangesRequested
            | Self::Approved
            | Self::NoReview
            | Self::NotMerged
            | Self::WritePhase
            | Self::MergeConflict
            | Self::Merged
            | Self::CheckpointNow
            | Self::SaveAndExit => false,
        }
    }
}

/// Something people should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The first line.
    pub title: String,
    /// The rest: why, where to look, what to do.
    pub body: String,
    /// Whether a person has to act.
    pub urgent: bool,
    /// How often this was said before (0: for the first time).
    pub repeat: u32,
}
