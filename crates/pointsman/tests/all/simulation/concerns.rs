//! Conditions of the project that need a person: they come and go, and people decide about them.

use pointsman::daemon::engine::Input;
use pointsman_core::concern::{About, ConcernKey, Event};
use pointsman_core::part::question::{Act, Kind};
use pointsman_core::workflow::Workflow;

use super::daemon::Daemon;

/// Kinds that between them can be settled in every way.
const KINDS: [Kind; 3] = [Kind::Budget, Kind::MainRed, Kind::Gate];

impl Daemon {
    /// A condition is noticed, is gone, or is decided about.
    pub(super) fn something_concerns_people(&mut self) {
        let project = self.reality().story.project();
        let kind = *self.reality().chance.pick(&KINDS);
        let key = ConcernKey { project, about: About::kind(kind) };
        let words = self.reality().chance.below(3);
        let event = match self.reality().chance.below(8) {
            0..4 => Event::raised(kind, format!("this is so for reason {words}")),
            4 => Event::Lifted { why: "it is gone".to_owned() },
            5 => Event::EffectGaveUp { error: "nobody could be told".to_owned() },
            _ => decision(kind, words),
        };
        self.concern(key, event);
    }

    /// Everything that needs a person is over.
    pub(super) fn everybody_is_relieved(&mut self) {
        let open: Vec<ConcernKey> = self
            .engine()
            .workflows()
            .filter_map(|workflow| match workflow {
                Workflow::Concern(concern) => Some(concern.key.clone()),
                Workflow::Task(_)
                | Workflow::Run(_)
                | Workflow::Vault(_)
                | Workflow::Role(_)
                | Workflow::Notifier(_) => None,
            })
            .collect();
        for key in open {
            self.concern(key, Event::Lifted { why: "the story ends".to_owned() });
        }
    }

    fn concern(&mut self, key: ConcernKey, event: Event) {
        self.take_group(&[Input::of_concern(key, event)], Vec::new());
    }
}

/// What somebody says to a question of this kind.
fn decision(kind: Kind, which: usize) -> Event {
    let acts = kind.traits().acts;
    let by = "ann".to_owned();
    match acts[which % acts.len()] {
        Act::Approve => Event::Approved { by },
        Act::Reject => Event::Rejected { by, reason: "no".to_owned() },
        Act::Answer => Event::Answered { by, text: "like this".to_owned() },
        Act::Dismiss => Event::Dismissed { by },
    }
}
