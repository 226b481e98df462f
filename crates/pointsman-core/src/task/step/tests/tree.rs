//! A working tree that cannot be set up: no fault of the agent.

use super::*;
use crate::part::question::Kind;
use crate::task::{Opening, Stage};

impl Play {
    fn claimed() -> Self {
        Self::new()
            .seen(&[labels::BACKLOG])
            .event(Event::Ordered { order: Order::Begin })
            .event(Event::Claimed)
    }

    fn setup_failed(self, opening: Opening) -> Self {
        let generation = self.task.session.generation;
        let (error, log) = ("exit code 1".into(), "npm ERR! ENOTFOUND\n".into());
        self.event(Event::SetupFailed { generation, opening, error, log })
    }

    fn retried(self) -> Self {
        self.event(Event::SetupRetried { by: "ann".into() })
    }

    fn opens_with(&self, wanted: Opening) {
        let opening = self.ordered.iter().find_map(|effect| match effect {
            Effect::StartSession { opening, .. } => Some(*opening),
            _ => None,
        });
        assert_eq!(opening, Some(wanted), "{:?}", self.ordered);
    }
}

#[test]
fn a_set_up_that_fails_asks_once_and_costs_no_attempt() {
    let play = Play::claimed().setup_failed(Opening::Fresh).is(State::Escalated);
    let asked = play.task.escalation.clone().unwrap();
    assert_eq!((asked.kind, asked.expires_at), (Kind::Setup, None));
    assert!(asked.subject.contains("set-up") && asked.subject.contains("exit code 1"), "{}", asked.subject);
    assert!(
        asked.body.contains("npm ERR! ENOTFOUND") && !asked.body.contains("failed 2 times"),
        "{}",
        asked.body
    );
    assert_eq!(play.notices(), 1);
    assert_eq!((play.task.session.restarts, play.task.setup_failures), (0, 1));
    assert_eq!(play.task.attempts, Attempts::default());
    assert_eq!(play.task.session.stage, Stage::None);
    // Days later nothing has happened by itself but a reminder.
    let play = play.later(72 * HOUR).is(State::Escalated);
    let play = play.retried().is(State::Working);
    play.opens_with(Opening::Fresh);
    let play = play.setup_failed(Opening::Fresh);
    assert!(play.task.escalation.as_ref().unwrap().body.contains("It failed 2 times."));
    assert_eq!(play.task.session.restarts, 0);
}

#[test]
fn the_next_session_opens_as_the_one_that_never_was() {
    for opening in [Opening::Fresh, Opening::Recovery, Opening::Anew] {
        Play::claimed().setup_failed(opening).retried().opens_with(opening);
    }
    // A person who answers in words wants it tried again as well, and the agent hears them.
    let play = Play::claimed().setup_failed(Opening::Fresh);
    let play = play.event(Event::Answered { by: "ann".into(), text: "the mirror is back".into() });
    play.opens_with(Opening::Fresh);
    assert_eq!(play.told(), [Headline::Answer]);
}

#[test]
fn the_count_survives_a_new_beginning() {
    let play =
        Play::claimed().setup_failed(Opening::Fresh).event(Event::Ordered { order: Order::RestartFresh });
    let play = play.event(Event::Claimed);
    play.opens_with(Opening::Anew);
    assert_eq!(play.task.setup_failures, 1);
    let play = play.setup_failed(Opening::Anew);
    assert_eq!(play.task.setup_failures, 2);
    assert!(play.task.escalation.as_ref().unwrap().body.contains("It failed 2 times."));
}

#[test]
fn the_clock_of_a_session_begins_when_it_is_up() {
    let play = Play::claimed();
    assert_eq!(play.task.deadline, None, "its tree is being set up");
    let play = play.later(100 * HOUR).is(State::Working);
    assert_eq!((play.task.session.stage, play.task.session.restarts), (Stage::Starting, 0));
    let generation = play.task.session.generation;
    let play = play.event(Event::SessionStarted { generation });
    assert_eq!(play.task.deadline, Some(play.now.after(2 * HOUR)));
}

#[test]
fn what_is_not_being_set_up_refuses_to_have_failed() {
    let failed = |generation| Event::SetupFailed {
        generation,
        opening: Opening::Fresh,
        error: String::new(),
        log: String::new(),
    };
    let mut play = Play::working();
    play.refuses(failed(1));
    play.refuses(failed(0));
    play.refuses(Event::SetupRetried { by: "ann".into() });
    let mut play = Play::escalated();
    play.refuses(Event::SetupRetried { by: "ann".into() });
    // Paused meanwhile: its end is on its way.
    let mut play = Play::claimed().event(Event::Ordered { order: Order::Pause });
    play.refuses(failed(1));
    assert_eq!(play.task.setup_failures, 0);
}

#[test]
fn a_task_that_waits_for_ci_asks_about_its_tree_too_and_one_that_is_merged_does_not() {
    let dead = Play::awaiting_ci().ended(Exit::Crashed);
    let play = dead.setup_failed(Opening::Recovery).is(State::Escalated);
    play.retried().opens_with(Opening::Recovery);
    let generation = 1;
    let play = Play::merged();
    assert_eq!(play.task.session.generation, generation);
}

#[test]
fn ports_stay_with_a_task_until_they_are_taken_back() {
    let ports = |ports: &[u16]| Event::PortsAssigned { ports: ports.to_vec() };
    let play = Play::working().event(ports(&[42_000, 42_001])).ended(Exit::Crashed);
    let play = play.event(Event::Ordered { order: Order::RestartFresh }).event(Event::Claimed);
    assert_eq!(play.task.ports, [42_000, 42_001]);
    assert!(play.event(ports(&[])).task.ports.is_empty());
}
