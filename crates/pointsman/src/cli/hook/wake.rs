//! `hook wake`: waits beside a session of the daemon, and hands it the messages that come.
//!
//! Claude Code runs it as an asynchronous hook with `asyncRewake`: in the background, whether the agent works or is
//! idle, and an exit code of 2 puts what is on standard error before the model. One waits at a time; another one ends at
//! once. It ends with the session.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use pointsman_core::words::message;

use super::log::Log;
use super::output;
use crate::daemon::hook_inbox;

/// Longer than any session lives; Claude ends it after the same time.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// How Claude Code is told to wake the model.
const WOKEN: u8 = 2;

/// Waits; `run` is where the files of the session's run are.
pub(super) fn wait(run: &Path, log: &Log) -> ExitCode {
    match hook_inbox(run).wait(LONGEST) {
        Ok(letters) if letters.is_empty() => ExitCode::SUCCESS,
        Ok(letters) => {
            output::wake(&message::waking(&letters));
            ExitCode::from(WOKEN)
        }
        Err(error) => {
            log.line(&format!("cannot wait for messages: {error}"));
            ExitCode::SUCCESS
        }
    }
}
