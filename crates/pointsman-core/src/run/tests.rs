use proptest::prelude::*;

use super::*;
use crate::deed::{Act, Ending};
use crate::formula::{Variables, shipped};
use crate::session::budget::Level;
use crate::session::context::{Gauge, Source};
use crate::task::{Effect, Exit, Headline, Opening, Phase};
use crate::workflow::Refused;

const MINUTE: i64 = 60_000;
const STEPS: [&str; 3] = ["preflight", "collect-signals", "analyze-and-predict"];

fn run() -> Run {
    let config = Config::parse("name = \"shop\"\n", "p.toml").unwrap();
    let mut variables = Variables::new();
    variables.insert("project".to_owned(), "shop".to_owned());
    variables.insert("predictor_issues".to_owned(), "5".to_owned());
    let formula = Formula::render(shipped("run-predictor").unwrap(), "x", &variables).unwrap();
    Run::new(RunId(7), formula, &config, "ann", Timestamp(0))
}

fn policy() -> Policy {
    let config = Config::parse("name = \"shop\"\n[limits]\nrestarts = 2\n", "p.toml").unwrap();
    Policy { lifetime: Duration::from_secs(1200), ..Policy::new(&config, Role::Predictor) }
}

fn go(run: &Run, event: Event, minutes: i64) -> Result<Transition, Refused> {
    step(run, &event, &policy(), Timestamp(minutes * MINUTE))
}

/// The run after an event that must be taken, and its orders by name.
fn took(run: &Run, event: Event, minutes: i64) -> (Run, Vec<&'static str>) {
    let Transition { run, effects } = go(run, event, minutes).unwrap();
    let kinds = effects.iter().map(Effect::kind).collect();
    (run, kinds)
}

fn told(generation: u32, told: session::Event) -> Event {
    Event::Session { generation, told }
}

fn ended(generation: u32) -> Event {
    told(generation, session::Event::Ended { exit: Exit::Crashed, tail: String::new() })
}

fn claimed(generation: u32, phase: Phase, reason: Option<&str>) -> Event {
    let reason = reason.map(str::to_owned);
    told(generation, session::Event::PhaseClaimed { phase, reason, refusal: None, plan: None })
}

fn done(generation: u32, step: &str) -> Event {
    Event::StepDone { generation, step: step.to_owned() }
}

/// A run whose first session is up.
fn running() -> Run {
    let (begun, orders) = took(&run(), Event::Begun, 0);
    assert_eq!((orders, begun.status), (vec!["start_session"], Status::Starting));
    let (running, orders) = took(&begun, told(1, session::Event::Started), 0);
    assert_eq!((orders.len(), running.status), (0, Status::Running));
    running
}

/// The same with all steps done.
fn through() -> Run {
    STEPS.iter().fold(running(), |run, step| took(&run, done(1, step), 1).0)
}

#[test]
fn a_run_goes_step_by_step() {
    let begun = run();
    assert_eq!((begun.identity().as_str(), begun.model.as_deref()), ("predictor-shop-7", Some("sonnet")));
    let mut now = running();
    assert_eq!(now.session_name(), "predictor-shop-7.1");
    let early = go(&now, done(1, "analyze-and-predict"), 1).unwrap_err();
    assert_eq!(early.to_string(), "analyze-and-predict needs collect-signals, which is not done");
    assert!(go(&now, done(1, "dance"), 1).unwrap_err().to_string().contains("has no step dance"));
    for step in STEPS {
        assert_eq!(now.next_step().unwrap().id, step);
        now = took(&now, done(1, step), 1).0;
        assert_eq!(took(&now, done(1, step), 2).0, now, "saying it twice is saying it once");
    }
    assert_eq!((now.status, now.next_step()), (Status::Running, None), "its result is looked at first");
    let (asked, orders) = took(&now, claimed(1, Phase::Done, None), 2);
    assert_eq!((orders, asked.demand()), (vec!["read_result"], Demand::Farewell));
    let result = Some(serde_json::json!({"predictions": []}));
    let (over, orders) = took(&asked, Event::Finished { generation: 1, result: result.clone() }, 3);
    assert_eq!(
        (over.status, &over.result, over.ended_at),
        (Status::Done, &result, Some(Timestamp(3 * MINUTE)))
    );
    assert_eq!(orders, ["end_session", "clean_up"]);
    let (away, orders) = took(&over, ended(1), 3);
    assert!(away.is_open(), "its tree is still to be put away");
    let away = took(&away, Event::CleanedUp, 3).0;
    assert!(!away.is_open() && orders.is_empty() && away.wake_at(&policy()).is_none());
    assert!(go(&away, Event::Stopped { by: "ann".to_owned() }, 4).is_err());
}

