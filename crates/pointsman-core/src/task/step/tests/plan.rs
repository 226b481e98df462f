//! A plan is a question before any work is taken.

use super::Play;
use crate::part::question::{Change, Kind, QuestionId, Settlement};
use crate::task::{Effect, Event, Exit, Headline, Order, Phase, PlanStage, State, questions};

fn working() -> Play {
    let mut play = Play::new();
    play.policy.plan = true;
    let play = play.seen(&["backlog"]).event(Event::Ordered { order: Order::Begin }).event(Event::Claimed);
    let generation = play.task.session.generation;
    play.event(Event::SessionStarted { generation })
}

fn claims(phase: Phase, reason: Option<&str>, plan: Option<&str>) -> Event {
    let (reason, plan) = (reason.map(str::to_owned), plan.map(str::to_owned));
    Event::PhaseClaimed { generation: 1, phase, reason, refusal: None, plan }
}

fn plan(text: &str) -> Event {
    claims(Phase::Escalate, Some("plan"), Some(text))
}

fn asked() -> Play {
    working().event(plan("# Prices\nIn cents, with a test.")).is(State::Escalated)
}

fn words(text: &str) -> Event {
    Event::Answered { by: "ann".to_owned(), text: text.to_owned() }
}

fn decided(accepted: bool) -> Event {
    Event::PlanDecided { by: "ann".to_owned(), accepted, reason: "not now".to_owned() }
}

fn told(play: &Play) -> Vec<(Headline, String)> {
    let told = |effect: &Effect| match effect {
        Effect::Deliver { headline, details, .. } => Some((*headline, details.clone())),
        _ => None,
    };
    play.ordered.iter().filter_map(told).collect()
}

#[test]
fn the_plan_is_asked_about_and_shown_below_the_issue() {
    let play = asked();
    let question = play.task.escalation.as_ref().unwrap();
    assert_eq!(question.kind, Kind::Plan);
    assert!(question.subject.contains("Prices") && question.text().contains("In cents, with a test."));
    let comment = play.ordered.iter().find_map(|effect| match effect {
        Effect::Comment { body, .. } => Some(body.clone()),
        _ => None,
    });
    assert!(comment.is_some_and(|body| body.contains("In cents, with a test.")), "{:?}", play.ordered);
}

#[test]
fn a_yes_lets_the_agent_work_whoever_says_it_and_how() {
    for yes in [decided(true), words("yes"), words("LGTM!")] {
        let play = asked().event(yes.clone()).is(State::Working);
        assert_eq!(play.task.plan, PlanStage::Accepted, "{yes:?}");
        assert!(
            matches!(&told(&play)[..], [(Headline::Answer, text)] if text.contains("accepted your plan"))
        );
        let play = play.event(claims(Phase::AwaitingCi, None, None)).is(State::AwaitingCi);
        assert!(play.ordered.contains(&Effect::SyncBranch));
    }
}

#[test]
fn words_send_it_back_once() {
    let play = asked().event(words("Use a table.")).is(State::Working);
    assert_eq!(play.task.plan, PlanStage::SentBack);
    assert!(matches!(&told(&play)[..], [(Headline::Answer, text)] if text.contains("Rewrite the plan")));
    let play = play.event(plan("A table.")).is(State::Escalated);
    assert!(play.task.escalation.as_ref().unwrap().text().contains("begins to work"));
    let play = play.event(words("And an index.")).is(State::Working);
    assert_eq!(play.task.plan, PlanStage::Accepted, "it goes on with these words");
    assert!(matches!(&told(&play)[..], [(Headline::Answer, text)] if text.contains("need not show")));
}

#[test]
fn a_no_blocks_the_task_and_says_why() {
    let play = asked().event(decided(false)).is(State::Blocked);
    assert!(play.task.reason.as_ref().unwrap().contains("ann rejected the plan: not now"));
    assert!(play.ordered.contains(&Effect::EndSession { generation: 1, exit: Exit::Stopped }));
    // A new start wants a new plan.
    let play = play.event(Event::Ordered { order: Order::Start }).is(State::Working);
    assert_eq!(play.task.plan, PlanStage::Due);
}

#[test]
fn work_without_a_plan_is_not_taken_and_a_person_decides_the_second_time() {
    let play = working().event(claims(Phase::AwaitingCi, None, None)).is(State::Working);
    assert!(!play.ordered.contains(&Effect::SyncBranch));
    assert!(
        matches!(&told(&play)[..], [(Headline::WritePhase, text)] if text.contains("POINTSMAN_PLAN_FILE"))
    );
    let play = play.event(claims(Phase::AwaitingReview, None, None)).is(State::Escalated);
    assert_eq!(play.task.escalation.as_ref().unwrap().kind, Kind::Plan);
    // While the question is open, handing in changes nothing.
    let play = play.event(claims(Phase::AwaitingCi, None, None)).is(State::Escalated);
    assert!(!play.ordered.contains(&Effect::SyncBranch));
    play.event(decided(true)).event(claims(Phase::AwaitingCi, None, None)).is(State::AwaitingCi);
}

#[test]
fn an_empty_plan_is_asked_for_again_and_another_reason_is_another_question() {
    for empty in [None, Some("  \n")] {
        let play = working().event(claims(Phase::Escalate, Some("plan"), empty)).is(State::Working);
        assert!(matches!(&told(&play)[..], [(Headline::WritePhase, _)]));
    }
    let play = working().event(claims(Phase::Escalate, Some("which prices?"), None)).is(State::Escalated);
    assert_eq!(play.task.escalation.as_ref().unwrap().kind, Kind::Question);
    let play = play.event(words("yes")).is(State::Working);
    assert_eq!(play.task.plan, PlanStage::Due, "that was no answer to a plan");
}

#[test]
fn without_the_setting_nobody_is_asked_about_a_plan() {
    let play = Play::working().event(plan("x")).is(State::Escalated);
    assert_eq!(play.task.escalation.as_ref().unwrap().kind, Kind::Question);
    Play::working().event(claims(Phase::AwaitingCi, None, None)).is(State::AwaitingCi);
}

#[test]
fn a_plan_is_settled_once_and_by_whom() {
    let play = asked();
    let numbered = |play: &Play| {
        let mut task = play.task.task.clone();
        if let Some(question) = &mut task.escalation {
            question.id = Some(QuestionId(4));
        }
        task
    };
    let before = numbered(&play);
    for (event, how) in [
        (decided(true), Settlement::Approved),
        (decided(false), Settlement::Rejected { reason: "not now".to_owned() }),
        (words("Use a table."), Settlement::Answered { text: "Use a table.".to_owned() }),
    ] {
        let mut after = asked().event(event.clone());
        let ended = questions(&before, &event, &after.task, after.now);
        let [Change::Settled(question)] = &ended[..] else { panic!("{ended:?}") };
        let settled = question.settled.as_ref().unwrap();
        assert_eq!((settled.by.as_deref(), &settled.how), (Some("ann"), &how));
        after.refuses(decided(true));
        after.refuses(decided(false));
    }
}
