//! The engine by itself, where the simulation once found it wanting.

use std::sync::Arc;
use std::time::Duration;

use pointsman::daemon::engine::{Engine, Input};
use pointsman::daemon::outcome::{Note, Outcome, Performed};
use pointsman_core::config::Config;
use pointsman_core::ids::{Number, ProjectName, Sha, TaskKey};
use pointsman_core::part::contribution::{self, Contribution};
use pointsman_core::snapshot::Kind;
use pointsman_core::task::{Effect, Event, Exit, Order, Phase, PrFact, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::workflow::Workflow;
use pointsman_store::{Change, EntryStatus, EventFilter, NewEntry, Outgoing, QueueEntry, Store, Write};

const START: Timestamp = Timestamp(1_700_000_000_000);

/// An engine on a disk of its own; effects are done as soon as they are handed out.
struct Stage {
    engine: Engine,
    now: Timestamp,
    directory: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self::with("")
    }

    /// With more of a configuration.
    fn with(more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut engine = Engine::open(Store::open(&directory.path().join("db")).unwrap()).unwrap();
        let text = format!("name = \"p\"\n[review]\nmode = \"none\"\n{more}");
        let config = Config::parse(&text, "test").unwrap();
        engine.serve([Arc::new(config)]);
        Self { engine, now: START, directory }
    }

    /// A new daemon on the same disk, after `damage` was done to it.
    fn reopen_after(self, damage: &str) -> Self {
        let Self { engine, now, directory } = self;
        let configs: Vec<_> =
            engine.served().cloned().filter_map(|project| engine.config(&project)).collect();
        drop(engine);
        let path = directory.path().join("db");
        rusqlite::Connection::open(&path).unwrap().execute_batch(damage).unwrap();
        let mut engine = Engine::open(Store::open(&path).unwrap()).unwrap();
        engine.serve(configs);
        Self { engine, now, directory }
    }

    fn take(&mut self, issue: Number, event: Event) {
        self.engine.take(&[Input::new(key(issue), event)], self.now).unwrap()[0].clone().unwrap();
    }

    fn due(&mut self) -> Vec<(Outgoing, Workflow)> {
        self.engine.due(self.now).unwrap()
    }

    fn settle(&mut self, outgoing: &Outgoing, outcome: &Outcome) {
        let inputs = self.engine.absorb(outgoing, outcome, self.now).unwrap();
        self.engine.take(&inputs, self.now).unwrap();
    }

    /// An issue that is worked on by a live session, with nothing left to do.
    fn working(&mut self, issue: Number) {
        self.take(issue, seen());
        self.engine.tick(self.now).unwrap();
        self.run();
        assert_eq!(self.engine.tasks()[&key(issue)].state, State::Working);
    }

    /// Everything that is ordered goes well.
    fn run(&mut self) {
        loop {
            let due = self.due();
            if due.is_empty() {
                return;
            }
            for (outgoing, _) in due {
                let outcome = match &outgoing.effect {
                    Effect::ClaimIssue => Outcome::event(Event::Claimed),
                    Effect::StartSession { generation, .. } => {
                        Outcome::event(Event::SessionStarted { generation: *generation })
                    }
                    Effect::EndSession { generation, exit } => {
                        let session = outgoing.workflow.session(*generation);
                        end(&mut self.engine, &session, *exit, self.now);
                        let (generation, exit) = (*generation, *exit);
                        Outcome::event(Event::SessionEnded { generation, exit, tail: String::new() })
                    }
                    _ => Outcome::done(),
                };
                self.settle(&outgoing, &outcome);
            }
        }
    }
}

fn key(issue: Number) -> TaskKey {
    TaskKey { project: ProjectName::new("p").unwrap(), issue }
}

fn seen() -> Event {
    Event::IssueObserved {
        title: "t".to_owned(),
        open: true,
        labels: vec!["backlog".to_owned()],
        dependencies: vec![],
        open_dependencies: vec![],
        cycle: None,
        asked_at: None,
    }
}

fn says(generation: u32, phase: Phase) -> Event {
    Event::PhaseClaimed { generation, phase, reason: None, refusal: None, plan: None }
}

