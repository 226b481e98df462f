//! The labels that carry an issue through its life.

use crate::words;

/// Queued for implementation.
pub const BACKLOG: &str = "backlog";
/// Claimed by us.
pub const IN_PROGRESS: &str = "in-progress";
/// Stuck; a comment on the issue says why.
pub const BLOCKED: &str = "blocked";
/// Refused as too large or too vague.
pub const UNDERSPECIFIED: &str = "underspecified";

/// An operational task.
pub const ACTION: &str = "action";
/// Found by a review, older than the change.
pub const TECH_DEBT: &str = "tech-debt";

/// A goal.
pub const VISION: &str = "vision";
/// A prediction that nobody has judged yet.
pub const UNREVIEWED: &str = "prediction/unreviewed";
/// A prediction that is watched.
pub const WATCHED: &str = "prediction/backlog";
/// A prediction that was promoted or dismissed.
pub const ACTIONED: &str = "prediction/actioned";

/// Every label we know: its name, its colour and what it means.
pub const ALL: [(&str, &str, &str); 10] = [
    (BACKLOG, "#0075ca", words::labels::BACKLOG),
    (IN_PROGRESS, "#fbca04", words::labels::IN_PROGRESS),
    (BLOCKED, "#b60205", words::labels::BLOCKED),
    (UNDERSPECIFIED, "#d876e3", words::labels::UNDERSPECIFIED),
    (TECH_DEBT, "#c5def5", words::labels::TECH_DEBT),
    (VISION, "#5319e7", words::labels::VISION),
    (UNREVIEWED, "#bfdadc", words::labels::UNREVIEWED),
    (WATCHED, "#bfd4f2", words::labels::WATCHED),
    (ACTIONED, "#c2e0c6", words::labels::ACTIONED),
    (ACTION, "#f9d0c4", words::labels::ACTION),
];

/// Colour and description of a label; a plain grey for one we do not know.
pub fn look(name: &str) -> (&'static str, &'static str) {
    let known = ALL.iter().find(|(known, ..)| *known == name);
    known.map_or(("#ededed", ""), |(_, colour, description)| (*colour, *description))
}

/// Whether `labels` holds `label`.
pub fn has(labels: &[String], label: &str) -> bool {
    labels.iter().any(|l| l == label)
}

#[cfg(test)]
mod tests {
    use super::{ALL, BACKLOG, look};

    #[test]
    fn every_label_has_a_colour_of_its_own() {
        let mut colours: Vec<&str> = ALL.iter().map(|(_, colour, _)| *colour).collect();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), ALL.len());
        assert!(ALL.iter().all(|(_, colour, _)| colour.len() == 7 && colour.starts_with('#')));
        assert_eq!(look(BACKLOG).1, "Queued for implementation");
        assert_eq!(look("unknown"), ("#ededed", ""));
    }
}
