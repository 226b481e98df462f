//! `.claude/state/` in the user's checkout: identities and work states as files, for people and
//! scripts. The store is the truth; a file that somebody touched is written anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pointsman_adapters::phase_file::Stamp;
use pointsman_adapters::projection;
use pointsman_adapters::watch::files::{FileEvent, FileWatch};
use pointsman_core::ids::ProjectName;
use pointsman_store::{EntryScope, SessionRow, Store};
use pointsman_view::session::WorkState;
use serde::Serialize;
use serde_json::Value;

use super::clock;
use super::own_identity::OwnIdentity;
use super::projects::read_config;
use super::restored;
use crate::{identity, queue_view};

/// Changes that come close together are written together.
const PAUSE: Duration = Duration::from_millis(100);
/// The files are looked at this often even if nobody tells of a change: a notice may be lost.
const LOOK: Duration = Duration::from_secs(5);
/// Below the checkout.
const STATE: [&str; 2] = [".claude", "state"];
const IDENTITIES: &str = "identities";
const HOOKS: &str = "hooks";
/// The folder of states itself.
const HERE: &str = "";
const MERGE_QUEUE: &str = "merge-queue.json";

/// What was written where, and how the file looked then.
type Written = Arc<Mutex<BTreeMap<PathBuf, (Value, Stamp)>>>;

/// Wakes the writer.
#[derive(Clone)]
pub(crate) struct Projections {
    nudge: SyncSender<()>,
    /// Notices who touches the files. With the last handle it goes, and the writer with it.
    _watch: Arc<FileWatch>,
}

impl Projections {
    /// Starts the writer. It ends when the last handle is dropped. `newest_event` is the file that says how far the store is.
    pub(crate) fn start(
        reader: Store,
        announced: Arc<Announced>,
        own: Option<OwnIdentity>,
        newest_event: Option<PathBuf>,
    ) -> std::io::Result<Self> {
        let (nudge, nudged) = sync_channel::<()>(1);
        sweep(&reader);
        let written = Written::default();
        let (touched, known) = (nudge.clone(), Arc::clone(&written));
        let watch = Arc::new(FileWatch::start(move |event| {
            if !is_our_own(&event, &known) {
                wake(&touched);
            }
        })?);
        let mut writer =
            Writer { reader, announced, own, newest_event, written, watch: Arc::downgrade(&watch) };
        std::thread::Builder::new().name("projections".to_owned()).spawn(move || {
            loop {
                match nudged.recv_timeout(LOOK) {
                    Ok(()) => std::thread::park_timeout(PAUSE),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                writer.write_all();
            }
        })?;
        Ok(Self { nudge, _watch: watch })
    }

    /// Has the files written again, because something changed.
    pub(crate) fn nudge(&self) {
        wake(&self.nudge);
    }
}

fn wake(nudge: &SyncSender<()>) {
    match nudge.try_send(()) {
        Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
    }
}

/// Whether a file is as we left it.
fn is_our_own(event: &FileEvent, written: &Written) -> bool {
    match event {
        FileEvent::Changed(path) => {
            let written = written.lock().unwrap_or_else(PoisonError::into_inner);
            written.get(path).is_some_and(|(_, stamp)| projection::stamp(path) == Some(*stamp))
        }
        FileEvent::Overflow | FileEvent::Gone(_) => false,
    }
}

struct Writer {
    reader: Store,
    announced: Arc<Announced>,
    own: Option<OwnIdentity>,
    newest_event: Option<PathBuf>,
    written: Written,
    watch: Weak<FileWatch>,
}

impl Writer {
    fn write_all(&mut self) {
        let own = self.own.as_mut().map(|own| (own.file(), value(own.renewed())));
        if let (Some(file), Ok(seq)) = (&self.newest_event, self.reader.last_seq()) {
            restored::remember_store(file, seq);
        }
        let (projects, agents) = match (self.reader.projects(), self.reader.agents(None, false)) {
            (Ok(projects), Ok(agents)) => (projects, agents),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(%error, "projections could not be read");
                return;
            }
        };
        for project in projects.iter().filter(|project| project.checkout.is_dir()) {
            match self.reader.queue_entries(&project.name, EntryScope::Unfinished) {
                // A queue that was never used has no file.
                Ok(waiting) if waiting.is_empty() && !path(&project.checkout, HERE, MERGE_QUEUE).exists() => {
                }
                Ok(waiting) => {
                    // A file that cannot be read now is told by whoever needs it.
                    let config = read_config(&project.config_path).unwrap_or_default();
                    let ageing = config.merge.ageing.duration();
                    let entries = queue_view::of(&queue_view::sorted(waiting, clock::now(), ageing));
                    self.write(&project.checkout, HERE, MERGE_QUEUE, value(entries));
                }
                Err(error) => tracing::warn!(project = %project.name, %error, "the queue could not be read"),
            }
        }
        let checkouts: BTreeMap<ProjectName, PathBuf> =
            projects.into_iter().map(|p| (p.name, p.checkout)).filter(|(_, c)| c.is_dir()).collect();
        for checkout in checkouts.values() {
            if let Some((file, identity)) = &own {
                self.write(checkout, IDENTITIES, file, identity.clone());
            }
        }
        for agent in agents {
            let Some(checkout) = checkouts.get(&agent.session.project) else { continue };
            let name = format!("{}.json", agent.session.identity);
            for (folder, value) in shown(&self.reader, &agent.session) {
                match folder {
                    IDENTITIES => {
                        self.announced.follow(&agent.session, || self.write(checkout, folder, &name, value))
                    }
                    _ => self.write(checkout, folder, &name, value),
                }
            }
        }
    }

