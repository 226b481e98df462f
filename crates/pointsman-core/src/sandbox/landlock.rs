//! The second wall: what a sandbox shows, once more as a list of rights below paths, for the kernel's Landlock.
//!
//! The mounts alone decide what is visible. These rights hold as well if a mount lets more through than it should. Names
//! of directories are not restricted: a right holds for everything below a path, and programs list the root.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Access, Plan};

/// A right to everything below a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beneath {
    pub path: PathBuf,
    pub right: Right,
}

/// The things that may be done below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// List directories.
    List,
    /// List, read and execute.
    Read,
    /// Read, and write to what is there: settings of processes.
    Change,
    /// Everything.
    Write,
}

impl Plan {
    /// The rights of everything that runs inside, from the same list as the mounts.
    pub fn rights(&self) -> Vec<Beneath> {
        let right = |path: &Path, right| Beneath { path: path.to_owned(), right };
        let mut rights = vec![
            right(Path::new("/"), Right::List),
            // The sandbox's own processes and devices, which bubblewrap makes.
            right(Path::new("/proc"), Right::Change),
            right(Path::new("/dev"), Right::Write),
        ];
        rights.extend(self.mounts.iter().filter_map(|mount| match mount.access {
            Access::Read => Some(right(&mount.path, Right::Read)),
            Access::Write | Access::Empty => Some(right(&mount.path, Right::Write)),
            // What a link leads to has a right of its own; what is hidden is read as empty.
            Access::Link(_) | Access::Hidden | Access::Covered => None,
        }));
        rights
    }
}
