//! A program that is run as a child, with everything that it leaves behind.
//!
//! Without a sandbox and without a control group nothing holds the processes of a session together. The process that started the
//! session stays, adopts whatever is orphaned below it, and ends all of it when the session's program has ended.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, set_child_subreaper, set_parent_process_death_signal, wait,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use super::members::descendants;

/// For what is left behind to be gone; the kernel may hold a process longer.
const END_LIMIT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(2);

/// A command to run as a child.
pub struct Reaped<'c> {
    pub program: &'c str,
    pub args: &'c [String],
    pub cwd: &'c Path,
    pub env: &'c [(OsString, OsString)],
}

/// Runs a command in this process's group and on its terminal, ends what it leaves behind, and answers its exit code. If our own
/// parent ends, everything ends at once.
pub fn run(reaped: &Reaped<'_>) -> io::Result<u8> {
    set_child_subreaper(Some(getpid()))?;
    // Signals of the terminal are for the program. They are handled rather than ignored, so that it does not inherit that.
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1])?;
    set_parent_process_death_signal(Some(Signal::USR1))?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if signal == SIGUSR1 {
                end_descendants();
            }
        }
    })?;
    let child = start(reaped)?;
    let code = wait_for(&child)?;
    end_descendants();
    Ok(code)
}

#[allow(clippy::disallowed_methods, reason = "the one program of this process, on its terminal")]
fn start(reaped: &Reaped<'_>) -> io::Result<Child> {
    let mut command = Command::new(reaped.program);
    command.args(reaped.args).current_dir(reaped.cwd).env_clear();
    command.envs(reaped.env.iter().map(|(name, value)| (name, value)));
    command.spawn()
}

/// Collects everything that ends, until the child itself has.
fn wait_for(child: &Child) -> io::Result<u8> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().unsigned_abs() == child.id() => {
                let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?));
                return Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills everything below this process until nothing is left there.
pub fn end_descendants() {
    let deadline = Instant::now() + END_LIMIT;
    while Instant::now() < deadline {
        let below = descendants(std::process::id());
        below.iter().for_each(|process| process.kill());
        let mut collected = false;
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {
            collected = true;
        }
        if below.is_empty() {
            return;
        }
        if !collected {
            std::thread::park_timeout(LOOK);
        }
    }
}

/// Adopts what is orphaned below this process from now on.
pub fn adopt_orphans() -> io::Result<()> {
    let own: Option<Pid> = Some(getpid());
    Ok(set_child_subreaper(own)?)
}
