//! A question: something that only a person can settle.
//!
//! It is embedded in the snapshot of the workflow that asks, its owner, and the store keeps a copy with the same commit, so
//! that all questions can be listed. An answer names a question by its number, comes in its thread, or stands under its
//! comment. It counts once: whoever is second learns who was first.
//!
//! `kind` has the closed list of kinds, `order` the order of the inbox. The owner decides what follows from an answer; the sentences are in
//! [`crate::words::question`].

mod kind;
mod order;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use kind::{Act, Expiry, Kind, Traits, Urgency};
pub use order::{Ranked, order};

use crate::concern::About;
use crate::ids::{Number, ProjectName};
use crate::run::RunId;
use crate::text::{clean_block, clean_line};
use crate::time::Timestamp;
use crate::vault::ActionId;
use crate::words;
use crate::workflow::Refused;

/// Longest subject.
const SUBJECT_CHARS: usize = 200;
/// Longest body, and longest answer that is kept.
const BODY_BYTES: usize = 16 << 10;
/// Longest name of a person.
const NAME_CHARS: usize = 100;
/// A deadline that is noticed this long after it has passed was slept through: somebody who is awake looks every second.
const SLEPT: Duration = Duration::from_secs(60);

/// The number of a question, unique over all projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(pub u64);

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The workflow that asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Owner {
    /// A task, by its issue.
    Task(Number),
    Run(RunId),
    Vault(ActionId),
    /// A condition of the project that nobody else owns.
    Concern(About),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(issue) => write!(f, "task/{issue}"),
            Self::Run(run) => write!(f, "run/{run}"),
            Self::Vault(action) => write!(f, "vault/{action}"),
            Self::Concern(about) => write!(f, "concern/{about}"),
        }
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> Self {
        owner.to_string()
    }
}

impl TryFrom<String> for Owner {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = || match text.split_once('/')? {
            ("task", issue) => issue.parse().ok().map(Self::Task),
            ("run", run) => run.parse().ok().map(RunId).map(Self::Run),
            ("vault", action) => ActionId::try_from(action.to_owned()).ok().map(Self::Vault),
            ("concern", about) => About::new(about).map(Self::Concern),
            _ => None,
        };
        read().ok_or_else(|| words::parse::not_an_owner(&text))
    }
}

/// The place that a question comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub project: ProjectName,
    pub owner: Owner,
    /// The issue that it is about. A comment there can be an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr: Option<Number>,
    /// The session that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// The part of the work that made somebody ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Agent,
    /// CI did not answer, or its infrastructure failed again.
    Ci,
    Review,
    /// CI or the gate was refused hosts.
    Hosts,
    /// The working tree could not be set up.
    Setup,
    /// The agent shows its plan before it works.
    Plan,
    /// It conflicts with the main branch again and again.
    Conflict,
    /// Something else the daemon could not settle.
    Daemon,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its number. The one writer gives it out in the commit that asks, so only a question on its way there has none.
    pub id: Option<QuestionId>,
    pub kind: Kind,
    pub cause: Cause,
    pub source: Source,
    /// The question in one line.
    pub subject: String,
    /// The question in full, if there is more to it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    pub asked_at: Timestamp,
    /// How often it was asked.
    pub notices: u32,
    /// When people are told again.
    pub remind_at: Option<Timestamp>,
    /// When its owner goes on without an answer.
    pub expires_at: Option<Timestamp>,
    /// The mark of the comment that asks it on the forge. What stands under that comment is an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
}

/// The end of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// The person who settled it; nobody if it ended by itself.
    pub by: Option<String>,
    pub at: Timestamp,
    #[serde(flatten)]
    pub how: Settlement,
}

/// The way in which a question ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Settlement {
    Approved,
    Rejected {
        reason: String,
    },
    Answered {
        text: String,
    },
    Dismissed,
    /// Nobody answered in time.
    Expired,
    /// Its cause went away.
    Withdrawn {
        why: String,
    },
}

/// The numbers that questions are handled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// People are told again this often.
    pub remind: Duration,
    /// A question of a kind that expires is over after this long.
    pub timeout: Duration,
}

