//! The daily digest for people.

use crate::ids::ProjectName;
use crate::task::Notice;

/// The most lines of one part.
const LINES: usize = 5;

/// The parts of a digest, a line for each thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    pub needs_you: Vec<String>,
    pub landed: Vec<String>,
    pub running: Vec<String>,
    pub waiting: Vec<String>,
    /// The cost of the day before, if any was told.
    pub cost: Option<String>,
}

/// The digest of a project; nothing if there is nothing to tell.
pub fn notice(project: &ProjectName, parts: &Parts) -> Option<Notice> {
    let Parts { needs_you, landed, running, waiting, cost } = parts;
    if [needs_you, landed, running, waiting].iter().all(|lines| lines.is_empty()) {
        return None;
    }
    let title = format!(
        "{project}: {} need you, {} landed, {} running, {} waiting",
        needs_you.len(),
        landed.len(),
        running.len(),
        waiting.len()
    );
    let mut body = Vec::new();
    for (heading, lines) in [
        (super::page::NEEDS_YOU, needs_you),
        (super::page::LANDED_TODAY, landed),
        (super::page::RUNNING, running),
        (super::page::WAITING, waiting),
    ] {
        if lines.is_empty() {
            continue;
        }
        body.push(format!("{heading}:"));
        body.extend(lines.iter().take(LINES).map(|line| format!("  {line}")));
        if lines.len() > LINES {
            body.push(format!("  {}", super::page::more(lines.len() - LINES, "pointsman status")));
        }
    }
    body.extend(cost.as_ref().map(|cost| format!("Cost of the last day: {cost}")));
    Some(Notice { title, body: body.join("\n"), urgent: false, repeat: 0 })
}

#[cfg(test)]
mod tests {
    use super::{Parts, notice};
    use crate::ids::ProjectName;

    #[test]
    fn a_digest_has_all_parts_and_is_not_sent_if_they_are_empty() {
        let shop = ProjectName::new("shop").unwrap();
        assert_eq!(notice(&shop, &Parts { cost: Some("1 USD".into()), ..Parts::default() }), None);
        let many = |word: &str, count: usize| vec![word.to_owned(); count];
        let parts = Parts {
            needs_you: many("review", 1),
            landed: many("landed", 7),
            running: many("runs", 2),
            waiting: Vec::new(),
            cost: Some("1.27 USD".to_owned()),
        };
        let notice = notice(&shop, &parts).unwrap();
        assert_eq!(notice.title, "shop: 1 need you, 7 landed, 2 running, 0 waiting");
        assert!(!notice.urgent, "quiet hours hold for it");
        assert!(notice.body.starts_with("Needs you:\n  review\n"), "{}", notice.body);
        assert!(notice.body.contains("  and 2 more: pointsman status\n"), "{}", notice.body);
        assert!(!notice.body.contains("Waiting:") && notice.body.ends_with("1.27 USD"), "{}", notice.body);
    }
}
