//! The way Pointsman is compared with: a shell loop over phase files, on sessions of its own.

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use pointsman_adapters::process::{self, JobEnd, JobKiller, Run};
use tempfile::TempDir;

use crate::fleet::Fleet;
use crate::stage::{Stage, end_server};

/// The loop of the original sleeps for ten seconds; this is generous.
pub(crate) const SECONDS: u64 = 1;
/// No loop outlives the benchmark.
const LIMIT: Duration = Duration::from_secs(10 * 60);
/// For all its sessions to come up.
const UP_LIMIT: Duration = Duration::from_secs(60);

/// A running loop and its sessions.
pub(crate) struct Polling {
    pub(crate) fleet: Fleet,
    pid: u32,
    killer: JobKiller,
    supervisor: Option<JoinHandle<Result<JobEnd, process::Error>>>,
    socket: PathBuf,
    _directory: TempDir,
}

impl Polling {
    /// Starts the sessions, then the loop.
    pub(crate) fn start(stage: &Stage, sessions: u64) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("pointsman-bench-").tempdir_in("/tmp")?;
        let script = directory.path().join("polling.sh");
        std::fs::write(&script, include_str!("polling.sh"))?;
        let socket = directory.path().join("tmux.sock");
        let fleet = Fleet::prepare(directory.path(), sessions)?;
        let job = Run::new("bash")
            .arg(&script)
            .args([&stage.agent(), directory.path(), &socket])
            .args([sessions.to_string(), SECONDS.to_string()])
            .inherit(&["PATH", "LANG", "TERM"])
            .cwd(directory.path())
            .start_job(&directory.path().join("polling.log"))?;
        let (pid, killer) = (job.pid(), job.killer());
        let supervisor = Some(std::thread::spawn(move || job.wait(LIMIT)));
        // Made before the first wait, so that whatever happens from here on it is ended again.
        let polling = Self { fleet, pid, killer, supervisor, socket, _directory: directory };
        polling.fleet.hear(usize::try_from(sessions)?, UP_LIMIT)?;
        Ok(polling)
    }

    /// The loop's process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        self.killer.kill();
        if let Some(supervisor) = self.supervisor.take() {
            let _ = supervisor.join();
        }
        end_server(&self.socket);
    }
}
