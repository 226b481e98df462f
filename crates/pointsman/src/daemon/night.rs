//! A night in which nothing happens, and one with a single new issue, on a clock of our own: the poller's, the roles' and
//! the timetable's own code against a server over loopback. What is counted is what that server was asked.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use pointsman_adapters::driver::Drivers;
use pointsman_adapters::git::Git;
use pointsman_adapters::headless::Headless;
use pointsman_adapters::tmux::Server;
use pointsman_adapters::watch::exits::ExitWatch;
use pointsman_core::ids::ProjectName;
use pointsman_core::part::session;
use pointsman_core::run::{Event, Run};
use pointsman_core::task::{Effect, Exit};
use pointsman_core::time::Timestamp;
use pointsman_core::workflow::Workflow;
use pointsman_store::{Outgoing, RunScope, Store};
use pointsman_testkit::PATIENCE;
use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, OWNER, REPO, Rules};
use serde_json::json;

use super::board::TaskBoard;
use super::effects::{EffectPerformer, Ports, SessionActivities};
use super::engine::Engine;
use super::factory;
use super::inbound::{Inbound, Inbox, ThreadReport};
use super::jobs::Jobs;
use super::notifier;
use super::outcome::PerformEffects;
use super::poller::{PollSchedule, Poller};
use super::projects;
use super::queue_orders;
use super::reader::Reader;
use super::reports::Reports;
use super::runs;
use super::served::Served;
use super::session_sockets::SessionSockets;
use super::sources::phase::Phases;
use super::timetable;
use crate::paths::Paths;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
/// 2026-03-23, a Monday, 17:30 UTC: an evening before the gardener looks for the first time.
const EVENING: i64 = 20_535 * 24 * HOUR + 17 * HOUR + 30 * MINUTE;
/// The poller looks at its agenda more often; it asks when something is due, at the first look after that.
const STEP: i64 = 10_000;
/// Between two looks whether jobs are through.
const LOOK: Duration = Duration::from_millis(2);

/// What a server was asked: verb and path below the repository, and how often.
type Calls = BTreeMap<String, usize>;

/// The loop in the dispatcher's place: writes down by the same functions, at a time of our own.
struct Loop {
    engine: Engine,
    inbox: Inbox,
    inbound: Receiver<Inbound>,
    board: TaskBoard,
    world: Arc<EffectPerformer>,
    poller: Arc<Poller>,
}

struct Night {
    main: Loop,
    asking: PollSchedule,
    roles: factory::Watch,
    runs: runs::Watch,
    served: Arc<Served>,
    fake: FakeForgejo,
    /// An open issue that others wait for.
    rocket: u64,
    now: Timestamp,
    asked: usize,
    _directory: tempfile::TempDir,
}

fn shop() -> ProjectName {
    ProjectName::new("shop").unwrap()
}

fn configuration(kind: &str, fake: &FakeForgejo, directory: &Path) -> String {
    let token = directory.join("token");
    std::fs::write(&token, fake.token(DEV)).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let roles = ["supervisor", "predictor", "action"].map(|role| format!("[roles.{role}]\nenabled = true\n"));
    format!(
        "name = \"shop\"\n\
         [forge]\nkind = \"{kind}\"\nurl = \"{}\"\nrepo = \"{REPO}\"\ntoken_file = \"{}\"\n\
         [dev]\nphase_dir = \"{}\"\n[limits]\nmin_free_memory_mb = 0\n\
         [health]\nmin_memory_mb = 0\nmax_swap_mb = 1000000000\nmax_disk_percent = 100\nmax_load_percent = 1000000\n\
         [roles.gardener]\nenabled = true\nschedule = \"0 0,18 * * *\"\n\
         [roles.planner]\nenabled = true\nschedule = \"0 3 * * *\"\n{}",
        fake.url(),
        token.display(),
        directory.display(),
        roles.concat(),
    )
}

