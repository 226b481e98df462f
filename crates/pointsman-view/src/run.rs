//! Runs of formulas, and when they run by themselves: `run …`, `formula run`, `step done`, `schedule`.

use pointsman_core::ids::ProjectName;
use pointsman_core::role::Role;
use pointsman_core::run::{self as core, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;

/// A run; `step` is the one that is next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// None for a dry run, which is not written down; it has no session either.
    pub run: Option<RunId>,
    pub project: ProjectName,
    pub formula: String,
    pub role: Role,
    pub model: Option<String>,
    pub step: Option<String>,
    pub steps: Vec<Step>,
    pub status: Status,
    pub reason: Option<String>,
    pub by: String,
    pub session: Option<String>,
    pub generation: u32,
    pub started_at: Time,
    pub ended_at: Option<Time>,
    pub open: bool,
    pub result: Option<Value>,
    /// What the session of a dry run would read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub id: String,
    pub title: String,
    pub done_at: Option<Time>,
}

/// The standing of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Starting,
    Running,
    Done,
    Failed,
    Stopped,
    DryRun,
}

impl Status {
    /// The name that scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::DryRun => "dry_run",
        }
    }
}

impl From<core::Status> for Status {
    fn from(status: core::Status) -> Self {
        match status {
            core::Status::Starting => Self::Starting,
            core::Status::Running => Self::Running,
            core::Status::Done => Self::Done,
            core::Status::Failed => Self::Failed,
            core::Status::Stopped => Self::Stopped,
        }
    }
}

impl Run {
    /// A run that nobody begins: it has no number and no session, but the prompt that a session would read.
    pub fn dry(run: &core::Run, prompt: String) -> Self {
        Self { run: None, session: None, status: Status::DryRun, prompt: Some(prompt), ..Self::from(run) }
    }
}

impl From<&core::Run> for Run {
    fn from(run: &core::Run) -> Self {
        let step = |step: &pointsman_core::formula::Step| Step {
            id: step.id.clone(),
            title: step.title.clone(),
            done_at: run.done.iter().find(|done| done.id == step.id).map(|done| done.at.into()),
        };
        Self {
            run: Some(run.id),
            project: run.project.clone(),
            formula: run.formula.name.clone(),
            role: run.formula.role(),
            model: run.model.clone(),
            step: run.next_step().map(|step| step.id.clone()),
            steps: run.formula.steps.iter().map(step).collect(),
            status: run.status.into(),
            reason: run.reason.clone(),
            by: run.by.clone(),
            session: Some(run.session_name()),
            generation: run.session.generation,
            started_at: run.started_at.into(),
            ended_at: run.ended_at.map(Time),
            open: run.is_open(),
            result: run.result.clone(),
            prompt: None,
        }
    }
}

/// A formula that runs by itself: `schedule`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduled {
    pub formula: String,
    pub last: Option<Time>,
    pub next: Option<Time>,
    /// The status of its last run.
    pub outcome: Option<Status>,
    pub run: Option<RunId>,
    pub skipped_because: Option<String>,
}
