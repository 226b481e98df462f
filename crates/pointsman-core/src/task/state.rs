//! The snapshot of a task. Written to the store after every transition.

use serde::{Deserialize, Serialize};

use super::phase::{Phase, Refusal};
use crate::ids::{Number, Sha, TaskKey};
use crate::part::session::{Demand, Session, Stage};
use crate::role::Role;
use crate::time::Timestamp;

/// The state of a task. The names are part of the surface that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Backlog,
    /// Queued, but an issue it depends on is still open.
    WaitingDependencies,
    /// Claimed; a session works on it or is being brought back.
    Working,
    AwaitingCi,
    AwaitingReview,
    /// Green and approved; waits for its turn on the main branch.
    MergeQueue,
    /// A person is asked; the session stays alive.
    Escalated,
    /// Stuck until a person lifts the label or starts it again.
    Blocked,
    /// The agent turned it down.
    Refused,
    /// Set aside by a person.
    Paused,
    /// On the main branch; the session is being told.
    Merged,
    Closed,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 12] = [
        Self::Backlog,
        Self::WaitingDependencies,
        Self::Working,
        Self::AwaitingCi,
        Self::AwaitingReview,
        Self::MergeQueue,
        Self::Escalated,
        Self::Blocked,
        Self::Refused,
        Self::Paused,
        Self::Merged,
        Self::Closed,
    ];

    /// The name scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Backlog => "backlog",
            Self::WaitingDependencies => "waiting_dependencies",
            Self::Working => "working",
            Self::AwaitingCi => "awaiting_ci",
            Self::AwaitingReview => "awaiting_review",
            Self::MergeQueue => "merge_queue",
            Self::Escalated => "escalated",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
            Self::Paused => "paused",
            Self::Merged => "merged",
            Self::Closed => "closed",
        }
    }

    /// Whether it takes one of the project's places (`dev.concurrency`).
    pub fn takes_a_place(self) -> bool {
        matches!(self, Self::Working | Self::AwaitingCi | Self::AwaitingReview | Self::Escalated)
    }

    /// Whether its agent works, or waits to be told to, so that the budget counts.
    pub fn spends(self) -> bool {
        self.demand().spends()
    }

    /// Whether a session may be alive in it.
    pub fn has_session(self) -> bool {
        self.demand().allows_session()
    }

    /// The need that a task in this state has of its session.
    pub fn demand(self) -> Demand {
        match self {
            Self::Working => Demand::Work,
            Self::AwaitingCi | Self::AwaitingReview => Demand::StandBy,
            Self::Escalated => Demand::Answer,
            Self::MergeQueue => Demand::Landing,
            Self::Merged => Demand::Farewell,
            Self::Backlog
            | Self::WaitingDependencies
            | Self::Blocked
            | Self::Refused
            | Self::Paused
            | Self::Closed => Demand::Nothing,
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The verdict of CI on the head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Ci {
    #[default]
    None,
    /// Running on this commit; `run` counts the tries on it.
    Pending {
        sha: Sha,
        run: u32,
    },
    Passed {
        sha: Sha,
    },
    Failed {
        sha: Sha,
        /// Whether infrastructure was at fault.
        infra: bool,
        summary: String,
    },
    /// No answer in time.
    TimedOut {
        sha: Sha,
    },
}

impl Ci {
    /// Whether exactly this commit is green.
    pub fn passed(&self, head: &Sha) -> bool {
        matches!(self, Self::Passed { sha } if sha == head)
    }
}

/// The verdict of the reviewer on the head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Review {
    /// No review counts for the present head.
    #[default]
    None,
    Approved {
        sha: Sha,
        by: String,
    },
    /// Changes were requested at this commit.
    ChangesRequested {
        sha: Sha,
        by: String,
        body: String,
    },
}

/// The attempts that a task has used up. They outlive sessions, so that a new session does not start from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempts {
    /// CI failures handed to the agent.
    pub ci_fixes: u32,
    /// Change requests handed to the agent.
    pub review_rounds: u32,
    /// Infrastructure failures retried since CI was last ordered for a new head.
    pub infra_retries: u32,
    /// Merge conflicts handed to the agent.
    pub merge_conflicts: u32,
    /// `done` claimed without a merge.
    pub premature_done: u32,
}

