//! R4.1: how full a context is, from the best source there is: the status line, else the transcript, else symptoms. Claude
//! Code's own payloads and files, given to the program as Claude Code does.

use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use pointsman::control::client;
use pointsman::control::protocol::{Reply, Request};
use pointsman_core::hook::{HookEvent, Report, ToolUse};
use pointsman_core::time::Timestamp;
use pointsman_testkit::TestDaemon;
use serde_json::{Value, json};

use super::super::hooks::{as_session, hook, payload, waiting, waiting_in};
use super::{measure_context, shop, signals};

/// The end of a turn, whose transcript is this file.
fn stopped(daemon: &TestDaemon, issue: u64, transcript: &std::path::Path) {
    let mut stop = payload("Stop");
    stop["transcript_path"] = json!(transcript);
    hook(daemon, issue, "Stop", &stop);
}

/// A transcript whose last answer filled the context so far.
fn transcript(daemon: &TestDaemon, tokens: u64) -> PathBuf {
    let usage = json!({
        "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": tokens - 40,
        "output_tokens": 10,
    });
    let answer = json!({
        "isSidechain": false, "type": "assistant", "message": { "model": "claude-sonnet-4-5", "usage": usage },
    });
    let after =
        json!({ "isSidechain": false, "type": "system", "subtype": "turn_duration", "durationMs": 3377 });
    let path = daemon.path("home/conversation.jsonl");
    std::fs::write(&path, format!("{answer}\n{after}\n")).unwrap();
    path
}

fn count(daemon: &TestDaemon, issue: u64, signal: &str) -> usize {
    signals(daemon, issue).iter().filter(|given| *given == signal).count()
}

fn agent(daemon: &TestDaemon) -> Value {
    daemon.json(&["agents"])[0].clone()
}

#[test]
fn e2e_r4_1_a_status_line_measures_the_context() {
    let (daemon, issue) = waiting();
    let mut line = payload("statusLine");
    line["context_window"]["used_percentage"] = json!(93);
    let shown = as_session(&daemon, issue, &["statusline"], &line);
    assert!(shown.contains("ctx 93%"), "{shown}");
    counted(&daemon, issue, "HANDOFF_REQUESTED", 1);
    let agent = agent(&daemon);
    assert_eq!((&agent["context_percent"], &agent["context_source"]), (&json!(93.0), &json!("status_line")));
}

#[test]
fn e2e_r4_1_a_transcript_measures_the_context_where_no_status_line_does() {
    let (daemon, issue) = waiting_in(shop().set("context.window", "200000"));
    let path = transcript(&daemon, 150_000);
    stopped(&daemon, issue, &path);
    counted(&daemon, issue, "CONTEXT_WARNING", 1);
    let known = agent(&daemon);
    assert_eq!((&known["context_percent"], &known["context_source"]), (&json!(75.0), &json!("transcript")));

    // A gigabyte long, torn in front, with a tool in between: only its end is read.
    let answer = std::fs::read(transcript(&daemon, 172_000)).unwrap();
    let mut file = std::fs::File::create(&path).unwrap();
    file.seek(SeekFrom::Start(1 << 30)).unwrap();
    file.write_all(b"\n").unwrap();
    file.write_all(&answer).unwrap();
    let mut tool = payload("PostToolUse.Bash");
    tool["transcript_path"] = json!(path);
    hook(&daemon, issue, "PostToolUse", &tool);
    daemon.wait_for("the figures after a tool", || (agent(&daemon)["context_percent"] == 86.0).then_some(()));
    assert_eq!(count(&daemon, issue, "HANDOFF_REQUESTED"), 0);

    stopped(&daemon, issue, &transcript(&daemon, 186_000));
    counted(&daemon, issue, "HANDOFF_REQUESTED", 1);
}

#[test]
fn e2e_r4_1_a_hostile_transcript_measures_nothing_and_holds_nobody() {
    let (daemon, issue) = waiting_in(shop().set("context.window", "200000"));
    let path = daemon.path("home/hostile.jsonl");
    let deep = format!("{{\"usage\":{}\n", "[".repeat(200_000));
    for text in [
        "",
        "\0\0\0",
        "{\"usage\"",
        &deep,
        r#"{"type":"assistant","message":{"usage":{"input_tokens":1e99}}}"#,
    ] {
        std::fs::write(&path, text).unwrap();
        stopped(&daemon, issue, &path);
    }
    std::fs::remove_file(&path).unwrap();
    stopped(&daemon, issue, &path);
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    stopped(&daemon, issue, &path);
    stopped(&daemon, issue, std::path::Path::new("/"));
    stopped(&daemon, issue, &transcript(&daemon, u64::MAX));
    // The odd figure amounts to no token at all.
    assert!(agent(&daemon)["context_percent"].as_f64().is_none_or(|percent| percent == 0.0));
    assert_eq!(count(&daemon, issue, "CONTEXT_WARNING"), 0);
}

