//! The files of one session without a terminal. Each is written whole by one of the two sides and read by the other.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Error;
use crate::phase_file::{self, write_state_file};
use crate::process::Process;

/// Our own files are small; a prompt is a few lines.
const FILE_BYTES: u64 = 1 << 20;
/// More prompts than this never wait.
const PROMPTS: usize = 1000;

/// The daemon's instructions for the keeper, written when the session is opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// Names this run of the session.
    pub epoch: String,
    /// What the keeper is to run.
    pub spec: PathBuf,
    /// Where people read what happens.
    pub transcript: PathBuf,
}

/// A prompt for the agent, which begins a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    pub text: String,
    /// The session is over after the turn that takes it.
    pub last: bool,
}

#[derive(Serialize, Deserialize)]
struct ExitRecord {
    status: i32,
}

/// One session's directory.
#[derive(Clone, Debug)]
pub struct SessionDir {
    dir: PathBuf,
}

impl SessionDir {
    /// At this directory, which need not exist.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The path of the session's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of the keeper's own log.
    pub fn log(&self) -> PathBuf {
        self.dir.join("keeper.log")
    }

    /// Rung when a prompt has come.
    pub fn receiver(&self) -> PathBuf {
        self.dir.join("bell")
    }

    pub(super) fn prompts(&self) -> PathBuf {
        self.dir.join("prompts")
    }

    /// The instructions that the daemon left; none before the session was opened.
    pub fn opened(&self) -> Result<Option<SessionSpec>, Error> {
        self.read("session.json")
    }

    pub(super) fn open(&self, opened: &SessionSpec) -> Result<(), Error> {
        self.write("session.json", opened)
    }

    /// The keeper's process.
    pub fn keeper_process(&self) -> Result<Option<Process>, Error> {
        self.read("seat.json")
    }

    /// Whether its keeper lives.
    pub fn is_alive(&self) -> Result<bool, Error> {
        Ok(self.keeper_process()?.is_some_and(Process::is_alive))
    }

    /// The keeper's exit status, if it said so.
    pub fn left(&self) -> Result<Option<i32>, Error> {
        Ok(self.read::<ExitRecord>("exit.json")?.map(|left| left.status))
    }

    /// The process of the turn that runs, or was running when its keeper was killed.
    pub fn turn(&self) -> Result<Option<Process>, Error> {
        self.read("turn.json")
    }

    /// Everything goes.
    pub(super) fn remove(&self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.dir) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io("clear a session's directory")(error)),
        }
    }

    pub(super) fn has_prompt(&self, operation: &str) -> bool {
        self.prompt(operation).exists()
    }

    /// Puts a prompt there; false if one of this name was there before.
    pub(super) fn put(&self, operation: &str, prompt: &Prompt) -> Result<bool, Error> {
        let put = || -> io::Result<bool> {
            // Not in the directory of the prompts: half a prompt must never lie there.
            let mut file = tempfile::Builder::new().prefix(".prompt-").tempfile_in(&self.dir)?;
            file.write_all(&serde_json::to_vec(prompt)?)?;
            match file.persist_noclobber(self.prompt(operation)) {
                Ok(_) => {}
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
                Err(error) => return Err(error.error),
            }
            write_state_file(&self.receiver(), b"")?;
            Ok(true)
        };
        put().map_err(Error::io("put a prompt into a session's directory"))
    }

    pub(super) fn has_waiting(&self) -> Result<bool, Error> {
        let taken: BTreeSet<String> = self.read("taken.json")?.unwrap_or_default();
        Ok(!self.waiting(&taken)?.is_empty())
    }

    fn prompt(&self, operation: &str) -> PathBuf {
        self.prompts().join(format!("{operation}.json"))
    }

    fn read<T: DeserializeOwned>(&self, name: &'static str) -> Result<Option<T>, Error> {
        let read = || -> io::Result<Option<T>> {
            let bytes = phase_file::read_result_file(&self.dir.join(name), FILE_BYTES);
            let bytes = bytes.map_err(|refusal| io::Error::other(refusal.to_string()))?;
            Ok(bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
        };
        read().map_err(Error::io(name))
    }

    fn write(&self, name: &'static str, value: &impl Serialize) -> Result<(), Error> {
        let bytes = serde_json::to_vec(value).map_err(|error| Error::io(name)(error.into()))?;
        write_state_file(&self.dir.join(name), &bytes).map_err(Error::io(name))
    }
}

