//! Captured work: `rescue …`.

use std::path::PathBuf;

use pointsman_core::ids::{Number, Sha};
use serde::{Deserialize, Serialize};

use crate::Time;

/// Work that was captured. The last four fields are there where a command was asked for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rescue {
    #[serde(rename = "ref")]
    pub refname: String,
    /// `rescue` or `checkpoint`.
    pub kind: String,
    pub task: Option<Number>,
    pub session: Option<String>,
    pub at: Time,
    pub commit: Sha,
    pub files: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stat: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// The directory that the files were written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<PathBuf>,
    /// The command that makes it a branch of a checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}