#[test]
fn e2e_r4_1_the_window_is_that_of_the_model() {
    let (daemon, issue) = waiting();
    stopped(&daemon, issue, &transcript(&daemon, 186_000));
    assert!(agent(&daemon)["context_percent"].is_null(), "no window is assumed");
    let start = payload("SessionStart.startup");
    assert_eq!(start["model"], "claude-opus-4-8[1m]", "a million tokens");
    hook(&daemon, issue, "SessionStart", &start);
    stopped(&daemon, issue, &transcript(&daemon, 186_000));
    assert_eq!(agent(&daemon)["context_percent"], 18.6);
    assert_eq!(count(&daemon, issue, "CONTEXT_WARNING"), 0);
}

#[test]
fn e2e_r4_1_a_better_source_is_not_overruled_by_a_worse_one() {
    let (daemon, issue) = waiting_in(shop().set("context.window", "200000"));
    measure_context(&daemon, "dev-shop-1.1", 40);
    stopped(&daemon, issue, &transcript(&daemon, 199_000));
    slows_down(&daemon, issue);
    let known = agent(&daemon);
    assert_eq!((&known["context_percent"], &known["context_source"]), (&json!(40.0), &json!("status_line")));
    assert_eq!(count(&daemon, issue, "CONTEXT_WARNING"), 0);
}

/// Waits for so many signals: a report that met a busy daemon comes a moment later.
fn counted(daemon: &TestDaemon, issue: u64, kind: &str, times: usize) {
    daemon.wait_for(&format!("{kind} {times} times"), || (count(daemon, issue, kind) == times).then_some(()));
}

/// Hooks of a session that takes two seconds for each of its first answers, and ten for its last ones.
fn slows_down(daemon: &TestDaemon, issue: u64) {
    let mut at = Timestamp(1_900_000_000_000);
    for (n, millis) in [2_000, 2_000, 2_000, 2_000, 2_000, 10_000, 10_000, 10_000].into_iter().enumerate() {
        let tool = |done| HookEvent::Tool { work: ToolUse::Read, done, used_tokens: None };
        tell(daemon, issue, &format!("{n}-result"), at, tool(true));
        at = at.after(std::time::Duration::from_millis(millis));
        tell(daemon, issue, &format!("{n}-next"), at, tool(false));
        at = at.after(std::time::Duration::from_secs(30));
    }
}

fn tell(daemon: &TestDaemon, issue: u64, id: &str, at: Timestamp, told: HookEvent) {
    let report = Report { id: id.to_owned(), session: format!("dev-shop-{issue}.1"), at, told };
    let reply = client::ask(&daemon.control_socket(), &Request::Hook { report });
    assert!(matches!(reply, Ok(Reply::Done { .. })), "{reply:?}");
}

#[test]
fn e2e_r4_1_answers_over_three_times_as_slow_as_at_first_are_a_symptom() {
    let (daemon, issue) = waiting();
    slows_down(&daemon, issue);
    daemon.wait_for("a warning", || (count(&daemon, issue, "CONTEXT_WARNING") == 1).then_some(()));
    daemon.wait_shown(issue, "Checkpoint now");
    assert_eq!(agent(&daemon)["context_source"], "symptoms");
    assert_eq!(count(&daemon, issue, "HANDOFF_REQUESTED"), 0, "one symptom restarts nobody");
}

#[test]
fn e2e_r4_1_ac_4_1_a_compaction_is_a_warning_saves_the_work_and_restarts_nobody() {
    let (daemon, issue) = waiting();
    std::fs::write(daemon.tree(issue).join("draft.txt"), "half").unwrap();
    hook(&daemon, issue, "PreCompact", &payload("PreCompact.auto"));
    counted(&daemon, issue, "CONTEXT_WARNING", 1);
    daemon.wait_for("a checkpoint", || {
        let saved = daemon.json(&["rescue", "list", "--kind", "checkpoint"]);
        saved.as_array().is_some_and(|saved| !saved.is_empty()).then_some(())
    });
    hook(&daemon, issue, "PostCompact", &payload("PostCompact.auto"));
    // A second one is a second warning.
    hook(&daemon, issue, "PreCompact", &payload("PreCompact.auto"));
    counted(&daemon, issue, "CONTEXT_WARNING", 2);
    assert_eq!((count(&daemon, issue, "HANDOFF_REQUESTED"), daemon.sessions(issue).len()), (0, 1));
}
