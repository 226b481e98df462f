//! Rows that several pages show: questions and tasks in words, with a tone and a shape for each state.

use pointsman_core::part::question::{Kind, Urgency};
use pointsman_core::task::State;
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_view::inbox::Question;
use pointsman_view::status::{Landed, Pending};

/// The longest subject or title in a row.
const TITLE_CHARS: usize = 200;

/// A question in a list.
#[derive(Clone)]
pub(super) struct QuestionRow {
    pub(super) tone: &'static str,
    pub(super) glyph: &'static str,
    pub(super) kind: String,
    pub(super) about: String,
    pub(super) subject: String,
    pub(super) facts: String,
    pub(super) age: String,
    pub(super) holds_up: String,
    pub(super) href: String,
    pub(super) button: &'static str,
    pub(super) is_current: bool,
}

/// A task in a list.
pub(super) struct TaskRow {
    pub(super) about: String,
    pub(super) title: String,
    pub(super) tone: &'static str,
    pub(super) state: String,
    pub(super) wait: String,
    pub(super) age: String,
}

impl QuestionRow {
    pub(super) fn new(asked: &Question, now: Timestamp) -> Self {
        let (glyph, button) = look_of(asked.kind);
        let mut facts = vec![words::question::heading(asked.kind).to_owned()];
        facts.extend(asked.lines.map(words::page::lines));
        facts.extend(asked.expires_at.map(|at| format!("expires in {}", words::rough(at.0.since(now)))));
        let held_up = usize::try_from(asked.holds_up).unwrap_or(usize::MAX);
        Self {
            tone: match asked.kind.traits().urgency {
                Urgency::Endangers => "bad",
                Urgency::HoldsUp | Urgency::Costs | Urgency::CanWait => "you",
            },
            glyph,
            kind: label(asked.kind.as_str()),
            about: about(asked),
            subject: clean_line(&asked.subject, TITLE_CHARS),
            facts: facts.join(" · "),
            age: words::rough(now.since(asked.asked_at.0)),
            holds_up: match held_up {
                0 => String::new(),
                count => format!("holds up {}", words::page::other_tasks(count)),
            },
            href: asked.id.map_or_else(|| "/inbox".to_owned(), |id| format!("/inbox/{id}")),
            button,
            is_current: false,
        }
    }
}

impl TaskRow {
    pub(super) fn new(task: &Pending, now: Timestamp) -> Self {
        Self {
            about: format!("{} #{}", task.project, task.issue),
            title: clean_line(&task.title, TITLE_CHARS),
            tone: tone_of(task.state),
            state: label(&task.state.to_string()),
            wait: task.waiting_for.as_deref().map(|wait| clean_line(wait, TITLE_CHARS)).unwrap_or_default(),
            age: words::rough(now.since(task.since.0)),
        }
    }

    pub(super) fn landed(landed: &Landed, now: Timestamp) -> Self {
        let number = landed.issue.or(landed.pr).map(|number| format!(" #{number}")).unwrap_or_default();
        Self {
            about: format!("{}{number}", landed.project),
            title: clean_line(&landed.title, TITLE_CHARS),
            tone: "ok",
            state: String::new(),
            wait: String::new(),
            age: format!("{} ago", words::rough(now.since(landed.at.0))),
        }
    }
}

/// The thing that a question is about: `shop #7`.
pub(super) fn about(asked: &Question) -> String {
    match asked.issue.or(asked.pr) {
        Some(number) => format!("{} #{number}", asked.project),
        None => asked.project.to_string(),
    }
}

/// A name of the surface as a person reads it: `queue_paused` is `Queue paused`.
pub(super) fn label(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut chars = words.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn look_of(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Review | Kind::HandIn => ("k-review", "Review"),
        Kind::Question | Kind::Choice => ("s-ask", "Answer"),
        Kind::Approval | Kind::Trust | Kind::HostAccess | Kind::Plan | Kind::Gate | Kind::Filing => {
            ("k-approval", "Decide")
        }
        Kind::Refused => ("k-refused", "Decide"),
        Kind::Blocked
        | Kind::Conflict
        | Kind::MainRed
        | Kind::Alarm
        | Kind::Disk
        | Kind::Setup
        | Kind::Unreadable
        | Kind::HostLost => ("s-bad", "See why"),
        Kind::QueuePaused
        | Kind::Secret
        | Kind::Budget
        | Kind::Orphan
        | Kind::ServiceDown
        | Kind::NotifierDown
        | Kind::Upgrade
        | Kind::Starved => ("s-you", "Decide"),
    }
}

fn tone_of(state: State) -> &'static str {
    match state {
        State::Working => "run",
        State::Backlog
        | State::WaitingDependencies
        | State::AwaitingCi
        | State::AwaitingReview
        | State::MergeQueue => "wait",
        State::Escalated | State::Refused => "you",
        State::Blocked => "bad",
        State::Paused | State::Closed => "off",
        State::Merged => "ok",
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn names_are_read_as_words() {
        assert_eq!(label("queue_paused"), "Queue paused");
        assert_eq!(label("review"), "Review");
        assert_eq!(label(""), "");
    }
}
