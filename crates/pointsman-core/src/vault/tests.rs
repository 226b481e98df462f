use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::ids::ProjectName;
use crate::part::question::{Change, Kind, QuestionId, Settlement};
use crate::task::Effect;
use crate::time::Timestamp;
use crate::workflow::Refused;

const HOUR: i64 = 3_600_000;

fn shop() -> ProjectName {
    ProjectName::new("shop").unwrap()
}

fn policy() -> Policy {
    Policy {
        auto_approve: true,
        high_risk_approvals: 1,
        look: false,
        people: vec!["ann".to_owned()],
        timeout: Duration::from_secs(48 * 3600),
        approval: Duration::from_secs(3600),
        renotify: Duration::from_secs(6 * 3600),
    }
}

fn written() -> Value {
    json!({
        "id": "deploy-1", "type": "deploy", "source": "planner", "risk": "high", "reversible": false,
        "requires_human": false, "payload": {"to": "production", "sha": "abc"},
    })
}

fn parse(value: &Value) -> Result<Action, Malformed> {
    Action::parse(value.to_string().as_bytes())
}

fn action(risk: Risk, reversible: bool, requires_human: bool) -> Action {
    Action { risk, reversible, requires_human, ..parse(&written()).unwrap() }
}

fn harmless() -> Estimate {
    Estimate { risk: Risk::Low, reversible: true, requires_human: false }
}

fn submit(
    project: &ProjectName,
    action: Action,
    rule: Option<Estimate>,
    policy: &Policy,
    now: Timestamp,
) -> Entry {
    let new = Entry::new(project.clone(), action, now);
    step(&new, &Event::Submitted { rule }, policy, now).unwrap().entry
}

/// An action after an event, without what it orders.
fn next(entry: &Entry, event: &Event, policy: &Policy, now: Timestamp) -> Result<Entry, Refused> {
    step(entry, event, policy, now).map(|next| next.entry)
}

/// The orders that time alone brings.
fn due(entry: &Entry, hours: i64) -> Vec<Effect> {
    step(entry, &Event::TimePassed, &policy(), Timestamp(hours * HOUR)).unwrap().effects
}

/// Submitted at time 0, with a rule that adds nothing.
fn submitted(risk: Risk) -> Entry {
    submit(&shop(), action(risk, false, false), Some(harmless()), &policy(), Timestamp(0))
}

fn go(entry: &Entry, event: Event, hours: i64) -> Result<Entry, Refused> {
    next(entry, &event, &policy(), Timestamp(hours * HOUR))
}

fn approve(entry: &Entry) -> Event {
    Event::Approved { by: "ann".to_owned(), hash: entry.hash.clone(), again: false }
}

fn reject() -> Event {
    Event::Rejected { by: "ann".to_owned(), reason: "no".to_owned() }
}

fn ended(entry: &Entry, outcome: Outcome) -> Event {
    Event::FiringEnded { firing: entry.firings, outcome }
}

#[test]
fn an_action_has_exactly_its_fields() {
    assert!(parse(&written()).is_ok());
    for field in ["id", "type", "source", "risk", "reversible", "requires_human", "payload"] {
        let mut value = written();
        value.as_object_mut().unwrap().remove(field);
        let why = parse(&value).unwrap_err().to_string();
        assert!(why.contains(&format!("missing field `{field}`")), "{why}");
    }
    let wrong = [
        ("approved_by", json!("ann"), "unknown field `approved_by`"),
        ("risk", json!("none"), "unknown variant `none`"),
        ("risk", json!(0), "it is not an action"),
        ("reversible", json!("yes"), "it is not an action"),
        ("id", json!("../../etc"), "is not an id"),
        ("id", json!(""), "is not an id"),
        ("id", json!("-rf"), "is not an id"),
        ("id", json!("a".repeat(65)), "is not an id"),
        ("type", json!("rm -rf"), "is not the name of a type"),
        ("source", json!("a\nb"), "its source must be one line"),
        ("source", json!(""), "its source must be one line"),
    ];
    for (field, wrong, message) in wrong {
        let mut value = written();
        value[field] = wrong.clone();
        let why = parse(&value).unwrap_err().to_string();
        assert!(why.contains(message), "{field} = {wrong}: {why}");
    }
    for text in ["", "[]", "null", "{", "{} {}", "\u{feff}{}"] {
        assert!(matches!(Action::parse(text.as_bytes()), Err(Malformed::Json(_))), "{text:?}");
    }
    let twice = written().to_string().replacen('{', "{\"risk\": \"low\", ", 1);
    assert!(Action::parse(twice.as_bytes()).unwrap_err().to_string().contains("duplicate field `risk`"));
    assert_eq!(Action::parse(&vec![b' '; MAX_BYTES + 1]), Err(Malformed::TooLarge(MAX_BYTES + 1)));
    assert!(Action::parse("[".repeat(MAX_BYTES).as_bytes()).is_err());
}

