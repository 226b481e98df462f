//! The closed list of faults, and how bad each is.

use serde::{Deserialize, Serialize};

use crate::ids::Number;
use crate::time::Timestamp;

/// The urgency of a finding. P0 to P2 are told a person at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Priority {
    P0,
    P1,
    P2,
    P3,
    P4,
}

impl Priority {
    /// Whether a person is told at once.
    pub fn escalates(self) -> bool {
        match self {
            Self::P0 | Self::P1 | Self::P2 => true,
            Self::P3 | Self::P4 => false,
        }
    }
}

impl std::fmt::Display for Priority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "P{}", *self as u8)
    }
}

/// The subject of a warning, by the word that people use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Memory,
    Swap,
    Disk,
    Load,
    Containers,
    Daemon,
    Log,
    Ci,
    Agent,
    /// What should go on and does not.
    Pipeline,
    Notifier,
    PullRequest,
    Dependency,
    Blocked,
    Housekeeping,
}

impl Kind {
    pub const ALL: [Self; 15] = [
        Self::Memory,
        Self::Swap,
        Self::Disk,
        Self::Load,
        Self::Containers,
        Self::Daemon,
        Self::Log,
        Self::Ci,
        Self::Agent,
        Self::Pipeline,
        Self::Notifier,
        Self::PullRequest,
        Self::Dependency,
        Self::Blocked,
        Self::Housekeeping,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Swap => "swap",
            Self::Disk => "disk",
            Self::Load => "load",
            Self::Containers => "containers",
            Self::Daemon => "daemon",
            Self::Log => "log",
            Self::Ci => "ci",
            Self::Agent => "agent",
            Self::Pipeline => "pipeline",
            Self::Notifier => "notifier",
            Self::PullRequest => "pull request",
            Self::Dependency => "dependency",
            Self::Blocked => "blocked",
            Self::Housekeeping => "housekeeping",
        }
    }

    /// The kind that a person means by a word.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.trim().to_lowercase().replace(['-', '_'], " ");
        Self::ALL.into_iter().find(|kind| kind.name() == word).or(match word.as_str() {
            "ram" => Some(Self::Memory),
            "container" | "docker" => Some(Self::Containers),
            "logs" => Some(Self::Log),
            "agents" | "dead agent" | "session" => Some(Self::Agent),
            "pr" | "review" => Some(Self::PullRequest),
            "dependencies" | "cycle" => Some(Self::Dependency),
            "queue" | "merge queue" | "forge" => Some(Self::Pipeline),
            _ => None,
        })
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    MemoryLow {
        free_mb: u64,
    },
    SwapHigh {
        used_mb: u64,
    },
    /// A disk is nearly full.
    DiskFull {
        path: String,
        used_percent: u64,
        free_mb: u64,
    },
    /// More is to be done than the processors can, for a while.
    LoadHigh {
        /// Over 15 minutes, in hundredths.
        load_centi: u64,
        cores: u64,
    },
    ContainersIll {
        names: Vec<String>,
    },
    /// Our own log repeats an error.
    LogRepeats {
        /// Its words, without what differs from time to time.
        text: String,
        /// How often within an hour.
        count: u64,
    },
    /// There is work, and no daemon.
    DaemonDown {
        /// Tasks that are not over.
        tasks: usize,
    },
    /// CI does not answer, or its machinery fails.
    CiStuck {
        issue: Number,
        since: Timestamp,
    },
    /// A session's process is gone, and nobody has brought it back.
    AgentDead {
        session: String,
        issue: Option<Number>,
        /// When it was last known to live.
        since: Timestamp,
    },
    /// The merge queue is stopped.
    LineStopped {
        why: String,
    },
    /// An issue is ready, a place is free, and nothing begins.
    NothingBegins {
        issue: Number,
        since: Timestamp,
    },
    /// Every place is taken by a task that waits for a person.
    AllWaitForPeople {
        issues: Vec<Number>,
    },
    /// The forge does not answer.
    ForgeSilent {
        since: Timestamp,
    },
    NotifierIll {
        notifier: String,
    },
    /// A pull request gets nowhere.
    PullRequestStuck {
        issue: Number,
        pr: Number,
        since: Timestamp,
    },
    /// Issues wait for each other.
    DependencyCycle {
        /// Which, each waiting for the next.
        issues: Vec<Number>,
    },
    /// An issue that others wait for is open for long.
    DependencyStale {
        issue: Number,
        waiting: Vec<Number>,
        since: Timestamp,
    },
    TaskBlocked {
        issue: Number,
        since: Timestamp,
    },
    /// A killed git left locks behind.
    LocksLeft {
        count: usize,
    },
    /// A task is over, its working tree is still there.
    TreeLeft {
        issue: Number,
    },
    /// Logs are older than they are kept.
    LogsOld {
        count: u64,
    },
}

