//! Typed signals: entries of the event log that other programs wait for.

use serde::{Deserialize, Serialize};

/// A signal. Its name is the kind of its entry in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Signal {
    /// A session has an identity and is about to start.
    AgentRegistered,
    AgentCrashed,
    /// A session ended as it should.
    AgentTerminated,
    HookUpdated,
    /// A branch is green, approved and in the merge queue.
    MergeReady,
    /// A branch conflicts with the main branch.
    MergeConflict,
    /// A branch is on the main branch.
    MergeComplete,
    ContextWarning,
    /// A session was asked to hand over.
    HandoffRequested,
    HandoffComplete,
    /// It did not hand over in time.
    OrchestratorStuck,
}

impl Signal {
    pub const ALL: [Self; 11] = [
        Self::AgentRegistered,
        Self::AgentCrashed,
        Self::AgentTerminated,
        Self::HookUpdated,
        Self::MergeReady,
        Self::MergeConflict,
        Self::MergeComplete,
        Self::ContextWarning,
        Self::HandoffRequested,
        Self::HandoffComplete,
        Self::OrchestratorStuck,
    ];

    /// The name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::AgentRegistered => "AGENT_REGISTERED",
            Self::AgentCrashed => "AGENT_CRASHED",
            Self::AgentTerminated => "AGENT_TERMINATED",
            Self::HookUpdated => "HOOK_UPDATED",
            Self::MergeReady => "MERGE_READY",
            Self::MergeConflict => "MERGE_CONFLICT",
            Self::MergeComplete => "MERGE_COMPLETE",
            Self::ContextWarning => "CONTEXT_WARNING",
            Self::HandoffRequested => "HANDOFF_REQUESTED",
            Self::HandoffComplete => "HANDOFF_COMPLETE",
            Self::OrchestratorStuck => "ORCHESTRATOR_STUCK",
        }
    }

    /// Reads a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|signal| signal.name() == name)
    }
}
