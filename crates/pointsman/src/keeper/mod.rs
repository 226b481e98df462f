//! The keeper is the process of a session without a terminal. It lives as long as the session, runs the agent once
//! per turn, and reports to the daemon as a hook would. It works without a daemon: reports go to the session's spool,
//! and prompts wait until the current turn ends.
//!
//! A turn that dies ends the keeper, so the daemon sees a dead session like any other. `turn` runs one turn, and
//! `reporter` turns its output into reports. `pointsman_adapters::headless` knows the files, and the core knows what
//! the output means.

mod reporter;
mod turn;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, mpsc::SyncSender};
use std::time::Duration;

use anyhow::Context;
use pointsman_adapters::headless::session_dir::{KeeperLock, SessionDir};
use pointsman_adapters::phase_file;
use pointsman_adapters::process::{self, Cancel};
use pointsman_adapters::watch::files::FileWatch;
use pointsman_core::claude::launch::Conversation;
use pointsman_core::claude::stream::{Ended, ResultPromise};
use pointsman_core::words;
use serde::{Deserialize, Serialize};

use crate::daemon::Launch;
use reporter::TurnReporter;

/// A call to wake up may be missed.
const SLOW_LOOK: Duration = Duration::from_secs(5);
/// Of one turn in the transcript.
const SHOWN_BYTES: usize = 4 << 20;
/// While a person has the conversation; nobody says when it is free again.
const TAKEN_LOOK: Duration = Duration::from_millis(250);

/// The settings of a session without a terminal, beside its program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Keep {
    pub session: String,
    /// Whether anybody wants to hear of its turns.
    pub told: bool,
    /// The conversation, if the program has such a thing.
    pub conversation: Option<Conversation>,
    /// Whether the program ends its turns with a result.
    pub talks: ResultPromise,
    pub turn_limit: Duration,
    /// Between asking a turn to end and ending it.
    pub grace: Duration,
    /// Where sums over the conversation are kept.
    pub sums: PathBuf,
    /// Where they were when another session had it.
    pub sums_before: Option<PathBuf>,
}

/// The hidden subcommand `pointsman keep`; answers its exit code.
pub(crate) fn run(dir: &Path) -> anyhow::Result<i32> {
    // Before the first thread and the first program: all that a keeper starts is the agent's.
    process::lineage::mark_this_thread().context("the keeper cannot be marked as an agent's")?;
    // Away from the daemon's terminal, so that neither its end is ours nor an agent finds one to ask at.
    rustix::process::setsid().context("cannot leave the daemon's session")?;
    // What a turn leaves behind is found below us.
    process::reaper::adopt_orphans().context("the keeper cannot adopt orphans")?;
    let place = SessionDir::at(dir);
    let opened = place.opened()?.context("nobody opened this place")?;
    let cancel = Cancel::new()?;
    let (wake, woken) = sync_channel(1);
    // Before the lock is taken: from then on we may be asked to go, and have to say that we did.
    let stopped = stop_on_signals(&cancel, &wake)?;
    // Another keeper is here already.
    let Some(sitting) = place.sit()? else { return Ok(0) };
    let spec =
        std::fs::read(&opened.spec).with_context(|| format!("cannot read {}", opened.spec.display()))?;
    let launch: Launch = serde_json::from_slice(&spec)?;
    let keep = launch.keep.clone().context("this is no session without a terminal")?;
    let _bell = listen(&place, wake)?;
    let mut keeper = Keeper {
        transcript: open_transcript(&opened.transcript)?,
        telling: TurnReporter::new(&launch, &keep)?,
        turns: 0,
        room: Room(None),
        // Asked now: when the program is replaced, its name stays and this very file goes.
        program: std::env::current_exe().context("this program cannot find itself")?,
        turn_spec: opened.spec.with_extension("turn.json"),
        place,
        launch,
        keep,
        cancel,
    };
    keeper.keep(sitting, &woken, &stopped)
}

struct Keeper {
    place: SessionDir,
    launch: Launch,
    keep: Keep,
    /// The description of a turn, beside that of the session.
    turn_spec: PathBuf,
    transcript: File,
    telling: TurnReporter,
    turns: u32,
    /// What the transcript still takes of this turn.
    room: Room,
    program: PathBuf,
    cancel: Cancel,
}

