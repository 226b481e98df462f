//! Concerns: conditions of a project that only a person can settle, and that no task, run or vault action owns.
//!
//! A paused merge queue, a changed configuration, a budget that is used up: whoever notices such a condition *raises* it, as
//! often as it is noticed, and *lifts* it when it is gone. The concern asks one question for as long as the condition holds. Its
//! snapshot is that question, so the store needs no table for it.
//!
//! Not here: what follows from an answer. That depends on the kind of the question, and is written with the answer.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{Number, ProjectName};
use crate::part::question::{
    self, Cause, Change, Kind, Owner, Policy, Question, Settled, Settlement, Source, changes,
};
use crate::task::Effect;
use crate::text::clean_line;
use crate::time::Timestamp;
use crate::words;
use crate::workflow::Refused;

/// Longest first line of a text. The rest is read by whoever opens the question.
const SUBJECT_CHARS: usize = 200;
/// Longest name of a concern.
const NAME_CHARS: usize = 120;

/// The name of a concern in its project: `queue`, `trust`, `secret/3f2a`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct About(String);

impl About {
    /// A name of lower-case letters, digits, dots, dashes, underscores and slashes.
    pub fn new(name: &str) -> Option<Self> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c);
        let good = !name.is_empty() && name.len() <= NAME_CHARS && name.chars().all(fits);
        good.then(|| Self(name.to_owned()))
    }

    /// The one concern of a kind that a project has.
    pub fn kind(kind: Kind) -> Self {
        Self(kind.as_str().to_owned())
    }

    /// One of several concerns of a kind. Characters that do not fit are replaced.
    pub fn one_of(kind: Kind, which: &str) -> Self {
        let fit = |c: char| {
            let c = c.to_ascii_lowercase();
            if c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c) { c } else { '-' }
        };
        let which: String = which.chars().map(fit).collect();
        Self(format!("{kind}/{which}").chars().take(NAME_CHARS).collect())
    }

    /// The name as the store and scripts see it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<About> for String {
    fn from(about: About) -> Self {
        about.0
    }
}

impl TryFrom<String> for About {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text).ok_or_else(|| words::parse::not_an_owner(&text))
    }
}

/// A concern among all projects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConcernKey {
    pub project: ProjectName,
    pub about: About,
}

impl fmt::Display for ConcernKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.project, self.about)
    }
}

/// A concern as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Concern {
    pub key: ConcernKey,
    /// The question, while it is open.
    pub asked: Option<Question>,
    /// The last question that is settled.
    pub last: Option<Question>,
}

/// An event in the life of a concern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The condition holds. It may be told again as often as it is noticed.
    Raised {
        kind: Kind,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issue: Option<Number>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pr: Option<Number>,
        /// People hear of it in another way, and have to be reminded only.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        told: bool,
    },
    /// The condition is gone.
    Lifted {
        why: String,
    },
    Approved {
        by: String,
    },
    Rejected {
        by: String,
        reason: String,
    },
    Answered {
        by: String,
        text: String,
    },
    Dismissed {
        by: String,
    },
    TimePassed,
    /// People could not be told.
    EffectGaveUp {
        error: String,
    },
}

impl Event {
    /// The condition holds, and is about the project as a whole.
    pub fn raised(kind: Kind, text: impl Into<String>) -> Self {
        Self::Raised { kind, text: text.into(), issue: None, pr: None, told: false }
    }
}

/// The next snapshot of a concern, and what is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub concern: Concern,
    pub effects: Vec<Effect>,
}

impl Concern {
    /// A concern about which nothing was asked yet.
    pub fn new(key: ConcernKey) -> Self {
        Self { key, asked: None, last: None }
    }

    /// The concern that asked this question; none if something else did.
    pub fn of(question: Question) -> Option<Self> {
        let Owner::Concern(about) = &question.source.owner else { return None };
        let key = ConcernKey { project: question.source.project.clone(), about: about.clone() };
        Some(match question.is_open() {
            true => Self { key, asked: Some(question), last: None },
            false => Self { key, asked: None, last: Some(question) },
        })
    }

    /// Whether it still asks.
    pub fn is_open(&self) -> bool {
        self.asked.is_some()
    }

    /// The next moment at which time alone changes something about it.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.asked.as_ref().and_then(Question::wake_at)
    }

    fn source(&self, issue: Option<Number>, pr: Option<Number>) -> Source {
        let owner = Owner::Concern(self.key.about.clone());
        Source { project: self.key.project.clone(), owner, issue, pr, session: None }
    }
}

