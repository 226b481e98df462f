//! Plain values for the stories.

use std::path::{Path, PathBuf};

use pointsman_core::ids::{ProjectName, Sha, TaskKey};
use pointsman_core::role::Role;
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::{Gauge, Source};
use pointsman_core::task::{Effect, Exit, Headline, Opening, Task};
use pointsman_core::time::Timestamp;
use pointsman_store::{
    Audit, Change, CheckpointRow, Committed, Delivered, DeliveryId, EffectId, EntryId, NewEntry, NewNotice,
    ProjectRow, QueueEntry, Result, SessionRow, SpendingReport, Stopped, Store, Thread, VerdictRow, Write,
};
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
        Committed::Done { seq, effect_ids } => (seq.unwrap(), effect_ids),
        Committed::Duplicate => panic!("nothing of this was seen before"),
    }
}

/// Commits the result of an effect.
pub(crate) fn settle(store: &mut Store, issue: u64, id: EffectId) {
    commit(store, Change { settles: Some(id), ..change(issue, &[]) });
}

/// One row at a time, as the stories tell it. All of it goes through the one function that writes.
pub(crate) trait WriteOne {
    fn write(&mut self, write: Write, at: Timestamp) -> Result<()>;
    /// The same for what has a history: with an event.
    fn log(&mut self, write: Write, at: Timestamp) -> Result<()>;

    fn set_cursor(&mut self, project: Option<&ProjectName>, name: &str, value: &str) -> Result<()> {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.write(Write::Cursor { project: project.cloned(), name, value }, at(1))
    }

    fn enqueue(&mut self, entry: &NewEntry) -> Result<EntryId>;

    fn update_entry(&mut self, entry: &QueueEntry) -> Result<()> {
        self.log(Write::EntryMoved(Box::new(entry.clone())), at(1))
    }

    fn pause_queue(&mut self, project: &ProjectName, stopped: &Stopped) -> Result<()> {
        self.log(Write::QueuePaused { project: project.clone(), stopped: stopped.clone() }, at(1))
    }

    /// Answers whether it was stopped.
    fn resume_line(&mut self, project: &ProjectName) -> Result<bool>;

    fn audited(&mut self, project: &ProjectName, audit: &Audit) -> Result<()> {
        self.log(Write::MainAudited { project: project.clone(), audit: audit.clone() }, at(1))
    }

    fn remember_verdict(
        &mut self,
        project: &ProjectName,
        object: &Sha,
        gate: &str,
        verdict: &VerdictRow,
    ) -> Result<()> {
        let (project, object, gate) = (project.clone(), object.clone(), gate.to_owned());
        self.write(Write::Verdict { project, object, gate, verdict: verdict.clone() }, at(1))
    }

    fn upsert_session(&mut self, session: &SessionRow) -> Result<()> {
        self.write(Write::Session(Box::new(session.clone())), at(1))
    }

    /// Answers whether that is news.
    fn end_session(&mut self, session: &str, exit: Exit, when: Timestamp) -> Result<bool>;

    fn touch_sessions(&mut self, ids: &[String], when: Timestamp) -> Result<()> {
        self.write(Write::SessionsSeen(ids.to_vec()), when)
    }

    /// Answers how often in a row that is, if it is alive.
    fn session_found_stale(&mut self, session: &str) -> Result<Option<u32>>;

    fn session_measured(&mut self, session: &str, gauge: Gauge) -> Result<()> {
        self.write(Write::ContextMeasured { session: session.to_owned(), gauge }, at(1))
    }

    fn spend(
        &mut self,
        project: &ProjectName,
        issue: Option<u64>,
        session: &str,
        day: &str,
        total: Spent,
    ) -> Result<()> {
        let (project, session, day) = (project.clone(), session.to_owned(), day.to_owned());
        self.write(Write::Spent(SpendingReport { project, issue, session, day, total }), at(1))
    }

    fn add_checkpoint(&mut self, checkpoint: &CheckpointRow) -> Result<()> {
        self.write(Write::Checkpoint(checkpoint.clone()), at(1))
    }

    /// Answers whether one went.
    fn forget_checkpoint(&mut self, task: &TaskKey, n: u64) -> Result<bool>;

    fn message_sent(&mut self, id: EffectId, path: &Path, when: Timestamp) -> Result<()> {
        self.write(Write::MessageSent { id, path: path.to_owned() }, when)
    }

    /// Answers whether that is news.
    fn message_acknowledged(&mut self, id: EffectId, when: Timestamp) -> Result<bool>;

    /// Answers whether that is news.
    fn message_unacknowledged(&mut self, id: EffectId) -> Result<bool>;

