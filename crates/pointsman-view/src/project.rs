//! Projects and their configuration: `init`, `project …`, `config show`, `claude install`.

use std::path::PathBuf;

use pointsman_core::ids::ProjectName;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;

/// `init`: the project that was made of a checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub name: ProjectName,
    pub primary_branch: String,
    pub ci: Option<Vec<String>>,
    pub config_path: PathBuf,
    /// The embedded forge's repository; none if the forge is elsewhere.
    pub url: Option<PathBuf>,
    pub notes: Vec<String>,
}

/// A registered project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    pub name: ProjectName,
    pub config_path: PathBuf,
    pub checkout: PathBuf,
    pub added_at: Time,
    /// Why its configuration cannot be used.
    pub problem: Option<String>,
}

/// The answer to `project add` and `project remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    pub name: ProjectName,
}

/// A key of the configuration in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub key: String,
    pub value: Value,
    /// Where it was set; with `--origin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// `claude login` and `logout`: the login of the daemon's sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaudeLogin {
    /// Whether a token is kept.
    pub kept: bool,
    /// The variable that is used instead of it.
    pub variable: Option<String>,
}

/// `claude install` and `uninstall`: the directory whose settings were changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    pub dir: PathBuf,
    pub notes: Vec<String>,
}
