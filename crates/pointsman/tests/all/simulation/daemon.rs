//! The daemon around the real engine, on one thread: what it was told and has not taken yet, what
//! its workers hold, what its watches remember. All of that is lost in a crash; the store is not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard};

use pointsman::daemon::engine::{Engine, Input, InputKind};
use pointsman::daemon::outcome::Outcome;
use pointsman_core::ids::Number;
use pointsman_core::task::{Event, Order, Refused, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::workflow::{self, Workflow};
use pointsman_store::{Change, Error, Outgoing, ProjectRow, QueueEntry, Retry, Store, Write};

use super::landing::Landing;
use super::ledger::Ledger;
use super::reality::{Pretended, Reality};

/// While the disk is full a write is tried this often before somebody makes room.
const TRIES_WHILE_FULL: u32 = 2;
/// More pages than any run needs.
const ROOM: u32 = 1_000_000;

/// Who tells the daemon something. What one source tells arrives in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Forge,
    Phases,
    Exits,
    Checks,
    Landing,
    Workers,
    Runs,
    Hooks,
    Roles,
}

/// Something that waits to be taken.
pub(super) enum Item {
    Inputs(Vec<Input>),
    Performed(Box<Outgoing>, Outcome),
    /// The merge queue's answer, and the entry it is about.
    Reported(Option<Box<Input>>, Box<QueueEntry>),
}

/// What lives in memory only.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) inbound: BTreeMap<Source, VecDeque<Item>>,
    /// Effects that were handed out.
    pub(super) workers: Vec<(Outgoing, Workflow)>,
    /// The phase that was told last, by issue.
    pub(super) phases: BTreeMap<Number, Option<u64>>,
    /// Ends of sessions that were told.
    pub(super) exits: BTreeSet<(Number, u32)>,
    pub(super) landing: Option<Landing>,
}

/// A daemon in a pretended world.
pub(super) struct Daemon {
    pub(super) world: Pretended,
    pub(super) memory: Memory,
    pub(super) ledger: Ledger,
    database: PathBuf,
    engine: Option<Engine>,
}

impl Daemon {
    pub(super) fn start(world: Pretended, database: PathBuf) -> Self {
        let mut daemon =
            Self { world, memory: Memory::default(), ledger: Ledger::default(), database, engine: None };
        daemon.open();
        daemon
    }

    fn open(&mut self) {
        let store = Store::open(&self.database).expect("the database opens after any crash");
        let mut engine = Engine::open(store).expect("and can be read");
        let config = Arc::clone(&self.reality().story.config);
        engine.serve([Arc::clone(&config)]);
        if engine.store().projects().expect("projects can be read").is_empty() {
            let added = ProjectRow {
                name: config.name.clone(),
                config_path: PathBuf::from("pointsman.toml"),
                checkout: PathBuf::from("checkout"),
                added_at: Timestamp(0),
            };
            let mut change = Change::new(Timestamp(0), "project_added");
            change.project = Some(added.name.clone());
            change.writes.push(Write::ProjectAdded(added));
            engine.write(&[change]).expect("a new database has room");
        }
        self.engine = Some(engine);
    }

    /// SIGKILL: what was only in memory is gone.
    pub(super) fn crash(&mut self, place: &str) {
        self.say(format!("CRASH {place}"));
        self.reality().played.crash(place);
        self.engine = None;
        self.memory = Memory::default();
        self.reality().checks.clear();
        self.reality().hand_ins.checks.clear();
        self.open();
        self.look_after();
    }

    /// A crash, once in so many times, as long as things go wrong.
    pub(super) fn may_crash(&mut self, place: &str, one_in: usize) -> bool {
        let crashes = self.reality().fault(one_in);
        if crashes {
            self.crash(place);
        }
        crashes
    }

