//! Sessions die and are brought back.

use std::time::Duration;

use super::{HOUR, Play, infra, sha};
use crate::task::{
    CiVerdict, Effect, Event, Exit, Headline, Opening, Order, Phase, ReviewVerdict, Stage, State,
};

#[test]
fn a_session_that_dies_while_working_is_replaced_at_once_in_recovery() {
    let play = Play::working().ended(Exit::Crashed).is(State::Working);
    assert_eq!(play.ordered, [Effect::StartSession { generation: 2, opening: Opening::Recovery }]);
    assert_eq!(play.task.session.restarts, 1);
}

#[test]
fn a_session_that_dies_while_waiting_is_replaced_and_the_wait_goes_on() {
    let play = Play::awaiting_ci();
    let deadline = play.task.deadline;
    let play = play.ended(Exit::Crashed).is(State::AwaitingCi);
    assert_eq!(play.task.deadline, deadline);
    let play = play.ci(CiVerdict::Passed);
    assert!(matches!(play.ordered[1], Effect::Deliver { generation: 2, .. }), "{:?}", play.ordered);
    Play::awaiting_review().ended(Exit::Crashed).is(State::AwaitingReview);
}

#[test]
fn further_deaths_are_held_back_longer_each_time_and_then_it_is_blocked() {
    let mut play = Play::working().ended(Exit::Crashed);
    for seconds in [5, 10, 20, 40] {
        play = play.event_started().ended(Exit::Crashed);
        assert!(play.ordered.is_empty());
        assert_eq!(play.task.session.restart_at, Some(play.now.after(Duration::from_secs(seconds))));
        play = play.later(Duration::from_secs(seconds));
        assert_eq!(play.kinds(), ["start_session"]);
    }
    let play = play.event_started().ended(Exit::Crashed).is(State::Blocked);
    let Some(Effect::Comment { body, .. }) = play.ordered.last() else { panic!("no diagnosis") };
    assert!(body.contains("last words"), "{body}");
}

#[test]
fn the_back_off_survives_what_happens_meanwhile() {
    let play = Play::awaiting_ci().ended(Exit::Crashed).event_started().ended(Exit::Crashed);
    let play = play.ci(CiVerdict::Passed).is(State::AwaitingReview);
    assert!(!play.kinds().contains(&"start_session"), "the breaker holds");
    assert!(play.task.session.restart_at.is_some());
}

#[test]
fn a_working_session_without_a_phase_for_two_hours_is_replaced() {
    let play = Play::working().later(2 * HOUR).is(State::Working);
    assert_eq!(play.ordered, [Effect::EndSession { generation: 1, exit: Exit::IdleTimeout }]);
    let play = play.ended(Exit::IdleTimeout);
    assert_eq!(play.kinds(), ["start_session"]);
}

#[test]
fn a_waiting_session_is_not_replaced_for_being_quiet() {
    let play = Play::awaiting_review().later(2 * HOUR + Duration::from_secs(60)).is(State::AwaitingReview);
    assert!(play.ordered.is_empty());
}

#[test]
fn nobody_is_started_while_there_is_nothing_to_say() {
    let play = Play::escalated().ended(Exit::Crashed).is(State::Escalated);
    assert!(play.ordered.is_empty());
    let play = play.event(Event::Answered { by: "ann".into(), text: "blue".into() });
    assert_eq!(play.kinds(), ["start_session", "deliver"]);
    let play = Play::in_queue().ended(Exit::Crashed).is(State::MergeQueue);
    assert!(play.ordered.is_empty());
}

#[test]
fn a_session_that_cannot_be_started_blocks() {
    let mut play = Play::working().ended(Exit::Crashed);
    play.try_event(Event::SessionNotStarted { generation: 2, error: "no such program".into() }).unwrap();
    let play = play.is(State::Blocked);
    assert!(play.task.reason.as_deref().is_some_and(|r| r.contains("no such program")));
}

#[test]
fn the_same_death_reported_twice_counts_once() {
    let mut play = Play::working().ended(Exit::Crashed);
    play.refuses(Event::SessionEnded { generation: 1, exit: Exit::Crashed, tail: String::new() });
    assert_eq!(play.task.session.restarts, 1);
}

#[test]
fn a_dead_session_after_the_merge_just_closes_the_task() {
    Play::merged().ended(Exit::Crashed).is(State::Closed);
}