/// The cause for which a person was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationCause {
    Agent,
    /// CI did not answer, or its infrastructure failed again.
    Ci,
    Review,
    /// Something else the daemon could not settle.
    Daemon,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    pub cause: EscalationCause,
    pub reason: String,
    pub at: Timestamp,
    /// When it is asked again.
    pub renotify_at: Timestamp,
    /// How often it was asked.
    pub notices: u32,
}

/// Everything remembered about one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub key: TaskKey,
    /// The title, outside text.
    pub title: String,
    pub state: State,
    pub since: Timestamp,
    /// What the agent last claimed in this claim of the issue.
    pub phase: Option<Phase>,
    /// Why it is blocked, escalated, refused or paused.
    pub reason: Option<String>,
    /// Open, labelled `backlog`, not `blocked`, all dependencies closed.
    pub ready: bool,
    /// Issues that must be closed first.
    pub open_dependencies: Vec<Number>,
    /// Our claim was ordered: the issue carries it, or soon will.
    #[serde(default)]
    pub claimed: bool,
    /// The branch the agent pushes.
    pub branch: String,
    pub pr: Option<Number>,
    /// The head of the branch as the forge has it.
    pub head: Option<Sha>,
    pub session: Session,
    pub ci: Ci,
    /// How often CI was ordered: tells answers of different tries apart.
    pub ci_run: u32,
    /// The last lines of the last run that was not green, for the people who are asked about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ci_log_end: String,
    pub review: Review,
    /// What has been used up.
    pub attempts: Attempts,
    /// The question to a person, while escalated.
    pub escalation: Option<Escalation>,
    /// The agent's refusal, while refused.
    pub refusal: Option<Refusal>,
    /// When the present state ends by itself.
    pub deadline: Option<Timestamp>,
    /// Set aside while its work was handed in: it goes on with that.
    #[serde(default)]
    pub handed_in: bool,
    /// Refused because of issues that were seen open: when they close, the block goes.
    #[serde(default)]
    pub dependencies_seen: bool,
    /// The `blocked` (or `underspecified`) label we set was seen on the forge: its absence means
    /// that a person lifted it.
    pub block_seen: bool,
    /// When the forge was asked for the answer that showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_seen_at: Option<Timestamp>,
    /// A diagnostic comment is owed as soon as the session has ended.
    pub diagnosis_due: bool,
    /// The main branch holds this commit of ours.
    pub merged_as: Option<Sha>,
    /// How often the issue was claimed: a review that counted for an earlier claim counts anew.
    #[serde(default)]
    pub claims: u32,
    /// How many comments were ordered: tells them apart.
    #[serde(default)]
    pub comments: u32,
}

impl Task {
    /// The role of the sessions that work on tasks.
    pub const ROLE: Role = Role::Dev;

    /// A task for an issue seen for the first time.
    pub fn new(key: TaskKey, title: String, branch: String, now: Timestamp) -> Self {
        Self {
            key,
            title,
            state: State::Backlog,
            since: now,
            phase: None,
            reason: None,
            ready: false,
            open_dependencies: Vec::new(),
            claimed: false,
            branch,
            pr: None,
            head: None,
            session: Session::default(),
            ci: Ci::None,
            ci_run: 0,
            review: Review::None,
            attempts: Attempts::default(),
            escalation: None,
            refusal: None,
            deadline: None,
            handed_in: false,
            dependencies_seen: false,
            block_seen: false,
            block_seen_at: None,
            diagnosis_due: false,
            merged_as: None,
            claims: 0,
            comments: 0,
            ci_log_end: String::new(),
        }
    }

    /// The next time at which time alone changes something.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let renotify = self.escalation.as_ref().map(|e| e.renotify_at);
        [self.deadline, renotify, self.session.wake_at()].into_iter().flatten().min()
    }

    /// Whether this commit may land: it is the head, green and approved, and nothing was decided
    /// otherwise since. The merge queue asks right before it pushes, because an order to leave the
    /// queue takes its time.
    pub fn wants_to_land(&self, head: &Sha) -> bool {
        self.state == State::MergeQueue && self.head.as_ref() == Some(head)
    }

    /// The present session's id, if one may exist.
    pub fn session_id(&self) -> Option<String> {
        (self.session.stage != Stage::None).then(|| self.key.session(self.session.generation))
    }
}
