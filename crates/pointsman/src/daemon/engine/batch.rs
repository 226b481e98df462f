//! Changes of several inputs, to be committed together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pointsman_core::concern::Concern;
use pointsman_core::part::question::{Question, QuestionId};
use pointsman_core::run::Run;
use pointsman_core::task::Task;
use pointsman_core::vault;
use pointsman_core::workflow::{Workflow, WorkflowId};
use pointsman_store::{Change, NewEntry, Write};

/// Changes to be committed together, and the workflows as they will be.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) changes: Vec<Change>,
    pub(super) workflows: BTreeMap<WorkflowId, Workflow>,
    /// The names of its inputs.
    pub(super) inputs: BTreeSet<String>,
    /// How many entries of the merge queue are in it.
    pub(super) entered: i64,
    /// How many new questions are in it.
    pub(super) asked: u64,
}

impl Batch {
    /// Gives a new question its number. `next` is the one after those on disk.
    pub(super) fn number(&mut self, question: Option<&mut Question>, next: QuestionId) {
        if let Some(question) = question.filter(|question| question.id.is_none()) {
            question.id = Some(QuestionId(next.0 + self.asked));
            self.asked += 1;
        }
    }

    /// The same workflow, with a number for a question that it asks anew.
    pub(super) fn numbered(&mut self, workflow: Workflow, next: QuestionId) -> Workflow {
        if workflow.question().is_none_or(|asked| asked.id.is_some()) {
            return workflow;
        }
        match workflow {
            Workflow::Task(task) => {
                let mut task = Task::clone(&task);
                self.number(task.escalation.as_mut(), next);
                Workflow::Task(Arc::new(task))
            }
            Workflow::Run(run) => {
                let mut run = Run::clone(&run);
                self.number(run.question.as_mut(), next);
                Workflow::Run(Arc::new(run))
            }
            Workflow::Vault(entry) => {
                let mut entry = vault::Entry::clone(&entry);
                self.number(entry.asked.as_mut(), next);
                Workflow::Vault(Arc::new(entry))
            }
            Workflow::Concern(concern) => {
                let mut concern = Concern::clone(&concern);
                self.number(concern.asked.as_mut(), next);
                Workflow::Concern(Arc::new(concern))
            }
            // These ask nobody.
            Workflow::Role(memory) => Workflow::Role(memory),
            Workflow::Notifier(notifier) => Workflow::Notifier(notifier),
        }
    }

    /// Whether this very head is not about to enter already.
    pub(super) fn enters(&self, entry: &NewEntry) -> bool {
        !self.changes.iter().flat_map(|change| &change.writes).any(|write| match write {
            Write::EntryAdded { entry: other, .. } => {
                (&other.project, &other.branch, &other.head) == (&entry.project, &entry.branch, &entry.head)
            }
            _ => false,
        })
    }
}
