//! The engine takes events, commits each in one transaction, and hands out effects. It is synchronous and has no
//! threads, clock or IO beyond the store, so the daemon and the simulation run the same code.

mod batch;
mod effects;
mod input;
mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::concern::{Concern, ConcernKey};
use pointsman_core::config::Config;
use pointsman_core::ids::{ActionKey, ProjectName, RunKey, TaskKey};
use pointsman_core::log;
use pointsman_core::notifier::Notifier;
use pointsman_core::part::question::{self, Owner};
use pointsman_core::run::Run;
use pointsman_core::schedule;
use pointsman_core::session::work::{Observation, WorkState};
use pointsman_core::signal::Signal;
use pointsman_core::snapshot::Unreadable;
use pointsman_core::task::{self, Order, Refused, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::vault;
use pointsman_core::words;
use pointsman_core::workflow::{Event, Next, Rules, Workflow, WorkflowId, signals, step};
use pointsman_store::{
    Change, Committed, EffectId, EntryId, EntryScope, EntryStatus, RunScope, SessionScope, Store, VaultScope,
    Write,
};

use batch::Batch;
pub use input::{Input, InputKind};
use records::{begun, change, memories, question_changes, registered, remembered, seen_of_work};

use super::budget;
use super::concerns;
use super::crash::{Side, commit_point, crash_point};
use super::{hand_ins, masked, notifier, questions, queue_orders};

/// Budgets of time and restarts are looked at this often, and when a session begins or ends.
const BUDGET_LOOK: Duration = Duration::from_secs(1);
/// Budgets of time of whole issues are days.
const ISSUE_LOOK: Duration = Duration::from_secs(60);
/// Before any time there is.
const AT_ONCE: Timestamp = Timestamp(i64::MIN);

/// The state of all workflows, and the one way in which it changes.
pub struct Engine {
    store: Store,
    tasks: BTreeMap<TaskKey, Arc<Task>>,
    runs: BTreeMap<RunKey, Arc<Run>>,
    actions: BTreeMap<ActionKey, Arc<vault::Entry>>,
    concerns: BTreeMap<ConcernKey, Arc<Concern>>,
    rules: BTreeMap<ProjectName, Rules>,
    /// What the workers hold: at most one effect of a workflow, even if it was superseded meanwhile.
    in_flight: BTreeMap<WorkflowId, EffectId>,
    /// Workflows with effects that nobody can perform, because the workflow cannot be read. The effects wait.
    stuck: BTreeSet<WorkflowId>,
    /// Projects whose records may be older than the world: nothing is performed for them until the forge was looked at.
    held: BTreeSet<ProjectName>,
    changed: bool,
    /// Whether something happened to runs, which roles and people's answers wait for.
    runs_changed: bool,
    /// When budgets of time and restarts are looked at next.
    budgets_at: Timestamp,
    /// When those of whole issues are.
    issues_at: Timestamp,
    only_concerns: bool,
}

impl Engine {
    /// Loads what is not over.
    pub fn open(store: Store) -> Result<Self, pointsman_store::Error> {
        let mut engine = Self {
            store,
            tasks: BTreeMap::new(),
            runs: BTreeMap::new(),
            actions: BTreeMap::new(),
            concerns: BTreeMap::new(),
            rules: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            stuck: BTreeSet::new(),
            held: BTreeSet::new(),
            changed: true,
            runs_changed: true,
            budgets_at: AT_ONCE,
            issues_at: AT_ONCE,
            only_concerns: false,
        };
        engine.reload()?;
        Ok(engine)
    }

    /// Reads the workflows anew, after a commit turned out to have happened without the engine knowing. A closed task
    /// whose session never came to its end is not over.
    pub fn reload(&mut self) -> Result<(), pointsman_store::Error> {
        let store = &self.store;
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
        let (mut runs, mut actions) = (BTreeMap::new(), BTreeMap::new());
        for project in store.projects()? {
            for run in store.runs(&project.name, RunScope::Open)? {
                runs.insert(run.key(), Arc::new(run));
            }
            for entry in store.vault_entries(&project.name, VaultScope::Open)? {
                actions.insert(entry.key(), Arc::new(entry));
            }
        }
        let concerns = store.open_questions()?.into_iter().filter_map(Concern::of);
        let concerns = concerns.map(|concern| (concern.key.clone(), Arc::new(concern))).collect();
        self.stuck = store.unreadable()?.iter().filter_map(Unreadable::workflow).collect();
        (self.tasks, self.runs, self.actions, self.concerns) = (tasks, runs, actions, concerns);
        (self.changed, self.runs_changed) = (true, true);
        Ok(())
    }

    /// Numbers the questions that an earlier program asked without a number, so that they are listed.
    pub fn number_questions(&mut self, now: Timestamp) -> Result<(), pointsman_store::Error> {
        let mut batch = Batch::default();
        let unnumbered = |task: &&Arc<Task>| task.escalation.as_ref().is_some_and(|asked| asked.id.is_none());
        for task in self.tasks.values().filter(unnumbered) {
            let mut task = Task::clone(task);
            batch.number(task.escalation.as_mut(), self.store.next_question());
            let asked = task.escalation.clone().map(question::Change::Asked);
            if let Some(mut change) = asked.and_then(|asked| Change::of_question(now, &asked)) {
                change.task = Some(task.clone());
                batch.changes.push(change);
                batch.workflows.insert(task.key.clone().into(), Workflow::Task(Arc::new(task)));
            }
        }
        self.commit(batch)
    }

    /// Serves these projects, with their rules, and no others.
    pub fn serve(&mut self, configs: impl IntoIterator<Item = Arc<Config>>) {
        self.rules = configs.into_iter().map(|config| (config.name.clone(), Rules::new(config))).collect();
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

    /// Writes changes that are not about a workflow's state, in one transaction.
    pub fn write(&mut self, changes: &[Change]) -> Result<Vec<Committed>, pointsman_store::Error> {
        crash_point("before-commit");
        commit_point(Side::Before, changes);
        let committed = self.store.commit(&masked::changes(changes))?;
        commit_point(Side::After, changes);
        crash_point("after-commit");
        Ok(committed)
    }

    /// All tasks that are not over.
    pub fn tasks(&self) -> &BTreeMap<TaskKey, Arc<Task>> {
        &self.tasks
    }

    /// All runs that are not over.
    pub fn runs(&self) -> &BTreeMap<RunKey, Arc<Run>> {
        &self.runs
    }

    /// All vault actions that are not over.
    pub fn actions(&self) -> &BTreeMap<ActionKey, Arc<vault::Entry>> {
        &self.actions
    }

    /// All concerns that ask a person.
    pub fn concerns(&self) -> &BTreeMap<ConcernKey, Arc<Concern>> {
        &self.concerns
    }

    /// All workflows that are not over.
    pub fn workflows(&self) -> impl Iterator<Item = Workflow> {
        let tasks = self.tasks.values().cloned().map(Workflow::Task);
        let runs = self.runs.values().cloned().map(Workflow::Run);
        let actions = self.actions.values().cloned().map(Workflow::Vault);
        let concerns = self.concerns.values().cloned().map(Workflow::Concern);
        tasks.chain(runs).chain(actions).chain(concerns)
    }

    /// A workflow that is not over.
    pub fn workflow(&self, id: &WorkflowId) -> Option<Workflow> {
        match id {
            WorkflowId::Task(key) => self.tasks.get(key).cloned().map(Workflow::Task),
            WorkflowId::Run(key) => self.runs.get(key).cloned().map(Workflow::Run),
            WorkflowId::Vault(key) => self.actions.get(key).cloned().map(Workflow::Vault),
            WorkflowId::Concern(key) => self.concerns.get(key).cloned().map(Workflow::Concern),
            WorkflowId::Role(_) | WorkflowId::Notifier(_) => None,
        }
    }

    /// Whether workflows changed since this was last asked.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Whether something happened to runs since this was last asked.
    pub fn take_runs_changed(&mut self) -> bool {
        std::mem::take(&mut self.runs_changed)
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

    /// The same, together with changes that are not about a workflow's state.
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
                self.returned(&input.workflow, id);
            }
        }
        Ok(answers)
    }

    fn step(
        &self,
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
            InputKind::Event(event) => &*masked::event(event),
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
        let project = input.workflow.project();
        let Some(rules) = self.rules.get(project) else {
            return Ok(Err(Refused::NotNow(words::daemon::request::not_served(project))));
        };
        let before = match self.before(batch, input, event, rules, now)? {
            Ok(before) => before,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Some(id) = input.answers
            && before.question().is_none_or(|asked| asked.id != Some(id))
        {
            return Ok(Err(Refused::NotNow(questions::why_over(&self.store, id, now)?)));
        }
        match step(&before, event, rules, now) {
            Ok(Next { workflow, effects, told, logged }) => {
                // A memory is on disk, or is what it was from the beginning.
                let remembered = matches!(workflow, Workflow::Role(_) | Workflow::Notifier(_));
                let known = remembered || self.workflow(&input.workflow).is_some();
                let idle = workflow == before && effects.is_empty() && known;
                if !idle || input.must_be_written() || input.dedup.is_some() {
                    let workflow = batch.numbered(workflow, self.store.next_question());
                    let asked = question_changes(&before, event, &workflow, now);
                    let mut change = change(input, now, event, &before, Ok(&workflow), &logged);
                    change.signals = signals(&before, event, &workflow);
                    change.sessions.extend(registered(&before, &workflow, &rules.config, now));
                    if let Some(seen) = seen_of_work(&before, event, &workflow) {
                        change.work_state = self.work_after(&input.workflow, &seen, now)?;
                        let shown = change.work_state.as_ref().map(serde_json::to_value);
                        change.signals.extend(shown.map(|s| (Signal::HookUpdated, s.unwrap_or_default())));
                    } else {
                        change.work_state = begun(&before, &workflow, now);
                    }
                    change.effects = effects;
                    match &workflow {
                        Workflow::Task(task) => change.task = Some(Task::clone(task)),
                        Workflow::Run(run) => change.run = Some(Run::clone(run)),
                        Workflow::Vault(entry) => change.vault = Some(vault::Entry::clone(entry)),
                        Workflow::Concern(concern) => change.concern = Some(concern.key.clone()),
                        Workflow::Notifier(after) => {
                            if let Workflow::Notifier(before) = &before {
                                change.writes.extend(notifier::moved(before, after));
                            }
                        }
                        Workflow::Role(after) => {
                            change.role = Some(after.key.clone());
                            if let Workflow::Role(before) = &before {
                                change.memories.extend(memories(before, after)?);
                            }
                        }
                    }
                    change.memories.extend(hand_ins::dismissed(&self.store, &before, &workflow)?);
                    batch.changes.push(change);
                    batch.changes.extend(questions::written(&asked, now));
                    batch.changes.extend(logged.iter().skip(1).map(|(issue, entry)| {
                        let change = Change::logged(now, project, entry);
                        Change { issue: *issue, ..change }
                    }));
                    batch.workflows.insert(input.workflow.clone(), workflow);
                }
                // With the same commit: nobody waits for something that was never told.
                for (id, event) in told {
                    let _ = self.step(batch, &Input::of(id, event), now)?;
                }
                Ok(Ok(()))
            }
            Err(refused) => {
                // What may come again is not remembered as seen: it counts when its time has come.
                if input.must_be_written() {
                    let mut change = change(input, now, event, &before, Err(&refused), &[]);
                    change.dedup = None;
                    // The claim of a session that was being replaced is its successor's, who finds the file.
                    if matches!(refused, Refused::Stale(_)) {
                        change.cursors.clear();
                    }
                    batch.changes.push(change);
                } else {
                    tracing::debug!(workflow = %input.workflow, event = ?input.event, %refused, "refused");
                }
                Ok(Err(refused))
            }
        }
    }

    /// The workflow that an input is about, as it is before it.
    fn before(
        &self,
        batch: &Batch,
        input: &Input,
        event: &Event,
        rules: &Rules,
        now: Timestamp,
    ) -> Result<Result<Workflow, Refused>, pointsman_store::Error> {
        let known = batch.workflows.get(&input.workflow).cloned().or_else(|| self.workflow(&input.workflow));
        if let Some(known) = known {
            return Ok(Ok(known));
        }
        Ok(match (self.stored(&input.workflow)?, &input.workflow, event) {
            (Ok(Some(workflow)), _, _) => Ok(workflow),
            (
                Ok(None),
                WorkflowId::Task(key),
                Event::Task(task::Event::IssueObserved { title, open: true, .. }),
            ) => {
                let branch = rules.config.branch(key.issue);
                Ok(Workflow::Task(Arc::new(Task::new(key.clone(), title.clone(), branch, now))))
            }
            (Ok(None), id, _) => match &input.begins {
                Some(workflow) => Ok(workflow.clone()),
                None => Err(Refused::NotNow(words::daemon::request::unknown_workflow(id))),
            },
            (Err(why), _, _) => Err(Refused::NotNow(why)),
        })
    }

    fn commit(&mut self, batch: Batch) -> Result<(), pointsman_store::Error> {
        if batch.changes.is_empty() {
            return Ok(());
        }
        let mut batch = batch;
        let gauges: Vec<Write> =
            batch.workflows.values().filter_map(|workflow| self.shown_gauge(workflow)).collect();
        if let (false, Some(last)) = (gauges.is_empty(), batch.changes.last_mut()) {
            last.writes.extend(gauges);
        }
        self.write(&batch.changes)?;
        for change in &batch.changes {
            if let Some(task) = &change.task {
                tracing::info!(task = %task.key, state = %task.state, event = change.kind, "step");
            }
            if let Some(run) = &change.run {
                let status = run.status.as_str();
                tracing::info!(run = %run.key(), status, event = change.kind, "step");
            }
            if let Some(entry) = &change.vault {
                let status = entry.status.as_str();
                tracing::info!(action = %entry.key(), status, event = change.kind, "step");
            }
        }
        self.runs_changed |= batch.changes.iter().any(|change| change.run.is_some());
        if batch.changes.iter().any(|change| !change.sessions.is_empty()) {
            self.budgets_at = AT_ONCE;
        }
        for (id, workflow) in batch.workflows {
            let open = workflow.is_open();
            match (id, workflow) {
                (WorkflowId::Task(key), Workflow::Task(task)) if open => drop(self.tasks.insert(key, task)),
                (WorkflowId::Task(key), _) => drop(self.tasks.remove(&key)),
                (WorkflowId::Run(key), Workflow::Run(run)) if open => drop(self.runs.insert(key, run)),
                (WorkflowId::Run(key), _) => drop(self.runs.remove(&key)),
                (WorkflowId::Vault(key), Workflow::Vault(entry)) if open => {
                    drop(self.actions.insert(key, entry));
                }
                (WorkflowId::Vault(key), _) => drop(self.actions.remove(&key)),
                (WorkflowId::Concern(key), Workflow::Concern(concern)) if open => {
                    drop(self.concerns.insert(key, concern));
                }
                (WorkflowId::Concern(key), _) => drop(self.concerns.remove(&key)),
                (WorkflowId::Role(_) | WorkflowId::Notifier(_), _) => {}
            }
        }
        self.changed = true;
        Ok(())
    }

    /// A session shows the gauge that its owner is about to go by. After a compaction the last one stays until there is a
    /// new one.
    fn shown_gauge(&self, workflow: &Workflow) -> Option<Write> {
        let known = self.workflow(&workflow.id()).and_then(|known| known.session().context.gauge);
        match (workflow.session().context.gauge, workflow.session_name()) {
            (Some(gauge), Some(session)) if known != Some(gauge) => {
                Some(Write::ContextMeasured { session, gauge })
            }
            _ => None,
        }
    }

    /// A workflow as it is on disk. One that cannot be read stands still: that is a refusal, and nobody else's trouble.
    fn stored(&self, id: &WorkflowId) -> Result<Result<Option<Workflow>, String>, pointsman_store::Error> {
        let found = match id {
            WorkflowId::Task(key) => self.store.task(key).map(|task| task.map(Arc::new).map(Workflow::Task)),
            WorkflowId::Run(key) => {
                let run = self.store.run(&key.project, key.id);
                // A name with another role is the name of no run.
                run.map(|run| run.filter(|run| run.key() == *key).map(Arc::new).map(Workflow::Run))
            }
            WorkflowId::Vault(key) => {
                let entry = self.store.vault_entry(&key.project, &key.id);
                entry.map(|entry| entry.map(Arc::new).map(Workflow::Vault))
            }
            WorkflowId::Concern(key) => {
                let last = self.store.last_question(&key.project, &Owner::Concern(key.about.clone()));
                let concern = last.map(|last| last.and_then(Concern::of));
                // Whatever was never asked about can be raised at any time.
                let concern = concern.map(|known| known.unwrap_or_else(|| Concern::new(key.clone())));
                concern.map(|concern| Some(Workflow::Concern(Arc::new(concern))))
            }
            WorkflowId::Notifier(key) => {
                let health = notifier::health(&self.store, &key.project, &notifier::health_name(key.kind));
                let known = health.map(|health| Notifier { key: key.clone(), health });
                known.map(|notifier| Some(Workflow::Notifier(Arc::new(notifier))))
            }
            WorkflowId::Role(key) => {
                remembered(&self.store, key).map(|memory| Some(Workflow::Role(Arc::new(memory))))
            }
        };
        match found {
            Ok(workflow) => Ok(Ok(workflow)),
            Err(error @ pointsman_store::Error::Unreadable(_)) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// The work state of an agent that signalled a phase: it is about to hand in, if that is news.
    fn work_after(
        &self,
        id: &WorkflowId,
        seen: &Observation,
        now: Timestamp,
    ) -> Result<Option<WorkState>, pointsman_store::Error> {
        let Some(mut work) = self.known_work(id)?.flatten() else { return Ok(None) };
        let news = work.observe(seen, now);
        Ok(news.then_some(work))
    }

    /// The work state of a workflow's identity. The outer nothing says that there is one and it cannot be read: then it stays
    /// as it is.
    fn known_work(&self, id: &WorkflowId) -> Result<Option<Option<WorkState>>, pointsman_store::Error> {
        match self.store.work_state(&id.identity()) {
            Ok(work) => Ok(Some(work)),
            Err(pointsman_store::Error::Unreadable(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes in what was seen of a session's work; writes it down only if it says something new. `read_to`
    /// is remembered with it, so that what was seen once is not seen again by the next daemon.
    pub fn observe(
        &mut self,
        id: &WorkflowId,
        observations: &[Observation],
        read_to: Option<&(String, String)>,
        now: Timestamp,
    ) -> Result<(), pointsman_store::Error> {
        let Some(workflow) = self.workflow(id) else { return Ok(()) };
        let Some(before) = self.known_work(id)? else { return Ok(()) };
        let begin = || WorkState::begin(id.identity(), workflow.title(), now);
        let mut work = before.clone().unwrap_or_else(begin);
        for observation in observations {
            work.observe(observation, now);
        }
        if Some(&work) == before.as_ref() {
            return match read_to {
                Some((name, value)) => {
                    let read_to = Write::cursor(id.project(), name, value);
                    self.write(&[Change::quiet(now, vec![read_to])]).map(drop)
                }
                None => Ok(()),
            };
        }
        let (work_phase, tests_status) = (work.work_phase, work.tests_status);
        let observed = log::Entry::WorkObserved { work_phase, tests_status };
        let mut change = Change::logged(now, id.project(), &observed);
        change.cursors.extend(read_to.cloned());
        change.issue = id.issue();
        change.session = workflow.session_name();
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
        let due = self.workflows().filter(|workflow| self.wakes(workflow).is_some_and(|at| at <= now));
        let passed: Vec<Input> = due
            .map(|workflow| workflow.id())
            .map(|id| Input::of(id.clone(), Event::time_passed(&id)))
            .collect();
        self.take(&passed, now)?;
        let turns = hand_ins::due(self)?;
        self.take(&turns, now)?;
        if self.budgets_at <= now || self.budgets_at > now.after(BUDGET_LOOK) {
            let thoroughly = self.issues_at <= now || self.issues_at > now.after(ISSUE_LOOK);
            let passed = budget::passed_by_themselves(self, thoroughly, now)?;
            if thoroughly {
                self.issues_at = now.after(ISSUE_LOOK);
            }
            self.take(&passed, now)?;
            self.look_at_concerns(now)?;
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
                    begun.push(Input::new(key, task::Event::Ordered { order: Order::Begin }));
                }
            }
        }
        self.take(&begun, now)?;
        Ok(())
    }

    /// Moves the deadlines of work: time went by in which this machine was not awake. `remembered` is written with it, so that it
    /// counts once.
    pub fn skip_time(
        &mut self,
        by_ms: i64,
        remembered: Change,
        now: Timestamp,
    ) -> Result<(), pointsman_store::Error> {
        let ids = self.workflows().map(|workflow| workflow.id());
        let inputs: Vec<Input> =
            ids.filter_map(|id| Some(Input::of(id.clone(), Event::time_skipped(&id, by_ms)?))).collect();
        self.take_with(&inputs, vec![remembered], now).map(drop)
    }

    /// Asks people about conditions that hold now, and withdraws what is gone.
    pub fn look_at_concerns(&mut self, now: Timestamp) -> Result<(), pointsman_store::Error> {
        let seen = concerns::look(self, now)?;
        self.take(&seen, now).map(drop)
    }

    /// From now on hands out effects of concerns alone: the work on tasks and runs is left to another daemon.
    pub fn only_ask_people(&mut self) {
        self.only_concerns = true;
    }

    /// The time at which something is due by itself. What the workers hold comes back without it, and
    /// the effects of a project that is not served wait for more than time.
    pub fn wake_at(&self) -> Result<Option<Timestamp>, pointsman_store::Error> {
        let workflows = self.workflows().filter_map(|workflow| self.wakes(&workflow)).min();
        let effects = self.store.next_effect_time(|workflow| !self.is_free(workflow))?;
        Ok([workflows, effects].into_iter().flatten().min())
    }

    /// The time at which a workflow wants to be woken. One of a project that is not served sleeps.
    fn wakes(&self, workflow: &Workflow) -> Option<Timestamp> {
        match workflow {
            Workflow::Task(task) => task.wake_at(),
            Workflow::Run(_)
            | Workflow::Vault(_)
            | Workflow::Concern(_)
            | Workflow::Role(_)
            | Workflow::Notifier(_) => workflow.wake_at(self.rules.get(workflow.id().project())?),
        }
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
        let owner = self.workflow(&input.workflow);
        let merged =
            owner.as_ref().and_then(Workflow::contribution).is_some_and(|part| part.merged_as().is_some());
        for mut entry in self.store.queue_entries(input.workflow.project(), EntryScope::Unfinished)? {
            if entry.branch == *branch && !(merged && entry.candidate.is_some()) {
                entry.status = EntryStatus::Removed;
                entry.reason = Some(words::daemon::queue::task_left().to_owned());
                batch.changes.push(queue_orders::moved(&entry, now));
            }
        }
        Ok(())
    }
}
