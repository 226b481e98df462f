//! Hand-overs, parking, budgets, and the signals they give off.

use std::time::Duration;

use super::{HOUR, Play};
use crate::session::budget::Level;
use crate::session::context::{Gauge, Source, Symptom};
use crate::signal::Signal;
use crate::task::{Effect, Event, Exit, Headline, Opening, Phase, Stage, State, step};
use crate::workflow::{self, Workflow};

fn full(play: Play, used_permille: u16) -> Play {
    let generation = play.task.session.generation;
    let gauge = Gauge { used_permille, source: Source::StatusLine };
    play.event(Event::ContextMeasured { generation, gauge })
}

/// The signals of one event, without taking it.
fn given(play: &Play, event: &Event) -> Vec<Signal> {
    let after = step(&play.task, event, &play.policy, play.now).unwrap().task;
    let (before, after) = (Workflow::Task(play.task.task.clone().into()), Workflow::Task(after.into()));
    let event = workflow::Event::Task(event.clone());
    workflow::signals(&before, &event, &after).into_iter().map(|(signal, _)| signal).collect()
}

fn fails(play: Play, reason: &str) -> Play {
    let generation = play.task.session.generation;
    let reason = Some(reason.to_owned());
    play.event(Event::PhaseClaimed { generation, phase: Phase::Failed, reason, refusal: None, plan: None })
}

#[test]
fn r4_3_low_is_watched_medium_asks_for_a_checkpoint_high_hands_over() {
    let play = full(Play::working(), 800);
    assert!(play.ordered.is_empty());
    let play = full(play, 860);
    assert_eq!(play.told(), [Headline::CheckpointNow]);
    assert!(play.ordered.iter().any(|e| matches!(e, Effect::Checkpoint { .. })));
    let play = full(play, 870);
    assert!(play.ordered.is_empty(), "said once");
    let play = full(play, 930);
    assert_eq!(play.told(), [Headline::SaveAndExit]);
    assert!(play.task.session.handoff.is_some());
}

#[test]
fn a_context_that_is_full_before_the_start_is_on_record_is_handed_over_all_the_same() {
    let play = Play::working().ended(Exit::Crashed);
    assert_eq!(play.task.session.stage, Stage::Starting);
    let play = full(play, 930);
    assert!(play.ordered.is_empty() && play.task.session.handoff.is_none());
    let started = Event::SessionStarted { generation: 2 };
    assert_eq!(given(&play, &started), [Signal::ContextWarning, Signal::HandoffRequested]);
    assert_eq!(play.event(started).told(), [Headline::SaveAndExit]);
}

fn sees(play: Play, symptom: Symptom) -> Play {
    let generation = play.task.session.generation;
    play.event(Event::SymptomSeen { generation, symptom })
}

#[test]
fn r4_1_symptoms_ask_for_a_checkpoint_and_two_of_them_hand_over() {
    for (one, other) in [(Symptom::Slow, Symptom::Warned), (Symptom::Warned, Symptom::Slow)] {
        let play = sees(Play::working(), one);
        assert_eq!(play.told(), [Headline::CheckpointNow], "{one:?}");
        let play = sees(play, one);
        assert!(
            play.ordered.is_empty() && play.task.session.handoff.is_none(),
            "the same sign again is no second sign"
        );
        let play = sees(play, other);
        assert_eq!(play.told(), [Headline::SaveAndExit], "{other:?}");
    }
}

#[test]
fn r4_1_ac_4_1_a_compaction_saves_and_warns_and_never_restarts() {
    let compacting = || Event::SymptomSeen { generation: 1, symptom: Symptom::Compacting };
    for play in [Play::working(), full(Play::working(), 860), full(Play::working(), 800)] {
        assert_eq!(given(&play, &compacting()), [Signal::ContextWarning]);
        let play = play.event(compacting());
        let saved = [Effect::Checkpoint { why: "before a compaction".to_owned() }];
        assert_eq!(play.ordered, saved, "nothing is typed into the middle of it");
        assert_eq!(play.task.session.handoff, None);
    }
    let play = sees(Play::working(), Symptom::Warned).event(compacting());
    assert!(play.kinds().is_empty() && play.task.session.handoff.is_none(), "not even as a second sign");
}

#[test]
fn after_a_compaction_everything_counts_anew() {
    let play = sees(full(Play::working(), 860), Symptom::Compacting);
    let play = play.event(Event::ContextCompacted { generation: 1 });
    assert_eq!((play.task.session.context.gauge, play.task.session.context.symptoms.len()), (None, 0));
    let play = full(play, 300);
    assert!(play.ordered.is_empty());
    assert_eq!(full(play, 860).told(), [Headline::CheckpointNow], "it has filled up again");
}