#[test]
fn a_hash_is_of_every_field_and_of_the_project() {
    let first = parse(&written()).unwrap();
    let hash = first.hash(&shop());
    let reordered = r#"{"payload": {"sha": "abc", "to": "production"}, "requires_human": false, "reversible": false,
        "risk": "high", "source": "planner", "type": "deploy", "id": "deploy-1"}"#;
    assert_eq!(Action::parse(reordered.as_bytes()).unwrap().hash(&shop()), hash);
    assert_ne!(first.hash(&ProjectName::new("harbour").unwrap()), hash);
    let changes = [
        ("id", json!("deploy-2")),
        ("type", json!("deploy2")),
        ("source", json!("gardener")),
        ("risk", json!("medium")),
        ("reversible", json!(true)),
        ("requires_human", json!(true)),
        ("payload", json!({"to": "production", "sha": "abd"})),
    ];
    for (field, value) in changes {
        let mut changed = written();
        changed[field] = value;
        assert_ne!(parse(&changed).unwrap().hash(&shop()), hash, "{field}");
    }
}

#[test]
fn risk_and_reversibility_choose_the_route() {
    use Risk::{High, Low, Medium};
    let table = [
        (Low, true, Route::Fire),
        (Low, false, Route::Fire),
        (Medium, true, Route::FireAndTell),
        (Medium, false, Route::Ask),
        (High, true, Route::Ask),
        (High, false, Route::Ask),
    ];
    for (risk, reversible, wanted) in table {
        let estimate = Estimate { risk, reversible, requires_human: false };
        assert_eq!(route(estimate), wanted, "{estimate:?}");
        assert_eq!(route(Estimate { requires_human: true, ..estimate }), Route::Ask, "{estimate:?}");
    }
}

#[test]
fn who_calls_itself_low_is_believed_only_upwards() {
    let rule = Estimate { risk: Risk::High, reversible: false, requires_human: false };
    let entry = submit(&shop(), action(Risk::Low, true, false), Some(rule), &policy(), Timestamp(0));
    assert_eq!((entry.status, entry.estimate), (Status::Pending, rule));
    let careful = submit(&shop(), action(Risk::High, false, true), Some(harmless()), &policy(), Timestamp(0));
    assert_eq!(careful.estimate, Estimate { risk: Risk::High, reversible: false, requires_human: true });
    let all_ask = Policy { auto_approve: false, ..policy() };
    let entry = submit(&shop(), action(Risk::Low, true, false), Some(harmless()), &all_ask, Timestamp(0));
    assert_eq!((entry.status, entry.route), (Status::Pending, Route::Ask));
    let unknown = submit(&shop(), action(Risk::Low, true, false), None, &policy(), Timestamp(0));
    assert_eq!(unknown.status, Status::Rejected);
    assert_eq!(unknown.reason.as_deref(), Some("nothing handles the type deploy"));
}

