//! A notifier as the recipient of notices: its two lanes in the outbox, and its failures.

use std::fmt;
use std::time::Duration;

use serde::de::IntoDeserializer as _;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};

use super::Health;
use crate::config::NotifierKind;
use crate::ids::ProjectName;
use crate::time::Timestamp;

/// A lane of a notifier. A lane is told in its order, so what quiet hours hold back has a lane of its own: nothing that a
/// person has to act on waits behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Notices that quiet hours never hold back: urgent ones, answers to people, tests.
    Prompt,
    /// All others.
    Ordinary,
}

impl Lane {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Prompt, Self::Ordinary];

    /// Its name in the outbox.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Ordinary => "ordinary",
        }
    }

    /// Reads its name back.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == name)
    }
}

/// A notifier of a project, by one of its lanes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NotifierKey {
    pub project: ProjectName,
    pub kind: NotifierKind,
    pub lane: Lane,
}

impl NotifierKey {
    /// Its word among the lanes of its project: `matrix/prompt`.
    pub fn lane(&self) -> String {
        format!("{}/{}", self.kind, self.lane.as_str())
    }

    /// Reads a [`lane`](Self::lane) of a project back.
    pub fn parse_lane(project: &ProjectName, lane: &str) -> Option<Self> {
        let (kind, lane) = lane.split_once('/')?;
        let kind: StrDeserializer<'_, Error> = kind.into_deserializer();
        let (kind, lane) = (NotifierKind::deserialize(kind).ok()?, Lane::parse(lane)?);
        Some(Self { project: project.clone(), kind, lane })
    }

    /// The same notifier, by its other lane.
    pub fn other_lane(&self) -> Self {
        let lane = match self.lane {
            Lane::Prompt => Lane::Ordinary,
            Lane::Ordinary => Lane::Prompt,
        };
        Self { lane, ..self.clone() }
    }
}

impl fmt::Display for NotifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/notifier/{}", self.project, self.lane())
    }
}

/// A notifier as it is remembered. Both lanes have one memory: a server that is down is down for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notifier {
    pub key: NotifierKey,
    /// Its failures; none if it works.
    pub health: Option<Health>,
}

/// Something that happened to a notifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It told a notice.
    Told,
    /// It does not work.
    Failed {
        error: String,
        /// How long the other side asks to wait.
        asked: Option<Duration>,
    },
    /// One notice can never be told. That says nothing about the next one.
    EffectGaveUp { error: String },
    /// It has no deadlines: the notices in its lanes have.
    TimePassed,
}

/// Steps a notifier. It orders nothing: its notices are ordered by whoever has something to tell.
pub fn step(notifier: &Notifier, event: &Event, now: Timestamp) -> Notifier {
    let health = match event {
        Event::Told => None,
        Event::Failed { error, asked } => Some(failed(notifier.health.as_ref(), error, *asked, now)),
        Event::EffectGaveUp { .. } | Event::TimePassed => notifier.health.clone(),
    };
    Notifier { health, ..notifier.clone() }
}

/// A failure while it rests is the one that it rests for: both lanes may have tried.
fn failed(before: Option<&Health>, error: &str, asked: Option<Duration>, now: Timestamp) -> Health {
    match before {
        Some(before) if before.rests(now) && asked.is_none_or(|asked| now.after(asked) <= before.next) => {
            before.clone()
        }
        _ => Health::failed(before, error, asked, now),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Event, Lane, Notifier, NotifierKey, step};
    use crate::config::NotifierKind;
    use crate::ids::ProjectName;
    use crate::time::Timestamp;

    fn matrix() -> Notifier {
        let project = ProjectName::new("shop").unwrap();
        let key = NotifierKey { project, kind: NotifierKind::Matrix, lane: Lane::Prompt };
        Notifier { key, health: None }
    }

    fn down(asked: Option<u64>) -> Event {
        Event::Failed { error: "down".to_owned(), asked: asked.map(Duration::from_secs) }
    }

    #[test]
    fn a_notifier_rests_after_a_failure_and_is_well_again_when_it_tells_something() {
        let at = Timestamp(1_000_000);
        let ill = step(&matrix(), &down(None), at);
        let health = ill.health.clone().unwrap();
        assert_eq!((health.failed, health.next), (1, Timestamp(1_002_000)));
        // The other lane tried at the same moment: that is one failure, not two.
        assert_eq!(step(&ill, &down(None), Timestamp(1_001_000)), ill);
        let later = step(&ill, &down(None), health.next).health.unwrap();
        assert_eq!((later.failed, later.since, later.next), (2, at, Timestamp(1_006_000)));
        // What the other side asks for is never shortened, also while it rests.
        let asked = step(&ill, &down(Some(60)), Timestamp(1_001_000)).health.unwrap();
        assert_eq!(asked.next, Timestamp(1_061_000));
        for unchanged in [Event::EffectGaveUp { error: "too long".to_owned() }, Event::TimePassed] {
            assert_eq!(step(&ill, &unchanged, at), ill);
        }
        assert_eq!(step(&ill, &Event::Told, at), matrix());
    }

    #[test]
    fn lanes_read_back_and_lead_to_each_other() {
        for lane in Lane::ALL {
            assert_eq!(Lane::parse(lane.as_str()), Some(lane));
        }
        assert_eq!(Lane::parse("fast"), None);
        let key = matrix().key;
        assert_eq!(key.other_lane().lane, Lane::Ordinary);
        assert_eq!(key.other_lane().other_lane(), key);
        assert_eq!(key.to_string(), "shop/notifier/matrix/prompt");
    }
}