#[test]
fn the_best_source_is_gone_by() {
    let says = |play: Play, used_permille, source| {
        let generation = play.task.session.generation;
        play.event(Event::ContextMeasured { generation, gauge: Gauge { used_permille, source } })
    };
    // Each beside the better ones: it changes nothing.
    let play = says(says(Play::working(), 100, Source::StatusLine), 930, Source::Transcript);
    assert!(play.ordered.is_empty() && play.task.session.context.gauge.unwrap().source == Source::StatusLine);
    let play = sees(sees(play, Symptom::Slow), Symptom::Warned);
    assert!(play.ordered.is_empty() && play.task.session.handoff.is_none(), "{:?}", play.ordered);
    let play = says(Play::working(), 100, Source::Transcript);
    let play = sees(sees(play, Symptom::Slow), Symptom::Warned);
    assert!(play.ordered.is_empty() && play.task.session.handoff.is_none(), "{:?}", play.ordered);
    // Each without the better ones: it counts.
    assert_eq!(says(Play::working(), 930, Source::StatusLine).told(), [Headline::SaveAndExit]);
    assert_eq!(says(Play::working(), 930, Source::Transcript).told(), [Headline::SaveAndExit]);
    // A better one takes over at once, a worse one when the better one has fallen silent.
    let play = says(says(Play::working(), 100, Source::Transcript), 930, Source::StatusLine);
    assert_eq!(play.told(), [Headline::SaveAndExit]);
    let play = says(Play::working(), 100, Source::StatusLine).later(Duration::from_secs(600));
    assert_eq!(says(play, 930, Source::Transcript).told(), [Headline::SaveAndExit]);
}

#[test]
fn r4_4_a_session_that_exits_as_asked_is_continued_and_costs_no_restart() {
    let play = full(Play::working(), 930).ended(Exit::Handoff).is(State::Working);
    assert_eq!(play.ordered, [Effect::StartSession { generation: 2, opening: Opening::Continuation }]);
    assert_eq!((play.task.session.restarts, play.task.session.handoffs), (0, 1));
    assert_eq!(play.task.session.handoff, None);
}

#[test]
fn r4_5_ac_4_4_no_clean_exit_within_60_seconds_ends_it_by_force() {
    let play = full(Play::working(), 930);
    let event = Event::TimePassed;
    let play = play.later(Duration::from_secs(59));
    assert!(play.ordered.is_empty());
    let mut play = play;
    play.now = play.now.after(Duration::from_secs(1));
    assert_eq!(given(&play, &event), [Signal::OrchestratorStuck]);
    let play = play.event(event);
    assert_eq!(play.ordered, [Effect::EndSession { generation: 1, exit: Exit::Stuck }]);
    let play = play.ended(Exit::Stuck);
    assert_eq!(play.ordered, [Effect::StartSession { generation: 2, opening: Opening::Continuation }]);
}

#[test]
fn a_context_that_fills_up_again_and_again_asks_a_person() {
    let mut play = Play::working();
    for _ in 0..2 {
        play = full(play, 930).ended(Exit::Handoff);
        let generation = play.task.session.generation;
        play = play.event(Event::SessionStarted { generation });
    }
    full(play, 930).is(State::Escalated);
}

#[test]
fn nobody_is_continued_when_nothing_is_left_to_do() {
    let play = full(Play::in_queue(), 990);
    assert!(play.ordered.is_empty() && play.task.session.handoff.is_none());
}

#[test]
fn a_rate_limit_parks_and_costs_no_attempt() {
    let play = fails(Play::working(), "api_error: rate_limit retry after 120s").is(State::Working);
    assert_eq!(play.task.session.stage, Stage::Alive);
    assert!(play.kinds().is_empty());
    let play = play.later(Duration::from_secs(119)).is(State::Working);
    assert!(play.ordered.is_empty());
    let play = play.later(Duration::from_secs(1)).is(State::Working);
    assert_eq!(play.told(), [Headline::Answer]);
    assert_eq!(play.task.session.parked_until, None);
    assert_eq!(play.task.attempts, crate::task::Attempts::default());
}

#[test]
fn a_parked_session_is_not_replaced_for_being_quiet() {
    let play = fails(Play::working(), "api_error: server_error retry after 36000s");
    let play = play.later(3 * HOUR).is(State::Working);
    assert!(play.ordered.is_empty());
}

