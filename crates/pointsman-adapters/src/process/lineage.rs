//! The ancestors of a process, as the kernel tells them.
//!
//! The daemon asks this about everybody who speaks to it. A process can leave its group, its session and its parents, and
//! clear its environment. It cannot take off the mark that [`Run::untrusted`](super::Run::untrusted) puts on a whole
//! tree of processes, and it cannot choose who adopts it. What the answers mean is decided by the caller.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerPidfd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, test_kill_process};

use super::identity::Process;
use super::{GroupLeadership, Run};
use crate::watch::proc_stat::ProcStat;

/// The most ancestors that are followed. Nobody's shells are nested this deep, and a process that hides below more keeps
/// whoever looks at it busy for less than a second.
const LONGEST: usize = 4096;
/// A line changes while it is read when one of its processes ends. One that never holds still is not told.
const TRIES: usize = 8;
/// For the probe in [`reaper`] to be adopted; the kernel does it before its parent can be waited for.
const ADOPTION_LIMIT: Duration = Duration::from_secs(5);
const ADOPTION_LOOK: Duration = Duration::from_millis(2);

/// A process and all that it descends from, nearest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    pub processes: Vec<Process>,
    pub top: Top,
}

/// The end of a line of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Top {
    /// At process 1, which also adopts what has lost its parent.
    Init,
    /// At a process whose parent is outside of this pid namespace: somebody entered the container.
    Outside,
    /// At the child of a process that exists and that `/proc` does not show us, because it is another user's.
    Hidden,
}

/// The mark on a process: whether it, and everything that it ever starts, can gain no privileges.
pub fn is_marked(pid: u32) -> io::Result<bool> {
    match status_field(pid, "NoNewPrivs:")?.as_str() {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// Marks this thread and everything it starts, for ever. A program that becomes another one calls this first.
pub fn mark_this_thread() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// The real user id of a process.
pub fn user_of(pid: u32) -> io::Result<u32> {
    let field = status_field(pid, "Uid:")?;
    field.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// The value of a variable that a process was started with; none if it has none, or if nobody may look.
pub fn variable_of(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = environment
        .split(|b| *b == 0)
        .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// The program that has this process run for it: the nearest ancestor that is no shell. A shell stays behind when the
/// program that started it is killed, and so would whoever only looks at its parent.
pub fn caller() -> Option<Process> {
    const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "zsh", "busybox"];
    let line = ProcessHandle::open(std::process::id()).ok()?.lineage().ok()?;
    let is_shell = |process: &Process| {
        let name = fs::read_to_string(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
        SHELLS.contains(&name.trim())
    };
    line.processes.into_iter().skip(1).find(|process| !is_shell(process))
}

/// Holds a process while it is looked at: as long as [`ProcessHandle::is_there`] says so, its pid means this very process.
#[derive(Debug)]
pub struct ProcessHandle {
    pid: u32,
    handle: std::os::fd::OwnedFd,
}

impl ProcessHandle {
    /// Holds the process that connected this socket, which had this pid then. The kernel keeps a handle to it since, so
    /// the answer is right even if that process has ended and its pid was given to another one. Before Linux 6.5 only the
    /// pid is known.
    pub fn peer(stream: &UnixStream, pid: u32) -> io::Result<Self> {
        match getsockopt(stream, PeerPidfd) {
            Ok(handle) => Ok(Self { pid, handle }),
            Err(nix::Error::ENOPROTOOPT) => Self::open(pid),
            Err(error) => Err(error.into()),
        }
    }

    /// Holds the process that has this pid now.
    pub fn open(pid: u32) -> io::Result<Self> {
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let raw = raw.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Self { pid, handle: pidfd_open(raw, PidfdFlags::empty())? })
    }

    /// The pid of the process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has not ended. If so, everything read from `/proc` since it was opened is about this process.
    pub fn is_there(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&now)), Ok(0))
    }

    /// Its line to the top; an error if that is further away than any line should be.
    pub fn lineage(&self) -> io::Result<Lineage> {
        for _ in 0..TRIES {
            if let Some(lineage) = walk(self.pid, LONGEST)? {
                return Ok(lineage);
            }
        }
        Err(io::Error::other("its ancestors change too fast"))
    }
}

/// One try; none if the line changed on the way.
fn walk(pid: u32, longest: usize) -> io::Result<Option<Lineage>> {
    let first = ProcStat::read(pid)?;
    let mut processes = vec![Process { pid, start_time: first.start_time }];
    let mut here = first;
    let mut at = pid;
    while processes.len() <= longest {
        let top = match here.parent {
            0 if at == 1 => Some(Top::Init),
            0 => Some(Top::Outside),
            _ => None,
        };
        if let Some(top) = top {
            // A parent that ended on the way has left its child to somebody else, which the first look did not see.
            let same = ProcStat::read(pid)
                .is_ok_and(|now| (now.start_time, now.parent) == (first.start_time, first.parent));
            return Ok(same.then_some(Lineage { processes, top }));
        }
        let parent = here.parent;
        match ProcStat::read(parent) {
            // Nobody is older than their parent: this pid was given out again.
            Ok(stat) if stat.start_time > here.start_time => return Ok(None),
            Ok(stat) => {
                processes.push(Process { pid: parent, start_time: stat.start_time });
                (at, here) = (parent, stat);
            }
            Err(_) if is_hidden(parent) => return Ok(Some(Lineage { processes, top: Top::Hidden })),
            Err(_) => return Ok(None),
        }
    }
    Err(io::Error::other("it has too many ancestors"))
}

/// Whether a process exists that is somebody else's, where `/proc` shows everybody only their own (`hidepid`).
fn is_hidden(pid: u32) -> bool {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    raw.is_some_and(|raw| test_kill_process(raw) == Err(Errno::PERM))
}

/// The process that adopts what our descendants leave behind: the nearest ancestor that asked the kernel for it, else process 1.
/// There is no way to read it, so a process is orphaned to see.
pub fn reaper() -> io::Result<u32> {
    let run = Run::new("/bin/sh").args(["-c", "sleep 30 >/dev/null & echo $!"]).inherit(&["PATH"]);
    let mut command = run.command(GroupLeadership::Group).map_err(io::Error::other)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut shell = command.spawn()?;
    let mut line = String::new();
    let told = shell.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
    shell.wait()?;
    told.transpose()?;
    let orphan =
        ProcessHandle::open(line.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?)?;
    let deadline = Instant::now() + ADOPTION_LIMIT;
    let adopted = loop {
        match ProcStat::read(orphan.pid()) {
            Ok(stat) if stat.parent != shell.id() => break Ok(stat.parent),
            Ok(_) if Instant::now() < deadline => std::thread::park_timeout(ADOPTION_LOOK),
            Ok(_) => break Err(io::Error::from(io::ErrorKind::TimedOut)),
            Err(error) => break Err(error),
        }
    };
    let _ = pidfd_send_signal(&orphan.handle, Signal::KILL);
    adopted
}

fn status_field(pid: u32, name: &str) -> io::Result<String> {
    let status = fs::read(format!("/proc/{pid}/status"))?;
    let status = String::from_utf8_lossy(&status);
    let field = status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    field.map(str::to_owned).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

#[cfg(test)]
mod tests;
