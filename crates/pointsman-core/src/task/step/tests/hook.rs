//! What an agent's hooks tell.

use super::Play;
use crate::task::{Event, Phase, State};
use crate::time::Timestamp;

fn failed(error: &str) -> Event {
    Event::TurnFailed { generation: 1, error: error.into(), details: "API Error: 4xx".into(), until: None }
}

fn dialog() -> Event {
    Event::DialogSeen {
        generation: 1,
        what: "permission for Bash".into(),
        picture: "Do you want to proceed?".into(),
    }
}

#[test]
fn a_rate_limit_parks_and_a_lost_login_asks_a_person() {
    for error in ["rate_limit", "server_error"] {
        let play = Play::working().event(failed(error));
        assert!(play.task.session.parked_until.is_some(), "{error}");
        play.is(State::Working);
    }
    for error in ["authentication_failed", "billing_error", "invalid_request", "model_not_found"] {
        Play::working().event(failed(error)).is(State::Escalated);
    }
}

#[test]
fn a_rate_limit_that_says_when_it_is_over_is_believed_for_a_day() {
    let parked = |after: i64| {
        let mut play = Play::working();
        let until = Some(Timestamp(play.now.0 + after));
        let limited =
            Event::TurnFailed { generation: 1, error: "rate_limit".into(), details: "429".into(), until };
        play = play.event(limited);
        play.task.session.parked_until.unwrap().0 - play.now.0
    };
    assert_eq!(parked(90_000), 90_000);
    assert_eq!(parked(-5_000), 1_000, "in the past");
    assert_eq!(parked(i64::MAX / 2), 86_400_000);
}

#[test]
fn an_error_is_never_written_over_a_final_phase() {
    for phase in [Phase::Done, Phase::Failed] {
        let mut play = Play::working();
        play.task.phase = Some(phase);
        play.refuses(failed("rate_limit"));
    }
}

#[test]
fn an_error_while_nothing_is_expected_of_the_agent_changes_nothing() {
    for mut play in [Play::awaiting_ci(), Play::escalated(), Play::merged()] {
        play.refuses(failed("rate_limit"));
    }
}

#[test]
fn a_dialog_is_a_persons_to_answer_and_is_shown() {
    let play = Play::working().event(dialog());
    assert_eq!(
        play.kinds().iter().filter(|kind| **kind == "comment").count(),
        2,
        "the question and the picture"
    );
    let mut play = play.is(State::Escalated);
    play.refuses(dialog());
}

#[test]
fn silent_hooks_are_a_question_unless_the_project_does_without() {
    let silent = |generation, required| {
        let picture = "Do you trust this folder?".to_owned();
        Event::HooksSilent { generation, required, picture }
    };
    let play = Play::working().event(silent(1, false));
    assert_eq!(play.kinds(), ["notify"]);
    play.is(State::Working).refuses(silent(0, true));
    let play = Play::working().event(silent(1, true));
    assert_eq!(play.kinds(), ["notify", "comment", "comment"], "a person is asked, and sees it");
    play.is(State::Escalated);
}