/// Applies an event to a concern.
pub fn step(
    concern: &Concern,
    event: &Event,
    policy: &Policy,
    now: Timestamp,
) -> Result<Transition, Refused> {
    let settled = match event {
        Event::Raised { kind, text, issue, pr, told } => {
            let source = concern.source(*issue, *pr);
            let mut fresh = Question::ask(*kind, Cause::Daemon, source, text, policy, now);
            if let Some((first, _)) = text.split_once('\n') {
                fresh.subject = clean_line(first, SUBJECT_CHARS);
            }
            return Ok(raised(concern, fresh, *told));
        }
        Event::EffectGaveUp { .. } => {
            return Ok(Transition { concern: concern.clone(), effects: Vec::new() });
        }
        // Whoever lifts it need not know whether anybody asked.
        Event::Lifted { .. } if concern.asked.is_none() => {
            return Ok(Transition { concern: concern.clone(), effects: Vec::new() });
        }
        Event::Lifted { why } => question::Event::CauseGone { why },
        Event::Approved { by } => question::Event::Approved { by },
        Event::Rejected { by, reason } => question::Event::Rejected { by, reason },
        Event::Answered { by, text } => question::Event::Answered { by, text },
        Event::Dismissed { by } => question::Event::Dismissed { by },
        Event::TimePassed => question::Event::TimePassed,
    };
    let Some(asked) = &concern.asked else {
        let why = match concern.last.as_ref().and_then(|last| Some((last, last.settled.as_ref()?))) {
            Some((last, settled)) => words::question::already_settled(last.id, settled, now),
            None => words::question::NOTHING_ASKED.to_owned(),
        };
        return Err(Refused::NotNow(why));
    };
    let next = asked.step(&settled, policy, now)?;
    let (asked, last, effects) = match next.is_open() {
        true => (Some(next), concern.last.clone(), vec![Effect::NotifyQuestion]),
        false => (None, Some(next), Vec::new()),
    };
    Ok(Transition { concern: Concern { asked, last, ..concern.clone() }, effects })
}

/// The same condition is asked about once, and what a person has settled is not asked again in the same words.
fn raised(concern: &Concern, fresh: Question, told: bool) -> Transition {
    let same = |known: &Question| {
        known.kind == fresh.kind && known.subject == fresh.subject && known.body == fresh.body
    };
    let decided = |last: &Question| last.settled.as_ref().is_some_and(|settled| settled.by.is_some());
    let known = concern.asked.as_ref().is_some_and(same)
        || concern.asked.is_none() && concern.last.as_ref().is_some_and(|last| same(last) && decided(last));
    match known {
        true => Transition { concern: concern.clone(), effects: Vec::new() },
        false => Transition {
            concern: Concern { asked: Some(fresh), ..concern.clone() },
            effects: if told { Vec::new() } else { vec![Effect::NotifyQuestion] },
        },
    }
}

