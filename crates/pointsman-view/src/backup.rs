//! Copies of the databases: `backup …`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Time;

/// A file with a copy of every database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub path: PathBuf,
    /// None if it cannot be read.
    pub made_at: Option<Time>,
    pub bytes: u64,
    /// Whether the daemon made it. It removes the oldest of these.
    pub daily: bool,
    pub databases: Vec<Database>,
    /// Why it cannot be read.
    pub problem: Option<String>,
}

/// A database in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    /// Its place below the state directory.
    pub name: String,
    pub bytes: u64,
}

/// The answer to `restore`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    pub path: PathBuf,
    pub made_at: Time,
    pub databases: Vec<RestoredDatabase>,
}

/// A database that was put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredDatabase {
    /// Its place below the state directory.
    pub name: String,
    /// Where the one before is kept; null if there was none.
    pub kept: Option<PathBuf>,
}
