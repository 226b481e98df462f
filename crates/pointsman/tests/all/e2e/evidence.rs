//! What a person decides by: the diff of a pull request, its checks, and what CI printed.

use pointsman_testkit::fake_forgejo::{FakeForgejo, Rules};

use super::{adds, forgejo, shop};

const REVIEWED: &str = "expect CI passed\nphase awaiting_review\nexpect Merged\nphase done";

#[test]
fn e2e_a_reviewer_sees_the_diff_the_checks_and_every_log_of_ci() {
    let daemon = shop().reviewed().start();
    let script = format!(
        "write src/pears.txt pears BUG\ncommit Add pears\npush\nphase awaiting_ci\nexpect CI failed\n\
         write src/pears.txt pears\ncommit Fix pears\npush\nphase awaiting_ci\n{REVIEWED}"
    );
    let issue = daemon.file_issue("Pears", &script);
    let task = daemon.wait_in_review(issue);
    let (issue_text, pr) = (issue.to_string(), task["pr"].to_string());

    let diff = daemon.json(&["forge", "pr", "diff", &pr]);
    assert_eq!((&diff["base"], &diff["head_sha"]), (&"main".into(), &task["head_sha"]), "{diff}");
    let text = diff["diff"].as_str().unwrap();
    assert!(text.contains("+++ b/src/pears.txt") && text.contains("+pears\n"), "{text}");
    assert!(diff.get("stat").is_none(), "{diff}");
    let stat = daemon.json(&["forge", "pr", "diff", &pr, "--stat"]);
    assert!(stat["stat"].as_str().unwrap().contains("src/pears.txt"), "{stat}");
    assert!(stat.get("diff").is_none(), "{stat}");
    let printed = daemon.run(&["forge", "pr", "diff", &pr]);
    assert!(printed.stdout.contains("+pears"), "{}", printed.stdout);

    let checks = daemon.json(&["forge", "pr", "checks", &pr]);
    let check = &checks[0];
    assert_eq!((&check["name"], &check["status"]), (&"ci".into(), &"passed".into()), "{checks}");
    assert_eq!(check["sha"], task["head_sha"], "{checks}");
    assert!(check["seconds"].is_f64() && check["log"].is_string(), "{checks}");

    let newest = daemon.json(&["ci", "logs", &issue_text]);
    assert_eq!((&newest["run"], &newest["status"]), (&2.into(), &"passed".into()), "{newest}");
    assert_eq!(daemon.json(&["ci", "logs", &pr]), newest, "the number of the pull request means the same");
    let first = daemon.json(&["ci", "logs", &issue_text, "--run", "1"]);
    assert_eq!(first["status"], "failed", "{first}");
    assert!(first["log"].as_str().unwrap().contains("src/pears.txt:1:pears BUG"), "{first}");
    let printed = daemon.run(&["ci", "logs", &issue_text, "--run", "1"]);
    assert!(printed.stdout.contains("pears BUG") && printed.stderr.contains("CI run 1 of"), "{printed:?}");
    let missing = daemon.run(&["ci", "logs", &issue_text, "--run", "9"]);
    assert_eq!(missing.code, Some(4), "{missing:?}");

    daemon.json(&["forge", "pr", "review", &pr, "--approve"]);
    daemon.wait_closed(issue);
    let landed = daemon.json(&["forge", "pr", "diff", &pr]);
    let text = landed["diff"].as_str().unwrap();
    assert!(text.contains("+pears\n"), "what landed is still shown: {landed}");

    // Nobody has to run for it.
    daemon.stop_daemon();
    assert_eq!(daemon.json(&["forge", "pr", "diff", &pr]), landed);
    assert_eq!(daemon.json(&["ci", "logs", &issue_text]), newest);
    assert_eq!(daemon.json(&["forge", "pr", "checks", &pr])[0]["status"], "passed");
}

#[test]
fn e2e_the_ci_of_a_persons_own_pull_request_is_shown_as_well() {
    let daemon = shop().reviewed().start();
    let url = daemon.json(&["forge", "url"])["url"].as_str().unwrap().to_owned();
    let clone = daemon.path("clone");
    daemon.git_in(&daemon.path("home"), &["clone", "--quiet", &url, &clone.to_string_lossy()]);
    daemon.git_in(&clone, &["switch", "--quiet", "-c", "by-hand"]);
    std::fs::write(clone.join("src/figs.txt"), "figs BUG\n").unwrap();
    daemon.git_in(&clone, &["add", "--all"]);
    daemon.git_in(&clone, &["commit", "--quiet", "--message=Add figs"]);
    daemon.git_in(&clone, &["push", "--quiet", "origin", "by-hand"]);
    let pr =
        daemon.json(&["forge", "pr", "create", "--head", "by-hand", "--title", "Figs"])["number"].to_string();
    let red = daemon.wait_for("its CI", || {
        let checks = daemon.json(&["forge", "pr", "checks", &pr]);
        (checks[0]["log"].is_string() && checks[0]["status"] == "failed").then_some(checks)
    });
    assert!(red[0]["log"].as_str().unwrap().contains("figs BUG"), "{red}");
    let log = daemon.json(&["ci", "logs", &pr]);
    assert!(log["run"].is_null() && log["log"].as_str().unwrap().contains("figs BUG"), "{log}");
    assert_eq!(log["status"], "failed", "{log}");
    let numbered = daemon.run(&["ci", "logs", &pr, "--run", "1"]);
    assert_eq!(numbered.code, Some(4), "{numbered:?}");
}

