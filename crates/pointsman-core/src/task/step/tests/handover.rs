//! A person takes a task over and gives it back.

use super::*;
use crate::task::{Given, Opening, Stage};

impl Play {
    fn taken(self) -> Self {
        self.event(Event::Taken { by: "ann".into() })
    }

    fn given(self) -> Self {
        self.event(Event::Given { by: "ann".into(), head: sha('9') })
    }
}

#[test]
fn taking_it_ends_the_session_and_leaves_the_queue() {
    let play = Play::working().taken().is(State::Paused);
    assert_eq!(play.kinds(), ["end_session"]);
    assert_eq!(play.task.taken_by.as_deref(), Some("ann"));
    assert_eq!(play.task.reason.as_deref(), Some("ann works on it"));
    let play = Play::in_queue().taken().is(State::Paused);
    assert_eq!(play.kinds(), ["dequeue", "end_session"]);
    let play = Play::escalated().taken().is(State::Paused);
    assert!(play.task.escalation.is_none());
}

#[test]
fn what_is_over_or_was_never_begun_cannot_be_taken() {
    Play::new().refuses(Event::Taken { by: "ann".into() });
    Play::merged().refuses(Event::Taken { by: "ann".into() });
    Play::working().seen_closed().refuses(Event::Taken { by: "ann".into() });
}

#[test]
fn one_person_has_it() {
    let mut play = Play::working().taken();
    play.refuses(Event::Taken { by: "bob".into() });
    let play = play.taken().is(State::Paused);
    assert!(play.ordered.is_empty(), "asked again: {:?}", play.ordered);
}

#[test]
fn nobody_goes_on_without_their_commits_by_accident() {
    let mut play = Play::working().taken().ended(Exit::Stopped).is(State::Paused);
    for order in [Order::Resume, Order::Start, Order::Begin, Order::Pause] {
        play.refuses(Event::Ordered { order });
    }
    let play = play.event(Event::Ordered { order: Order::Restart }).is(State::Working);
    assert_eq!(play.task.taken_by, None);
    let mut play = play.event(Event::Claimed);
    play.refuses(Event::Given { by: "ann".into(), head: sha('9') });
}

#[test]
fn the_agent_goes_on_from_their_commit() {
    let play = Play::awaiting_review().taken().ended(Exit::Stopped).given().is(State::Working);
    assert_eq!(play.kinds(), ["claim_issue"]);
    assert_eq!(play.task.given, Some(Given { by: "ann".into(), head: sha('9') }));
    let play = play.event(Event::Claimed).is(State::Working);
    assert_eq!(play.ordered, [Effect::StartSession { generation: 2, opening: Opening::Given }]);
    // What was handed in before is not what there is now.
    let play = play.event(Event::SessionStarted { generation: 2 }).says(Phase::AwaitingCi).synced(sha('9'));
    assert_eq!(play.kinds(), ["run_checks"]);
    // A successor goes on in the same tree.
    let play = play.ended(Exit::Crashed);
    assert!(play.ordered.contains(&Effect::StartSession { generation: 3, opening: Opening::Recovery }));
}

#[test]
fn a_claim_that_is_lost_or_a_set_up_that_fails_does_not_lose_their_commit() {
    let play = Play::working().taken().ended(Exit::Stopped).given();
    let play = play.event(Event::ClaimLost { reason: "somebody".into() }).is(State::Backlog);
    let play = play.seen(&[labels::BACKLOG]).event(Event::Ordered { order: Order::Begin });
    let play = play.event(Event::Claimed);
    let opening = Opening::Given;
    assert_eq!(play.ordered, [Effect::StartSession { generation: 2, opening }]);
    let play = play.event(Event::SetupFailed {
        generation: 2,
        opening,
        error: "exit code 1".into(),
        log: String::new(),
    });
    let play = play.event(Event::SetupRetried { by: "ann".into() });
    assert!(play.ordered.contains(&Effect::StartSession { generation: 3, opening }), "{:?}", play.ordered);
    assert_eq!(play.task.given.as_ref().map(|given| &given.head), Some(&sha('9')));
}

#[test]
fn a_blocked_task_begins_with_new_limits() {
    let play = Play::working().says(Phase::Failed).ended(Exit::Failed).is(State::Blocked);
    let play = play.taken().is(State::Paused);
    // Nobody who takes the label off starts it meanwhile.
    let play = play.seen(&[labels::BACKLOG]).is(State::Paused);
    let play = play.given().event(Event::Claimed).is(State::Working);
    assert_eq!(play.task.session.stage, Stage::Starting);
    assert_eq!(play.task.attempts, Attempts::default());
}

#[test]
fn it_is_over_for_everybody_when_the_issue_is_closed() {
    let mut play = Play::working().taken().ended(Exit::Stopped).seen_closed().is(State::Closed);
    assert_eq!(play.task.taken_by, None);
    play.refuses(Event::Given { by: "ann".into(), head: sha('9') });
}
