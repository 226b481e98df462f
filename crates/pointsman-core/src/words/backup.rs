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

/// Whoever reads the log of a daemon whose database was restored.
pub const fn reconciled_first() -> &'static str {
    "a database is older than what it describes: nothing is done until git and the forge were looked at"
}

/// An issue of a restored forge.
pub const fn landed_already() -> &'static str {
    "the issue is closed: its work is on the main branch"
}

/// An agent that nobody knows.
pub const fn unrecorded() -> &'static str {
    "an agent of which there is no record is ended; its working tree stays"
}

/// A daemon runs, and has the databases open.
pub const STOP_FIRST: &str = "the daemon runs; run `pointsman down` first";

/// A name that is none of the databases of a backup.
pub fn not_in_it(name: &str, there: &[String]) -> String {
    format!("the backup has no {name}, only {}", there.join(", "))
}

/// A database was put back.
pub fn restored(name: &str, kept: Option<&Path>) -> String {
    match kept {
        Some(kept) => format!("Restored {name}; the one before is {}", kept.display()),
        None => format!("Restored {name}"),
    }
}

/// What comes next.
pub const AND_NOW: &str =
    "The next `pointsman up` compares everything with git and the forge before it does anything.";
