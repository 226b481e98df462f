//! The work of sessions, read from their terminals: for programs that cannot tell us themselves.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::agent::{Capabilities, Screen};
use pointsman_core::config::Runtime;
use pointsman_core::part::session::{self, Stage};
use pointsman_core::session::context::{self, ResponseTimes, Symptom};
use pointsman_core::session::work::{Action, Observation};
use pointsman_core::text;
use pointsman_core::time::Timestamp;
use pointsman_core::workflow::WorkflowId;

use crate::daemon::board::WorkflowMap;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::engine::Input;
use crate::daemon::inbound::{Inbox, ThreadReport};

/// How much of a transcript is read at one look; the rest comes with the next.
const READ_BYTES: u64 = 64 * 1024;

/// How each of our messages begins.
const MESSAGE_MARK: &str = "[pointsman m-";

/// A reader of the sessions' transcripts, which tells that they work.
pub(crate) struct Work {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    read: BTreeMap<String, Progress>,
}

#[derive(Default)]
struct Progress {
    offset: u64,
    warned: bool,
    slow: bool,
    pace: ResponseTimes,
}

impl Work {
    /// Nothing is read yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        Self { inbox, world, read: BTreeMap::new() }
    }

    /// Reads on in every live session's transcript.
    pub(crate) fn look(&mut self, picture: &WorkflowMap, now: Timestamp) {
        let mut read = BTreeMap::new();
        for (id, owner) in picture.iter().filter(|(_, owner)| owner.session().stage == Stage::Alive) {
            let (Some(session), Some(served)) = (owner.session_name(), self.world.project(id.project()))
            else {
                continue;
            };
            let generation = owner.session().generation;
            if served.config.runtime(owner.role()) == Runtime::Headless {
                // Its output says all of it, better than a screen.
                continue;
            }
            let pause = served.config.timing.phase_rescan.duration();
            let mut progress =
                self.read.remove(&session).unwrap_or_else(|| self.begin(id, generation, pause));
            let transcript = served.files_of(id).transcript;
            if let Some(fresh) = read_on(&transcript, &mut progress.offset) {
                let agent = served.config.agent_kind(owner.role()).capabilities();
                // Its hooks say what it does, better than its screen, which is full of other words.
                let observations: Vec<_> = if agent.hooks {
                    Vec::new()
                } else {
                    own_lines(&fresh).filter_map(Action::of_line).map(Observation::Did).collect()
                };
                if !observations.is_empty() {
                    let read_to = Some((cursor(id), format!("{generation} {}", progress.offset)));
                    self.inbox.report(ThreadReport::Observed { workflow: id.clone(), observations, read_to });
                }
                for symptom in progress.symptoms(&fresh, agent, now) {
                    let seen = session::Event::SymptomSeen { symptom };
                    self.inbox.tell(Input::of_session(id.clone(), generation, seen));
                }
            }
            read.insert(session, progress);
        }
        self.read = read;
    }

    /// Where an earlier daemon stopped reading this session's transcript.
    fn begin(&self, id: &WorkflowId, generation: u32, pause: Duration) -> Progress {
        let kept = self
            .world
            .read(|store| store.cursor(Some(id.project()), &cursor(id)))
            .ok()
            .flatten()
            .unwrap_or_default();
        let offset = match kept.split_once(' ') {
            Some((of, offset)) if of.parse() == Ok(generation) => offset.parse().unwrap_or(0),
            Some(_) | None => 0,
        };
        Progress { offset, pace: ResponseTimes::looked_at_every(pause), ..Progress::default() }
    }
}

/// The name under which the store keeps how far a transcript was read.
fn cursor(id: &WorkflowId) -> String {
    format!("transcript-{}", id.identity())
}

/// The lines without those that we typed ourselves: what we ask for is not what the agent does.
fn own_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.contains(MESSAGE_MARK))
}

