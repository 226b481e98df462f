//! A pipeline as it is carried out: both vocabularies in one set of types.
//!
//! A model exists only for a file without errors, and it is a part of the run's snapshot: a run goes on with the plan it
//! began with, whatever happens to the file.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::condition::Condition;

/// The words a file is written in. They differ in one point of meaning: see [`Pipeline::follows_all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vocabulary {
    /// `type=`, `prompt=`, `component`: one edge is followed, except behind a fan-out.
    Attractor,
    /// `handler=`, `bead_id=`, `gate=`: edges are dependencies, all of them are followed.
    Harness,
}

impl Vocabulary {
    /// The name that files and scripts use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attractor => "attractor",
            Self::Harness => "harness",
        }
    }
}

/// A checked plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    pub name: String,
    pub label: Option<String>,
    pub goal: Option<String>,
    pub vocabulary: Vocabulary,
    pub prd_ref: Option<String>,
    pub promise_id: Option<String>,
    /// Where a goal gate sends the run that names no target of its own.
    pub retry_target: Option<String>,
    pub fallback_retry_target: Option<String>,
    /// In the order of the file.
    pub nodes: Vec<Node>,
    /// In the order of the file.
    pub edges: Vec<Edge>,
    pub start: String,
    pub exit: String,
}

/// A node with everything its handler needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub id: String,
    /// For people; `\n` of the file is a line break here.
    pub label: String,
    pub handler: Handler,
    /// Tries beyond the first.
    pub max_retries: u32,
    pub goal_gate: bool,
    pub retry_target: Option<String>,
    pub fallback_retry_target: Option<String>,
    pub timeout_secs: Option<u64>,
    /// When the tries are used up, what was reached counts.
    pub allow_partial: bool,
    /// An end without a word is a success.
    pub auto_status: bool,
    pub thread_id: Option<String>,
    pub bead_id: Option<String>,
    /// Where the node stands in the file.
    pub line: usize,
    pub column: usize,
}

/// The work of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "handler", rename_all = "snake_case")]
pub enum Handler {
    Start,
    Exit,
    /// A task for an agent: an issue that is worked on, reviewed and landed.
    Codergen(Box<Codergen>),
    Tool {
        command: String,
    },
    /// A judgement about the work in front of it.
    Gate {
        kind: GateKind,
        instructions: Option<String>,
    },
    /// A person chooses between the outgoing edges.
    Human {
        /// The choice that counts when nobody answers in time: an edge's target.
        default_choice: Option<String>,
    },
    Conditional,
    Parallel {
        /// How many nodes may be at work at the same time before the fan-in; nothing is no limit.
        max_active: Option<u32>,
        on_failure: BranchFailure,
    },
    FanIn,
    /// Another pipeline, run to its end.
    Child {
        file: String,
    },
}

impl Handler {
    /// The name that scripts see.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Exit => "exit",
            Self::Codergen(_) => "codergen",
            Self::Tool { .. } => "tool",
            Self::Gate { .. } | Self::Human { .. } => "wait.human",
            Self::Conditional => "conditional",
            Self::Parallel { .. } => "parallel",
            Self::FanIn => "parallel.fan_in",
            Self::Child { .. } => "stack.manager_loop",
        }
    }
}

/// The effect of a failure inside a fan-out that has no route of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchFailure {
    /// The other branches go on, and the fan-in reports a partial success.
    Continue,
    EndRun,
}

/// The judge at a gate, and the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    Technical,
    Business,
    /// The CI of the main branch after landing.
    E2e,
    Manual,
}

impl GateKind {
    pub const ALL: [Self; 4] = [Self::Technical, Self::Business, Self::E2e, Self::Manual];

    /// The name that files and scripts use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Technical => "technical",
            Self::Business => "business",
            Self::E2e => "e2e",
            Self::Manual => "manual",
        }
    }

    /// Whether it judges work before that lands.
    pub const fn is_before_landing(self) -> bool {
        match self {
            Self::Technical | Self::Business | Self::Manual => true,
            Self::E2e => false,
        }
    }
}

impl fmt::Display for GateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text and the settings of a task for an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Codergen {
    /// With `$goal` filled in.
    pub prompt: String,
    pub acceptance: Option<String>,
    pub files: Vec<String>,
    pub worker_type: Option<String>,
    pub promise_ac: Option<String>,
    pub prd_ref: Option<String>,
    /// An issue that exists already.
    pub issue: Option<u64>,
    pub model: Model,
}

/// The model a node asks for, from its own attributes or the style sheet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    pub name: Option<String>,
    pub provider: Option<String>,
    pub effort: Option<Effort>,
}

/// The depth to which a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    Low,
    Medium,
    High,
}

impl Effort {
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// The name that files and scripts use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A way from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub label: Option<String>,
    /// Nothing: it can always be followed.
    pub condition: Option<Condition>,
    pub weight: i64,
    pub thread_id: Option<String>,
}

impl Edge {
    /// The words a person chooses it by.
    pub fn choice(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.to)
    }
}

impl Pipeline {
    /// The node with this id.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// Edges that leave a node, with their places in [`Pipeline::edges`].
    pub fn edges_from<'a>(&'a self, id: &str) -> impl Iterator<Item = (usize, &'a Edge)> {
        self.edges.iter().enumerate().filter(move |(_, edge)| edge.from == id)
    }

    /// Whether all edges of a node are followed that can be, and not the best one of them.
    ///
    /// A harness file draws dependencies: what follows a node follows it on every edge. An Attractor file draws a walk
    /// that splits only at a fan-out. A diamond and a person's choice always lead to one place.
    pub fn follows_all(&self, node: &Node) -> bool {
        match node.handler {
            Handler::Parallel { .. } => true,
            Handler::Conditional | Handler::Human { .. } => false,
            Handler::Start
            | Handler::Exit
            | Handler::Codergen(_)
            | Handler::Tool { .. }
            | Handler::Gate { .. }
            | Handler::FanIn
            | Handler::Child { .. } => self.vocabulary == Vocabulary::Harness,
        }
    }

    /// The choices that a human gate offers: its outgoing edges, if there are two to choose between.
    pub fn choices(&self, id: &str) -> Vec<(usize, &Edge)> {
        let free: Vec<_> = self.edges_from(id).filter(|(_, edge)| edge.condition.is_none()).collect();
        if free.len() > 1 { free } else { Vec::new() }
    }
}

/// The key by which a person picks a label: `[A] Approve`, `A) Approve` and `A - Approve` say `A`, anything else its
/// first letter.
pub fn accelerator(label: &str) -> Option<char> {
    let label = label.trim();
    let bracketed = label.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(key, _)| key.trim());
    let key = bracketed.filter(|key| key.chars().count() == 1).and_then(|key| key.chars().next());
    key.or_else(|| label.chars().next()).filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_uppercase())
}

/// A label without its key, its case and its outer blanks, so that `[A] Approve` and `approve` are the same.
pub fn normalized(label: &str) -> String {
    let label = label.trim();
    let mut chars = label.chars();
    let first = chars.next();
    let rest = chars.as_str();
    let bare = match first {
        Some('[') => rest.split_once(']').filter(|(key, _)| key.chars().count() == 1).map(|(_, rest)| rest),
        Some(key) if key.is_alphanumeric() => {
            rest.strip_prefix(')').or_else(|| rest.strip_prefix(" - ")).filter(|rest| !rest.trim().is_empty())
        }
        Some(_) | None => None,
    };
    bare.unwrap_or(label).trim().to_lowercase()
}
