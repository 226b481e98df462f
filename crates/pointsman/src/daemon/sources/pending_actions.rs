//! Files in the pending directories of the vaults: actions that were put there instead of being submitted by a command.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pointsman_adapters::phase_file::{read_result_file, remove_own_file};
use pointsman_core::vault::MAX_BYTES;
use pointsman_core::words;

use crate::control::protocol::{FailureKind, Reply, Request, VaultCommand};
use crate::daemon::crash::crash_point;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::inbound::{Inbound, Inbox};
use crate::daemon::served::Served;

/// The loop writes in milliseconds; this is for a disk that hangs.
const ANSWER_LIMIT: Duration = Duration::from_secs(50);
/// Files taken from a pending directory in one look.
const FILES: usize = 100;

/// Tells two states of a file apart.
type Stamp = (u64, i64, i64, u64);

/// Looks into all pending directories.
pub(crate) struct PendingActions {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    /// Files that could not be used at the last look: perhaps they are just being written.
    unusable: BTreeMap<PathBuf, Stamp>,
}

impl PendingActions {
    /// Nothing was seen yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        Self { inbox, world, unusable: BTreeMap::new() }
    }

    /// Takes what is there.
    pub(crate) fn look(&mut self) {
        let projects = self.world.projects.read().unwrap_or_else(PoisonError::into_inner).clone();
        for served in projects.values() {
            self.take_files(served);
        }
    }

    /// Takes actions that were put into the pending directory. Each is taken as by `vault submit`.
    fn take_files(&mut self, served: &Served) {
        let entries = fs::read_dir(served.paths.vault_pending()).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| is_action(path)).collect();
        self.unusable.retain(|path, _| !path.starts_with(served.paths.root()) || paths.contains(path));
        paths.sort();
        for path in paths.into_iter().take(FILES) {
            match self.take_file(served, &path) {
                Ok(()) => {}
                Err(Unusable::Later(why)) => tracing::warn!(file = %path.display(), why, "not taken yet"),
                Err(Unusable::Never(why)) => self.set_aside(served, &path, &why),
            }
        }
    }

    fn take_file(&self, served: &Served, path: &Path) -> Result<(), Unusable> {
        let bytes = match read_result_file(path, MAX_BYTES as u64) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(()),
            Err(refusal) => return Err(Unusable::Never(refusal.to_string())),
        };
        let text = String::from_utf8(bytes)
            .map_err(|_| Unusable::Never(words::daemon::vault::not_utf8().to_owned()))?;
        let (reply, answer) = sync_channel(1);
        let command = VaultCommand::Submit { text, from: None };
        let request = Request::Vault { project: served.config.name.clone(), command };
        self.inbox.send(Inbound::Ask { request, reply });
        match answer.recv_timeout(ANSWER_LIMIT) {
            Ok(Reply::Done { .. }) => {}
            Ok(Reply::Failed { kind: FailureKind::Refused, message }) => {
                return Err(Unusable::Never(message));
            }
            Ok(Reply::Failed { message, .. }) => return Err(Unusable::Later(message)),
            Err(_) => return Err(Unusable::Later(words::daemon::process::busy_or_stopping().to_owned())),
        }
        crash_point("vault-file-taken");
        remove_own_file(path).map_err(|refusal| Unusable::Later(refusal.to_string()))
    }

    /// A file that stays unusable for two looks is moved out of the way, with the reason beside it.
    fn set_aside(&mut self, served: &Served, path: &Path, why: &str) {
        let Ok(meta) = fs::symlink_metadata(path) else { return };
        let stamp = (meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.size());
        if self.unusable.get(path) != Some(&stamp) {
            self.unusable.insert(path.to_owned(), stamp);
            return;
        }
        self.unusable.remove(path);
        let Some(name) = path.file_name() else { return };
        let aside = served.paths.vault_rejected();
        let moved = fs::create_dir_all(&aside)
            .and_then(|()| fs::write(aside.join(name).with_extension("reason"), format!("{why}\n")))
            .and_then(|()| fs::rename(path, aside.join(name)));
        match moved {
            Ok(()) => tracing::warn!(file = %path.display(), why, "a vault action was refused"),
            Err(error) => tracing::error!(file = %path.display(), %error, "cannot be moved aside"),
        }
    }
}

/// Why a file was not taken.
enum Unusable {
    Later(String),
    /// As it is it never will be.
    Never(String),
}

fn is_action(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == "json")
}
