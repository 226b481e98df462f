//! The answer to `phase read`.

use pointsman_core::task::Phase;
use serde::{Deserialize, Serialize};

/// The phase in a file, with the reason that stands below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    pub phase: Phase,
    pub reason: Option<String>,
}
