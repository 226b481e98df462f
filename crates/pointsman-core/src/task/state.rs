//! The snapshot of a task. Written to the store after every transition.

use serde::{Deserialize, Serialize};

use super::phase::{Phase, Refusal, RefusalStatus};
use super::plan::PlanStage;
use crate::ids::{Number, Sha, TaskKey};
use crate::part::contribution::Contribution;
use crate::part::question::{Owner, Question, Source};
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

/// Everything remembered about one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub key: TaskKey,
    /// The issue's title, outside text.
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
    pub session: Session,
    /// The agent's branch on its way to the main branch.
    pub contribution: Contribution,
    /// How often `done` was claimed without a merge.
    #[serde(default)]
    pub premature_done: u32,
    /// How often its working tree could not be set up. No attempt of the agent, so no new beginning forgets it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub setup_failures: u32,
    /// The ports that its sessions have for themselves, from its claim until its tree is removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// The agent's plan, where the project wants one before the work.
    #[serde(default, skip_serializing_if = "PlanStage::is_due")]
    pub plan: PlanStage,
    /// The question to a person, while escalated.
    pub escalation: Option<Question>,
    /// The agent's refusal, while refused.
    pub refusal: Option<Refusal>,
    /// When the present state ends by itself, unless it waits for its contribution.
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
    /// The person who works on it in their own checkout, while paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_by: Option<String>,
    /// The commit that a person gave back last, and who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Given>,
    /// A diagnostic comment is owed as soon as the session has ended.
    pub diagnosis_due: bool,
    /// How often the issue was claimed: a review that counted for an earlier claim counts anew.
    #[serde(default)]
    pub claims: u32,
    /// How many comments were ordered: tells them apart.
    #[serde(default)]
    pub comments: u32,
}

/// Work that a person gave back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    pub by: String,
    pub head: Sha,
}

impl Task {
    /// The role of the sessions that work on tasks.
    pub const ROLE: Role = Role::Dev;

    /// Whether its agent refused it because of other issues, and it begins again by itself when they are closed.
    pub fn waits_for_issues(&self) -> bool {
        let unmet = self.refusal.as_ref().filter(|refusal| refusal.status == RefusalStatus::UnmetDependency);
        // Before the forge was asked about them, they are taken to be open.
        let may_be_open = !self.open_dependencies.is_empty() || !self.block_seen;
        self.state == State::Refused && may_be_open && unmet.is_some_and(|unmet| !unmet.blocked_by.is_empty())
    }

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
            session: Session::default(),
            contribution: Contribution::new(branch),
            premature_done: 0,
            setup_failures: 0,
            ports: Vec::new(),
            plan: PlanStage::Due,
            escalation: None,
            refusal: None,
            deadline: None,
            handed_in: false,
            dependencies_seen: false,
            block_seen: false,
            block_seen_at: None,
            taken_by: None,
            given: None,
            diagnosis_due: false,
            claims: 0,
            comments: 0,
        }
    }

    /// The next time at which time alone changes something.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let question = self.escalation.as_ref().and_then(Question::wake_at);
        [self.ends_at(), question, self.session.wake_at()].into_iter().flatten().min()
    }

    /// The moment at which the present state ends by itself.
    pub fn ends_at(&self) -> Option<Timestamp> {
        self.contribution.wake_at().or(self.deadline)
    }

    /// Whether this commit may land: it is the head, green and approved, and nothing was decided
    /// otherwise since. The merge queue asks right before it pushes, because an order to leave the
    /// queue takes its time.
    pub fn wants_to_land(&self, head: &Sha) -> bool {
        self.contribution.is_queued(head)
    }

    /// The place that its questions come from.
    pub fn source(&self) -> Source {
        Source {
            project: self.key.project.clone(),
            owner: Owner::Task(self.key.issue),
            issue: Some(self.key.issue),
            pr: self.contribution.pr(),
            session: self.session_id(),
        }
    }

    /// The present session's id, if one may exist.
    pub fn session_id(&self) -> Option<String> {
        (self.session.stage != Stage::None).then(|| self.key.session(self.session.generation))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
