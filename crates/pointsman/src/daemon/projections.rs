//! `.claude/state/` in the user's checkout: identities and work states as files, for people and
//! scripts. The store is the truth; a file that somebody touched is written anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use pointsman_adapters::phase_file::Stamp;
use pointsman_adapters::projection;
use pointsman_core::ids::ProjectName;
use pointsman_store::{EntryScope, SessionRow, Store};
use serde_json::Value;

use super::clock;
use super::projects::read_config;
use crate::{identity, queue_view};

/// Changes that come close together are written together.
const PAUSE: Duration = Duration::from_millis(100);
/// Without any change the files are still looked at this often: somebody may have touched them.
const LOOK: Duration = Duration::from_secs(5);
/// Below the checkout.
const STATE: [&str; 2] = [".claude", "state"];
const IDENTITIES: &str = "identities";
const HOOKS: &str = "hooks";
/// The folder of states itself.
const HERE: &str = "";
const MERGE_QUEUE: &str = "merge-queue.json";

/// Wakes the writer.
#[derive(Clone)]
pub(crate) struct Projections {
    nudge: SyncSender<()>,
}

impl Projections {
    /// Starts the writer. It ends when the last handle is dropped.
    pub(crate) fn start(reader: Store) -> std::io::Result<Self> {
        let (nudge, nudged) = sync_channel::<()>(1);
        sweep(&reader);
        let mut writer = Writer { reader, written: BTreeMap::new() };
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
        Ok(Self { nudge })
    }

    /// Something changed.
    pub(crate) fn nudge(&self) {
        match self.nudge.try_send(()) {
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }
}

struct Writer {
    reader: Store,
    /// What was written where, and how the file looked then.
    written: BTreeMap<PathBuf, (Value, Stamp)>,
}

impl Writer {
    fn write_all(&mut self) {
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
                    let value =
                        queue_view::to_json(&queue_view::sorted(waiting, clock::now(), ageing)).into();
                    self.write(&project.checkout, HERE, MERGE_QUEUE, value);
                }
                Err(error) => tracing::warn!(project = %project.name, %error, "the queue could not be read"),
            }
        }
        let checkouts: BTreeMap<ProjectName, PathBuf> =
            projects.into_iter().map(|p| (p.name, p.checkout)).filter(|(_, c)| c.is_dir()).collect();
        for agent in agents {
            let Some(checkout) = checkouts.get(&agent.session.project) else { continue };
            let name = format!("{}.json", agent.session.identity);
            for (folder, value) in shown(&self.reader, &agent.session) {
                self.write(checkout, folder, &name, value);
            }
        }
    }

    fn write(&mut self, checkout: &Path, folder: &str, name: &str, value: Value) {
        let path = path(checkout, folder, name);
        if let Some((before, stamp)) = self.written.get(&path)
            && *before == value
            && projection::stamp(&path) == Some(*stamp)
        {
            return;
        }
        match put(checkout, folder, name, &value) {
            Ok(stamp) => {
                self.written.insert(path, (value, stamp));
            }
            Err(error) => tracing::warn!(path = %path.display(), %error, "a projection was not written"),
        }
    }
}

/// Shows a session that is about to start, before it does: whoever meets it finds its files.
pub(crate) fn announce(reader: &Store, row: &SessionRow) {
    let Ok(Some(project)) = reader.project(&row.project) else { return };
    if !project.checkout.is_dir() {
        return;
    }
    for (folder, value) in shown(reader, row) {
        if let Err(error) = put(&project.checkout, folder, &format!("{}.json", row.identity), &value) {
            tracing::warn!(session = row.session, folder, %error, "a projection was not written");
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
    let mut shown = vec![(IDENTITIES, identity::fields(row))];
    if let Ok(Some(work)) = reader.work_state(&row.identity) {
        shown.push(("hooks", identity::work(&work)));
    }
    shown
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