impl Loop {
    fn open(directory: &Path, configuration: &str) -> Self {
        let paths = Paths::new(directory.join("state"), directory.join("run"));
        paths.create().unwrap();
        let config = directory.join("pointsman.toml");
        std::fs::write(&config, configuration).unwrap();
        let mut engine = Engine::open(Store::open(&paths.database()).unwrap()).unwrap();
        projects::add(&paths, &mut engine, &config, None, &[]).unwrap();
        let (inbox, inbound) = Inbox::new();
        let reader = || Store::open_read_only(&paths.database()).unwrap();
        let tmux = Server::new(paths.tmux_socket(), paths.tmux_config()).unwrap();
        let world = Arc::new(EffectPerformer {
            git: Git::open(paths.state()).unwrap(),
            drivers: Drivers { tmux: Arc::new(tmux), headless: Headless::new(paths.headless()) },
            exits: Arc::new(ExitWatch::start(|_| {}).unwrap()),
            jobs: Jobs::new(inbox.clone(), reader(), paths.notices()),
            announced: Arc::default(),
            stances: SessionActivities::open(paths.stances()),
            reader: Reader::new(reader()),
            projects: RwLock::new(BTreeMap::new()),
            program: "/nowhere/pointsman".into(),
            environment: |_| None,
            sockets: SessionSockets::new(paths.clone()),
            ports: Ports::default(),
            paths: paths.clone(),
        });
        let opened =
            projects::open_all(&paths, &world.git, world.environment, engine.store(), &BTreeMap::new())
                .unwrap();
        assert_eq!(opened.problems, [""; 0]);
        engine.serve(opened.served.values().map(|served| Arc::clone(&served.config)));
        world.jobs.serve(&opened.served);
        *world.projects.write().unwrap() = opened.served;
        let board = TaskBoard::new(&engine);
        Self { engine, inbox, inbound, board, world, poller: Arc::default() }
    }

    fn take(&mut self, inbound: Inbound, now: Timestamp) {
        match inbound {
            Inbound::Inputs { inputs, answered } => {
                let answers = self.engine.take(&inputs, now).unwrap();
                if let Some(answered) = answered {
                    answered.send(answers).unwrap();
                }
                self.engine.tick(now).unwrap();
                self.perform_deeds(now);
                self.board.publish(&self.engine);
            }
            Inbound::Report(report) => {
                self.write(*report, now);
                self.perform_deeds(now);
            }
            _ => panic!("nothing else happens in such a night"),
        }
    }

    /// Performs what roles have ordered on the forge. Everything else that runs order is pretended.
    fn perform_deeds(&mut self, now: Timestamp) {
        loop {
            let due = self.engine.due(now).unwrap();
            let tasks = due.iter().any(|(outgoing, _)| outgoing.workflow.task().is_some());
            assert!(!tasks, "nothing is begun for a task");
            let is_deed =
                |(outgoing, _): &(Outgoing, Workflow)| matches!(outgoing.effect, Effect::Deed { .. });
            let deeds: Vec<_> = due.into_iter().filter(is_deed).collect();
            if deeds.is_empty() {
                return;
            }
            for (outgoing, owner) in deeds {
                let outcome = self.world.perform(&outgoing, &owner);
                let inputs = self.engine.absorb(&outgoing, &outcome, now).unwrap();
                self.engine.take(&inputs, now).unwrap();
            }
        }
    }

    fn write(&mut self, report: ThreadReport, now: Timestamp) {
        match report {
            ThreadReport::Audited { project, audit, written } => {
                let change = queue_orders::audited(self.engine.store(), &project, &audit, now).unwrap();
                self.engine.write(change.as_slice()).unwrap();
                written.send(()).unwrap();
            }
            ThreadReport::Role { told, written } => {
                factory::take(&mut self.engine, &told, now).unwrap();
                written.send(()).unwrap();
            }
            ThreadReport::Notifier { told, written } => {
                notifier::take(&mut self.engine, &told, now).unwrap();
                written.send(()).unwrap();
            }
            ThreadReport::Timetable { project, standing } => {
                timetable::tick(&mut self.engine, &project, &standing, now).unwrap();
            }
            ThreadReport::AskForge { project } => self.poller.ask(&project),
            ThreadReport::ForgeSeen { project } => drop(self.engine.release(&project)),
            ThreadReport::Passed { written } => drop(written.send(())),
            _ => panic!("nothing else happens in such a night"),
        }
    }

    /// Takes what comes until all jobs are through.
    fn settle(&mut self, now: Timestamp) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let at_work = self.world.jobs.at_work();
            while let Ok(inbound) = self.inbound.try_recv() {
                self.take(inbound, now);
            }
            if at_work.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "still at work: {at_work:?}");
            if let Ok(inbound) = self.inbound.recv_timeout(LOOK) {
                self.take(inbound, now);
            }
        }
    }

    /// Does something that waits for the loop, and takes what comes meanwhile.
    fn beside(&mut self, now: Timestamp, work: impl FnOnce() + Send) {
        let (inbox, done) = (self.inbox.clone(), &AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                work();
                done.store(true, Ordering::SeqCst);
                // Only to wake the loop; nobody waits for it.
                inbox.report(ThreadReport::Passed { written: sync_channel(1).0 });
            });
            while !done.load(Ordering::SeqCst) {
                let inbound = self.inbound.recv_timeout(PATIENCE).expect("the work comes to an end");
                self.take(inbound, now);
            }
        });
        self.settle(now);
    }
}

