//! The daemon's side of the proxy: it starts the process, and opens and closes the socket of each sandbox.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pointsman_core::sandbox::network::Policy;

use super::{CONTROL, POLICY, Refused, SHOWN, SandboxDir};
use crate::phase_file;
use crate::process::Run;
use crate::unix_socket::connect_in;

/// For the process to be there.
const START_LIMIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);
/// For an answer of the proxy.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The directory of the proxy: one directory for each sandbox, and its own sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyDir(PathBuf);

impl ProxyDir {
    /// The proxy of this directory.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self(dir.into())
    }

    /// The directory of one sandbox.
    pub fn sandbox(&self, name: &str) -> Option<SandboxDir> {
        SandboxDir::below(&self.0, name)
    }

    /// Opens the socket of a sandbox with this policy. `program` is started as the proxy if there is none.
    pub fn open(&self, program: &Path, name: &str, policy: &Policy) -> io::Result<SandboxDir> {
        let sandbox = self.sandbox(name).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(sandbox.0.join(SHOWN))?;
        let text = serde_json::to_vec(policy)?;
        phase_file::write_state_file(&sandbox.0.join(POLICY), &text)?;
        let order = format!("open {name}");
        // There is a proxy most of the time, and looking for it first would be a second conversation in every start.
        if self.order(&order).is_err() {
            ensure_running(self, program)?;
            self.order(&order)?;
        }
        Ok(sandbox)
    }

    /// Closes the socket of a sandbox and forgets it. Answers the destinations that it asked for in vain.
    pub fn close(&self, name: &str) -> Refused {
        let Some(sandbox) = self.sandbox(name).filter(|sandbox| sandbox.0.is_dir()) else {
            return Refused::default();
        };
        // A proxy that is not there has nothing open.
        let _ = self.order(&format!("close {name}"));
        let refused = sandbox.refused();
        let _ = fs::remove_dir_all(&sandbox.0);
        refused
    }

    /// Whether any sandbox has a directory.
    pub fn is_used(&self) -> bool {
        fs::read_dir(&self.0).into_iter().flatten().flatten().any(|entry| entry.path().is_dir())
    }

    fn order(&self, order: &str) -> io::Result<()> {
        let mut stream = connect_in(&self.0, CONTROL)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.write_all(format!("{order}\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        match answer.trim_end() {
            "ok" => Ok(()),
            error => Err(io::Error::other(error.to_owned())),
        }
    }
}

/// Starts the proxy unless it is there, and waits until it listens.
pub fn ensure_running(proxy: &ProxyDir, program: &Path) -> io::Result<()> {
    let dir = &proxy.0;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    if connect_in(dir, CONTROL).is_ok() {
        return Ok(());
    }
    let run = Run::new(program).arg("proxy").arg(dir).inherit(&["PATH"]).cwd("/");
    run.start_detached(&dir.join("log")).map_err(io::Error::other)?;
    let deadline = Instant::now() + START_LIMIT;
    while connect_in(dir, CONTROL).is_err() {
        if Instant::now() >= deadline {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        std::thread::park_timeout(LOOK);
    }
    Ok(())
}
