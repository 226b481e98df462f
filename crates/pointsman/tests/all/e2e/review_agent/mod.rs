//! The review agent: asked when CI is green, bound to a commit, believed only as far as code allows.

mod hostile;
mod people;

use pointsman::daemon::crash::REVIEW_NAMES;
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::{adds, shop};

const LAND: &str = "expect CI passed\nphase awaiting_review\nexpect Approved\nexpect Merged\nphase done";

/// A project whose changes are reviewed by the agent.
fn reviewed_by_agent() -> Setup {
    shop().set("review.mode", "\"agent\"").set("limits.min_free_memory_mb", "0")
}

/// An issue with what the agent does, and what the reviewer answers one time after the other.
fn body(script: &str, answers: &[Value]) -> String {
    let mut text = format!("rehearsal:begin\n{script}\nrehearsal:end\n");
    for answer in answers {
        text.push_str(&format!("rehearsal-review:begin\nanswer {answer}\nrehearsal-review:end\n"));
    }
    text
}

fn reviews(daemon: &TestDaemon, pr: u64) -> Vec<Value> {
    daemon.pull_request(pr)["reviews"].as_array().cloned().unwrap_or_default()
}

/// Runs of reviews, oldest first.
fn runs(daemon: &TestDaemon) -> Vec<Value> {
    let all = daemon.json(&["run", "list"]).as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|run| run["role"] == "review").collect()
}

/// The titles of what was filed as older than a change.
fn debts(daemon: &TestDaemon) -> Vec<String> {
    let listed = daemon.json(&["forge", "issue", "list"]);
    let of_debt = |issue: &&Value| issue["labels"] == json!(["tech-debt"]);
    let titles =
        listed.as_array().unwrap().iter().filter(of_debt).map(|issue| issue["title"].as_str().unwrap());
    titles.map(str::to_owned).collect()
}

/// Files that a review's session was given.
fn given(daemon: &TestDaemon, run: u64, name: &str) -> Option<String> {
    let inbox = daemon.state().join(format!("projects/shop/sessions/review-shop-{run}/inbox-1"));
    std::fs::read_to_string(inbox.join(name)).ok()
}

#[test]
fn e2e_the_review_agent_asks_for_changes_and_then_approves() {
    let daemon = reviewed_by_agent().start();
    let asks = json!({
        "verdict": "REQUEST_CHANGES", "verdict_reason": "The price is missing.", "review_markdown": "Say **how much**.",
        "findings": [{"file": "src/figs.txt", "line": 1, "text": "no price"}],
        "followups": [
            {"title": "Lemons are too cheap", "body": "Since ever."}, {"title": "lemons: are too cheap!"},
            {"title": "Second"}, {"title": "Third"}, {"title": "Fourth"},
        ],
    });
    let agrees = json!({"verdict": "APPROVE", "verdict_reason": "Now it says how much."});
    let script = format!(
        "write src/figs.txt figs\ncommit Add figs\npush\nphase awaiting_ci\nexpect CI passed\nphase awaiting_review\n\
         expect Changes requested\nwrite src/figs.txt figs 3 crowns\ncommit Say the price\npush\nphase awaiting_review\n{LAND}"
    );
    let issue = daemon.file_issue_with("Figs in src/figs.txt", &body(&script, &[asks, agrees]));
    daemon.wait_closed(issue);
    assert_eq!(daemon.on_main("src/figs.txt").unwrap(), "figs 3 crowns");

    let pr = daemon.pull_requests()[0]["number"].as_u64().unwrap();
    let reviews = reviews(&daemon, pr);
    let told: Vec<(&str, &str, bool)> = reviews
        .iter()
        .map(|r| {
            (r["author"].as_str().unwrap(), r["verdict"].as_str().unwrap(), r["dismissed"].as_bool().unwrap())
        })
        .collect();
    assert_eq!(
        told,
        [("pointsman-review", "request_changes", true), ("pointsman-review", "approve", false)],
        "what was asked for before is taken back"
    );
    let text = reviews[0]["body"].as_str().unwrap();
    let (facts, verdict) = (text.find("**Facts**").unwrap(), text.find("## Changes requested").unwrap());
    assert!(facts < verdict && text.contains("1 file, 1 lines added"), "{text}");
    assert!(text.contains("`src/figs.txt:1`: no price") && text.contains("Say **how much**."), "{text}");
    let mark = format!("<!-- reviewed: {} -->", reviews[0]["sha"].as_str().unwrap());
    assert!(text.ends_with(&mark), "{text}");

    // What is older than the change became issues: a few, and none twice.
    assert_eq!(debts(&daemon), ["Lemons are too cheap", "Second", "Third"]);

    // The second time it had the first review and what changed since.
    let runs = runs(&daemon);
    assert_eq!(runs.len(), 2, "one question for each head: {runs:?}");
    assert!(given(&daemon, 1, "earlier-review.md").is_none());
    assert!(given(&daemon, 1, "change.diff").unwrap().contains("+figs\n"));
    assert!(given(&daemon, 1, "request.md").unwrap().contains("Figs in src/figs.txt"));
    assert!(given(&daemon, 2, "earlier-review.md").unwrap().contains("The price is missing."));
    let since = given(&daemon, 2, "since-that-review.diff").unwrap();
    assert!(since.contains("-figs\n") && since.contains("+figs 3 crowns\n"), "{since}");
    assert!(given(&daemon, 2, "facts.md").unwrap().contains("1 file, 1 lines added"));
}

#[test]
fn e2e_kill_the_daemon_while_a_review_is_posted() {
    let daemon = reviewed_by_agent().build();
    for (round, place) in REVIEW_NAMES.into_iter().enumerate() {
        daemon.start_with(&[("POINTSMAN_CRASH_AT", place)]);
        let fruit = format!("fruit-{round}");
        let answer = json!({
            "verdict": "APPROVE", "verdict_reason": "Fine.", "followups": [{"title": format!("Old mess {round}")}],
        });
        let script = format!("{}\n{LAND}", adds(&fruit));
        let issue = daemon.file_issue_with(&fruit, &body(&script, &[answer]));
        daemon.wait_for_death();
        daemon.start();
        daemon.wait_closed(issue);
        let pulls = daemon.pull_requests();
        let pr = pulls.iter().map(|pr| pr["number"].as_u64().unwrap()).max().unwrap();
        assert_eq!(reviews(&daemon, pr).len(), 1, "{place}: reviewed once");
        assert_eq!(debts(&daemon).len(), round + 1, "{place}: filed once");
        assert_eq!(runs(&daemon).len(), round + 1, "{place}: asked once");
        // What is left of it would be seen to by the next daemon, which is to die of the next one.
        daemon.wait_for("its session to be put away", || {
            runs(&daemon).iter().all(|run| run["open"] == false).then_some(())
        });
        daemon.stop_daemon();
    }
}
