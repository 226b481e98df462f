//! The proxy through which everything inside a sandbox reaches the network, and nothing else does.
//!
//! It is a process of its own that outlives the daemon, as sessions do. Each sandbox has a directory with a policy, which it does
//! not see, and a socket, which it does. The core decides about every destination ([`Policy`]); `request` reads what a
//! program asks for; `server` connects and copies; `client` is the daemon's side. [`forwarder`] is the other end, inside.
//!
//! The model's API is not reached through it but asked by it: `model` looks at every call, `accounts` has the credential that it
//! adds and counts the usage, `upstream` keeps the connections, `message` knows HTTP. Package registries are asked by it as well
//! (`mirror`), for reading only.

mod accounts;
mod client;
pub mod forwarder;
mod message;
mod mirror;
mod model;
mod request;
mod server;
mod upstream;

#[cfg(test)]
mod mirror_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pointsman_core::relay::usage::SessionUsage;
use pointsman_core::relay::{CredentialName, ModelAccess};
use pointsman_core::sandbox::network::{Policy, Refusal};
use pointsman_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::phase_file;

pub use client::{ProxyDir, ensure_running};
pub use mirror::recognise;
pub use server::serve;

/// The socket inside the directory that a sandbox sees.
pub const SOCKET: &str = "proxy.sock";
/// The directory of a sandbox's socket, beside its policy.
const SHOWN: &str = "shown";
const POLICY: &str = "policy.json";
const REFUSED: &str = "refused.json";
const MODEL_ACCESS: &str = "model.json";
/// The budgets of all sessions.
const POOLS: &str = "pools.json";
/// The credentials of which the service wants nothing more for a while.
const LIMITED: &str = "limited.json";
/// The first line of a connection from the forwarder: the program that it is for.
const ASKED_BY: &str = "POINTSMAN-PROGRAM ";
/// How the name of a file with the usage of a session ends. It lies beside the directory of its sandbox, and stays after that
/// until the daemon has counted it.
const USAGE: &str = ".usage.json";
/// The socket on which the daemon speaks to the proxy.
const CONTROL: &str = "control.sock";
const LOCK: &str = "lock";

/// The credentials of which the service wants nothing more, with the end of the wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limited(pub BTreeMap<CredentialName, Timestamp>);

fn usage_file(sandbox: &str) -> String {
    format!("{sandbox}{USAGE}")
}

/// The usage of a session, as it lies in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptUsage {
    /// The name of its sandbox.
    pub sandbox: String,
    /// Whether the sandbox is there: nothing more is used if it is not.
    pub is_open: bool,
    pub usage: SessionUsage,
}

/// Destinations that a sandbox asked for in vain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused(pub BTreeMap<String, RefusedCount>);

impl Refused {
    /// Keeps them in a file; none are not kept.
    pub fn keep(&self, path: &Path) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        phase_file::write_state_file(path, &serde_json::to_vec(self)?)
    }

    /// Those that were kept in a file; none if it is not there.
    pub fn kept(path: &Path) -> Self {
        let text = fs::read(path).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

/// The number of refusals, with the reason of the first one and the program that asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCount {
    pub count: u64,
    pub why: Refusal,
    /// Its name, as the other end has found it out inside; whoever is inside can make others believe another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// The directory of one sandbox, below that of the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxDir(PathBuf);

impl SandboxDir {
    /// The directory of this name. Names become parts of paths.
    pub(crate) fn below(dir: &Path, name: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (!name.is_empty() && name.chars().all(plain)).then(|| Self(dir.join(name)))
    }

    /// The directory that the sandbox sees.
    pub fn shown(&self) -> PathBuf {
        self.0.join(SHOWN)
    }

    /// The destinations that it asked for in vain.
    pub fn refused(&self) -> Refused {
        Refused::kept(&self.0.join(REFUSED))
    }

    /// Its way to the model's API, if it has one.
    pub fn model_access(&self) -> Option<ModelAccess> {
        serde_json::from_slice(&fs::read(self.0.join(MODEL_ACCESS)).ok()?).ok()
    }

    fn policy(&self) -> io::Result<Policy> {
        Ok(serde_json::from_slice(&fs::read(self.0.join(POLICY))?)?)
    }
}
