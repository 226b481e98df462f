//! The server's messages, as far as we read them.

use std::fmt;

use pointsman_core::base64;
use serde::{Deserialize, Serialize};

/// The state of a pipeline, a workflow or a step, in the server's own words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Made, not queued yet.
    Created,
    Pending,
    Running,
    Success,
    Failure,
    /// Ended by somebody or by the server.
    Killed,
    /// The same, in newer versions.
    Canceled,
    /// Not even begun: its configuration is wrong.
    Error,
    Blocked,
    /// Did not get it.
    Declined,
    /// Not run.
    Skipped,
    /// Something this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Status {
    /// The word scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Killed => "killed",
            Self::Canceled => "canceled",
            Self::Error => "error",
            Self::Blocked => "blocked",
            Self::Declined => "declined",
            Self::Skipped => "skipped",
            Self::Unknown => "unknown",
        }
    }

    /// Whether it is over, and not well.
    pub fn is_red(self) -> bool {
        match self {
            Self::Failure | Self::Killed | Self::Canceled | Self::Error | Self::Declined => true,
            Self::Created
            | Self::Pending
            | Self::Running
            | Self::Success
            | Self::Blocked
            | Self::Skipped
            | Self::Unknown => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A pipeline: one run for one event.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pipeline {
    /// Its number in the repository.
    pub number: u64,
    /// The one it is another run of; 0 if it is the first.
    pub parent: u64,
    /// What caused it: `push`, `pull_request`, `cron` …
    pub event: String,
    pub status: Status,
    pub commit: String,
    pub branch: String,
    pub message: String,
    /// When it was made, in seconds.
    pub created: i64,
    /// When it ended, in seconds; 0 before.
    pub finished: i64,
    /// What is wrong with its configuration.
    #[serde(deserialize_with = "or_empty")]
    pub errors: Vec<ConfigError>,
    #[serde(deserialize_with = "or_empty")]
    pub workflows: Vec<Workflow>,
}

/// Something wrong with a pipeline's configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigError {
    pub message: String,
    /// Whether it runs all the same.
    pub is_warning: bool,
}

/// A workflow: a file of the configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Workflow {
    pub name: String,
    pub state: Status,
    /// What went wrong with it as a whole.
    pub error: String,
    #[serde(deserialize_with = "or_empty")]
    pub children: Vec<Step>,
}

/// One step of a workflow, the unit that has a log of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// The number its log is found by.
    pub id: u64,
    /// Its place in the pipeline, as people see it.
    pub pid: u64,
    pub name: String,
    pub state: Status,
    pub exit_code: i32,
    /// What went wrong beside that.
    pub error: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Repo {
    pub(super) id: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Version {
    pub(super) version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LogLine {
    pub(super) line: i64,
    data: Data,
}

/// Bytes, as Go writes them, or as the description says.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Data {
    Base64(String),
    Bytes(Vec<u8>),
    Nothing(()),
}

impl Default for Data {
    fn default() -> Self {
        Self::Nothing(())
    }
}

impl LogLine {
    pub(super) fn text(&self) -> String {
        let bytes = match &self.data {
            Data::Base64(text) => base64::decode(text),
            Data::Bytes(bytes) => bytes.clone(),
            Data::Nothing(()) => Vec::new(),
        };
        String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned()
    }
}

fn or_empty<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(from).map(Option::unwrap_or_default)
}
