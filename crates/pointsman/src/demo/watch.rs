//! The demo's tasks as the store has them, read while the daemon writes.

use std::collections::BTreeMap;
use std::path::Path;

use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::log;
use pointsman_core::task::{Event, Exit, Stage, State, Task};
use pointsman_core::vault::{ActionId, Status};
use pointsman_store::{EventFilter, EventRow, SessionScope, Store};

use super::people::Part;
use super::project::NAMES;

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
    /// The vault action of its story, if that has one and it is there.
    pub(super) action: Option<Status>,
}

/// A session as far as the stories care.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenSession {
    pub(super) pid: Option<u32>,
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
        stopped && task.session.stage == Stage::None && self.pending == 0
    }

    fn happened(&mut self, event: &EventRow) {
        let moved = log::TaskMove::read(&event.kind, &event.data);
        let states = moved.map_or([None, None], |moved| [moved.from, Some(moved.to)]);
        for state in states.into_iter().flatten() {
            if self.states.last() != Some(&state) {
                self.states.push(state);
                if state == State::Closed {
                    self.closed = Some(event.seq);
                }
            }
        }
        match log::TaskEntry::read(&event.kind, &event.data).map(|entry| entry.event) {
            Some(Event::SessionStarted { .. }) => {
                self.started.get_or_insert(event.seq);
            }
            Some(Event::EffectGaveUp { effect, error }) => self.gave_up.push(format!("{effect}: {error}")),
            Some(_) | None => {}
        }
    }
}

/// Follows the projects of the demo.
pub(super) struct Watcher {
    store: Store,
    since: i64,
    seen: BTreeMap<Part, Seen>,
}

fn part(project: &ProjectName, issue: Number) -> Option<Part> {
    let project = NAMES.into_iter().find(|name| *name == project.as_str())?;
    Some(Part { project, issue })
}

impl Watcher {
    pub(super) fn open(database: &Path) -> anyhow::Result<Self> {
        let store = Store::open_read_only(database)?;
        Ok(Self { store, since: 0, seen: BTreeMap::new() })
    }

    /// Where an action of a project's vault stands.
    pub(super) fn action(&self, project: &str, id: &str) -> anyhow::Result<Option<Status>> {
        let (Some(project), Some(id)) = (ProjectName::new(project), ActionId::new(id)) else {
            return Ok(None);
        };
        Ok(self.store.vault_entry(&project, &id)?.map(|entry| entry.status))
    }

    /// What there is to see now, by issue.
    pub(super) fn look(&mut self) -> anyhow::Result<&BTreeMap<Part, Seen>> {
        // Tasks first: whatever they hold then, its events are there too.
        let tasks = self.store.tasks(None)?;
        loop {
            let filter = EventFilter { since: self.since, ..EventFilter::default() };
            let events = self.store.events(&filter)?;
            let Some(last) = events.last() else { break };
            self.since = last.seq;
            for event in &events {
                if let Some(part) = event.project.as_ref().zip(event.issue).and_then(|(p, i)| part(p, i)) {
                    self.seen.entry(part).or_default().happened(event);
                }
            }
        }
        for task in tasks {
            let Some(part) = part(&task.key.project, task.key.issue) else { continue };
            let seen = self.seen.entry(part).or_default();
            seen.pending = self.store.pending_effects(&task.key)?.len();
            seen.task = Some(task);
            seen.sessions.clear();
        }
        for session in self.store.sessions(None, SessionScope::All)? {
            let part = session.issue.and_then(|issue| part(&session.project, issue));
            if let Some(seen) = part.and_then(|part| self.seen.get_mut(&part)) {
                seen.sessions.push(SeenSession { pid: session.pid, exit: session.exit });
            }
        }
        Ok(&self.seen)
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::{ProjectName, TaskKey};
    use pointsman_core::log;
    use pointsman_core::task::{Event, Order, Stage, State, Task};
    use pointsman_core::time::Timestamp;
    use pointsman_store::{Change, Store};

    use super::Watcher;
    use crate::demo::people::Part;

    #[test]
    fn the_way_of_a_task_is_read_from_its_events() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("p.db");
        let mut store = Store::open(&database).unwrap();
        let project = ProjectName::new("shop").unwrap();
        let mut watcher = Watcher::open(&database).unwrap();
        let third = Part { project: "shop", issue: 3 };
        assert!(watcher.look().unwrap().is_empty());

        let key = TaskKey { project, issue: 3 };
        let mut task = Task::new(key, String::new(), String::new(), Timestamp(0));
        let gave_up = Event::EffectGaveUp { effect: "clean_up".to_owned(), error: "no".to_owned() };
        let steps = [
            (Event::Claimed, State::Backlog, State::Backlog),
            (Event::Ordered { order: Order::Begin }, State::Backlog, State::Working),
            (Event::SessionStarted { generation: 1 }, State::Working, State::Working),
            (gave_up, State::Working, State::Working),
            (Event::Claimed, State::Working, State::Closed),
        ];
        for (event, from, to) in steps {
            task.state = to;
            let started = matches!(event, Event::SessionStarted { .. });
            task.session.stage = if started { Stage::Alive } else { Stage::None };
            let moved = log::TaskMove { from: (from != to).then_some(from), to };
            let (kind, data) = log::TaskEntry { event, moved, refused: None }.stored();
            let project = Some(task.key.project.clone());
            let issue = Some(task.key.issue);
            let change = Change {
                data,
                project,
                issue,
                task: Some(task.clone()),
                ..Change::new(Timestamp(1), kind.as_str())
            };
            store.commit(&[change]).unwrap();
            assert_eq!(watcher.look().unwrap()[&third].is_over(), to == State::Closed, "{kind}");
        }
        let seen = &watcher.look().unwrap()[&third];
        assert_eq!(seen.states, [State::Backlog, State::Working, State::Closed]);
        assert!(seen.started.unwrap() < seen.closed.unwrap());
        assert_eq!(seen.gave_up, ["clean_up: no"]);
    }
}
