//! The workflows as they are now, for everybody beside the loop.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use pointsman_core::ids::TaskKey;
use pointsman_core::task::Task;
use pointsman_core::workflow::{Workflow, WorkflowId};

use super::engine::Engine;

/// A picture of all tasks.
pub type TaskMap = Arc<BTreeMap<TaskKey, Arc<Task>>>;

/// A picture of all workflows, for those who follow sessions whoever owns them.
pub type WorkflowMap = Arc<BTreeMap<WorkflowId, Workflow>>;

/// A picture of all workflows, which the loop replaces after every change.
///
/// There is no empty board: whoever looked at one would take tasks that are not loaded yet for tasks that do not exist.
#[derive(Clone)]
pub struct TaskBoard {
    picture: Arc<RwLock<(TaskMap, WorkflowMap)>>,
}

impl TaskBoard {
    /// A board that shows the workflows as they were loaded.
    pub fn new(engine: &Engine) -> Self {
        Self { picture: Arc::new(RwLock::new(picture(engine))) }
    }

    /// Hangs a new picture.
    pub fn publish(&self, engine: &Engine) {
        *self.picture.write().unwrap_or_else(PoisonError::into_inner) = picture(engine);
    }

    /// The latest picture of the tasks.
    pub fn look(&self) -> TaskMap {
        Arc::clone(&self.picture.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// The latest picture of all workflows.
    pub fn workflows(&self) -> WorkflowMap {
        Arc::clone(&self.picture.read().unwrap_or_else(PoisonError::into_inner).1)
    }
}

fn picture(engine: &Engine) -> (TaskMap, WorkflowMap) {
    let workflows = engine.workflows().map(|workflow| (workflow.id(), workflow)).collect();
    (Arc::new(engine.tasks().clone()), Arc::new(workflows))
}
