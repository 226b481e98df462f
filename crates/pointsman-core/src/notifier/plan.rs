//! The choice of notifiers for a notice, and the time.

use std::time::Duration;

use super::{Lane, Posting, QuietHours};
use crate::config::{Config, NotifierKind};
use crate::time::Timestamp;
use crate::timetable::Zone;

/// A project's rules for notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    pub to: Vec<NotifierKind>,
    pub quiet: Option<QuietHours>,
    /// Whether what a person has to act on is told all the same.
    pub urgent_when_quiet: bool,
    /// The same words within so long are told once.
    pub same_within: Duration,
}

impl Rules {
    /// As they are configured.
    pub fn new(config: &Config) -> Self {
        Self {
            to: config.notify.to.clone(),
            quiet: config.notify.quiet_hours,
            urgent_when_quiet: config.notify.urgent_when_quiet,
            same_within: config.notify.same_within.duration(),
        }
    }
}

/// The fate of a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// These tell it by this lane, not before then.
    Tell(Lane, Vec<(NotifierKind, Timestamp)>),
    /// The same was told a moment ago; it is only counted.
    Count,
}

/// Decides. `same_at` is when the same words were told last. The log is no part of it: it is written at once.
pub fn plan(
    posting: &Posting,
    same_at: Option<Timestamp>,
    rules: &Rules,
    zone: &impl Zone,
    now: Timestamp,
) -> Plan {
    // A clock that went back makes nothing new.
    if same_at.is_some_and(|at| at.after(rules.same_within) > now) {
        return Plan::Count;
    }
    let passes = posting.notice.urgent && rules.urgent_when_quiet;
    let lane = if passes { Lane::Prompt } else { Lane::Ordinary };
    let end = rules.quiet.filter(|_| !passes).and_then(|quiet| quiet.end(zone, now));
    let when = end.unwrap_or(now);
    let mut to: Vec<NotifierKind> = Vec::new();
    for kind in rules.to.iter().filter(|kind| **kind != NotifierKind::Log) {
        if !to.contains(kind) {
            to.push(*kind);
        }
    }
    Plan::Tell(lane, to.into_iter().map(|kind| (kind, when)).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Plan, Rules, plan};
    use crate::config::NotifierKind::{Desktop, Log, Matrix, Webhook};
    use crate::ids::ProjectName;
    use crate::notifier::{Lane, Posting, QuietHours, Topic};
    use crate::task::Notice;
    use crate::time::Timestamp;
    use crate::timetable::Utc;

    const HOUR: i64 = 3_600_000;

    fn posting(urgent: bool) -> Posting {
        let notice = Notice { title: "t".into(), body: "b".into(), urgent, repeat: 0 };
        Posting {
            key: "1.0".into(),
            project: ProjectName::new("shop").unwrap(),
            topic: Topic::Task(3),
            link: None,
            question: None,
            notice,
        }
    }

    fn rules() -> Rules {
        Rules {
            to: vec![Log, Matrix, Desktop, Matrix],
            quiet: QuietHours::try_from("22:00-07:00".to_owned()).ok(),
            urgent_when_quiet: true,
            same_within: Duration::from_secs(600),
        }
    }

    #[test]
    fn what_can_wait_waits_for_the_morning() {
        let (day, night, morning) = (Timestamp(12 * HOUR), Timestamp(23 * HOUR), Timestamp(31 * HOUR));
        let tell = |lane, when| Plan::Tell(lane, vec![(Matrix, when), (Desktop, when)]);
        let (prompt, ordinary) = (Lane::Prompt, Lane::Ordinary);
        assert_eq!(plan(&posting(false), None, &rules(), &Utc, day), tell(ordinary, day));
        assert_eq!(plan(&posting(false), None, &rules(), &Utc, night), tell(ordinary, morning));
        assert_eq!(plan(&posting(true), None, &rules(), &Utc, night), tell(prompt, night));
        let strict = Rules { urgent_when_quiet: false, ..rules() };
        assert_eq!(plan(&posting(true), None, &strict, &Utc, night), tell(ordinary, morning));
        let always = Rules { quiet: None, to: vec![Webhook], ..rules() };
        assert_eq!(
            plan(&posting(false), None, &always, &Utc, night),
            Plan::Tell(ordinary, vec![(Webhook, night)])
        );
    }

    #[test]
    fn the_same_words_are_told_once_for_a_while() {
        let now = Timestamp(12 * HOUR);
        let told = |ago: i64| plan(&posting(true), Some(Timestamp(now.0 - ago)), &rules(), &Utc, now);
        assert_eq!(told(599_999), Plan::Count);
        assert_eq!(told(-5_000), Plan::Count);
        assert!(matches!(told(600_000), Plan::Tell(..)));
        let never = Rules { same_within: Duration::ZERO, ..rules() };
        assert!(matches!(plan(&posting(true), Some(now), &never, &Utc, now), Plan::Tell(..)));
    }

    #[test]
    fn other_words_or_another_thing_are_something_else() {
        let first = posting(false);
        let mut other = first.clone();
        other.key = "2.0".into();
        assert_eq!(first.words(), other.words());
        other.topic = Topic::Task(4);
        assert_ne!(first.words(), other.words());
        let mut shifted = first.clone();
        (shifted.notice.title, shifted.notice.body) = ("tb".into(), String::new());
        assert_ne!(first.words(), shifted.words());
    }
}
