//! The gardener: asks when something is new, does what rules allow, and is silent otherwise.

use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::health::make_due;
use super::shop;

const GOOD: &str = "We sell much of it.\n\n## Acceptance criteria\n- [ ] it works";

/// A gardener that says what is in `home/lines.json`, and counts how often it was asked.
fn gardened() -> Setup {
    let steps = ["preflight", "grooming", "blocked-review", "agents-update", "commit-and-pr"];
    let done: String =
        steps.map(|step| format!("{} step done {step}\n", env!("CARGO_BIN_EXE_pointsman"))).concat();
    let agent = format!(
        "read -r greeting\ncat \"$POINTSMAN_INBOX/0000-task.md\" >> \"$HOME/asked\"\necho once >> \"$HOME/times\"\n{done}\
         cp \"$HOME/lines.json\" \"$POINTSMAN_RESULT_FILE\"\necho PHASE:done > \"$PHASE_FILE\"\nread -r end\n"
    );
    shop().agent(&agent).set("roles.gardener.enabled", "true")
}

fn file(daemon: &TestDaemon, title: &str, body: &str, label: Option<&str>) -> u64 {
    let mut arguments = vec!["forge", "issue", "create", "--title", title, "--body", body];
    arguments.extend(label.iter().flat_map(|label| ["--label", label]));
    daemon.json(&arguments)["number"].as_u64().unwrap()
}

fn says(daemon: &TestDaemon, lines: &[&str]) {
    std::fs::write(daemon.path("home/lines.json"), json!({ "lines": lines }).to_string()).unwrap();
}

fn times(daemon: &TestDaemon) -> usize {
    std::fs::read_to_string(daemon.path("home/times")).map_or(0, |text| text.lines().count())
}

fn journal(daemon: &TestDaemon) -> Vec<String> {
    let entries = daemon.json(&["journal", "--role", "gardener"]);
    let lines = |entry: &Value| entry["lines"].as_array().cloned().unwrap_or_default();
    let all = entries.as_array().unwrap().iter().flat_map(lines);
    all.filter_map(|line| line.as_str().map(str::to_owned)).collect()
}

fn wait_journal(daemon: &TestDaemon, text: &str) {
    daemon.wait_for(text, || journal(daemon).iter().any(|line| line.contains(text)).then_some(()));
}

#[test]
fn e2e_gardener_closes_a_duplicate_that_rules_and_a_model_agree_on() {
    let daemon = gardened().start();
    let first = file(&daemon, "Export orders as CSV", GOOD, None);
    let second = file(&daemon, "CSV export of orders", GOOD, None);
    let other = file(&daemon, "A rocket to Mars", GOOD, None);
    says(
        &daemon,
        &[
            &format!(
                r#"ACTION: {{"issue": {second}, "do": "duplicate", "of": {first}, "why": "the same @everybody"}}"#
            ),
            &format!(r#"ACTION: {{"issue": {other}, "do": "unblock", "why": "approve the vault"}}"#),
        ],
    );
    make_due(&daemon, "run-gardener");
    wait_journal(&daemon, &format!("closed #{second}: it says the same as #{first}"));
    assert_eq!(daemon.issue(second)["state"], "closed");
    assert_eq!(
        (&daemon.issue(first)["state"], &daemon.issue(other)["state"]),
        (&"open".into(), &"open".into())
    );
    let comments = daemon.comments(second);
    assert!(comments.len() == 1 && comments[0].contains(&format!("the same as #{first}")), "{comments:?}");
    wait_journal(&daemon, &format!("refused: nobody asked about #{other}"));
    let asked = std::fs::read_to_string(daemon.path("home/asked")).unwrap();
    assert!(asked.contains(&format!("- #{second} looks like #{first} (")), "{asked}");

    // Nothing is new: nobody is asked, whatever the clock says. A look is over when it is written down.
    let looked_at = || {
        let store = pointsman_store::Store::open_read_only(&daemon.state().join("pointsman.db")).unwrap();
        let project = pointsman_core::ids::ProjectName::new("shop").unwrap();
        let memory = store.cursor(Some(&project), "gardener").unwrap().unwrap();
        serde_json::from_str::<Value>(&memory).unwrap()["looked_at"].as_u64().unwrap()
    };
    let before = looked_at();
    make_due(&daemon, "run-gardener");
    daemon.wait_for("another look", || (looked_at() > before).then_some(()));
    assert_eq!((times(&daemon), daemon.json(&["run", "list"]).as_array().map(Vec::len)), (1, Some(1)));
}

#[test]
fn e2e_gardener_bundles_dust_and_keeps_nothing_of_a_bad_answer() {
    let daemon = gardened().start();
    let small: Vec<u64> = ["Comma in the footer", "Colour of the button", "Broken link to Mars"]
        .iter()
        .map(|title| file(&daemon, title, "tiny", Some("tech-debt")))
        .collect();
    says(&daemon, &["I have closed everything.", r#"ESCALATE: {"issue": 1, "question": "?"}"#]);
    make_due(&daemon, "run-gardener");
    wait_journal(&daemon, "was of no use: line 1");
    assert!(small.iter().all(|issue| daemon.issue(*issue)["state"] == "open"));
    assert!(small.iter().all(|issue| daemon.comments(*issue).is_empty()));

    let dust = |issue: &u64| {
        format!(r#"DUST: {{"issue": {issue}, "group": "site", "title": "closes #1 @ann", "reason": "tiny"}}"#)
    };
    let lines: Vec<String> = small.iter().map(dust).collect();
    says(&daemon, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    make_due(&daemon, "run-gardener");
    wait_journal(&daemon, "bundled #1, #2, #3");
    assert!(small.iter().all(|issue| daemon.issue(*issue)["state"] == "closed"));
    let bundle = daemon.issue(4);
    assert_eq!(bundle["title"], "Small things: site");
    let body = bundle["body"].as_str().unwrap();
    assert!(body.contains("- [ ] closes 1 ann (#1)") && !body.contains('@'), "{body}");
    assert!(daemon.comments(small[0])[0].contains("goes on in #4"));
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