#[test]
fn a_person_lets_it_go_once() {
    let asked = submitted(Risk::High);
    assert_eq!((asked.status, asked.expires_at), (Status::Pending, Some(Timestamp(48 * HOUR))));
    let approved = go(&asked, approve(&asked), 1).unwrap();
    assert_eq!((approved.status, approved.expires_at), (Status::Approved, Some(Timestamp(2 * HOUR))));
    assert_eq!(approved.decided_by.as_deref(), Some("ann"));
    assert_eq!((approved.firing(1), approved.firing(2)), (Firing::Begin, Firing::Overtaken));
    let firing = go(&approved, Event::FiringBegun, 1).unwrap();
    assert_eq!((firing.firing(1), firing.firing(2)), (Firing::InDoubt, Firing::Overtaken));
    assert!(go(&firing, Event::FiringBegun, 1).is_err(), "one at a time");
    assert!(go(&firing, approve(&asked), 1).is_err() && go(&firing, reject(), 1).is_err());
    let fired = go(&firing, ended(&firing, Outcome::Done), 1).unwrap();
    assert_eq!((fired.status, fired.firing(1)), (Status::Fired, Firing::Overtaken));
    let again = Event::Submitted { rule: Some(harmless()) };
    for event in [approve(&asked), reject(), Event::FiringBegun, Event::FiringLost, again] {
        assert!(go(&fired, event.clone(), 100).is_err(), "{event:?}");
    }
    assert_eq!(go(&fired, Event::TimePassed, 100), Ok(fired));
}

#[test]
fn approvals_of_something_else_are_refused() {
    let asked = submitted(Risk::High);
    let mut foreign = asked.clone();
    foreign.action.payload = json!({"to": "elsewhere"});
    let why = |entry: &Entry, event| go(entry, event, 1).unwrap_err().to_string();
    let other = Event::Approved { by: "ann".to_owned(), hash: "0".repeat(64), again: true };
    assert!(why(&asked, other).contains("another action"));
    assert!(
        why(&foreign, approve(&foreign)).contains("another action"),
        "the action was changed under its hash"
    );
    let stranger = Event::Approved { by: "mallory".to_owned(), hash: asked.hash.clone(), again: false };
    assert!(why(&asked, stranger).contains("mallory is not listed"));
    assert!(go(&asked, approve(&asked), 48).unwrap_err().to_string().contains("in time"));
    let mut approved = go(&asked, approve(&asked), 1).unwrap();
    assert!(go(&approved, Event::FiringBegun, 2).unwrap_err().to_string().contains("expired"));
    approved.action.payload = json!({"to": "elsewhere"});
    let changed = go(&approved, Event::FiringBegun, 1).unwrap();
    assert_eq!(changed.status, Status::Rejected);
    assert_eq!(changed.reason.as_deref(), Some("it is not the action that was approved"));
}

#[test]
fn no_wins_over_yes() {
    let asked = submitted(Risk::High);
    let approved = go(&asked, approve(&asked), 1).unwrap();
    let rejected = go(&approved, reject(), 1).unwrap();
    assert_eq!((rejected.status, rejected.reason.as_deref()), (Status::Rejected, Some("no")));
    assert!(go(&rejected, approve(&asked), 1).is_err());
    assert!(go(&rejected, Event::FiringBegun, 1).is_err());
}

#[test]
fn silence_is_a_no() {
    let asked = submitted(Risk::High);
    assert_eq!(go(&asked, Event::TimePassed, 47).unwrap().status, Status::Pending);
    let rejected = go(&asked, Event::TimePassed, 48).unwrap();
    assert_eq!((rejected.status, &rejected.decided_by), (Status::Rejected, &None));
    assert_eq!(rejected.reason.as_deref(), Some("nobody answered for 48h"));
    let approved = go(&asked, approve(&asked), 10).unwrap();
    let again = go(&approved, Event::TimePassed, 11).unwrap();
    assert_eq!((again.status, again.expires_at), (Status::Pending, asked.expires_at));
    assert_eq!(go(&again, Event::TimePassed, 48).unwrap().status, Status::Rejected);
    let by_rule = submitted(Risk::Low);
    assert_eq!(go(&by_rule, Event::TimePassed, 48).unwrap().status, Status::Rejected);
}

