//! `sandbox show`: what a session sees, and its limits.

use std::path::PathBuf;

use pointsman_core::role::Role;
use pointsman_core::sandbox::{self, Limits};
use pointsman_core::words;
use serde::{Deserialize, Serialize};

use crate::evidence::CheckStatus;

/// The sandbox of a role's sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    pub role: Role,
    pub place: Place,
    /// The reason why it is not inside.
    pub why: Option<String>,
    pub fix: Option<String>,
    /// Empty if it is not inside.
    pub mounts: Vec<Mount>,
    pub network: String,
    /// Destinations that a session may reach.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Package registries that a session reads, such as `npm+https://packages.example.org/`.
    #[serde(default)]
    pub registries: Vec<String>,
    /// Destinations that CI, gates and review programs may reach.
    #[serde(default)]
    pub ci_hosts: Vec<String>,
    /// Package registries that they read.
    #[serde(default)]
    pub ci_registries: Vec<String>,
    /// Destinations that may have an address that is not public.
    #[serde(default)]
    pub private_hosts: Vec<String>,
    /// Whether system calls that no build needs are refused.
    #[serde(default)]
    pub syscall_filter: bool,
    /// The version of the kernel's Landlock, if it restricts what runs inside.
    #[serde(default)]
    pub landlock: Option<u32>,
    pub limits: Vec<Limit>,
}

/// The outcome of a run of CI that was to show which hosts it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    pub ci: CheckStatus,
    /// The hosts that it asked for and that nobody had listed.
    pub hosts: Vec<String>,
    /// Whether CI and gates may reach them from now on.
    pub allowed: bool,
    /// The log of the run, if it was not green.
    pub log_path: Option<PathBuf>,
}

/// The side of the sandbox on which sessions of the role run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    Inside,
    Outside,
    Refused,
}

/// One place inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub path: PathBuf,
    pub access: String,
    pub why: String,
}

impl From<&sandbox::Mount> for Mount {
    fn from(mount: &sandbox::Mount) -> Self {
        let why = words::sandbox::purpose(mount.why).to_owned();
        Self { path: mount.path.clone(), access: mount.access.as_str().to_owned(), why }
    }
}

/// A limit and what enforces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    pub name: String,
    /// Processes or bytes; none for no limit.
    pub value: Option<u64>,
    pub enforced_by: String,
}

/// All limits of a sandbox. The kernel exempts root from one of them.
pub fn limits(limits: &Limits, is_root: bool) -> Vec<Limit> {
    let limit = |name: &str, value, enforced_by: &str| Limit {
        name: name.to_owned(),
        value,
        enforced_by: enforced_by.to_owned(),
    };
    vec![
        limit("processes", limits.processes.map(u64::from), words::sandbox::processes_enforced(is_root)),
        limit("memory", limits.memory, words::sandbox::MEMORY_ENFORCED),
        limit("disk", limits.disk, words::sandbox::DISK_ENFORCED),
    ]
}
