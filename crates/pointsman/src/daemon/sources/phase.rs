//! Phase files: seen at once through inotify, and by a slow look at all of them as a net.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pointsman_adapters::phase_file::{self, Reading, Refusal, Stamp};
use pointsman_adapters::watch::files::{FileEvent, FileWatch};
use pointsman_core::part::session::{self, Stage};
use pointsman_core::sandbox::Place;
use pointsman_core::task::{Phase, is_plan};
use pointsman_core::text;
use pointsman_core::words;
use pointsman_core::workflow::{Workflow, WorkflowId};

use crate::daemon::board::{TaskBoard, WorkflowMap};
use crate::daemon::effects::EffectPerformer;
use crate::daemon::effects::{read_refusal, read_summary};
use crate::daemon::engine::Input;
use crate::daemon::inbound::Inbox;
use crate::daemon::served::Served;

/// Watches the phase files of all sessions.
pub(crate) struct Phases {
    inbox: Inbox,
    board: TaskBoard,
    world: Arc<EffectPerformer>,
    watched: Mutex<BTreeMap<WorkflowId, Watched>>,
    /// Filled once, right after this value is made.
    watch: Mutex<Option<FileWatch>>,
}

struct Watched {
    generation: u32,
    path: PathBuf,
    /// The protocol's path, which shows the claim of a session inside a sandbox.
    shown: Option<PathBuf>,
    /// The claim that was told last.
    told: Option<Stamp>,
    /// What the last slow look saw: two equal looks count, one may have caught half a write.
    seen: Option<Stamp>,
    /// Told once, not at every look.
    refused: Option<Refusal>,
}

/// How sure we are that the file is not being written at this moment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadSafety {
    /// Its writer has closed it, or is gone.
    Settled,
    /// It may be half written.
    Passing,
}

impl Phases {
    /// Starts watching; nothing is registered yet.
    pub(crate) fn start(
        inbox: Inbox,
        board: TaskBoard,
        world: Arc<EffectPerformer>,
    ) -> std::io::Result<Arc<Self>> {
        let phases =
            Arc::new(Self { inbox, board, world, watched: Mutex::default(), watch: Mutex::new(None) });
        let weak: Weak<Self> = Arc::downgrade(&phases);
        let watch = FileWatch::start(move |event| {
            let Some(phases) = weak.upgrade() else { return };
            match event {
                FileEvent::Changed(path) => phases.look_at_path(&path),
                FileEvent::Overflow => phases.look_at_all(),
                FileEvent::Gone(dir) => tracing::error!(dir = %dir.display(), "the phase directory is gone"),
            }
        })?;
        *phases.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
        Ok(phases)
    }

    /// Registers the files of sessions that are there, forgets the others.
    pub(crate) fn follow(&self, picture: &WorkflowMap) {
        let mut watched = self.lock();
        watched.retain(|id, entry| {
            let stays = picture.get(id).is_some_and(|owner| owner.session().stage != Stage::None);
            if !stays && let Some(watch) = &*self.watch.lock().unwrap_or_else(PoisonError::into_inner) {
                watch.unregister(&entry.path);
            }
            stays
        });
        for (id, owner) in picture.iter() {
            if owner.session().stage == Stage::None {
                continue;
            }
            let Some(served) = self.world.project(id.project()) else { continue };
            let Location { path, shown } = location(&served, owner);
            let generation = owner.session().generation;
            if watched.get(id).is_some_and(|entry| entry.path == path && entry.generation == generation) {
                continue;
            }
            let earlier = watched.remove(id);
            if let Some(watch) = &*self.watch.lock().unwrap_or_else(PoisonError::into_inner) {
                if let Some(earlier) = &earlier {
                    watch.unregister(&earlier.path);
                }
                watch.register(path.clone());
                if let Err(error) = path.parent().map_or(Ok(()), |dir| watch.watch_dir(dir)) {
                    tracing::error!(%error, "phase files are only seen by the slow look");
                }
            }
            // What the one before claimed at its very end may have come too late for it.
            let told = self.remembered(id);
            watched.insert(id.clone(), Watched { generation, path, shown, told, seen: None, refused: None });
        }
    }

    fn remembered(&self, id: &WorkflowId) -> Option<Stamp> {
        let text = self.world.read(|store| store.cursor(Some(id.project()), &cursor(id))).ok().flatten()?;
        serde_json::from_str(&text).ok()
    }

    /// The slow look.
    pub(crate) fn look_at_all(&self) {
        let all: Vec<WorkflowId> = self.lock().keys().cloned().collect();
        for id in all {
            self.look(&id, ReadSafety::Passing);
        }
    }

    /// A last look when a session's process is gone: what it wrote counts before its end does.
    pub(crate) fn look_before_end(&self, id: &WorkflowId) {
        self.look(id, ReadSafety::Settled);
    }

