//! The issue's life: labels, dependencies, refusals, orders.

use super::Play;
use crate::task::{Effect, Event, Exit, Opening, Order, Phase, Refusal, RefusalStatus, State};

fn observed(labels: &[&str], open_dependencies: &[u64]) -> Event {
    Event::IssueObserved {
        title: "t".into(),
        open: true,
        labels: labels.iter().map(|&l| l.into()).collect(),
        dependencies: vec![3, 4],
        open_dependencies: open_dependencies.to_vec(),
        cycle: None,
        asked_at: None,
    }
}

fn refused(status: RefusalStatus) -> Play {
    let refusal = Refusal { status, reason: "hm".into(), blocked_by: vec![3] };
    Play::working().event(Event::PhaseClaimed {
        generation: 1,
        phase: Phase::Failed,
        reason: Some("refused".into()),
        refusal: Some(refusal),
        plan: None,
    })
}

#[test]
fn claim_then_session_backlog_to_in_progress() {
    let play = Play::new().seen(&["backlog"]);
    assert!(play.task.ready);
    let play = play.event(Event::Ordered { order: Order::Begin }).is(State::Working);
    assert_eq!(play.ordered, [Effect::ClaimIssue]);
    let play = play.event(Event::Claimed);
    assert_eq!(play.ordered, [Effect::StartSession { generation: 1, opening: Opening::Fresh }]);
}

#[test]
fn a_lost_claim_goes_back_to_the_backlog_without_a_session() {
    let play = Play::new().seen(&["backlog"]).event(Event::Ordered { order: Order::Begin });
    let play = play.event(Event::ClaimLost { reason: "assigned to bob".into() }).is(State::Backlog);
    assert!(play.ordered.is_empty() && !play.task.ready);
}

#[test]
fn ready_means_open_labelled_backlog_not_blocked_and_dependencies_closed() {
    assert!(!Play::new().seen(&[]).task.ready);
    assert!(!Play::new().seen(&["backlog", "in-progress"]).task.ready, "a person has it");
    assert!(!Play::new().seen(&["backlog", "blocked"]).is(State::Blocked).task.ready);
    let play = Play::new().event(observed(&["backlog"], &[4])).is(State::WaitingDependencies);
    assert!(!play.task.ready);
    assert!(play.event(observed(&["backlog"], &[])).is(State::Backlog).task.ready);
}

#[test]
fn a_circular_dependency_is_never_ready_and_says_so() {
    let event = Event::IssueObserved {
        title: "t".into(),
        open: true,
        labels: vec!["backlog".into()],
        dependencies: vec![3],
        open_dependencies: vec![3],
        cycle: Some(vec![42, 3]),
        asked_at: None,
    };
    let play = Play::new().event(event).is(State::WaitingDependencies);
    assert_eq!(play.task.reason.as_deref(), Some("circular dependency: #42 → #3 → #42"));
}

#[test]
fn a_blocked_task_starts_again_when_the_label_goes_but_not_before_it_was_seen() {
    let play = Play::working().says(Phase::Failed).ended(Exit::Failed);
    let play = play.seen(&["backlog"]).is(State::Blocked).seen(&["backlog", "blocked"]).is(State::Blocked);
    let play = play.seen(&["backlog"]).is(State::Backlog);
    assert!(play.task.ready);
    assert_eq!(play.task.attempts, crate::task::Attempts::default());
    let play = play.event(Event::Ordered { order: Order::Begin }).event(Event::Claimed);
    assert_eq!(play.ordered, [Effect::StartSession { generation: 2, opening: Opening::Recovery }]);
}

#[test]
fn a_blocked_task_starts_again_by_order() {
    let play =
        Play::working().says(Phase::Failed).event(Event::Ordered { order: Order::Start }).is(State::Working);
    assert_eq!(play.kinds(), ["claim_issue"]);
}

#[test]
fn refused_for_an_unmet_dependency_is_blocked_until_the_dependency_is_closed() {
    let play = refused(RefusalStatus::UnmetDependency).is(State::Refused);
    assert_eq!(play.labels().0, ["blocked", "backlog"]);
    let play = play.event(observed(&["backlog", "blocked"], &[3])).is(State::Refused);
    let play = play.event(observed(&["backlog", "blocked"], &[]));
    assert_eq!(play.labels().1, ["blocked"]);
    assert!(play.event(observed(&["backlog"], &[])).is(State::Backlog).task.ready);
}

