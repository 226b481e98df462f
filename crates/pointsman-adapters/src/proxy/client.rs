//! The daemon's side of the proxy: it starts the process, and opens and closes the socket of each sandbox.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pointsman_core::relay::pool::Pools;
use pointsman_core::relay::{CredentialName, ModelAccess};
use pointsman_core::sandbox::network::Policy;

use super::{
    CONTROL, KeptUsage, LIMITED, Limited, MODEL_ACCESS, POLICY, POOLS, Refused, SHOWN, SandboxDir, USAGE,
    usage_file,
};
use crate::phase_file;
use crate::process::Run;
use crate::secret::Secret;
use crate::unix_socket::connect_in;

/// For the process to be there.
const START_LIMIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);
/// For an answer of the proxy.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Variables that the proxy needs: where to find programs, whom a company's machines trust, and the pretended time of a test.
const INHERITED: [&str; 4] = ["PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "POINTSMAN_STAGE"];

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

    /// Opens the socket of a sandbox with this policy, and with a way to the model's API if it has one. `program` is started as
    /// the proxy if there is none.
    pub fn open(
        &self,
        program: &Path,
        name: &str,
        policy: &Policy,
        model: Option<(&ModelAccess, &Secret)>,
    ) -> io::Result<SandboxDir> {
        let sandbox = self.sandbox(name).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(sandbox.0.join(SHOWN))?;
        let text = serde_json::to_vec(policy)?;
        phase_file::write_state_file(&sandbox.0.join(POLICY), &text)?;
        if let Some((access, _)) = model {
            phase_file::write_state_file(&sandbox.0.join(MODEL_ACCESS), &serde_json::to_vec(access)?)?;
        }
        let order = format!("open {name}");
        // There is a proxy most of the time, and looking for it first would be a second conversation in every start.
        if self.order(&order).is_err() {
            ensure_running(self, program)?;
            self.order(&order)?;
        }
        if let Some((access, secret)) = model {
            self.learn(access.credential, Some(secret))?;
        }
        Ok(sandbox)
    }

    /// Tells the relay a credential, or that there is none any more.
    pub fn learn(&self, name: CredentialName, secret: Option<&Secret>) -> io::Result<()> {
        self.order(&match secret {
            Some(secret) => format!("learn {} {}", name.as_str(), secret.expose()),
            None => format!("forget {}", name.as_str()),
        })
    }

    /// Changes the budgets of a session that runs.
    pub fn assign_pools(&self, sandbox: &SandboxDir, access: &ModelAccess) -> io::Result<()> {
        phase_file::write_state_file(&sandbox.0.join(MODEL_ACCESS), &serde_json::to_vec(access)?)
    }

    /// Tells the relay all budgets.
    pub fn write_pools(&self, pools: &Pools) -> io::Result<()> {
        phase_file::write_state_file(&self.0.join(POOLS), &serde_json::to_vec(pools)?)
    }

    /// The credentials that have to wait.
    pub fn limited(&self) -> Limited {
        let text = fs::read(self.0.join(LIMITED)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// The sandboxes that reach the model's API.
    pub fn model_sessions(&self) -> Vec<(SandboxDir, ModelAccess)> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let sandboxes = entries.filter_map(|entry| self.sandbox(entry.file_name().to_str()?));
        sandboxes.filter_map(|sandbox| Some((sandbox.clone(), sandbox.model_access()?))).collect()
    }

    /// The usage of all sessions that was not forgotten yet.
    pub fn usages(&self) -> Vec<KeptUsage> {
        let files = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let read = |entry: fs::DirEntry| {
            let name = entry.file_name();
            let sandbox = name.to_str()?.strip_suffix(USAGE)?.to_owned();
            // Looked at first: whatever is used after that is found the next time.
            let is_open = self.0.join(&sandbox).is_dir();
            let usage = serde_json::from_slice(&fs::read(entry.path()).ok()?).ok()?;
            Some(KeptUsage { sandbox, is_open, usage })
        };
        files.filter_map(read).collect()
    }

    /// The usage of a session that is over was counted.
    pub fn forget_usage(&self, sandbox: &str) {
        let _ = fs::remove_file(self.0.join(usage_file(sandbox)));
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

    /// Ends the process if no sandbox needs it. One that cannot be told goes by itself.
    pub fn end_if_idle(&self) {
        if !self.is_used() {
            let _ = self.order("end");
        }
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

/// Starts the proxy unless it is there, and waits until it listens. Says whether it was started.
pub fn ensure_running(proxy: &ProxyDir, program: &Path) -> io::Result<bool> {
    let dir = &proxy.0;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    if connect_in(dir, CONTROL).is_ok() {
        return Ok(false);
    }
    let run = Run::new(program).arg("proxy").arg(dir).inherit(&INHERITED).cwd("/");
    run.start_detached(&dir.join("log")).map_err(io::Error::other)?;
    let deadline = Instant::now() + START_LIMIT;
    while connect_in(dir, CONTROL).is_err() {
        if Instant::now() >= deadline {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        std::thread::park_timeout(LOOK);
    }
    Ok(true)
}