#[test]
fn pause_ends_the_session_and_resume_brings_it_back_in_recovery() {
    let play = Play::working().event(Event::Ordered { order: Order::Pause }).is(State::Paused);
    assert_eq!(play.kinds(), ["end_session"]);
    let play = play
        .ended(Exit::Stopped)
        .is(State::Paused)
        .event(Event::Ordered { order: Order::Resume })
        .event(Event::Claimed);
    assert_eq!(play.ordered, [Effect::StartSession { generation: 2, opening: Opening::Recovery }]);
}

#[test]
fn work_that_was_handed_in_before_a_pause_is_handed_in_after_it() {
    let (pause, resume) = (Event::Ordered { order: Order::Pause }, Event::Ordered { order: Order::Resume });
    for play in [Play::awaiting_ci(), Play::awaiting_review(), Play::in_queue()] {
        let play = play.event(pause.clone()).ended(Exit::Stopped).event(resume.clone()).event(Event::Claimed);
        assert_eq!(play.kinds(), ["start_session", "sync_branch"]);
        assert_eq!(play.task.state, State::AwaitingCi);
    }
    let play = Play::in_queue().event(pause.clone()).ended(Exit::Stopped).event(resume.clone());
    play.event(Event::Claimed).synced(sha('a')).is(State::MergeQueue);

    // What was handed back to the agent stays with it.
    let play = Play::awaiting_ci().ci(super::red()).event(pause.clone()).ended(Exit::Stopped);
    assert_eq!(play.event(resume.clone()).event(Event::Claimed).kinds(), ["start_session"]);

    // Handed in while the session was on its way out.
    let play = Play::working().event(pause).says(Phase::AwaitingCi).is(State::Paused).ended(Exit::Stopped);
    assert_eq!(play.event(resume).event(Event::Claimed).kinds(), ["start_session", "sync_branch"]);
}

#[test]
fn stop_then_start_does_not_wait_for_the_old_session() {
    let play = Play::working().event(Event::Ordered { order: Order::Stop }).is(State::Blocked);
    let mut play = play.event(Event::Ordered { order: Order::Start }).event(Event::Claimed);
    assert_eq!(play.task.session.stage, Stage::Starting);
    play.refuses(Event::SessionEnded { generation: 1, exit: Exit::Stopped, tail: String::new() });
}

#[test]
fn an_effect_that_can_never_be_done_asks_a_person() {
    let play =
        Play::awaiting_ci().event(Event::EffectGaveUp { effect: "sync_branch".into(), error: "x".into() });
    play.is(State::Escalated);
}

#[test]
fn a_message_nobody_acknowledges_asks_a_person() {
    let play = Play::awaiting_ci().ci(super::red());
    let play = play.event(Event::MessageUnacknowledged { message: 9, headline: "CI failed".into() });
    assert!(play.task.reason.as_deref().is_some_and(|r| r.contains("m-9")));
    play.is(State::Escalated);
}

#[test]
fn after_infrastructure_trouble_an_answer_and_a_new_claim_run_ci_again() {
    let play = Play::awaiting_ci().ci(infra()).ci(infra()).is(State::Escalated);
    let play = play.event(Event::Answered { by: "ann".into(), text: "fixed the runner".into() });
    assert_eq!(play.told(), [Headline::Answer]);
    let play = play.says(Phase::AwaitingCi).synced(sha('a'));
    assert!(play.kinds().contains(&"run_checks"));
    play.ci(CiVerdict::Passed).review(ReviewVerdict::Approve).is(State::MergeQueue);
}

impl Play {
    fn event_started(self) -> Self {
        let generation = self.task.session.generation;
        self.event(Event::SessionStarted { generation })
    }
}

#[test]
fn time_in_which_the_machine_slept_counts_for_people_and_not_for_work() {
    let skip = |hours: i64| Event::TimeSkipped { by_ms: hours * 3_600_000 };
    // Three hours of sleep are none of the two that a session may be silent.
    let play = Play::working().event(skip(3)).later(3 * HOUR).is(State::Working);
    assert!(play.ordered.is_empty(), "{:?}", play.ordered);
    let play = play.later(2 * HOUR);
    assert_eq!(play.ordered, [Effect::EndSession { generation: 1, exit: Exit::IdleTimeout }]);
    // CI is a machine that waits for this one; people are not.
    Play::awaiting_ci().event(skip(8)).later(8 * HOUR).is(State::AwaitingCi);
    Play::in_queue().event(skip(30)).later(30 * HOUR).is(State::MergeQueue);
    Play::awaiting_review().event(skip(4)).later(4 * HOUR).is(State::Escalated);
    // A clock that is set back gives no time either.
    let play = Play::working().event(skip(-1));
    assert_eq!(play.task.deadline, Some(play.now.after(HOUR)));
}