#[test]
fn nobody_knows_whether_it_was_fired() {
    let approved = submitted(Risk::Low);
    let firing = go(&approved, Event::FiringBegun, 1).unwrap();
    let unknown = Outcome::Unknown { why: "time limit".to_owned() };
    for event in [Event::FiringLost, ended(&firing, unknown)] {
        let uncertain = go(&firing, event, 1).unwrap();
        assert_eq!(uncertain.status, Status::Uncertain);
        assert!(go(&uncertain, Event::FiringBegun, 1).is_err(), "never silently");
        assert!(go(&uncertain, approve(&uncertain), 1).unwrap_err().to_string().contains("--again"));
        assert_eq!(go(&uncertain, reject(), 1).unwrap().status, Status::Rejected);
        assert_eq!(go(&uncertain, Event::TimePassed, 49).unwrap().status, Status::Rejected);
        let yes = Event::Approved { by: "ann".to_owned(), hash: uncertain.hash.clone(), again: true };
        let again = go(&uncertain, yes, 2).unwrap();
        assert_eq!(go(&again, Event::TimePassed, 3).unwrap().status, Status::Uncertain, "not simply pending");
        let second = go(&again, Event::FiringBegun, 2).unwrap();
        assert!(go(&second, ended(&firing, Outcome::Done), 2).is_err(), "that was the first run");
        assert_eq!(go(&second, ended(&second, Outcome::Done), 2).unwrap().status, Status::Fired);
    }
}

#[test]
fn whoever_knows_more_can_only_raise_it() {
    let raise = |risk, reversible, requires_human| Event::Raised {
        by: "reviewer".to_owned(),
        estimate: Estimate { risk, reversible, requires_human },
        reason: "it drops a table".to_owned(),
    };
    let approved = submitted(Risk::Low);
    let asked = go(&approved, raise(Risk::High, true, false), 1).unwrap();
    assert_eq!((asked.status, asked.estimate.risk), (Status::Pending, Risk::High));
    assert_eq!(asked.reason.as_deref(), Some("raised by reviewer: it drops a table"));
    assert!(go(&asked, raise(Risk::Low, true, false), 1).is_err(), "nothing is lowered");
    let human = go(&approved, raise(Risk::Low, true, true), 1).unwrap();
    assert_eq!(human.status, Status::Pending);
    let by_person = go(&asked, approve(&asked), 1).unwrap();
    let void = go(&by_person, raise(Risk::High, true, true), 1).unwrap();
    assert_eq!((void.status, &void.decided_by), (Status::Pending, &None), "the yes was to less");
}

#[test]
fn people_are_told_what_they_must_know() {
    let tell = [Effect::NotifyAction];
    let asked = submitted(Risk::High);
    assert_eq!((asked.told, asked.wake_at()), (1, Some(Timestamp(6 * HOUR))), "with the submission");
    assert_eq!(due(&asked, 5), []);
    assert_eq!(due(&asked, 6), tell);
    let rejected = step(&asked, &Event::TimePassed, &policy(), Timestamp(48 * HOUR)).unwrap();
    assert_eq!((rejected.entry.status, &rejected.effects[..]), (Status::Rejected, &tell[..]));
    assert_eq!((rejected.entry.is_open(), due(&rejected.entry, 99)), (false, vec![]));
    let cases = [(Risk::Low, true, &[][..]), (Risk::Medium, true, &tell[..])];
    for (risk, reversible, wanted) in cases {
        let new = Entry::new(shop(), action(risk, reversible, false), Timestamp(0));
        let submitted = Event::Submitted { rule: Some(harmless()) };
        let approved = step(&new, &submitted, &policy(), Timestamp(0)).unwrap();
        assert_eq!(approved.effects, [Effect::FireAction { firing: 1 }]);
        assert_eq!(due(&approved.entry, 1), [], "once");
        let firing = go(&approved.entry, Event::FiringBegun, 0).unwrap();
        let end = |outcome| step(&firing, &ended(&firing, outcome), &policy(), Timestamp(0)).unwrap().effects;
        assert_eq!(end(Outcome::Done), wanted);
        assert_eq!(end(Outcome::Failed { why: "exit code 1".to_owned() }), tell);
    }
}