#[test]
fn a_superseded_message_keeps_its_task_busy_until_its_worker_is_back() {
    let mut stage = Stage::new();
    stage.working(1);
    stage.take(1, says(1, Phase::Escalate));
    stage.run();
    stage.take(1, Event::Answered { by: "ann".to_owned(), text: "go on".to_owned() });
    let (message, _) = stage.due().remove(0);
    assert_eq!(message.effect.kind(), "deliver");
    // The session dies under it: its successor is ordered, and the message is not wanted any more.
    stage.take(1, Event::SessionEnded { generation: 1, exit: Exit::Crashed, tail: String::new() });
    assert!(stage.due().is_empty(), "two effects of one task at once");
    stage.settle(&message, &Outcome::note(Note::MessageSuperseded));
    assert_eq!(stage.due()[0].0.effect.kind(), "start_session");
}

#[test]
fn a_retry_comes_soon_even_if_the_clock_goes_back() {
    let mut stage = Stage::new();
    stage.take(1, seen());
    stage.engine.tick(stage.now).unwrap();
    stage.now = START.after(Duration::from_secs(86_400));
    let (claim, _) = stage.due().remove(0);
    stage.settle(&claim, &Outcome::Later { error: "not reached".to_owned() });
    assert!(stage.due().is_empty(), "not at once");
    stage.now = START;
    assert_eq!(stage.due().len(), 1, "and not in a day");
}

#[test]
fn a_deadline_that_takes_a_place_is_counted_before_the_next_task_begins() {
    let mut stage = Stage::new();
    stage.working(1);
    stage.take(1, says(1, Phase::AwaitingCi));
    let head = pointsman_core::ids::Sha::new(&"a".repeat(40)).unwrap();
    let (sync, _) = stage.due().remove(0);
    let events = vec![Event::BranchSynced { head: Some(head), protected: vec![], secret: None, risk: None }];
    stage.settle(
        &sync,
        &Outcome::Done(Performed {
            events: events.into_iter().map(pointsman_core::workflow::Event::Task).collect(),
            ..Performed::default()
        }),
    );
    assert_eq!(stage.engine.tasks()[&key(1)].state, State::MergeQueue);
    stage.take(2, seen());
    // At the same moment the first task leaves the queue for a person and the second finds a place.
    stage.now = stage.now.after(Duration::from_secs(25 * 3600));
    stage.engine.tick(stage.now).unwrap();
    assert_eq!(stage.engine.tasks()[&key(1)].state, State::Escalated);
    assert_eq!(stage.engine.tasks()[&key(2)].state, State::Backlog);
}

#[test]
fn a_person_may_begin_one_more_than_there_are_places() {
    let mut stage = Stage::new();
    stage.working(1);
    stage.take(2, seen());
    stage.engine.tick(stage.now).unwrap();
    assert_eq!(stage.engine.tasks()[&key(2)].state, State::Backlog);
    stage.take(2, Event::Ordered { order: Order::Start });
    assert_eq!(stage.engine.tasks()[&key(2)].state, State::Working);
}

#[test]
fn without_the_dev_role_nothing_begins_by_itself() {
    let mut stage = Stage::with("[roles.dev]\nenabled = false\n");
    stage.take(1, seen());
    stage.engine.tick(stage.now).unwrap();
    assert_eq!(state(&stage, 1), State::Backlog);
    stage.take(1, Event::Ordered { order: Order::Start });
    assert_eq!(state(&stage, 1), State::Working, "a person may");
}

/// Lets time pass, and what follows from it happen.
fn later(stage: &mut Stage, minutes: u64) {
    stage.now = stage.now.after(Duration::from_secs(minutes * 60));
    stage.engine.tick(stage.now).unwrap();
    stage.run();
}

fn state(stage: &Stage, issue: Number) -> State {
    stage.engine.tasks()[&key(issue)].state
}

/// Writes down how a session ended.
fn end(engine: &mut Engine, session: &str, exit: Exit, now: Timestamp) {
    let mut row = engine.store().session(session).unwrap().unwrap();
    (row.ended_at, row.exit) = (Some(now), Some(exit));
    engine.write(&[Change::quiet(now, vec![Write::Session(Box::new(row))])]).unwrap();
}

/// The session dies, and whatever follows happens.
fn dies(stage: &mut Stage, issue: Number, generation: u32) {
    end(&mut stage.engine, &key(issue).session(generation), Exit::Crashed, stage.now);
    stage.take(issue, Event::SessionEnded { generation, exit: Exit::Crashed, tail: String::new() });
    later(stage, 30);
}

