//! Runs whose output is taken as it comes, while they run.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::output::{Capped, Sink};
use super::supervise::{Cancel, Limits, Stream, kill_group, supervise};
use super::{End, Error, GroupLeadership, Run, start_time};

impl Run {
    /// Starts it. [`Followed::wait`] feeds it and takes its output: call it soon.
    pub fn start_following(self) -> Result<Followed, Error> {
        let cancel = match self.cancel.clone() {
            Some(cancel) => cancel,
            None => Cancel::new().map_err(|source| self.io_error("make a handle for", source))?,
        };
        let mut command = self.command(GroupLeadership::Group)?;
        command.stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.spawn(command)?;
        let mut followed = Followed { pid: child.id(), child: Some(child), start_time: 0, cancel, run: self };
        // It is ours and not reaped, so it is there even if it has ended already.
        followed.start_time = start_time(followed.pid)
            .ok_or_else(|| followed.run.io_error("find", io::Error::from(io::ErrorKind::NotFound)))?;
        Ok(followed)
    }
}

/// A program that runs. Dropping it ends its process group.
#[derive(Debug)]
pub struct Followed {
    /// Taken by `wait`.
    child: Option<Child>,
    pid: u32,
    start_time: u64,
    cancel: Cancel,
    run: Run,
}

/// The end of a followed program.
#[derive(Debug)]
pub struct FollowedEnd {
    pub end: End,
    /// What it said on standard error, capped.
    pub stderr: Vec<u8>,
}

impl Followed {
    /// The leader of its process group.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The time of the start in clock ticks since boot. Together with the pid it names the process for ever.
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// Gives standard output to `sink` until the program has ended, or `limit` from now has passed.
    pub fn wait(mut self, limit: Duration, sink: &mut dyn Sink) -> Result<FollowedEnd, Error> {
        let Some(mut child) = self.child.take() else {
            // Only this method takes it, and it takes the whole value as well.
            return Err(self.run.io_error("wait twice for", io::Error::from(io::ErrorKind::InvalidInput)));
        };
        let mut stderr = Capped::new(self.run.output_cap);
        let mut streams = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            streams.push(Stream::new(OwnedFd::from(pipe), sink));
        }
        if let Some(pipe) = child.stderr.take() {
            streams.push(Stream::new(OwnedFd::from(pipe), &mut stderr));
        }
        let limits = Limits { time: limit, grace: self.run.limits.grace };
        let end = supervise(&mut child, &self.run.stdin, streams, limits, Some(&self.cancel))
            .map_err(|source| self.run.io_error("supervise", source))?;
        Ok(FollowedEnd { end, stderr: stderr.into_bytes() })
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            kill_group(&child, Signal::KILL);
            let _ = child.wait();
        }
    }
}
