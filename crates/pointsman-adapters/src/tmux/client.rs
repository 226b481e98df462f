//! The tmux program as a command: one process per call, and the long-lived control client.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Error;
use crate::process::{self, End, Run};

/// What a tmux client and the server it may start see of our environment. Everything a server is started with is
/// visible in all of its sessions, and the daemon holds keys.
const PASSED_ON: [&str; 3] = ["PATH", "HOME", "SHELL"];

/// Even `attach-session` starts a server where none runs; only [`Client::run_starting`] is meant to.
const NO_START: &str = "-N";

/// The release of the installed tmux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// As `tmux -V` prints it, without the program's name: `3.3a`.
    pub text: String,
    /// Major and minor number; a development build without numbers counts as new.
    pub number: (u32, u32),
}

impl Version {
    /// The oldest release whose control mode and pane options are what this module needs.
    pub const OLDEST: (u32, u32) = (3, 2);

    /// Whether this release is new enough.
    pub fn is_supported(&self) -> bool {
        self.number >= Version::OLDEST
    }

    fn parse(output: &str) -> Version {
        let text = output.trim().trim_start_matches("tmux ").to_owned();
        let numbers = text.trim_start_matches("next-").split('.').map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().ok()
        });
        let numbers: Vec<Option<u32>> = numbers.collect();
        let number = match numbers.as_slice() {
            [Some(major), Some(minor), ..] => (*major, *minor),
            [Some(major)] => (*major, 0),
            _ => (u32::MAX, 0),
        };
        Version { text, number }
    }
}

/// Asks the installed tmux for its release; needs no server.
pub fn version() -> Result<Version, Error> {
    let answer = finish(program(vec!["-V".into()]), &["-V".into()], b"", Duration::from_secs(5))?;
    if !answer.success {
        return Err(Error::Refused { command: "-V".to_owned(), message: answer.stderr });
    }
    Ok(Version::parse(&answer.stdout))
}

/// What a finished client printed.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) success: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Where a client finds its server.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) socket: PathBuf,
    pub(super) config: PathBuf,
}

impl Client {
    /// Runs one command to its end on a running server. `stdin` is what `load-buffer -` reads.
    pub(super) fn run(&self, command: &[OsString], stdin: &[u8], limit: Duration) -> Result<Answer, Error> {
        let mut arguments = self.server_flags();
        arguments.push(NO_START.into());
        arguments.extend_from_slice(command);
        finish(program(arguments), command, stdin, limit)
    }

    /// Runs one command to its end and starts the server for it if there is none. The server is started as foreign:
    /// whoever reaches its socket, and agents do, can have it start a program, which must not pass for a person's.
    pub(super) fn run_starting(&self, command: &[OsString], limit: Duration) -> Result<Answer, Error> {
        let mut arguments = self.server_flags();
        arguments.extend_from_slice(command);
        finish(program(arguments).untrusted(), command, b"", limit)
    }

    /// Starts a control-mode client on the given session; its standard streams are pipes. It is the one program that
    /// is talked to for longer than a run, in a group of its own: a Ctrl-C for the daemon is not for tmux.
    #[allow(clippy::disallowed_methods, reason = "the control client outlives any run")]
    pub(super) fn spawn_control(&self, session: &str) -> Result<Child, Error> {
        Command::new("tmux")
            .args(self.server_flags())
            .args([NO_START, "-C", "attach-session", "-f", "no-output,ignore-size", "-t"])
            .arg(format!("={session}:"))
            .env_clear()
            .envs(environment())
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::io("start the tmux control client"))
    }

    fn server_flags(&self) -> Vec<OsString> {
        vec!["-u".into(), "-S".into(), self.socket.clone().into(), "-f".into(), self.config.clone().into()]
    }
}

#[allow(clippy::disallowed_methods, reason = "tmux gets a few variables by name")]
fn environment() -> Vec<(OsString, OsString)> {
    let passed_on = PASSED_ON.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let is_utf8 = |lang: &String| lang.to_ascii_lowercase().replace('-', "").ends_with("utf8");
    let lang = std::env::var("LANG").ok().filter(is_utf8).unwrap_or_else(|| "C.UTF-8".to_owned());
    let term = std::env::var_os("TERM").unwrap_or_else(|| "xterm-256color".into());
    passed_on.chain([("LANG".into(), lang.into()), ("TERM".into(), term)]).collect()
}

fn program(arguments: Vec<OsString>) -> Run {
    Run::new("tmux").args(arguments)
}

fn finish(run: Run, command: &[OsString], stdin: &[u8], limit: Duration) -> Result<Answer, Error> {
    let mut run = run.cwd("/").stdin(stdin).time_limit(limit);
    for (name, value) in environment() {
        run = run.env(name, value);
    }
    let finished = run.finish().map_err(|error| match error {
        process::Error::NotFound { .. } => Error::NoTmux,
        source => Error::Process(source),
    })?;
    let name = || command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    match finished.end {
        End::TimedOut => return Err(Error::Timeout { command: name(), seconds: limit.as_secs() }),
        End::Signalled(_) | End::Cancelled => return Err(Error::Interrupted { command: name() }),
        End::Exited(_) => {}
    }
    Ok(Answer {
        success: finished.end.success(),
        stdout: String::from_utf8_lossy(&finished.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&finished.stderr).trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(Version::parse("tmux 3.3a\n").number, (3, 3));
        assert_eq!(Version::parse("tmux next-3.7").number, (3, 7));
        assert!(Version::parse("tmux master").is_supported());
        assert!(!Version::parse("tmux 2.9a").is_supported());
        assert!(Version::parse("tmux 3.10").is_supported());
    }
}