impl Progress {
    /// The signs of a full context in fresh lines; each kind is told once. How quickly an agent with hooks answers is told by
    /// them; another one is asked by a message of ours and answers with its next line.
    fn symptoms(&mut self, fresh: &str, agent: Capabilities, now: Timestamp) -> Vec<Symptom> {
        let mut seen = Vec::new();
        let warns = match agent.screen {
            Screen::Claude => context::claude_warns,
            Screen::Plain => context::warns,
        };
        if !self.warned && own_lines(fresh).any(warns) {
            self.warned = true;
            seen.push(Symptom::Warned);
        }
        if agent.hooks {
            return seen;
        }
        for line in fresh.lines().filter(|line| !line.trim().is_empty()) {
            if line.contains(MESSAGE_MARK) {
                self.pace.asked(now);
            } else if self.pace.answered(now) && !self.slow {
                self.slow = true;
                seen.push(Symptom::Slow);
            }
        }
        seen
    }
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
    let end = match bytes.iter().rposition(|b| *b == b'\n') {
        Some(at) => at + 1,
        None if bytes.len() as u64 == READ_BYTES => bytes.len(),
        None => return None,
    };
    *offset += end as u64;
    Some(text::clean_block(&String::from_utf8_lossy(&bytes[..end]), bytes.len() * 2))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pointsman_core::agent::{Agent, Capabilities};
    use pointsman_core::session::context::{ResponseTimes, Symptom};
    use pointsman_core::time::Timestamp;

    use super::{Progress, READ_BYTES, read_on};

    #[test]
    fn half_a_line_is_read_with_its_other_half_and_an_endless_one_piece_by_piece() {
        let directory = tempfile::tempdir().unwrap();
        let (file, mut offset) = (directory.path().join("transcript"), 0);
        std::fs::write(&file, "context is al").unwrap();
        assert_eq!((read_on(&file, &mut offset), offset), (None, 0));
        std::fs::write(&file, "context is almost full\nand").unwrap();
        assert_eq!(read_on(&file, &mut offset).as_deref(), Some("context is almost full\n"));
        assert_eq!((read_on(&file, &mut offset), offset), (None, 23));
        let endless = "x".repeat(usize::try_from(READ_BYTES).unwrap() + 5);
        std::fs::write(&file, format!("context is almost full\n{endless}")).unwrap();
        assert_eq!(read_on(&file, &mut offset).map(|text| text.len() as u64), Some(READ_BYTES));
        assert_eq!((read_on(&file, &mut offset), offset), (None, 23 + READ_BYTES));
    }

    fn of(agent: Agent) -> Capabilities {
        agent.capabilities()
    }

    fn progress() -> Progress {
        Progress { pace: ResponseTimes::looked_at_every(Duration::from_secs(1)), ..Progress::default() }
    }

    #[test]
    fn r4_1_a_bare_program_that_answers_ever_more_slowly_is_a_symptom_once() {
        let (mut progress, mut now) = (progress(), Timestamp(1_000_000_000));
        let mut seen = Vec::new();
        for (n, seconds) in [2, 2, 3, 2, 2, 2, 9, 9, 9, 9].into_iter().enumerate() {
            seen.extend(progress.symptoms(&format!("[pointsman m-{n}] Answer\n\n"), of(Agent::Program), now));
            now = now.after(Duration::from_secs(seconds));
            let found = progress.symptoms("working on it\nmore\n", of(Agent::Program), now);
            assert_eq!(!found.is_empty(), n == 7, "after answer {n}");
            seen.extend(found);
            now = now.after(Duration::from_secs(60));
        }
        assert_eq!(seen, [Symptom::Slow]);
    }

    #[test]
    fn r4_1_a_warning_counts_once_and_never_one_of_ours() {
        let now = Timestamp(1);
        let ours = "[pointsman m-4] Checkpoint now: your context is 86 % full\n";
        assert_eq!(progress().symptoms(ours, of(Agent::Program), now), []);
        let mut bare = progress();
        assert_eq!(bare.symptoms("Context low\n", of(Agent::Program), now), [Symptom::Warned]);
        assert_eq!(bare.symptoms("Context low\n", of(Agent::Program), now), []);
        let mut claude = progress();
        assert_eq!(claude.symptoms("the context is low on detail\n", of(Agent::Claude), now), []);
        assert_eq!(claude.symptoms("      97% context used\n", of(Agent::Claude), now), [Symptom::Warned]);
    }
}
