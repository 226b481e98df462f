//! The only place that starts programs.
//!
//! Every program gets an environment that was cleared first, a process group of its own, a time limit and a cap on
//! its output. When it ends, however it ends, its whole group ends with it, so that a forgotten background child can
//! neither hang us nor outlive its purpose. What escapes a group (`setsid`) is never waited for; `members` finds it, if it
//! belongs to a session or a job.
//!
//! Nothing in here knows what is being run; git, tmux and CI build their own calls on [`Run`].
//! [`job`] has the form for long runs with a log file, `follow` for those whose output is taken as it comes, `detached`
//! for the one kind of program that outlives us, [`identity`] the proof that a pid is still the same process, [`lineage`]
//! where a process comes from.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::retry::Retry;

pub mod census;
pub mod cgroup;
mod detached;
mod follow;
pub mod identity;
pub mod job;
pub mod lineage;
mod members;
mod memory;
mod output;
mod processor_time;
mod program;
pub mod reaper;
pub mod signals;
mod supervise;

pub use follow::{Followed, FollowedEnd};
pub use identity::{Process, end_group, host_name, is_alive, is_stopped, kill_leftover_group, start_time};
pub use job::{Job, JobEnd, JobKiller};
pub use members::{Members, RECORD_OPTION, descendants};
pub use memory::free_memory_mb;
pub(crate) use memory::megabytes;
pub use output::Sink;
pub use processor_time::ProcessorTimes;
pub use program::{Program, find_program, look_for_program};
pub use supervise::Cancel;

use output::Capped;
use supervise::{Limits, Stream, supervise};

/// How long a program may run if its caller names no limit.
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(60);
/// Between SIGTERM and SIGKILL, if the caller names no other grace.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(2);
/// How much of each output stream is kept, if the caller names no other cap.
pub const DEFAULT_OUTPUT_CAP: usize = 4 << 20;

/// A program to run, with everything it may see and use.
#[derive(Clone, Debug)]
pub struct Run {
    program: OsString,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    limits: Limits,
    output_cap: usize,
    cancel: Option<Cancel>,
    trust: Trust,
    /// Signals that ask a program to end do not reach the wrapper around it.
    shielded: bool,
}

impl Run {
    /// A run of `program` without arguments, with an empty environment, no input and the default limits.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            env: Vec::new(),
            stdin: Vec::new(),
            limits: Limits { time: DEFAULT_TIME_LIMIT, grace: DEFAULT_GRACE },
            output_cap: DEFAULT_OUTPUT_CAP,
            cancel: None,
            trust: Trust::Ours,
            shielded: false,
        }
    }

    /// Runs what an agent, a branch or an action brings. The kernel marks it and everything it ever starts
    /// (`no_new_privs`): such a process is never taken for a person, wherever it hides, and `sudo` gives it nothing.
    pub fn untrusted(mut self) -> Self {
        self.trust = Trust::Foreign;
        self
    }

    /// Puts another program around this one: `wrapper` stands before the program and its arguments. The wrapper itself
    /// does not get the signals that ask the program to end ([`signals`]).
    pub fn inside(mut self, wrapper: Vec<OsString>) -> Self {
        self.shielded = !wrapper.is_empty();
        self.behind(wrapper)
    }

    /// The same for a wrapper that ends with the program whenever it is asked to.
    pub(crate) fn behind(mut self, wrapper: Vec<OsString>) -> Self {
        let mut words = wrapper.into_iter();
        if let Some(outer) = words.next() {
            let program = std::mem::replace(&mut self.program, outer);
            let args = std::mem::take(&mut self.args);
            self.args = words.chain([program]).chain(args).collect();
        }
        self
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Appends arguments. They reach the program as they are, since no shell stands in between.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Runs in this directory.
    pub fn cwd(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = Some(dir.into());
        self
    }

    /// Sets one variable; a later value of the same name wins.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Hands these variables of our own environment on, those that are set.
    #[allow(clippy::disallowed_methods, reason = "variables are passed on by name, from here alone")]
    pub fn inherit(mut self, names: &[&str]) -> Self {
        for name in names {
            if let Some(value) = std::env::var_os(name) {
                self.env.push((OsString::from(name), value));
            }
        }
        self
    }

    /// Feeds these bytes to standard input, which is empty otherwise.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Ends the run after this long.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.limits.time = limit;
        self
    }

    /// Time between SIGTERM and SIGKILL.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.limits.grace = grace;
        self
    }

    /// Keeps at most this many bytes of each stream (the first and the last half, with a marker between them); for
    /// a job, of its log.
    pub fn output_cap(mut self, bytes: usize) -> Self {
        self.output_cap = bytes;
        self
    }

    /// Ends the run when `cancel` is pulled.
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Runs to the end. A program that fails, or is ended by us, is an `Ok` with its [`End`].
    pub fn finish(self) -> Result<Finished, Error> {
        let mut command = self.command(GroupLeadership::Group)?;
        command.stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.spawn(command)?;

        let mut stdout = Capped::new(self.output_cap);
        let mut stderr = Capped::new(self.output_cap);
        let mut streams = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            streams.push(Stream::new(OwnedFd::from(pipe), &mut stdout));
        }
        if let Some(pipe) = child.stderr.take() {
            streams.push(Stream::new(OwnedFd::from(pipe), &mut stderr));
        }
        let end = supervise(&mut child, &self.stdin, streams, self.limits, self.cancel.as_ref())
            .map_err(|source| self.io_error("supervise", source))?;
        let truncated = stdout.truncated() || stderr.truncated();
        Ok(Finished { end, stdout: stdout.into_bytes(), stderr: stderr.into_bytes(), truncated })
    }

    #[allow(clippy::disallowed_methods, reason = "this is the door through which programs are started")]
    fn command(&self, leads: GroupLeadership) -> Result<Command, Error> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().envs(self.env.iter().map(|(k, v)| (k, v)));
        match leads {
            GroupLeadership::Group => command.process_group(0),
            GroupLeadership::Nobody => &mut command,
        };
        if let Some(dir) = &self.cwd {
            // Otherwise a missing directory is reported as a missing program.
            if !dir.is_dir() {
                return Err(Error::NoDirectory { program: self.program_name(), dir: dir.clone() });
            }
            command.current_dir(dir);
        }
        Ok(command)
    }

    fn spawn(&self, mut command: Command) -> Result<Child, Error> {
        let started = match self.trust {
            Trust::Ours => command.spawn(),
            Trust::Foreign => spawn_marked(&mut command, self.shielded),
        };
        started.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::NotFound { program: self.program_name() },
            _ => Error::Spawn { program: self.program_name(), source },
        })
    }

    fn program_name(&self) -> String {
        OsStr::to_string_lossy(&self.program).into_owned()
    }

    fn io_error(&self, what: &'static str, source: io::Error) -> Error {
        Error::Io { program: self.program_name(), what, source }
    }
}

