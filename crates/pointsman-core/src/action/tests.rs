use serde_json::json;

use super::*;
use crate::config::Config;
use crate::formula::{Formula, shipped, variables};
use crate::part::session;
use crate::run::{Event, Policy, RunId, Subject, step};
use crate::task::Exit;

#[test]
fn an_issue_names_its_formula_and_never_a_role() {
    for (body, name) in [
        ("", FORMULA),
        ("Please deploy.", FORMULA),
        ("Formula: tidy", "tidy"),
        ("Do it.\n\nformula: `tidy`\r\nThanks", "tidy"),
        ("formulas/tidy.toml", "tidy"),
        ("`formulas/tidy-up.toml`\n", "tidy-up"),
        ("Formula: run-planner", FORMULA),
        ("see the formula: it is good", FORMULA),
        ("Formula: ../../etc/passwd", FORMULA),
        ("Formula: a\nFormula: b", "b"),
    ] {
        assert_eq!(formula(body), name, "{body:?}");
    }
}

#[test]
fn a_report_has_words_and_nothing_else() {
    assert_eq!(Report::read(Some(&json!({"summary": "done"}))).unwrap().summary, "done");
    for wrong in
        [json!({}), json!({"summary": ""}), json!({"summary": 1}), json!({"summary": "x", "close": [1, 2]})]
    {
        assert!(Report::read(Some(&wrong)).is_err(), "{wrong}");
    }
    assert!(Report::read(None).is_err());
    assert!(Report::read(Some(&json!({"summary": "x".repeat(30_000)}))).is_err());
}

fn run(config: &Config) -> Run {
    let formula = Formula::render(shipped(FORMULA).unwrap(), "x", &variables(config)).unwrap();
    Run::new(RunId(1), formula, config, "action", Timestamp(0)).about(Some(Subject::Action { issue: 7 }))
}

#[test]
fn what_is_next_for_an_action() {
    let config = Config::parse("name = \"shop\"\n", "p.toml").unwrap();
    let policy = Policy::new(&config, Role::Action);
    let go = |run: &Run, event: Event| step(run, &event, &policy, Timestamp(5)).unwrap().run;
    let told = |told: session::Event| Event::Session { generation: 1, told };
    let begun = go(&run(&config), Event::Begun);
    let over = |run: &Run| {
        let gone = session::Event::Ended { exit: Exit::Stopped, tail: String::new() };
        go(&go(run, told(gone)), Event::CleanedUp)
    };
    let failing = go(&begun, told(session::Event::NotStarted { error: "no".to_owned() }));
    let failed = over(&failing);
    let stopping = go(&begun, Event::Stopped { by: "ann".to_owned() });
    let mut done = failed.clone();
    done.status = Status::Done;
    let labels = |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
    let (action, blocked, other) =
        (labels(&["action"]), labels(&["action", "blocked"]), labels(&["backlog"]));
    type Row<'a> = (&'a [String], bool, &'a [Run], bool, Next);
    let table: [Row<'_>; 11] = [
        (&other, false, &[], false, Next::Nothing),
        (&action, false, &[], false, Next::Begin),
        (&action, true, &[], false, Next::Nothing),
        (&blocked, false, &[], false, Next::Nothing),
        (&action, false, std::slice::from_ref(&begun), false, Next::Nothing),
        (&action, false, std::slice::from_ref(&failing), false, Next::Nothing),
        (&action, false, std::slice::from_ref(&failed), false, Next::Block),
        (&blocked, false, std::slice::from_ref(&failed), true, Next::Nothing),
        (&action, false, std::slice::from_ref(&failed), true, Next::Begin),
        (&action, false, &[over(&stopping)], false, Next::Block),
        (&action, false, &[failed.clone(), done], true, Next::Report),
    ];
    for (place, (labels, waits, runs, told, expected)) in table.into_iter().enumerate() {
        assert_eq!(plan(&ActionFacts { labels, waits, runs, told }), expected, "{place}");
    }
}

/// On a clock of our own: four hours without a sign of life, eight hours in any case.
#[test]
fn an_action_has_eight_hours_and_four_of_silence() {
    const HOUR: i64 = 3_600_000;
    let config = Config::parse("name = \"shop\"\n", "p.toml").unwrap();
    let policy = Policy::new(&config, Role::Action);
    let idle = config.timing.action_idle_timeout.duration();
    let running = step(&run(&config), &Event::Begun, &policy, Timestamp(0)).unwrap().run;
    for hour in 0..8 {
        let early = step(&running, &Event::TimePassed, &policy, Timestamp(hour * HOUR)).unwrap();
        assert!(early.run == running && early.effects.is_empty(), "{hour}");
    }
    let late = step(&running, &Event::TimePassed, &policy, Timestamp(8 * HOUR)).unwrap().run;
    assert_eq!((late.status, late.reason.as_deref()), (Status::Failed, Some("it was not done after 8h")));
    let active = Timestamp(2 * HOUR);
    assert!(!is_idle(active, idle, Timestamp(6 * HOUR - 1)) && is_idle(active, idle, Timestamp(6 * HOUR)));
}
