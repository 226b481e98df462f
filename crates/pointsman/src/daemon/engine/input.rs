//! What happened to a task, on its way into the store.

use std::path::PathBuf;

use pointsman_core::ids::TaskKey;
use pointsman_core::task::{Event, Exit, Stage, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_store::{Change, EffectId, NewNotice, SessionRow};
use serde_json::json;

/// Something that happened to a task, on its way into the store.
#[derive(Clone, Debug)]
pub struct Input {
    pub key: TaskKey,
    pub event: Happening,
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
}

impl Input {
    /// An event with nothing attached.
    pub fn new(key: TaskKey, event: Event) -> Self {
        Self::with(key, Happening::Event(event))
    }

    /// An effect is done and the task learns nothing from it.
    pub(super) fn effect_done(key: TaskKey, kind: &'static str) -> Self {
        Self::with(key, Happening::EffectDone(kind))
    }

    fn with(key: TaskKey, event: Happening) -> Self {
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
        }
    }
}

/// What an input says.
#[derive(Clone, Debug)]
pub enum Happening {
    /// Something for the task to step on.
    Event(Event),
    /// An effect of this kind is done.
    EffectDone(&'static str),
}

impl Input {
    /// Whether it leaves a trace even if the task stays as it is.
    pub(super) fn must_be_written(&self) -> bool {
        self.settles.is_some() || self.cursor.is_some() || !self.sessions.is_empty()
    }

    pub(super) fn change(&self, now: Timestamp, kind: &str) -> Change {
        let mut change = Change::new(now, kind);
        change.project = Some(self.key.project.clone());
        change.issue = Some(self.key.issue);
        change.dedup.clone_from(&self.dedup);
        change.settles = self.settles;
        change.failure.clone_from(&self.failure);
        change.sent.clone_from(&self.sent);
        change.cursor.clone_from(&self.cursor);
        change.sessions.clone_from(&self.sessions);
        change.notices.clone_from(&self.notices);
        change
    }

    pub(super) fn event_change(&self, now: Timestamp, event: &Event, before: &Task, after: State) -> Change {
        let mut data = serde_json::to_value(event).unwrap_or_default();
        let kind = data.get("event").and_then(|v| v.as_str()).unwrap_or("ordered").to_owned();
        if let Some(map) = data.as_object_mut() {
            map.remove("event");
            if before.state != after {
                map.insert("from".to_owned(), json!(before.state));
            }
            map.insert("to".to_owned(), json!(after));
        }
        let mut change = self.change(now, &kind);
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

/// Cuts inputs into transactions: whether an input is a duplicate only shows when it is written, and
/// nothing may be decided on top of one before that.
pub fn groups(inputs: &[Input]) -> impl Iterator<Item = &[Input]> {
    inputs.chunk_by(|a, b| a.dedup.is_none() && b.dedup.is_none())
}
