//! The end: what happened in each story, for people and for scripts.

use std::time::Duration;

use pointsman_view::demo::{Demo, Task};

use super::ink::{BAD, GOOD, Line, PLAIN, QUIET, STRONG};
use super::people::Filed;
use super::verdict::{Facts, way};

/// One task with its end.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) filed: Filed,
    /// What is true of it.
    pub(super) facts: Facts,
    /// What is otherwise than the story says.
    pub(super) differences: Vec<String>,
}

/// The whole play.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) played: Vec<Played>,
    /// What went wrong beside the tasks.
    pub(super) troubles: Vec<String>,
    pub(super) took: Duration,
}

impl Board {
    /// Whether everything went as the stories say.
    pub(super) fn ok(&self) -> bool {
        self.troubles.is_empty() && self.played.iter().all(|p| p.differences.is_empty())
    }

    /// For scripts.
    pub(super) fn view(&self) -> Demo {
        let task = |played: &Played| Task {
            issue: played.filed.part.issue,
            project: played.filed.part.project.to_owned(),
            title: played.filed.act.title.to_owned(),
            story: played.filed.story.to_owned(),
            outcome: played.facts.outcome().to_owned(),
            sessions: played.facts.sessions,
            ci_runs: played.facts.ci_runs,
            pr: played.facts.pr,
            states: played.facts.states.clone(),
            differences: played.differences.clone(),
        };
        Demo {
            ok: self.ok(),
            seconds: (self.took.as_secs_f64() * 10.0).round() / 10.0,
            tasks: self.played.iter().map(task).collect(),
            troubles: self.troubles.clone(),
        }
    }

    /// For people.
    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines = vec![Line::new()];
        for played in &self.played {
            lines.extend(played.lines());
        }
        lines.push(Line::new());
        for trouble in &self.troubles {
            lines.push(Line::new().then(BAD, "✗ ").then(PLAIN, trouble));
        }
        let seconds = format!(" {} tasks, {:.1} s", self.played.len(), self.took.as_secs_f64());
        lines.push(if self.ok() {
            Line::new().then(GOOD.bold(), "Everything went as the stories say:").then(PLAIN, seconds)
        } else {
            Line::new()
                .then(BAD.bold(), "Something went otherwise than the stories say:")
                .then(PLAIN, seconds)
        });
        lines
    }
}

impl Played {
    fn lines(&self) -> Vec<Line> {
        let Self { filed, facts, differences } = self;
        let (style, mark) = if differences.is_empty() { (GOOD, "✓") } else { (BAD, "✗") };
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let ci_runs = usize::try_from(facts.ci_runs).unwrap_or(usize::MAX);
        let head = Line::new()
            .then(style, format!("{mark} "))
            .column(STRONG, filed.story, 17)
            .column(PLAIN, &format!("#{}", filed.part.issue), 3)
            .column(style, facts.outcome(), 8)
            .column(PLAIN, &count(facts.sessions, "session"), 10)
            .column(PLAIN, &count(ci_runs, "CI run"), 9)
            .column(PLAIN, &facts.pr.map_or("no PR".to_owned(), |pr| format!("PR #{pr}")), 6)
            .then(PLAIN, filed.act.title);
        let mut lines = vec![head, Line::new().then(QUIET, format!("    {}", way(&facts.states)))];
        lines.extend(differences.iter().map(|d| Line::new().then(BAD, format!("    {d}"))));
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pointsman_core::task::State;
    use serde_json::json;

    use super::{Board, Facts, Filed, Played};
    use crate::demo::ink::Ink;
    use crate::demo::people::Part;
    use crate::demo::stories::STORIES;

    fn board(differences: Vec<String>) -> Board {
        let act = &STORIES[0].acts[0];
        let facts = Facts {
            state: Some(State::Closed),
            states: vec![State::Backlog, State::Closed],
            on_main: true,
            sessions: 1,
            ci_runs: 2,
            pr: Some(9),
            ..Facts::default()
        };
        let part = Part { project: "shop", issue: 1 };
        let filed = Filed { part, story: "clean", act, after: None, order: STORIES[0].order };
        let played = vec![Played { filed, facts, differences }];
        Board { played, troubles: Vec::new(), took: Duration::from_millis(12_345) }
    }

    #[test]
    fn scripts_find_what_was_promised_to_them() {
        let value = serde_json::to_value(board(Vec::new()).view()).unwrap();
        assert_eq!(value["ok"], json!(true));
        assert_eq!(value["seconds"], json!(12.3));
        let task = &value["tasks"][0];
        assert_eq!(task["issue"], json!(1));
        assert_eq!(task["title"], json!("Add the price of apples"));
        assert_eq!(task["story"], json!("clean"));
        assert_eq!(task["outcome"], json!("merged"));
        assert_eq!(task["sessions"], json!(1));
        assert_eq!(task["pr"], json!(9));
        assert_eq!(task["states"], json!(["backlog", "closed"]));
        assert!(!board(vec!["it is not".to_owned()]).view().ok);
    }

    #[test]
    fn people_see_what_happened_and_what_is_otherwise() {
        let text = |board: &Board| {
            let lines: Vec<String> = board.lines().iter().map(|l| l.render(Ink::Black, 200)).collect();
            lines.join("\n")
        };
        let good = text(&board(Vec::new()));
        assert!(good.contains("✓ clean"), "{good}");
        assert!(good.contains("merged    1 session   2 CI runs  PR #9"), "{good}");
        assert!(good.contains("backlog → closed"), "{good}");
        assert!(good.contains("Everything went as the stories say: 1 tasks, 12.3 s"), "{good}");
        let bad = text(&board(vec!["it has no pull request".to_owned()]));
        assert!(bad.contains("✗ clean") && bad.contains("    it has no pull request"), "{bad}");
        assert!(bad.contains("Something went otherwise"), "{bad}");
    }
}
