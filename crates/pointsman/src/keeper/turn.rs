//! One turn: the agent as one process, its prompt on standard input, its output a line of JSON at a time.

use std::time::{Duration, Instant};

use pointsman_adapters::headless::session_dir::KeeperLock;
use pointsman_adapters::phase_file;
use pointsman_adapters::process::{Run, Sink, reaper};
use pointsman_core::claude::launch::{Conversation, taken_up};
use pointsman_core::claude::stream::{Ended, Sums, Turn, TurnEvent};
use pointsman_core::sandbox::Purpose;
use pointsman_core::text;
use pointsman_core::words;

use super::{Keeper, Room, SHOWN_BYTES};
use crate::daemon::Launch;

/// A longer line is passed over: nothing that we act on is so long.
const LINE_BYTES: usize = 4 << 20;
/// An agent that prints more than this in one turn has lost its way.
const OUTPUT_BYTES: u64 = 1 << 30;
/// For the process to go after its last word.
const RESULT_GRACE: Duration = Duration::from_secs(30);
/// For the kernel to end what a turn left behind.
const LEFT_BEHIND_LIMIT: Duration = Duration::from_secs(10);
/// Of what it said on standard error.
const STDERR_BYTES: usize = 16 << 10;
const STDERR_LINES: usize = 10;
/// The file of sums is a few numbers.
const SUMS_BYTES: u64 = 1024;

impl Keeper {
    /// Runs a turn to its end, and tells everything about it.
    pub(super) fn turn(&mut self, sitting: &KeeperLock, prompt: &str) -> anyhow::Result<Ended> {
        self.turns += 1;
        let number = self.turns;
        self.room = Room(Some(SHOWN_BYTES));
        self.write(&words::turn::begins(number, prompt));
        let spec = self.turn_spec.clone();
        let description = serde_json::to_vec_pretty(&self.launch_of_turn())?;
        phase_file::write_state_file(&spec, &description)?;
        let followed = Run::new(&self.program)
            .arg("launch")
            .arg(&spec)
            .stdin(format!("{prompt}\n"))
            .grace(self.keep.grace)
            .output_cap(STDERR_BYTES)
            .cancel(self.cancel.clone())
            .start_following()?;
        sitting.turn_begun(followed.pid(), followed.start_time())?;
        let limit = self.keep.turn_limit;
        let mut lines = Lines::new(self, prompt);
        let finished = followed.wait(limit, &mut lines);
        lines.keeper.end_left_behind();
        let finished = finished?;
        let (turn, trouble) = lines.finish();
        let exit = finished.end.code();
        let ended = match (turn.end(exit, self.sums(), self.keep.talks), trouble) {
            // A result counts however the process went afterwards.
            (Ended::Died { .. }, Some(why)) => Ended::Died { why },
            (Ended::Died { why }, None) if exit.is_none() => {
                Ended::Died { why: format!("{why}: {}", finished.end) }
            }
            (ended, _) => ended,
        };
        let said = String::from_utf8_lossy(&finished.stderr);
        if !said.trim().is_empty() {
            self.show(&format!(
                "{}\n",
                text::clean_block(text::tail_lines(&said, STDERR_LINES), STDERR_BYTES)
            ));
        }
        self.write(&words::turn::ended(number, &ended));
        if let (Ended::Over(measured) | Ended::Failed { measured, .. }, Some(conversation)) =
            (&ended, &mut self.keep.conversation)
        {
            let (Conversation::New(id) | Conversation::Resumed(id)) = &*conversation;
            *conversation = Conversation::Resumed(id.clone());
            phase_file::write_state_file(&self.keep.sums, &serde_json::to_vec(&measured.sums)?)?;
        }
        self.telling.ended(prompt, &ended, turn.has_begun());
        sitting.turn_over()?;
        Ok(ended)
    }

    /// Ends what the turn left behind, before the next one or a successor starts in the same tree.
    fn end_left_behind(&self) {
        reaper::end_descendants();
        self.launch.members.end(LEFT_BEHIND_LIMIT);
    }

    fn launch_of_turn(&mut self) -> Launch {
        let mut turn = self.launch.clone();
        self.launch.commit_first = None;
        if let Some(sandbox) = &mut turn.sandbox {
            for mount in sandbox.plan.mounts.iter_mut().filter(|mount| mount.why == Purpose::Start) {
                mount.path.clone_from(&self.turn_spec);
            }
        }
        if let Some(conversation) = &self.keep.conversation {
            turn.argv.extend(taken_up(&self.launch.argv, conversation));
        }
        turn.env.insert("POINTSMAN_TURN".to_owned(), self.turns.to_string());
        turn.env.entry("TERM".to_owned()).or_insert_with(|| "dumb".to_owned());
        turn.parent = Some(std::process::id());
        turn.keep = None;
        turn
    }

    /// What was told of the conversation before this turn, by this session or by the one that it was taken over from.
    fn sums(&self) -> Sums {
        let read = |path: &std::path::PathBuf| {
            let bytes = phase_file::read_result_file(path, SUMS_BYTES).ok().flatten()?;
            serde_json::from_slice(&bytes).ok()
        };
        read(&self.keep.sums).or_else(|| self.keep.sums_before.as_ref().and_then(read)).unwrap_or_default()
    }
}

/// Cuts output into lines and takes them in, whatever their length.
struct Lines<'k> {
    keeper: &'k mut Keeper,
    prompt: &'k str,
    turn: Turn,
    line: Vec<u8>,
    too_long: bool,
    bytes: u64,
    ends_by: Option<Instant>,
    trouble: Option<String>,
}

impl<'k> Lines<'k> {
    fn new(keeper: &'k mut Keeper, prompt: &'k str) -> Self {
        Self {
            keeper,
            prompt,
            turn: Turn::default(),
            line: Vec::new(),
            too_long: false,
            bytes: 0,
            ends_by: None,
            trouble: None,
        }
    }

    /// The turn, and why it was ended if its output was the reason.
    fn finish(mut self) -> (Turn, Option<String>) {
        self.end_line();
        (self.turn, self.trouble)
    }

    fn add(&mut self, part: &[u8]) {
        if self.too_long || self.line.len() + part.len() > LINE_BYTES {
            self.too_long = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.too_long) {
            self.keeper.show(&words::turn::note("a line of output was too long and was passed over"));
            return;
        }
        let line = std::mem::take(&mut self.line);
        for said in self.turn.take(&String::from_utf8_lossy(&line)) {
            if let Some(text) = words::turn::said(&said) {
                self.keeper.show(&text);
            }
            if said == TurnEvent::Malformed {
                self.keeper.show(&format!("  {}\n", text::clean_line(&String::from_utf8_lossy(&line), 200)));
            }
            self.keeper.telling.said(self.prompt, &said);
        }
        self.keeper.telling.used(self.turn.spent_so_far());
        if self.turn.has_result() && self.ends_by.is_none() {
            self.ends_by = Some(Instant::now() + RESULT_GRACE);
        }
    }
}

impl Sink for Lines<'_> {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > OUTPUT_BYTES {
            self.trouble = Some("it printed without end".to_owned());
            self.ends_by = Some(Instant::now());
            return;
        }
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.add(part);
            if parts.peek().is_some() {
                self.end_line();
            }
        }
    }

    fn ends_by(&self) -> Option<Instant> {
        self.ends_by
    }
}
