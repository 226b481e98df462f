//! What Claude Code's hooks tell about a session of the daemon: recorded payloads, the program as Claude calls it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use pointsman_core::session::screen;
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::{clean, shop};

fn recorded(folder: &str) -> Vec<(String, String)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/claude").join(folder);
    let mut files: Vec<(String, String)> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

pub(super) fn payload(name: &str) -> Value {
    let (_, text) = recorded("hooks").into_iter().find(|(known, _)| known == name).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Calls a hook as the session does; answers what it printed.
pub(super) fn hook(daemon: &TestDaemon, issue: u64, event: &str, payload: &Value) -> String {
    as_session(daemon, issue, &["hook", event], payload)
}

/// Calls a command as Claude Code does in the first session of an issue.
pub(super) fn as_session(daemon: &TestDaemon, issue: u64, command: &[&str], payload: &Value) -> String {
    let mut command = daemon.command(command);
    let session_files = daemon.session_files(issue);
    command.env("POINTSMAN_SESSION", format!("dev-shop-{issue}.1"));
    command.env("POINTSMAN_INBOX", session_files.join("inbox-1")).env("PHASE_FILE", daemon.phase_file(issue));
    command
        .env("PROJECT_NAME", "shop")
        .env("ISSUE", issue.to_string())
        .env("POINTSMAN_PRIMARY_BRANCH", "main");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn told(daemon: &TestDaemon, issue: u64, kind: &str) -> usize {
    daemon.events(issue).iter().filter(|event| event["kind"] == kind).count()
}

/// A session that does nothing until it is answered.
pub(super) fn waiting() -> (TestDaemon, u64) {
    waiting_in(shop())
}

/// The same in another world.
pub(super) fn waiting_in(setup: Setup) -> (TestDaemon, u64) {
    let daemon = setup.set("timing.idle_look", "\"10m\"").start();
    let issue = daemon.file_issue("Apples", &format!("expect Answer\n{}", clean("apples")));
    daemon.wait_session(issue, 1);
    daemon.wait_state(issue, "working");
    (daemon, issue)
}

#[test]
fn e2e_hooks_every_recorded_payload_passes() {
    let (daemon, issue) = waiting();
    for (name, text) in recorded("hooks") {
        let event = name.split('.').next().unwrap();
        // These stop the work, and are tested below.
        if matches!(event, "StopFailure" | "PermissionRequest" | "statusLine")
            || name.ends_with("permission_prompt")
        {
            continue;
        }
        let payload: Value = serde_json::from_str(&text).unwrap();
        let printed = hook(&daemon, issue, event, &payload);
        let reminded =
            ["SessionStart.compact", "SessionStart.resume", "SessionStart.clear"].contains(&name.as_str());
        assert_eq!(!printed.is_empty(), reminded, "{name}: {printed}");
        if reminded {
            let printed: Value = serde_json::from_str(&printed).unwrap();
            let context = printed["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
            assert!(context.contains(&*daemon.phase_file(issue).to_string_lossy()), "{context}");
            assert!(context.contains("0000-task.md") && context.contains("PHASE:awaiting_ci"), "{context}");
        }
    }
    assert_eq!(daemon.task(issue)["state"], "working");
    let log = fs::read_to_string(daemon.state().join("hook.log")).unwrap_or_default();
    assert_eq!(log, "", "nothing went wrong");
    let row = daemon.json(&["agents"]).as_array().unwrap()[0].clone();
    assert!(row["model"].as_str().unwrap().starts_with("claude-"), "{row}");
}

#[test]
fn e2e_hooks_a_message_is_acknowledged_by_the_prompt_that_holds_it() {
    // An agent that hears everything and acknowledges nothing by itself.
    let daemon = shop().agent("while read -r line; do :; done").start();
    let issue = daemon.file_issue_with("Apples", "please");
    daemon.wait_session(issue, 1);
    daemon.wait_state(issue, "working");
    hook(&daemon, issue, "SessionStart", &payload("SessionStart.startup"));
    daemon.run(&["session", "send", &issue.to_string(), "Not yet."]);
    let evidence = || daemon.json(&["session", "explain", &issue.to_string()])["evidence"].to_string();
    let id = daemon.wait_for("the message", || {
        let evidence = evidence();
        let (_, rest) = evidence.split_once("message m-")?;
        rest.split_once(' ').map(|(id, _)| id.to_owned())
    });
    let mut prompt = payload("UserPromptSubmit");
    prompt["prompt"] = "[pointsman m-999999] Answer. Details: /nowhere".into();
    hook(&daemon, issue, "UserPromptSubmit", &prompt);
    assert!(!evidence().contains("has acknowledged 1"), "{}", evidence());
    prompt["prompt"] = format!("[pointsman m-{id}] Answer from the operator. Details: /x").into();
    hook(&daemon, issue, "userpromptsubmit", &prompt);
    daemon.wait_for("the acknowledgement", || evidence().contains("has acknowledged 1").then_some(()));
}

#[test]
fn e2e_hooks_errors_park_or_ask() {
    let (daemon, issue) = waiting();
    hook(&daemon, issue, "StopFailure", &payload("StopFailure.rate_limit"));
    let parked = daemon.wait_until(issue, "parked", |t| !t["parked_until"].is_null());
    assert_eq!(parked["state"], "working", "{parked}");
    hook(&daemon, issue, "StopFailure", &payload("StopFailure.authentication_failed"));
    daemon.wait_state(issue, "escalated");
    daemon.answer(issue, "You are logged in again.");
    daemon.wait_closed(issue);
}

#[test]
fn e2e_hooks_what_was_told_while_no_daemon_ran_counts_once_and_in_order() {
    let (daemon, issue) = waiting();
    daemon.stop_daemon();
    hook(&daemon, issue, "PostToolUse", &payload("PostToolUse.Write"));
    hook(&daemon, issue, "Stop", &payload("Stop"));
    hook(&daemon, issue, "StopFailure", &payload("StopFailure.server_error"));
    let spool = daemon.session_files(issue).join("run-1/hooks.spool");
    assert_eq!(fs::read_to_string(&spool).unwrap().lines().count(), 3);
    // As if the daemon had died after taking them and before removing the file.
    let twice = fs::read_to_string(&spool).unwrap().repeat(2);
    fs::write(&spool, twice).unwrap();
    daemon.start();
    daemon.wait_until(issue, "parked", |t| !t["parked_until"].is_null());
    assert!(!spool.exists());
    assert_eq!(
        (told(&daemon, issue, "turn_ended"), told(&daemon, issue, "turn_failed")),
        (1, 1),
        "once each"
    );
}

#[test]
fn e2e_hooks_the_last_word_of_a_turn_that_missed_a_starting_daemon_is_heard() {
    let (daemon, issue) = waiting();
    daemon.stop_daemon();
    hook(&daemon, issue, "Stop", &payload("Stop"));
    let spool = daemon.session_files(issue).join("run-1/hooks.spool");
    let (aside, before) = (daemon.session_files(issue).join("aside"), told(&daemon, issue, "turn_ended"));
    fs::rename(&spool, &aside).unwrap();
    daemon.start();
    // As if it had been written after the spools were read, and before the door was open. No hook comes after it.
    fs::rename(&aside, &spool).unwrap();
    daemon.wait_for("it to be heard", || (told(&daemon, issue, "turn_ended") > before).then_some(()));
    daemon.wait_for("it to be taken", || (!spool.exists()).then_some(()));
}

#[test]
fn e2e_hooks_a_session_that_holds_the_lock_of_its_spool_holds_nobody_up() {
    let (daemon, issue) = waiting_in(shop().set("dev.concurrency", "2"));
    daemon.stop_daemon();
    hook(&daemon, issue, "Stop", &payload("Stop"));
    let spool = daemon.session_files(issue).join("run-1/hooks.spool");
    let before = told(&daemon, issue, "turn_ended");
    let held = fs::File::open(&spool).unwrap();
    held.lock().unwrap();
    // The daemon gets ready, does its work, and stops.
    daemon.start();
    let other = daemon.file_issue("Pears", &clean("pears"));
    daemon.wait_closed(other);
    daemon.stop_daemon();
    assert_eq!(told(&daemon, issue, "turn_ended"), before);
    daemon.start();
    drop(held);
    daemon.wait_for("it to be taken", || (!spool.exists()).then_some(()));
    assert_eq!(told(&daemon, issue, "turn_ended"), before + 1);
}

#[test]
fn e2e_hooks_a_destructive_command_is_objected_to() {
    let (daemon, issue) = waiting();
    let mut bash = payload("PreToolUse.Bash");
    bash["tool_input"]["command"] = "git push --force origin HEAD:main".into();
    let printed: Value = serde_json::from_str(&hook(&daemon, issue, "PreToolUse", &bash)).unwrap();
    let output = &printed["hookSpecificOutput"];
    assert_eq!(output["permissionDecision"], "deny");
    assert!(output["permissionDecisionReason"].as_str().unwrap().contains("merge queue"), "{output}");
    bash["tool_input"]["command"] = "git push origin HEAD".into();
    assert_eq!(hook(&daemon, issue, "PreToolUse", &bash), "");
}

#[test]
fn e2e_hooks_a_permission_dialog_is_shown_to_a_person() {
    let (daemon, issue) = waiting();
    hook(&daemon, issue, "PermissionRequest", &payload("PermissionRequest.Bash"));
    let task = daemon.wait_state(issue, "escalated");
    assert!(task["reason"].as_str().unwrap().contains("permission for Bash"), "{task}");
    daemon.wait_for("the picture", || {
        daemon.comments(issue).iter().any(|c| c.contains("The terminal shows:")).then_some(())
    });
}

#[test]
fn e2e_hooks_a_session_speaks_only_for_itself() {
    // The agent of issue 1 says that the one of issue 2 was cut off.
    const AGENT: &str = r#"
        while [ ! -e "$HOME/go" ]; do read -r -t 1 line || true; done
        if [ "$ISSUE" = 1 ]; then
            echo '{"error": "rate_limit"}' | POINTSMAN_SESSION=dev-shop-2.1 "$HOME/pointsman" hook StopFailure
            echo '{"error": "rate_limit"}' | "$HOME/pointsman" hook StopFailure
        fi
        while read -r line; do :; done
    "#;
    let daemon = shop().agent(AGENT).set("dev.concurrency", "2").build();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pointsman"), daemon.path("home").join("pointsman"))
        .unwrap();
    daemon.start();
    for issue in [1, 2] {
        assert_eq!(daemon.file_issue_with("Apples", "please"), issue);
        daemon.wait_session(issue, 1);
    }
    fs::write(daemon.path("home").join("go"), "").unwrap();
    daemon.wait_until(1, "parked", |t| !t["parked_until"].is_null());
    assert_eq!(daemon.task(2)["parked_until"], json!(null));
    let log = fs::read_to_string(daemon.state().join("hook.log")).unwrap();
    assert!(log.contains("session dev-shop-1.1 speaks for itself, not for dev-shop-2.1"), "{log}");
    // Nor through its spool.
    let told = json!({ "hook": "failed", "error": "rate_limit", "details": "" });
    let report = json!({ "id": "forged", "session": "dev-shop-2.1", "at": 0, "told": told });
    let spool = daemon.session_files(1).join("run-1/hooks.spool");
    fs::write(daemon.session_files(1).join("draft"), format!("{report}\n")).unwrap();
    fs::rename(daemon.session_files(1).join("draft"), &spool).unwrap();
    daemon.wait_for("it to be taken", || (!spool.exists()).then_some(()));
    daemon.wait_for("it to be noticed", || daemon.log_lines("a report in another session's spool"));
    assert_eq!(daemon.task(2)["parked_until"], json!(null));
}

#[test]
fn e2e_hooks_people_read_along_if_they_want_to() {
    let daemon = shop().agent("while read -r line; do :; done").set("agent.stream_responses", "true").start();
    let issue = daemon.file_issue_with("Apples", "please");
    daemon.wait_session(issue, 1);
    let mut stop = payload("Stop");
    stop["last_assistant_message"] =
        format!("Apples \u{1b}[31mdone.\nNext: pears.\n{}", "x".repeat(9000)).into();
    hook(&daemon, issue, "Stop", &stop);
    let said = daemon.wait_for("the response", || {
        daemon.notices().into_iter().find(|n| n["title"] == format!("shop#{issue} says"))
    });
    let body = said["body"].as_str().unwrap();
    assert!(body.contains("done.\nNext: pears.") && !body.contains('\u{1b}'), "{body}");
    assert!(body.len() < 3000, "{}", body.len());
    assert_eq!(said["urgent"], false);
}

#[test]
fn e2e_hooks_a_letter_that_waits_is_the_reply_to_the_end_of_a_turn() {
    let (daemon, issue) = waiting();
    let mail = daemon.session_files(issue).join("run-1/mail");
    fs::create_dir_all(&mail).unwrap();
    fs::write(mail.join("m-7-1.offered"), "[pointsman m-7] CI passed on abc. Details: /x").unwrap();
    let printed: Value = serde_json::from_str(&hook(&daemon, issue, "Stop", &payload("Stop"))).unwrap();
    let context = printed["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.lines().any(|line| line.starts_with("[pointsman m-7] CI passed")), "{context}");
    assert!(mail.join("m-7-1.taken").exists());
    assert_eq!(hook(&daemon, issue, "Stop", &payload("Stop.active")), "", "once");
}

#[test]
fn e2e_hooks_a_rate_limit_that_is_used_up_holds_new_work_back_and_says_how_long() {
    let (daemon, issue) = waiting();
    let soon = std::time::SystemTime::now() + std::time::Duration::from_secs(7200);
    let resets_at = soon.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let tell = |used: f64| {
        let mut line = payload("statusLine");
        line["rate_limits"] = json!({ "five_hour": { "used_percentage": used, "resets_at": resets_at } });
        let mut command = daemon.command(&["statusline"]);
        command.env("POINTSMAN_SESSION", format!("dev-shop-{issue}.1"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(line.to_string().as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    assert!(tell(97.5).contains("5h 97%"));
    assert_eq!(daemon.json(&["status"])["projects"][0]["rate_limits"][0]["used_percent"], 97.5);
    hook(&daemon, issue, "StopFailure", &payload("StopFailure.rate_limit"));
    let parked = daemon.wait_until(issue, "parked", |t| !t["parked_until"].is_null());
    let until = parked["parked_until"].as_str().unwrap().to_owned();
    let status = daemon.json(&["status"]);
    assert_eq!(status["projects"][0]["rate_limits"][0]["resets_at"], until, "until the limit begins anew");
    // A place is free, and nothing begins.
    daemon.run(&["task", "stop", &issue.to_string()]);
    let second = daemon.file_issue("Pears", &clean("pears"));
    daemon.wait_state(second, "backlog");
    tell(97.5);
    assert_eq!(daemon.task(second)["state"], "backlog");
    tell(12.0);
    daemon.wait_closed(second);
}

#[test]
fn dialogs_are_recognised_on_recorded_screens() {
    let dialogs: Vec<(String, Option<String>)> =
        recorded("panes").into_iter().map(|(name, pane)| (name, screen::dialog(&pane))).collect();
    let seen: Vec<(&str, &str)> =
        dialogs.iter().filter_map(|(name, what)| Some((name.as_str(), what.as_deref()?))).collect();
    let names: Vec<&str> = seen.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["bypass_warning", "custom_api_key_dialog", "permission_prompt", "trust_dialog"],
        "{seen:?}"
    );
    let prompts: Vec<String> = recorded("panes")
        .into_iter()
        .filter(|(_, pane)| screen::look(pane) == screen::Screen::Unknown)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(prompts, ["onboarding_no_network"], "on all others there is a box to type into");
    let what = |name: &str| seen.iter().find(|(known, _)| *known == name).unwrap().1;
    assert_eq!(what("permission_prompt"), "Do you want to proceed?");
    assert_eq!(what("custom_api_key_dialog"), "Do you want to use this API key?");
    assert!(what("bypass_warning").contains("Bypass Permissions mode"));
}
