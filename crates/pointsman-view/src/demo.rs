//! `demo`: how its stories ended.

use pointsman_core::ids::Number;
use pointsman_core::task::State;
use serde::{Deserialize, Serialize};

/// All stories of the demo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Demo {
    pub ok: bool,
    pub seconds: f64,
    pub tasks: Vec<Task>,
    /// What went wrong beside the tasks.
    pub troubles: Vec<String>,
}

/// One task of a story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub issue: Number,
    pub project: String,
    pub title: String,
    pub story: String,
    pub outcome: String,
    pub sessions: usize,
    pub ci_runs: u32,
    pub pr: Option<Number>,
    pub states: Vec<State>,
    /// What went otherwise than the story says.
    pub differences: Vec<String>,
}
