//! The promises, checked after every step.

use std::collections::BTreeMap;

use pointsman::daemon::engine::Engine;
use pointsman_core::concern;
use pointsman_core::ids::{Number, Sha, TaskKey};
use pointsman_core::log;
use pointsman_core::part::question::Owner;
use pointsman_core::run;
use pointsman_core::task::{self, Stage, State, Task};
use pointsman_core::vault::Status;
use pointsman_core::workflow::{self, Workflow, WorkflowId};
use pointsman_store::{EffectId, EventFilter, EventRow, Outgoing, RunScope, SessionScope, VaultScope};

use super::reality::Reality;

/// What was seen so far.
#[derive(Default)]
pub(super) struct Ledger {
    /// The newest event that was read.
    seq: i64,
    /// Where every task stands if the log alone is believed.
    replayed: BTreeMap<Number, State>,
    /// The last generation of every task.
    generations: BTreeMap<Number, u32>,
    /// The last effect of every task that was handed out.
    lanes: BTreeMap<WorkflowId, EffectId>,
}

impl Ledger {
    pub(super) fn check(&mut self, engine: &mut Engine, reality: &Reality) {
        let filter = EventFilter { since: self.seq, ..EventFilter::default() };
        for event in engine.store().events(&filter).expect("the log can be read") {
            assert!(event.seq > self.seq, "the log grows");
            self.seq = event.seq;
            self.replay(&event, reality);
            count_what_time_brings(&event, reality);
        }
        check_runs_and_actions(engine, reality);
        check_questions(engine);
        let stored = engine.store().tasks(None).expect("tasks can be read");
        for task in &stored {
            self.check_task(task, reality);
            let in_memory = engine.tasks().get(&task.key);
            match in_memory {
                Some(known) => assert_eq!(**known, *task, "memory and disk disagree"),
                None => assert_eq!(task.state, State::Closed, "{} was forgotten", task.key),
            }
        }
        let on_disk = |key: &TaskKey| stored.iter().any(|task| task.key == *key);
        assert!(engine.tasks().keys().all(on_disk), "a task is only in memory");
    }

    /// No transition is lost: each begins where the one before ended.
    fn replay(&mut self, event: &EventRow, reality: &Reality) {
        let (Some(issue), Some(to)) = (event.issue, event.data.get("to")) else { return };
        let state = |value: &serde_json::Value| -> State {
            serde_json::from_value(value.clone()).expect("the log names states")
        };
        let to = state(to);
        let from = event.data.get("from").map_or(to, state);
        let known = self.replayed.insert(issue, to).unwrap_or(State::Backlog);
        assert_eq!(known, from, "#{issue}: event {} ({}) begins elsewhere", event.seq, event.kind);
        let begun = event.data.get("order").is_some_and(|order| order == "begin");
        if begun && from == State::Backlog {
            let taken = self.replayed.values().filter(|state| state.takes_a_place()).count();
            let places = reality.story.concurrency();
            assert!(taken <= places, "#{issue} was begun as number {taken} of {places}");
        }
    }

    fn check_task(&mut self, task: &Task, reality: &Reality) {
        let issue = task.key.issue;
        assert_eq!(self.replayed.get(&issue), Some(&task.state), "#{issue}: log and snapshot disagree");
        let before = self.generations.insert(issue, task.session.generation).unwrap_or(0);
        assert!(
            before <= task.session.generation,
            "#{issue}: generation {before}, then {}",
            task.session.generation
        );
        let stopped =
            matches!(task.state, State::Escalated | State::Blocked | State::Refused | State::Paused);
        assert!(!stopped || task.reason.is_some(), "#{issue} is {} without a reason", task.state);
        if let Some(sha) = task.contribution.merged_as() {
            assert!(reality.landed_as(sha).is_some(), "#{issue} counts as merged and is not");
        }
    }

    /// An effect is with one worker at a time, and so is a task; lanes keep their order.
    pub(super) fn handed_out(&mut self, outgoing: &Outgoing, workers: &[(Outgoing, Workflow)]) {
        let busy = workers.iter().find(|(other, _)| other.workflow == outgoing.workflow);
        assert!(busy.is_none(), "{} has two effects at once: {busy:?} and {outgoing:?}", outgoing.workflow);
        let last = self.lanes.insert(outgoing.workflow.clone(), outgoing.id);
        assert!(last.is_none_or(|last| last <= outgoing.id), "{last:?} came before {outgoing:?}");
    }

    /// Nothing lands that is not green, approved and wanted at that very commit.
    pub(super) fn lands(&self, task: &Task, head: &Sha, reality: &Reality) {
        let issue = task.key.issue;
        assert_eq!(task.state, State::MergeQueue, "#{issue} lands, and does not want to");
        assert_eq!(task.contribution.head(), Some(head), "#{issue} lands another commit than its head");
        let contribution = &task.contribution;
        let green = contribution.passed(head) || !reality.story.policy.has_ci;
        assert!(green, "#{issue} lands with {:?}", contribution.ci());
        assert!(!reality.story.policy.has_ci || reality.green.contains(head), "#{issue} lands untested");
        if reality.story.is_reviewed() {
            assert!(contribution.is_approved(head), "#{issue} lands with {:?}", contribution.review());
            assert!(reality.is_approved(issue, head), "#{issue} lands and nobody approved");
        }
    }

