//! Agents: `agents`, and the files below `.claude/state/identities/`.

use std::path::PathBuf;

use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::role::Role;
use pointsman_core::session::budget::TokenClasses;
use pointsman_core::session::context::Source;
use pointsman_core::session::liveness::Colour;
use pointsman_core::session::work::WorkPhase;
use pointsman_core::task::{Exit, Phase, State};
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::session::Status;

/// The role of an identity: that of an agent, or the daemon itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IdentityRole {
    Daemon(DaemonRole),
    Agent(Role),
}

/// The word for the daemon where agents have their role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DaemonRole {
    Daemon,
}

/// The identity of an agent: the newest session of a name. The daemon has one too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub role: IdentityRole,
    pub name: String,
    pub session_id: String,
    pub pid: Option<u32>,
    pub tmux_session: Option<String>,
    pub node_id: Option<String>,
    pub bead_id: Option<String>,
    pub worktree_path: Option<PathBuf>,
    pub hook_path: Option<PathBuf>,
    pub created_at: Time,
    pub last_seen: Time,
    pub status: Status,
    pub predecessor_id: Option<String>,
    pub host: String,
    pub generation: u32,
    pub model: Option<String>,
}

/// An agent with its task, its liveness and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    #[serde(flatten)]
    pub identity: Identity,
    pub liveness: Colour,
    /// None for the daemon, which serves all projects.
    pub project: Option<ProjectName>,
    pub task: Option<Number>,
    pub state: Option<State>,
    pub phase: Option<Phase>,
    pub work_phase: Option<WorkPhase>,
    pub exit: Option<Exit>,
    pub ended_at: Option<Time>,
    pub context_percent: Option<f64>,
    pub context_source: Option<Source>,
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