#[test]
fn e2e_a_repository_without_a_forge_has_no_pull_requests_and_gets_no_forge() {
    let daemon = shop().set("forge.kind", "\"git\"").set("forge.url", "\"/srv/line.git\"").build();
    for command in [["forge", "pr", "diff", "1"], ["forge", "pr", "checks", "1"]] {
        let refused = daemon.run(&command);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.stderr.contains("a repository without a forge"), "{refused:?}");
    }
    assert!(!daemon.state().join("projects/shop/forge.git").exists(), "nothing was made");
}

#[test]
fn e2e_the_log_of_a_local_ci_needs_no_token_of_the_forge() {
    let fake = FakeForgejo::start(Rules::default());
    let daemon = forgejo::start(&fake, forgejo::on(&fake).reviewed());
    let script = format!("write src/pears.txt pears\ncommit Add pears\npush\nphase awaiting_ci\n{REVIEWED}");
    let issue = forgejo::file(&fake, "Pears", &script);
    daemon.wait_state(issue, "awaiting_review");
    // The commands of a test, like those of a session, have no token in their environment.
    let log = daemon.json(&["ci", "logs", &issue.to_string()]);
    assert_eq!(log["status"], "passed", "{log}");
}

#[test]
fn e2e_what_is_not_there_is_not_found() {
    let daemon = shop().reviewed().start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{REVIEWED}", adds("apples"))).to_string();
    for words in
        [&["forge", "pr", "diff", "99"], &["forge", "pr", "checks", "99"], &["forge", "pr", "diff", &issue]]
    {
        assert_eq!(daemon.run(words).code, Some(4), "{words:?}");
    }
    assert_eq!(daemon.run(&["ci", "logs", "99"]).code, Some(4));
    assert_eq!(daemon.run(&["ci", "logs"]).code, Some(2));
    assert_eq!(daemon.run(&["ci", "logs", &issue, "--step", "test"]).code, Some(2));
}

#[test]
fn e2e_a_receipt_says_what_was_run_and_what_nobody_ran() {
    let daemon = shop().reviewed().start();
    let land = "expect CI passed\nphase awaiting_review\nexpect Approved\nexpect Merged\nphase done";
    let issue = daemon.file_issue("Apples", &format!("{}\n{land}", adds("apples")));
    let task = daemon.wait_in_review(issue);
    let (pr, head) = (task["pr"].to_string(), task["head_sha"].clone());
    let receipt = |shown: &serde_json::Value| -> Vec<(String, String, serde_json::Value)> {
        let lines = shown["receipt"].as_array().cloned().unwrap_or_default();
        let word = |line: &serde_json::Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        lines.iter().map(|line| (word(line, "step"), word(line, "result"), line["sha"].clone())).collect()
    };
    let line =
        |step: &str, result: &str, sha: &serde_json::Value| (step.to_owned(), result.to_owned(), sha.clone());
    let null = serde_json::Value::Null;
    let waits =
        [line("ci", "passed", &head), line("review", "unverified", &null), line("gate", "unverified", &null)];
    assert_eq!(receipt(&daemon.json(&["forge", "pr", "show", &pr])), waits);
    let asked = daemon.wait_for("the question is in the inbox", || {
        daemon.json(&["inbox"]).as_array().and_then(|all| all.first().cloned())
    });
    assert_eq!(receipt(&asked), waits);
    let shown = daemon.run(&["inbox", "show", &asked["id"].to_string()]).stdout;
    assert!(shown.contains("receipt  review UNVERIFIED: nobody has reviewed the current head"), "{shown}");
    assert!(shown.contains("receipt  ci passed on"), "{shown}");

    daemon.approve(issue);
    daemon.wait_closed(issue);
    let landed = daemon.json(&["forge", "pr", "show", &pr]);
    let merged = landed["merge_sha"].clone();
    assert_eq!(
        receipt(&landed),
        [line("ci", "passed", &head), line("review", "passed", &head), line("gate", "passed", &merged)]
    );
    let shown = daemon.run(&["forge", "pr", "show", &pr]).stdout;
    assert!(shown.contains("receipt  gate passed on") && !shown.contains("UNVERIFIED"), "{shown}");
}
