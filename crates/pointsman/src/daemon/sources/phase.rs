//! Phase files: seen at once through inotify, and by a slow look at all of them as a net.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pointsman_adapters::phase_file::{self, Reading, Refusal, Stamp};
use pointsman_adapters::watch::files::{FileEvent, FileWatch};
use pointsman_core::ids::TaskKey;
use pointsman_core::task::{Event, Phase, Stage, Task};
use pointsman_core::text;
use pointsman_core::words;

use crate::daemon::board::{TaskBoard, TaskMap};
use crate::daemon::effects::EffectPerformer;
use crate::daemon::effects::read_refusal;
use crate::daemon::engine::Input;
use crate::daemon::inbound::Inbox;

/// Watches the phase files of all sessions.
pub(crate) struct Phases {
    inbox: Inbox,
    board: TaskBoard,
    world: Arc<EffectPerformer>,
    watched: Mutex<BTreeMap<TaskKey, Watched>>,
    /// Filled once, right after this value is made.
    watch: Mutex<Option<FileWatch>>,
}

struct Watched {
    path: PathBuf,
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
    pub(crate) fn follow(&self, picture: &TaskMap) {
        let mut watched = self.lock();
        watched.retain(|key, entry| {
            let stays = picture.get(key).is_some_and(|t| t.session.stage != Stage::None);
            if !stays && let Some(watch) = &*self.watch.lock().unwrap_or_else(PoisonError::into_inner) {
                watch.unregister(&entry.path);
            }
            stays
        });
        for (key, task) in picture.iter() {
            if task.session.stage == Stage::None || watched.contains_key(key) {
                continue;
            }
            let Some(served) = self.world.project(&key.project) else { continue };
            let path = served.session_files(key).phase_file;
            if let Some(watch) = &*self.watch.lock().unwrap_or_else(PoisonError::into_inner) {
                watch.register(path.clone());
                if let Err(error) = watch.watch_dir(served.config.dev.phase_dir.clone()) {
                    tracing::error!(%error, "phase files are only seen by the slow look");
                }
            }
            let told = self.remembered(key);
            watched.insert(key.clone(), Watched { path, told, seen: None, refused: None });
        }
    }

    fn remembered(&self, key: &TaskKey) -> Option<Stamp> {
        let text = self.world.read(|store| store.cursor(Some(&key.project), &cursor(key))).ok().flatten()?;
        serde_json::from_str(&text).ok()
    }

    /// The slow look.
    pub(crate) fn look_at_all(&self) {
        let keys: Vec<TaskKey> = self.lock().keys().cloned().collect();
        for key in keys {
            self.look(&key, ReadSafety::Passing);
        }
    }

    /// A last look when a session's process is gone: what it wrote counts before its end does.
    pub(crate) fn look_before_end(&self, key: &TaskKey) {
        self.look(key, ReadSafety::Settled);
    }

    fn look_at_path(&self, path: &std::path::Path) {
        let key = self.lock().iter().find(|(_, w)| w.path == path).map(|(key, _)| key.clone());
        if let Some(key) = key {
            self.look(&key, ReadSafety::Settled);
        }
    }

    fn look(&self, key: &TaskKey, facts: ReadSafety) {
        let picture = self.board.look();
        let Some(task) = picture.get(key) else { return };
        let mut watched = self.lock();
        let Some(entry) = watched.get_mut(key) else { return };
        if let Some(input) = self.read(task, entry, facts) {
            self.inbox.tell(input);
        }
    }

    fn read(&self, task: &Task, entry: &mut Watched, facts: ReadSafety) -> Option<Input> {
        let generation = task.session.generation;
        match phase_file::read(&entry.path) {
            Reading::Missing | Reading::Empty => None,
            Reading::Text { first_line, .. } if Phase::is_torn(&first_line) => None,
            Reading::Refused(refusal) => {
                if entry.refused.as_ref().is_some_and(|told| told.is_like(&refusal)) {
                    return None;
                }
                let why = format!("{}: {refusal}", entry.path.display());
                entry.refused = Some(refusal);
                Some(Input::new(task.key.clone(), Event::PhaseRejected { generation, why }))
            }
            Reading::Text { first_line, reason, stamp } => {
                let settled = facts == ReadSafety::Settled || entry.seen == Some(stamp);
                entry.seen = Some(stamp);
                if entry.told == Some(stamp) || !settled {
                    return None;
                }
                entry.told = Some(stamp);
                entry.refused = None;
                let event = match Phase::parse(&first_line) {
                    Some(phase) => {
                        Event::PhaseClaimed { generation, phase, refusal: self.refusal(task, phase), reason }
                    }
                    None => {
                        let line = text::clean_line(&first_line, 80);
                        Event::PhaseRejected { generation, why: words::daemon::session::no_phase(&line) }
                    }
                };
                let mut input = Input::new(task.key.clone(), event);
                input.cursor = Some((cursor(&task.key), serde_json::to_string(&stamp).unwrap_or_default()));
                Some(input)
            }
        }
    }

    /// `failed` with a refusal in the summary file is a refusal.
    fn refusal(&self, task: &Task, phase: Phase) -> Option<pointsman_core::task::Refusal> {
        if phase != Phase::Failed {
            return None;
        }
        let served = self.world.project(&task.key.project)?;
        read_refusal(&served.session_files(&task.key).summary(task.session.generation))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskKey, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cursor(key: &TaskKey) -> String {
    format!("phase-{}", key.issue)
}
