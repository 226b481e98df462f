//! Pipelines: `pipeline check`.

use pointsman_core::pipeline::model::{self, Handler, Vocabulary};
use pointsman_core::pipeline::{self as core, Report, Severity};
use serde::{Deserialize, Serialize};

/// `pipeline check`: the findings about a file, and the plan in it if none of them is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub ok: bool,
    pub file: String,
    pub errors: usize,
    pub warnings: usize,
    pub name: Option<String>,
    pub label: Option<String>,
    pub goal: Option<String>,
    pub vocabulary: Option<Vocabulary>,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    pub diagnostics: Vec<Diagnostic>,
}

impl Checked {
    /// The view of a report about the file of this name.
    pub fn new(file: String, report: &Report) -> Self {
        let plan = report.pipeline.as_ref();
        Self {
            ok: report.errors() == 0,
            file,
            errors: report.errors(),
            warnings: report.warnings(),
            name: plan.map(|plan| plan.name.clone()),
            label: plan.and_then(|plan| plan.label.clone()),
            goal: plan.and_then(|plan| plan.goal.clone()),
            vocabulary: plan.map(|plan| plan.vocabulary),
            nodes: plan.iter().flat_map(|plan| &plan.nodes).map(Node::from).collect(),
            edges: plan.iter().flat_map(|plan| &plan.edges).map(Edge::from).collect(),
            diagnostics: report.diagnostics.iter().map(Diagnostic::from).collect(),
        }
    }
}

/// A node of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub id: String,
    pub handler: String,
    pub label: String,
    pub line: usize,
    pub issue: Option<u64>,
    pub model: Option<String>,
}

impl From<&model::Node> for Node {
    fn from(node: &model::Node) -> Self {
        let task = match &node.handler {
            Handler::Codergen(task) => Some(task),
            Handler::Start
            | Handler::Exit
            | Handler::Tool { .. }
            | Handler::Gate { .. }
            | Handler::Human { .. }
            | Handler::Conditional
            | Handler::Parallel { .. }
            | Handler::FanIn
            | Handler::Child { .. } => None,
        };
        Self {
            id: node.id.clone(),
            handler: node.handler.as_str().to_owned(),
            label: node.label.clone(),
            line: node.line,
            issue: task.and_then(|task| task.issue),
            model: task.and_then(|task| task.model.name.clone()),
        }
    }
}

/// An edge of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub label: Option<String>,
    pub conditional: bool,
}

impl From<&model::Edge> for Edge {
    fn from(edge: &model::Edge) -> Self {
        let model::Edge { from, to, label, condition, .. } = edge.clone();
        Self { from, to, label, conditional: condition.is_some() }
    }
}

/// A finding about a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub severity: Severity,
    pub rule: String,
    pub line: usize,
    pub column: usize,
    pub message: String,
    pub hint: Option<String>,
}

impl From<&core::Diagnostic> for Diagnostic {
    fn from(found: &core::Diagnostic) -> Self {
        let core::Diagnostic { severity, rule, line, column, message, hint, .. } = found.clone();
        Self { severity, rule, line, column, message, hint }
    }
}
