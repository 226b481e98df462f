//! Inputs: events of a task on their way into the store.

use std::path::PathBuf;

use pointsman_core::ids::TaskKey;
use pointsman_core::log;
use pointsman_core::task::{Event, Exit, Refused, Stage, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_store::{Change, EffectId, NewEntry, NewNotice, Outgoing, SessionRow, Write};

/// Something that happened to a task, on its way into the store.
#[derive(Clone, Debug)]
pub struct Input {
    pub key: TaskKey,
    pub event: InputKind,
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
    /// What is written right before it, even if the task refuses it.
    pub first: Vec<Change>,
    /// What is written in the same change, and not at all if the task refuses it.
    pub writes: Vec<Write>,
}

impl Input {
    /// An event with nothing attached.
    pub fn new(key: TaskKey, event: Event) -> Self {
        Self::with(key, InputKind::Event(event))
    }

    /// An effect is done and the task learns nothing from it.
    pub(super) fn effect_done(key: TaskKey, kind: &'static str) -> Self {
        Self::with(key, InputKind::EffectDone(kind))
    }

    /// An effect could not be done yet.
    pub(super) fn postponed_effect(outgoing: &Outgoing, error: String, not_before: Timestamp) -> Self {
        Self::with(outgoing.task.clone(), InputKind::Postponed { id: outgoing.id, error, not_before })
    }

    /// The effect that it postpones.
    pub(super) fn postponed(&self) -> Option<EffectId> {
        match &self.event {
            InputKind::Postponed { id, .. } => Some(*id),
            InputKind::Event(_) | InputKind::EffectDone(_) => None,
        }
    }

    fn with(key: TaskKey, event: InputKind) -> Self {
        Self {
            key,
            event,
            dedup: None,
            settles: None,
            failure: None,
            sent: None,
            cursor: None,
            sessions: Vec::new(),
            notices: Vec::new(),
            enters: None,
            leaves: None,
            first: Vec::new(),
            writes: Vec::new(),
        }
    }
}

/// The content of an input.
#[derive(Clone, Debug)]
pub enum InputKind {
    /// Something for the task to step on.
    Event(Event),
    /// An effect of this kind is done.
    EffectDone(&'static str),
    /// An effect is to be tried again later.
    Postponed { id: EffectId, error: String, not_before: Timestamp },
}

impl Input {
    /// Whether it leaves a trace even if the task stays as it is.
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
        self.fill(Change::logged(now, &self.key.project, entry))
    }

    fn fill(&self, mut change: Change) -> Change {
        change.issue = Some(self.key.issue);
        change.dedup.clone_from(&self.dedup);
        change.settles = self.settles;
        change.failure.clone_from(&self.failure);
        change.sent.clone_from(&self.sent);
        change.cursors.extend(self.cursor.clone());
        change.sessions.clone_from(&self.sessions);
        change.notices.clone_from(&self.notices);
        change.writes.extend(self.writes.iter().cloned());
        change
    }

    /// An event that the task has taken, and which brought it to the state `after`, or has refused.
    pub(super) fn event_change(
        &self,
        now: Timestamp,
        event: &Event,
        before: &Task,
        after: Result<State, &Refused>,
    ) -> Change {
        let to = after.unwrap_or(before.state);
        let moved = log::TaskMove { from: (before.state != to).then_some(before.state), to };
        let refused = after.err().map(Refused::to_string);
        let (kind, data) = log::TaskEntry { event: event.clone(), moved, refused }.stored();
        let project = Some(self.key.project.clone());
        let mut change = self.fill(Change { project, ..Change::new(now, kind) });
        change.session = before.session_id();
        change.data = data;
        if before.session.stage == Stage::Ending && self.settles.is_none() {
            // It went by itself while we were about to end it: the order says how that is recorded.
            change.sessions.clear();
        }
        let went = matches!(event, Event::SessionEnded { exit: Exit::Crashed | Exit::Exited, .. });
        if before.session.handoff.is_some() && went {
            // It went because it was asked to.
            for row in &mut change.sessions {
                row.exit = Some(Exit::Handoff);
            }
        }
        change
    }
}
