//! Sessions: `session list`, `session explain`, `session logs`, and the answers to what sessions report.

use std::path::PathBuf;

use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::role::Role;
use pointsman_core::session::budget::TokenClasses;
use pointsman_core::session::liveness::Colour;
use pointsman_core::session::work::{self, TestsStatus, WorkPhase};
use pointsman_core::task::Exit;
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::task::StatusLine;

/// A session as it is on record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub session: String,
    pub role: Role,
    pub task: Option<Number>,
    pub tmux_session: Option<String>,
    pub pid: Option<u32>,
    /// How it ended; none while it lives.
    pub exit: Option<Exit>,
    pub project: ProjectName,
    pub identity: String,
    pub generation: u32,
    pub tree: Option<PathBuf>,
    pub created_at: Time,
    pub last_seen: Time,
    pub ended_at: Option<Time>,
    pub acknowledges: bool,
    pub predecessor: Option<String>,
    /// None if nobody told.
    pub cost_usd: Option<f64>,
    /// None if nobody told.
    pub tokens: Option<u64>,
    /// None if nobody told.
    pub token_classes: Option<TokenClasses>,
    pub turns: u64,
    /// Whether it runs, or ran, inside a sandbox; none if its files are gone.
    pub sandboxed: Option<bool>,
}

/// The life of a session, as it is on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Starting,
    Active,
    Terminated,
    Crashed,
}

/// Whether a session's hooks reach the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hooks {
    Heard,
    Waiting,
    Silent,
}

/// `session explain`: whether a session lives, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    pub session: String,
    pub liveness: Colour,
    pub verdict: String,
    pub status: Status,
    /// None for an agent that has no hooks.
    pub hooks: Option<Hooks>,
    pub evidence: Vec<String>,
    pub work_state: Option<WorkState>,
}

/// The crash-proof record of where a session is in its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkState {
    pub identity_name: String,
    pub current_bead: Option<String>,
    pub current_node: Option<String>,
    pub work_phase: WorkPhase,
    pub work_summary: String,
    pub last_checkpoint_at: Time,
    pub files_modified: Vec<String>,
    pub tests_status: TestsStatus,
    pub resumption_instructions: String,
}

impl From<&work::WorkState> for WorkState {
    fn from(state: &work::WorkState) -> Self {
        Self {
            identity_name: state.identity_name.clone(),
            current_bead: state.current_bead.clone(),
            current_node: state.current_node.clone(),
            work_phase: state.work_phase,
            work_summary: state.work_summary.clone(),
            last_checkpoint_at: state.last_checkpoint_at.into(),
            files_modified: state.files_modified.clone(),
            tests_status: state.tests_status,
            resumption_instructions: state.resumption_instructions.clone(),
        }
    }
}

/// `session logs`: the text that a terminal showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    pub session: String,
    pub path: PathBuf,
    pub text: String,
}

/// `session send`: the words are on their way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    pub issue: Number,
    pub sent: bool,
}

/// `session stop --all`: the tasks that were paused, and the runs that were ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    pub paused: Vec<Number>,
    /// The runs of other roles that were ended.
    #[serde(default)]
    pub stopped_runs: Vec<u64>,
}

/// The answer to `ack`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    pub message: i64,
    pub acknowledged: bool,
}

/// The answer to `checkpoint`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub session: String,
    pub saved: bool,
}

/// The answer to `gauge`, with what a status line shows; no task for the session of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    pub session: String,
    pub measured: bool,
    pub task: Option<StatusLine>,
}

/// The answer to a hook's report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookReply {
    pub taken: bool,
}