impl Night {
    /// An evening: two issues that say when they are done, one of which waits for the other, and one that does not.
    fn fall(kind: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fake = FakeForgejo::start(Rules::default());
        let done = "\n\n## Acceptance criteria\n- [ ] It is told apart from the others.";
        let rocket = fake.create_issue(OWNER, "A rocket to Mars", &format!("With a crew.{done}"), &[]);
        let waits = format!("For the crew.\n\nDepends on #{rocket}{done}");
        fake.create_issue(OWNER, "Apples", &waits, &["backlog"]);
        fake.create_issue(OWNER, "Whatever the cellar needs", "Nobody says when it is done.", &[]);
        let main = Loop::open(directory.path(), &configuration(kind, &fake, directory.path()));
        let phases = Phases::start(main.inbox.clone(), main.board.clone(), Arc::clone(&main.world)).unwrap();
        let world = || Arc::clone(&main.world);
        let reports = Arc::new(Reports::new(main.inbox.clone(), main.board.clone(), world()));
        Self {
            asking: main.poller.asking(main.inbox.clone(), main.board.clone(), world(), phases, reports),
            roles: factory::Watch::new(main.inbox.clone(), world()),
            runs: runs::Watch::new(main.inbox.clone(), world()),
            served: main.world.project(&shop()).unwrap(),
            main,
            fake,
            rocket,
            now: Timestamp(EVENING),
            asked: 0,
            _directory: directory,
        }
    }

    /// Plays so many hours. Whatever a session is asked meanwhile, it wants all to stay as it is, or as `answer` says.
    fn play(&mut self, hours: i64, answer: impl Fn(&Run) -> Vec<String>) {
        let until = self.now.0 + hours * HOUR;
        while self.now.0 < until {
            let now = self.now;
            self.asking.round(now);
            self.main.settle(now);
            if now.0 % MINUTE == 0 {
                // The server's clock goes with ours: its times have whole seconds.
                self.fake.change(|rules| rules.ahead = (now.0 - EVENING) / 1000);
                self.runs.tell_the_time(&self.served);
                self.main.settle(now);
                self.main.beside(now, || self.roles.look(now));
                self.answer_runs(now, &answer);
            }
            self.now = Timestamp(now.0 + STEP);
        }
    }

    /// In the place of a session: every step is done, and this is the result.
    fn answer_runs(&mut self, now: Timestamp, answer: impl Fn(&Run) -> Vec<String>) {
        for run in self.main.engine.store().runs(&shop(), RunScope::Open).unwrap() {
            let generation = run.session.generation;
            let steps =
                run.formula.steps.iter().map(|step| Event::StepDone { generation, step: step.id.clone() });
            let result = Some(json!({ "lines": answer(&run) }));
            let told = |told| Event::Session { generation, told };
            let mut events = vec![told(session::Event::Started)];
            events.extend(steps);
            let ended = session::Event::Ended { exit: Exit::Done, tail: String::new() };
            events.extend([Event::Finished { generation, result }, told(ended), Event::CleanedUp]);
            for event in events {
                let taken =
                    runs::happened(&mut self.main.engine, &shop(), run.id, event.clone(), now).unwrap();
                taken.unwrap_or_else(|_| panic!("{event:?}"));
            }
        }
    }

    /// What the server was asked since the last time this was asked.
    fn calls(&mut self) -> Calls {
        let all = self.fake.requests();
        let mut calls = Calls::new();
        for (method, path) in all.iter().skip(self.asked).filter(|(_, path)| path.starts_with("/api/")) {
            let below = path.split_once(REPO).map_or(path.as_str(), |(_, below)| below);
            *calls.entry(format!("{method} {below}")).or_default() += 1;
        }
        self.asked = all.len();
        calls
    }

    fn unchanged(&self) -> u64 {
        self.served.forge.costs().iter().map(|(_, count)| count.unchanged).sum()
    }

