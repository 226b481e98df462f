//! Tasks: `task list`, `task show`, `task explain` and the answers to orders about them.

use std::path::PathBuf;

use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::session::budget::{Spent, TokenClasses};
use pointsman_core::session::context::Gauge;
use pointsman_core::task::{self as core, Phase, State};
use pointsman_core::words;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;

/// A task with what its sessions have spent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub project: ProjectName,
    pub issue: Number,
    pub title: String,
    pub state: State,
    pub phase: Option<Phase>,
    pub reason: Option<String>,
    pub branch: String,
    pub pr: Option<Number>,
    pub head_sha: Option<Sha>,
    pub session: Option<String>,
    pub generation: u32,
    pub ci: CiStatus,
    pub ci_sha: Option<Sha>,
    pub review: ReviewStatus,
    pub review_sha: Option<Sha>,
    pub attempts: Attempts,
    pub since: Time,
    pub deadline: Option<Time>,
    pub waiting_for: Option<String>,
    pub restart_at: Option<Time>,
    pub open_dependencies: Vec<Number>,
    pub merged_as: Option<Sha>,
    pub parked_until: Option<Time>,
    pub context_percent: Option<f64>,
    /// None if nobody told.
    pub cost_usd: Option<f64>,
    /// None if nobody told.
    pub tokens: Option<u64>,
    /// None if nobody told.
    pub token_classes: Option<TokenClasses>,
    pub turns: u64,
    pub restarts: u64,
    pub wall_seconds: u64,
}

impl Task {
    /// The view of a task; `spent` is what all of its sessions have spent.
    pub fn new(task: &core::Task, spent: Spent) -> Self {
        let contribution = &task.contribution;
        let review = match contribution.review() {
            core::Review::None => ReviewStatus::None,
            core::Review::Approved { .. } => ReviewStatus::Approved,
            core::Review::ChangesRequested { .. } => ReviewStatus::ChangesRequested,
        };
        let ci = CiStatus::of(contribution.ci());
        let head = contribution.head().cloned();
        Self {
            project: task.key.project.clone(),
            issue: task.key.issue,
            title: task.title.clone(),
            state: task.state,
            phase: task.phase,
            reason: task.reason.clone(),
            branch: contribution.branch.clone(),
            pr: contribution.pr(),
            head_sha: head.clone(),
            session: task.session_id(),
            generation: task.session.generation,
            ci,
            ci_sha: head.clone().filter(|_| ci != CiStatus::None),
            review,
            review_sha: head.filter(|_| review != ReviewStatus::None),
            attempts: Attempts::of(task),
            since: task.since.into(),
            deadline: task.ends_at().map(Time),
            waiting_for: words::task::waiting_for(task),
            restart_at: task.session.restart_at.map(Time),
            open_dependencies: task.open_dependencies.clone(),
            merged_as: contribution.merged_as().cloned(),
            parked_until: task.session.parked_until.map(Time),
            context_percent: task.session.context.gauge.map(Gauge::percent),
            cost_usd: usd(spent),
            tokens: spent.known_tokens(),
            token_classes: spent.known_classes(),
            turns: spent.turns,
            restarts: spent.restarts,
            wall_seconds: spent.millis / 1000,
        }
    }
}

/// The attempts that have a limit, each counted since the task was last begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    pub ci_fixes: u32,
    pub review_rounds: u32,
    pub restarts: u32,
    pub infra_retries: u32,
    pub merge_conflicts: u32,
    pub premature_done: u32,
    pub handoffs: u32,
}

impl Attempts {
    fn of(task: &core::Task) -> Self {
        let core::Attempts { ci_fixes, review_rounds, infra_retries, merge_conflicts } =
            task.contribution.attempts;
        let (restarts, handoffs) = (task.session.restarts, task.session.handoffs);
        let premature_done = task.premature_done;
        Self { ci_fixes, review_rounds, restarts, infra_retries, merge_conflicts, premature_done, handoffs }
    }
}

/// Money in dollars; it is counted in millionths of one. None if nobody told what was spent.
pub fn usd(spent: Spent) -> Option<f64> {
    spent.known_micro_usd().map(|micro_usd| micro_usd as f64 / 1_000_000.0)
}

/// The end of the terminal of a session that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWords {
    pub session: Option<String>,
    /// How it ended, as `session list` says it.
    pub exit: String,
    pub at: Time,
    pub text: String,
}

/// A pull request that takes back what landed for an issue: `task undo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    pub issue: Number,
    pub pr: Number,
    pub branch: String,
    /// The commit of main that it takes back, the last one if there are several.
    pub reverts: Sha,
    /// Where people look at it.
    pub link: String,
}

/// The work of a task on its way to a person's checkout: the control socket's answer to `task take`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    pub branch: String,
    /// The commit that was checked out.
    pub head: Sha,
    /// All files as they were left: `head`, or a commit on top of it.
    pub commit: Sha,
    /// The repository to fetch from.
    pub repository: PathBuf,
    /// The reference in it.
    pub reference: String,
    pub session: String,
    /// The id of the agent's conversation, and the file that has it.
    pub conversation: Option<(String, PathBuf)>,
}

