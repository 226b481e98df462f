//! The engine takes events, commits each in one transaction, and hands out effects. It is synchronous and has no
//! threads, clock or IO beyond the store, so the daemon and the simulation run the same code.

mod input;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::config::{Config, Runtime};
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::log;
use pointsman_core::schedule;
use pointsman_core::session::budget::Spent;
use pointsman_core::session::work::{Action, Observation, WorkState};
use pointsman_core::signal::Signal;
use pointsman_core::snapshot::Unreadable;
use pointsman_core::task::{
    Event, Exit, Order, Policy, Refused, Stage, State, Task, Transition, signals, step,
};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{
    Change, Committed, EffectId, EntryId, EntryScope, EntryStatus, NewEntry, Outgoing, SessionRow,
    SessionScope, Store, Write,
};

pub use input::{Input, InputKind};

use super::budget;
use super::crash::{Side, commit_point, crash_point};
use super::outcome::{Note, Outcome, gave_up};
use super::queue_orders;

/// The first retry of an effect comes after this long; doubles each time.
const RETRY_FIRST: Duration = Duration::from_millis(250);
/// But never later than this: an outage that is over should be noticed.
const RETRY_LAST: Duration = Duration::from_secs(60);
/// Budgets of time and restarts are looked at this often, and when a session begins or ends.
const BUDGET_LOOK: Duration = Duration::from_secs(1);
/// Budgets of time of whole issues are days.
const ISSUE_LOOK: Duration = Duration::from_secs(60);
/// Before any time there is.
const AT_ONCE: Timestamp = Timestamp(i64::MIN);

/// What the rules of one project are.
struct Rules {
    config: Arc<Config>,
    policy: Policy,
}

/// The state of all tasks, and the one way in which it changes.
pub struct Engine {
    store: Store,
    tasks: BTreeMap<TaskKey, Arc<Task>>,
    rules: BTreeMap<ProjectName, Rules>,
    /// What the workers hold: at most one effect of a task, even if it was superseded meanwhile.
    in_flight: BTreeMap<TaskKey, EffectId>,
    /// Tasks with effects that nobody can perform, because the task cannot be read. The effects wait.
    stuck: BTreeSet<TaskKey>,
    changed: bool,
    /// When budgets of time and restarts are looked at next.
    budgets_at: Timestamp,
    /// When those of whole issues are.
    issues_at: Timestamp,
}