#[test]
fn a_claim_that_came_too_late_for_its_session_is_left_to_the_successor() {
    let mut stage = Stage::new();
    stage.working(1);
    let claim = |generation| {
        let mut input = Input::new(key(1), says(generation, Phase::AwaitingCi));
        input.cursor = Some(("phase-1".to_owned(), "stamp".to_owned()));
        input
    };
    let told = |stage: &Stage| stage.engine.store().cursor(Some(&key(1).project), "phase-1").unwrap();
    dies(&mut stage, 1, 1);
    let late = stage.engine.take(&[claim(1)], stage.now).unwrap();
    assert!(late[0].is_err(), "{late:?}");
    assert_eq!(told(&stage), None, "whoever looks again finds it");
    stage.engine.take(&[claim(2)], stage.now).unwrap()[0].clone().unwrap();
    assert_eq!(told(&stage).as_deref(), Some("stamp"));
    assert_eq!(state(&stage, 1), State::AwaitingCi);
}

fn warnings(stage: &mut Stage) -> usize {
    let filter = EventFilter { kinds: vec!["budget_reached".to_owned()], ..EventFilter::default() };
    stage.engine.store().events(&filter).unwrap().len()
}

#[test]
fn wall_time_of_parallel_sessions_is_one_budget_and_runs_on_while_nobody_reports() {
    let mut stage = Stage::with("[dev]\nconcurrency = 2\n[budget]\ntime_per_day = \"1h\"\n");
    stage.working(1);
    stage.working(2);
    later(&mut stage, 23);
    assert_eq!(warnings(&mut stage), 0, "46 minutes");
    later(&mut stage, 1);
    assert_eq!(warnings(&mut stage), 2, "48 minutes: each is told once");
    stage.take(3, seen());
    stage.take(2, Event::Ordered { order: Order::Stop });
    later(&mut stage, 5);
    assert_eq!((warnings(&mut stage), state(&stage, 3)), (2, State::Backlog), "nothing new starts");
    later(&mut stage, 7);
    assert_eq!((warnings(&mut stage), state(&stage, 1)), (3, State::Working), "its turn may end");
    later(&mut stage, 1);
    assert_eq!((state(&stage, 1), state(&stage, 3)), (State::Working, State::Backlog));
    assert!(stage.engine.tasks()[&key(1)].session.waits_for_budget, "it is parked");
    // A new day has a new hour.
    later(&mut stage, 120);
    assert_eq!(state(&stage, 3), State::Working);
    assert!(!stage.engine.tasks()[&key(1)].session.waits_for_budget, "it goes on");
}

#[test]
fn one_restart_more_than_a_day_has_is_stopped() {
    let mut stage = Stage::with("[roles.dev.budget]\nrestarts_per_day = 1\n");
    stage.working(1);
    dies(&mut stage, 1, 1);
    assert_eq!((state(&stage, 1), warnings(&mut stage)), (State::Working, 0));
    dies(&mut stage, 1, 2);
    assert_eq!(warnings(&mut stage), 1);
    let task = stage.engine.tasks()[&key(1)].clone();
    assert!(task.state == State::Working && task.session.waits_for_budget, "{task:?}");
    assert!(task.reason.as_ref().unwrap().contains("2 of 1 restarts"), "{:?}", task.reason);
}

/// A task whose branch is tested in the merge queue, with the candidate that is about to land.
fn under_test(directory: &std::path::Path) -> (Engine, QueueEntry) {
    let mut store = Store::open(&directory.join("db")).unwrap();
    let head = Sha::new(&"a".repeat(40)).unwrap();
    let mut task = Task::new(key(1), "t".to_owned(), "pointsman/issue-1".to_owned(), START);
    (task.state, task.claimed) = (State::MergeQueue, true);
    task.contribution = Contribution::at("pointsman/issue-1".to_owned(), head.clone(), Some(7));
    // Without CI and review it is queued at once.
    let policy = contribution::Policy::new(
        &Config::parse("name = \"shop\"\n[review]\nmode = \"none\"", "test").unwrap(),
    );
    let around = contribution::OwnerFacts { asked: None, policy: &policy, now: START };
    task.contribution
        .happened(
            &contribution::Fact::Pushed { head: Some(&head), protected: &[], secret: None, risk: None },
            &around,
        )
        .unwrap();
    let entry = NewEntry {
        project: key(1).project,
        branch: task.contribution.branch.clone(),
        issue: Some(1),
        pr: Some(7),
        identity: Some(key(1).identity()),
        head,
        requested_at: START,
        priority: 0,
        worktree: None,
        style: None,
    };
    let id = store.next_entry();
    let mut change = Change { task: Some(task), ..Change::new(START, "queue_entered") };
    change.writes.push(Write::EntryAdded { id, entry: Box::new(entry) });
    store.commit(&[change]).unwrap();
    let mut entry = store.queue_entry(id).unwrap().unwrap();
    (entry.status, entry.candidate) = (EntryStatus::Testing, Sha::new(&"b".repeat(40)));
    let mut change = Change { project: Some(key(1).project), ..Change::new(START, "queue_moved") };
    change.writes.push(Write::EntryMoved(Box::new(entry.clone())));
    store.commit(&[change]).unwrap();
    let mut engine = Engine::open(store).unwrap();
    engine.serve([Arc::new(Config::parse("name = \"p\"\n[review]\nmode = \"none\"\n", "test").unwrap())]);
    (engine, entry)
}

