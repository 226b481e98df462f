//! Backups of the databases.

use std::path::Path;

/// An old backup that is still there.
pub fn not_removed(path: &Path) -> String {
    format!("{} could not be removed", path.display())
}

/// There is nothing to copy.
pub const NOTHING: &str = "there is no database yet";

/// The file is there already.
pub fn taken(path: &Path) -> String {
    format!("{} exists", path.display())
}

/// A backup was made.
pub fn made(path: &Path, databases: usize, size: &str) -> String {
    let databases = if databases == 1 { "1 database".to_owned() } else { format!("{databases} databases") };
    format!("Backed up {databases} ({size}) to {}", path.display())
}

/// The age of the newest backup, and its place.
pub fn newest(hours: u64, path: &Path) -> String {
    let age = match hours {
        0 => "less than an hour".to_owned(),
        1 => "an hour".to_owned(),
        2..48 => format!("{hours} hours"),
        48.. => format!("{} days", hours / 24),
    };
    format!("the newest is {age} old: {}", path.display())
}

/// None was made yet.
pub const NONE: &str = "none yet; the daemon makes one a day";