#[test]
fn an_observation_that_did_not_look_the_dependency_up_lifts_nothing() {
    let waiting = || {
        refused(RefusalStatus::UnmetDependency)
            .event(observed(&["backlog", "blocked"], &[3]))
            .is(State::Refused)
    };
    for looked_up in [vec![], vec![4]] {
        let event = Event::IssueObserved {
            title: "t".into(),
            open: true,
            labels: vec!["backlog".into(), "blocked".into()],
            dependencies: looked_up.clone(),
            open_dependencies: vec![],
            cycle: None,
            asked_at: None,
        };
        let play = waiting().event(event);
        assert_eq!(play.kinds(), [""; 0], "looked up: {looked_up:?}");
        assert!(play.task.dependencies_seen);
    }
}

#[test]
fn refused_for_a_dependency_that_nobody_sees_is_for_a_person_to_lift() {
    let play = refused(RefusalStatus::UnmetDependency).event(observed(&["backlog", "blocked"], &[]));
    assert_eq!(play.kinds(), [""; 0], "the agent would only refuse again");
    assert!(play.seen(&["backlog"]).is(State::Backlog).task.ready);
}

#[test]
fn refused_as_too_large_is_underspecified_and_leaves_the_backlog() {
    let play = refused(RefusalStatus::TooLarge).is(State::Refused);
    assert_eq!(play.labels(), (vec!["underspecified".into()], vec!["in-progress".into(), "backlog".into()]));
    assert_eq!(play.kinds()[0], "end_session");
    let play = play.seen(&["underspecified"]).seen(&["backlog"]).is(State::Backlog);
    assert!(play.task.ready);
}

#[test]
fn refused_as_already_done_leaves_closing_to_a_person() {
    let play = refused(RefusalStatus::AlreadyDone).is(State::Refused);
    assert!(!play.kinds().contains(&"close_issue"));
    play.seen(&[]).seen_closed().is(State::Closed);
}

#[test]
fn an_issue_closed_by_a_person_ends_the_work() {
    let play = Play::in_queue().seen_closed().is(State::Closed);
    assert_eq!(play.kinds(), ["dequeue", "end_session", "set_labels", "clean_up", "notify"]);
}

#[test]
fn a_closed_issue_that_is_reopened_starts_over_only_after_it_was_seen_closed() {
    let play = Play::merged().says(Phase::Done).is(State::Closed);
    let play = play.seen(&["backlog"]).is(State::Closed);
    let play = play.seen_closed().seen(&["backlog"]).is(State::Backlog);
    assert!(play.task.ready && play.task.pr.is_none());
}

#[test]
fn what_is_over_takes_no_orders() {
    let mut play = Play::merged().says(Phase::Done);
    for order in [Order::Begin, Order::Start, Order::Pause, Order::Resume, Order::Stop] {
        play.refuses(Event::Ordered { order });
    }
}

#[test]
fn pausing_a_task_that_never_began_keeps_it_from_beginning() {
    let play = Play::new().seen(&["backlog"]).event(Event::Ordered { order: Order::Pause }).is(State::Paused);
    let play = play.seen(&["backlog"]).is(State::Paused).event(Event::Ordered { order: Order::Resume });
    assert!(play.seen(&["backlog"]).is(State::Backlog).task.ready);
}

/// The label is read back when it is set, so a person may lift it before the next look at the forge.
#[test]
fn a_label_that_is_lifted_before_the_next_look_is_lifted() {
    let seen = |labels: &[&str], second: i64| match observed(labels, &[]) {
        Event::IssueObserved { title, open, labels, dependencies, open_dependencies, cycle, .. } => {
            let asked_at = Some(crate::time::Timestamp(second * 1000));
            Event::IssueObserved { title, open, labels, dependencies, open_dependencies, cycle, asked_at }
        }
        other => other,
    };
    let blocked = || {
        // Asked before the label was set: it says nothing.
        let play = Play::working().says(Phase::Failed).is(State::Blocked);
        let play = play.event(seen(&["backlog"], 5000)).is(State::Blocked);
        play.event(seen(&["backlog", "blocked"], 5002)).is(State::Blocked)
    };
    assert!(blocked().event(seen(&["backlog"], 5003)).is(State::Backlog).task.ready);
    // Asked before and answered after.
    let play = blocked().event(seen(&["backlog"], 5001)).is(State::Blocked);
    assert!(play.event(seen(&["backlog"], 5004)).is(State::Backlog).task.ready);
    // The clock was set back by an hour meanwhile.
    assert!(blocked().event(seen(&["backlog"], 1402)).is(State::Backlog).task.ready);
}
