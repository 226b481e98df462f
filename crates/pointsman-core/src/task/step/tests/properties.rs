//! What must hold after any sequence of events.

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};

use super::super::state_of;
use super::{Play, infra, red, sha};
use crate::task::{
    CiVerdict, Effect, Event, Exit, Order, Phase, PrFact, QueueOutcome, ReviewVerdict, Stage, State, Task,
};

/// An event that fits the task's present generation, head and try, or is a little off.
#[derive(Clone, Debug)]
struct Nudge {
    kind: u8,
    pick: u8,
    off: bool,
    hours: u8,
}

fn nudges() -> impl Strategy<Value = Vec<Nudge>> {
    let nudge = (0u8..21, any::<u8>(), prop_oneof![9 => Just(false), 1 => Just(true)], 0u8..30)
        .prop_map(|(kind, pick, off, hours)| Nudge { kind, pick, off, hours });
    proptest::collection::vec(nudge, 1..60)
}

fn event(play: &Play, nudge: &Nudge) -> Event {
    let generation = play.task.session.generation.saturating_sub(u32::from(nudge.off));
    let head = play.task.head.clone().filter(|_| !nudge.off).unwrap_or_else(|| sha('0'));
    let digit = char::from(b'a' + nudge.pick % 6);
    let run = play.task.contribution.ci_run;
    let observed = |open: bool, labels: &[&str], dependencies: Vec<u64>| Event::IssueObserved {
        title: "t".into(),
        open,
        labels: labels.iter().map(|&l| l.into()).collect(),
        dependencies: dependencies.clone(),
        open_dependencies: dependencies,
        cycle: None,
        asked_at: None,
    };
    match nudge.kind {
        0 => observed(true, &["backlog"], vec![]),
        1 => observed(true, &["backlog", "blocked"], vec![]),
        2 => observed(nudge.pick != 0, &["in-progress"], vec![1; usize::from(nudge.pick % 2)]),
        3 => Event::Ordered { order: Order::Begin },
        4 => match nudge.pick % 12 {
            0 => Event::Ordered { order: Order::Stop },
            1 => Event::Ordered { order: Order::Pause },
            2..=5 => Event::Ordered { order: Order::Resume },
            _ => Event::Ordered { order: Order::Start },
        },
        5 | 6 => Event::Claimed,
        7 | 8 => Event::SessionStarted { generation },
        9 => Event::SessionEnded { generation, exit: Exit::Crashed, tail: "t".into() },
        10 | 11 => {
            let phase = Phase::ALL[usize::from(nudge.pick) % 5];
            Event::PhaseClaimed { generation, phase, reason: None, refusal: None, plan: None }
        }
        12 | 13 => Event::BranchSynced {
            head: (nudge.pick > 20).then(|| sha(digit)),
            protected: vec![],
            secret: None,
            risk: None,
        },
        14 => Event::PullRequestOpened { number: 7 },
        15 => {
            let verdict = match nudge.pick % 4 {
                0 => red(),
                1 => infra(),
                _ => CiVerdict::Passed,
            };
            Event::ChecksFinished { sha: head, run, verdict, flaky: false }
        }
        16 => {
            let verdict = match nudge.pick % 4 {
                0 => ReviewVerdict::RequestChanges,
                1 => ReviewVerdict::Discuss,
                _ => ReviewVerdict::Approve,
            };
            Event::ReviewPosted { sha: head, verdict, by: "a".into(), by_agent: false, body: "b".into() }
        }
        17 => {
            let outcome = match nudge.pick % 3 {
                0 => QueueOutcome::Conflict { files: vec!["f".into()], with: None },
                1 => QueueOutcome::Stale { reason: "s".into() },
                _ => QueueOutcome::Landed { sha: sha('f') },
            };
            Event::QueueReported { head, outcome }
        }
        18 => {
            Event::PullRequestObserved { fact: if nudge.pick == 0 { PrFact::Closed } else { PrFact::Open } }
        }
        19 => Event::Answered { by: "a".into(), text: "b".into() },
        _ => Event::TimePassed,
    }
}

fn check(before: &Play, after: &Play) {
    let task: &Task = &after.task;
    let costs = task.state.has_session();
    // Whatever may cost money has a deadline, a pending order, or a person who was asked.
    let has_exit = task.ends_at().is_some()
        || task.session.restart_at.is_some()
        || matches!(task.session.stage, Stage::Starting | Stage::Ending)
        || after.kinds().contains(&"claim_issue")
        || (task.state == State::Working && task.session.stage == Stage::None);
    assert!(!costs || has_exit, "{task:?}");
    if !costs {
        assert!(
            !matches!(task.session.stage, Stage::Alive | Stage::Starting),
            "a session outlives: {task:?}"
        );
        assert_eq!(task.session.restart_at, None, "{task:?}");
    }
    assert_eq!(task.escalation.is_some(), task.state == State::Escalated);
    // The state says what the contribution waits for.
    let waits = matches!(task.state, State::AwaitingCi | State::AwaitingReview | State::MergeQueue);
    assert_eq!(task.contribution.awaited().map(state_of), waits.then_some(task.state), "{task:?}");
    assert!(task.session.generation >= before.task.session.generation);
    assert!(task.session.restarts <= after.policy.session.restarts + 1);
    assert!(task.contribution.attempts.ci_fixes <= after.policy.ci_fixes + 1);
    // Nothing reaches the queue that is not green and approved at that very commit.
    for effect in &after.ordered {
        match effect {
            Effect::Enqueue { head } => {
                assert!(task.contribution.passed(head), "{task:?}");
                assert!(task.contribution.is_approved(head), "{task:?}");
            }
            Effect::Deliver { generation, .. } => assert_eq!(*generation, task.session.generation),
            Effect::CloseIssue => {
                assert!(task.contribution.merged_as().is_some(), "only merged work closes an issue")
            }
            _ => {}
        }
    }
    let starts = after.ordered.iter().filter(|e| matches!(e, Effect::StartSession { .. })).count();
    assert!(starts <= 1);
    let json = serde_json::to_string(task).unwrap();
    assert_eq!(&serde_json::from_str::<crate::task::Task>(&json).unwrap(), task, "a snapshot reads back");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_events_breaks_a_promise(nudges in nudges()) {
        let mut play = Play::new();
        for nudge in nudges {
            let before = Play { task: play.task.clone(), policy: super::policy(), now: play.now, ordered: vec![] };
            play.now = play.now.after(super::HOUR * u32::from(nudge.hours) / 10);
            play.ordered.clear();
            if play.try_event(event(&play, &nudge)).is_ok() {
                check(&before, &play);
            }
        }
    }
}
