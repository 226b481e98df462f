//! Orders that cannot be carried out, and what the simulation found.

use super::{HOUR, Play, sha};
use crate::task::{Effect, Event, Exit, Order, Phase, Stage, State};

fn gave_up(play: Play, effect: &str) -> Play {
    play.event(Event::EffectGaveUp { effect: effect.into(), error: "no right to".into() })
}

fn markers(play: &Play) -> Vec<String> {
    let comments = play.ordered.iter().filter_map(|effect| match effect {
        Effect::Comment { marker, .. } => Some(marker.clone()),
        _ => None,
    });
    comments.collect()
}

#[test]
fn no_comment_is_taken_for_an_older_one() {
    let stop = || Event::Ordered { order: Order::Stop };
    let blocked = Play::working().event(stop()).ended(Exit::Stopped);
    let first = markers(&blocked);
    // Stopped again before a new session was there, in the same millisecond.
    let again = blocked.event(Event::Ordered { order: Order::Start }).event(stop());
    let second = markers(&again);
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first, second);
}

#[test]
fn what_nothing_waits_for_is_told_and_the_work_goes_on() {
    for effect in ["comment", "set_labels", "record_ci_result", "clean_up"] {
        let play = gave_up(Play::awaiting_ci(), effect);
        assert_eq!(play.kinds(), ["notify"], "{effect}");
        play.is(State::AwaitingCi);
    }
}

#[test]
fn whoever_is_asked_already_is_not_asked_again() {
    let asked = Play::escalated();
    let deadline = asked.task.deadline;
    let play = gave_up(asked, "sync_branch");
    assert_eq!(play.kinds(), ["notify"]);
    assert_eq!(play.task.deadline, deadline);
}

#[test]
fn nobody_is_told_that_nobody_can_be_told() {
    for play in [Play::working(), Play::escalated(), Play::merged()] {
        let play = gave_up(play, "notify");
        assert_eq!(play.kinds(), [""; 0]);
    }
}

#[test]
fn a_session_that_cannot_be_ended_is_told_again_to_go() {
    let play = gave_up(Play::working().event(Event::Ordered { order: Order::Stop }), "end_session");
    let play = play.is(State::Blocked).later(HOUR);
    assert_eq!(play.kinds(), ["end_session"]);
    let play = play.ended(Exit::Stopped);
    assert_eq!(play.kinds(), ["comment"], "its last lines are still owed");
    assert_eq!((play.task.session.stage, play.task.deadline), (Stage::None, None));
}

#[test]
fn a_quiet_session_that_cannot_be_ended_asks_a_person_and_stays_watched() {
    let play = gave_up(Play::working().later(3 * HOUR), "end_session").is(State::Escalated);
    let play = play.event(Event::Answered { by: "ann".into(), text: "go on".into() }).later(3 * HOUR);
    assert_eq!(play.kinds(), ["end_session"]);
}

#[test]
fn a_session_that_failed_to_start_is_ended_because_half_of_it_may_be_there() {
    let play = Play::working().ended(Exit::Crashed);
    let generation = play.task.session.generation;
    let play = play.event(Event::SessionNotStarted { generation, error: "no terminal".into() });
    assert_eq!(play.ordered[0], Effect::EndSession { generation, exit: Exit::Failed });
    let play = play.is(State::Blocked).ended(Exit::Failed);
    assert_eq!(play.kinds(), ["comment"]);
}

#[test]
fn a_pause_before_the_claim_was_answered_does_not_lose_the_claim() {
    let play = Play::new().seen(&["backlog"]).event(Event::Ordered { order: Order::Begin });
    let mut play = play.event(Event::Ordered { order: Order::Pause });
    play.refuses(Event::Claimed);
    // The issue is labelled in-progress by now: nobody else would ever begin it.
    let play = play.event(Event::Ordered { order: Order::Resume }).is(State::Working);
    assert_eq!(play.kinds(), ["claim_issue"]);
}

#[test]
fn an_issue_that_could_not_be_closed_can_be_queued_again() {
    let play = Play::merged().says(Phase::Done).ended(Exit::Done);
    let play = gave_up(play, "close_issue").seen(&["backlog"]);
    assert!(play.is(State::Backlog).task.ready);
}

#[test]
fn only_the_head_that_waits_in_the_queue_may_land() {
    let play = Play::in_queue();
    assert!(play.task.wants_to_land(&sha('a')));
    assert!(!play.task.wants_to_land(&sha('b')));
    // The order to leave the queue may take a while; landing does not wait for it.
    let play = play.event(Event::Ordered { order: Order::Pause });
    assert!(!play.task.wants_to_land(&sha('a')));
}

#[test]
fn the_wait_in_the_merge_queue_has_a_limit_of_its_own() {
    let play = Play::in_queue().later(25 * HOUR).is(State::MergeQueue);
    play.later(23 * HOUR).is(State::Escalated);
}