#[test]
fn an_agent_that_is_through_and_says_nothing_is_believed_by_its_steps() {
    for event in [
        ended(1),
        told(1, session::Event::TurnEnded),
        told(1, session::Event::IdleLooked { at_prompt: true }),
    ] {
        let (asked, orders) = took(&through(), event.clone(), 2);
        assert!(
            orders.contains(&"read_result") && !orders.contains(&"start_session"),
            "{event:?}: {orders:?}"
        );
        assert_eq!(asked.phase, Some(Phase::Done));
        let again = go(&asked, told(1, session::Event::TurnEnded), 2);
        let again = again.map(|next| next.effects).unwrap_or_default();
        assert!(!again.iter().any(|effect| effect.kind() == "read_result"), "it is read once");
    }
    let (late, orders) = took(&through(), Event::TimePassed, 20);
    assert_eq!((orders, late.status), (vec!["read_result"], Status::Running), "what was done counts");
}

#[test]
fn a_successor_goes_on_where_the_dead_one_was() {
    let (one, _) = took(&running(), done(1, "preflight"), 1);
    let Transition { run: died, effects } = go(&one, ended(1), 2).unwrap();
    assert_eq!(effects, [Effect::StartSession { generation: 2, opening: Opening::Recovery }]);
    assert_eq!((died.status, died.session.generation), (Status::Starting, 2));
    assert_eq!(died.next_step().unwrap().id, "collect-signals");
    for stale in [done(1, "collect-signals"), ended(1), told(1, session::Event::Started)] {
        assert!(go(&died, stale, 2).is_err(), "the dead have no say");
    }
    let (second, _) = took(&died, told(2, session::Event::Started), 2);
    let (again, orders) = took(&second, ended(2), 3);
    assert!(orders.is_empty(), "the second pause is longer");
    let at = again.wake_at(&policy()).unwrap();
    assert!(at > Timestamp(3 * MINUTE) && at < Timestamp(4 * MINUTE));
    let (third, orders) = took(&again, Event::TimePassed, 4);
    assert_eq!((orders, third.session.generation), (vec!["start_session"], 3));
    let (third, _) = took(&third, told(3, session::Event::Started), 4);
    let (given_up, orders) = took(&third, ended(3), 5);
    assert_eq!(
        (given_up.status, given_up.reason.as_deref(), orders),
        (Status::Failed, Some("its sessions died 3 times"), vec!["clean_up"])
    );
}

#[test]
fn a_claim_without_its_steps_is_not_believed() {
    let (claimed, _) = took(&running(), Event::Finished { generation: 1, result: None }, 1);
    assert_eq!(claimed.status, Status::Failed);
    assert!(claimed.reason.unwrap().contains("the step preflight is not"));
    let (early, orders) = took(&running(), Event::TimePassed, 19);
    assert_eq!((early, orders.len()), (running(), 0));
    let (late, orders) = took(&running(), Event::TimePassed, 20);
    assert_eq!(
        (late.status, late.reason.as_deref()),
        (Status::Failed, Some("it was not finished after 20m"))
    );
    assert_eq!(orders, ["end_session", "clean_up"]);
}