#[test]
fn an_action_of_an_earlier_program_is_taken_up_where_it_stands() {
    let asked = submitted(Risk::High);
    let approved = go(&asked, approve(&asked), 1).unwrap();
    let firing = go(&approved, Event::FiringBegun, 1).unwrap();
    let looked_at =
        submit(&shop(), action(Risk::Low, true, false), Some(harmless()), &looking(), Timestamp(0));
    let earlier = |entry: &Entry| {
        let mut stored = serde_json::to_value(entry).unwrap();
        stored.as_object_mut().unwrap().remove("under_way");
        serde_json::from_value::<Entry>(stored).unwrap()
    };
    let taken_up = |entry: &Entry| {
        let entry = earlier(entry);
        assert!(entry.wake_at() <= Some(Timestamp(0)), "at once: {entry:?}");
        step(&entry, &Event::TimePassed, &policy(), Timestamp(HOUR)).unwrap()
    };
    assert_eq!(taken_up(&approved).effects, [Effect::FireAction { firing: 1 }]);
    assert_eq!(taken_up(&looked_at).effects, [Effect::LookAtAction { hash: looked_at.hash.clone() }]);
    let lost = taken_up(&firing);
    assert_eq!((lost.entry.status, lost.effects), (Status::Uncertain, vec![Effect::NotifyAction]));
    let unasked = taken_up(&Entry { asked: None, told: 1, told_at: Some(Timestamp(0)), ..asked.clone() });
    assert!(unasked.entry.asked.is_some(), "a question that can be listed");
    let told = earlier(&asked);
    assert_eq!(told.wake_at(), asked.wake_at(), "whoever was told waits");
}

fn estimates() -> impl Strategy<Value = Estimate> {
    let risk = prop::sample::select(vec![Risk::Low, Risk::Medium, Risk::High]);
    (risk, any::<bool>(), any::<bool>()).prop_map(|(risk, reversible, requires_human)| Estimate {
        risk,
        reversible,
        requires_human,
    })
}

fn events() -> impl Strategy<Value = (Event, i64)> {
    let hash = submitted(Risk::High).hash;
    let approve = move |(again, right)| Event::Approved {
        by: "ann".to_owned(),
        hash: if right { hash.clone() } else { "0".repeat(64) },
        again,
    };
    let end = prop::sample::select(vec![
        Outcome::Done,
        Outcome::Failed { why: "no".to_owned() },
        Outcome::Unknown { why: "?".to_owned() },
    ]);
    let event = prop_oneof![
        3 => (any::<bool>(), any::<bool>()).prop_map(approve),
        1 => Just(reject()),
        1 => estimates().prop_map(|estimate| Event::Raised {
            by: "a".to_owned(), estimate, reason: "b".to_owned() }),
        1 => Just(Event::TimePassed),
        3 => Just(Event::FiringBegun),
        2 => (1u32..3, end).prop_map(|(firing, outcome)| Event::FiringEnded { firing, outcome }),
        1 => Just(Event::FiringLost),
        1 => Just(Event::Told),
    ];
    (event, 0i64..3)
}

proptest! {
    #[test]
    fn several_opinions_are_as_careful_as_each(a in estimates(), b in estimates(), c in estimates()) {
        let both = a.raised_by(b);
        prop_assert!(route(both) >= route(a) && route(both) >= route(b));
        prop_assert_eq!(both, b.raised_by(a));
        prop_assert_eq!(both.raised_by(c), a.raised_by(b.raised_by(c)));
        prop_assert_eq!(a.raised_by(a), a);
    }

    /// Whatever comes in whatever order: every run of the handler is covered by a decision of its own, what is over
    /// stays over, and the estimate never falls.
    #[test]
    fn no_run_without_a_decision(risk in 0usize..3, steps in prop::collection::vec(events(), 0..60)) {
        let risk = [Risk::Low, Risk::Medium, Risk::High][risk];
        let mut entry = submit(&shop(), action(risk, false, false), Some(harmless()), &policy(), Timestamp(0));
        let mut yes = u32::from(entry.status == Status::Approved);
        let mut now = 0;
        for (event, hours) in steps {
            now += hours;
            let Ok(next) = go(&entry, event.clone(), now) else { continue };
            if let Event::Approved { hash, .. } = &event {
                prop_assert_eq!(hash, &entry.hash);
                yes += 1;
            }
            prop_assert!(next.firings <= yes, "{} runs, {yes} decisions", next.firings);
            prop_assert!(next.firings <= 1 || event != Event::FiringBegun || entry.status == Status::Approved);
            prop_assert_eq!(next.estimate, next.estimate.raised_by(entry.estimate));
            let over = matches!(entry.status, Status::Fired | Status::Failed | Status::Rejected);
            prop_assert!(!over || next.status == entry.status, "{event:?}");
            // Nothing that may have run is asked about as if it had not.
            prop_assert!(next.firings == 0 || next.status != Status::Pending);
            let final_or_due = !matches!(next.status, Status::Pending | Status::Approved | Status::Uncertain)
                || next.expires_at.is_some();
            prop_assert!(final_or_due, "a state without an end: {next:?}");
            // Whoever is woken has something to do: time that has passed is not due for ever.
            let at = Timestamp(now * HOUR);
            let mut woken = next.clone();
            for _ in 0..4 {
                if woken.wake_at().is_some_and(|wake| wake <= at) {
                    woken = go(&woken, Event::TimePassed, now).unwrap();
                }
            }
            prop_assert!(woken.wake_at().is_none_or(|wake| wake > at), "it is woken for ever: {woken:?}");
            entry = next;
        }
    }
}