/// A person has the work of a task: `task take`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    pub issue: Number,
    pub branch: String,
    pub head: Sha,
    /// Whether the agent left changes that it had not committed. They are in the checkout, not committed.
    pub uncommitted: bool,
    pub session: String,
    /// The file with the conversation.
    pub conversation: Option<PathBuf>,
    /// The command that goes on with the conversation, if its program can.
    pub resume: Option<String>,
}

/// The agent goes on from a person's commits: `task give`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    pub issue: Number,
    pub state: State,
    pub branch: String,
    pub head: Sha,
}

/// The verdict of CI on the head, without the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CiStatus {
    None,
    Pending,
    Passed,
    Failed,
    TimedOut,
}

impl CiStatus {
    /// The verdict without its details.
    pub fn of(ci: &core::Ci) -> Self {
        match ci {
            core::Ci::None => Self::None,
            core::Ci::Pending { .. } => Self::Pending,
            core::Ci::Passed => Self::Passed,
            core::Ci::Failed { .. } => Self::Failed,
            core::Ci::TimedOut => Self::TimedOut,
        }
    }

    /// The name that scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pending => "pending",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
        }
    }
}

/// The verdict of reviewers on the head, without the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewStatus {
    None,
    Approved,
    ChangesRequested,
}

impl ReviewStatus {
    /// The name that scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Approved => "approved",
            Self::ChangesRequested => "changes_requested",
        }
    }
}

/// The answer to an order about a task: where that leaves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    pub issue: Number,
    pub state: State,
}

/// `task explain`: the facts that led to the present state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    pub issue: Number,
    pub title: String,
    pub state: State,
    pub facts: Vec<String>,
    pub waiting_for: Option<String>,
    pub deadline: Option<Time>,
    /// The last session that ended, unless it was meant to.
    #[serde(default)]
    pub last_words: Option<LastWords>,
    pub history: Vec<HistoryEntry>,
}

/// An entry of a task's history. `from` and `to` are the states it moved between; an entry of another kind has neither.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub seq: i64,
    pub at: Time,
    pub kind: String,
    pub session: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub data: Value,
}

/// The part of a task that the status line of its session shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusLine {
    pub state: State,
    pub phase: Option<Phase>,
    pub ci: CiStatus,
    pub pr: Option<Number>,
    /// Its place in the merge queue, from 1.
    pub queue_position: Option<usize>,
}

#[cfg(test)]
mod tests {
    use pointsman_core::config::Config;
    use pointsman_core::ids::{ProjectName, Sha, TaskKey};
    use pointsman_core::part::contribution::{self, Fact, OwnerFacts};
    use pointsman_core::session::budget::Spent;
    use pointsman_core::session::context::{Gauge, Source};
    use pointsman_core::task::{self as core, Stage, State};
    use pointsman_core::time::Timestamp;

    use super::Task;

    #[test]
    fn a_task_has_every_field_that_scripts_rely_on() {
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue: 3 };
        let mut task = core::Task::new(key, "t".into(), "pointsman/issue-3".into(), Timestamp(0));
        task.state = State::AwaitingCi;
        (task.session.generation, task.session.stage) = (2, Stage::Alive);
        let head = Sha::new(&"a".repeat(40)).unwrap();
        let config = Config::parse("name = \"shop\"\n[ci]\ncommand = [\"./ci.sh\"]", "test").unwrap();
        let policy = contribution::Policy::new(&config);
        let around = OwnerFacts { asked: None, policy: &policy, now: Timestamp(0) };
        task.contribution
            .happened(&Fact::Pushed { head: Some(&head), protected: &[], secret: None, risk: None }, &around)
            .unwrap();
        task.session.context.gauge = Some(Gauge { used_permille: 935, source: Source::Transcript });
        let spent = Spent { micro_usd: 1_270_000, ..Spent::default() };
        let value = serde_json::to_value(Task::new(&task, spent)).unwrap();
        for field in [
            "issue",
            "title",
            "state",
            "phase",
            "reason",
            "branch",
            "pr",
            "head_sha",
            "session",
            "generation",
            "ci",
            "review",
            "attempts",
            "since",
            "deadline",
            "waiting_for",
        ] {
            assert!(value.get(field).is_some(), "{field}");
        }
        for field in ["ci_fixes", "review_rounds", "restarts", "handoffs"] {
            assert_eq!(value["attempts"][field], 0, "{field}");
        }
        assert_eq!(value["state"], "awaiting_ci");
        assert_eq!(value["session"], "dev-shop-3.2");
        assert_eq!((&value["ci"], &value["review"]), (&"pending".into(), &"none".into()));
        assert_eq!(value["deadline"], "1970-01-01T00:30:00.000Z", "the time-out of CI");
        assert_eq!((&value["context_percent"], &value["cost_usd"]), (&93.5.into(), &1.27.into()));
    }
}