#[test]
fn a_question_waits_for_a_person_and_costs_no_time() {
    let (asking, orders) = took(&running(), claimed(1, Phase::Escalate, Some("may I delete bucket A?")), 10);
    assert_eq!((orders, asking.demand()), (vec!["notify_question"], Demand::Answer));
    assert_eq!(asking.reason.as_deref(), Some("may I delete bucket A?"));
    let (idle, orders) = took(&asking, Event::TimePassed, 30);
    assert_eq!((&idle, orders.len()), (&asking, 0), "its lifetime stands still");
    assert!(go(&asking, told(1, session::Event::IdleLooked { at_prompt: true }), 30).is_err());
    let (reminded, orders) = took(&asking, Event::TimePassed, 10 + 6 * 60);
    assert_eq!((orders, reminded.question.as_ref().unwrap().notices), (vec!["notify_question"], 2));
    let answer = |by: &str| Event::Answered { by: by.to_owned(), text: "Yes.".to_owned() };
    let Transition { run: answered, effects } = go(&reminded, answer("ann"), 10 + 7 * 60).unwrap();
    assert!(matches!(effects[..], [Effect::Deliver { generation: 1, headline: Headline::Answer, .. }]));
    assert_eq!((answered.question.is_none(), answered.demand()), (true, Demand::Work));
    assert!(go(&answered, answer("bob"), 10 + 7 * 60).is_err(), "it is settled");
    let (on, _) = took(&answered, Event::TimePassed, 10 + 7 * 60 + 9);
    assert_eq!(on.status, Status::Running, "nine of its twenty minutes are left");
    let (late, _) = took(&answered, Event::TimePassed, 10 + 7 * 60 + 10);
    assert_eq!(late.status, Status::Failed);
}

#[test]
fn a_question_that_nobody_answers_ends_the_run_after_one_more_reminder() {
    let (asking, _) = took(&running(), claimed(1, Phase::Escalate, None), 10);
    // The machine slept through all of it: people are reminded first.
    let (reminded, orders) = took(&asking, Event::TimePassed, 10 + 30 * 60);
    assert_eq!((orders, reminded.status), (vec!["notify_question"], Status::Running));
    let (patient, _) = took(&reminded, Event::TimePassed, 10 + 36 * 60 - 1);
    assert_eq!(patient.status, Status::Running, "they have until the next reminder would come");
    let (over, orders) = took(&reminded, Event::TimePassed, 10 + 36 * 60);
    assert_eq!((over.status, orders), (Status::Failed, vec!["end_session", "clean_up"]));
    // Awake all the time it is reminded every six hours, and given up after a day.
    let mut awake = asking;
    for hours in [6, 12, 18] {
        awake = took(&awake, Event::TimePassed, 10 + hours * 60).0;
        assert_eq!(awake.status, Status::Running);
    }
    assert_eq!(awake.question.as_ref().unwrap().notices, 4);
    assert_eq!(took(&awake, Event::TimePassed, 10 + 24 * 60).0.status, Status::Failed);
}

#[test]
fn a_session_that_dies_while_it_waits_is_replaced_when_the_answer_comes() {
    let (asking, _) = took(&running(), claimed(1, Phase::Escalate, Some("which?")), 1);
    let (dead, orders) = took(&asking, ended(1), 2);
    assert_eq!((orders.len(), dead.question.is_some()), (0, true));
    let answer = Event::Answered { by: "ann".to_owned(), text: "The first.".to_owned() };
    let (_, orders) = took(&dead, answer, 3);
    assert_eq!(orders, ["start_session", "deliver"]);
}

#[test]
fn a_rate_limit_parks_a_run_and_costs_neither_time_nor_a_session() {
    let until = Some(Timestamp(40 * MINUTE));
    let failed = session::Event::TurnFailed { error: "rate_limit".to_owned(), details: String::new(), until };
    let (parked, orders) = took(&running(), told(1, failed), 10);
    assert_eq!((orders.len(), parked.session.parked_until), (0, until));
    let (on, orders) = took(&parked, Event::TimePassed, 40);
    assert_eq!((orders, on.status, on.session.parked_until), (vec!["deliver"], Status::Running, None));
    assert_eq!(took(&on, Event::TimePassed, 49).0.status, Status::Running);
    assert_eq!(took(&on, Event::TimePassed, 50).0.status, Status::Failed);
}

#[test]
fn a_run_hands_over_a_full_context_and_ends_at_its_budget() {
    let gauge = Gauge { used_permille: 960, source: Source::StatusLine };
    let (asked, orders) = took(&running(), told(1, session::Event::ContextMeasured { gauge }), 1);
    assert_eq!((orders, asked.session.handoff.is_some()), (vec!["deliver"], true));
    let Transition { run, effects } = go(&asked, ended(1), 2).unwrap();
    assert_eq!(effects, [Effect::StartSession { generation: 2, opening: Opening::Continuation }]);
    assert_eq!(run.session.handoffs, 1);
    let spent = session::Event::BudgetReached { level: Level::Hard, what: "the day".to_owned(), until: None };
    let (over, orders) = took(&running(), told(1, spent), 1);
    assert_eq!((over.status, orders), (Status::Stopped, vec!["end_session", "clean_up"]));
}

