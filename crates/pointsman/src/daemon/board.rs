//! The tasks as they are now, for everybody beside the loop.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use pointsman_core::ids::TaskKey;
use pointsman_core::task::Task;

/// A picture of all tasks.
pub type TaskMap = Arc<BTreeMap<TaskKey, Arc<Task>>>;

/// A picture of all tasks, which the loop replaces after every change.
///
/// There is no empty board: whoever looked at one would take tasks that are not loaded yet for tasks that do not exist.
#[derive(Clone)]
pub struct TaskBoard {
    picture: Arc<RwLock<TaskMap>>,
}

impl TaskBoard {
    /// A board that shows the tasks as they were loaded.
    pub fn new(tasks: &BTreeMap<TaskKey, Arc<Task>>) -> Self {
        Self { picture: Arc::new(RwLock::new(Arc::new(tasks.clone()))) }
    }

    /// Hangs a new picture.
    pub fn publish(&self, tasks: &BTreeMap<TaskKey, Arc<Task>>) {
        *self.picture.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tasks.clone());
    }

    /// The latest picture.
    pub fn look(&self) -> TaskMap {
        Arc::clone(&self.picture.read().unwrap_or_else(PoisonError::into_inner))
    }
}
