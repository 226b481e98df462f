use proptest::prelude::*;

use super::*;
use crate::formula::{Variables, shipped};

const MINUTE: i64 = 60_000;

fn run() -> Run {
    let config = Config::parse("name = \"shop\"\n", "p.toml").unwrap();
    let mut variables = Variables::new();
    variables.insert("project".to_owned(), "shop".to_owned());
    variables.insert("predictor_issues".to_owned(), "5".to_owned());
    let formula = Formula::render(shipped("run-predictor").unwrap(), "x", &variables).unwrap();
    Run::new(RunId(7), formula, &config, "ann", Timestamp(0))
}

fn policy() -> Policy {
    let second = Duration::from_secs;
    let question = question::Policy { remind: second(3600), timeout: second(7200) };
    Policy { lifetime: second(1200), restarts: 2, backoff: second(5), backoff_max: second(60), question }
}

fn go(run: &Run, event: Event, minutes: i64) -> Result<Run, Refused> {
    step(run, &event, &policy(), Timestamp(minutes * MINUTE))
}

fn done(generation: u32, step: &str) -> Event {
    Event::StepDone { generation, step: step.to_owned() }
}

#[test]
fn a_run_goes_step_by_step() {
    let begun = run();
    assert_eq!((begun.identity().as_str(), begun.model.as_deref()), ("predictor-shop-7", Some("sonnet")));
    assert_eq!(duty(&begun, &policy(), Timestamp(0)), Duty::Start);
    let running = go(&begun, Event::SessionStarted { generation: 1 }, 0).unwrap();
    assert_eq!(duty(&running, &policy(), Timestamp(0)), Duty::Follow);
    let early = go(&running, done(1, "analyze-and-predict"), 1).unwrap_err();
    assert_eq!(early.0, "analyze-and-predict needs collect-signals, which is not done");
    assert!(go(&running, done(1, "dance"), 1).unwrap_err().0.contains("has no step dance"));
    let mut now = running;
    for step in ["preflight", "collect-signals", "analyze-and-predict"] {
        assert_eq!(now.next_step().unwrap().id, step);
        now = go(&now, done(1, step), 1).unwrap();
        assert_eq!(go(&now, done(1, step), 2).unwrap(), now, "saying it twice is saying it once");
    }
    assert_eq!((now.status, now.next_step()), (Status::Running, None), "its result is looked at first");
    let result = Some(serde_json::json!({"predictions": []}));
    let over = go(&now, Event::Finished { generation: 1, result: result.clone() }, 3).unwrap();
    assert_eq!(
        (over.status, &over.result, over.ended_at),
        (Status::Done, &result, Some(Timestamp(3 * MINUTE)))
    );
    assert_eq!(duty(&over, &policy(), Timestamp(0)), Duty::End);
    let away = go(&over, Event::SessionEnded, 3).unwrap();
    assert!(!away.is_open() && duty(&away, &policy(), Timestamp(0)) == Duty::Wait);
    assert!(go(&away, Event::Stopped { by: "ann".to_owned() }, 4).is_err());
}

#[test]
fn a_successor_goes_on_where_the_dead_one_was() {
    let running = go(&run(), Event::SessionStarted { generation: 1 }, 0).unwrap();
    let one = go(&running, done(1, "preflight"), 1).unwrap();
    let died = go(&one, Event::SessionDied { generation: 1 }, 2).unwrap();
    assert_eq!((died.status, died.generation, died.not_before), (Status::Starting, 2, Timestamp(2 * MINUTE)));
    assert_eq!(died.next_step().unwrap().id, "collect-signals");
    for stale in [
        done(1, "collect-signals"),
        Event::SessionDied { generation: 1 },
        Event::SessionStarted { generation: 1 },
    ] {
        assert!(go(&died, stale, 2).is_err(), "the dead have no say");
    }
    let second = go(&died, Event::SessionStarted { generation: 2 }, 2).unwrap();
    let again = go(&second, Event::SessionDied { generation: 2 }, 3).unwrap();
    assert_eq!(again.not_before, Timestamp(3 * MINUTE + 5_000), "the second pause is longer");
    assert_eq!(duty(&again, &policy(), Timestamp(3 * MINUTE)), Duty::Wait);
    let third = go(&again, Event::SessionStarted { generation: 3 }, 4).unwrap();
    let given_up = go(&third, Event::SessionDied { generation: 3 }, 5).unwrap();
    assert_eq!(
        (given_up.status, given_up.reason.as_deref()),
        (Status::Failed, Some("its sessions died 3 times"))
    );
}

#[test]
fn a_claim_without_its_steps_is_not_believed() {
    let running = go(&run(), Event::SessionStarted { generation: 1 }, 0).unwrap();
    let claimed = go(&running, Event::Finished { generation: 1, result: None }, 1).unwrap();
    assert_eq!(claimed.status, Status::Failed);
    assert!(claimed.reason.unwrap().contains("the step preflight is not"));
    assert!(go(&running, Event::TimePassed, 19).is_err());
    let late = go(&running, Event::TimePassed, 20).unwrap();
    assert_eq!((late.status, late.reason.as_deref()), (Status::Failed, Some("it was not done after 20m")));
}

#[test]
fn a_result_is_an_object_or_nothing() {
    assert_eq!(read_result(None), Ok(None));
    assert_eq!(read_result(Some(b" \n")), Ok(None));
    assert!(read_result(Some(b"{\"a\": 1}")).unwrap().is_some());
    for wrong in [&b"[1]"[..], b"approve", b"{", b"\xff"] {
        assert!(read_result(Some(wrong)).is_err());
    }
    assert!(read_result(Some(&vec![b'{'; 10 << 20])).unwrap_err().contains("more than"));
}

