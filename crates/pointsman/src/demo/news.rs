//! News of the play: what a state alone does not tell, as one sentence when it happens.

use std::collections::BTreeMap;

use pointsman_core::task::{Exit, State};
use pointsman_core::vault::Status;

use super::people::{Filed, Part};
use super::watch::Seen;

/// What was told about a task so far.
#[derive(Clone, Debug, Default)]
struct Known {
    states: usize,
    /// How many of its sessions have ended.
    ended: usize,
    action: Option<Status>,
}

/// Remembers what was told, so that everything is told once.
#[derive(Debug, Default)]
pub(super) struct News {
    known: BTreeMap<Part, Known>,
}

impl News {
    /// The sentences about one task since the last look.
    pub(super) fn of(&mut self, filed: &Filed, seen: &Seen) -> Vec<String> {
        let known = self.known.entry(filed.part).or_default();
        let mut told = Vec::new();
        for session in seen.sessions.iter().skip(known.ended) {
            let Some(exit) = session.exit else { break };
            known.ended += 1;
            told.extend(ended(exit));
        }
        let first = known.states.saturating_sub(1);
        let pairs = seen.states.get(first..).unwrap_or_default().windows(2);
        told.extend(pairs.filter_map(|pair| moved(filed, pair[0], pair[1])));
        known.states = seen.states.len();
        if known.action != seen.action {
            known.action = seen.action;
            told.extend(seen.action.and_then(|status| acted(filed, status)));
        }
        told.iter().map(|text| format!("{} {text}", filed.part.label())).collect()
    }
}

fn ended(exit: Exit) -> Option<String> {
    match exit {
        Exit::Crashed => Some("was killed. A new session goes on in the same working tree".to_owned()),
        Exit::Handoff => {
            Some("has no context left. It saved its work, and a new session takes over".to_owned())
        }
        _ => None,
    }
}

fn moved(filed: &Filed, from: State, to: State) -> Option<String> {
    let text = match (from, to) {
        (State::AwaitingCi, State::Working) => "has a red CI. Its agent reads the log".to_owned(),
        (State::MergeQueue, State::Working) => {
            "conflicts with what landed before it. Its agent resolves that".to_owned()
        }
        (State::AwaitingReview, State::Working) => "got a review that asks for changes".to_owned(),
        (State::WaitingDependencies, State::Working | State::Backlog) => {
            "begins: the issue it depends on is closed".to_owned()
        }
        (_, State::Escalated) => match question(filed) {
            Some(question) => format!("asks a person: {question}"),
            None => "asks a person".to_owned(),
        },
        (_, State::Blocked) => "is blocked and waits for a person".to_owned(),
        _ => return None,
    };
    Some(text)
}

fn acted(filed: &Filed, status: Status) -> Option<String> {
    let action = filed.act.ends.fires?;
    match status {
        Status::Pending => Some(format!("wants {action}. The vault asks a person first")),
        Status::Fired => Some(format!("{action} was carried out, once")),
        _ => None,
    }
}

/// What the agent of a story asks.
fn question(filed: &Filed) -> Option<&'static str> {
    let lines = filed.act.script.iter().flat_map(|part| part.lines());
    lines.into_iter().find_map(|line| line.strip_prefix("phase escalate "))
}

#[cfg(test)]
mod tests {
    use pointsman_core::task::{Exit, State};

    use super::News;
    use crate::demo::people::{Filed, Part};
    use crate::demo::stories::STORIES;
    use crate::demo::watch::{Seen, SeenSession};

    fn filed(story: &str) -> Filed {
        let story = STORIES.iter().find(|s| s.name == story).unwrap();
        let part = Part { project: story.project, issue: 4 };
        Filed { part, story: story.name, act: &story.acts[0], after: None, order: story.order }
    }

    #[test]
    fn everything_is_told_once() {
        let (filed, mut news) = (filed("escalation"), News::default());
        let mut seen = Seen { states: vec![State::Working], ..Seen::default() };
        assert!(news.of(&filed, &seen).is_empty());
        seen.states.extend([State::Escalated, State::Working, State::AwaitingCi]);
        assert_eq!(news.of(&filed, &seen), ["shop #4 asks a person: What do bananas cost?"]);
        seen.states.push(State::Working);
        assert_eq!(news.of(&filed, &seen), ["shop #4 has a red CI. Its agent reads the log"]);
        assert!(news.of(&filed, &seen).is_empty());
    }

    #[test]
    fn a_killed_session_is_told_when_it_is_known_to_be_dead() {
        let (filed, mut news) = (filed("killed"), News::default());
        let alive = SeenSession { pid: Some(7), exit: None };
        let mut seen = Seen { sessions: vec![alive], ..Seen::default() };
        assert!(news.of(&filed, &seen).is_empty());
        seen.sessions = vec![SeenSession { exit: Some(Exit::Crashed), ..alive }, alive];
        assert!(news.of(&filed, &seen)[0].starts_with("shop #4 was killed."));
        assert!(news.of(&filed, &seen).is_empty());
    }
}