/// The keeper's side.
impl SessionDir {
    /// Takes the keeper's lock; none if another keeper has it. It is held as long as the value lives.
    pub fn sit(&self) -> Result<Option<KeeperLock>, Error> {
        let lock = self.lock_file("keeper.lock").map_err(Error::io("open the keeper's lock"))?;
        if lock.try_lock().is_err() {
            return Ok(None);
        }
        let me = Process::of(std::process::id()).ok_or_else(|| io::Error::other("no /proc"));
        let me = me.map_err(Error::io("find ourselves"))?;
        self.write("seat.json", &me)?;
        Ok(Some(KeeperLock { place: self.clone(), taken: BTreeSet::new(), _lock: lock }))
    }

    /// Whoever holds it has the conversation: the keeper for a turn, or a person who has taken it to a terminal.
    pub fn conversation(&self) -> Result<File, Error> {
        self.lock_file("conversation.lock").map_err(Error::io("open the conversation's lock"))
    }

    fn lock_file(&self, name: &str) -> io::Result<File> {
        File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(self.dir.join(name))
    }

    /// Prompts that were not taken yet, oldest first.
    fn waiting(&self, taken: &BTreeSet<String>) -> Result<Vec<String>, Error> {
        let entries = fs::read_dir(self.prompts()).map_err(Error::io("look for prompts"))?;
        let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned());
        let mut names: Vec<String> =
            entries.flatten().take(PROMPTS).filter_map(name).filter(|name| !taken.contains(name)).collect();
        names.sort_by_key(|name| order(name));
        Ok(names)
    }
}

/// A keeper in its place.
#[derive(Debug)]
pub struct KeeperLock {
    place: SessionDir,
    taken: BTreeSet<String>,
    _lock: File,
}

impl KeeperLock {
    /// Whether a prompt waits.
    pub fn is_called(&self) -> Result<bool, Error> {
        Ok(!self.place.waiting(&self.taken)?.is_empty())
    }

    /// Takes all prompts that wait, as one; none if none waits. Taken is written down first: if we die after it, the
    /// session is over and its successor is told what was not acknowledged.
    pub fn take(&mut self) -> Result<Option<Prompt>, Error> {
        let names = self.place.waiting(&self.taken)?;
        if names.is_empty() {
            return Ok(None);
        }
        let mut all = Prompt { text: String::new(), last: false };
        for name in names {
            let path = self.place.prompt(&name);
            let bytes = phase_file::read_result_file(&path, FILE_BYTES).ok().flatten().unwrap_or_default();
            // Somebody else's file is no prompt of ours, and is not looked at again.
            if let Ok(prompt) = serde_json::from_slice::<Prompt>(&bytes) {
                if !all.text.is_empty() {
                    all.text.push('\n');
                }
                all.text.push_str(&prompt.text);
                all.last |= prompt.last;
            }
            self.taken.insert(name);
        }
        self.place.write("taken.json", &self.taken)?;
        Ok((!all.text.is_empty()).then_some(all))
    }

    /// A turn runs as this process.
    pub fn turn_begun(&self, pid: u32, start_time: u64) -> Result<(), Error> {
        self.place.write("turn.json", &Process { pid, start_time })
    }

    /// It is over.
    pub fn turn_over(&self) -> Result<(), Error> {
        match fs::remove_file(self.place.dir.join("turn.json")) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io("take a turn off the record")(error)),
        }
    }

    /// The keeper leaves with this exit status.
    pub fn leave(self, status: i32) -> Result<(), Error> {
        self.place.write("exit.json", &ExitRecord { status })
    }
}

/// The first prompt of a session comes first, messages in the order of their ids.
fn order(name: &str) -> (u64, String) {
    let id = name.strip_prefix("m-").and_then(|rest| rest.split('-').next()?.parse::<u64>().ok());
    (id.map_or(0, |id| id.saturating_add(1)), name.to_owned())
}
