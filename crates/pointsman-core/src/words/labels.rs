//! Descriptions of our labels, as the forge shows them beside the name.

pub const BACKLOG: &str = "Queued for implementation";
pub const IN_PROGRESS: &str = "An agent is working on it";
pub const BLOCKED: &str = "Stuck; a comment explains why";
pub const UNDERSPECIFIED: &str = "Too large or too vague for one task";
pub const TECH_DEBT: &str = "Found by a review, but older than the change";
pub const VISION: &str = "A goal";
pub const UNREVIEWED: &str = "A prediction that nobody has judged yet";
pub const WATCHED: &str = "A prediction that is watched";
pub const ACTIONED: &str = "A prediction that was decided";
pub const ACTION: &str = "An operational task";