    fn write(&self, checkout: &Path, folder: &str, name: &str, value: Value) {
        let path = path(checkout, folder, name);
        if self.is_there(&path, &value) {
            return;
        }
        match put(checkout, folder, name, &value) {
            Ok(stamp) => {
                self.watch(&path);
                let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
                written.insert(path, (value, stamp));
            }
            Err(error) => tracing::warn!(path = %path.display(), %error, "a projection was not written"),
        }
    }

    fn is_there(&self, path: &Path, value: &Value) -> bool {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written
            .get(path)
            .is_some_and(|(before, stamp)| before == value && projection::stamp(path) == Some(*stamp))
    }

    fn watch(&self, path: &Path) {
        let (Some(watch), Some(folder)) = (self.watch.upgrade(), path.parent()) else { return };
        watch.register(path);
        if let Err(error) = watch.watch_dir(folder) {
            tracing::warn!(folder = %folder.display(), %error, "looked at every few seconds instead of watched");
        }
    }
}

/// Sessions that were shown by whoever starts them, who knows of them first: the writer, which may have read the store a
/// moment earlier, must not put an older picture in the place of theirs.
#[derive(Default)]
pub(crate) struct Announced(Mutex<BTreeMap<String, String>>);

impl Announced {
    /// Shows a session that is about to start, before it does: whoever meets it finds its files.
    pub(crate) fn announce(&self, reader: &Store, row: &SessionRow) {
        let Ok(Some(project)) = reader.project(&row.project) else { return };
        if !project.checkout.is_dir() {
            return;
        }
        let mut announced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (folder, value) in shown(reader, row) {
            if let Err(error) = put(&project.checkout, folder, &format!("{}.json", row.identity), &value) {
                tracing::warn!(session = row.session, folder, %error, "a projection was not written");
            }
        }
        announced.insert(row.identity.clone(), row.session.clone());
    }

    /// Shows what the store knows of a session, unless that is less than is shown already.
    fn follow(&self, row: &SessionRow, write: impl FnOnce()) {
        let announced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ordered = row.host.is_empty() && row.pid.is_none() && row.ended_at.is_none();
        if !ordered && announced.get(&row.identity).is_none_or(|session| *session == row.session) {
            write();
        }
    }
}

/// Drafts that a killed daemon left.
fn sweep(reader: &Store) {
    for project in reader.projects().unwrap_or_default() {
        for folder in [IDENTITIES, HOOKS, HERE] {
            if let Err(error) = projection::sweep(&project.checkout, &folders(folder)) {
                tracing::warn!(project = %project.name, folder, %error, "drafts are left");
            }
        }
    }
}

/// What is shown of a session, by folder.
fn shown(reader: &Store, row: &SessionRow) -> Vec<(&'static str, Value)> {
    let mut shown = vec![(IDENTITIES, value(identity::of(row)))];
    if let Ok(Some(work)) = reader.work_state(&row.identity) {
        shown.push((HOOKS, value(WorkState::from(&work))));
    }
    shown
}

/// A view as it is compared and written. A path that is not UTF-8 is none that JSON could tell.
fn value(view: impl Serialize) -> Value {
    serde_json::to_value(view).unwrap_or_default()
}

/// The folders from the checkout down to where a projection lies.
fn folders(folder: &str) -> Vec<&str> {
    STATE.into_iter().chain(Some(folder).filter(|folder| *folder != HERE)).collect()
}

fn path(checkout: &Path, folder: &str, name: &str) -> PathBuf {
    let folders = folders(folder).into_iter();
    folders.chain([name]).fold(checkout.to_owned(), |path, part| path.join(part))
}

fn put(checkout: &Path, folder: &str, name: &str, value: &Value) -> std::io::Result<Stamp> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    projection::write(checkout, &folders(folder), name, &text)
}
