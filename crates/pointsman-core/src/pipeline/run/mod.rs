//! A run: a pipeline being carried out, as a snapshot and a pure step.
//!
//! Every node is entered by *arrivals*, one for each way that led to it. It begins when nothing that is under way can
//! still arrive at it, so branches join wherever they meet. It ends with a verdict, and [`super::route`] chooses the way
//! on. Work that lands passes two more stations: gates behind a task judge it before it enters the merge queue, and what
//! follows waits until it is merged.
//!
//! `step` handles events, `walk` moves the run along. Nothing here acts: orders are values, and each carries a ticket by
//! which its result is known. Performing them belongs to the daemon.

mod step;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use step::step;
pub use walk::begin;

use super::condition::Verdict;
use super::model::{GateKind, Model, Pipeline};
use crate::time::Timestamp;
use crate::words::pipeline::Sentence;

/// The version of a stored snapshot. A field is added with a default; anything else is a new number.
pub const VERSION: u32 = 1;

/// How much of the way is remembered.
const MAX_HOPS: usize = 20_000;

/// How many values the context holds, and how long each may be. They come from agents and tools.
const MAX_CONTEXT: usize = 256;
const MAX_CONTEXT_CHARS: usize = 1_000;

/// The state of a node. The names are part of the surface that scripts rely on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    #[default]
    Pending,
    Active,
    /// The work is done and green, and is judged.
    ImplComplete,
    /// The gates said yes; for a node whose work does not land: done.
    Validated,
    /// On the main branch.
    Merged,
    Failed,
    /// The run went another way.
    Skipped,
}

impl NodeStatus {
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Active,
        Self::ImplComplete,
        Self::Validated,
        Self::Merged,
        Self::Failed,
        Self::Skipped,
    ];

    /// The name that files and scripts use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::ImplComplete => "impl_complete",
            Self::Validated => "validated",
            Self::Merged => "merged",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Running,
    Done,
    Failed,
    Stopped,
}

/// The snapshot of a run, with the plan that it follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineRun {
    pub version: u32,
    pub pipeline: Pipeline,
    pub status: Status,
    /// Why it failed or was stopped.
    pub reason: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub nodes: BTreeMap<String, NodeRun>,
    /// What nodes told each other.
    pub context: BTreeMap<String, String>,
    /// The node that last spoke in a thread.
    pub threads: BTreeMap<String, String>,
    /// The way so far, cut at a limit.
    pub hops: Vec<Hop>,
    pub next_ticket: u64,
}

/// One node of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRun {
    pub status: NodeStatus,
    /// How often it was entered.
    pub visits: u32,
    /// How often it was tried since it was last entered.
    pub attempts: u32,
    pub issue: Option<u64>,
    pub session: Option<String>,
    pub outcome: Option<Verdict>,
    pub reason: Option<String>,
    pub stage: Stage,
    /// Ways that led here and wait for the node to begin.
    pub arrivals: Vec<Arrival>,
    pub deadline: Option<Timestamp>,
    /// Gates that have said yes to its work.
    pub passed: BTreeSet<String>,
    /// Whether the merge queue has its work.
    pub landing: bool,
    /// Whether a gate said no to its work and nothing has led back to it since. Other gates still judge the work, and the
    /// one that said no judges it again when it is next entered.
    #[serde(default)]
    pub rejected: bool,
}

/// The thing that a node is waiting for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    #[default]
    Idle,
    /// For the result of an order.
    Working {
        ticket: u64,
    },
    Resting {
        until: Timestamp,
    },
    /// For work to land; then the edges are followed.
    Owing {
        edges: Vec<usize>,
    },
}

/// One way that led to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    pub from: String,
    pub verdict: Verdict,
    pub preferred_label: Option<String>,
    pub thread_id: Option<String>,
    /// The branch failed, and nothing but its fan-in was left for it.
    pub lost: bool,
}

/// A step of the way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hop {
    pub from: String,
    pub to: String,
    /// Which visit of `from` it ended.
    pub visit: u32,
}

/// The end of a piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub verdict: Verdict,
    pub preferred_label: Option<String>,
    #[serde(default)]
    pub suggested: Vec<String>,
    #[serde(default)]
    pub context: BTreeMap<String, String>,
    pub reason: Option<String>,
}

