//! Remedies that need no question to anybody. None of them can destroy work.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Finding;
use crate::ids::Number;

/// A safe order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "remedy", rename_all = "snake_case")]
pub enum Remedy {
    /// Remove locks in our own repositories whose makers are proven dead.
    ClearLocks,
    /// Capture a task's working tree and put it away; the task is over.
    PutAwayTree { issue: Number },
    /// Remove logs of ended sessions and checks that are older than they are kept.
    PruneLogs,
    /// Ask the forge now instead of later.
    AskForge,
}

/// The remedies that findings call for, each once. More disk is used by old logs and trees than by anything else of ours.
pub fn remedies(findings: &[Finding]) -> Vec<Remedy> {
    let all = findings.iter().filter_map(remedy);
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

fn remedy(finding: &Finding) -> Option<Remedy> {
    match finding {
        Finding::LocksLeft { .. } => Some(Remedy::ClearLocks),
        Finding::TreeLeft { issue } => Some(Remedy::PutAwayTree { issue: *issue }),
        Finding::LogsOld { .. } => Some(Remedy::PruneLogs),
        Finding::NothingBegins { .. } | Finding::ForgeSilent { .. } => Some(Remedy::AskForge),
        Finding::MemoryLow { .. }
        | Finding::SwapHigh { .. }
        | Finding::DiskFull { .. }
        | Finding::LoadHigh { .. }
        | Finding::ContainersIll { .. }
        | Finding::LogRepeats { .. }
        | Finding::DaemonDown { .. }
        | Finding::CiStuck { .. }
        | Finding::AgentDead { .. }
        | Finding::LineStopped { .. }
        | Finding::AllWaitForPeople { .. }
        | Finding::NotifierIll { .. }
        | Finding::PullRequestStuck { .. }
        | Finding::DependencyCycle { .. }
        | Finding::DependencyStale { .. }
        | Finding::TaskBlocked { .. } => None,
    }
}

impl Finding {
    /// The remedy for this finding, if there is a recipe.
    pub fn remedy(&self) -> Option<Remedy> {
        remedy(self)
    }
}
