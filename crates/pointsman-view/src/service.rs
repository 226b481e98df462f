//! The daemon as a service of the user's systemd: `service status`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The unit, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// The file of the unit, whether it is there or not.
    pub unit: PathBuf,
    pub installed: bool,
    pub enabled: bool,
    pub active: bool,
    /// Whether it goes on after the user has logged out.
    pub lingers: bool,
}
