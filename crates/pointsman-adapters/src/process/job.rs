//! Long runs: output into a log file, a pid that can be written down, an end that another thread can bring about.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::process::Signal;

use super::output::Log;
use super::supervise::{Cancel, Limits, Stream, kill_group, supervise};
use super::{End, Error, GroupLeadership, Run, start_time};

impl Run {
    /// Starts a job whose standard output and error go to `log`, which is created, or emptied, with mode 0600. The
    /// time limit is given to [`Job::wait`], which also moves the output: call it soon.
    pub fn start_job(self, log: &Path) -> Result<Job, Error> {
        let file = open_log(log).map_err(|source| self.io_error("open the log of", source))?;
        let (reader, writer) = io::pipe().map_err(|source| self.io_error("make a pipe for", source))?;
        let second = writer.try_clone().map_err(|source| self.io_error("make a pipe for", source))?;
        let cancel = match self.cancel.clone() {
            Some(cancel) => cancel,
            None => Cancel::new().map_err(|source| self.io_error("make a handle for", source))?,
        };
        let mut command = self.command(GroupLeadership::Group)?;
        command.stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stdout(writer).stderr(second);
        let child = self.spawn(command)?;
        let pid = child.id();
        let mut job = Job {
            child: Some(child),
            pid,
            start_time: 0,
            output: Some((OwnedFd::from(reader), Log::new(file, self.output_cap))),
            cancel,
            run: self,
        };
        // It is ours and not reaped, so it is there even if it has ended already. On an error the job is dropped and
        // its group with it.
        job.start_time = start_time(pid)
            .ok_or_else(|| job.run.io_error("find", io::Error::from(io::ErrorKind::NotFound)))?;
        Ok(job)
    }
}

/// A running job. Dropping it ends its process group.
#[derive(Debug)]
pub struct Job {
    /// Taken by `wait`.
    child: Option<Child>,
    pid: u32,
    start_time: u64,
    output: Option<(OwnedFd, Log)>,
    cancel: Cancel,
    run: Run,
}

/// The end of a job, and the state of its log.
#[derive(Debug)]
pub struct JobEnd {
    pub end: End,
    /// The middle of its output was left out of the log.
    pub truncated: bool,
    /// The log could not be written to its end; what it holds is right as far as it goes.
    pub log_error: Option<io::Error>,
}

/// Ends a job from another thread: the thread in [`Job::wait`] sends the signals and returns [`End::Cancelled`].
#[derive(Clone, Debug)]
pub struct JobKiller(Cancel);

impl JobKiller {
    /// SIGTERM to the job's group, SIGKILL after the grace.
    pub fn kill(&self) {
        self.0.cancel();
    }
}

impl Job {
    /// The leader of the job's process group.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The time of the start in clock ticks since boot. Together with the pid it names the process for ever.
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// A handle that ends the job from elsewhere.
    pub fn killer(&self) -> JobKiller {
        JobKiller(self.cancel.clone())
    }

    /// Moves output into the log until the job has ended, or `limit` from now has passed.
    pub fn wait(mut self, limit: Duration) -> Result<JobEnd, Error> {
        let (Some(mut child), Some((pipe, mut log))) = (self.child.take(), self.output.take()) else {
            // Only this method takes them, and it takes the job as well.
            return Err(self.run.io_error("wait twice for", io::Error::from(io::ErrorKind::InvalidInput)));
        };
        let limits = Limits { time: limit, grace: self.run.limits.grace };
        let streams = vec![Stream::new(pipe, &mut log)];
        let end = supervise(&mut child, &self.run.stdin, streams, limits, Some(&self.cancel))
            .map_err(|source| self.run.io_error("supervise", source))?;
        let (truncated, log_error) = match log.close() {
            Ok(truncated) => (truncated, None),
            Err(error) => (false, Some(error)),
        };
        Ok(JobEnd { end, truncated, log_error })
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            kill_group(&child, Signal::KILL);
            let _ = child.wait();
        }
    }
}

fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}
