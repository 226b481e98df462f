use serde_json::json;

use super::*;
use crate::config::Config;
use crate::formula::{Formula, shipped, variables};
use crate::part::session;
use crate::run::{Event, Policy, RunId, Subject, step};
use crate::task::{Effect, Exit};

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
    let of_session = |told: session::Event| Event::Session { generation: 1, told };
    let end = |run: &Run, name: &str, ending: Ending| {
        let name = name.to_owned();
        go(run, Event::DeedEnded { name, ending })
    };
    let begun = go(&run(&config), Event::Begun);
    let claims = Effect::Deed { name: "claim".to_owned(), act: claim(7) };
    assert!(step(&run(&config), &Event::Begun, &policy, Timestamp(5)).unwrap().effects.contains(&claims));
    let claiming = begun.clone();
    let begun = end(&begun, "claim", Ending::Done { filed: None });
    let over = |run: &Run| {
        let gone = session::Event::Ended { exit: Exit::Stopped, tail: String::new() };
        go(&go(run, of_session(gone)), Event::CleanedUp)
    };
    let failing = go(&begun, of_session(session::Event::NotStarted { error: "no".to_owned() }));
    let failed = over(&failing);
    let stopping = go(&begun, Event::Stopped { by: "ann".to_owned() });
    let wants = |run: &Run| {
        let (name, act) = (REPORT.to_owned(), report(run, 7));
        go(run, Event::DeedWanted { name, act })
    };
    let telling = wants(&failed);
    let told = end(&telling, REPORT, Ending::Done { filed: None });
    let refused = end(&telling, REPORT, Ending::Refused { error: "no rights".to_owned() });
    let mut done = failed.clone();
    done.status = Status::Done;
    assert_eq!(report(&done, 7), Act::ReportAction { issue: 7 });
    assert!(matches!(report(&failed, 7), Act::Tend(Tend { issue: 7, close: false, .. })));
    let again = Event::DeedWanted { name: REPORT.to_owned(), act: report(&failed, 7) };
    assert!(step(&refused, &again, &policy, Timestamp(9)).is_err(), "what was refused is not wanted again");
    let labels = |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
    let (action, blocked, other) =
        (labels(&["action"]), labels(&["action", "blocked"]), labels(&["backlog"]));
    type Row<'a> = (&'a [String], bool, &'a [Run], Next);
    let table: [Row<'_>; 15] = [
        (&other, false, &[], Next::Nothing),
        (&action, false, &[], Next::Begin),
        (&action, true, &[], Next::Nothing),
        (&blocked, false, &[], Next::Nothing),
        (&action, false, std::slice::from_ref(&begun), Next::Nothing),
        (&action, false, std::slice::from_ref(&failing), Next::Nothing),
        (&action, false, &[over(&go(&claiming, Event::Stopped { by: "ann".to_owned() }))], Next::Nothing),
        (&action, false, std::slice::from_ref(&failed), Next::Report),
        (&action, false, std::slice::from_ref(&telling), Next::Nothing),
        (&action, false, std::slice::from_ref(&refused), Next::Nothing),
        (&blocked, false, std::slice::from_ref(&told), Next::Nothing),
        (&action, true, std::slice::from_ref(&told), Next::Nothing),
        (&action, false, std::slice::from_ref(&told), Next::Begin),
        (&action, false, &[over(&stopping)], Next::Report),
        (&action, false, &[told.clone(), done], Next::Report),
    ];
    for (place, (labels, waits, runs, expected)) in table.into_iter().enumerate() {
        assert_eq!(plan(&ActionFacts { labels, waits, runs }), expected, "{place}");
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
    assert_eq!((late.status, late.reason.as_deref()), (Status::Failed, Some("it was not finished after 8h")));
    let active = Timestamp(2 * HOUR);
    assert!(!is_idle(active, idle, Timestamp(6 * HOUR - 1)) && is_idle(active, idle, Timestamp(6 * HOUR)));
}