/// A daemon is killed after its push and before it has written that down. The next one hears from the forge that the pull
/// request is merged, and takes the branch out of the queue: the history must not say that it was removed.
#[test]
fn what_landed_while_nobody_was_there_is_not_recorded_as_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (mut engine, entry) = under_test(directory.path());
    let fact = PrFact::Merged { sha: entry.candidate.clone().unwrap() };
    let seen = Input::new(key(1), Event::PullRequestObserved { fact });
    engine.take(&[seen], START).unwrap()[0].clone().unwrap();
    let mut dequeued = false;
    loop {
        let due = engine.due(START).unwrap();
        if due.is_empty() {
            break;
        }
        for (outgoing, _) in due {
            let outcome = match &outgoing.effect {
                Effect::Dequeue => {
                    dequeued = true;
                    Outcome::note(Note::Dequeue { branch: entry.branch.clone() })
                }
                _ => Outcome::done(),
            };
            let inputs = engine.absorb(&outgoing, &outcome, START).unwrap();
            engine.take(&inputs, START).unwrap();
        }
    }
    assert!(dequeued, "the task left the queue");
    let left = engine.store().queue_entry(entry.id).unwrap().unwrap();
    assert_eq!(left.status, EntryStatus::Testing, "git decides what became of it");
}

/// A task that leaves the queue for another reason is out of it.
#[test]
fn a_task_that_is_paused_takes_its_branch_out_with_the_effect_that_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let (mut engine, entry) = under_test(directory.path());
    engine.take(&[Input::new(key(1), Event::Ordered { order: Order::Pause })], START).unwrap()[0]
        .clone()
        .unwrap();
    let (outgoing, _) = engine.due(START).unwrap().remove(0);
    assert_eq!(outgoing.effect, Effect::Dequeue);
    let outcome = Outcome::note(Note::Dequeue { branch: entry.branch.clone() });
    let key_before = engine.store().next_key();
    let inputs = engine.absorb(&outgoing, &outcome, START).unwrap();
    assert_eq!(engine.store().next_key(), key_before, "nothing is written before all of it is");
    engine.take(&inputs, START).unwrap();
    assert_eq!(engine.store().queue_entry(entry.id).unwrap().unwrap().status, EntryStatus::Removed);
    assert!(engine.store().pending_effects(&key(1).into()).unwrap().iter().all(|one| one.id != outgoing.id));
    assert!(engine.store().has_happened(&key_before).unwrap());
    let number = |key: &str| key.split('.').nth(1).unwrap().parse::<i64>().unwrap();
    assert_eq!(number(&engine.store().next_key()), number(&key_before) + 1, "in one commit");
}

#[test]
fn a_task_that_cannot_be_read_waits_and_costs_the_others_nothing() {
    let mut stage = Stage::with("[dev]\nconcurrency = 3");
    for issue in [1, 2] {
        stage.working(issue);
        let session = key(issue).session(1);
        let row = stage.engine.store().session(&session).unwrap().unwrap();
        assert!(row.ended_at.is_none(), "it has a live session");
        // And something left to do.
        let answer = Event::Ordered { order: Order::Stop };
        stage.take(issue, answer);
    }
    let mut stage = stage.reopen_after(
        "UPDATE tasks SET version = 99 WHERE issue = 1;
         UPDATE outbox SET effect = '{\"do\": \"what nobody knows\"}' WHERE status = 'pending' AND workflow = 'task/2';
         UPDATE work_states SET state = '{}' WHERE issue = 2;",
    );
    let unreadable = stage.engine.store().unreadable().unwrap();
    let mut names: Vec<_> = unreadable.iter().map(|one| (one.what, one.name.as_str())).collect();
    names.dedup();
    assert_eq!(names, [(Kind::Task, "1"), (Kind::Effect, "task/2"), (Kind::WorkState, "dev-p-2")]);
    assert!(stage.due().is_empty());
    let wakes = stage.engine.wake_at().unwrap();
    assert!(wakes.is_none_or(|at| at > stage.now), "it does not ask again and again: {wakes:?}");
    stage.working(3);
}