fn looking() -> Policy {
    Policy { look: true, ..policy() }
}

fn looked(entry: &Entry, opinion: Option<Estimate>) -> Result<Entry, Refused> {
    let event = Event::LookEnded { hash: entry.hash.clone(), opinion, reason: "because".to_owned() };
    next(entry, &event, &looking(), Timestamp(HOUR))
}

fn all_estimates() -> impl Iterator<Item = Estimate> {
    let risks = [Risk::Low, Risk::Medium, Risk::High].into_iter();
    let undone = risks.flat_map(|risk| [true, false].map(|reversible| (risk, reversible)));
    undone.flat_map(|(risk, reversible)| {
        [false, true].map(|requires_human| Estimate { risk, reversible, requires_human })
    })
}

#[test]
fn a_look_is_at_what_would_be_fired_and_never_lowers_anything() {
    for own in all_estimates() {
        let new = action(own.risk, own.reversible, own.requires_human);
        let entry = submit(&shop(), new, Some(harmless()), &looking(), Timestamp(0));
        assert_eq!(entry.status, Status::Pending, "{own:?}");
        assert_eq!(entry.awaits_look, route(own) != Route::Ask, "{own:?}");
        assert_eq!(entry.question().is_some(), route(own) == Route::Ask, "{own:?}");
        if !entry.awaits_look {
            assert!(looked(&entry, Some(harmless())).is_err(), "{own:?}: nobody asked");
            continue;
        }
        assert_eq!(entry.under_way, Some(Order::Look));
        assert!(step(&entry, &Event::FiringBegun, &looking(), Timestamp(0)).is_err());
        for opinion in all_estimates() {
            let after = looked(&entry, Some(opinion)).unwrap();
            assert_eq!(after.estimate, own.raised_by(opinion));
            let asks = route(own.raised_by(opinion)) == Route::Ask;
            assert_eq!(
                after.status,
                if asks { Status::Pending } else { Status::Approved },
                "{own:?} {opinion:?}"
            );
            assert!(after.route >= entry.route && !after.awaits_look, "{own:?} {opinion:?}");
            assert!(looked(&after, Some(harmless())).is_err(), "one look");
        }
        let unusable = looked(&entry, None).unwrap();
        assert_eq!((unusable.status, unusable.route), (Status::Pending, Route::Ask), "{own:?}");
        assert!(unusable.question().is_some() && unusable.estimate.requires_human);
    }
}

