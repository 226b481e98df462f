//! What the store tells about the demo's tasks, read while the daemon writes.

use std::collections::BTreeMap;
use std::path::Path;

use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::task::{Exit, Session, State, Task};
use pointsman_store::{EventFilter, EventRow, SessionScope, Store};
use serde::Deserialize;
use serde_json::Value;

/// One task as it is now and as it came to be.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The task; none before the daemon found its issue.
    pub(super) task: Option<Task>,
    /// Every state it was in, in order.
    pub(super) states: Vec<State>,
    /// The sessions that were started for it, oldest first.
    pub(super) sessions: Vec<SeenSession>,
    /// The event by which its first session ran.
    pub(super) started: Option<i64>,
    /// The event by which it was closed.
    pub(super) closed: Option<i64>,
    /// Orders about it that still wait in the outbox.
    pub(super) pending: usize,
    /// Orders about it that could never be done, and why.
    pub(super) gave_up: Vec<String>,
}

/// A session as far as the stories care.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenSession {
    /// Its process.
    pub(super) pid: Option<u32>,
    /// How it ended.
    pub(super) exit: Option<Exit>,
}

impl Seen {
    /// Where it stands.
    pub(super) fn state(&self) -> Option<State> {
        self.task.as_ref().map(|t| t.state)
    }

    /// Whether nothing more will happen to it by itself.
    pub(super) fn is_over(&self) -> bool {
        let Some(task) = &self.task else { return false };
        let stopped = match task.state {
            State::Closed | State::Blocked | State::Refused | State::Paused => true,
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Escalated
            | State::Merged => false,
        };
        stopped && task.session == Session::None && self.pending == 0
    }

    fn happened(&mut self, event: &EventRow) {
        let state = |key| event.data.get(key).and_then(|v: &Value| State::deserialize(v).ok());
        for state in [state("from"), state("to")].into_iter().flatten() {
            if self.states.last() != Some(&state) {
                self.states.push(state);
                if state == State::Closed {
                    self.closed = Some(event.seq);
                }
            }
        }
        match event.kind.as_str() {
            "session_started" => {
                self.started.get_or_insert(event.seq);
            }
            "effect_gave_up" => {
                let text = |key| event.data.get(key).and_then(Value::as_str).unwrap_or("?");
                self.gave_up.push(format!("{}: {}", text("effect"), text("error")));
            }
            _ => {}
        }
    }
}

/// Follows one project.
pub(super) struct Watcher {
    store: Store,
    project: ProjectName,
    since: i64,
    seen: BTreeMap<Number, Seen>,
}

impl Watcher {
    pub(super) fn open(database: &Path, project: ProjectName) -> anyhow::Result<Self> {
        let store = Store::open_read_only(database)?;
        Ok(Self { store, project, since: 0, seen: BTreeMap::new() })
    }

    /// What there is to see now, by issue.
    pub(super) fn look(&mut self) -> anyhow::Result<&BTreeMap<Number, Seen>> {
        // Tasks first: whatever they hold then, its events are there too.
        let tasks = self.store.tasks(Some(&self.project))?;
        loop {
            let filter = EventFilter {
                since: self.since,
                project: Some(self.project.clone()),
                ..EventFilter::default()
            };
            let events = self.store.events(&filter)?;
            let Some(last) = events.last() else { break };
            self.since = last.seq;
            for event in &events {
                if let Some(issue) = event.issue {
                    self.seen.entry(issue).or_default().happened(event);
                }
            }
        }
        for task in tasks {
            let seen = self.seen.entry(task.key.issue).or_default();
            seen.pending = self.store.pending_effects(&task.key)?.len();
            seen.task = Some(task);
            seen.sessions.clear();
        }
        for session in self.store.sessions(Some(&self.project), SessionScope::All)? {
            if let Some(seen) = session.issue.and_then(|issue| self.seen.get_mut(&issue)) {
                seen.sessions.push(SeenSession { pid: session.pid, exit: session.exit });
            }
        }
        Ok(&self.seen)
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::{ProjectName, TaskKey};
    use pointsman_core::task::{Session, State, Task};
    use pointsman_core::time::Timestamp;
    use pointsman_store::{Change, Store};
    use serde_json::json;

    use super::Watcher;

    #[test]
    fn the_way_of_a_task_is_read_from_its_events() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("p.db");
        let mut store = Store::open(&database).unwrap();
        let project = ProjectName::new("shop").unwrap();
        let mut watcher = Watcher::open(&database, project.clone()).unwrap();
        assert!(watcher.look().unwrap().is_empty());

        let key = TaskKey { project, issue: 3 };
        let mut task = Task::new(key, String::new(), String::new(), Timestamp(0));
        let steps = [
            ("issue_observed", State::Backlog, State::Backlog),
            ("ordered", State::Backlog, State::Working),
            ("session_started", State::Working, State::Working),
            ("effect_gave_up", State::Working, State::Working),
            ("issue_observed", State::Working, State::Closed),
        ];
        for (kind, from, to) in steps {
            task.state = to;
            task.session = if kind == "session_started" { Session::Alive } else { Session::None };
            let data = if from == to {
                json!({ "to": to, "effect": "clean_up", "error": "no" })
            } else {
                json!({ "from": from, "to": to })
            };
            let change = Change { data, task: Some(task.clone()), ..Change::new(Timestamp(1), kind) };
            store.commit(&[change]).unwrap();
            assert_eq!(watcher.look().unwrap()[&3].is_over(), to == State::Closed, "{kind}");
        }
        let seen = &watcher.look().unwrap()[&3];
        assert_eq!(seen.states, [State::Backlog, State::Working, State::Closed]);
        assert!(seen.started.unwrap() < seen.closed.unwrap());
        assert_eq!(seen.gave_up, ["clean_up: no"]);
    }
}