    /// Every role was there all night, and nobody said a word.
    fn everybody_looked(&mut self) {
        let (store, ended) = (self.main.engine.store(), self.now.0);
        let ago = |looked: Timestamp| (ended - looked.0) / MINUTE;
        assert_eq!(ago(factory::memory(store, &shop()).unwrap().looked_at), 10, "every 20 minutes");
        assert_eq!(
            ago(factory::gardener::memory(store, &shop()).unwrap().looked_at),
            6 * 60 + 30,
            "at midnight"
        );
        assert_eq!(ago(factory::predictor::memory(store, &shop()).unwrap().looked_at), 30, "at six");
        let planned = factory::planner::memory(store, &shop()).unwrap().looked_at;
        assert_eq!(ago(planned), 3 * 60 + 30, "at three");
        assert_eq!(store.notices(Some(&shop()), 10).unwrap(), []);
    }

    fn all_runs(&mut self) -> Vec<Run> {
        self.main.engine.store().runs(&shop(), RunScope::Last(1000)).unwrap()
    }
}

/// About each issue that a session was told of.
fn keep(run: &Run) -> Vec<String> {
    found(run)
        .iter()
        .map(|issue| format!("ACTION: {{\"issue\": {issue}, \"do\": \"keep\", \"why\": \"fine\"}}"))
        .collect()
}

/// The issues that were found, in the order of the briefing.
fn found(run: &Run) -> Vec<u64> {
    let briefing = run.briefing.as_deref().unwrap_or_default();
    let lines = briefing.lines().filter_map(|line| line.strip_prefix("- #"));
    lines.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

fn listed(calls: &[(&str, usize)]) -> Calls {
    calls.iter().map(|(call, count)| ((*call).to_owned(), *count)).collect()
}

/// Twelve hours: the open issues are listed once for all roles, every ten minutes, and main is looked at every six hours.
const IDLE: [(&str, usize); 2] = [("GET /issues", 72), ("GET /branches/main", 2)];

fn an_idle_night_and_one_with_an_issue(kind: &str, further: &[(&str, usize)]) -> u64 {
    let mut night = Night::fall(kind);
    night.play(1, keep);
    assert_eq!(
        night.all_runs().len(),
        1,
        "in the evening the gardener asks about what nobody has decided yet"
    );
    night.calls();
    let unchanged = night.unchanged();

    night.play(12, keep);
    let idle = night.calls();
    assert_eq!(idle, listed(&IDLE), "all that a forge is asked in a night");
    assert!(idle.values().sum::<usize>() < 20 * 12, "fewer than 20 an hour, not-modified answers and all");
    assert_eq!(night.all_runs().len(), 1, "no model is asked");
    night.everybody_looked();
    let unchanged = night.unchanged() - unchanged;

    // A person writes an issue; at six the gardener asks about it, and proposes when it is done.
    let pears = format!("Nobody says when they are ripe.\n\nDepends on #{}", night.rocket);
    let new = night.fake.create_issue(OWNER, "Pears for winter", &pears, &["backlog"]);
    night.play(12, |run| {
        assert_eq!(found(run), [new], "a session of {}", run.formula.name);
        let text = "- [ ] They are ripe.";
        vec![format!("ACTION: {{\"issue\": {new}, \"do\": \"criteria\", \"text\": \"{text}\"}}")]
    });
    let mut explained = listed(&IDLE);
    let comments = format!("/issues/{new}/comments");
    // Before something is done the issues are read anew. Then the issue itself, whether it was said before, and it is said.
    *explained.get_mut("GET /issues").unwrap() += 1;
    explained.insert(format!("GET /issues/{new}"), 1);
    explained.insert(format!("GET {comments}"), 1);
    explained.insert(format!("POST {comments}"), 1);
    for (call, count) in further {
        explained.insert(call.replace("{new}", &new.to_string()), *count);
    }
    assert_eq!(night.calls(), explained, "exactly the calls that this issue explains");
    let runs = night.all_runs();
    assert_eq!(runs.len(), 2, "and one session");
    assert_eq!(night.fake.issue(new).comments.len(), 1);
    unchanged
}

/// A Forgejo names no versions: every answer is whole. Native dependencies are read when an issue that waits has changed:
/// when it is new, and after our own comment.
#[test]
fn an_idle_night_on_a_forgejo() {
    let unchanged = an_idle_night_and_one_with_an_issue("forgejo", &[("GET /issues/{new}/dependencies", 2)]);
    assert_eq!(unchanged, 0);
}

/// On GitHub every question of an idle night is answered by "not modified".
#[test]
fn an_idle_night_on_github() {
    let unchanged = an_idle_night_and_one_with_an_issue("github", &[]);
    assert_eq!(unchanged, IDLE.iter().map(|(_, count)| *count as u64).sum::<u64>());
}
