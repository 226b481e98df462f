//! The board: which column an issue stands in.

use crate::labels::{self, BACKLOG, BLOCKED, IN_PROGRESS, UNDERSPECIFIED};

/// The columns, from an idea to its end.
pub const COLUMNS: [&str; 8] =
    ["vision", "prediction", "tech-debt", "backlog", "action", "in-progress", "blocked", "other"];

/// The column of an issue with these labels. What needs attention counts before where it came from.
pub fn column(labels: &[String]) -> &'static str {
    let has = |label: &str| labels::has(labels, label);
    if has(BLOCKED) || has(UNDERSPECIFIED) {
        "blocked"
    } else if has(IN_PROGRESS) {
        "in-progress"
    } else if has("action") {
        "action"
    } else if has(BACKLOG) {
        "backlog"
    } else if labels.iter().any(|label| label.starts_with("prediction/")) {
        "prediction"
    } else if has("tech-debt") {
        "tech-debt"
    } else if has("vision") {
        "vision"
    } else {
        "other"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issue_stands_in_one_column() {
        let cases: [(&[&str], &str); 9] = [
            (&[], "other"),
            (&["backlog"], "backlog"),
            (&["backlog", "blocked"], "blocked"),
            (&["underspecified"], "blocked"),
            (&["in-progress", "tech-debt"], "in-progress"),
            (&["tech-debt", "backlog"], "backlog"),
            (&["prediction/unreviewed"], "prediction"),
            (&["prediction/actioned", "action"], "action"),
            (&["vision", "something else"], "vision"),
        ];
        for (labels, wanted) in cases {
            let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            assert_eq!(column(&labels), wanted, "{labels:?}");
            assert!(COLUMNS.contains(&column(&labels)));
        }
        for (name, ..) in labels::ALL {
            assert_ne!(column(&[name.to_owned()]), "other", "{name} has a column");
        }
    }
}
