//! A person's own session: `.agent-claim.json` and the hooks that follow it, with and without a daemon.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::environment::{Answer, Environment, finish};

/// A project with a checklist and one issue.
fn project() -> Environment {
    let environment = Environment::with_project();
    let config = environment.shop().join("pointsman.toml");
    let text =
        fs::read_to_string(&config).unwrap() + "\n[pr]\nchecklist = [\"Mission kept\", \"Docs updated\"]\n";
    fs::write(&config, text).unwrap();
    environment.run(&["forge", "issue", "create", "--title", "Fix thing", "--label", "backlog"]).ok();
    environment
}

fn hook(environment: &Environment, event: &str, input: &str) -> Answer {
    let mut command = environment.command(&["hook", event]);
    command.env("CLAUDE_PROJECT_DIR", ".");
    finish(command, input.as_bytes())
}

/// What a hook puts before the model, under which event.
#[track_caller]
fn context(answer: &Answer) -> (String, String) {
    let value: Value =
        serde_json::from_str(&answer.ok().stdout).unwrap_or_else(|e| panic!("{e}: {answer:?}"));
    let output = &value["hookSpecificOutput"];
    let text = |field: &str| output[field].as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
    (text("hookEventName"), text("additionalContext"))
}

fn claim(environment: &Environment) -> Value {
    serde_json::from_slice(&fs::read(environment.shop().join(".agent-claim.json")).unwrap()).unwrap()
}

fn write_claim(environment: &Environment, claim: &Value) {
    environment.write(".agent-claim.json", &claim.to_string());
}

/// The claim of the protocol's own tests, with issue 1.
fn written(phase: &str) -> Value {
    json!({
        "schema_version": 1, "item_id": "TEST", "issue_number": 1, "branch": "claude/test", "agent_id": "test",
        "phase": phase, "summary": "Test PR", "status": "In Review", "pr_number": null,
        "last_check_poll": null, "last_synced_status": null, "mine": "kept",
    })
}

fn work(environment: &Environment, branch: &str) {
    environment.git(&["switch", "-q", "-c", branch]);
    environment.git(&["commit", "-q", "--allow-empty", "-m", "Work"]);
}

fn item(environment: &Environment) -> Value {
    environment.json(&["forge", "board", "list"])[0].clone()
}

fn land(environment: &Environment, branch: &str) {
    environment.git(&["push", "-q", "pointsman", &format!("{branch}:main")]);
}