/// A fact about a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    Approved {
        by: &'a str,
    },
    Rejected {
        by: &'a str,
        reason: &'a str,
    },
    Answered {
        by: &'a str,
        text: &'a str,
    },
    Dismissed {
        by: &'a str,
    },
    /// There is nothing to ask any more.
    CauseGone {
        why: &'a str,
    },
    TimePassed,
}

/// The work that time brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Nothing,
    Reminder,
    Expiry,
}

impl Question {
    /// Asks. The first notice goes out with it.
    pub fn ask(
        kind: Kind,
        cause: Cause,
        source: Source,
        text: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> Self {
        let subject = clean_line(text, SUBJECT_CHARS);
        let body = clean_block(text, BODY_BYTES);
        let traits = kind.traits();
        Self {
            id: None,
            kind,
            cause,
            source,
            body: if body.trim() == subject { String::new() } else { body },
            subject,
            asked_at: now,
            notices: 1,
            remind_at: traits.reminds.then(|| now.after(policy.remind)),
            expires_at: match traits.expiry {
                Expiry::Never => None,
                Expiry::AfterTimeout => Some(now.after(policy.timeout)),
            },
            comment: None,
            settled: None,
        }
    }

    /// The question in full.
    pub fn text(&self) -> &str {
        if self.body.is_empty() { &self.subject } else { &self.body }
    }

    /// Whether nobody has settled it.
    pub fn is_open(&self) -> bool {
        self.settled.is_none()
    }

    /// The next moment at which time alone changes something about it.
    pub fn wake_at(&self) -> Option<Timestamp> {
        match self.is_open() {
            true => [self.remind_at, self.expires_at].into_iter().flatten().min(),
            false => None,
        }
    }

    /// The work that is due. Both deadlines go by the clock on the wall, so both may have passed while the machine slept:
    /// then the reminder comes first, because nobody can answer what nobody was told. A clock that was set back makes
    /// nothing due.
    pub fn due(&self, now: Timestamp) -> Due {
        let passed = |at: Option<Timestamp>| at.filter(|at| self.is_open() && *at <= now);
        match (passed(self.remind_at), passed(self.expires_at)) {
            (None, None) => Due::Nothing,
            (Some(_), None) => Due::Reminder,
            (None, Some(_)) => Due::Expiry,
            (Some(reminder), Some(expiry)) if reminder < expiry && slept_through(expiry, now) => {
                Due::Reminder
            }
            (Some(_), Some(_)) => Due::Expiry,
        }
    }

    /// Applies an event.
    pub fn step(&self, event: &Event<'_>, policy: &Policy, now: Timestamp) -> Result<Self, Refused> {
        if let Some(settled) = &self.settled {
            return Err(Refused::NotNow(words::question::already_settled(self.id, settled, now)));
        }
        let line = |text: &str| clean_line(text, SUBJECT_CHARS);
        match event {
            Event::Approved { by } => self.decided(Act::Approve, by, Settlement::Approved, now),
            Event::Rejected { by, reason } => {
                self.decided(Act::Reject, by, Settlement::Rejected { reason: line(reason) }, now)
            }
            Event::Answered { by, text } => {
                let text = clean_block(text, BODY_BYTES);
                self.decided(Act::Answer, by, Settlement::Answered { text }, now)
            }
            Event::Dismissed { by } => self.decided(Act::Dismiss, by, Settlement::Dismissed, now),
            Event::CauseGone { why } => Ok(self.settled(None, Settlement::Withdrawn { why: line(why) }, now)),
            Event::TimePassed => match self.due(now) {
                Due::Nothing => Err(Refused::NotNow(words::question::NOTHING_IS_DUE.to_owned())),
                Due::Reminder => Ok(self.reminded(policy, now)),
                Due::Expiry => Ok(self.settled(None, Settlement::Expired, now)),
            },
        }
    }

    fn decided(&self, act: Act, by: &str, how: Settlement, now: Timestamp) -> Result<Self, Refused> {
        match self.kind.takes(act) {
            true => Ok(self.settled(Some(by), how, now)),
            false => Err(Refused::NotNow(words::question::takes_no(self, act))),
        }
    }

    fn settled(&self, by: Option<&str>, how: Settlement, at: Timestamp) -> Self {
        let by = by.map(|by| clean_line(by, NAME_CHARS));
        Self { settled: Some(Settled { by, at, how }), ..self.clone() }
    }

    /// Whoever learns of it late has as long as between two reminders to answer.
    fn reminded(&self, policy: &Policy, now: Timestamp) -> Self {
        let late = self.remind_at.is_some_and(|at| slept_through(at, now));
        let again = now.after(policy.remind);
        Self {
            notices: self.notices.saturating_add(1),
            remind_at: Some(again),
            expires_at: self.expires_at.map(|at| if late { at.max(again) } else { at }),
            ..self.clone()
        }
    }
}

fn slept_through(deadline: Timestamp, now: Timestamp) -> bool {
    deadline.after(SLEPT) < now
}

/// A change of the question that an owner asks, for the log and the list of all questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Asked(Question),
    Reminded(Question),
    Settled(Question),
}

