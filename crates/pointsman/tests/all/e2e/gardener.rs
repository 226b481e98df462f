//! The gardener: asks when something is new, does what rules allow, and is silent otherwise.

use pointsman::daemon::crash::DEED_NAMES;
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::json;

use super::chat::in_room;
use super::chat::lab::{Lab, id};
use super::health::{let_due, make_due};
use super::roles::{answering, asked, file, looked_at, says, times, wait_journal};
use super::shop;

const GOOD: &str = "We sell much of it.\n\n## Acceptance criteria\n- [ ] it works";

fn gardened() -> Setup {
    shop().agent(&answering()).set("roles.gardener.enabled", "true")
}

fn says_lines(daemon: &TestDaemon, lines: &[&str]) {
    says(daemon, &json!({ "lines": lines }));
}

#[test]
fn e2e_gardener_closes_a_duplicate_that_rules_and_a_model_agree_on() {
    let daemon = gardened().start();
    let first = file(&daemon, "Export orders as CSV", GOOD, None);
    let second = file(&daemon, "CSV export of orders", GOOD, None);
    let other = file(&daemon, "A rocket to Mars", GOOD, None);
    says_lines(
        &daemon,
        &[
            &format!(
                r#"ACTION: {{"issue": {second}, "do": "duplicate", "of": {first}, "why": "the same @everybody"}}"#
            ),
            &format!(r#"ACTION: {{"issue": {other}, "do": "unblock", "why": "approve the vault"}}"#),
        ],
    );
    make_due(&daemon, "run-gardener");
    wait_journal(&daemon, "gardener", &format!("closed #{second}: it duplicates #{first}"));
    assert_eq!(daemon.issue(second)["state"], "closed");
    assert_eq!(
        (&daemon.issue(first)["state"], &daemon.issue(other)["state"]),
        (&"open".into(), &"open".into())
    );
    let comments = daemon.comments(second);
    assert!(comments.len() == 1 && comments[0].contains(&format!("duplicates #{first}")), "{comments:?}");
    wait_journal(&daemon, "gardener", &format!("refused: nobody asked about #{other}"));
    let asked = asked(&daemon);
    assert!(asked.contains(&format!("- #{second} looks like #{first} (")), "{asked}");

    // Nothing is new: nobody is asked, whatever the clock says.
    let before = looked_at(&daemon, "gardener");
    make_due(&daemon, "run-gardener");
    daemon.wait_for("another look", || (looked_at(&daemon, "gardener") > before).then_some(()));
    assert_eq!((times(&daemon), daemon.json(&["run", "list"]).as_array().map(Vec::len)), (1, Some(1)));
}

#[test]
fn e2e_gardener_bundles_dust_and_keeps_nothing_of_a_bad_answer() {
    let daemon = gardened().start();
    let small: Vec<u64> = ["Comma in the footer", "Colour of the button", "Broken link to Mars"]
        .iter()
        .map(|title| file(&daemon, title, "tiny", Some("tech-debt")))
        .collect();
    says_lines(&daemon, &["I have closed everything.", r#"ESCALATE: {"issue": 1, "question": "?"}"#]);
    make_due(&daemon, "run-gardener");
    wait_journal(&daemon, "gardener", "was of no use: line 1");
    assert!(small.iter().all(|issue| daemon.issue(*issue)["state"] == "open"));
    assert!(small.iter().all(|issue| daemon.comments(*issue).is_empty()));

    let dust = |issue: &u64| {
        format!(r#"DUST: {{"issue": {issue}, "group": "site", "title": "closes #1 @ann", "reason": "tiny"}}"#)
    };
    let lines: Vec<String> = small.iter().map(dust).collect();
    says_lines(&daemon, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    make_due(&daemon, "run-gardener");
    wait_journal(&daemon, "gardener", "bundled #1, #2, #3");
    assert!(small.iter().all(|issue| daemon.issue(*issue)["state"] == "closed"));
    let bundle = daemon.issue(4);
    assert_eq!(bundle["title"], "Small things: site");
    let body = bundle["body"].as_str().unwrap();
    assert!(body.contains("- [ ] closes 1 ann (#1)") && !body.contains('@'), "{body}");
    assert!(daemon.comments(small[0])[0].contains("continues in #4"));
    daemon.wait_for("both results to be counted", || {
        let roles = daemon.json(&["roles"]);
        let gardener = roles.as_array()?.iter().find(|role| role["role"] == "gardener")?.clone();
        let counted = gardener["used"] == 1 && gardener["noise"] == 1 && gardener["runs"] == 2;
        (counted && gardener["paused_at"].is_null()).then_some(())
    });
    // It is queued for implementation: sooner or later it is somebody's task.
    daemon.wait_for("a task of it", || {
        daemon.json(&["task", "list"]).as_array()?.iter().any(|task| task["issue"] == 4).then_some(())
    });
}

#[test]
fn e2e_gardener_killed_on_the_way_does_everything_once() {
    for place in DEED_NAMES {
        let daemon = gardened().start();
        let first = file(&daemon, "Export orders as CSV", GOOD, None);
        let second = file(&daemon, "CSV export of orders", GOOD, None);
        let close =
            format!(r#"ACTION: {{"issue": {second}, "do": "duplicate", "of": {first}, "why": "the same"}}"#);
        says_lines(&daemon, &[&close]);
        let_due(&daemon, "run-gardener");
        daemon.start_with(&[("POINTSMAN_CRASH_AT", place)]);
        daemon.wait_for_death();
        daemon.start();
        wait_journal(&daemon, "gardener", &format!("closed #{second}: it duplicates #{first}"));
        assert_eq!((daemon.comments(second).len(), times(&daemon)), (1, 1), "{place}");
        assert_eq!(daemon.issue(second)["state"], "closed", "{place}");
    }
}

/// A person's answer to the gardener's question is read by the next session, once.
#[test]
fn e2e_gardener_hears_what_people_say_to_its_question() {
    let lab = Lab::fake();
    let daemon = in_room(&lab).agent(&answering()).set("roles.gardener.enabled", "true").start();
    let apples = file(&daemon, "Apples", "Nobody says when it is done.", None);
    says_lines(&daemon, &[&format!(r#"ESCALATE: {{"issue": {apples}, "question": "Which apples?"}}"#)]);
    make_due(&daemon, "run-gardener");
    wait_journal(&daemon, "gardener", "asked about #1: Which apples?");
    let told = lab.wait_told("Which apples?");
    lab.ann.reply(id(&told), "The red ones, \u{202e}closes #1");
    lab.wait_told("Kept for the gardener");

    says_lines(
        &daemon,
        &[&format!(r#"ACTION: {{"issue": {apples}, "do": "criteria", "text": "- [ ] red"}}"#)],
    );
    make_due(&daemon, "run-gardener");
    wait_journal(&daemon, "gardener", "proposed acceptance criteria for #1");
    let prompts = asked(&daemon);
    assert_eq!(prompts.matches("The red ones, closes #1").count(), 1, "{prompts}");
    assert_eq!(times(&daemon), 2);

    let before = looked_at(&daemon, "gardener");
    make_due(&daemon, "run-gardener");
    daemon.wait_for("another look", || (looked_at(&daemon, "gardener") > before).then_some(()));
    assert_eq!(times(&daemon), 2, "what was said is read once");
}

/// A machine without the agent's program is no fault of the gardener's: as soon as there is one, it is asked.
#[test]
fn e2e_gardener_that_cannot_begin_loses_no_question() {
    let daemon = gardened().set("roles.gardener.command", "[\"/nowhere/agent\"]").start();
    let apples = file(&daemon, "Apples", "Nobody says when it is done.", None);
    for run in 1..=3 {
        make_due(&daemon, "run-gardener");
        wait_journal(&daemon, "gardener", &format!("run {run} could not be used: the agent program"));
    }
    let roles = daemon.json(&["roles"]);
    let gardener = roles.as_array().unwrap().iter().find(|role| role["role"] == "gardener").unwrap();
    assert_eq!((&gardener["noise"], &gardener["failed"]), (&0.into(), &3.into()), "{gardener}");

    let config = daemon.checkout().join("pointsman.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("command = [\"/nowhere/agent\"]\n", "")).unwrap();
    daemon.json(&["project", "add", config.to_str().unwrap()]);
    says_lines(
        &daemon,
        &[&format!(r#"ACTION: {{"issue": {apples}, "do": "criteria", "text": "- [ ] red"}}"#)],
    );
    make_due(&daemon, "run-gardener");
    wait_journal(&daemon, "gardener", "proposed acceptance criteria for #1");
}

/// Between the decision and the deed a person was faster.
#[test]
fn e2e_gardener_leaves_an_issue_alone_that_a_person_closed_meanwhile() {
    let daemon = gardened().start();
    let first = file(&daemon, "Export orders as CSV", GOOD, None);
    let second = file(&daemon, "CSV export of orders", GOOD, None);
    let close =
        format!(r#"ACTION: {{"issue": {second}, "do": "duplicate", "of": {first}, "why": "the same"}}"#);
    says_lines(&daemon, &[&close]);
    let_due(&daemon, "run-gardener");
    daemon.start_with(&[("POINTSMAN_CRASH_AT", "before-deed")]);
    daemon.wait_for_death();
    daemon.json(&["forge", "issue", "close", &second.to_string()]);
    daemon.start();
    let line = format!("not done, because the issue was deleted or closed: closed #{second}");
    wait_journal(&daemon, "gardener", &line);
    assert_eq!((daemon.comments(second).len(), times(&daemon)), (0, 1));
}
