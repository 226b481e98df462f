//! What came of what roles did: taken back, opened again, dismissed. What nobody knows is not shown.

use pointsman_core::ids::ProjectName;
use pointsman_core::value::Following;
use pointsman_store::Store;
use pointsman_testkit::TestDaemon;
use serde_json::{Value, json};

use super::health::make_due;
use super::roles::{answering, file, says, wait_journal};
use super::{clean, shop};

fn role(daemon: &TestDaemon, name: &str) -> Value {
    let roles = daemon.json(&["roles"]);
    roles.as_array().unwrap().iter().find(|role| role["role"] == name).unwrap().clone()
}

/// Waits until a role's figures are these.
fn wait_figures(daemon: &TestDaemon, name: &str, wanted: &Value) {
    daemon.wait_for(&format!("{name}: {wanted}"), || {
        let role = role(daemon, name);
        wanted.as_object()?.iter().all(|(figure, count)| role[figure] == *count).then_some(())
    });
}

/// What the daemon has written under a name.
fn written(daemon: &TestDaemon, name: &str) -> Option<String> {
    let store = Store::open_read_only(&daemon.state().join("pointsman.db")).unwrap();
    store.cursor(Some(&ProjectName::new("shop").unwrap()), name).unwrap()
}

#[test]
fn e2e_worth_work_that_is_taken_back_within_a_week_is_counted() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", &clean("apples"));
    daemon.wait_closed(issue);
    assert_eq!((&role(&daemon, "dev")["merged"], &role(&daemon, "dev")["reverted"]), (&1.into(), &0.into()));
    daemon.wait_for("main to be known", || written(&daemon, "reverts"));

    let checkout = daemon.checkout();
    let url = daemon.run(&["forge", "url"]).stdout.trim().to_owned();
    daemon.git_in(&checkout, &["fetch", "--quiet", &url, "main"]);
    daemon.git_in(&checkout, &["switch", "--quiet", "--create", "no-apples", "FETCH_HEAD"]);
    daemon.git_in(&checkout, &["revert", "--no-edit", "HEAD"]);
    daemon.json(&["merge-queue", "add", "no-apples"]);
    wait_figures(&daemon, "dev", &json!({ "merged": 1, "reverted": 1 }));
    let reverted: Value =
        serde_json::from_str(daemon.run(&["events", "--kind", "landing_reverted", "--json"]).stdout.trim())
            .unwrap();
    assert_eq!(reverted["data"]["issue"], issue);
    // A person's own branch is nobody's merit, and what nobody counts is not there.
    let vault = role(&daemon, "vault");
    assert!(
        ["merged", "reverted", "dismissed", "false_alarms"].iter().all(|name| vault[name].is_null()),
        "{vault}"
    );
    let table = daemon.run(&["roles"]).stdout;
    let line = |role: &str| table.lines().find(|line| line.starts_with(role)).unwrap_or_default().to_owned();
    assert!(line("vault").contains(" - "), "{table}");
}

#[test]
fn e2e_worth_an_issue_that_people_open_again_was_a_false_alarm() {
    let daemon = shop().agent(&answering()).set("roles.gardener.enabled", "true").start();
    let good = "We sell much of it.\n\n## Acceptance criteria\n- [ ] it works";
    let first = file(&daemon, "Export orders as CSV", good, None);
    let second = file(&daemon, "CSV export of orders", good, None);
    let close =
        format!(r#"ACTION: {{"issue": {second}, "do": "duplicate", "of": {first}, "why": "the same"}}"#);
    says(&daemon, &json!({ "lines": [close] }));
    make_due(&daemon, "run-gardener");
    wait_journal(&daemon, "gardener", &format!("closed #{second}: it duplicates #{first}"));
    wait_figures(&daemon, "gardener", &json!({ "closed": 1, "false_alarms": 0, "used": 1 }));
    assert_eq!(daemon.run(&["forge", "issue", "reopen", &second.to_string()]).code, Some(0));
    // It was of use all the same: one mistake does not pause a role.
    wait_figures(&daemon, "gardener", &json!({ "closed": 1, "false_alarms": 1, "used": 1, "noise": 0 }));
}

#[test]
fn e2e_worth_a_prediction_that_people_close_was_noise() {
    let daemon =
        shop().staged().set("roles.predictor.enabled", "true").set("timing.stale_issue", "\"1ms\"").start();
    for fruit in ["Apples", "Pears", "Plums", "Figs", "Dates"] {
        file(&daemon, fruit, "We want them", None);
    }
    make_due(&daemon, "run-predictor");
    wait_figures(&daemon, "predictor", &json!({ "filed": 1, "dismissed": 0, "promoted": 0, "noise": 0 }));
    assert_eq!(daemon.run(&["forge", "issue", "close", "6"]).code, Some(0));
    daemon.wait_for("it to be gone", || {
        let store = Store::open_read_only(&daemon.state().join("pointsman.db")).unwrap();
        let results: Following = store.memory(&ProjectName::new("shop").unwrap(), "results").unwrap()?;
        results.gone.contains_key(&6).then_some(())
    });
    daemon.stage(&json!({ "ahead_ms": 2 * 3_600_000 }));
    wait_figures(&daemon, "predictor", &json!({ "filed": 1, "dismissed": 1, "false_alarms": 1, "noise": 1 }));
}
