//! The observed facts. A fact that could not be observed is none, and is never taken for well or ill.

use serde::{Deserialize, Serialize};

use crate::ids::Number;
use crate::task::Task;
use crate::time::Timestamp;

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// A directory on it that matters to us.
    pub path: String,
    /// How full it is for us, 0 to 100.
    pub used_percent: u64,
    pub free_mb: u64,
}

/// The machine's figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Memory that programs could still have.
    pub free_memory_mb: Option<u64>,
    pub used_swap_mb: Option<u64>,
    /// File systems that matter to us.
    pub disks: Vec<Disk>,
    /// The load over the last minute, in hundredths.
    pub load_centi: Option<u64>,
    /// The load over the last 15 minutes, in hundredths.
    pub load15_centi: Option<u64>,
    pub cores: Option<u64>,
    /// Containers that run; none if nobody can tell.
    pub containers: Option<u64>,
    /// Those that say they are unhealthy, or are started again and again, by name; none if nobody can tell.
    pub unhealthy_containers: Option<Vec<String>>,
}

/// An error that our own log repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// Its words, without what differs from time to time.
    pub text: String,
    /// How often it was written within the last hour.
    pub count: u64,
}

/// The end of a log, for whoever has to judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// Whose: the daemon's, or a session's.
    pub of: String,
    /// The last lines, cleaned.
    pub lines: Vec<String>,
}

/// A session that has not ended, as far as is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFact {
    pub session: String,
    /// Its task, if it has one.
    pub issue: Option<Number>,
    /// When it was last known to live.
    pub last_seen: Timestamp,
    /// Whether its process is known to be gone; a probe that failed says no.
    pub gone: bool,
}

/// An open issue, as far as health is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenIssue {
    pub number: Number,
    pub created_at: Timestamp,
    /// Issues that it waits for.
    pub dependencies: Vec<Number>,
}

/// Files of ours that nobody needs any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Lock files in repositories of ours.
    pub locks: Vec<String>,
    /// Working trees of tasks that are over, by their issue.
    pub trees: Vec<Number>,
    /// Logs that are older than they are kept.
    pub old_logs: u64,
}

/// Everything the rules look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub machine: Machine,
    pub daemon: bool,
    pub tasks: Vec<Task>,
    pub sessions: Vec<SessionFact>,
    /// The open issues; none if the forge was not asked.
    pub issues: Option<Vec<OpenIssue>>,
    /// Since when the forge is asked and does not answer, if so.
    pub forge_silent_since: Option<Timestamp>,
    /// Why nothing new may begin just now, if so: a budget, a rate limit.
    pub held_back: Option<String>,
    /// Why nothing lands, if the merge queue is stopped.
    pub line_stopped: Option<String>,
    /// Notifiers that do not work.
    pub ill_notifiers: Vec<String>,
    pub leftovers: Leftovers,
    /// Errors that our own log repeats; none if there is no log.
    pub log_errors: Option<Vec<LogError>>,
}