/// The mark belongs to a thread and is inherited by what that thread starts. A thread of its own carries it, so that
/// we stay without it.
fn spawn_marked(command: &mut Command, shielded: bool) -> io::Result<Child> {
    std::thread::scope(|scope| {
        let marked = std::thread::Builder::new().name("marked".to_owned()).spawn_scoped(scope, || {
            lineage::mark_this_thread()?;
            if shielded {
                signals::shield_this_thread()?;
            }
            command.spawn()
        })?;
        marked.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts programs broke")))
    })
}

/// Whose program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// Ours, or the machine's: git, tmux.
    Ours,
    /// Whatever an agent, a branch or an action brings.
    Foreign,
}

/// Whom a program leads when it starts.
#[derive(Clone, Copy)]
enum GroupLeadership {
    /// A process group of its own.
    Group,
    /// Nobody yet: it will make a session of its own.
    Nobody,
}

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited by itself with this code.
    Exited(i32),
    /// A signal that did not come from us ended it.
    Signalled(i32),
    /// It reached its time limit and was ended.
    TimedOut,
    /// It was cancelled and was ended.
    Cancelled,
}

impl End {
    /// Exited with 0.
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }

    /// The exit code, if it exited by itself.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Signalled(_) | Self::TimedOut | Self::Cancelled => None,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "signal {signal}"),
            Self::TimedOut => f.write_str("time limit reached"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct Finished {
    pub end: End,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Some of the output was left out: do not parse it.
    pub truncated: bool,
}

/// A program could not be run or watched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such program.
    #[error("program `{program}` not found")]
    NotFound { program: String },
    /// The directory to run in does not exist.
    #[error("directory {} to run `{program}` in does not exist", dir.display())]
    NoDirectory { program: String, dir: PathBuf },
    /// The operating system did not start it.
    #[error("`{program}` could not be started")]
    Spawn { program: String, source: io::Error },
    /// It was started, and talking to it failed.
    #[error("could not {what} `{program}`")]
    Io { program: String, what: &'static str, source: io::Error },
}

impl Error {
    /// The advice for the caller: try again, look first, or give up.
    pub fn retry(&self) -> Retry {
        match self {
            Self::NotFound { .. } | Self::NoDirectory { .. } => Retry::Never,
            // Out of processes, memory or descriptors: passes.
            Self::Spawn { .. } => Retry::Later,
            Self::Io { .. } => Retry::LookFirst,
        }
    }
}

#[cfg(test)]
mod tests;