impl Keeper {
    fn keep(
        &mut self,
        mut sitting: KeeperLock,
        woken: &Receiver<()>,
        stopped: &AtomicBool,
    ) -> anyhow::Result<i32> {
        // Inside a sandbox the first turn does it: nothing reads the tree outside.
        if self.launch.sandbox.is_none()
            && let Some(message) = self.launch.commit_first.take()
        {
            crate::daemon::commit_leftovers(&self.launch, &message);
        }
        let status = loop {
            if stopped.load(Ordering::SeqCst) {
                self.note("ended by Pointsman");
                break 0;
            }
            if !sitting.is_called()? {
                wait(woken, SLOW_LOOK);
                continue;
            }
            let conversation = self.place.conversation()?;
            if conversation.try_lock().is_err() {
                wait(woken, TAKEN_LOOK);
                continue;
            }
            let Some(prompt) = sitting.take()? else { continue };
            let ended = self.turn(&sitting, &prompt.text)?;
            drop(conversation);
            match ended {
                Ended::Over(_) | Ended::Failed { .. } if prompt.last => break 0,
                Ended::Over(_) | Ended::Failed { .. } => {}
                // Asked to stop: not its fault.
                Ended::Died { .. } if stopped.load(Ordering::SeqCst) => break 0,
                Ended::Died { .. } => break 1,
            }
        };
        sitting.leave(status)?;
        Ok(status)
    }

    /// A line of our own for whoever reads the transcript.
    fn note(&mut self, what: &str) {
        self.write(&words::turn::note(what));
    }

    /// Something of the agent's, as long as there is room for it: a turn can print far more than anybody reads.
    fn show(&mut self, text: &str) {
        match self.room.take(text.len()) {
            Fits::Yes => self.write(text),
            Fits::NoLonger => self.note("the rest of this turn is not shown"),
            Fits::No => {}
        }
    }

    /// What cannot be written stops nothing: the disk may be full.
    fn write(&mut self, text: &str) {
        if let Err(error) = self.transcript.write_all(text.as_bytes()) {
            eprintln!("pointsman keep: the transcript cannot be written: {error}");
        }
    }
}

/// The room for what one turn shows. Once something did not fit, nothing does, however small it is.
struct Room(Option<usize>);

/// Whether a text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fits {
    Yes,
    /// It is the first that does not: people are told.
    NoLonger,
    No,
}

impl Room {
    fn take(&mut self, bytes: usize) -> Fits {
        let Some(left) = self.0 else { return Fits::No };
        self.0 = left.checked_sub(bytes);
        if self.0.is_some() { Fits::Yes } else { Fits::NoLonger }
    }
}

fn wait(woken: &Receiver<()>, limit: Duration) {
    // The end of the other side is the end of a watch, which the slow look makes up for.
    if woken.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Disconnected) {
        std::thread::park_timeout(limit);
    }
}

/// SIGTERM ends the turn, then the keeper.
fn stop_on_signals(cancel: &Cancel, wake: &SyncSender<()>) -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stopped = Arc::new(AtomicBool::new(false));
    let (cancel, wake, told) = (cancel.clone(), wake.clone(), Arc::clone(&stopped));
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            told.store(true, Ordering::SeqCst);
            cancel.cancel();
            // Full: it is about to look anyway.
            let _ = wake.try_send(());
        }
    })?;
    Ok(stopped)
}

fn listen(place: &SessionDir, wake: SyncSender<()>) -> anyhow::Result<FileWatch> {
    let watch = FileWatch::start(move |_| {
        let _ = wake.try_send(());
    })?;
    watch.register(place.receiver());
    watch.watch_dir(place.dir())?;
    Ok(watch)
}

/// Anybody may write to the phase directory: the file is ours before it is opened, and no link is followed.
fn open_transcript(path: &Path) -> anyhow::Result<File> {
    phase_file::reuse_or_create(path)
        .map_err(|refusal| anyhow::anyhow!("{} cannot be used: {refusal}", path.display()))?;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    Ok(OpenOptions::new().append(true).custom_flags(flags.bits().cast_signed()).open(path)?)
}

#[cfg(test)]
mod tests {
    use super::{Fits, Room};

    #[test]
    fn what_does_not_fit_is_told_once_also_if_the_room_was_used_to_the_last_byte() {
        for sizes in [[4, 4, 1, 1], [4, 3, 2, 1]] {
            let mut room = Room(Some(8));
            let fits = sizes.map(|size| room.take(size));
            assert_eq!(fits, [Fits::Yes, Fits::Yes, Fits::NoLonger, Fits::No], "{sizes:?}");
        }
    }
}
