//! One thread, one `poll`: feeds a child, drains it, watches its end, its time limit and its cancellation.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::End;
use super::output::Sink;

/// How long output is still read after the program and its group are dead. Only a child that left the group can keep
/// a pipe open then; what it has to say is not ours.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);
/// How long a killed process may take to disappear before we stop waiting for it (uninterruptible sleep).
const REAP_LIMIT: Duration = Duration::from_secs(10);
/// Read at once; the size of a pipe's buffer.
const CHUNK: usize = 64 << 10;

/// Ends runs from another thread. Cheap to clone; once pulled it stays pulled.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<OwnedFd>);

impl Cancel {
    /// A handle that has not been pulled.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(fd)))
    }

    /// Ends every run that was given this handle, now or when it starts.
    pub fn cancel(&self) {
        // The counter can only fail to grow when it is full, and then it is readable already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) time: Duration,
    pub(super) grace: Duration,
}

/// One output pipe and where its bytes go.
pub(super) struct Stream<'a> {
    pipe: Option<OwnedFd>,
    sink: &'a mut dyn Sink,
}

impl<'a> Stream<'a> {
    pub(super) fn new(pipe: OwnedFd, sink: &'a mut dyn Sink) -> Self {
        Self { pipe: Some(pipe), sink }
    }

    /// Takes what is there without waiting; forgets the pipe at its end.
    fn drain(&mut self) -> io::Result<()> {
        let mut buffer = [0u8; CHUNK];
        while let Some(pipe) = &self.pipe {
            match rustix::io::read(pipe, &mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(n) => self.sink.take(&buffer[..n]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Where a run stands on its way out.
#[derive(Clone, Copy)]
enum Stage {
    Running,
    /// SIGTERM was sent because of `End`.
    Terminating(End),
    /// SIGKILL was sent because of `End`.
    Killed(End),
}

/// Runs `child` to its end and takes its group with it. On an error the group is killed too.
pub(super) fn supervise(
    child: &mut Child,
    input: &[u8],
    mut streams: Vec<Stream<'_>>,
    limits: Limits,
    cancel: Option<&Cancel>,
) -> io::Result<End> {
    let result = watch(child, input, &mut streams, limits, cancel);
    if result.is_err() {
        kill_group(child, Signal::KILL);
        let _ = child.wait();
    }
    result
}

/// Signals the child's group. Safe only before the child is reaped: until then its pid, and so the group's id, cannot
/// belong to anybody else.
pub(super) fn kill_group(child: &Child, signal: Signal) {
    if let Some(pid) = pid_of(child) {
        // The group may be empty but for the dead leader; nothing to do about that.
        let _ = kill_process_group(pid, signal);
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

fn watch(
    child: &mut Child,
    input: &[u8],
    streams: &mut [Stream<'_>],
    limits: Limits,
    cancel: Option<&Cancel>,
) -> io::Result<End> {
    let pid = pid_of(child).ok_or_else(|| io::Error::other("no pid"))?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let mut feed = Feed::new(child.stdin.take(), input)?;
    for pipe in streams.iter().filter_map(|s| s.pipe.as_ref()) {
        rustix::io::ioctl_fionbio(pipe, true)?;
    }

    let mut stage = Stage::Running;
    let mut deadline = Instant::now() + limits.time;
    loop {
        let ready = wait_ready(
            Some(&pidfd),
            cancel.filter(|_| matches!(stage, Stage::Running)),
            &feed,
            streams,
            deadline,
        )?;
        feed.write()?;
        for stream in streams.iter_mut() {
            stream.drain()?;
        }
        if ready.exited {
            break;
        }
        if let Stage::Running = stage {
            deadline = streams.iter().filter_map(|s| s.sink.ends_by()).fold(deadline, Instant::min);
        }
        let now = Instant::now();
        let late = now >= deadline;
        stage = match stage {
            Stage::Running if ready.cancelled || late => {
                kill_group(child, Signal::TERM);
                deadline = now + limits.grace;
                Stage::Terminating(if ready.cancelled { End::Cancelled } else { End::TimedOut })
            }
            Stage::Terminating(why) if late => {
                kill_group(child, Signal::KILL);
                deadline = now + REAP_LIMIT;
                Stage::Killed(why)
            }
            Stage::Killed(_) if late => return Err(io::Error::other("a killed process does not end")),
            same => same,
        };
    }

    // The leader is dead but not reaped, so its group is still ours to end.
    kill_group(child, Signal::KILL);
    let status = child.wait()?;
    drop(feed);
    drain_rest(streams)?;
    Ok(match stage {
        Stage::Running => end_of(status),
        Stage::Terminating(why) | Stage::Killed(why) => why,
    })
}

fn drain_rest(streams: &mut [Stream<'_>]) -> io::Result<()> {
    let deadline = Instant::now() + DRAIN_LIMIT;
    loop {
        for stream in streams.iter_mut() {
            stream.drain()?;
        }
        if streams.iter().all(|s| s.pipe.is_none()) || Instant::now() >= deadline {
            return Ok(());
        }
        wait_ready(None, None, &Feed::default(), streams, deadline)?;
    }
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) => End::Signalled(signal),
        (None, None) => End::Exited(-1),
    }
}

/// Input that is written as fast as the program takes it.
#[derive(Default)]
struct Feed<'a> {
    pipe: Option<ChildStdin>,
    left: &'a [u8],
}

impl<'a> Feed<'a> {
    fn new(pipe: Option<ChildStdin>, left: &'a [u8]) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Self { pipe, left })
    }

    fn write(&mut self) -> io::Result<()> {
        while let Some(pipe) = &self.pipe {
            if self.left.is_empty() {
                self.pipe = None;
                break;
            }
            match rustix::io::write(pipe, self.left) {
                Ok(n) => self.left = &self.left[n..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // The program wants no more input; that is its business.
                Err(Errno::PIPE) => self.pipe = None,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Ready {
    exited: bool,
    cancelled: bool,
}

/// Waits until something of it all is ready or the deadline has come.
fn wait_ready(
    pidfd: Option<&OwnedFd>,
    cancel: Option<&Cancel>,
    feed: &Feed<'_>,
    streams: &[Stream<'_>],
    deadline: Instant,
) -> io::Result<Ready> {
    let mut fds = Vec::with_capacity(3 + streams.len());
    fds.extend(pidfd.map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)));
    fds.extend(cancel.map(|c| PollFd::from_borrowed_fd(c.0.as_fd(), PollFlags::IN)));
    fds.extend(feed.pipe.as_ref().map(|p| PollFd::from_borrowed_fd(p.as_fd(), PollFlags::OUT)));
    fds.extend(streams.iter().filter_map(|s| s.pipe.as_ref()).map(|p| PollFd::new(p, PollFlags::IN)));

    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut ready = Ready::default();
    let mut answers = fds.iter().map(|fd| !fd.revents().is_empty());
    if pidfd.is_some() {
        ready.exited = answers.next().unwrap_or(false);
    }
    if cancel.is_some() {
        ready.cancelled = answers.next().unwrap_or(false);
    }
    Ok(ready)
}