#[test]
fn a_look_is_bound_to_its_action_and_others_may_be_faster() {
    let entry = submit(&shop(), action(Risk::Low, true, false), Some(harmless()), &looking(), Timestamp(0));
    let foreign = Event::LookEnded { hash: "0".repeat(64), opinion: Some(harmless()), reason: String::new() };
    assert!(
        step(&entry, &foreign, &looking(), Timestamp(0)).unwrap_err().to_string().contains("another action")
    );
    let mut changed = entry.clone();
    changed.action.payload = json!({"to": "elsewhere"});
    assert!(looked(&changed, Some(harmless())).is_err());
    let go = |event, hours: i64| next(&entry, &event, &looking(), Timestamp(hours * HOUR)).unwrap();
    let called_off = |event| {
        let effects = step(&entry, &event, &looking(), Timestamp(HOUR)).unwrap().effects;
        effects.contains(&Effect::CallOffLook { hash: entry.hash.clone() })
    };
    assert!(called_off(approve(&entry)) && called_off(reject()));
    assert!(
        !called_off(Event::no_opinion(&entry.hash, "it ended by itself")) && !called_off(Event::TimePassed)
    );
    let approved = go(approve(&entry), 1);
    assert_eq!((approved.status, approved.awaits_look), (Status::Approved, false));
    assert_eq!((go(reject(), 1).status, go(reject(), 1).awaits_look), (Status::Rejected, false));
    let high = Estimate { risk: Risk::High, ..harmless() };
    let raised = go(Event::Raised { by: "x".to_owned(), estimate: high, reason: String::new() }, 1);
    assert_eq!((raised.status, raised.awaits_look, raised.route), (Status::Pending, false, Route::Ask));
    // Nobody looked, and no person was asked yet: that is no answer.
    let late = go(Event::TimePassed, 48);
    assert_eq!((late.status, late.expires_at), (Status::Pending, Some(Timestamp(96 * HOUR))));
    assert!(late.question().is_some());
}

#[test]
fn an_opinion_has_exactly_its_fields() {
    let good = json!({"risk": "medium", "reversible": false, "requires_human": true, "reason": "it is old"});
    let read = Opinion::read(Some(&good)).unwrap();
    assert_eq!(
        read.estimate(),
        Estimate { risk: Risk::Medium, reversible: false, requires_human: true },
        "{read:?}"
    );
    assert!(Opinion::read(None).is_err());
    let wrong = [
        ("risk", json!("none")),
        ("risk", json!(null)),
        ("reversible", json!("true")),
        ("requires_human", json!(0)),
        ("reason", json!(" ")),
        ("reason", json!("x".repeat(5000))),
        ("approve", json!(true)),
    ];
    for (field, value) in wrong {
        let mut bad = good.clone();
        bad[field] = value.clone();
        assert!(Opinion::read(Some(&bad)).is_err(), "{field} = {value}");
    }
    for field in ["risk", "reversible", "requires_human", "reason"] {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(field);
        assert!(Opinion::read(Some(&bad)).is_err(), "without {field}");
    }
}

#[test]
fn a_person_is_asked_a_question_that_is_settled_with_the_action() {
    let hour = |hours: i64| Timestamp(hours * HOUR);
    let asked = submitted(Risk::High);
    let numbered = |entry: &Entry, id: u64| {
        let mut entry = entry.clone();
        if let Some(asked) = entry.asked.as_mut().filter(|asked| asked.id.is_none()) {
            asked.id = Some(QuestionId(id));
        }
        entry
    };
    let asked = numbered(&asked, 1);
    let question = asked.asked.clone().unwrap();
    assert_eq!((question.kind, question.expires_at), (Kind::Approval, asked.expires_at));
    assert!(question.subject.starts_with("Run vault action "), "{}", question.subject);
    let after = |event: &Event, hours: i64| {
        let next = numbered(&next(&asked, event, &policy(), hour(hours)).unwrap(), 2);
        (questions(&asked, event, &next, hour(hours)), next)
    };
    let how = |changes: &[Change]| match changes {
        [Change::Settled(over)] => over.settled.clone().map(|settled| (settled.by, settled.how)),
        _ => None,
    };
    let yes = Event::Approved { by: "ann".into(), hash: asked.hash.clone(), again: false };
    assert_eq!(how(&after(&yes, 1).0), Some((Some("ann".into()), Settlement::Approved)));
    let no = Event::Rejected { by: "ann".into(), reason: "no".into() };
    assert_eq!(
        how(&after(&no, 1).0),
        Some((Some("ann".into()), Settlement::Rejected { reason: "no".into() }))
    );
    assert_eq!(how(&after(&Event::TimePassed, 48).0), Some((None, Settlement::Expired)));
    // The first notice is part of the question; later ones are reminders.
    let (changes, told) = after(&Event::Told, 0);
    assert!(changes.is_empty(), "{changes:?}");
    let again = next(&told, &Event::TimePassed, &policy(), hour(6)).unwrap();
    let changes = questions(&told, &Event::TimePassed, &again, hour(6));
    assert!(matches!(&changes[..], [Change::Reminded(asked)] if asked.notices == 2), "{changes:?}");
}

