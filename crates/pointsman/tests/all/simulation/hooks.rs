//! What hooks, keepers and the daemon's own looks tell of sessions, whoever owns them. None of it is true or false here:
//! a workflow has to cope with any of it at any time.

use pointsman::daemon::engine::Input;
use pointsman_core::part::session::{Event, Stage};
use pointsman_core::session::budget::Level;
use pointsman_core::session::context::{self, Gauge, Symptom};
use pointsman_core::workflow::Workflow;

use super::daemon::{Daemon, Item, Source};

impl Daemon {
    /// Something is told of one of the live sessions.
    pub(super) fn hear_of_a_session(&mut self) {
        let live: Vec<Workflow> =
            self.engine().workflows().filter(|owner| owner.session().stage == Stage::Alive).collect();
        if live.is_empty() {
            return;
        }
        let owner = self.reality().chance.pick(&live).clone();
        let event = self.any_report();
        self.say(format!("report of {}: {event:?}", owner.id()));
        let input = Input::of_session(owner.id(), owner.session().generation, event);
        self.told(Source::Hooks, Item::Inputs(vec![input]));
    }

    fn any_report(&mut self) -> Event {
        let mut reality = self.reality();
        let now = reality.now;
        let text = || "words".to_owned();
        match reality.chance.below(20) {
            0 | 1 => Event::TurnEnded,
            2 => Event::ContextMeasured {
                gauge: Gauge { used_permille: 400, source: context::Source::StatusLine },
            },
            3 => Event::SymptomSeen { symptom: Symptom::Compacting },
            4 => Event::SymptomSeen { symptom: Symptom::Slow },
            5 => Event::ContextCompacted,
            6 | 7 => Event::TurnFailed { error: "rate_limit".to_owned(), details: text(), until: Some(now) },
            8 => {
                Event::TurnFailed { error: "authentication_failed".to_owned(), details: text(), until: None }
            }
            9 | 10 => Event::ResponseGiven { text: text() },
            11 | 12 => Event::DialogSeen { what: text(), picture: text() },
            13 | 14 => Event::HooksSilent { required: false, picture: text() },
            15 => Event::BudgetReached { level: Level::Hard, what: text() },
            16 => Event::BudgetReached { level: Level::Soft, what: text() },
            _ => {
                let message = i64::try_from(reality.fresh()).expect("a small number");
                Event::MessageUnacknowledged { message, headline: text() }
            }
        }
    }
}
