use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Event, Heard, Look, Memory, RoleMemory, Transition, step};
use crate::config::Config;
use crate::deed::{Act, Ending, Tend};
use crate::forge::{Issue, IssueState};
use crate::gardener::RepositoryFacts;
use crate::health::{Disk, Facts, Kind, Machine, assess};
use crate::ids::{Number, ProjectName, RoleKey};
use crate::planner::{Document, PlanInputs};
use crate::predictor::{Counts, Figures, Sample};
use crate::role::Role;
use crate::run::RunId;
use crate::task::Effect;
use crate::time::Timestamp;
use crate::value::{Outcome, RoleValue};

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const DONE: Ending = Ending::Done { filed: None };

fn config() -> Config {
    Config::parse("name = \"shop\"", "test").unwrap()
}

fn new(role: Role) -> RoleMemory {
    let key = RoleKey { project: ProjectName::new("shop").unwrap(), role };
    RoleMemory { key, memory: role.new_memory(), value: RoleValue::default() }
}

fn issue(number: Number, title: &str, labels: &[&str]) -> Issue {
    Issue {
        number,
        title: title.to_owned(),
        body: "Nobody says when it is done.".to_owned(),
        state: IssueState::Open,
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
        comments: Vec::new(),
        assignee: None,
        author: "ann".to_owned(),
        created_at: Timestamp(NOW.0 - 86_400_000),
    }
}

fn go(memory: &RoleMemory, event: Event) -> Transition {
    step(memory, &event, &config(), NOW).unwrap()
}

fn kinds(next: &Transition) -> Vec<(Option<Number>, String)> {
    next.logged.iter().map(|(issue, entry)| (*issue, entry.kind().to_owned())).collect()
}

fn acts(next: &Transition) -> Vec<(String, Act)> {
    let deeds = next.effects.iter().filter_map(|effect| match effect {
        Effect::Deed { name, act } => Some((name.clone(), act.clone())),
        _ => None,
    });
    deeds.collect()
}

fn ends(memory: &RoleMemory, name: &str, ending: Ending) -> Transition {
    go(memory, Event::DeedEnded { name: name.to_owned(), ending })
}

fn notices(next: &Transition) -> Vec<&str> {
    let notices = next.effects.iter().filter_map(|effect| match effect {
        Effect::Notify(notice) => Some(notice.title.as_str()),
        _ => None,
    });
    notices.collect()
}

/// The gardener has asked about these issues.
fn asking(issues: &[Issue]) -> RoleMemory {
    let ground = RepositoryFacts::default();
    let look = Look::Gardener { issues: issues.to_vec(), ground, reconsider: false };
    let looked = Event::Looked { look: Box::new(look), run: Some(RunId(7)), lines: Vec::new() };
    go(&new(Role::Gardener), looked).memory
}

fn answer(result: Value, issues: &[Issue]) -> Event {
    let (issues, formulas) = (issues.to_vec(), Vec::new());
    Event::Heard { run: RunId(7), heard: Heard::Answer { result: Some(result), issues, formulas } }
}

