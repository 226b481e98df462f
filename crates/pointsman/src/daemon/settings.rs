//! The files that settings come from: every `pointsman.toml`, the `.env` beside the state, and the files with tokens. When
//! one changes, the projects are read again.
//!
//! Whether a changed file is taken over is decided in `projects`; what came of it is told by the dispatcher.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use pointsman_core::config::Config;

use super::effects::EffectPerformer;
use super::inbound::{Inbound, Inbox};
use crate::control::protocol::Request;
use crate::paths::Paths;

/// The marks that tell two versions of a file apart without reading it: a token is read by whoever needs it, and by nobody
/// else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: u64,
    length: u64,
    modified: (i64, i64),
}

/// The stamp of a file; none if it is not there.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let meta = std::fs::metadata(path).ok()?;
    Some(Stamp { file: meta.ino(), length: meta.len(), modified: (meta.mtime(), meta.mtime_nsec()) })
}

/// The stamps of everything that holds secrets of a project.
pub(crate) fn secrets(paths: &Paths, config: &Config) -> Vec<Option<Stamp>> {
    let dotenv = paths.dotenv();
    config.secret_files().into_iter().chain([dotenv.as_path()]).map(stamp).collect()
}

/// Looks whether a file has changed.
pub(crate) struct SettingsWatch {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    known: BTreeMap<PathBuf, Option<Stamp>>,
}

impl SettingsWatch {
    /// Knows the files as they are now, so it has to be made before they are first read.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        let mut watch = Self { inbox, world, known: BTreeMap::new() };
        watch.changed();
        watch
    }

    /// Has the projects read again if a file has changed since the last look.
    pub(crate) fn look(&mut self) {
        if self.changed() {
            // Nobody waits for the answer: what comes of it is in the log and in `status`.
            let (reply, _) = sync_channel(1);
            self.inbox.send(Inbound::Ask { request: Request::ReloadProjects, reply });
        }
    }

    /// Whether a file that was known before is another one now. One that is new to us was read just now, by whoever made
    /// us follow it.
    fn changed(&mut self) -> bool {
        let mut files = vec![self.world.paths.dotenv()];
        let rows = self.world.read(pointsman_store::Store::projects).unwrap_or_default();
        files.extend(rows.into_iter().map(|row| row.config_path));
        let projects = self.world.projects.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        for served in projects.values() {
            files.extend(served.config.secret_files().into_iter().map(Path::to_owned));
        }
        let now: BTreeMap<PathBuf, Option<Stamp>> =
            files.into_iter().map(|file| (file.clone(), stamp(&file))).collect();
        let changed = now.iter().any(|(file, at)| self.known.get(file).is_some_and(|known| known != at));
        self.known = now;
        changed
    }
}