    pub(super) fn reality(&self) -> MutexGuard<'_, Reality> {
        self.world.look()
    }

    pub(super) fn engine(&mut self) -> &mut Engine {
        self.engine.as_mut().expect("the engine runs")
    }

    pub(super) fn say(&self, line: impl Into<String>) {
        self.reality().trace.say(line);
    }

    /// The tasks of the present picture.
    pub(super) fn tasks(&mut self) -> Vec<Arc<Task>> {
        self.engine().tasks().values().cloned().collect()
    }

    /// A task as it is on disk.
    pub(super) fn stored(&mut self, issue: Number) -> Option<Task> {
        let key = self.reality().key(issue);
        self.engine().store().task(&key).expect("tasks can be read")
    }

    /// Checks every promise that must hold at all times.
    pub(super) fn look_after(&mut self) {
        let engine = self.engine.as_mut().expect("the engine runs");
        self.ledger.check(engine, &self.world.look());
    }

    /// And those that must hold at the end.
    pub(super) fn look_at_the_end(&mut self) {
        let engine = self.engine.as_mut().expect("the engine runs");
        self.ledger.check_end(engine, &self.world.look());
    }

    /// The disk is full from now on, until a write has failed often enough.
    pub(super) fn fill_disk(&mut self) {
        self.say("the disk is full");
        self.engine().store().limit_pages_for_test(1).expect("a limit can be set");
    }

    /// Writes until it is written, as the dispatcher does. A failed try must leave nothing behind.
    pub(super) fn write<T>(&mut self, what: &str, mut f: impl FnMut(&mut Engine) -> Result<T, Error>) -> T {
        for tries in 1.. {
            match f(self.engine()) {
                Ok(value) => return value,
                Err(error) => {
                    assert_eq!(error.retry(), Retry::Later, "{what}: {error}");
                    self.say(format!("{what} not written: {error}"));
                    self.look_after();
                    if tries == TRIES_WHILE_FULL {
                        self.engine().store().limit_pages_for_test(ROOM).expect("room can be made");
                    }
                }
            }
        }
        unreachable!("it is written or it panicked")
    }

    /// What time brings.
    pub(super) fn tick(&mut self) {
        let now = self.reality().now;
        self.write("time", |engine| engine.tick(now));
        self.look_after();
    }

    /// When something will happen by itself.
    pub(super) fn next_time(&mut self) -> Option<Timestamp> {
        self.engine().wake_at().expect("times can be read")
    }

    /// Gives due effects to the workers.
    pub(super) fn hand_out(&mut self) {
        let now = self.reality().now;
        let due = self.engine().due(now).expect("the outbox can be read");
        for (outgoing, owner) in due {
            self.ledger.handed_out(&outgoing, &self.memory.workers);
            self.memory.workers.push((outgoing, owner));
        }
    }

    /// One of the workers performs its effect.
    pub(super) fn perform_one(&mut self) {
        if self.memory.workers.is_empty() {
            return;
        }
        let count = self.memory.workers.len();
        let place = self.reality().chance.below(count);
        let (outgoing, owner) = self.memory.workers.remove(place);
        let Some(outcome) = self.perform(&outgoing, &owner) else { return };
        let shown = match &outcome {
            Outcome::Done(performed) => format!("done {:?}", performed.events),
            Outcome::Later { error } | Outcome::Never { error } | Outcome::Down { error, .. } => {
                error.clone()
            }
        };
        self.say(format!(
            "perform {} {} {}: {shown}",
            outgoing.workflow,
            outgoing.id,
            outgoing.effect.kind()
        ));
        self.told(Source::Workers, Item::Performed(Box::new(outgoing), outcome));
    }

    pub(super) fn told(&mut self, source: Source, item: Item) {
        self.memory.inbound.entry(source).or_default().push_back(item);
    }

    /// Takes some of what waits. Sources are heard in any order, some things twice.
    pub(super) fn take_some(&mut self) {
        let mut items = Vec::new();
        let wanted = 1 + self.reality().chance.below(4);
        for _ in 0..wanted {
            self.memory.inbound.retain(|_, waiting| !waiting.is_empty());
            let sources: Vec<Source> = self.memory.inbound.keys().copied().collect();
            if sources.is_empty() {
                break;
            }
            let source = *self.reality().chance.pick(&sources);
            let waiting = self.memory.inbound.get_mut(&source).expect("it is listed");
            let Some(item) = waiting.pop_front() else { continue };
            let repeats = matches!(
                source,
                Source::Forge | Source::Exits | Source::Checks | Source::Runs | Source::Hooks | Source::Roles
            );
            if let Item::Inputs(inputs) = &item
                && repeats
                && self.world.look().fault(10)
            {
                waiting.push_front(Item::Inputs(inputs.clone()));
            }
            items.push(item);
        }
        self.take(items);
    }

    /// Takes everything that waits.
    pub(super) fn take_all(&mut self) {
        let items = std::mem::take(&mut self.memory.inbound).into_values().flatten().collect();
        self.take(items);
    }

    fn take(&mut self, items: Vec<Item>) {
        let now = self.reality().now;
        let mut inputs = Vec::new();
        let mut entries = Vec::new();
        for item in items {
            match item {
                Item::Inputs(some) => inputs.extend(some),
                Item::Performed(outgoing, outcome) => {
                    inputs.extend(self.write("an outcome", |e| e.absorb(&outgoing, &outcome, now)));
                    if self.may_crash("after an outcome was absorbed", 60) {
                        return;
                    }
                }
                Item::Reported(input, entry) => entries.push((input, entry)),
            }
        }
        self.take_group(&inputs, Vec::new());
        for (input, entry) in entries {
            if self.may_crash("before an entry of the queue is written", 2) {
                return;
            }
            let inputs: Vec<Input> = input.into_iter().map(|input| *input).collect();
            self.take_group(&inputs, vec![moved(&entry, now)]);
            self.memory.landing = None;
        }
    }

    pub(super) fn take_group(&mut self, group: &[Input], changes: Vec<Change>) {
        let now = self.reality().now;
        let before = self.engine().store().last_seq().expect("the log can be read");
        let answers = self.write("events", |engine| engine.take_with(group, changes.clone(), now));
        let written = self.engine().store().last_seq().expect("the log can be read") > before;
        for (input, answer) in group.iter().zip(answers) {
            if let (InputKind::Event(event), Ok(())) = (&input.event, &answer) {
                self.reality().played.event(event);
            }
            let observed =
                matches!(&input.event, InputKind::Event(workflow::Event::Task(Event::IssueObserved { .. })));
            if answer.is_ok() && (observed || !written) {
                continue;
            }
            let refused = answer.err().map(|why| format!(" refused: {why}")).unwrap_or_default();
            let task = input.workflow.task().and_then(|key| self.engine().tasks().get(key).cloned());
            let state = task.map(|t| t.state.name()).unwrap_or("gone");
            self.say(format!("take {} {:?}{refused} -> {state}", input.workflow, input.event));
        }
        self.look_after();
    }

    /// A command of a person, answered at once.
    pub(super) fn command(&mut self, issue: Number, event: Event) -> Result<(), Refused> {
        let now = self.reality().now;
        let input = Input::new(self.reality().key(issue), event);
        self.say(format!("person: {} {:?}", input.workflow, input.event));
        let mut answers = self.write("a command", |engine| engine.take(std::slice::from_ref(&input), now));
        if let (InputKind::Event(event), Some(Ok(()))) = (&input.event, answers.last()) {
            self.reality().played.event(event);
        }
        self.look_after();
        answers.pop().expect("one answer for one command")
    }

    pub(super) fn order(&mut self, issue: Number, order: Order) -> Result<(), Refused> {
        self.command(issue, Event::Ordered { order })
    }
}

/// An entry of the merge queue as it is now, with the event that says so.
pub(super) fn moved(entry: &QueueEntry, now: Timestamp) -> Change {
    let mut change = Change::new(now, "queue_moved");
    (change.project, change.issue) = (Some(entry.project.clone()), entry.issue);
    change.writes.push(Write::EntryMoved(Box::new(entry.clone())));
    change
}
