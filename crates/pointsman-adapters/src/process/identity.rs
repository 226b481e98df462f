//! The identity of a process. A pid alone proves nothing, it is given out again; pid and start time do, on the
//! machine they were read on.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use serde::{Deserialize, Serialize};

use super::members::descendants;
use crate::watch::proc_stat::ProcStat;

/// How long a leftover group may take to end after SIGTERM before it is killed.
pub const LEFTOVER_GRACE: Duration = Duration::from_secs(2);

/// A process, named for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_time: u64,
}

impl Process {
    /// The process that has this pid now.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, start_time: start_time(pid)? })
    }

    /// Whether it has not ended. A zombie has.
    pub fn is_alive(self) -> bool {
        is_alive(self.pid, self.start_time)
    }

    /// Whether it was stopped: it is there, and does nothing.
    pub fn is_stopped(self) -> bool {
        is_stopped(self.pid, self.start_time)
    }

    /// Ends this very process by force.
    pub fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Stops this very process until it is told to go on.
    pub fn stop(self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn go_on(self) {
        self.signal(Signal::CONT);
    }

    /// Signals this very process.
    pub(super) fn signal(self, signal: Signal) {
        let raw = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        // Opened before the check: if the start time matches afterwards, the handle is for that process too.
        let handle = raw.and_then(|raw| pidfd_open(raw, PidfdFlags::empty()).ok());
        if let Some(handle) = handle.filter(|_| self.is_alive()) {
            // It fails only if the process has just ended.
            let _ = pidfd_send_signal(&handle, signal);
        }
    }
}

/// The time of a process's start in clock ticks since boot; none if there is no such process.
pub fn start_time(pid: u32) -> Option<u64> {
    stat(pid).map(|s| s.start_time)
}

/// Whether this very process is alive. A zombie is not.
pub fn is_alive(pid: u32, start_time: u64) -> bool {
    stat(pid).is_some_and(|s| s.start_time == start_time && !matches!(s.state, 'Z' | 'X' | 'x'))
}

/// Whether this very process was stopped, by a signal or by a debugger: it is there, and does nothing.
pub fn is_stopped(pid: u32, start_time: u64) -> bool {
    stat(pid).is_some_and(|s| s.start_time == start_time && matches!(s.state, 'T' | 't'))
}

/// The name of this machine: pids and start times mean something only there.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The fate of a process group that an earlier daemon left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// Its leader is gone, or the pid means another process by now: nothing was signalled.
    Gone,
    Killed,
    /// The process is there and leads no group of its own: nothing was signalled.
    NotALeader,
}

/// Ends the process group that `pid` leads, but only if `pid` is still the process that started at `start_time`.
///
/// A group whose leader has already gone is left alone: without the leader nothing proves that it is ours.
pub fn kill_leftover_group(pid: u32, start_time: u64) -> Leftover {
    end_group(pid, start_time, LEFTOVER_GRACE)
}

/// The same with another grace between SIGTERM and SIGKILL.
pub fn end_group(pid: u32, start_time: u64, grace: Duration) -> Leftover {
    let Some(leader) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Leftover::Gone };
    // Opened before the check: if the start time matches afterwards, the handle is for that process too.
    let Ok(handle) = pidfd_open(leader, PidfdFlags::empty()) else { return Leftover::Gone };
    if !is_alive(pid, start_time) {
        return Leftover::Gone;
    }
    // Not getpgid: a group from outside our pid namespace has number 0, which is no group to rustix.
    if stat(pid).is_none_or(|s| s.group != leader.as_raw_pid()) {
        return Leftover::NotALeader;
    }
    let _ = kill_process_group(leader, Signal::TERM);
    let deadline = Instant::now() + grace;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
        let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)).unwrap_or(0) > 0;
        if ended || left.is_zero() {
            break;
        }
    }
    // While the leader is there, what left its group can still be found below it.
    descendants(pid).iter().for_each(|process| process.kill());
    // While any member lives the group's number is not given out again, so a leader that just ended changes nothing:
    // either its followers are hit, or there is no such group.
    let _ = kill_process_group(leader, Signal::KILL);
    Leftover::Killed
}

fn stat(pid: u32) -> Option<ProcStat> {
    ProcStat::read(pid).ok()
}

#[cfg(test)]
mod tests {
    use super::{host_name, is_alive, start_time};

    #[test]
    fn a_pid_with_another_start_time_is_another_process() {
        let me = std::process::id();
        let started = start_time(me).unwrap();
        assert!(is_alive(me, started));
        assert!(!is_alive(me, started + 1));
        assert_eq!(start_time(u32::MAX), None);
    }

    #[test]
    fn the_host_is_the_one_the_kernel_names() {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(host_name(), name.trim_end());
    }
}
