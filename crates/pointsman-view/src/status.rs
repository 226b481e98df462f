//! `status`: the daemon, the projects, and what needs a person.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pointsman_core::decision::{self, Decision};
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::session::budget::{Spent, TokenClasses};
use pointsman_core::session::quota::Window;
use pointsman_core::task::State;
use pointsman_core::vault::ActionId;
use pointsman_core::words;
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::inbox::Question;
use crate::notice::BrokenNotifier;
use crate::task::{Task, usd};
use crate::vault::Action;

/// Everything at a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// None if no daemon runs, or if it does not answer.
    pub daemon: Option<Daemon>,
    /// Whether a daemon runs that does not answer. Then everything else is what its database says.
    #[serde(default)]
    pub daemon_silent: bool,
    pub state_dir: PathBuf,
    pub projects: Vec<Project>,
    pub needs_a_person: Vec<Task>,
    pub vault: Vec<Action>,
    /// Open questions, as `inbox`.
    #[serde(default)]
    pub questions: Vec<Question>,
    /// Notifiers that do not work.
    pub notifiers: Vec<BrokenNotifier>,
    /// Decisions that were made while no daemon ran and that have no effect until they are confirmed.
    #[serde(default)]
    pub unconfirmed: Vec<Unconfirmed>,
    /// Set while nothing starts because of `halt`.
    #[serde(default)]
    pub halted: Option<Halted>,
    /// What landed since a person last looked at `status` in a terminal.
    #[serde(default)]
    pub landed: Vec<Landed>,
    /// When that was; 24 hours ago for the first time.
    #[serde(default)]
    pub landed_since: Option<Time>,
    /// Tasks that somebody or something works on.
    #[serde(default)]
    pub running: Vec<Pending>,
    /// Tasks that nothing works on, and what they wait for.
    #[serde(default)]
    pub waiting: Vec<Pending>,
}

/// A change that reached the main branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    pub project: ProjectName,
    pub issue: Option<Number>,
    pub pr: Option<Number>,
    /// The title of its issue, else its branch.
    pub title: String,
    pub at: Time,
}

/// A task that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub project: ProjectName,
    pub issue: Number,
    pub title: String,
    pub state: State,
    pub since: Time,
    /// In words.
    pub waiting_for: Option<String>,
}

/// A halt of all work: `halt`, and `status` as long as it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halted {
    pub by: String,
    pub at: Time,
    /// The sessions that were captured and ended.
    #[serde(default)]
    pub sessions: Vec<String>,
}

/// The answer to `resume`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    pub was_halted: bool,
}

/// A decision that was made while no daemon ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unconfirmed {
    pub project: ProjectName,
    pub decision: DecisionKind,
    pub issue: Option<Number>,
    pub pr: Option<Number>,
    pub action: Option<ActionId>,
    pub by: String,
    pub at: Time,
    /// The command that confirms it, ready for a shell.
    pub confirm: String,
}

/// The kind of a decision. A comment on an issue whose task has asked a question is an answer as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    Approval,
    Answer,
    Comment,
    VaultApproval,
    VaultRejection,
}

impl Unconfirmed {
    /// A kept decision of a project.
    pub fn new(project: &ProjectName, kept: &decision::Unconfirmed) -> Self {
        let (kind, issue, pr, action) = match &kept.decision {
            Decision::Approval { pr, .. } => (DecisionKind::Approval, None, Some(*pr), None),
            Decision::Answer { issue, .. } => (DecisionKind::Answer, Some(*issue), None, None),
            Decision::Comment { issue, .. } => (DecisionKind::Comment, Some(*issue), None, None),
            Decision::VaultApproval { id, .. } => (DecisionKind::VaultApproval, None, None, Some(id.clone())),
            Decision::VaultRejection { id, .. } => {
                (DecisionKind::VaultRejection, None, None, Some(id.clone()))
            }
        };
        Self {
            project: project.clone(),
            decision: kind,
            issue,
            pr,
            action,
            by: kept.by.clone(),
            at: kept.at.into(),
            confirm: words::decision::command(project, &kept.decision),
        }
    }
}

/// The daemon, as it answers for itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    pub pid: u32,
    pub version: String,
    pub started_at: Time,
    pub projects: Vec<ProjectName>,
    /// Problems it knows of: a project that cannot be served, a disk that is full.
    pub problems: Vec<String>,
}

/// A project at a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Project {
    pub name: ProjectName,
    pub config_path: PathBuf,
    pub checkout: PathBuf,
    /// How many tasks there are in each state; states without a task are absent.
    pub tasks: BTreeMap<State, usize>,
    pub sessions: usize,
    pub merge_queue: usize,
    pub line_stopped: Option<String>,
    pub spent_today: SpentToday,
    pub rate_limits: Vec<RateLimit>,
    /// What people should know about its settings and its checkout, a sentence each: CI is off, commits that are not on
    /// the forge.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// The spending of a project's sessions since midnight, UTC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpentToday {
    /// None if nobody told.
    pub tokens: Option<u64>,
    /// None if nobody told.
    pub token_classes: Option<TokenClasses>,
    /// None if nobody told.
    pub usd: Option<f64>,
    pub turns: u64,
    pub restarts: u64,
    pub wall_seconds: u64,
    /// The part of it in sessions that told neither tokens nor money.
    pub unreported_seconds: u64,
}

impl From<Spent> for SpentToday {
    fn from(spent: Spent) -> Self {
        Self {
            tokens: spent.known_tokens(),
            token_classes: spent.known_classes(),
            usd: usd(spent),
            turns: spent.turns,
            restarts: spent.restarts,
            wall_seconds: spent.millis / 1000,
            unreported_seconds: spent.unreported_millis / 1000,
        }
    }
}

/// A rate limit of the account that a project's agents use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateLimit {
    pub name: String,
    pub used_percent: f64,
    pub resets_at: Time,
}

impl From<&Window> for RateLimit {
    fn from(window: &Window) -> Self {
        Self {
            name: window.name.clone(),
            used_percent: f64::from(window.used_permille) / 10.0,
            resets_at: window.resets_at.into(),
        }
    }
}
