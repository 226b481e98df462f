//! Random SIGKILLs of the daemon, of agents and of the tmux server while six tasks are worked on and sessions hand over
//! to successors: no transition is lost, no message comes twice, no file is gone.
//!
//! `POINTSMAN_KILLS` says how many, `POINTSMAN_SEED` which; `scripts/torture` sets both. The seed decides who is killed
//! after which pause, not what the machine makes of it: a failure may need several runs to be seen again.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use pointsman::control::client;
use pointsman::control::protocol::Request;
use pointsman_adapters::process;
use pointsman_core::ids::ProjectName;
use pointsman_core::session::context::{Gauge, Source};
use pointsman_core::task::{Event, Exit, Policy, State, Task, step};
use pointsman_store::{EventFilter, EventRow, SessionRow, SessionScope, Store};
use pointsman_testkit::TestDaemon;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{LAND, shop};

/// A bit more than a minute's worth.
const KILLS: u64 = 150;
/// How many tasks are worked on at any time.
const TASKS: usize = 6;
/// How many files each of them makes, a line at a time.
const FILES: usize = 3;
const LINES: [&str; 3] = ["one", "two", "three"];
/// Between two kills, at most.
const LONGEST_PAUSE_MS: u64 = 400;
/// For an agent to be there that can be killed.
const VICTIM_WAIT: Duration = Duration::from_secs(5);
/// For everything to be finished after the last kill.
const AFTERMATH: Duration = Duration::from_secs(120);
/// Kills, out of a hundred, that hit the daemon and the tmux server; the others hit agents.
const DAEMON_SHARE: u64 = 45;
const TMUX_SHARE: u64 = 5;
/// Out of a hundred kills, so many come right after a session was told that its context is full.
const FULL_SHARE: u64 = 15;
/// For a session to hand over, else it is ended by force.
const HANDOFF_TIMEOUT: &str = "\"1s\"";

#[test]
fn e2e_torture_random_kills_lose_nothing_and_double_nothing() {
    let kills = number("POINTSMAN_KILLS").unwrap_or(KILLS);
    let seed = number("POINTSMAN_SEED").unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("torture: {kills} kills, seed {seed}");
    let mut crew = Crew::start();
    let mut chance = Chance(seed);
    let (mut daemons, mut servers, mut agents) = (0, 0, 0);
    for _ in 0..kills {
        crew.keep_busy();
        std::thread::park_timeout(Duration::from_millis(chance.below(LONGEST_PAUSE_MS)));
        if chance.below(100) < FULL_SHARE {
            crew.fill_a_context(&mut chance);
        }
        match chance.below(100) {
            n if n < DAEMON_SHARE => {
                crew.daemon.restart();
                daemons += 1;
            }
            n if n < DAEMON_SHARE + TMUX_SHARE => servers += crew.kill_tmux(),
            _ => agents += crew.kill_an_agent(&mut chance),
        }
    }
    println!("torture: killed {daemons} daemons, {agents} agents, {servers} tmux servers");
    crew.finish();
    crew.check_files();
    crew.check_transitions();
    crew.check_messages();
    crew.check_handovers();
    let tasks = crew.fruits.len();
    println!("torture: {} sessions for {tasks} tasks, nothing lost", crew.sessions().len());
}

pub(super) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// SplitMix64.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// Writes files line by line, saves its work now and then, hands over once with work uncommitted, commits and hands in.
fn script(fruit: &str) -> String {
    let mut steps = Vec::new();
    for n in 0..FILES {
        for line in LINES {
            steps.push(format!("append src/{fruit}-{n}.txt {line}"));
        }
        steps.push(format!("checkpoint implementation {fruit} {n}"));
        if n == 1 {
            steps.push("exit-clean 95".to_owned());
        }
        steps.push(format!("append src/{fruit}-{n}.txt last\ncommit Add {fruit} {n}\npush"));
    }
    format!("{}\nphase awaiting_ci\n{LAND}", steps.join("\n"))
}

/// A world under load, and what is known of it.
struct Crew {
    daemon: TestDaemon,
    store: Store,
    project: ProjectName,
    fruits: BTreeMap<u64, String>,
}