    fn look_at_path(&self, path: &std::path::Path) {
        let id = self.lock().iter().find(|(_, w)| w.path == path).map(|(id, _)| id.clone());
        if let Some(id) = id {
            self.look(&id, ReadSafety::Settled);
        }
    }

    fn look(&self, id: &WorkflowId, facts: ReadSafety) {
        let picture = self.board.workflows();
        let Some(owner) = picture.get(id) else { return };
        let mut watched = self.lock();
        let Some(entry) = watched.get_mut(id) else { return };
        if let Some(input) = self.read(id, owner, entry, facts) {
            self.inbox.tell(input);
        }
    }

    fn read(
        &self,
        id: &WorkflowId,
        owner: &Workflow,
        entry: &mut Watched,
        facts: ReadSafety,
    ) -> Option<Input> {
        let generation = owner.session().generation;
        match phase_file::read(&entry.path) {
            Reading::Missing | Reading::Empty => None,
            Reading::Text { first_line, .. } if Phase::is_torn(&first_line) => None,
            Reading::Refused(refusal) => {
                if entry.refused.as_ref().is_some_and(|told| told.is_like(&refusal)) {
                    return None;
                }
                let why = format!("{}: {refusal}", entry.path.display());
                entry.refused = Some(refusal);
                Some(Input::of_session(id.clone(), generation, session::Event::PhaseRejected { why }))
            }
            Reading::Text { first_line, reason, stamp } => {
                let settled = facts == ReadSafety::Settled || entry.seen == Some(stamp);
                entry.seen = Some(stamp);
                if entry.told == Some(stamp) || !settled {
                    return None;
                }
                entry.told = Some(stamp);
                entry.refused = None;
                if let Some(shown) = &entry.shown
                    && let Err(refusal) = phase_file::write_phase(shown, &first_line, reason.as_deref())
                {
                    tracing::debug!(file = %shown.display(), %refusal, "a claim is not shown");
                }
                let event = match Phase::parse(&first_line) {
                    Some(phase) => {
                        let refusal = self.refusal(id, generation, phase);
                        let plan = self.plan(id, generation, phase, reason.as_deref());
                        session::Event::PhaseClaimed { phase, refusal, reason, plan }
                    }
                    None => {
                        let line = text::clean_line(&first_line, 80);
                        session::Event::PhaseRejected { why: words::daemon::session::no_phase(&line) }
                    }
                };
                let mut input = Input::of_session(id.clone(), generation, event);
                input.cursor = Some((cursor(id), serde_json::to_string(&stamp).unwrap_or_default()));
                Some(input)
            }
        }
    }

    /// `failed` with a refusal in the summary file is a refusal.
    fn refusal(
        &self,
        id: &WorkflowId,
        generation: u32,
        phase: Phase,
    ) -> Option<pointsman_core::task::Refusal> {
        if phase != Phase::Failed || id.task().is_none() {
            return None;
        }
        let served = self.world.project(id.project())?;
        read_refusal(&served.files_of(id).summary(generation))
    }

    /// `escalate` with the reason `plan` hands in the plan file, where the project wants a plan.
    fn plan(&self, id: &WorkflowId, generation: u32, phase: Phase, reason: Option<&str>) -> Option<String> {
        if phase != Phase::Escalate || id.task().is_none() || !is_plan(reason) {
            return None;
        }
        let served = self.world.project(id.project()).filter(|served| served.config.dev.plan)?;
        read_summary(&served.files_of(id).plan(generation))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<WorkflowId, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a session's phase file.
struct Location {
    path: PathBuf,
    shown: Option<PathBuf>,
}

/// A session that is about to start inside a sandbox gets its directory here, if its start has not made it yet: a watch
/// has to be there before the first claim.
fn location(served: &Served, owner: &Workflow) -> Location {
    let session_files = served.files_of(&owner.id());
    let generation = owner.session().generation;
    if owner.session().stage == Stage::Starting && !session_files.is_enclosed(generation) {
        let place = served.enclosure.place(&served.config.sandbox(owner.role()), served.config.dev.worktree);
        let phases = session_files.phases(generation);
        if place == Place::Inside
            && let Err(error) = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&phases)
        {
            tracing::warn!(dir = %phases.display(), %error, "a phase directory cannot be made");
        }
    }
    let path = session_files.as_seen_by(generation, &session_files.phase_file);
    let shown = (path != session_files.phase_file).then_some(session_files.phase_file);
    Location { path, shown }
}

/// The name under which the store keeps the claim that was told last.
fn cursor(id: &WorkflowId) -> String {
    match id {
        WorkflowId::Task(key) => format!("phase-{}", key.issue),
        WorkflowId::Run(key) => format!("phase-{key}"),
        WorkflowId::Vault(_) | WorkflowId::Concern(_) | WorkflowId::Role(_) | WorkflowId::Notifier(_) => {
            format!("phase-{id}")
        }
    }
}