impl Finding {
    /// The urgency of this finding.
    pub fn priority(&self) -> Priority {
        match self {
            Self::MemoryLow { .. } | Self::SwapHigh { .. } => Priority::P0,
            Self::DiskFull { .. } => Priority::P1,
            Self::DaemonDown { .. }
            | Self::CiStuck { .. }
            | Self::AgentDead { .. }
            | Self::LineStopped { .. }
            | Self::NothingBegins { .. }
            | Self::AllWaitForPeople { .. }
            | Self::ForgeSilent { .. } => Priority::P2,
            Self::LoadHigh { .. }
            | Self::ContainersIll { .. }
            | Self::LogRepeats { .. }
            | Self::NotifierIll { .. }
            | Self::PullRequestStuck { .. }
            | Self::DependencyCycle { .. }
            | Self::DependencyStale { .. }
            | Self::TaskBlocked { .. } => Priority::P3,
            Self::LocksLeft { .. } | Self::TreeLeft { .. } | Self::LogsOld { .. } => Priority::P4,
        }
    }

    /// The subject of this finding.
    pub fn kind(&self) -> Kind {
        match self {
            Self::MemoryLow { .. } => Kind::Memory,
            Self::SwapHigh { .. } => Kind::Swap,
            Self::DiskFull { .. } => Kind::Disk,
            Self::LoadHigh { .. } => Kind::Load,
            Self::ContainersIll { .. } => Kind::Containers,
            Self::LogRepeats { .. } => Kind::Log,
            Self::DaemonDown { .. } => Kind::Daemon,
            Self::CiStuck { .. } => Kind::Ci,
            Self::AgentDead { .. } => Kind::Agent,
            Self::LineStopped { .. }
            | Self::NothingBegins { .. }
            | Self::AllWaitForPeople { .. }
            | Self::ForgeSilent { .. } => Kind::Pipeline,
            Self::NotifierIll { .. } => Kind::Notifier,
            Self::PullRequestStuck { .. } => Kind::PullRequest,
            Self::DependencyCycle { .. } | Self::DependencyStale { .. } => Kind::Dependency,
            Self::TaskBlocked { .. } => Kind::Blocked,
            Self::LocksLeft { .. } | Self::TreeLeft { .. } | Self::LogsOld { .. } => Kind::Housekeeping,
        }
    }

    /// The same for as long as it is the same trouble, whatever its figures are just now.
    pub fn key(&self) -> String {
        let list = |issues: &[Number]| issues.iter().map(ToString::to_string).collect::<Vec<_>>().join("-");
        match self {
            Self::MemoryLow { .. } => "memory".to_owned(),
            Self::SwapHigh { .. } => "swap".to_owned(),
            Self::DiskFull { path, .. } => format!("disk:{path}"),
            Self::LoadHigh { .. } => "load".to_owned(),
            Self::ContainersIll { .. } => "containers".to_owned(),
            Self::LogRepeats { text, .. } => format!("log:{text}"),
            Self::DaemonDown { .. } => "daemon".to_owned(),
            Self::CiStuck { issue, .. } => format!("ci:{issue}"),
            Self::AgentDead { session, .. } => format!("agent:{session}"),
            Self::LineStopped { .. } => "line".to_owned(),
            Self::NothingBegins { .. } => "nothing-begins".to_owned(),
            Self::AllWaitForPeople { .. } => "all-wait".to_owned(),
            Self::ForgeSilent { .. } => "forge".to_owned(),
            Self::NotifierIll { notifier } => format!("notifier:{notifier}"),
            Self::PullRequestStuck { pr, .. } => format!("pr:{pr}"),
            Self::DependencyCycle { issues } => format!("cycle:{}", list(issues)),
            Self::DependencyStale { issue, .. } => format!("stale:{issue}"),
            Self::TaskBlocked { issue, .. } => format!("blocked:{issue}"),
            Self::LocksLeft { .. } => "locks".to_owned(),
            Self::TreeLeft { issue } => format!("tree:{issue}"),
            Self::LogsOld { .. } => "logs".to_owned(),
        }
    }

    /// The task whose agent is meant, where one is.
    pub fn task(&self) -> Option<Number> {
        match self {
            Self::CiStuck { issue, .. }
            | Self::PullRequestStuck { issue, .. }
            | Self::TaskBlocked { issue, .. } => Some(*issue),
            Self::AgentDead { issue, .. } => *issue,
            Self::AllWaitForPeople { issues } => match issues.as_slice() {
                [only] => Some(*only),
                _ => None,
            },
            Self::MemoryLow { .. }
            | Self::SwapHigh { .. }
            | Self::DiskFull { .. }
            | Self::LoadHigh { .. }
            | Self::ContainersIll { .. }
            | Self::LogRepeats { .. }
            | Self::DaemonDown { .. }
            | Self::LineStopped { .. }
            | Self::NothingBegins { .. }
            | Self::ForgeSilent { .. }
            | Self::NotifierIll { .. }
            | Self::DependencyCycle { .. }
            | Self::DependencyStale { .. }
            | Self::LocksLeft { .. }
            | Self::TreeLeft { .. }
            | Self::LogsOld { .. } => None,
        }
    }
}