impl Crew {
    fn start() -> Self {
        let daemon = shop()
            .set("dev.concurrency", &TASKS.to_string())
            .set("limits.restarts", "1000000")
            .set("limits.handoffs", "1000000")
            .set("timing.handoff_timeout", HANDOFF_TIMEOUT)
            .set("timing.restart_backoff", "\"10ms\"")
            .set("timing.restart_backoff_max", "\"100ms\"")
            .set("timing.stop_grace", "\"200ms\"")
            // What is sent again on purpose would look like a double.
            .set("timing.ack_timeout", "\"1h\"")
            .start();
        let store = Store::open_read_only(&daemon.state().join("pointsman.db")).unwrap();
        Self { daemon, store, project: ProjectName::new("shop").unwrap(), fruits: BTreeMap::new() }
    }

    fn open_tasks(&self) -> Vec<Task> {
        let tasks = self.store.tasks(Some(&self.project)).unwrap();
        tasks.into_iter().filter(|task| task.state != State::Closed).collect()
    }

    /// Files issues until every place is taken.
    fn keep_busy(&mut self) {
        let tasks = self.store.tasks(Some(&self.project)).unwrap();
        let closed = tasks.iter().filter(|task| task.state == State::Closed).count();
        while self.fruits.len() - closed < TASKS {
            let fruit = format!("fruit{}", self.fruits.len());
            let issue = self.daemon.file_issue(&fruit, &script(&fruit));
            self.fruits.insert(issue, fruit);
        }
    }

    /// Answers how many were killed: the one before may have been a moment ago.
    fn kill_tmux(&self) -> u32 {
        let answer = self.daemon.tmux(&["display-message", "-p", "#{pid}"]);
        let server = answer.trim().parse().ok().and_then(Pid::from_raw);
        server.map_or(0, |pid| kill_process(pid, Signal::KILL).is_ok().into())
    }

