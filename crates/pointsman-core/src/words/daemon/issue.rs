//! Reasons why an issue is not ours to work on, and why its labels are not set.

use crate::text::clean_line;

/// An issue that is not at the forge.
pub fn no_such_issue() -> &'static str {
    "there is no such issue"
}

/// An issue that was closed before it was claimed.
pub fn closed() -> &'static str {
    "the issue is closed"
}

/// An issue that is somebody else's.
pub fn assigned_to(login: &str) -> String {
    format!("the issue is assigned to {}", clean_line(login, 80))
}

/// An issue that is labelled `in-progress` and assigned to nobody.
pub fn in_progress_elsewhere() -> &'static str {
    "somebody else has it in progress"
}

/// Labels that the forge did not take over as they were set.
pub fn labels_read_back(labels: &[String]) -> String {
    format!("the labels read back as {labels:?}")
}
