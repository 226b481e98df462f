//! An index of ours that is kept from one look at a working tree to the next, so that git only reads what changed.
//!
//! It is a cache: missing, damaged or from before a reboot (it is never synced) it is made anew. Whoever uses it takes
//! it away and brings it back whole, so two at the same time cannot disturb each other, and a killed git leaves no lock
//! in anybody's way.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pointsman_core::ids::Sha;
use tempfile::TempDir;

use super::{Error, files};
use crate::machine::boot_id;

/// The most deleted files that an index is kept with; each is looked for again.
const DELETED_LIMIT: usize = 1000;
/// The most that is read of what is known about an index.
const KNOWN_CAP: u64 = 8 << 20;
/// What a killed daemon left is removed after this long, when nothing can be using it any more.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);
/// First line of [`KNOWN`].
const FORMAT: &str = "pointsman warm index 1";
const KNOWN: &str = "known";
const CLAIMED: &str = "take-";

/// Where a warm index is kept: a directory that only the daemon writes, and a name in it.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) dir: PathBuf,
    pub(super) name: String,
}

/// What an index was when it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexState {
    /// The commit it started from.
    pub(super) head: Option<Sha>,
    pub(super) tree: Sha,
    /// A checkpoint has this tree on top of this commit.
    pub(super) checkpointed: bool,
    /// Files of the commit that were gone. If one comes back and is ignored, only the commit tells that it belongs.
    pub(super) deleted: Vec<Vec<u8>>,
}

/// An index that was taken out of its slot.
pub(super) struct WarmIndex {
    home: PathBuf,
    claimed: TempDir,
    known: Option<IndexState>,
}

impl WarmIndex {
    /// Takes the index out of its slot; without a usable one, a place to make it.
    pub(super) fn claim(slot: &Slot) -> Result<Self, Error> {
        files::create_dir_all(&slot.dir)?;
        let claimed = tempfile::Builder::new()
            .prefix(CLAIMED)
            .tempdir_in(&slot.dir)
            .map_err(files::error("make a directory in", &slot.dir))?;
        let home = slot.dir.join(&slot.name);
        let mut index = Self { home, claimed, known: None };
        let dir = index.dir();
        match fs::rename(&index.home, &dir) {
            Ok(()) => index.known = read_known(&dir),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(files::error("take", &index.home)(e)),
        }
        if index.known.is_none() {
            index.clear()?;
        }
        Ok(index)
    }

    /// The index file; there is one if something is known about it.
    pub(super) fn file(&self) -> PathBuf {
        self.dir().join("index")
    }

    pub(super) fn known(&self) -> Option<&IndexState> {
        self.known.as_ref()
    }

    /// Forgets what was there.
    fn clear(&mut self) -> Result<(), Error> {
        self.known = None;
        let dir = self.dir();
        match fs::remove_dir_all(&dir) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(files::error("remove", &dir)(e)),
            Ok(()) | Err(_) => {}
        }
        files::create_dir_all(&dir)
    }

    /// Brings it back for the next time. That it does not work out costs time, nothing else.
    pub(super) fn keep(self, known: &IndexState) {
        let Some(boot) = boot_id() else { return };
        if known.deleted.len() > DELETED_LIMIT {
            return;
        }
        let dir = self.dir();
        let kept = fs::write(dir.join(KNOWN), known.to_bytes(&boot)).map_err(files::error("write", &dir));
        if let Err(error) = kept.and_then(|()| files::move_into_place(&dir, &self.home)) {
            tracing::debug!(%error, "a warm index is not kept");
        }
    }

    fn dir(&self) -> PathBuf {
        self.claimed.path().join("warm")
    }
}

/// Removes what killed daemons left in a directory of slots.
pub(super) fn sweep(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let old = entry.metadata().and_then(|m| m.modified()).ok().and_then(|at| at.elapsed().ok());
        if entry.file_name().as_encoded_bytes().starts_with(CLAIMED.as_bytes())
            && old.is_some_and(|age| age > LEFTOVER_AGE)
        {
            // The next sweep tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn read_known(dir: &Path) -> Option<IndexState> {
    let bytes = files::read_untrusted(&dir.join(KNOWN), KNOWN_CAP).ok()??;
    let known = IndexState::from_bytes(&bytes, &boot_id()?)?;
    dir.join("index").is_file().then_some(known)
}

impl IndexState {
    fn to_bytes(&self, boot: &str) -> Vec<u8> {
        let head = self.head.as_ref().map_or("-", Sha::as_str);
        let saved = if self.checkpointed { "checkpointed" } else { "-" };
        let header = format!("{FORMAT}\n{boot}\n{head}\n{}\n{saved}\n", self.tree);
        let mut bytes = header.into_bytes();
        for path in &self.deleted {
            bytes.extend(path);
            bytes.push(0);
        }
        bytes
    }

    fn from_bytes(bytes: &[u8], boot: &str) -> Option<Self> {
        let mut parts = bytes.splitn(6, |b| *b == b'\n');
        let mut line = || std::str::from_utf8(parts.next()?).ok();
        if line()? != FORMAT || line()? != boot {
            return None;
        }
        let head = match line()? {
            "-" => None,
            sha => Some(Sha::new(sha)?),
        };
        let tree = Sha::new(line()?)?;
        let checkpointed = line()? == "checkpointed";
        let deleted =
            parts.next()?.split(|b| *b == 0).filter(|p| !p.is_empty()).map(<[u8]>::to_vec).collect();
        Some(Self { head, tree, checkpointed, deleted })
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::Sha;

    use super::{IndexState, Slot, WarmIndex};
    use crate::machine::boot_id;

    fn known() -> IndexState {
        let sha = |digit: &str| Sha::new(&digit.repeat(40)).unwrap();
        IndexState {
            head: Some(sha("1")),
            tree: sha("2"),
            checkpointed: true,
            deleted: vec![b"a\nb".to_vec()],
        }
    }

    #[test]
    fn what_is_known_reads_back_in_the_same_run_of_the_machine_only() {
        for known in [known(), IndexState { head: None, checkpointed: false, deleted: Vec::new(), ..known() }]
        {
            let bytes = known.to_bytes("boot");
            assert_eq!(IndexState::from_bytes(&bytes, "boot"), Some(known));
            assert_eq!(IndexState::from_bytes(&bytes, "another boot"), None);
            assert_eq!(IndexState::from_bytes(&bytes[..40], "boot"), None);
        }
    }

    #[test]
    fn an_index_is_used_by_one_at_a_time_and_lost_without_harm() {
        assert!(boot_id().is_some());
        let dir = tempfile::tempdir().unwrap();
        let slot = Slot { dir: dir.path().join("indexes"), name: "7".to_owned() };
        let first = WarmIndex::claim(&slot).unwrap();
        assert_eq!(first.known(), None);
        std::fs::write(first.file(), "index").unwrap();
        first.keep(&known());

        let second = WarmIndex::claim(&slot).unwrap();
        assert_eq!(second.known(), Some(&known()));
        let third = WarmIndex::claim(&slot).unwrap();
        assert_eq!(third.known(), None, "the second has it");
        std::fs::write(third.file(), "newer").unwrap();
        third.keep(&known());
        second.keep(&known());
        let fourth = WarmIndex::claim(&slot).unwrap();
        assert_eq!(std::fs::read(fourth.file()).unwrap(), b"newer", "whoever is first stays");
        drop(fourth);
        assert_eq!(WarmIndex::claim(&slot).unwrap().known(), None, "taken and not brought back");
    }
}
