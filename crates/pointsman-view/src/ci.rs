//! Pipelines of a CI server: `ci list`, `ci status`, `ci logs`, `ci failures`.

use pointsman_core::verdict::Class;
use serde::{Deserialize, Serialize};

/// A pipeline of the CI server: one run for one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    pub number: u64,
    /// The pipeline that it is another run of; 0 if it is the first.
    pub parent: u64,
    pub status: String,
    pub event: String,
    pub sha: String,
    pub branch: String,
    pub message: String,
    /// Only where its steps were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflows: Option<Vec<Workflow>>,
}

/// A workflow: one file of the pipeline's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflow {
    pub name: String,
    pub state: String,
    pub error: String,
    pub children: Vec<Step>,
}

/// A step of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub id: u64,
    pub pid: u64,
    pub name: String,
    pub state: String,
    pub exit_code: i32,
    pub error: String,
}

/// The output of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepLog {
    pub step: String,
    pub status: String,
    pub exit: i32,
    pub log: String,
}

/// A step that failed, and whose fault that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedStep {
    pub pipeline: Option<u64>,
    pub step: String,
    pub exit: Option<i32>,
    pub class: Class,
    pub log: String,
}
