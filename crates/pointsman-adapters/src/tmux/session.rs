//! Starting one program in a session of its own.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::pane::{PaneId, PaneInfo};
use super::script::{Script, append_command};
use super::server::{Server, check_token, exact};
use super::{Error, pane};
use crate::phase_file;

/// The order to start a session in the private tmux server.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// The session's name, `[a-z0-9-]`.
    pub name: String,
    /// The program and its arguments, at least two words: tmux hands a single word to a shell. The program starts
    /// in `/` with the server's environment and `TMUX`; use `env` to change either.
    pub argv: Vec<String>,
    pub width: u16,
    pub height: u16,
    /// Where everything that the terminal shows is appended, from the first byte on.
    ///
    /// What a program prints in the instant before it exits can be lost, in the pane and here: tmux may collect the
    /// process before it has read the terminal. A transcript makes that rarer, because older releases look for unread
    /// output only then (3.3a on a loaded machine: 1 of 300 such ends instead of 9), not impossible.
    pub transcript: Option<PathBuf>,
    /// Names this run; messages for another run of the same session are refused. `[A-Za-z0-9_-]`.
    pub epoch: String,
}

/// A session that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub pane_id: PaneId,
    pub pid: u32,
    /// When it started; `None` if it has ended already.
    pub start_time: Option<u64>,
}

impl Server {
    /// Starts a program in a new session. Session, epoch and transcript come into being in one step: whoever sees
    /// the session sees its epoch, and no output is read before the transcript is open.
    pub fn start(&self, new: &NewSession) -> Result<Started, Error> {
        let target = exact(&new.name)?;
        check_token("epoch", &new.epoch)?;
        if new.argv.len() < 2 {
            return Err(Error::BareCommand(new.name.clone()));
        }
        if let Some(zero) = new.argv.iter().find(|word| word.contains('\0')) {
            let value = zero.clone();
            return Err(Error::Malformed { what: "argument", value, allowed: "anything but zero bytes" });
        }
        let (width, height) = (new.width.to_string(), new.height.to_string());
        let mut script =
            Script::new(["new-session", "-d", "-s", &new.name, "-x", &width, "-y", &height, "-c", "/"])
                .word("--");
        for argument in &new.argv {
            script = script.word(argument);
        }
        script = script.then(["set-option", "-p", "-t", &target, "@epoch", &new.epoch]);
        if let Some(path) = &new.transcript {
            open_transcript(path)?;
            script = script.then(["pipe-pane", "-t", &target]).word(append_command(path));
        }
        script = script.then(["list-panes", "-s", "-t", &target, "-F", pane::PaneInfo::FORMAT]);

        let _here = self.replacing.read().unwrap_or_else(PoisonError::into_inner);
        match self.run(&script) {
            Ok(lines) => lines
                .iter()
                .find_map(|line| PaneInfo::parse(line))
                .map(|listed| started(listed.info))
                .ok_or_else(|| Error::Unexpected { command: script.name(), answer: lines.join("\n") }),
            Err(Error::Refused { message, .. }) if message.starts_with("duplicate session") => {
                Err(Error::Exists(new.name.clone()))
            }
            // Only the answer was lost, or the order too: the epoch tells whether the session is this one.
            Err(lost @ (Error::Interrupted { .. } | Error::Timeout { .. })) => match self.find(&new.name)? {
                Some(info) if info.epoch == new.epoch => Ok(started(info)),
                _ => Err(lost),
            },
            Err(error) => Err(error),
        }
    }
}

fn started(info: PaneInfo) -> Started {
    Started { pane_id: info.pane_id, pid: info.pid, start_time: info.start_time }
}

/// The file exists and is ours before a shell opens it by name, so that nobody else's link is followed.
fn open_transcript(path: &Path) -> Result<(), Error> {
    match phase_file::reuse_or_create(path) {
        Ok(_) => Ok(()),
        Err(refusal) => Err(Error::Transcript { path: path.to_owned(), refusal }),
    }
}