#[test]
fn a_login_or_a_bill_is_for_a_person() {
    fails(Play::working(), "api_error: authentication_failed").is(State::Escalated);
    fails(Play::working(), "api_error: billing_error").is(State::Escalated);
}

#[test]
fn the_soft_mark_warns_and_the_hard_mark_ends_the_session_with_its_work() {
    let reached = |level| Event::BudgetReached { level, what: "2.00 USD per task".into(), until: None };
    let play = Play::working().event(reached(Level::Soft)).is(State::Working);
    assert_eq!(play.kinds(), ["notify"]);
    let play = play.event(reached(Level::Hard)).is(State::Working);
    assert!(play.ordered.is_empty(), "not in the middle of a turn");
    let play = play.event(Event::TurnEnded { generation: 1 }).is(State::Blocked);
    assert_eq!(play.ordered[0], Effect::EndSession { generation: 1, exit: Exit::Exhausted });
    assert!(play.task.reason.as_ref().unwrap().contains("2.00 USD per task"), "{:?}", play.task.reason);
}

#[test]
fn a_used_up_budget_ends_a_session_at_the_first_boundary_there_is() {
    let hard = || Event::BudgetReached { level: Level::Hard, what: "20 turns".into(), until: None };
    let ends = |play: Play, what: &str| {
        let play = play.is(State::Blocked);
        let ended = Effect::EndSession { generation: 1, exit: Exit::Exhausted };
        assert!(play.ordered.contains(&ended), "{what}: {:?}", play.ordered);
        assert_eq!(play.task.session.exhausted, None, "{what}");
    };
    let exhausted = || Play::working().event(hard());
    ends(exhausted().says(Phase::AwaitingCi), "a phase");
    ends(exhausted().event(Event::IdleLooked { generation: 1, at_prompt: true }), "a prompt");
    ends(exhausted().later(Duration::ZERO), "in the middle of a turn: it would spend on");
    ends(Play::awaiting_review().event(hard()), "it waits for a review");
    ends(fails(Play::working(), "api_error: rate_limit").event(hard()), "it is parked");
    ends(exhausted().event(hard()).later(Duration::ZERO), "said again, it is no later");
    let play = exhausted().ended(Exit::Crashed).is(State::Blocked);
    assert_eq!(play.task.session.generation, 1, "nobody is brought back to spend more");
}

#[test]
fn a_budget_of_the_day_parks_the_task_until_there_is_a_new_one() {
    let reached = |play: &Play| {
        let until = Some(play.now.after(Duration::from_secs(3600)));
        Event::BudgetReached { level: Level::Hard, what: "5.00 USD today".into(), until }
    };
    let play = Play::working();
    let hard = reached(&play);
    let play = play.event(hard).later(Duration::ZERO).is(State::Working);
    assert_eq!(play.ordered, [Effect::EndSession { generation: 1, exit: Exit::Exhausted }]);
    let play = play.ended(Exit::Exhausted).is(State::Working);
    assert!(play.ordered.is_empty(), "nobody is brought back to spend more: {:?}", play.ordered);
    assert_eq!(play.task.session.restarts, 0);
    let next = play.later(Duration::from_secs(3600)).is(State::Working);
    assert!(
        next.ordered.contains(&Effect::StartSession { generation: 2, opening: Opening::Recovery }),
        "{:?}",
        next.ordered
    );
    assert!(!next.task.session.waits_for_budget);

    let play = Play::working();
    let hard = reached(&play);
    let play = play.event(hard).later(Duration::ZERO).ended(Exit::Exhausted);
    let granted = play.event(Event::BudgetGranted).later(Duration::ZERO).is(State::Working);
    assert!(
        granted.ordered.iter().any(|effect| matches!(effect, Effect::StartSession { generation: 2, .. }))
    );
    let refused = step(&granted.task, &Event::BudgetGranted, &granted.policy, granted.now);
    assert!(refused.is_err(), "it waits for no budget");

    // What waits for CI or a review spends nothing, and goes on waiting.
    let play = Play::awaiting_review();
    assert!(step(&play.task, &reached(&play), &play.policy, play.now).is_err());
}

