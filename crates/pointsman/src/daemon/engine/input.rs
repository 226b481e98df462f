//! Inputs: events of a workflow on their way into the store.

use std::path::PathBuf;
use std::sync::Arc;

use pointsman_core::concern::{self, ConcernKey};
use pointsman_core::ids::{ActionKey, Number, RoleKey, RunKey, TaskKey};
use pointsman_core::log;
use pointsman_core::part::question::QuestionId;
use pointsman_core::part::session;
use pointsman_core::role_memory;
use pointsman_core::run::{self, Run};
use pointsman_core::task::{self, Exit, Refused, Stage, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::vault;
use pointsman_core::workflow::{Event, Workflow, WorkflowId};
use pointsman_store::{Change, EffectId, Memory, NewEntry, NewNotice, Outgoing, SessionRow, Write};
use serde_json::json;

/// Something that happened to a workflow, on its way into the store.
#[derive(Clone, Debug)]
pub struct Input {
    pub workflow: WorkflowId,
    pub event: InputKind,
    /// The workflow as it is at its very beginning, if this begins it.
    pub begins: Option<Workflow>,
    /// Names the outside thing it came from, so that it counts once.
    pub dedup: Option<String>,
    /// The effect whose result it is.
    pub settles: Option<EffectId>,
    /// Why that effect could not be done.
    pub failure: Option<String>,
    /// That effect was a message, and the session has it: the file with its details.
    pub sent: Option<PathBuf>,
    /// A named value to remember with it.
    pub cursor: Option<(String, String)>,
    /// Sessions to write with it.
    pub sessions: Vec<SessionRow>,
    /// What people are to be told with it.
    pub notices: Vec<NewNotice>,
    /// A branch that enters the merge queue with it.
    pub enters: Option<Box<NewEntry>>,
    /// A branch that leaves the merge queue with it.
    pub leaves: Option<String>,
    /// The question that it answers. If the workflow asks another one by now, or none, it is refused.
    pub answers: Option<QuestionId>,
    /// What is written right before it, even if the workflow refuses it.
    pub first: Vec<Change>,
    /// What is written in the same change, and not at all if the workflow refuses it.
    pub writes: Vec<Write>,
    /// What is to be remembered with it.
    pub memories: Vec<Memory>,
}

impl Input {
    /// An event of a task with nothing attached.
    pub fn new(key: TaskKey, event: task::Event) -> Self {
        Self::of(WorkflowId::Task(key), Event::Task(event))
    }

    /// An event of a run with nothing attached.
    pub fn of_run(key: RunKey, event: run::Event) -> Self {
        Self::of(WorkflowId::Run(key), Event::Run(event))
    }

    /// A run begins.
    pub fn begin(run: Run) -> Self {
        let (key, begins) = (run.key(), Some(Workflow::Run(Arc::new(run))));
        Self { begins, ..Self::of_run(key, run::Event::Begun) }
    }

    /// An event of a vault action with nothing attached.
    pub fn of_action(key: ActionKey, event: vault::Event) -> Self {
        Self::of(WorkflowId::Vault(key), Event::Vault(event))
    }

    /// An action is submitted. `rule` is what the operator says about its type.
    pub fn submit(entry: vault::Entry, rule: Option<vault::Estimate>) -> Self {
        let (key, begins) = (entry.key(), Some(Workflow::Vault(Arc::new(entry))));
        Self { begins, ..Self::of_action(key, vault::Event::Submitted { rule }) }
    }

    /// An event of a concern with nothing attached.
    pub fn of_concern(key: ConcernKey, event: concern::Event) -> Self {
        Self::of(WorkflowId::Concern(key), Event::Concern(event))
    }

    /// An event of a role's memory with nothing attached.
    pub fn of_role(key: RoleKey, event: role_memory::Event) -> Self {
        Self::of(WorkflowId::Role(key), Event::Role(event))
    }

    /// Something became known about the session of a workflow.
    pub fn of_session(id: WorkflowId, generation: u32, told: session::Event) -> Self {
        let event = Event::of_session(&id, generation, told);
        Self::of(id, event)
    }

    /// An event of some workflow with nothing attached.
    pub fn of(id: WorkflowId, event: Event) -> Self {
        Self::with(id, InputKind::Event(event))
    }

    /// An effect is done and its workflow learns nothing from it.
    pub(super) fn effect_done(id: WorkflowId, kind: &'static str) -> Self {
        Self::with(id, InputKind::EffectDone(kind))
    }

    /// An effect could not be done yet.
    pub(super) fn postponed_effect(outgoing: &Outgoing, error: String, not_before: Timestamp) -> Self {
        Self::with(outgoing.workflow.clone(), InputKind::Postponed { id: outgoing.id, error, not_before })
    }

    /// The effect that it postpones.
    pub(super) fn postponed(&self) -> Option<EffectId> {
        match &self.event {
            InputKind::Postponed { id, .. } => Some(*id),
            InputKind::Event(_) | InputKind::EffectDone(_) => None,
        }
    }

    fn with(workflow: WorkflowId, event: InputKind) -> Self {
        Self {
            workflow,
            event,
            begins: None,
            dedup: None,
            settles: None,
            failure: None,
            sent: None,
            cursor: None,
            sessions: Vec::new(),
            notices: Vec::new(),
            enters: None,
            leaves: None,
            answers: None,
            first: Vec::new(),
            writes: Vec::new(),
            memories: Vec::new(),
        }
    }
}

/// The content of an input.
#[derive(Clone, Debug)]
pub enum InputKind {
    /// Something for the workflow to step on.
    Event(Event),
    /// An effect of this kind is done.
    EffectDone(&'static str),
    /// An effect is to be tried again later.
    Postponed { id: EffectId, error: String, not_before: Timestamp },
}

impl Input {
    /// Whether it leaves a trace even if the workflow stays as it is.
    pub(super) fn must_be_written(&self) -> bool {
        self.settles.is_some() || self.cursor.is_some() || !self.sessions.is_empty()
    }

    /// What is left of it if it was taken before: the effect whose result it is.
    pub(super) fn only_settles(&self, now: Timestamp) -> Option<Change> {
        self.settles?;
        let mut change = Change::quiet(now, Vec::new());
        (change.settles, change.failure, change.sent) =
            (self.settles, self.failure.clone(), self.sent.clone());
        Some(change)
    }

    pub(super) fn change(&self, now: Timestamp, entry: &log::Entry) -> Change {
        self.fill(Change::logged(now, self.workflow.project(), entry))
    }

    fn fill(&self, mut change: Change) -> Change {
        change.issue = self.workflow.issue();
        change.dedup.clone_from(&self.dedup);
        change.settles = self.settles;
        change.failure.clone_from(&self.failure);
        change.sent.clone_from(&self.sent);
        change.cursors.extend(self.cursor.clone());
        change.sessions.clone_from(&self.sessions);
        change.notices.clone_from(&self.notices);
        change.writes.extend(self.writes.iter().cloned());
        change.memories.extend(self.memories.iter().cloned());
        change
    }

    /// An event that the run has taken, and which made it `after`, or has refused.
    pub(super) fn run_change(
        &self,
        now: Timestamp,
        event: &run::Event,
        before: &Run,
        after: Result<&Run, &Refused>,
    ) -> Change {
        let refused = after.err();
        let after = after.unwrap_or(before);
        let mut change = self.fill(Change::logged(now, &after.project, &event.entry(before, after)));
        if let Some(refused) = refused {
            change.data["refused"] = json!(refused.to_string());
        }
        change.session = Some(after.key().session(after.session.generation.max(1)));
        let mut exit = None;
        if let run::Event::Session { told: session::Event::Ended { exit: how, .. }, .. } = event {
            exit = Some(*how);
        }
        self.correct_end(&mut change, &before.session, exit);
        change
    }

    /// An event that the action has taken, and which made it `after`, or has refused.
    pub(super) fn action_change(
        &self,
        now: Timestamp,
        event: &vault::Event,
        before: &vault::Entry,
        after: Result<&vault::Entry, &Refused>,
    ) -> Change {
        let refused = after.err();
        let after = after.unwrap_or(before);
        let mut change = self.fill(Change::logged(now, &after.project, &event.entry(before, after)));
        if let Some(refused) = refused {
            change.data["refused"] = json!(refused.to_string());
        }
        change
    }

    /// An event that the memory of a role has taken, with the entries of the log that it brings, or has refused.
    pub(super) fn role_change(
        &self,
        now: Timestamp,
        key: &RoleKey,
        logged: &[(Option<Number>, log::Entry)],
        refused: Option<&Refused>,
    ) -> Change {
        let remembered = log::Entry::Remembered { name: key.role.to_string() };
        let (issue, entry) = logged.first().map_or((None, &remembered), |(issue, entry)| (*issue, entry));
        let mut change = self.change(now, entry);
        change.issue = issue;
        if let Some(refused) = refused {
            change.data["refused"] = json!(refused.to_string());
        }
        change
    }

    /// How the end of a session is recorded depends on whether it was expected.
    fn correct_end(&self, change: &mut Change, before: &session::Session, exit: Option<Exit>) {
        if before.stage == Stage::Ending && self.settles.is_none() {
            // It went by itself while we were about to end it: the order says how that is recorded.
            change.sessions.clear();
        }
        let went = matches!(exit, Some(Exit::Crashed | Exit::Exited));
        if before.handoff.is_some() && went {
            // It went because it was asked to.
            for row in &mut change.sessions {
                row.exit = Some(Exit::Handoff);
            }
        }
    }

    /// An event that the task has taken, and which brought it to the state `after`, or has refused.
    pub(super) fn task_change(
        &self,
        now: Timestamp,
        event: &task::Event,
        before: &Task,
        after: Result<State, &Refused>,
    ) -> Change {
        let to = after.unwrap_or(before.state);
        let moved = log::TaskMove { from: (before.state != to).then_some(before.state), to };
        let refused = after.err().map(Refused::to_string);
        let (kind, data) = log::TaskEntry { event: event.clone(), moved, refused }.stored();
        let project = Some(self.workflow.project().clone());
        let mut change = self.fill(Change { project, ..Change::new(now, kind) });
        change.session = before.session_id();
        change.data = data;
        let mut exit = None;
        if let task::Event::SessionEnded { exit: how, .. } = event {
            exit = Some(*how);
        }
        self.correct_end(&mut change, &before.session, exit);
        change
    }
}
