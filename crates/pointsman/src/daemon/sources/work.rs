//! What sessions are doing, read from their terminals: for programs that cannot tell us themselves.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use pointsman_core::claude::launch::is_claude;
use pointsman_core::config::Runtime;
use pointsman_core::ids::TaskKey;
use pointsman_core::session::context::{self, Marks, Symptom};
use pointsman_core::session::work::{Action, Observation};
use pointsman_core::task::{Event, Policy, Session};
use pointsman_core::text;

use crate::daemon::board::Picture;
use crate::daemon::engine::Input;
use crate::daemon::inbound::{Inbound, Inbox};
use crate::daemon::world::RealWorld;

/// How much of a transcript is read at one look; the rest comes with the next.
const READ_BYTES: u64 = 64 * 1024;

/// How each of our messages begins.
const MESSAGE_MARK: &str = "[pointsman m-";

/// How far each session's transcript was read, and what it showed.
pub(crate) struct Work {
    inbox: Inbox,
    world: Arc<RealWorld>,
    read: BTreeMap<String, Progress>,
}

#[derive(Default)]
struct Progress {
    offset: u64,
    symptoms: Vec<Symptom>,
}

impl Work {
    /// Nothing is read yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<RealWorld>) -> Self {
        Self { inbox, world, read: BTreeMap::new() }
    }

    /// Reads on in every live session's transcript.
    pub(crate) fn look(&mut self, picture: &Picture) {
        let mut read = BTreeMap::new();
        for task in picture.values().filter(|t| t.session == Session::Alive) {
            let (Some(session), Some(served)) = (task.session_id(), self.world.project(&task.key.project))
            else {
                continue;
            };
            // Its hooks, its status line or its output say it better than its screen, which is full of other words.
            let headless = served.config.runtime("dev") == Runtime::Headless;
            if headless || is_claude(&self.world.agent_command(&served)) {
                continue;
            }
            let mut progress =
                self.read.remove(&session).unwrap_or_else(|| self.begin(&task.key, task.generation));
            let marks = Policy::new(&served.config).marks;
            let transcript = served.desk(&task.key).transcript;
            if let Some(fresh) = read_on(&transcript, &mut progress.offset) {
                let fresh = own_lines(&fresh);
                let observations: Vec<_> =
                    fresh.iter().filter_map(|l| Action::of_line(l)).map(Observation::Did).collect();
                if !observations.is_empty() {
                    let read_to =
                        Some((cursor(&task.key), format!("{} {}", task.generation, progress.offset)));
                    self.inbox.send(Inbound::Observed { key: task.key.clone(), observations, read_to });
                }
                if let Some(event) = warn(&fresh, &mut progress, &marks, task.generation) {
                    self.inbox.tell(Input::new(task.key.clone(), event));
                }
            }
            read.insert(session, progress);
        }
        self.read = read;
    }

    /// Where an earlier daemon stopped reading this session's transcript.
    fn begin(&self, key: &TaskKey, generation: u32) -> Progress {
        let reader = self.world.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = reader.cursor(Some(&key.project), &cursor(key)).ok().flatten().unwrap_or_default();
        let offset = match kept.split_once(' ') {
            Some((of, offset)) if of.parse() == Ok(generation) => offset.parse().unwrap_or(0),
            Some(_) | None => 0,
        };
        Progress { offset, symptoms: Vec::new() }
    }
}

/// Under which name it is remembered how far a task's transcript was read.
fn cursor(key: &TaskKey) -> String {
    format!("transcript-{}", key.identity())
}

/// The lines without those that we typed ourselves: what we ask for is not what the agent does.
fn own_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.contains(MESSAGE_MARK)).collect()
}

/// A warning on the screen is a symptom of a full context; each kind counts once.
fn warn(fresh: &[&str], progress: &mut Progress, marks: &Marks, generation: u32) -> Option<Event> {
    if progress.symptoms.contains(&Symptom::Warned) || !fresh.iter().any(|l| context::warns(l)) {
        return None;
    }
    progress.symptoms.push(Symptom::Warned);
    let gauge = context::from_symptoms(&progress.symptoms, marks)?;
    Some(Event::ContextMeasured { generation, gauge })
}

/// Reads whole lines from where the last look ended. A file that became shorter is a new one.
fn read_on(path: &Path, offset: &mut u64) -> Option<String> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut file: File =
        std::fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let length = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    if length < *offset {
        *offset = 0;
    }
    if length == *offset {
        return None;
    }
    file.seek(SeekFrom::Start(*offset)).ok()?;
    let mut bytes = Vec::new();
    file.take(READ_BYTES).read_to_end(&mut bytes).ok()?;
    // Half a line is read with its other half; a line longer than the whole read is taken as it is.
    let end = bytes.iter().rposition(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1);
    *offset += end as u64;
    Some(text::clean_block(&String::from_utf8_lossy(&bytes[..end]), bytes.len() * 2))
}
