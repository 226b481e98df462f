//! Reasons why a project is not registered, not read or not served.

use std::fmt::Display;
use std::path::Path;

use crate::ids::ProjectName;

/// A configuration file that is not read because of its size.
pub fn config_too_large(path: &Path) -> String {
    format!("{} is too large for a configuration file", path.display())
}

/// A file that the system does not let us read.
pub fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

/// A name that another checkout has, and how to free it.
pub fn name_is_taken(name: &ProjectName, config: &Path) -> String {
    format!(
        "a project called {name} is registered from {}; remove it first: pointsman project remove {name}",
        config.display()
    )
}

/// A registered project that cannot be opened, and why.
pub fn cannot_be_served(name: &ProjectName, why: impl Display) -> String {
    format!("project {name} is not served: {why}")
}

/// A changed file that is wrong, and what follows.
pub fn settings_refused(name: &ProjectName, why: impl Display) -> String {
    format!("project {name} goes on with its settings from before, because its file is wrong: {why}")
}

/// A project that was removed while something was done for it.
pub fn not_served_any_more() -> &'static str {
    "the project is no longer served"
}

/// A plain repository without an address.
pub fn no_repository() -> &'static str {
    "forge.url names no repository"
}