#[test]
fn a_session_that_is_parked_may_sit_at_its_prompt_and_one_that_hands_over_is_ended_there() {
    let idle = |mut play: Play| {
        for _ in 0..10 {
            let looked = Event::IdleLooked { generation: 1, at_prompt: true };
            assert!(step(&play.task, &looked, &play.policy, play.now).is_err(), "it counts for nothing");
            play = play.later(Duration::from_secs(1));
        }
        play.is(State::Working)
    };
    idle(fails(Play::working(), "api_error: rate_limit"));
    let gauge = Gauge { used_permille: 940, source: Source::StatusLine };
    let asked = Play::working().event(Event::ContextMeasured { generation: 1, gauge });
    assert!(asked.task.session.handoff.is_some());
    let looked = || Event::IdleLooked { generation: 1, at_prompt: true };
    let ended = asked.event(looked()).event(looked()).event(looked()).is(State::Working);
    assert_eq!(ended.ordered, [Effect::EndSession { generation: 1, exit: Exit::Handoff }]);
    let next = ended.ended(Exit::Handoff).is(State::Working);
    assert!(
        next.ordered.contains(&Effect::StartSession { generation: 2, opening: Opening::Continuation }),
        "{:?}",
        next.ordered
    );
    // Without such a reason it is what it looks like.
    let asked = Play::working().event(looked()).event(looked()).event(looked()).is(State::Working);
    assert!(asked.task.session.reminded);
    asked.event(looked()).event(looked()).event(looked()).is(State::Blocked);
}

#[test]
fn what_is_about_to_land_is_not_stopped_for_its_budget() {
    let hard = Event::BudgetReached { level: Level::Hard, what: "20 turns".into(), until: None };
    let play = Play::in_queue();
    assert!(step(&play.task, &hard, &play.policy, play.now).is_err());
}

#[test]
fn a_program_that_ends_by_itself_without_an_error_is_terminated_and_its_task_goes_on() {
    let exited = Event::SessionEnded { generation: 1, exit: Exit::Exited, tail: String::new() };
    assert_eq!(given(&Play::working(), &exited), [Signal::AgentTerminated, Signal::AgentRegistered]);
    let play = Play::working().event(exited).is(State::Working);
    assert_eq!(play.ordered, [Effect::StartSession { generation: 2, opening: Opening::Recovery }]);
    assert_eq!(play.task.session.restarts, 1);
}

#[test]
fn signals_follow_a_session_through_its_life() {
    let play = Play::new().seen(&["backlog"]).event(Event::Ordered { order: crate::task::Order::Begin });
    assert_eq!(given(&play, &Event::Claimed), [Signal::AgentRegistered]);
    let crash = Event::SessionEnded { generation: 1, exit: Exit::Crashed, tail: String::new() };
    assert_eq!(given(&Play::working(), &crash), [Signal::AgentCrashed, Signal::AgentRegistered]);
    let gauge = Gauge { used_permille: 930, source: Source::Transcript };
    let measured = Event::ContextMeasured { generation: 1, gauge };
    assert_eq!(given(&Play::working(), &measured), [Signal::ContextWarning, Signal::HandoffRequested]);
    let play = full(Play::working(), 930);
    assert_eq!(given(&play, &crash), [Signal::AgentTerminated, Signal::AgentRegistered]);
    let play = play.event(crash);
    assert_eq!(given(&play, &Event::SessionStarted { generation: 2 }), [Signal::HandoffComplete]);
}

#[test]
fn signals_follow_a_branch_to_the_main_branch() {
    let approve = |play: &Play| Event::ReviewPosted {
        sha: play.task.head.clone().unwrap(),
        verdict: crate::task::ReviewVerdict::Approve,
        by: "a".into(),
        by_agent: false,
        body: String::new(),
    };
    let play = Play::awaiting_review();
    assert_eq!(given(&play, &approve(&play)), [Signal::MergeReady]);
    let head = super::sha('a');
    let report = |outcome| Event::QueueReported { head: head.clone(), outcome };
    let conflict = report(crate::task::QueueOutcome::Conflict { files: vec!["f".into()], with: None });
    assert_eq!(given(&Play::in_queue(), &conflict), [Signal::MergeConflict]);
    let landed = report(crate::task::QueueOutcome::Landed { sha: super::sha('f') });
    assert_eq!(given(&Play::in_queue(), &landed), [Signal::MergeComplete]);
}

#[test]
fn a_checkpoint_goes_with_every_phase_and_every_turn_of_a_live_session() {
    let taken = |play: &Play| play.ordered.iter().filter(|e| matches!(e, Effect::Checkpoint { .. })).count();
    for phase in [Phase::AwaitingCi, Phase::AwaitingReview, Phase::Escalate, Phase::Done] {
        assert_eq!(taken(&Play::working().says(phase)), 1, "{phase}");
    }
    assert_eq!(taken(&Play::working().says(Phase::Failed)), 0, "its end captures the work itself");
    assert_eq!(taken(&Play::working().event(Event::TurnEnded { generation: 1 })), 1);
}
