//! Plain values for the stories.

use std::path::PathBuf;

use pointsman_core::ids::{ProjectName, Sha, TaskKey};
use pointsman_core::role::Role;
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::{Gauge, Source};
use pointsman_core::task::{Effect, Headline, Opening, Task};
use pointsman_core::time::Timestamp;
use pointsman_store::{Change, Committed, EffectId, SessionRow, Store};
use tempfile::TempDir;

/// A store nobody has written to, in a directory that goes with it.
pub(crate) struct Fresh {
    pub(crate) store: Store,
    pub(crate) directory: TempDir,
}

impl Fresh {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("pointsman.db")).unwrap();
        Self { store, directory }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("pointsman.db")
    }
}

pub(crate) fn at(milliseconds: i64) -> Timestamp {
    Timestamp(milliseconds)
}

/// No lane is being worked on.
pub(crate) fn nobody(_: &TaskKey) -> bool {
    false
}

pub(crate) fn project(name: &str) -> ProjectName {
    ProjectName::new(name).unwrap()
}

pub(crate) fn key(issue: u64) -> TaskKey {
    TaskKey { project: project("shop"), issue }
}

pub(crate) fn sha(digit: char) -> Sha {
    Sha::new(&digit.to_string().repeat(40)).unwrap()
}

pub(crate) fn task(issue: u64) -> Task {
    Task::new(key(issue), format!("issue {issue}"), format!("pointsman/issue-{issue}"), at(1))
}

/// A change to the task with these orders.
pub(crate) fn change(issue: u64, effects: &[Effect]) -> Change {
    Change { task: Some(task(issue)), effects: effects.to_vec(), ..Change::new(at(1000), "stepped") }
}

pub(crate) fn message(generation: u32) -> Effect {
    Effect::Deliver {
        generation,
        headline: Headline::CiFailed,
        subject: "see the log".to_owned(),
        details: "assertion failed".to_owned(),
    }
}

pub(crate) fn start(generation: u32) -> Effect {
    Effect::StartSession { generation, opening: Opening::Recovery }
}

pub(crate) fn session(issue: u64, generation: u32) -> SessionRow {
    SessionRow {
        session: key(issue).session(generation),
        identity: key(issue).identity(),
        project: project("shop"),
        issue: Some(issue),
        role: Role::Dev,
        generation,
        host: "signal-box".to_owned(),
        model: Some("sonnet".to_owned()),
        bead_id: Some("bead-7".to_owned()),
        node_id: Some("node-8".to_owned()),
        hook_path: Some(PathBuf::from("/src/shop/.claude/state/hooks/dev-shop.json")),
        tmux_session: Some(key(issue).identity()),
        pane: Some("%1".to_owned()),
        pid: Some(4242),
        start_time: Some(123_456_789),
        tree: Some(PathBuf::from("/state/shop/tree")),
        created_at: at(10 + i64::from(generation)),
        last_seen: at(20),
        times_stale: 0,
        ended_at: None,
        exit: None,
        acknowledges: true,
        predecessor: None,
        gauge: Some(Gauge { used_permille: 420, source: Source::Transcript }),
        spent: Spent { tokens: 1, micro_usd: 2, turns: 3, ..Spent::default() },
    }
}

/// Commits one change and gives its event's number and effects.
pub(crate) fn commit(store: &mut Store, change: Change) -> (i64, Vec<EffectId>) {
    match store.commit(&[change]).unwrap().remove(0) {
        Committed::Done { seq, effect_ids } => (seq, effect_ids),
        Committed::Duplicate => panic!("nothing of this was seen before"),
    }
}

/// Commits the result of an effect.
pub(crate) fn settle(store: &mut Store, issue: u64, id: EffectId) {
    commit(store, Change { settles: Some(id), ..change(issue, &[]) });
}
