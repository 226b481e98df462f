//! A store with sessions of every kind, written as the daemon writes them.

use std::time::Duration;

use pointsman::paths::Paths;
use pointsman_adapters::process;
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::role::Role;
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::{Gauge, Source};
use pointsman_core::task::{Exit, Phase, Stage, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_store::{Change, SessionRow, SpendingReport, Store, Write};

use super::environment::Environment;

/// The store of an environment, to write into.
pub(crate) fn store(environment: &Environment) -> Store {
    let paths = Paths::new(environment.path("state"), environment.path("run"));
    Store::open(&paths.database()).unwrap()
}

pub(crate) fn minutes_ago(minutes: u64) -> Timestamp {
    Timestamp(pointsman::daemon::clock::now().0 - Duration::from_secs(minutes * 60).as_millis() as i64)
}

/// A session that lives: its process is this one. Begun two hours ago, seen twenty minutes ago.
pub(crate) fn alive(issue: u64, generation: u32) -> SessionRow {
    let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue };
    let pid = std::process::id();
    SessionRow {
        session: key.session(generation),
        identity: key.identity(),
        project: key.project.clone(),
        issue: Some(issue),
        role: Role::Dev,
        generation,
        host: process::host_name(),
        model: Some("sonnet".to_owned()),
        bead_id: None,
        node_id: None,
        hook_path: Some(format!("/shop/.claude/state/hooks/{}.json", key.identity()).into()),
        tmux_session: Some(key.identity()),
        pane: Some("%1".to_owned()),
        pid: Some(pid),
        start_time: process::start_time(pid),
        tree: Some("/tree".into()),
        created_at: minutes_ago(120),
        last_seen: minutes_ago(20),
        times_stale: 0,
        ended_at: None,
        exit: None,
        acknowledges: false,
        predecessor: (generation > 1).then(|| key.session(generation - 1)),
        gauge: None,
        spent: Spent::default(),
    }
}

/// One that ended so many minutes ago.
pub(crate) fn ended(issue: u64, generation: u32, exit: Exit, minutes: u64) -> SessionRow {
    let mut row = alive(issue, generation);
    (row.start_time, row.ended_at, row.exit) = (Some(1), Some(minutes_ago(minutes)), Some(exit));
    row
}

/// The task of an issue, at work in its session of this generation.
pub(crate) fn working(issue: u64, generation: u32) -> Task {
    let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue };
    let mut task = Task::new(key, "Add a door".into(), format!("pointsman/issue-{issue}"), minutes_ago(120));
    (task.state, task.session.stage, task.session.generation) = (State::Working, Stage::Alive, generation);
    task
}

/// A project with sessions of every kind:
/// 1 alive, 2 stale, 3 dead after a crash, 4 done, 5 crashed long ago, 6 starting, 7 on another machine.
pub(crate) fn with_agents() -> Environment {
    let environment = Environment::with_project();
    let mut store = store(&environment);
    let mut task = working(1, 1);
    task.phase = Some(Phase::AwaitingCi);
    task.session.context.gauge = Some(Gauge { used_permille: 425, source: Source::StatusLine });
    let mut change = Change::new(minutes_ago(1), "session_started");
    change.sessions = vec![SessionRow { gauge: task.session.context.gauge, ..alive(1, 1) }];
    change.task = Some(task);
    store.commit(&[change]).unwrap();
    let spent = Spent { tokens: 81_000, micro_usd: 1_270_000, turns: 12, ..Spent::default() };
    let today = pointsman::daemon::clock::day(minutes_ago(0));
    let report = SpendingReport {
        project: ProjectName::new("shop").unwrap(),
        issue: Some(1),
        session: "dev-shop-1.1".to_owned(),
        day: today,
        total: spent,
    };
    write(&mut store, Write::Spent(report));
    for row in [
        alive(2, 1),
        ended(3, 1, Exit::Crashed, 10),
        SessionRow { start_time: Some(1), ..alive(3, 2) },
        ended(4, 1, Exit::Done, 5),
        ended(5, 1, Exit::Crashed, 90),
        SessionRow { pid: None, start_time: None, host: String::new(), ..alive(6, 1) },
        SessionRow { host: "elsewhere.invalid".to_owned(), ..alive(7, 1) },
        ended(8, 1, Exit::Crashed, 30),
    ] {
        write(&mut store, Write::Session(Box::new(row)));
    }
    for _ in 0..3 {
        write(&mut store, Write::SessionMissed("dev-shop-2.1".to_owned()));
    }
    environment
}

pub(crate) fn write(store: &mut Store, write: Write) {
    store.commit(&[Change::quiet(minutes_ago(0), vec![write])]).unwrap();
}
