//! Decisions made while no daemon runs: they are kept, shown at the next start, and have no effect until a person makes
//! them again.

use std::path::Path;
use std::process::Command;

use pointsman_testkit::TestDaemon;
use serde_json::Value;

use super::vault::{action, guarded, runs, show, submit, wait_status};
use super::{LAND, adds, clean};

/// An approval, an answer, a comment that is an answer, and both vault decisions, made with no daemon. The answer has what
/// a shell would act on.
fn decide(daemon: &TestDaemon, pr: &str, [asks, asks_too]: [&str; 2]) -> [Vec<String>; 5] {
    let decisions: [&[&str]; 5] = [
        &["forge", "pr", "review", pr, "--approve", "--body", "fine"],
        &["task", "answer", asks, "It's the $(red) ones.\nAll of them."],
        &["forge", "issue", "comment", asks_too, "--body", "The green ones."],
        &["vault", "approve", "h1"],
        &["vault", "reject", "h2", "--reason", "not today"],
    ];
    for decision in decisions {
        let answer = daemon.run(decision);
        assert_eq!(answer.code, Some(5), "{decision:?}: {answer:?}");
        assert!(answer.stderr.contains("It is kept as unconfirmed"), "{answer:?}");
        assert!(answer.stderr.contains(&format!("pointsman --project shop {}", decision[0])), "{answer:?}");
    }
    decisions.map(|decision| decision.iter().map(|word| (*word).to_owned()).collect())
}

fn unconfirmed(daemon: &TestDaemon) -> Vec<Value> {
    daemon.json(&["status"])["unconfirmed"].as_array().cloned().unwrap()
}

/// Runs a command as a person pastes it into a shell.
fn paste(daemon: &TestDaemon, line: &str) {
    let program = daemon.command(&[]);
    let dir = Path::new(program.get_program()).parent().unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("PATH={}:$PATH; {line}", dir.display())]);
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.current_dir(program.get_current_dir().unwrap_or(&daemon.checkout())).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
}

#[test]
fn e2e_decisions_without_a_daemon_have_no_effect_until_they_are_confirmed() {
    let daemon = guarded().reviewed().set("dev.concurrency", "3").start();
    let asks = |fruit| format!("phase escalate Which?\nexpect Answer\n{}\n{LAND}", adds(fruit));
    let lands = daemon.file_issue("Apples", &clean("apples"));
    let [asks, asks_too] = ["pears", "plums"].map(|fruit| daemon.file_issue(fruit, &asks(fruit)));
    for id in ["h1", "h2"] {
        assert_eq!(submit(&daemon, &action(id, "high")).code, Some(0));
    }
    let pr = daemon.wait_in_review(lands)["pr"].to_string();
    for issue in [asks, asks_too] {
        daemon.wait_state(issue, "escalated");
        daemon.wait_settled(issue);
    }
    daemon.stop_daemon();
    let numbers = [asks, asks_too].map(|issue| issue.to_string());
    decide(&daemon, &pr, numbers.each_ref().map(String::as_str));

    // However often a daemon starts, nothing comes of them. The probe is filed after the start, so that the forge was asked
    // before it is seen, and the low action is fired by a vault that has looked.
    for round in 0..2 {
        daemon.start();
        let log = daemon.log();
        assert_eq!(log.matches("Unconfirmed: the ").count(), 5 * (round + 1), "{log}");
        let probe = daemon.file_issue_with("Probe", &format!("Depends on #{lands}."));
        daemon.wait_state(probe, "waiting_dependencies");
        daemon.json(&["forge", "issue", "close", &probe.to_string()]);
        let id = format!("l{round}");
        assert_eq!(submit(&daemon, &action(&id, "low")).code, Some(0));
        wait_status(&daemon, &id, "fired");
        let kept = unconfirmed(&daemon);
        let kinds: Vec<&str> = kept.iter().filter_map(|one| one["decision"].as_str()).collect();
        assert_eq!(kinds, ["approval", "answer", "comment", "vault_approval", "vault_rejection"]);
        assert!(kept.iter().all(|one| one["by"] == crate::login()), "{kept:?}");
        assert_eq!(daemon.task(lands)["state"], "awaiting_review");
        assert_eq!(daemon.pull_request(pr.parse().unwrap())["reviews"], serde_json::json!([]));
        for issue in [asks, asks_too] {
            assert_eq!(daemon.task(issue)["state"], "escalated");
            assert_eq!(daemon.comments(issue).len(), 1, "the question alone");
        }
        for id in ["h1", "h2"] {
            assert_eq!((&show(&daemon, id)["status"], runs(&daemon, id)), (&"pending".into(), 0));
        }
        daemon.stop_daemon();
    }

    let started = daemon.run(&["up", "--detach"]);
    assert_eq!(started.stderr.matches("Unconfirmed: the ").count(), 5, "{started:?}");
    assert_eq!(daemon.run(&["down"]).code, Some(0));
    daemon.start();
    for one in unconfirmed(&daemon) {
        paste(&daemon, one["confirm"].as_str().unwrap());
    }
    daemon.wait_closed(lands);
    for issue in [asks, asks_too] {
        daemon.wait_in_review(issue);
    }
    wait_status(&daemon, "h1", "fired");
    assert_eq!(show(&daemon, "h2")["status"], "rejected");
    assert_eq!((runs(&daemon, "h1"), runs(&daemon, "h2")), (1, 0));
    let inbox = daemon.session_files(asks).join("inbox-1");
    let told = std::fs::read_dir(inbox).unwrap().map(|entry| entry.unwrap().path());
    let told = told.into_iter().find(|path| path.to_string_lossy().contains("answer")).expect("a message");
    let told = std::fs::read_to_string(told).unwrap();
    assert!(told.contains("It's the $(red) ones.\nAll of them."), "{told}");
    assert_eq!(unconfirmed(&daemon), [Value::Null; 0]);
    assert_eq!(outcomes(&daemon), ["confirmed"; 5]);
}