    /// Answers how many were killed: there may be none for a long time.
    fn kill_an_agent(&self, chance: &mut Chance) -> u32 {
        let deadline = Instant::now() + VICTIM_WAIT;
        loop {
            let running = self.running_agents();
            if let Ok(count @ 1..) = u64::try_from(running.len()) {
                let victim = running[usize::try_from(chance.below(count)).unwrap()];
                let victim = Pid::from_raw(victim.cast_signed()).unwrap();
                return kill_process(victim, Signal::KILL).is_ok().into();
            }
            if Instant::now() >= deadline {
                return 0;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Any live session learns that its context is full, wherever it is in its work. Nobody may be there to hear it.
    fn fill_a_context(&self, chance: &mut Chance) {
        let sessions = self.store.sessions(Some(&self.project), SessionScope::Live).unwrap();
        let Ok(count @ 1..) = u64::try_from(sessions.len()) else { return };
        let session = sessions[usize::try_from(chance.below(count)).unwrap()].session.clone();
        let gauge = Some(Gauge { used_permille: 950, source: Source::StatusLine });
        let _ = client::ask(
            &self.daemon.control_socket(),
            &Request::Measure { session, gauge, spent: None, quota: Vec::new() },
        );
    }

    fn running_agents(&self) -> Vec<u32> {
        let sessions = self.store.sessions(Some(&self.project), SessionScope::Live).unwrap();
        let processes = sessions.iter().filter_map(|s| Some((s.pid?, s.start_time?)));
        processes.filter(|(pid, start)| process::is_alive(*pid, *start)).map(|(pid, _)| pid).collect()
    }

    /// Whatever was begun is finished.
    fn finish(&self) {
        let deadline = Instant::now() + AFTERMATH;
        for issue in self.fruits.keys() {
            while self.daemon.task(*issue)["state"] != "closed" || !self.daemon.is_settled(*issue) {
                assert!(
                    Instant::now() < deadline && !self.daemon.has_ended(),
                    "issue {issue} is not finished\n{}",
                    self.daemon.diagnosis()
                );
                std::thread::park_timeout(Duration::from_millis(50));
            }
        }
        assert!(self.open_tasks().is_empty());
    }

    fn sessions(&self) -> Vec<SessionRow> {
        self.store.sessions(Some(&self.project), SessionScope::All).unwrap()
    }

    /// Sessions that were continued: some of their own accord, some by force.
    fn check_handovers(&self) {
        let sessions = self.sessions();
        let count = |exit| sessions.iter().filter(|s| s.exit == Some(exit)).count();
        let (clean, forced) = (count(Exit::Handoff), count(Exit::Stuck));
        println!("torture: {clean} sessions handed over, {forced} were made to");
        assert!(clean > 0, "nobody handed over");
    }

    /// Every line of every file is on the main branch, once.
    fn check_files(&self) {
        let expected = [&LINES[..], &["last"]].concat().join("\n");
        for fruit in self.fruits.values() {
            for n in 0..FILES {
                let path = format!("src/{fruit}-{n}.txt");
                assert_eq!(self.daemon.on_main(&path).as_deref(), Some(expected.as_str()), "{path}");
            }
        }
        let requests = self.daemon.pull_requests();
        assert_eq!(requests.len(), self.fruits.len(), "one pull request for each: {requests:?}");
        assert!(requests.iter().all(|pr| pr["merged"] == true), "{requests:?}");
    }

    /// The log alone leads to the very state that is remembered.
    fn check_transitions(&self) {
        let config = pointsman::daemon::read_config(&self.daemon.checkout().join("pointsman.toml")).unwrap();
        let policy = Policy::new(&config);
        for task in self.store.tasks(Some(&self.project)).unwrap() {
            let mut replayed: Option<Task> = None;
            for row in self.events(task.key.issue) {
                let Some(event) = event_of(&row) else { continue };
                let before = replayed.take().unwrap_or_else(|| {
                    Task::new(task.key.clone(), task.title.clone(), task.contribution.branch.clone(), row.at)
                });
                let next = step(&before, &event, &policy, row.at);
                let next =
                    next.unwrap_or_else(|r| panic!("{}: {row:?} was taken and is refused: {r}", task.key));
                assert_eq!(json!(next.task.state), row.data["to"], "{}: {row:?}", task.key);
                replayed = Some(next.task);
            }
            assert_eq!(replayed.as_ref(), Some(&task), "{}: log and snapshot disagree", task.key);
        }
        let live = self.store.sessions(Some(&self.project), SessionScope::Live).unwrap();
        assert!(live.is_empty(), "{live:?}");
    }

    fn events(&self, issue: u64) -> Vec<EventRow> {
        let mut all: Vec<EventRow> = Vec::new();
        loop {
            let since = all.last().map_or(0, |row| row.seq);
            let filter = EventFilter { since, issue: Some(issue), ..EventFilter::default() };
            let page = self.store.events(&filter).unwrap();
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }

    /// No terminal showed the same message twice, the first prompt included.
    fn check_messages(&self) {
        let logs = self.daemon.state().join("projects/shop/logs");
        let mut looked_at = 0;
        for session in self.sessions() {
            // One that died before it could print has no transcript.
            let Ok(bytes) = std::fs::read(logs.join(format!("{}.log", session.session))) else { continue };
            let shown = String::from_utf8_lossy(&bytes);
            let mut ids = BTreeSet::new();
            for (id, _) in shown.split("[pointsman m-").skip(1).filter_map(|rest| rest.split_once(']')) {
                assert!(ids.insert(id), "{}: m-{id} came twice:\n{shown}", session.session);
            }
            looked_at += 1;
        }
        assert!(looked_at >= self.fruits.len(), "{looked_at} transcripts");
        let notices = self.daemon.notices();
        let keys: BTreeSet<&str> = notices.iter().filter_map(|n| n["key"].as_str()).collect();
        assert_eq!(keys.len(), notices.len(), "somebody was told twice: {notices:?}");
    }
}

/// The event of a row of the log that a task stepped on.
fn event_of(row: &EventRow) -> Option<Event> {
    let mut data = row.data.clone();
    if data.get("refused").is_some() {
        return None;
    }
    data.as_object_mut()?.insert("event".to_owned(), json!(row.kind));
    serde_json::from_value(data).ok()
}