impl Outcome {
    /// An outcome that says nothing but how it ended.
    pub fn of(verdict: Verdict) -> Self {
        Self { verdict, preferred_label: None, suggested: Vec::new(), context: BTreeMap::new(), reason: None }
    }

    /// A failure with its reason.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::of(Verdict::Fail) }
    }
}

/// A past fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The forge has the issue of a node.
    IssueFiled {
        node: String,
        ticket: u64,
        issue: u64,
    },
    SessionStarted {
        node: String,
        ticket: u64,
        session: String,
    },
    /// An order is carried out. For a task success means: pushed, open as a pull request, green. No outcome at all is an
    /// end without a word.
    Finished {
        node: String,
        ticket: u64,
        outcome: Option<Outcome>,
    },
    /// A person answered; the answer is a choice's value, its label or its key.
    Answered {
        node: String,
        ticket: u64,
        answer: String,
    },
    /// The work of a node is on the main branch.
    Landed {
        node: String,
    },
    LandingFailed {
        node: String,
        reason: String,
    },
    Woke,
    Stopped {
        by: String,
    },
}

/// An order to the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// A new issue, or the one that the file names, is to be worked on.
    FileIssue {
        node: String,
        ticket: u64,
        issue: Option<u64>,
        depends_on: Vec<String>,
        thread: Option<Thread>,
        model: Model,
    },
    /// The issue of an earlier try or visit is to be worked on again.
    ResumeIssue {
        node: String,
        ticket: u64,
        issue: u64,
        feedback: Option<String>,
        thread: Option<Thread>,
        model: Model,
    },
    RunTool {
        node: String,
        ticket: u64,
        command: String,
        timeout_secs: u64,
    },
    AskPerson {
        node: String,
        ticket: u64,
        question: String,
        choices: Vec<Choice>,
    },
    StartGate {
        node: String,
        ticket: u64,
        kind: GateKind,
        judges: Vec<String>,
        instructions: Option<String>,
    },
    StartChild {
        node: String,
        ticket: u64,
        file: String,
    },
    /// The work of a node may enter the merge queue.
    Land {
        node: String,
    },
    /// What was ordered under this ticket is not wanted any more.
    StopNode {
        node: String,
        ticket: u64,
    },
}

/// A conversation that goes on over several nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    pub id: String,
    /// The node that spoke in it before.
    pub predecessor: Option<String>,
}

/// One thing that a person can choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What an answer says: a target's id, or `pass` or `fail`.
    pub value: String,
    pub label: String,
    pub key: Option<char>,
}

/// Limits and waits. The defaults suit a project that pays for every try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How often a node may be entered. A circle that never gets anywhere ends here.
    pub max_visits: u32,
    /// The wait before the second try; it doubles with each further one.
    pub first_rest: Duration,
    pub longest_rest: Duration,
    /// For tools that name no time-out of their own.
    pub tool_timeout: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            max_visits: 20,
            first_rest: Duration::from_secs(5),
            longest_rest: Duration::from_secs(300),
            tool_timeout: Duration::from_secs(1800),
        }
    }
}

/// The next snapshot and what is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    pub run: PipelineRun,
    pub orders: Vec<Order>,
}

/// A reason for which an event changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the run has ended")]
    Ended,
    #[error("there is no node `{0}`")]
    NoNode(String),
    /// The result belongs to a try that was given up or has ended.
    #[error("`{0}` is not waiting for this")]
    Stale(String),
    #[error("`{answer}` is none of the choices of `{node}`")]
    NoChoice { node: String, answer: String },
}

impl PipelineRun {
    /// The next moment at which [`Event::Woke`] does something.
    pub fn wake_at(&self) -> Option<Timestamp> {
        if self.status != Status::Running {
            return None;
        }
        let moments = self.nodes.values().filter_map(|node| match &node.stage {
            Stage::Working { .. } => node.deadline,
            Stage::Resting { until } => Some(*until),
            Stage::Idle | Stage::Owing { .. } => None,
        });
        moments.min()
    }

    /// Whether the run still goes on.
    pub fn is_open(&self) -> bool {
        self.status == Status::Running
    }

    /// Reads a stored snapshot; one of a version that this program does not know is an error, not a guess.
    pub fn from_json(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if version != VERSION {
            return Err(Sentence::OtherSnapshotVersion(version.to_string(), VERSION.to_string()).to_string());
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}
