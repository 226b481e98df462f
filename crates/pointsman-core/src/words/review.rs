//! What the review agent reads, and what it posts.

/// Why an older request for changes is taken back.
pub const WITHDRAWN: &str = "The changes were made.";