impl Engine {
    /// Loads what is not over. A closed task whose session never came to its end is not.
    pub fn open(store: Store) -> Result<Self, pointsman_store::Error> {
        let mut tasks: BTreeMap<TaskKey, Arc<Task>> =
            store.open_tasks()?.into_iter().map(|t| (t.key.clone(), Arc::new(t))).collect();
        for session in store.sessions(None, SessionScope::Live)? {
            let Some(issue) = session.issue else { continue };
            let key = TaskKey { project: session.project, issue };
            if tasks.contains_key(&key) {
                continue;
            }
            match store.task(&key) {
                Ok(Some(task)) => drop(tasks.insert(key, Arc::new(task))),
                // One that cannot be read waits for a person; the others go on.
                Ok(None) | Err(pointsman_store::Error::Unreadable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let stuck = store.unreadable()?.iter().filter_map(Unreadable::task).collect();
        Ok(Self {
            store,
            tasks,
            rules: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            stuck,
            changed: true,
            budgets_at: AT_ONCE,
            issues_at: AT_ONCE,
        })
    }

    /// Serves these projects, with their rules, and no others.
    pub fn serve(&mut self, configs: impl IntoIterator<Item = Arc<Config>>) {
        self.rules = configs
            .into_iter()
            .map(|config| (config.name.clone(), Rules { policy: Policy::new(&config), config }))
            .collect();
        self.changed = true;
    }

    /// The projects that are served.
    pub fn served(&self) -> impl Iterator<Item = &ProjectName> {
        self.rules.keys()
    }

    /// A served project's configuration.
    pub fn config(&self, project: &ProjectName) -> Option<Arc<Config>> {
        self.rules.get(project).map(|rules| Arc::clone(&rules.config))
    }

    /// The store, to read from.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Writes changes that are not about a task's state, in one transaction.
    pub fn write(&mut self, changes: &[Change]) -> Result<Vec<Committed>, pointsman_store::Error> {
        crash_point("before-commit");
        commit_point(Side::Before, changes);
        let committed = self.store.commit(changes)?;
        commit_point(Side::After, changes);
        crash_point("after-commit");
        Ok(committed)
    }

    /// All tasks that are not over.
    pub fn tasks(&self) -> &BTreeMap<TaskKey, Arc<Task>> {
        &self.tasks
    }

    /// Whether tasks changed since this was last asked.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Steps every input and commits all that follows in one transaction. Nothing is remembered in
    /// memory that is not on disk: on an error the same inputs can be given again as they are. One that was taken before,
    /// by its name, only settles its effect.
    pub fn take(
        &mut self,
        inputs: &[Input],
        now: Timestamp,
    ) -> Result<Vec<Result<(), Refused>>, pointsman_store::Error> {
        self.take_with(inputs, Vec::new(), now)
    }

    /// The same, together with changes that are not about a task's state.
    pub fn take_with(
        &mut self,
        inputs: &[Input],
        changes: Vec<Change>,
        now: Timestamp,
    ) -> Result<Vec<Result<(), Refused>>, pointsman_store::Error> {
        let mut batch = Batch { changes, ..Batch::default() };
        let mut answers = Vec::with_capacity(inputs.len());
        for input in inputs {
            answers.push(self.step(&mut batch, input, now)?);
        }
        self.commit(batch)?;
        for input in inputs {
            if let Some(id) = input.settles.or(input.postponed()) {
                self.returned(&input.key, id);
            }
        }
        Ok(answers)
    }

    fn step(
        &mut self,
        batch: &mut Batch,
        input: &Input,
        now: Timestamp,
    ) -> Result<Result<(), Refused>, pointsman_store::Error> {
        if let Some(name) = &input.dedup
            && (!batch.inputs.insert(name.clone()) || self.store.knows_input(name)?)
        {
            batch.changes.extend(input.only_settles(now));
            return Ok(Ok(()));
        }
        self.move_in_queue(batch, input, now)?;
        let event = match &input.event {
            InputKind::Event(event) => event,
            InputKind::EffectDone(kind) => {
                let done = log::Entry::EffectDone { effect: (*kind).to_owned() };
                batch.changes.push(input.change(now, &done));
                return Ok(Ok(()));
            }
            InputKind::Postponed { id, error, not_before } => {
                let (error, not_before) = (error.clone(), *not_before);
                let postponed = Write::EffectPostponed { id: *id, error, not_before };
                batch.changes.push(Change::quiet(now, vec![postponed]));
                return Ok(Ok(()));
            }
        };
        let Some(rules) = self.rules.get(&input.key.project) else {
            return Ok(Err(Refused::NotNow(words::daemon::request::not_served(&input.key.project))));
        };
        let before = match batch.tasks.get(&input.key).or_else(|| self.tasks.get(&input.key)) {
            Some(task) => Arc::clone(task),
            None => match (self.stored(&input.key)?, event) {
                (Ok(Some(task)), _) => Arc::new(task),
                (Ok(None), Event::IssueObserved { title, open: true, .. }) => {
                    let branch = rules.config.branch(input.key.issue);
                    Arc::new(Task::new(input.key.clone(), title.clone(), branch, now))
                }
                (Ok(None), _) => {
                    return Ok(Err(Refused::NotNow(words::daemon::request::unknown_task(&input.key))));
                }
                (Err(why), _) => return Ok(Err(Refused::NotNow(why))),
            },
        };
        match step(&before, event, &rules.policy, now) {
            Ok(Transition { task, effects }) => {
                let idle = task == *before && effects.is_empty() && self.tasks.contains_key(&input.key);
                if !idle || input.must_be_written() || input.dedup.is_some() {
                    let mut change = input.event_change(now, event, &before, Ok(task.state));
                    change.signals = signals(&before, event, &task);
                    change.sessions.extend(registered(&before, &task, &rules.config, now));
                    if matches!(event, Event::PhaseClaimed { .. }) {
                        change.work_state = self.handed_in(&task, now)?;
                        let shown = change.work_state.as_ref().map(serde_json::to_value);
                        change.signals.extend(shown.map(|s| (Signal::HookUpdated, s.unwrap_or_default())));
                    } else {
                        change.work_state = begun(&before, &task, now);
                    }
                    change.effects = effects;
                    change.task = Some(task.clone());
                    batch.changes.push(change);
                    batch.tasks.insert(input.key.clone(), Arc::new(task));
                }
                Ok(Ok(()))
            }
            Err(refused) => {
                // What may come again is not remembered as seen: it counts when its time has come.
                if input.must_be_written() {
                    let mut change = input.event_change(now, event, &before, Err(&refused));
                    change.dedup = None;
                    batch.changes.push(change);
                } else {
                    tracing::debug!(task = %input.key, event = ?input.event, %refused, "refused");
                }
                Ok(Err(refused))
            }
        }
    }

    fn commit(&mut self, batch: Batch) -> Result<(), pointsman_store::Error> {
        if batch.changes.is_empty() {
            return Ok(());
        }
        let mut batch = batch;
        let gauges: Vec<Write> = batch.tasks.values().filter_map(|task| self.shown_gauge(task)).collect();
        if let (false, Some(last)) = (gauges.is_empty(), batch.changes.last_mut()) {
            last.writes.extend(gauges);
        }
        self.write(&batch.changes)?;
        for change in &batch.changes {
            if let Some(task) = &change.task {
                tracing::info!(task = %task.key, state = %task.state, event = change.kind, "step");
            }
        }
        if batch.changes.iter().any(|change| !change.sessions.is_empty()) {
            self.budgets_at = AT_ONCE;
        }
        for (key, task) in batch.tasks {
            if task.state == State::Closed && task.session.stage == Stage::None && task.block_seen {
                self.tasks.remove(&key);
            } else {
                self.tasks.insert(key, task);
            }
        }
        self.changed = true;
        Ok(())
    }

    /// A session shows the gauge that its task is about to go by. After a compaction the last one stays until there is a
    /// new one.
    fn shown_gauge(&self, task: &Task) -> Option<Write> {
        let known = self.tasks.get(&task.key).and_then(|known| known.session.context.gauge);
        match (task.session.context.gauge, task.session_id()) {
            (Some(gauge), Some(session)) if known != Some(gauge) => {
                Some(Write::ContextMeasured { session, gauge })
            }
            _ => None,
        }
    }

    /// A task as it is on disk. One that cannot be read stands still: that is a refusal, and nobody else's trouble.
    fn stored(&self, key: &TaskKey) -> Result<Result<Option<Task>, String>, pointsman_store::Error> {
        match self.store.task(key) {
            Ok(task) => Ok(Ok(task)),
            Err(error @ pointsman_store::Error::Unreadable(_)) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// The work state of an agent that signalled a phase: it is about to hand in, if that is news.
    fn handed_in(&self, task: &Task, now: Timestamp) -> Result<Option<WorkState>, pointsman_store::Error> {
        let Some(mut work) = self.known_work(&task.key)?.flatten() else { return Ok(None) };
        let news = work.observe(&Observation::Did(Action::Finished), now);
        Ok(news.then_some(work))
    }

    /// The work state of a task's identity. The outer nothing says that there is one and it cannot be read: then it stays
    /// as it is.
    fn known_work(&self, key: &TaskKey) -> Result<Option<Option<WorkState>>, pointsman_store::Error> {
        match self.store.work_state(&key.identity()) {
            Ok(work) => Ok(Some(work)),
            Err(pointsman_store::Error::Unreadable(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes in what was seen of a session's work; writes it down only if it says something new. `read_to`
    /// is remembered with it, so that what was seen once is not seen again by the next daemon.
    pub fn observe(
        &mut self,
        key: &TaskKey,
        observations: &[Observation],
        read_to: Option<&(String, String)>,
        now: Timestamp,
    ) -> Result<(), pointsman_store::Error> {
        let Some(task) = self.tasks.get(key) else { return Ok(()) };
        let Some(before) = self.known_work(key)? else { return Ok(()) };
        let mut work = before.clone().unwrap_or_else(|| WorkState::begin(key.identity(), &task.title, now));
        for observation in observations {
            work.observe(observation, now);
        }
        if Some(&work) == before.as_ref() {
            return match read_to {
                Some((name, value)) => {
                    let read_to = Write::cursor(&key.project, name, value);
                    self.write(&[Change::quiet(now, vec![read_to])]).map(drop)
                }
                None => Ok(()),
            };
        }
        let (work_phase, tests_status) = (work.work_phase, work.tests_status);
        let observed = log::Entry::WorkObserved { work_phase, tests_status };
        let mut change = Change::logged(now, &key.project, &observed);
        change.cursors.extend(read_to.cloned());
        change.issue = Some(key.issue);
        change.session = task.session_id();
        let shown = serde_json::to_value(&work).unwrap_or_default();
        change.signals = vec![(Signal::HookUpdated, shown)];
        change.work_state = Some(work);
        self.write(&[change])?;
        self.changed = true;
        Ok(())
    }

    /// Does what time alone brings: deadlines and budgets that have passed, then places that are free. In this
    /// order, because a deadline may take a place.
    pub fn tick(&mut self, now: Timestamp) -> Result<(), pointsman_store::Error> {
        let due = self.tasks.values().filter(|t| t.wake_at().is_some_and(|at| at <= now));
        let passed: Vec<Input> = due.map(|t| Input::new(t.key.clone(), Event::TimePassed)).collect();
        self.take(&passed, now)?;
        if self.budgets_at <= now || self.budgets_at > now.after(BUDGET_LOOK) {
            let thoroughly = self.issues_at <= now || self.issues_at > now.after(ISSUE_LOOK);
            let passed = budget::passed_by_themselves(self, thoroughly, now)?;
            if thoroughly {
                self.issues_at = now.after(ISSUE_LOOK);
            }
            self.take(&passed, now)?;
            self.budgets_at = now.after(BUDGET_LOOK);
        }
        let mut begun = Vec::new();
        for (project, rules) in self.rules.iter().filter(|(_, rules)| rules.config.roles.dev.enabled) {
            let tasks = self.tasks.values().map(Arc::as_ref).filter(|t| t.key.project == *project);
            let concurrency = usize::try_from(rules.config.dev.concurrency).unwrap_or(usize::MAX);
            for issue in schedule::starts(tasks, concurrency) {
                let key = TaskKey { project: project.clone(), issue };
                let Some(task) = self.tasks.get(&key) else { continue };
                if budget::may_begin(&self.store, &rules.config, task, now)? {
                    begun.push(Input::new(key, Event::Ordered { order: Order::Begin }));
                }
            }
        }
        self.take(&begun, now)?;
        Ok(())
    }

    /// The time at which something is due by itself. What the workers hold comes back without it, and
    /// the effects of a project that is not served wait for more than time.
    pub fn wake_at(&self) -> Result<Option<Timestamp>, pointsman_store::Error> {
        let tasks = self.tasks.values().filter_map(|t| t.wake_at()).min();
        let effects = self.store.next_effect_time(|task| !self.is_free(task))?;
        Ok([tasks, effects].into_iter().flatten().min())
    }

    /// Effects that can be performed now, at most one per task. Each is handed out once until
    /// [`settle`](Self::settle) says what became of it.
    pub fn due(&mut self, now: Timestamp) -> Result<Vec<(Outgoing, Arc<Task>)>, pointsman_store::Error> {
        let mut due = Vec::new();
        for outgoing in self.store.due_effects(Timestamp(i64::MAX), |task| !self.is_free(task))? {
            // Nothing is put off for longer than the longest pause: if it seems so, the clock went back.
            let waits = outgoing.not_before > now && outgoing.not_before <= now.after(RETRY_LAST);
            if waits {
                continue;
            }
            let task = match self.tasks.get(&outgoing.task) {
                Some(task) => Arc::clone(task),
                None => match self.stored(&outgoing.task)? {
                    Ok(Some(task)) => Arc::new(task),
                    Ok(None) | Err(_) => {
                        self.stuck.insert(outgoing.task);
                        continue;
                    }
                },
            };
            self.in_flight.insert(outgoing.task.clone(), outgoing.id);
            due.push((outgoing, task));
        }
        Ok(due)
    }

    /// Whether the next effect of this task can be handed out.
    fn is_free(&self, task: &TaskKey) -> bool {
        self.rules.contains_key(&task.project)
            && !self.in_flight.contains_key(task)
            && !self.stuck.contains(task)
    }

    /// A worker is done with an effect.
    fn returned(&mut self, key: &TaskKey, id: EffectId) {
        if self.in_flight.get(key) == Some(&id) {
            self.in_flight.remove(key);
        }
    }

    /// The outcome of an effect as inputs for [`take`](Self::take): they settle it, and write what it leaves in the store.
    pub fn absorb(
        &self,
        outgoing: &Outgoing,
        outcome: &Outcome,
        now: Timestamp,
    ) -> Result<Vec<Input>, pointsman_store::Error> {
        let performed = match outcome {
            Outcome::Done(performed) => performed,
            Outcome::Later { error } => {
                let doubled = 1u32.checked_shl(outgoing.attempts.min(16)).unwrap_or(u32::MAX);
                let pause = RETRY_FIRST.saturating_mul(doubled).min(RETRY_LAST);
                tracing::warn!(task = %outgoing.task, effect = outgoing.effect.kind(), %error, ?pause, "later");
                return Ok(vec![Input::postponed_effect(outgoing, error.clone(), now.after(pause))]);
            }
            Outcome::Never { error } => {
                tracing::error!(task = %outgoing.task, effect = outgoing.effect.kind(), %error, "gave up");
                let event = gave_up(&outgoing.effect, error.clone());
                let input = Input::new(outgoing.task.clone(), event);
                return Ok(vec![Input { settles: Some(outgoing.id), failure: Some(error.clone()), ..input }]);
            }
        };
        let mut inputs: Vec<Input> =
            performed.events.iter().map(|e| Input::new(outgoing.task.clone(), e.clone())).collect();
        if inputs.is_empty() {
            inputs.push(Input::effect_done(outgoing.task.clone(), outgoing.effect.kind()));
        }
        inputs[0].settles = Some(outgoing.id);
        inputs[0].sessions.clone_from(&performed.sessions);
        match &performed.note {
            None => {}
            Some(Note::MessageSent { path }) => inputs[0].sent = Some(path.clone()),
            Some(Note::MessageHeld { path }) => {
                let held = Write::MessageHeld { id: outgoing.id, path: path.clone() };
                inputs[0].first.push(Change::quiet(now, vec![held]));
            }
            // Before it is settled: what is superseded is not done.
            Some(Note::MessageSuperseded) => {
                inputs[0].first.push(Change::quiet(now, vec![Write::EffectSuperseded(outgoing.id)]));
            }
            Some(Note::Enqueue(entry)) => inputs[0].enters = Some(entry.clone()),
            Some(Note::Dequeue { branch }) => inputs[0].leaves = Some(branch.clone()),
        }
        for started in performed.sessions.iter().filter(|row| row.ended_at.is_none()) {
            inputs[0].sessions.extend(self.left_behind(started, now)?);
        }
        Ok(inputs)
    }

    /// Older sessions that nobody saw end. One terminal has one session: the start of the next is
    /// their end.
    fn left_behind(
        &self,
        started: &SessionRow,
        now: Timestamp,
    ) -> Result<Vec<SessionRow>, pointsman_store::Error> {
        let mut rows = self.store.sessions(Some(&started.project), SessionScope::Live)?;
        rows.retain(|row| {
            row.issue == started.issue && row.role == started.role && row.generation < started.generation
        });
        for row in &mut rows {
            row.ended_at = Some(now);
            row.exit = Some(Exit::Stopped);
        }
        Ok(rows)
    }

    /// A task's branch enters the merge queue or leaves it, with the outcome that says so.
    fn move_in_queue(
        &self,
        batch: &mut Batch,
        input: &Input,
        now: Timestamp,
    ) -> Result<(), pointsman_store::Error> {
        batch.changes.extend(input.first.iter().cloned());
        if let Some(entry) = &input.enters
            && self.store.waiting_entry(&entry.project, &entry.branch, &entry.head)?.is_none()
            && batch.enters(entry)
        {
            let id = EntryId(self.store.next_entry().0 + batch.entered);
            batch.entered += 1;
            batch.changes.push(queue_orders::entered(id, entry, now));
        }
        let Some(branch) = &input.leaves else { return Ok(()) };
        // What landed while nobody was there to write it down is found by the queue itself, which asks git.
        let merged = self.tasks.get(&input.key).is_some_and(|task| task.merged_as.is_some());
        for mut entry in self.store.queue_entries(&input.key.project, EntryScope::Unfinished)? {
            if entry.branch == *branch && !(merged && entry.candidate.is_some()) {
                entry.status = EntryStatus::Removed;
                entry.reason = Some(words::daemon::queue::task_left().to_owned());
                batch.changes.push(queue_orders::moved(&entry, now));
            }
        }
        Ok(())
    }
}

/// The identity of a session that was just ordered: it exists before anything is launched.
fn registered(before: &Task, after: &Task, config: &Config, now: Timestamp) -> Option<SessionRow> {
    if after.session.generation == before.session.generation {
        return None;
    }
    let key = &after.key;
    Some(SessionRow {
        session: key.session(after.session.generation),
        identity: key.identity(),
        project: key.project.clone(),
        issue: Some(key.issue),
        role: Task::ROLE,
        generation: after.session.generation,
        host: String::new(),
        model: config.roles.get(Task::ROLE).model.clone(),
        bead_id: None,
        node_id: None,
        hook_path: None,
        tmux_session: match config.runtime(Task::ROLE) {
            Runtime::Tmux => Some(key.identity()),
            Runtime::Headless => None,
        },
        pane: None,
        pid: None,
        start_time: None,
        tree: None,
        created_at: now,
        last_seen: now,
        times_stale: 0,
        ended_at: None,
        exit: None,
        acknowledges: false,
        predecessor: (before.session.generation > 0).then(|| key.session(before.session.generation)),
        gauge: None,
        spent: Spent::default(),
    })
}

/// The work state of a task that was just begun. Later sessions go on with the one that is there.
fn begun(before: &Task, after: &Task, now: Timestamp) -> Option<WorkState> {
    (before.session.generation == 0 && after.session.generation == 1)
        .then(|| WorkState::begin(after.key.identity(), &after.title, now))
}

/// Changes to be committed together, and the tasks as they will be.
#[derive(Default)]
struct Batch {
    changes: Vec<Change>,
    tasks: BTreeMap<TaskKey, Arc<Task>>,
    /// The names of its inputs.
    inputs: BTreeSet<String>,
    /// How many entries of the merge queue are in it.
    entered: i64,
}

impl Batch {
    /// Whether this very head is not about to enter already.
    fn enters(&self, entry: &NewEntry) -> bool {
        !self.changes.iter().flat_map(|change| &change.writes).any(|write| match write {
            Write::EntryAdded { entry: other, .. } => {
                (&other.project, &other.branch, &other.head) == (&entry.project, &entry.branch, &entry.head)
            }
            _ => false,
        })
    }
}
