//! The predictor files what figures foretell, once, and asks no model.

use pointsman_testkit::TestDaemon;
use serde_json::{Value, json};

use super::health::make_due;
use super::roles::looked_at;
use super::shop;

fn issues(daemon: &TestDaemon) -> Vec<Value> {
    daemon.json(&["forge", "issue", "list"]).as_array().cloned().unwrap_or_default()
}

#[test]
fn e2e_predictor_files_an_observation_with_its_evidence_once() {
    let daemon = shop().set("roles.predictor.enabled", "true").set("timing.stale_issue", "\"1ms\"").start();
    for fruit in ["Apples", "Pears", "Plums", "Figs", "Dates"] {
        daemon.json(&["forge", "issue", "create", "--title", fruit, "--body", "We want them"]);
    }
    let look = |role: &str| daemon.run(&["roles", "look", role]).code;
    assert_eq!((look("gardener"), look("nobody"), look("predictor")), (Some(3), Some(2), Some(0)));
    daemon.wait_for("a prediction", || {
        let told = daemon.json(&["journal", "--role", "predictor"]);
        (told[0]["lines"] == json!(["#6 Issues pile up: 5 of 5 are not being touched"])).then_some(())
    });
    let filed = daemon.issue(6);
    assert_eq!(filed["labels"], json!(["prediction/unreviewed"]));
    assert!(
        filed["body"].as_str().unwrap().contains("5 of 5 open issues have not changed for a long time"),
        "{filed}"
    );
    let before = looked_at(&daemon, "predictor");
    make_due(&daemon, "run-predictor");
    daemon.wait_for("another look", || (looked_at(&daemon, "predictor") > before).then_some(()));
    assert_eq!((issues(&daemon).len(), daemon.json(&["run", "list"])), (6, json!([])));
}