/// The changes of its question because of an event. The one after has its number.
pub fn questions(before: &Concern, after: &Concern, now: Timestamp) -> Vec<Change> {
    let end = || {
        let last = after.last.as_ref().filter(|last| last.id == before.asked.as_ref().and_then(|q| q.id));
        let replaced = || Settlement::Withdrawn { why: words::question::ASKED_IN_OTHER_WORDS.to_owned() };
        let of_last = last.and_then(|last| last.settled.clone());
        of_last.unwrap_or_else(|| Settled { by: None, at: now, how: replaced() })
    };
    changes(before.asked.as_ref(), after.asked.as_ref(), end)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{About, Concern, ConcernKey, Event, questions, step};
    use crate::ids::ProjectName;
    use crate::part::question::{Change, Kind, Policy, QuestionId, Settlement};
    use crate::task::Effect;
    use crate::time::Timestamp;
    use crate::workflow::Refused;

    const POLICY: Policy =
        Policy { remind: Duration::from_secs(6 * 3600), timeout: Duration::from_secs(24 * 3600) };

    fn concern() -> Concern {
        let project = ProjectName::new("shop").unwrap();
        Concern::new(ConcernKey { project, about: About::kind(Kind::Budget) })
    }

    fn at(hours: i64) -> Timestamp {
        Timestamp(hours * 3_600_000)
    }

    /// Applies an event, and numbers a question as the engine does.
    fn next(concern: &Concern, event: &Event, now: Timestamp) -> (Concern, Vec<Effect>, Vec<Change>) {
        let mut moved = step(concern, event, &POLICY, now).unwrap();
        if let Some(asked) = moved.concern.asked.as_mut().filter(|asked| asked.id.is_none()) {
            let last = concern.last.as_ref().or(concern.asked.as_ref()).and_then(|last| last.id);
            asked.id = Some(QuestionId(last.map_or(1, |id| id.0 + 1)));
        }
        let changed = questions(concern, &moved.concern, now);
        (moved.concern, moved.effects, changed)
    }

    fn raise(text: &str) -> Event {
        Event::raised(Kind::Budget, text)
    }

    fn yes() -> Event {
        Event::Approved { by: "ann".to_owned() }
    }

    #[test]
    fn a_condition_is_asked_about_once_however_often_it_is_noticed() {
        let (asked, effects, changed) = next(&concern(), &raise("5 USD are spent"), at(0));
        assert_eq!(effects, [Effect::NotifyQuestion]);
        assert!(matches!(&changed[..], [Change::Asked(asked)] if asked.id == Some(QuestionId(1))));
        let (again, effects, changed) = next(&asked, &raise("5 USD are spent"), at(1));
        assert_eq!((again, effects, changed), (asked, vec![], vec![]));
    }

    #[test]
    fn other_words_are_another_question_with_a_number_of_its_own() {
        let (asked, ..) = next(&concern(), &raise("5 USD are spent"), at(0));
        let (asked, effects, changed) = next(&asked, &raise("6 USD are spent"), at(1));
        assert_eq!(effects, [Effect::NotifyQuestion]);
        let [Change::Settled(old), Change::Asked(new)] = &changed[..] else { panic!("{changed:?}") };
        assert!(matches!(old.settled.as_ref().unwrap().how, Settlement::Withdrawn { .. }));
        assert_eq!((old.id, new.id), (Some(QuestionId(1)), Some(QuestionId(2))));
        assert_eq!(asked.asked.unwrap().subject, "6 USD are spent");
    }

    #[test]
    fn what_a_person_settled_is_not_asked_again_in_the_same_words() {
        let (asked, ..) = next(&concern(), &raise("5 USD are spent"), at(0));
        let (settled, effects, changed) = next(&asked, &yes(), at(1));
        assert!(!settled.is_open() && effects.is_empty() && settled.wake_at().is_none());
        let [Change::Settled(over)] = &changed[..] else { panic!("{changed:?}") };
        assert_eq!(over.settled.as_ref().unwrap().how, Settlement::Approved);
        let (same, effects, _) = next(&settled, &raise("5 USD are spent"), at(2));
        assert!(!same.is_open() && effects.is_empty());
        let (other, ..) = next(&settled, &raise("9 USD are spent"), at(2));
        assert!(other.is_open());
        assert!(
            matches!(step(&settled, &yes(), &POLICY, at(3)), Err(Refused::NotNow(why)) if why.contains("ann"))
        );
    }

    #[test]
    fn a_condition_that_is_gone_withdraws_its_question_and_may_come_back() {
        let (asked, ..) = next(&concern(), &raise("the disk is full"), at(0));
        let gone = Event::Lifted { why: "there is room again".to_owned() };
        let (lifted, _, changed) = next(&asked, &gone, at(1));
        assert!(
            matches!(&changed[..], [Change::Settled(over)] if over.settled.as_ref().unwrap().by.is_none())
        );
        let (back, ..) = next(&lifted, &raise("the disk is full"), at(2));
        assert!(back.is_open(), "nobody had settled it");
        let (still, effects, changed) = next(&lifted, &gone, at(3));
        assert_eq!((still, effects, changed), (lifted, vec![], vec![]));
    }

    #[test]
    fn people_are_reminded() {
        let (asked, ..) = next(&concern(), &raise("5 USD are spent"), at(0));
        assert_eq!(asked.wake_at(), Some(at(6)));
        let (reminded, effects, changed) = next(&asked, &Event::TimePassed, at(6));
        assert_eq!(effects, [Effect::NotifyQuestion]);
        assert!(matches!(&changed[..], [Change::Reminded(asked)] if asked.notices == 2));
        assert_eq!(reminded.wake_at(), Some(at(12)));
    }

    #[test]
    fn an_answer_to_nothing_is_refused() {
        for event in [yes(), Event::TimePassed, Event::Dismissed { by: "ann".to_owned() }] {
            assert!(matches!(step(&concern(), &event, &POLICY, at(0)), Err(Refused::NotNow(_))), "{event:?}");
        }
    }

    #[test]
    fn names_are_harmless() {
        assert_eq!(About::one_of(Kind::Secret, "src/$(id) Ä.rs").as_str(), "secret/src/--id---.rs");
        assert_eq!(About::one_of(Kind::Secret, &"x".repeat(500)).as_str().len(), 120);
        for bad in ["", "Trust", "a b", "a\nb", "$(id)"] {
            assert_eq!(About::new(bad), None, "{bad}");
        }
    }
}