fn from_claim_to_close(environment: &Environment) {
    // 1: the signal file.
    environment.run(&["claim", "1"]).ok().prints("1\n");
    let first = claim(environment);
    assert_eq!((&first["phase"], &first["branch"]), (&"coding".into(), &"claude/fix-thing-1".into()));
    assert_eq!(
        (&first["status"], &first["last_synced_status"]),
        (&"In Progress".into(), &"In Progress".into())
    );
    assert!(first["agent_id"].as_str().unwrap().starts_with(&format!("{}-", crate::login())), "{first}");
    assert_eq!(environment.git(&["status", "--porcelain", "--", ".agent-claim.json"]), "", "never committed");
    let issue = environment.json(&["forge", "issue", "show", "1"]);
    assert_eq!((&issue["assignee"], &issue["labels"]), (&crate::login().into(), &json!(["in-progress"])));
    let on_board = item(environment);
    assert_eq!((&on_board["status"], &on_board["agent"]), (&"In Progress".into(), &first["agent_id"]));

    // Coding: nothing happens, and nothing is said.
    hook(environment, "Stop", r#"{"hook_event_name": "Stop"}"#).ok().prints("");
    assert_eq!(claim(environment), first);

    // 2: the pull request.
    work(environment, "claude/fix-thing-1");
    environment.run(&["handoff"]).code(3).says("summary");
    let handed: Value = environment.json(&["handoff", "--summary", "Fix race condition"]);
    assert_eq!(handed["phase"], "ready_for_pr");
    let (event, text) = context(&hook(environment, "on-stop", "{}"));
    assert_eq!((event.as_str(), text.as_str()), ("Stop", "PR #2 created: pointsman forge pr show 2"));
    let created = claim(environment);
    assert_eq!((&created["phase"], &created["pr_number"]), (&"pr_created".into(), &2.into()));
    assert_eq!(
        (&created["status"], &created["last_synced_status"]),
        (&"In Review".into(), &"In Review".into())
    );
    let pr = environment.json(&["forge", "pr", "show", "2"]);
    assert_eq!((&pr["title"], &pr["head"]), (&"Fix race condition".into(), &"claude/fix-thing-1".into()));
    let body = pr["body"].as_str().unwrap();
    assert!(body.contains("- [ ] Mission kept\n- [ ] Docs updated\n"), "{body}");
    assert_eq!(item(environment)["status"], "In Review");
    hook(environment, "on-stop", r#"{"stop_hook_active": true}"#).ok().prints("");

    // 3: the checks, every two minutes at most.
    let sha = pr["head_sha"].as_str().unwrap().to_owned();
    let say = |name: &str, state: &str| {
        environment.run(&["forge", "status", "set", &sha, "--context", name, "--state", state]).ok();
    };
    say("lint", "success");
    say("password-check", "pending");
    let (event, text) = context(&hook(environment, "on-idle", "{}"));
    assert_eq!(event, "Notification");
    assert_eq!(text, "CI: 1/2 passed, 1 running: password-check. PR #2.");
    let polled = claim(environment);
    assert_eq!(polled["phase"], "checks_running");
    assert!(polled["last_check_poll"].as_str().unwrap().ends_with('Z'), "{polled}");
    hook(environment, "on-idle", "{}").ok().prints("");
    let unreadable = |when: &str| {
        let mut claim = claim(environment);
        claim["last_check_poll"] = when.into();
        write_claim(environment, &claim);
    };
    say("password-check", "failure");
    unreadable("not a date");
    let idle = r#"{"hook_event_name": "Notification", "notification_type": "idle_prompt"}"#;
    let (_, text) = context(&hook(environment, "Notification", idle));
    assert_eq!(text, "CI: 1 of 2 FAILED on PR #2: password-check.");
    say("password-check", "success");
    unreadable("1999-01-01T00:00:00Z");
    let (_, text) = context(&hook(environment, "on-idle", "{}"));
    assert_eq!(text, "CI passed! All 2 checks green. PR #2 is ready to merge.");

    // 4: closed by the person's word only, and only when it is merged.
    let mut done = claim(environment);
    done["phase"] = "done".into();
    write_claim(environment, &done);
    let (_, text) = context(&hook(environment, "on-stop", "{}"));
    assert_eq!(text, "Issue #1 was not closed: pull request #2 is not merged");
    let again = hook(environment, "on-stop", r#"{"stop_hook_active": true}"#);
    assert!(again.ok().stdout.starts_with(r#"{"systemMessage":"#), "no endless talk: {again:?}");
    // The forge is not asked again so soon, whatever there is to see.
    write_claim(environment, &polled);
    land(environment, "claude/fix-thing-1");
    hook(environment, "on-idle", "{}").ok().prints("");
    let mut rested = polled.clone();
    rested["last_check_poll"] = "1999-01-01T00:00:00Z".into();
    write_claim(environment, &rested);
    let (_, text) = context(&hook(environment, "on-idle", "{}"));
    assert!(text.starts_with("PR #2 merged!"), "{text}");
    hook(environment, "on-idle", "{}").ok().prints("");
    write_claim(environment, &rested);
    land(environment, "claude/fix-thing-1");
    let (_, text) = context(&hook(environment, "on-idle", "{}"));
    assert!(text.starts_with("PR #2 merged! Should I close issue #1?"), "{text}");
    assert_eq!(environment.json(&["forge", "issue", "show", "1"])["state"], "open", "never by itself");
    write_claim(environment, &done);
    let (event, text) = context(&hook(environment, "on-stop", "{}"));
    assert_eq!(event, "Stop");
    assert_eq!(text, "Issue #1 closed. Board → Done. Signal file cleaned up.");
    let issue = environment.json(&["forge", "issue", "show", "1"]);
    assert_eq!((&issue["state"], &issue["labels"]), (&"closed".into(), &json!([])));
    assert!(issue["comments"][0]["body"].as_str().unwrap().starts_with("Completed in #2"), "{issue}");
    assert!(!environment.shop().join(".agent-claim.json").exists());
}

#[test]
fn the_life_of_a_claim_without_a_daemon() {
    from_claim_to_close(&project());
}

#[test]
fn the_life_of_a_claim_with_a_daemon() {
    let environment = project();
    // The daemon would take it at once.
    environment.run(&["forge", "issue", "label", "1", "--remove", "backlog"]).ok();
    environment.run(&["up", "--detach"]).ok();
    from_claim_to_close(&environment);
}

#[test]
fn the_daemon_runs_ci_on_a_pull_request_that_was_handed_in() {
    let environment = Environment::with_repository();
    let ci = "#!/bin/sh\n! grep -q BUG README\n";
    environment.write("ci.sh", ci);
    environment.commit();
    environment.run(&["init", "--yes", "--ci", "sh", "./ci.sh"]).ok();
    environment.run(&["forge", "issue", "create", "--title", "Fix thing", "--body", "It."]).ok();
    environment.run(&["up", "--detach"]).ok();
    environment.run(&["claim", "1"]).ok();
    let branch = claim(&environment)["branch"].as_str().unwrap().to_owned();
    let hand_in = |text: &str| {
        environment.write("README", text);
        environment.git(&["add", "README"]);
        environment.git(&["commit", "-q", "-m", text]);
        environment.run(&["handoff", "--summary", "Fix thing"]).ok();
        context(&hook(&environment, "on-stop", "{}"));
        environment.git(&["rev-parse", "HEAD"])
    };
    let says = |sha: &str, word: &str| {
        let checks = environment.json_until(&["forge", "status", "list", sha], |told| {
            told["checks"].as_array().unwrap().iter().any(|check| check["state"] == word)
        });
        assert_eq!(checks["checks"], json!([{ "name": "ci", "state": word }]));
    };
    environment.git(&["switch", "-q", "-c", &branch]);
    says(&hand_in("A BUG."), "failure");
    says(&hand_in("No harm."), "success");
}

#[test]
fn a_claim_written_by_hand_opens_a_pull_request_for_a_branch_that_only_the_checkout_has() {
    let environment = project();
    work(&environment, "claude/test");
    write_claim(&environment, &written("ready_for_pr"));
    let (_, text) = context(&hook(&environment, "on-stop", "{}"));
    assert!(text.starts_with("PR #2 created"), "{text}");
    assert_eq!(
        (&claim(&environment)["phase"], &claim(&environment)["mine"]),
        (&"pr_created".into(), &"kept".into())
    );
    write_claim(&environment, &written("ready_for_pr"));
    let (_, text) = context(&hook(&environment, "STOP", "{}"));
    assert!(text.starts_with("PR #2 exists already"), "{text}");
    assert_eq!(environment.json(&["forge", "pr", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn what_is_missing_is_said_and_the_phase_stays() {
    let environment = project();
    for (field, value, says) in [
        ("branch", "", "branch is missing"),
        ("summary", " ", "summary is missing"),
        ("branch", "main", "main"),
    ] {
        let mut claim = written("ready_for_pr");
        claim[field] = value.into();
        write_claim(&environment, &claim);
        let (_, text) = context(&hook(&environment, "on-stop", "{}"));
        assert!(text.contains(says) && text.contains("stays ready_for_pr"), "{text}");
        assert_eq!(self::claim(&environment), claim);
    }
    assert_eq!(environment.json(&["forge", "pr", "list"]), json!([]));
}

#[test]
fn the_board_follows_the_status() {
    let environment = project();
    let mut coding = written("coding");
    write_claim(&environment, &coding);
    hook(&environment, "on-stop", "{}").ok().prints("");
    assert_eq!(
        (&item(&environment)["status"], &item(&environment)["agent"]),
        (&"In Review".into(), &"test".into())
    );
    assert_eq!(claim(&environment)["last_synced_status"], "In Review");
    coding["status"] = "Doing".into();
    write_claim(&environment, &coding);
    hook(&environment, "on-stop", "{}").ok().prints("").says("no status `Doing`");
    assert_eq!(claim(&environment), coding);
}

#[test]
fn another_schema_is_refused_in_words_and_nothing_is_done() {
    let environment = project();
    let mut claim = written("done");
    claim["schema_version"] = 2.into();
    write_claim(&environment, &claim);
    for event in ["on-stop", "on-idle"] {
        let answer = hook(&environment, event, "{}");
        assert!(answer.ok().stdout.contains("schema_version 2 is not understood"), "{answer:?}");
    }
    environment.run(&["release"]).code(3).says("schema_version 2");
    assert_eq!(self::claim(&environment), claim);
    assert_eq!(environment.json(&["forge", "issue", "show", "1"])["state"], "open");
}

#[test]
fn without_a_claim_a_merged_branch_suggests_the_next_task() {
    let environment = project();
    hook(&environment, "on-stop", "{}").ok().prints("");
    hook(&environment, "on-idle", "{}").ok().prints("");
    work(&environment, "claude/test");
    write_claim(&environment, &written("ready_for_pr"));
    hook(&environment, "on-stop", "{}").ok();
    fs::remove_file(environment.shop().join(".agent-claim.json")).unwrap();
    hook(&environment, "on-idle", "{}").ok().prints("");
    land(&environment, "claude/test");
    hook(&environment, "on-idle", "{}").ok().prints("");
    let pause_is_over = || fs::remove_dir_all(environment.path("state/idle-looks")).unwrap();
    pause_is_over();
    let (_, text) = context(&hook(&environment, "on-idle", "{}"));
    assert!(text.starts_with("PR #2 of branch claude/test is merged. Nothing else"), "{text}");
    environment.run(&["forge", "issue", "create", "--title", "Next", "--label", "backlog"]).ok();
    pause_is_over();
    let (_, text) = context(&hook(&environment, "on-idle", "{}"));
    assert!(text.ends_with("Next on the board: #3 Next. To claim it: `/claim 3`."), "{text}");
}

#[test]
fn claim_done_closes_what_is_merged_and_nothing_else() {
    let environment = project();
    environment.run(&["claim", "done"]).code(4);
    environment.run(&["claim", "1"]).ok();
    work(&environment, "claude/fix-thing-1");
    environment.run(&["handoff", "--summary", "Fix it"]).ok();
    hook(&environment, "on-stop", "{}").ok();
    environment.run(&["claim", "done"]).code(3).says("pull request #2 is not merged");
    assert!(environment.shop().join(".agent-claim.json").exists());
    let mut inside = environment.command(&["claim", "done"]);
    inside.env("POINTSMAN_SESSION", "dev-shop-1.1");
    finish(inside, b"").code(3).says("from inside session");
    land(&environment, "claude/fix-thing-1");
    assert_eq!(environment.json(&["claim", "done"]), json!({ "issue": 1, "closed": true }));
    assert_eq!(environment.json(&["forge", "issue", "show", "1"])["state"], "closed");
    assert!(!environment.shop().join(".agent-claim.json").exists());
}

#[test]
fn an_issue_that_is_mine_already_can_be_claimed_from_another_checkout() {
    let environment = project();
    environment.run(&["claim", "1"]).ok();
    let earlier = claim(&environment);
    fs::remove_file(environment.shop().join(".agent-claim.json")).unwrap();
    let mut earlier_id = earlier["agent_id"].as_str().unwrap().to_owned();
    // Of another second.
    earlier_id.pop();
    environment.run(&["forge", "board", "set", "1", "--agent", &earlier_id]).ok();
    environment.run(&["claim", "1"]).ok();
    environment.run(&["release"]).ok();
    environment.run(&["forge", "board", "set", "1", "--agent", "somebody-17"]).ok();
    environment.run(&["claim", "1"]).code(3).says("gives issue #1 to somebody-17");
}

#[test]
fn a_session_begins_with_the_board() {
    let environment = project();
    environment.run(&["claim", "1"]).ok();
    let (event, text) = context(&hook(&environment, "session-start", r#"{"source": "startup"}"#));
    assert_eq!(event, "SessionStart");
    assert!(text.contains(&format!("- In Progress: #1 Fix thing ({}-", crate::login())), "{text}");
    assert!(text.contains("issue #1 is claimed, phase coding, branch claude/fix-thing-1."), "{text}");
    // A project of somebody else hears nothing.
    let mut command = environment.command(&["hook", "session-start"]);
    command.current_dir(environment.path("home")).env("CLAUDE_PROJECT_DIR", environment.path("home"));
    finish(command, b"{}").ok().prints("");
}

#[test]
fn a_claim_is_exclusive_and_can_be_given_back() {
    let environment = project();
    environment.run(&["claim", "9"]).code(4);
    environment.run(&["claim", "1"]).ok();
    environment.run(&["claim", "1"]).ok().says("already claimed");
    environment.run(&["forge", "issue", "create", "--title", "Two"]).ok();
    environment.run(&["claim", "2"]).code(3).says("has claimed issue #1");
    assert_eq!(environment.json(&["release"]), json!({ "issue": 1, "released": true }));
    environment.run(&["release"]).code(4);
    let issue = environment.json(&["forge", "issue", "show", "1"]);
    assert_eq!((&issue["assignee"], &issue["labels"]), (&Value::Null, &json!(["backlog"])));
    let mut inside = environment.command(&["claim", "1"]);
    inside.env("POINTSMAN_SESSION", "dev-shop-1.1");
    finish(inside, b"").code(3).says("from inside session");
}

#[test]
fn a_session_of_the_daemon_closes_nothing_by_writing_a_claim() {
    let environment = project();
    work(&environment, "claude/test");
    write_claim(&environment, &written("ready_for_pr"));
    let mut command = environment.command(&["hook", "on-stop"]);
    command.env("POINTSMAN_SESSION", "dev-shop-1.1").env("CLAUDE_PROJECT_DIR", ".");
    finish(command, b"{}").ok().prints("");
    assert_eq!(environment.json(&["forge", "pr", "list"]), json!([]));
}

#[test]
fn bad_input_never_breaks_the_agent() {
    let environment = project();
    write_claim(&environment, &written("done"));
    let log = || fs::read_to_string(environment.path("state/hook.log")).unwrap_or_default().lines().count();
    let large = format!("{{\"x\": \"{}\"}}", "y".repeat(50 << 20));
    for (count, input) in ["{\"cwd\": ", "\u{0}\u{1b}", &large, "[]"].into_iter().enumerate() {
        let answer = hook(&environment, "Stop", input);
        answer.ok().prints("");
        assert_eq!(log(), count + 1, "{answer:?}");
    }
    for event in ["Stop", "PostToolUse", "TomorrowsEvent", "on-idle"] {
        let before = log();
        hook(&environment, event, "").ok();
        assert!(log() > before, "{event}");
    }
    hook(&environment, "TomorrowsEvent", r#"{"hook_event_name": "TomorrowsEvent", "a": [1]}"#)
        .ok()
        .prints("");
}

#[test]
fn endless_input_is_not_waited_for() {
    let environment = project();
    for flood in [true, false] {
        let mut command = environment.command(&["hook", "Stop"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            while flood && stdin.write_all(&[b' '; 65_536]).is_ok() {}
            stdin
        });
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        drop(writer.join().unwrap());
        assert!(String::from_utf8_lossy(&output.stderr).contains("did not end"), "{output:?}");
    }
}