/// How kept decisions ended, as the log has it.
fn outcomes(daemon: &TestDaemon) -> Vec<String> {
    let log = daemon.run(&["events", "--json"]).stdout;
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let settled = events.filter(|event| event["kind"] == "decision_settled");
    settled.map(|event| event["data"]["outcome"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn e2e_a_kept_decision_is_overruled_by_another_and_lapses_with_its_question() {
    let daemon = guarded().reviewed().start();
    let issue = daemon.file_issue("Apples", &format!("{}\nexpect Changes requested", adds("apples")));
    for id in ["h1", "h2"] {
        assert_eq!(submit(&daemon, &action(id, "high")).code, Some(0));
    }
    let pr = daemon.wait_in_review(issue)["pr"].to_string();
    daemon.stop_daemon();
    for decision in [
        &["forge", "pr", "review", &pr, "--approve"][..],
        &["vault", "approve", "h1"],
        &["vault", "reject", "h2"],
    ] {
        assert_eq!(daemon.run(decision).code, Some(5));
    }
    assert_eq!(daemon.run(&["task", "answer", &issue.to_string(), "Yes."]).code, Some(3), "nobody asked");
    assert_eq!(daemon.run(&["vault", "approve", "h9"]).code, Some(4));
    daemon.start();
    daemon.request_changes(issue, "No.");
    daemon.json(&["vault", "reject", "h1"]);
    daemon.wait_for("two to be settled", || (outcomes(&daemon).len() == 2).then_some(()));
    daemon.json(&["vault", "approve", "h2"]);
    wait_status(&daemon, "h2", "fired");
    assert_eq!(outcomes(&daemon), ["overruled"; 3]);
    assert_eq!((show(&daemon, "h1")["status"].as_str(), runs(&daemon, "h1")), (Some("rejected"), 0));

    // A push in between: the approval was of another commit.
    daemon.wait_state(issue, "working");
    daemon.stop_daemon();
    assert_eq!(daemon.run(&["forge", "pr", "review", &pr, "--approve"]).code, Some(5));
    let branch = format!("refs/heads/pointsman/issue-{issue}");
    let main = daemon.forge_git(&["rev-parse", "main"]);
    daemon.forge_git(&["update-ref", &branch, main.trim()]);
    daemon.start();
    assert_eq!(outcomes(&daemon), ["overruled", "overruled", "overruled", "lapsed"]);
    assert_eq!(unconfirmed(&daemon), [Value::Null; 0]);
}