#[test]
fn whoever_slept_is_reminded_before_an_action_is_rejected() {
    let hour = |hours: i64| Timestamp(hours * HOUR);
    let told = submitted(Risk::High);
    let reminded = step(&told, &Event::TimePassed, &policy(), hour(100)).unwrap();
    assert_eq!(reminded.effects, [Effect::NotifyAction]);
    let reminded = reminded.entry;
    assert_eq!((reminded.told, reminded.expires_at), (2, Some(hour(106))));
    assert_eq!(due(&reminded, 105), []);
    let yes = Event::Approved { by: "ann".into(), hash: told.hash.clone(), again: false };
    assert_eq!(next(&reminded, &yes, &policy(), hour(105)).unwrap().status, Status::Approved);
    assert_eq!(go(&reminded, Event::TimePassed, 106).unwrap().status, Status::Rejected);
}

#[test]
fn a_run_is_heard_by_the_action_that_it_is_about_when_it_is_over() {
    use crate::run::{Run, RunId, Status as RunStatus, Subject};
    let config = crate::config::Config::default();
    let text = crate::formula::shipped(FORMULA).unwrap();
    let formula =
        crate::formula::Formula::render(text, FORMULA, &crate::formula::variables(&config)).unwrap();
    let (id, hash) = (submitted(Risk::Low).id().clone(), "abc".to_owned());
    let subject = Subject::Vault { id, hash: hash.clone() };
    let mut run = Run::new(RunId(7), formula, &config, "vault", Timestamp(0)).about(Some(subject));
    assert_eq!(heard(&run), None);
    run.status = RunStatus::Stopped;
    let nothing = Event::no_opinion(&hash, "run 7 is stopped");
    assert_eq!(heard(&run), Some(nothing));
    run.status = RunStatus::Done;
    run.result =
        Some(json!({"risk": "low", "reversible": true, "requires_human": false, "reason": "it is old"}));
    let opinion = Some(harmless());
    assert_eq!(heard(&run), Some(Event::LookEnded { hash, opinion, reason: "it is old".to_owned() }));
}

#[test]
fn an_action_of_high_risk_may_need_two_people() {
    let people = vec!["ann".to_owned(), "bob".to_owned()];
    let policy = Policy { high_risk_approvals: 2, people, ..policy() };
    let at = |hours: i64| Timestamp(hours * HOUR);
    let yes = |entry: &Entry, by: &str| {
        let event = Event::Approved { by: by.to_owned(), hash: entry.hash.clone(), again: false };
        step(entry, &event, &policy, at(1)).map(|next| (next.entry, next.effects))
    };
    let asked = submit(&shop(), action(Risk::High, false, false), Some(harmless()), &policy, at(0));
    let (once, _) = yes(&asked, "ann").unwrap();
    assert_eq!((once.status, once.approvals.as_slice()), (Status::Pending, &["ann".to_owned()][..]));
    assert_ne!(once.question(), asked.question(), "a yes to the first question is none to the second");
    assert!(once.asked.as_ref().unwrap().body.contains("Approved so far by ann"));
    assert!(yes(&once, "ann").is_err(), "the same person twice is one approval");
    let (twice, _) = yes(&once, "bob").unwrap();
    assert_eq!((twice.status, twice.decided_by.as_deref()), (Status::Approved, Some("ann, bob")));

    // Whoever finds it more dangerous has everybody asked again.
    let worse = Estimate { risk: Risk::High, reversible: false, requires_human: true };
    let raise = Event::Raised { by: "x".into(), estimate: worse, reason: "y".into() };
    assert!(step(&once, &raise, &policy, at(1)).unwrap().entry.approvals.is_empty());
    // What is less dangerous needs one.
    let milder = submit(&shop(), action(Risk::Medium, false, true), Some(harmless()), &policy, at(0));
    assert_eq!(yes(&milder, "ann").unwrap().0.status, Status::Approved);
}