    fn effect_postponed(&mut self, id: EffectId, error: &str, not_before: Timestamp) -> Result<()> {
        self.write(Write::EffectPostponed { id, error: error.to_owned(), not_before }, at(1))
    }

    fn supersede_effect(&mut self, id: EffectId, when: Timestamp) -> Result<()> {
        self.write(Write::EffectSuperseded(id), when)
    }

    /// Answers whether it is new.
    fn add_notice(&mut self, notice: &NewNotice, when: Timestamp) -> Result<bool>;

    fn count_notice(&mut self, id: i64) -> Result<()> {
        self.write(Write::NoticeRepeated(id), at(1))
    }

    fn settle_delivery(&mut self, id: DeliveryId, delivered: &Delivered, when: Timestamp) -> Result<()> {
        self.write(Write::Delivered { id, delivered: delivered.clone(), at: when }, when)
    }

    fn put_thread(&mut self, thread: &Thread) -> Result<()> {
        self.write(Write::Thread(thread.clone()), at(1))
    }

    fn take_reply(&mut self, id: i64, when: Timestamp) -> Result<()> {
        self.write(Write::ReplyTaken(id), when)
    }

    fn add_project(&mut self, project: &ProjectRow) -> Result<()> {
        self.log(Write::ProjectAdded(project.clone()), at(1))
    }

    /// Answers whether it was there.
    fn remove_project(&mut self, name: &ProjectName, when: Timestamp) -> Result<bool>;
}

impl WriteOne for Store {
    fn write(&mut self, write: Write, at: Timestamp) -> Result<()> {
        self.commit(&[Change::quiet(at, vec![write])]).map(drop)
    }

    fn log(&mut self, write: Write, at: Timestamp) -> Result<()> {
        self.commit(&[Change { writes: vec![write], ..Change::new(at, "written") }]).map(drop)
    }

    fn enqueue(&mut self, entry: &NewEntry) -> Result<EntryId> {
        if let Some(waiting) = self.waiting_entry(&entry.project, &entry.branch, &entry.head)? {
            return Ok(waiting.id);
        }
        let id = self.next_entry();
        self.log(Write::EntryAdded { id, entry: Box::new(entry.clone()) }, at(1))?;
        Ok(id)
    }

    fn resume_line(&mut self, project: &ProjectName) -> Result<bool> {
        let stopped = self.queue_state(project)?.stopped.is_some();
        self.log(Write::QueueResumed { project: project.clone() }, at(1))?;
        assert!(self.queue_state(project)?.stopped.is_none());
        Ok(stopped)
    }

    fn end_session(&mut self, session: &str, exit: Exit, when: Timestamp) -> Result<bool> {
        let Some(mut row) = self.session(session)? else { return Ok(false) };
        let lived = row.ended_at.is_none();
        (row.ended_at, row.exit) = (Some(when), Some(exit));
        self.upsert_session(&row).map(|()| lived)
    }

    fn session_found_stale(&mut self, session: &str) -> Result<Option<u32>> {
        self.write(Write::SessionMissed(session.to_owned()), at(1))?;
        Ok(self.session(session)?.filter(|row| row.ended_at.is_none()).map(|row| row.times_stale))
    }

    fn forget_checkpoint(&mut self, task: &TaskKey, n: u64) -> Result<bool> {
        let before = self.checkpoints(task)?.len();
        self.write(Write::CheckpointForgotten { task: task.clone(), n }, at(1))?;
        Ok(self.checkpoints(task)?.len() < before)
    }

    fn message_acknowledged(&mut self, id: EffectId, when: Timestamp) -> Result<bool> {
        let before = self.message(id)?;
        self.write(Write::MessageAcknowledged(id), when)?;
        Ok(self.message(id)? != before)
    }

    fn message_unacknowledged(&mut self, id: EffectId) -> Result<bool> {
        let before = self.message(id)?;
        self.write(Write::MessageUnacknowledged(id), at(1))?;
        Ok(self.message(id)? != before)
    }

    fn add_notice(&mut self, notice: &NewNotice, when: Timestamp) -> Result<bool> {
        let before = self.notices(None, 1000)?.len();
        self.write(Write::Notice(notice.clone()), when)?;
        Ok(self.notices(None, 1000)?.len() > before)
    }

    fn remove_project(&mut self, name: &ProjectName, when: Timestamp) -> Result<bool> {
        let before = self.projects()?.len();
        self.log(Write::ProjectRemoved(name.clone()), when)?;
        Ok(self.projects()?.len() < before)
    }
}