/// The changes between what an owner asked before and what it asks after an event. The one after has its number. `end` is
/// the end of a question that the owner asks no more.
pub fn changes(
    before: Option<&Question>,
    after: Option<&Question>,
    end: impl FnOnce() -> Settled,
) -> Vec<Change> {
    // A snapshot of an earlier program may have one without a number. Nobody knows of it.
    let before = before.filter(|before| before.id.is_some());
    match (before, after) {
        (Some(before), Some(after)) if before.id == after.id => {
            match after.settled.is_none() && after.notices > before.notices {
                true => vec![Change::Reminded(after.clone())],
                false => Vec::new(),
            }
        }
        (before, after) => {
            let over = before.map(|before| Question { settled: Some(end()), ..before.clone() });
            let settled = over.map(Change::Settled);
            settled.into_iter().chain(after.cloned().map(Change::Asked)).collect()
        }
    }
}

/// The question that a text without a number answers, of those that are open where it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    To(QuestionId),
    /// Several are open here, and the text names none of them.
    Ambiguous,
    /// Nobody asks here.
    None,
}

/// Binds a text to one of the questions that are open where it was written. It may name one: `question 12: yes`. Without
/// a name it is bound only if there is no choice.
pub fn bind(open: &[QuestionId], text: &str) -> Binding {
    match (named(text), open) {
        (Some(named), _) if open.contains(&named) => Binding::To(named),
        // Whoever names another question does not mean one of these.
        (Some(_), _) | (None, []) => Binding::None,
        (None, [only]) => Binding::To(*only),
        (None, _) => Binding::Ambiguous,
    }
}

/// The decision that plain words are, as people write them in a thread; none if they are an answer, or if a question of this kind
/// cannot be settled so. A no may come with its reason.
pub fn decision(kind: Kind, text: &str) -> Option<(Act, String)> {
    const NO: [&str; 4] = ["no", "n", "reject", "rejected"];
    const DISMISS: [&str; 2] = ["dismiss", "dismissed"];
    let plain = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    let (first, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let first = first.trim_end_matches([':', ',', '.']).to_lowercase();
    let act = match () {
        () if is_yes(text) => Act::Approve,
        () if NO.contains(&first.as_str()) => Act::Reject,
        () if DISMISS.contains(&plain.as_str()) => Act::Dismiss,
        () => return None,
    };
    let reason = if act == Act::Reject { rest.trim().to_owned() } else { String::new() };
    kind.takes(act).then_some((act, reason))
}

/// Whether words are a plain yes, as people write it below an issue or in a chat.
pub fn is_yes(text: &str) -> bool {
    const YES: [&str; 14] = [
        "yes", "y", "ok", "okay", "approve", "approved", "accept", "accepted", "lgtm", "go", "go ahead",
        "go on", "👍", ":+1:",
    ];
    let plain = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    YES.contains(&plain.as_str())
}

/// The question that a text names at its beginning.
pub fn named(text: &str) -> Option<QuestionId> {
    let rest = text.trim_start();
    let head = rest.get(..8).filter(|head| head.eq_ignore_ascii_case("question"))?;
    let rest = rest[head.len()..].trim_start_matches([' ', '#']);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok().map(QuestionId)
}