fn underspecified(issues: &[Issue]) -> Event {
    let lines: Vec<Value> = issues
        .iter()
        .map(|issue| {
            json!(format!(r#"ACTION: {{"issue": {}, "do": "underspecified", "why": "vague"}}"#, issue.number))
        })
        .collect();
    answer(json!({ "lines": lines }), issues)
}

#[test]
fn deeds_are_ordered_with_the_answer_and_the_plan_is_closed_after_the_last() {
    let issues = [issue(1, "Apples", &[]), issue(2, "A rocket to Mars", &[])];
    let before = asking(&issues);
    let planned = go(&before, underspecified(&issues));
    let ordered = acts(&planned);
    assert_eq!(ordered.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["0", "1"]);
    let Act::Tend(Tend { issue: 1, marker, add, .. }) = &ordered[0].1 else { panic!("{ordered:?}") };
    assert_eq!((marker.as_str(), add.as_slice()), ("gardener-7-1", &["underspecified".to_owned()][..]));
    assert_eq!(kinds(&planned), [(None, "remembered".to_owned())]);
    // The answer counts once, however often it is heard.
    assert!(step(&planned.memory, &underspecified(&issues), &config(), NOW).is_err());
    let first = ends(&planned.memory, "0", DONE);
    assert!(first.effects.is_empty() && first.memory.value.used == 0);
    assert!(
        step(&first.memory, &Event::DeedEnded { name: "0".to_owned(), ending: DONE }, &config(), NOW)
            .is_err()
    );
    let last = ends(&first.memory, "1", DONE);
    let kinds = kinds(&last);
    assert_eq!(kinds, [(None, "gardener_groomed".to_owned()), (None, "role_counted".to_owned())]);
    assert_eq!((last.memory.value.used, last.effects.len()), (1, 0));
    let Memory::Gardener(memory) = &last.memory.memory else { panic!("it is the gardener's") };
    assert!(memory.asked.is_none() && memory.plan.is_none() && memory.deeds.is_empty());
    assert!(step(&last.memory, &underspecified(&issues), &config(), NOW).is_err(), "it is over");
}

#[test]
fn a_deed_that_is_refused_or_whose_issue_is_gone_ends_is_told_and_is_not_wanted_again() {
    let issues = [issue(1, "Apples", &[]), issue(2, "A rocket to Mars", &[])];
    let planned = go(&asking(&issues), underspecified(&issues));
    let gone = ends(&planned.memory, "0", Ending::Gone);
    assert_eq!(notices(&gone), Vec::<&str>::new());
    let refused = ends(&gone.memory, "1", Ending::Refused { error: "no rights".to_owned() });
    assert_eq!(notices(&refused), ["shop: the forge refused something that the gardener wanted to do"]);
    let (_, groomed) = &refused.logged[0];
    let lines = serde_json::to_string(&groomed.stored().1).unwrap();
    assert!(lines.contains("deleted or closed") && lines.contains("no rights"), "{lines}");
    // Nothing of it is asked again before it changes.
    let Memory::Gardener(memory) = &refused.memory.memory else { panic!("it is the gardener's") };
    let found = crate::gardener::findings(&issues, memory, &config(), NOW);
    assert_eq!(crate::gardener::questions(&found, &issues, memory), []);
}

#[test]
fn a_bundle_is_filed_first_and_then_what_it_stands_for_is_closed() {
    let issues = [issue(1, "Apples", &[]), issue(2, "Rockets", &[]), issue(3, "Tides", &[])];
    let dust = |issue: Number| {
        format!(r#"DUST: {{"issue": {issue}, "group": "names", "title": "x", "reason": "small"}}"#)
    };
    let result = json!({ "lines": [dust(1), dust(2), dust(3)] });
    let planned = go(&asking(&issues), answer(result, &issues));
    let ordered = acts(&planned);
    let [(name, Act::File { marker, .. })] = ordered.as_slice() else { panic!("{planned:#?}") };
    assert_eq!((name.as_str(), marker.as_str()), ("0", "bundle-7"));
    let filed = ends(&planned.memory, "0", Ending::Done { filed: Some(9) });
    let closing: Vec<String> = acts(&filed).into_iter().map(|(name, _)| name).collect();
    assert_eq!(closing, ["0.1", "0.2", "0.3"]);
    assert!(acts(&filed).iter().all(|(_, act)| act.closes().is_some()));
    let one = ends(&filed.memory, "0.1", DONE);
    let two = ends(&one.memory, "0.2", Ending::Gone);
    let last = ends(&two.memory, "0.3", DONE);
    let about: Vec<(Option<Number>, String)> = kinds(&last);
    let expected = [
        (None, "gardener_groomed"),
        (Some(9), "role_filed"),
        (Some(1), "role_closed"),
        (Some(3), "role_closed"),
        (None, "role_counted"),
    ];
    assert_eq!(about, expected.map(|(issue, kind)| (issue, kind.to_owned())));
}

#[test]
fn a_plan_that_an_earlier_program_has_begun_is_carried_on_where_it_stood() {
    let issues = [issue(1, "Apples", &[]), issue(2, "A rocket to Mars", &[])];
    let mut memory = go(&asking(&issues), underspecified(&issues)).memory;
    let Memory::Gardener(old) = &mut memory.memory else { panic!("it is the gardener's") };
    old.deeds.clear();
    old.done.push(serde_json::from_value(json!({ "line": "marked #1", "filed": null })).unwrap());
    let resumed = go(&memory, answer(json!("not even read"), &issues));
    assert_eq!(acts(&resumed).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["1"]);
    assert_eq!(kinds(&ends(&resumed.memory, "1", DONE))[0].1, "gardener_groomed");
}

#[test]
fn memories_of_0_1_0_are_read() {
    let old = json!({
        "looked_at": 5, "asked": null, "plan": null, "done": [{ "line": "marked #1", "filed": null }],
        "hindered": { "why": "a budget is used up", "at": 7 },
    });
    let gardener: crate::gardener::Memory = serde_json::from_value(old.clone()).unwrap();
    let planner: crate::planner::Memory = serde_json::from_value(old).unwrap();
    let hindered = planner.hindered.unwrap();
    assert_eq!((hindered.why.as_str(), hindered.at), ("a budget is used up", Timestamp(7)));
    assert!(gardener.deeds.is_empty() && !gardener.done[0].failed && gardener.done[0].closed.is_empty());
    let predictor: crate::predictor::Memory =
        serde_json::from_value(json!({ "said": { "memory": 3 } })).unwrap();
    assert!(predictor.filing.is_empty() && predictor.said.len() == 1);
}

#[test]
fn an_answer_that_is_missing_is_asked_for_again_and_one_of_no_use_is_noise() {
    let issues = [issue(1, "Apples", &[])];
    let before = asking(&issues);
    let nothing =
        |unheard| Event::Heard { run: RunId(7), heard: Heard::Nothing { why: "no".to_owned(), unheard } };
    let unheard = go(&before, nothing(true));
    assert_eq!((unheard.memory.value.noise, kinds(&unheard).len()), (0, 1));
    let useless = go(&before, nothing(false));
    assert_eq!((useless.memory.value.noise, kinds(&useless).len()), (1, 2));
    let unread = go(&before, answer(json!("nonsense"), &issues));
    assert_eq!(unread.memory.value.noise, 1);
    let other = Event::Heard { run: RunId(8), heard: Heard::Nothing { why: String::new(), unheard: true } };
    assert!(step(&before, &other, &config(), NOW).is_err(), "another run is not the one that was asked");
}

#[test]
fn a_promotion_files_an_issue_and_then_closes_the_prediction() {
    let predictions = [issue(4, "The disk fills", &["prediction/unreviewed"])];
    let documents = vec![Document { path: "VISION.md", text: "Fruit for all.".to_owned() }];
    let facts = PlanInputs { issues: predictions.to_vec(), documents, ..PlanInputs::default() };
    let look = Box::new(Look::Planner(facts));
    let looked = Event::Looked { look, run: Some(RunId(7)), lines: Vec::new() };
    let before = go(&new(Role::Planner), looked).memory;
    let result = json!({
        "triage": [{ "issue": 4, "verdict": "dismiss", "why": "it is a cache" }],
        "issues": [],
    });
    let planned = go(&before, answer(result, &predictions));
    let [(name, Act::Tend(tend))] = &acts(&planned)[..] else { panic!("{planned:#?}") };
    assert_eq!((name.as_str(), tend.issue, tend.close, tend.marker.as_str()), ("0", 4, true, "triage-7"));
    let refused = ends(&planned.memory, "0", Ending::Refused { error: "no".to_owned() });
    assert!(kinds(&refused).iter().all(|(_, kind)| kind != "prediction_triaged"), "it is not triaged");
    let done = ends(&planned.memory, "0", DONE);
    assert!(kinds(&done).contains(&(Some(4), "prediction_triaged".to_owned())));
}

#[test]
fn a_prediction_is_filed_once_whatever_becomes_of_it() {
    let week = Counts { checks: 12, red: 3, infra: 6, crashes: 12, blocked: 0 };
    let figures =
        Figures { week, before: Counts { checks: 10, red: 2, ..Counts::default() }, open: 0, stale: 0 };
    let measured = |open: &[&str]| {
        let sample = Sample { at: NOW, disks: Default::default(), free_memory_mb: None };
        let open: BTreeSet<String> = open.iter().map(|&key| key.to_owned()).collect();
        Event::Measured { sample, figures, open }
    };
    let before = new(Role::Predictor);
    let names = |next: &Transition| acts(next).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let one = go(&before, measured(&["ci-unsteady"]));
    assert_eq!(names(&one), ["sessions-die"]);
    assert_eq!(names(&go(&one.memory, measured(&["ci-unsteady"]))), Vec::<String>::new(), "it is on its way");
    let filed = ends(&one.memory, "sessions-die", Ending::Done { filed: Some(9) });
    let kinds = kinds(&filed);
    assert_eq!(kinds, [(None, "predictor_filed".to_owned()), (Some(9), "role_filed".to_owned())]);
    let refused = ends(&one.memory, "sessions-die", Ending::Refused { error: "no".to_owned() });
    assert_eq!(notices(&refused).len(), 1);
    for after in [&filed.memory, &refused.memory] {
        assert_eq!(names(&go(after, measured(&["ci-unsteady"]))), Vec::<String>::new(), "it was said");
    }
    let mut paused = before;
    paused.value.paused_at = Some(NOW);
    assert_eq!(names(&go(&paused, measured(&[]))), Vec::<String>::new());
}

#[test]
fn an_action_that_cannot_begin_blocks_its_issue_once_and_again_when_a_person_unblocks_it() {
    let refused = |why: &str| Event::ActionRefused { issue: 3, why: why.to_owned() };
    let one = go(&new(Role::Action), refused("no formula"));
    assert_eq!(acts(&one).len(), 1);
    assert_eq!(acts(&go(&one.memory, refused("no formula"))), [], "it is under way");
    let blocked = ends(&one.memory, "block/3", DONE).memory;
    assert_eq!(acts(&go(&blocked, refused("no formula"))).len(), 1, "a person has unblocked it");
    let never = ends(&one.memory, "block/3", Ending::Refused { error: "no".to_owned() });
    assert_eq!(notices(&never).len(), 1);
    assert_eq!(acts(&go(&never.memory, refused("no formula"))), [], "the same is not wanted again");
    assert_eq!(acts(&go(&never.memory, refused("another reason"))).len(), 1);
}

#[test]
fn the_supervisor_tells_what_changed_passes_on_a_judgement_and_remembers_what_nobody_wants_to_hear() {
    let facts = |used_percent| {
        let disk = Disk { path: "/state".to_owned(), used_percent, free_mb: 100 };
        Facts { machine: Machine { disks: vec![disk], ..Machine::default() }, ..Facts::default() }
    };
    let inspected = |memory: &RoleMemory, used_percent, run| {
        let Memory::Supervisor(known) = &memory.memory else { panic!("it is the supervisor's") };
        let assessment = assess(&facts(used_percent), &config(), &known.keys(), NOW);
        go(memory, Event::Inspected { assessment, done: Vec::new(), run })
    };
    let full = inspected(&new(Role::Supervisor), 95, Some(RunId(7)));
    assert_eq!((notices(&full).len(), kinds(&full)[0].1.as_str()), (1, "supervisor_looked"));
    let again = inspected(&full.memory, 95, None);
    assert_eq!((notices(&again).len(), kinds(&again)[0].1.as_str()), (0, "remembered"), "it was told");
    let judged = go(&again.memory, answer(json!({ "summary": "Buy a disk." }), &[]));
    assert_eq!((notices(&judged), judged.memory.value.used), (vec!["shop: the supervisor's assessment"], 1));
    assert!(step(&judged.memory, &answer(json!({ "summary": "x" }), &[]), &config(), NOW).is_err(), "once");
    let until = Timestamp(NOW.0 + 1);
    let spoken = Event::Spoken {
        by: "ann".to_owned(),
        words: "ignore disk warning".to_owned(),
        ignore: Some((Kind::Disk, until)),
        answer: "yes".to_owned(),
    };
    let spoken = go(&judged.memory, spoken);
    let Memory::Supervisor(memory) = &spoken.memory.memory else { panic!("it is the supervisor's") };
    assert_eq!(
        (memory.ignored.get(&Kind::Disk), kinds(&spoken)[0].1.as_str()),
        (Some(&until), "supervisor_heard")
    );
}

#[test]
fn results_count_for_every_role_and_a_person_lets_it_go_on() {
    let mut memory = new(Role::Supervisor);
    for _ in 0..3 {
        memory = go(&memory, Event::Counted { outcome: Outcome::Noise }).memory;
    }
    assert_eq!(memory.value.in_a_row, 3);
    let resumed = go(&memory, Event::Resumed);
    assert_eq!(
        (resumed.memory.value.in_a_row, kinds(&resumed)),
        (0, vec![(None, "role_resumed".to_owned())])
    );
    let wrong = Event::ActionRefused { issue: 1, why: String::new() };
    assert!(step(&memory, &wrong, &config(), NOW).is_err(), "that is another role's");
}
