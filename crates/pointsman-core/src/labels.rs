//! The labels that carry an issue through its life.

/// Queued for implementation.
pub const BACKLOG: &str = "backlog";
/// Claimed by us.
pub const IN_PROGRESS: &str = "in-progress";
/// Stuck; a comment on the issue says why.
pub const BLOCKED: &str = "blocked";
/// Refused as too large or too vague.
pub const UNDERSPECIFIED: &str = "underspecified";

/// Whether `labels` holds `label`.
pub fn has(labels: &[String], label: &str) -> bool {
    labels.iter().any(|l| l == label)
}
