//! What hooks, keepers and the daemon's own looks tell of sessions, whoever owns them. None of it is true or false here:
//! a workflow has to cope with any of it at any time.

use std::time::Duration;

use pointsman::daemon::engine::Input;
use pointsman_core::part::session::{Event, Stage};
use pointsman_core::session::budget::Level;
use pointsman_core::session::context::{self, Gauge, Symptom};
use pointsman_core::workflow::Workflow;

use super::daemon::{Daemon, Item, Source};

impl Daemon {
    /// Something is told of one of the live sessions, or one gets the budget that it waits for.
    pub(super) fn hear_of_a_session(&mut self) {
        let waits: Vec<Workflow> =
            self.engine().workflows().filter(|owner| owner.session().waits_for_budget).collect();
        if !waits.is_empty() && self.reality().chance.below(3) == 0 {
            let owner = self.reality().chance.pick(&waits).clone();
            let input = Input::of_session(owner.id(), owner.session().generation, Event::BudgetGranted);
            self.told(Source::Hooks, Item::Inputs(vec![input]));
            return;
        }
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

    /// A person grants every budget that somebody waits for.
    pub(super) fn everybody_grants(&mut self) {
        let waits = self.engine().workflows().filter(|owner| owner.session().waits_for_budget);
        let granted =
            |owner: Workflow| Input::of_session(owner.id(), owner.session().generation, Event::BudgetGranted);
        let granted: Vec<Input> = waits.map(granted).collect();
        if !granted.is_empty() {
            self.told(Source::Hooks, Item::Inputs(granted));
        }
    }

    fn any_report(&mut self) -> Event {
        let mut reality = self.reality();
        let now = reality.now;
        let text = || "words".to_owned();
        match reality.chance.below(21) {
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
            15 => Event::BudgetReached { level: Level::Hard, what: text(), until: None },
            16 => Event::BudgetReached { level: Level::Soft, what: text(), until: None },
            17 => {
                let until = Some(now.after(Duration::from_secs(3600)));
                Event::BudgetReached { level: Level::Hard, what: text(), until }
            }
            _ => {
                let message = i64::try_from(reality.fresh()).expect("a small number");
                Event::MessageUnacknowledged { message, headline: text() }
            }
        }
    }
}