#[test]
fn a_run_that_cannot_begin_says_so_and_what_cannot_be_ended_is_ended_later() {
    let (begun, _) = took(&run(), Event::Begun, 0);
    let refused = session::Event::NotStarted { error: "no such program".to_owned() };
    let (over, orders) = took(&begun, told(1, refused), 0);
    assert_eq!((over.status, over.never_began, over.is_open()), (Status::Failed, true, true));
    assert_eq!(orders, ["end_session", "clean_up"]);
    let failed = Event::EffectGaveUp { effect: "end_session".to_owned(), error: "no tmux".to_owned() };
    let (stuck, orders) = took(&over, failed, 1);
    assert_eq!(orders, ["notify"]);
    let at = stuck.wake_at(&policy()).unwrap();
    assert!(at > Timestamp(MINUTE), "not in a circle");
    let (again, orders) = took(&stuck, Event::TimePassed, 60);
    assert_eq!((orders, again.session.stage), (vec!["end_session", "clean_up"], Stage::Ending));
    // Stopped before its session was up: the session is ended as soon as it is known.
    let (stopped, _) = took(&begun, Event::Stopped { by: "ann".to_owned() }, 0);
    assert_eq!(stopped.session.stage, Stage::Ending);
}

#[test]
fn a_result_that_cannot_be_used_may_be_corrected_once() {
    let unusable =
        || Event::GaveUp { generation: 1, why: "the key `verdict` appears twice".to_owned(), unusable: true };
    let (asked, _) = took(&through(), claimed(1, Phase::Done, None), 2);
    let Transition { run: told_so, effects } = go(&asked, unusable(), 3).unwrap();
    assert_eq!((told_so.status, told_so.phase, told_so.corrected), (Status::Running, None, true));
    let [Effect::Deliver { headline: Headline::WritePhase, details, .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert!(details.contains("appears twice"), "{details}");
    assert!(told_so.session.reminded, "it is not asked for the same a second time");
    // It may not have begun to correct it.
    let idle = go(&told_so, told(1, session::Event::IdleLooked { at_prompt: true }), 3);
    let orders = idle.map(|next| next.effects).unwrap_or_default();
    assert!(!orders.iter().any(|effect| effect.kind() == "read_result"), "{orders:?}");
    let (again, orders) = took(&told_so, claimed(1, Phase::Done, None), 4);
    assert_eq!(orders, ["read_result"]);
    assert_eq!(took(&again, unusable(), 5).0.status, Status::Failed, "only once");
    // Without a session there is nobody to correct it.
    let (gone, _) = took(&through(), ended(1), 2);
    assert_eq!(took(&gone, unusable(), 3).0.status, Status::Failed);
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

#[test]
fn a_run_of_0_1_0_goes_on() {
    use crate::snapshot::Snapshot;
    let old = |status: &str, open: bool| {
        let mut value = serde_json::to_value(running()).unwrap();
        for name in ["session", "phase", "waited_ms", "question", "retry_at", "cleaning"] {
            value.as_object_mut().unwrap().remove(name);
        }
        value["status"] = status.into();
        (value["generation"], value["restarts"], value["not_before"]) = (3.into(), 2.into(), 5.into());
        value["session_open"] = open.into();
        Run::read(1, &value.to_string()).unwrap()
    };
    let starting = old("starting", false);
    assert_eq!((starting.session.generation, starting.session.restarts), (2, 2));
    let (ordered, orders) = took(&starting, Event::TimePassed, 1);
    assert_eq!((orders, ordered.session.generation), (vec!["start_session"], 3), "the same session");
    let alive = old("running", true);
    assert_eq!((alive.session.stage, alive.session.generation), (Stage::Alive, 3));
    let over = old("failed", true);
    assert_eq!(over.wake_at(&policy()), Some(Timestamp(0)));
    assert_eq!(took(&over, Event::TimePassed, 1).1, ["end_session", "clean_up"]);
    assert!(!old("done", false).is_open());
}

proptest! {
    /// Whatever comes in whatever order: steps follow their needs, generations grow, and what is over stays so.
    #[test]
    fn any_order_of_events_keeps_the_rules(events in prop::collection::vec((0usize..16, 1u32..4, 0i64..30), 0..50)) {
        let mut now = took(&run(), Event::Begun, 0).0;
        let mut time = 0;
        for (which, generation, minutes) in events {
            time += minutes;
            let event = match which {
                0 => told(generation, session::Event::Started),
                1..=3 => done(generation, STEPS[which - 1]),
                4 => Event::Finished { generation, result: None },
                5 => Event::GaveUp { generation, why: "no".to_owned(), unusable: generation % 2 == 1 },
                6 | 7 => ended(generation),
                8 => claimed(generation, Phase::Escalate, None),
                9 => claimed(generation, Phase::Done, None),
                10 => Event::Answered { by: "ann".to_owned(), text: "yes".to_owned() },
                11 => told(generation, session::Event::IdleLooked { at_prompt: true }),
                12 => told(generation, session::Event::TurnEnded),
                13 => Event::EffectGaveUp { effect: "end_session".to_owned(), error: "no".to_owned() },
                14 => told(generation, session::Event::NotStarted { error: "no".to_owned() }),
                _ => Event::TimePassed,
            };
            let Ok(Transition { run: next, effects }) = go(&now, event, time) else { continue };
            prop_assert!(next.session.generation >= now.session.generation && next.done.len() >= now.done.len());
            prop_assert!(!now.status.is_over() || next.status == now.status);
            prop_assert!(next.status != Status::Done || next.next_step().is_none());
            prop_assert!(next.question.is_none() || next.demand() == Demand::Answer);
            for (place, id) in next.done.iter().enumerate() {
                let (_, step) = next.formula.step(&id.id).unwrap();
                prop_assert!(step.needs.iter().all(|need| next.done[..place].iter().any(|d| d.id == *need)));
            }
            prop_assert_eq!(next.status.is_over(), next.ended_at.is_some());
            let begins = effects.iter().any(|effect| matches!(effect, Effect::StartSession { .. }));
            prop_assert!(!(begins && next.status.is_over()), "nothing starts for a run that is over");
            if !now.status.is_over() && next.status.is_over() {
                prop_assert!(effects.iter().any(|effect| matches!(effect, Effect::CleanUp)));
            }
            now = next;
        }
        // Nothing waits for ever: time alone brings every run to its end.
        for _ in 0..60 {
            time += 24 * 60;
            if now.status.is_over() { break; }
            let pending = now.phase == Some(Phase::Done);
            let event = if pending {
                Event::Finished { generation: now.session.generation, result: None }
            } else {
                Event::TimePassed
            };
            now = took(&now, event, time).0;
        }
        prop_assert!(now.status.is_over());
    }
}

#[test]
fn a_deed_about_a_run_is_ordered_once_and_a_review_again_only_if_its_pull_request_was_closed_meanwhile() {
    let head = Sha::new(&"a".repeat(40)).unwrap();
    let wants = |name: &str, act: &Act| Event::DeedWanted { name: name.to_owned(), act: act.clone() };
    let ends = |name: &str, ending: Ending| Event::DeedEnded { name: name.to_owned(), ending };
    let review = Act::PostReview { pr: 3, head };
    let remark = Act::Remark { pr: 3, marker: "m".to_owned(), body: "b".to_owned() };
    let refused = Ending::Refused { error: "no rights".to_owned() };
    for (act, ending, orders, again) in [
        (&review, Ending::Done { filed: None }, vec![], false),
        (&review, refused.clone(), vec!["notify"], false),
        (&review, Ending::Gone, vec![], true),
        (&remark, Ending::Gone, vec![], false),
        (&remark, refused, vec!["notify"], false),
    ] {
        let (wanted, ordered) = took(&running(), wants("it", act), 1);
        assert_eq!(ordered, ["deed"]);
        assert!(wanted.is_open() && go(&wanted, wants("it", act), 1).is_err(), "it is on its way");
        let (ended, told) = took(&wanted, ends("it", ending.clone()), 2);
        assert_eq!(told, orders, "{ending:?}");
        assert!(go(&ended, ends("it", ending.clone()), 2).is_err(), "it has ended");
        assert_eq!(go(&ended, wants("it", act), 3).is_ok(), again, "{act:?} {ending:?}");
    }
}

fn setup_failed(generation: u32, opening: Opening) -> Event {
    let (error, log) = ("exit code 1".to_owned(), "npm ERR! ENOTFOUND".to_owned());
    Event::SetupFailed { generation, opening, error, log }
}

#[test]
fn a_set_up_that_fails_asks_once_and_a_yes_starts_the_session_that_never_was() {
    let (begun, _) = took(&run(), Event::Begun, 0);
    let (asking, orders) = took(&begun, setup_failed(1, Opening::Fresh), 1);
    assert_eq!(orders, ["notify_question"]);
    let asked = asking.question.clone().unwrap();
    assert_eq!((asked.kind, asked.expires_at), (question::Kind::Setup, None));
    assert!(asked.body.contains("npm ERR! ENOTFOUND") && !asked.body.contains("failed 2 times"));
    assert_eq!((asking.session.restarts, asking.session.stage), (0, Stage::None));
    // Days later nothing has happened by itself but a reminder, and its time has not run out.
    let (late, orders) = took(&asking, Event::TimePassed, 3 * 24 * 60);
    assert_eq!((orders, late.status), (vec!["notify_question"], Status::Starting));
    let Transition { run: again, effects } =
        go(&late, Event::SetupRetried { by: "ann".to_owned() }, 3 * 24 * 60 + 1).unwrap();
    assert_eq!(effects, [Effect::StartSession { generation: 2, opening: Opening::Fresh }]);
    assert!(again.question.is_none() && again.out_of_time_at(&policy()) > Timestamp(3 * 24 * 60 * MINUTE));
    let (twice, _) = took(&again, setup_failed(2, Opening::Fresh), 3 * 24 * 60 + 2);
    assert!(twice.question.as_ref().unwrap().body.contains("It failed 2 times."));
    let mut numbered = late.clone();
    numbered.question.as_mut().unwrap().id = Some(question::QuestionId(1));
    let ended = questions(&numbered, &Event::SetupRetried { by: "ann".to_owned() }, &again, Timestamp(0));
    assert_eq!(ended.len(), 1, "{ended:?}");
    // A person may give it up instead.
    let (stopped, orders) = took(&twice, Event::Stopped { by: "ann".to_owned() }, 3 * 24 * 60 + 3);
    assert_eq!((orders, stopped.status), (vec!["clean_up"], Status::Stopped));
}

#[test]
fn what_is_not_being_set_up_refuses_to_have_failed() {
    let running = running();
    assert!(go(&running, setup_failed(1, Opening::Fresh), 1).is_err(), "it is up");
    assert!(go(&running, setup_failed(0, Opening::Fresh), 1).is_err(), "an earlier one");
    assert!(go(&running, Event::SetupRetried { by: "ann".to_owned() }, 1).is_err(), "nobody asked");
    let (begun, _) = took(&run(), Event::Begun, 0);
    let (stopped, _) = took(&begun, Event::Stopped { by: "ann".to_owned() }, 1);
    assert!(go(&stopped, setup_failed(1, Opening::Fresh), 2).is_err(), "its end is on its way");
}

#[test]
fn ports_are_reserved_before_the_first_session_and_kept_for_the_next() {
    let policy = Policy { ports: 2, ..policy() };
    let begun = step(&run(), &Event::Begun, &policy, Timestamp(0)).unwrap();
    let kinds: Vec<_> = begun.effects.iter().map(Effect::kind).collect();
    assert_eq!(kinds, ["reserve_ports", "start_session"]);
    let assigned = Event::PortsAssigned { ports: vec![42_000, 42_001] };
    let has = step(&begun.run, &assigned, &policy, Timestamp(1)).unwrap().run;
    let up = step(&has, &told(1, session::Event::Started), &policy, Timestamp(2)).unwrap().run;
    let died = step(&up, &ended(1), &policy, Timestamp(3)).unwrap();
    assert!(!died.effects.contains(&Effect::ReservePorts), "{:?}", died.effects);
    assert_eq!(died.run.ports, [42_000, 42_001]);
}