    /// When everything has come to its end.
    pub(super) fn check_end(&self, engine: &mut Engine, reality: &Reality) {
        for task in engine.store().tasks(None).expect("tasks can be read") {
            let issue = task.key.issue;
            let pending =
                engine.store().pending_effects(&task.key.clone().into()).expect("the outbox can be read");
            assert!(pending.is_empty(), "#{issue} is over with orders left: {pending:?}");
            assert_eq!(task.session.stage, Stage::None, "#{issue} is over with a session");
            assert!(reality.is_at_rest(&task), "#{issue} is over, the world does not know: {task:?}");
        }
        let live = engine.store().sessions(None, SessionScope::Live).expect("sessions can be read");
        assert!(live.is_empty(), "sessions were never written off: {live:?}");
        let project = reality.story.project();
        for run in engine.store().runs(&project, RunScope::Last(1_000)).expect("runs can be read") {
            assert!(!run.is_open(), "{} is not over: {run:?}", run.key());
            assert_nothing_pending(engine, &run.key().into());
        }
        for entry in engine.store().vault_entries(&project, VaultScope::All).expect("actions can be read") {
            assert!(!entry.is_open(), "{} is not over: {entry:?}", entry.key());
            assert_nothing_pending(engine, &entry.key().into());
            let handled = reality.record.handled.iter().filter(|(id, _)| id == entry.id()).count();
            assert!(entry.status != Status::Fired || handled > 0, "{} was never fired", entry.key());
            assert!(handled <= usize::try_from(entry.firings).expect("a few"), "{}", entry.key());
        }
        let open = engine.store().open_questions().expect("questions can be read");
        assert!(open.is_empty(), "questions that nobody asks any more: {open:?}");
        let started = reality.record.started.len() + reality.record.started_runs.len();
        let rows = engine.store().sessions(None, SessionScope::All).expect("sessions can be read");
        // A session is registered before it is launched; some never are.
        let launched = rows.iter().filter(|row| row.pid.is_some()).count();
        assert_eq!(launched, started, "as many sessions are written down as were started");
    }
}

fn assert_nothing_pending(engine: &Engine, id: &WorkflowId) {
    let pending = engine.store().pending_effects(id).expect("the outbox can be read");
    assert!(pending.is_empty(), "{id} is over with orders left: {pending:?}");
}

/// Runs and actions in memory are those on disk, as far as they are not over.
fn check_runs_and_actions(engine: &Engine, reality: &Reality) {
    let project = reality.story.project();
    let runs = engine.store().runs(&project, RunScope::Open).expect("runs can be read");
    assert_eq!(runs.len(), engine.runs().len(), "runs were forgotten, or not written");
    for run in runs {
        let known = engine.runs().get(&run.key());
        assert_eq!(known.map(|known| &**known), Some(&run), "memory and disk disagree");
    }
    let actions = engine.store().vault_entries(&project, VaultScope::Open).expect("actions can be read");
    assert_eq!(actions.len(), engine.actions().len(), "actions were forgotten, or not written");
    for entry in actions {
        let known = engine.actions().get(&entry.key());
        assert_eq!(known.map(|known| &**known), Some(&entry), "memory and disk disagree");
    }
}

/// The list of open questions is what workflows ask.
fn check_questions(engine: &Engine) {
    let mut asked: Vec<(Owner, u64)> = engine
        .workflows()
        .filter_map(|workflow| workflow.question().cloned())
        .map(|asked| (asked.source.owner, asked.id.expect("it is on disk").0))
        .collect();
    let open = engine.store().open_questions().expect("questions can be read");
    let mut listed: Vec<(Owner, u64)> =
        open.into_iter().map(|asked| (asked.source.owner, asked.id.expect("it is listed").0)).collect();
    asked.sort();
    listed.sort();
    assert_eq!(asked, listed, "the list of questions is not what is asked");
}

/// Events that nobody gives as an input are counted by the log.
fn count_what_time_brings(event: &EventRow, reality: &Reality) {
    let played = |event| reality.played.event(&event);
    if let Some(log::TaskEntry {
        event: event @ (task::Event::TimePassed | task::Event::TimeSkipped { .. }),
        ..
    }) = log::TaskEntry::read(&event.kind, &event.data)
    {
        played(workflow::Event::Task(event));
    }
    match log::Entry::read(&event.kind, &event.data) {
        Some(log::Entry::RunTimePassed(run) | log::Entry::RunTimedOut(run)) => {
            played(workflow::Event::Run(run.event.expect("it names its event")));
        }
        Some(log::Entry::RunContribution(run)) => {
            let event = run.event.expect("it names its event");
            if matches!(event, run::Event::LandingBegun { .. } | run::Event::HandInDropped { .. }) {
                played(workflow::Event::Run(event));
            }
        }
        Some(
            log::Entry::VaultTimePassed(action)
            | log::Entry::VaultExpired(action)
            | log::Entry::VaultLooked(action),
        ) => played(workflow::Event::Vault(action.event.expect("it names its event"))),
        Some(log::Entry::ConcernChanged {
            event: event @ concern::Event::TimePassed, refused: None, ..
        }) => {
            played(workflow::Event::Concern(event));
        }
        Some(_) | None => {}
    }
}