proptest! {
    /// Whatever comes in whatever order: steps follow their needs, generations grow, and what is over stays so.
    #[test]
    fn any_order_of_events_keeps_the_rules(events in prop::collection::vec((0usize..9, 1u32..4, 0i64..3), 0..50)) {
        let steps = ["preflight", "collect-signals", "analyze-and-predict"];
        let mut now = run();
        let mut time = 0;
        for (which, generation, minutes) in events {
            time += minutes;
            let event = match which {
                0 => Event::SessionStarted { generation },
                1..=3 => done(generation, steps[which - 1]),
                4 => Event::Finished { generation, result: None },
                5 => Event::GaveUp { generation, why: "no".to_owned() },
                6 => Event::SessionDied { generation },
                7 => Event::TimePassed,
                _ => Event::SessionEnded,
            };
            let Ok(next) = go(&now, event, time) else { continue };
            prop_assert!(next.generation >= now.generation && next.done.len() >= now.done.len());
            prop_assert!(!now.status.is_over() || next.status == now.status);
            prop_assert!(next.status != Status::Done || next.next_step().is_none());
            for (place, id) in next.done.iter().enumerate() {
                let (_, step) = next.formula.step(&id.id).unwrap();
                prop_assert!(step.needs.iter().all(|need| next.done[..place].iter().any(|d| d.id == *need)));
            }
            prop_assert_eq!(next.status.is_over(), next.ended_at.is_some());
            now = next;
        }
    }
}

fn asks(claim: &str) -> Event {
    Event::Asked { generation: 1, why: "May I delete bucket A?".to_owned(), claim: claim.to_owned() }
}

fn answers() -> Event {
    Event::Answered { by: "ann".to_owned(), text: "yes".to_owned() }
}

/// A run whose session asked at minute 1, with a number.
fn asking() -> Run {
    let running = go(&run(), Event::SessionStarted { generation: 1 }, 0).unwrap();
    let mut run = go(&running, asks("first"), 1).unwrap();
    run.question.as_mut().unwrap().id = Some(QuestionId(4));
    run
}

#[test]
fn a_session_asks_once_by_a_claim_and_is_answered_once() {
    let asking = asking();
    assert_eq!(asking.question.as_ref().unwrap().source.owner.to_string(), "run/7");
    assert!(go(&asking, asks("first"), 2).is_err(), "the same claim");
    let answered = go(&asking, answers(), 5).unwrap();
    assert_eq!((answered.question.as_ref(), answered.answered), (None, Some(QuestionId(4))));
    assert_eq!((answered.waited_ms, answered.waited_until), (4 * 60_000, Some(Timestamp(5 * MINUTE))));
    assert!(go(&answered, answers(), 6).is_err(), "nobody waits");
    assert!(go(&answered, asks("first"), 6).is_err(), "the claim that was answered");
    let again = go(&answered, asks("second"), 7).unwrap();
    assert!(again.question.is_some());
    let not_yet = Run { status: Status::Starting, ..run() };
    assert!(go(&not_yet, asks("first"), 1).is_err());
}

#[test]
fn the_wait_for_a_person_costs_none_of_the_time_of_a_run() {
    let asking = asking();
    assert_eq!(duty(&asking, &policy(), Timestamp(50 * MINUTE)), Duty::Follow);
    let answered = go(&asking, answers(), 50).unwrap();
    assert_eq!(duty(&answered, &policy(), Timestamp(60 * MINUTE)), Duty::Follow);
    assert_eq!(duty(&answered, &policy(), Timestamp(69 * MINUTE)), Duty::Time);
}

#[test]
fn people_are_reminded_of_the_question_of_a_run_and_then_it_fails() {
    let asking = asking();
    assert_eq!(duty(&asking, &policy(), Timestamp(61 * MINUTE)), Duty::Question);
    let reminded = go(&asking, Event::QuestionDue, 61).unwrap();
    assert_eq!(reminded.question.as_ref().map(|asked| asked.notices), Some(2));
    assert!(go(&reminded, Event::QuestionDue, 61).is_err(), "nothing is due");
    let over = go(&reminded, Event::QuestionDue, 121).unwrap();
    assert_eq!(over.status, Status::Failed);
    assert_eq!(over.reason.as_deref(), Some("nobody answered within 2h: May I delete bucket A?"));
}

#[test]
fn the_end_of_a_question_says_how() {
    let asking = asking();
    let how = |event: Event, minutes: i64| {
        let now = Timestamp(minutes * MINUTE);
        let after = go(&asking, event.clone(), minutes).unwrap();
        match &questions(&asking, &event, &after, now)[..] {
            [question::Change::Settled(over), ..] => over.settled.clone().unwrap().how,
            other => panic!("{other:?}"),
        }
    };
    use question::Settlement::{Answered, Expired, Withdrawn};
    assert_eq!(how(answers(), 2), Answered { text: "yes".to_owned() });
    assert_eq!(how(Event::QuestionDue, 121), Expired);
    let why = |how: question::Settlement| match how {
        Withdrawn { why } => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(how(asks("second"), 2)), "the agent asks something else");
    assert_eq!(why(how(Event::WentOn { generation: 1 }, 2)), "the agent went on by itself");
    assert_eq!(why(how(Event::SessionDied { generation: 1 }, 2)), "its session died");
    assert_eq!(why(how(Event::Stopped { by: "ann".to_owned() }, 2)), "the run is stopped now");
}
