//! Failures of commands, on standard error.

use serde::{Deserialize, Serialize};

/// The reason why a command failed, and a hint at what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub error: String,
    pub hint: Option<String>,
}
