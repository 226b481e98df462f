//! Sessions without a terminal: one process per turn, a keeper that outlives the daemon, and the same life otherwise.
//!
//! The rehearsal agent speaks the stream that Claude Code speaks; where a turn must be caught in the act, a few lines
//! of bash do.

mod surroundings;

use std::fs;

use pointsman_testkit::{Setup, TestDaemon};
use serde_json::Value;

use super::{clean, shop};

fn headless() -> Setup {
    shop().set("agent.runtime", "\"headless\"")
}

/// Waits in its first turn until it may go on, and writes down every prompt that it is given.
const GATED: &str = r#"
prompt=$(cat); printf '%s\n' "$prompt" >> "$HOME/prompts"
echo "turn $POINTSMAN_TURN" >> "$HOME/turns"
echo '{"type":"system","subtype":"init","session_id":"c-1","model":"gated"}'
case $prompt in
*"] Task #"*)
    touch "$HOME/begun"
    until [ -e "$HOME/go" ]; do sleep 0.02; done
    echo apples > src/apples.txt; git add --all; git commit --quiet --message 'Add apples'
    git push --quiet origin HEAD; echo PHASE:awaiting_ci > "$PHASE_FILE" ;;
*"] Merged"*) echo PHASE:done > "$PHASE_FILE" ;;
esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"","usage":{"input_tokens":7},"total_cost_usd":0.5}'
"#;

fn begun(daemon: &TestDaemon) {
    daemon.wait_for("the turn to begin", || daemon.path("home/begun").exists().then_some(()));
}

fn go(daemon: &TestDaemon) {
    fs::write(daemon.path("home/go"), "").unwrap();
}

fn lines(daemon: &TestDaemon, file: &str) -> Vec<String> {
    let text = fs::read_to_string(daemon.path("home").join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn count(daemon: &TestDaemon, issue: u64, kind: &str) -> usize {
    daemon.events(issue).iter().filter(|event| event["kind"] == kind).count()
}

/// Whether the session was seen in this phase of work.
fn worked(daemon: &TestDaemon, issue: u64, phase: &str) -> bool {
    daemon.events(issue).iter().any(|event| event["data"]["work_phase"] == phase)
}

fn is_there(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[test]
fn e2e_headless_a_task_goes_from_an_issue_to_the_main_branch() {
    let daemon = headless().reviewed().start();
    let script = "summary Apples are 3 crowns.\nwrite src/apples.txt apples 3 crowns\ncommit Add apples\npush\n\
                  phase awaiting_ci\nexpect CI passed\nphase awaiting_review\nexpect Approved\nexpect Merged\nphase done";
    let issue = daemon.file_issue("Add apples", script);
    daemon.wait_state(issue, "awaiting_review");
    let live = daemon.session(issue);
    assert_eq!((&live["tmux_session"], &live["acknowledges"]), (&Value::Null, &true.into()), "{live}");
    let explained = daemon.json(&["session", "explain", &issue.to_string()]);
    assert_eq!(explained["liveness"], "green", "{explained}");
    assert!(explained["evidence"].to_string().contains("it has no terminal"), "{explained}");
    daemon.approve(issue);
    daemon.wait_closed(issue);
    assert_eq!(daemon.on_main("src/apples.txt").unwrap(), "apples 3 crowns");
    assert_eq!(
        daemon.states(issue),
        ["backlog", "working", "awaiting_ci", "awaiting_review", "merge_queue", "merged", "closed"]
    );
    let sessions = daemon.sessions(issue);
    assert_eq!((sessions.len(), &sessions[0]["exit"]), (1, &"done".into()), "{sessions:?}");
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
    assert_eq!(daemon.phase_files(), [""; 0]);
    assert!(daemon.headless_file(issue, "session.json").is_none(), "its place is cleared");
    let shown = daemon.transcript(issue);
    for wanted in
        ["--- turn 1\n> [pointsman m-", "* Write src/apples.txt", "* Bash git commit", "got: Merged"]
    {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let agent = daemon.json(&["agents", "--all"])[0].clone();
    assert_eq!(agent["model"], "rehearsal", "{agent}");
    assert!(agent["cost_usd"].as_f64().unwrap() > 0.0, "{agent}");
    assert!(agent["context_percent"].as_f64().is_some(), "{agent}");
    // Each turn ended once, and each cost is counted once. The last one may have been cut off by the end of it all.
    let turns = shown.matches("is over: 1000 tokens").count();
    assert!(turns >= 3, "{shown}");
    let told = count(&daemon, issue, "turn_ended");
    assert!(told == turns || told + 1 == turns, "{told} of {turns}");
    assert!(worked(&daemon, issue, "completion"), "a commit is the end of the work");
    // A review that took a moment is told.
    let review = |notice: &Value| notice["title"] == "shop: a pull request waits for a review";
    assert!(daemon.notices().iter().all(review), "{:?}", daemon.notices());
}

#[test]
fn e2e_headless_a_turn_that_dies_is_a_crash_and_the_next_session_goes_on() {
    let daemon = headless().start();
    let issue =
        daemon.file_issue("Apples", &format!("write src/draft.txt draft\ncrash\n{}", clean("apples")));
    daemon.wait_closed(issue);
    let sessions = daemon.sessions(issue);
    assert_eq!((sessions.len(), &sessions[0]["exit"]), (2, &"crashed".into()), "{sessions:?}");
    assert_eq!(daemon.task(issue)["attempts"]["restarts"], 1);
    assert_eq!(daemon.on_main("src/draft.txt").unwrap(), "draft");
    let prompt = daemon.run(&["session", "logs", &issue.to_string(), "--generation", "2"]).stdout;
    assert!(prompt.contains("an earlier session did 2 of"), "{prompt}");
}

#[test]
fn e2e_headless_a_turn_that_is_killed_is_not_doubled() {
    let daemon = headless().agent(GATED).start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    begun(&daemon);
    daemon.wait_session(issue, 1);
    daemon.kill_turn(issue);
    daemon.wait_session(issue, 2);
    go(&daemon);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
    let sessions = daemon.sessions(issue);
    assert_eq!((sessions.len(), &sessions[0]["exit"]), (2, &"crashed".into()), "{sessions:?}");
}

#[test]
fn e2e_headless_a_turn_does_not_outlive_its_keeper() {
    let daemon = headless().agent(GATED).start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    begun(&daemon);
    daemon.wait_session(issue, 1);
    let turn = daemon.wait_turn(issue)["pid"].as_u64().unwrap();
    // Nobody is there to clear up after it.
    daemon.kill_daemon();
    daemon.kill_session(issue);
    daemon.wait_for("the turn to go", || (!is_there(turn)).then_some(()));
    daemon.start();
    daemon.wait_session(issue, 2);
    go(&daemon);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
}

#[test]
fn e2e_headless_a_turn_outlives_the_daemon_and_nothing_of_it_is_lost() {
    let daemon = headless().agent(GATED).start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    begun(&daemon);
    let pid = daemon.wait_session(issue, 1);
    daemon.wait_turn(issue);
    daemon.kill_daemon();
    go(&daemon);
    daemon.wait_for("the turn to end by itself", || {
        daemon.headless_file(issue, "turn.json").is_none().then_some(())
    });
    assert!(daemon.session_files(issue).join("run-1/hooks.spool").exists(), "what it has to tell waits");
    daemon.start();
    daemon.wait_closed(issue);
    let sessions = daemon.sessions(issue);
    assert_eq!((sessions.len(), &sessions[0]["pid"]), (1, &pid.into()), "{sessions:?}");
    let told = lines(&daemon, "prompts").iter().filter(|line| line.contains("] Task #")).count();
    assert_eq!(told, 1, "the turn was not repeated");
    assert!(count(&daemon, issue, "turn_ended") >= 1);
    let spent = daemon.json(&["agents", "--all"])[0]["cost_usd"].as_f64().unwrap();
    let turns = lines(&daemon, "turns").len() as f64;
    assert!((spent - 0.5 * turns).abs() < 0.51 && spent >= 0.5, "{spent} in {turns} turns");
}

#[test]
fn e2e_headless_a_daemon_that_dies_as_it_starts_a_session_starts_one() {
    for point in ["session-prepared", "session-in-tmux", "after-start_session"] {
        let daemon = headless().agent(GATED).build();
        daemon.start_with(&[("POINTSMAN_CRASH_AT", point)]);
        let issue = daemon.file_issue_with("Apples", "Please.");
        daemon.wait_for_death();
        go(&daemon);
        daemon.start();
        daemon.wait_closed(issue);
        assert_eq!(daemon.sessions(issue).len(), 1, "{point}");
        let told = lines(&daemon, "prompts").iter().filter(|line| line.contains("] Task #")).count();
        assert_eq!(told, 1, "{point}: one turn began");
    }
}

#[test]
fn e2e_headless_messages_wait_for_the_end_of_a_turn_and_come_once() {
    // Long overdue by the time they are read.
    let daemon = headless().agent(GATED).set("timing.ack_timeout", "\"100ms\"").start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    begun(&daemon);
    daemon.wait_session(issue, 1);
    for words in ["First.", "Second."] {
        daemon.json(&["session", "send", &issue.to_string(), words]);
    }
    daemon.wait_settled(issue);
    // The daemon chases acknowledgements every second; it has had the time for it after a restart.
    daemon.restart();
    daemon.wait_settled(issue);
    assert_eq!(lines(&daemon, "prompts").len(), 1, "a turn is not disturbed");
    go(&daemon);
    daemon.wait_closed(issue);
    let prompts = lines(&daemon, "prompts");
    let answers: Vec<&String> = prompts.iter().filter(|line| line.contains("] Answer")).collect();
    assert_eq!(answers.len(), 2, "{prompts:?}");
    let id = |line: &str| line.split_once("m-").unwrap().1.split(']').next().unwrap().parse::<i64>().unwrap();
    assert!(id(answers[0]) < id(answers[1]), "{prompts:?}");
    let unacknowledged = count(&daemon, issue, "message_unacknowledged");
    assert_eq!(unacknowledged, 0);
    let mut ids: Vec<i64> = prompts.iter().map(|line| id(line)).collect();
    ids.dedup();
    assert_eq!(ids.len(), prompts.len(), "each once: {prompts:?}");
}

#[test]
fn e2e_headless_a_rate_limit_parks_until_its_reset_and_costs_nothing() {
    let daemon = headless().start();
    let issue = daemon.file_issue("Apples", &format!("write src/a.txt a\nrate-limit 6\n{}", clean("apples")));
    let parked =
        daemon.wait_until(issue, "parked", |t| !t["waiting_for"].is_null() && t["reason"].is_string());
    assert_eq!(parked["state"], "working", "{parked}");
    assert!(parked["reason"].as_str().unwrap().contains("rate limit"), "{parked}");
    let pid = daemon.session_pid(issue);
    daemon.wait_closed(issue);
    let task = daemon.task(issue);
    for (attempt, times) in task["attempts"].as_object().unwrap() {
        assert_eq!(times, 0, "{attempt}: {task}");
    }
    let sessions = daemon.sessions(issue);
    assert_eq!((sessions.len(), &sessions[0]["pid"]), (1, &pid.into()));
    assert_eq!(count(&daemon, issue, "turn_failed"), 1);
    assert!(worked(&daemon, issue, "implementation"), "a file was written before");
}

#[test]
fn e2e_headless_a_full_context_is_handed_over() {
    let daemon = headless().start();
    let script = format!(
        "write src/pears.txt pears\ncontext 93\nexit-clean\ncommit Add plums\npush\nphase awaiting_ci\n{}",
        super::LAND
    );
    let issue = daemon.file_issue("Pears", &script);
    daemon.wait_closed(issue);
    let sessions = daemon.sessions(issue);
    assert_eq!((sessions.len(), &sessions[0]["exit"]), (2, &"handoff".into()), "{sessions:?}");
    assert_eq!(daemon.task(issue)["attempts"]["restarts"], 0);
    assert_eq!(daemon.main_log()[0], "Work in progress, handed over to the next session");
}

#[test]
fn e2e_headless_a_turn_without_end_is_cut_off() {
    let daemon = headless().set("timing.turn_timeout", "\"2s\"").start();
    let issue = daemon.file_issue("Apples", &format!("say at work\nhang\n{}", clean("apples")));
    daemon.wait_session(issue, 2);
    let shown = daemon.run(&["session", "logs", &issue.to_string(), "--generation", "1"]).stdout;
    assert!(shown.contains("turn 1 died: killed: time limit reached"), "{shown}");
    assert_eq!(daemon.sessions(issue)[0]["exit"], "crashed");
}

/// Prints what no agent should, then does its work.
const HOSTILE: &str = r#"
prompt=$(cat)
case $prompt in
*"] Merged"*) echo PHASE:done > "$PHASE_FILE" ;;
*"] Task #"*)
    head -c 52428800 /dev/zero | tr '\0' 'x'; echo
    head -c 100000 /dev/urandom; echo
    yes | head -c 1000000
    echo '{"type":"result"'; echo '[]'; echo '{"type":"tomorrow"}'
    printf '{"type":"system","subtype":"init","model":"\\u001b]0;owned\\u0007evil"}\n'
    echo PHASE:done >&2
    echo apples > src/apples.txt; git add --all; git commit --quiet --message 'Add apples'
    git push --quiet origin HEAD; echo PHASE:awaiting_ci > "$PHASE_FILE" ;;
esac
"#;

#[test]
fn e2e_headless_hostile_output_is_bounded_and_changes_nothing() {
    let daemon = headless().agent(HOSTILE).start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    let pid = daemon.wait_session(issue, 1);
    // All of it was read by then; the next states pass too quickly to be waited for.
    daemon.wait_until(issue, "its branch is on its way", |task| {
        ["merge_queue", "merged", "closed"].contains(&task["state"].as_str().unwrap_or_default())
    });
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kilobytes < 64 << 10, "the keeper took {kilobytes} kB");
    }
    daemon.wait_closed(issue);
    assert_eq!(daemon.sessions(issue).len(), 1);
    let shown = daemon.transcript(issue);
    assert!(shown.contains("too long and was passed over"), "{}", &shown[..shown.len().min(2000)]);
    let end = &shown[shown.floor_char_boundary(shown.len().saturating_sub(2000))..];
    assert!(
        shown.contains("the rest of this turn is not shown") && shown.contains("turn 1 is over"),
        "{end:?}"
    );
    assert!(shown.len() < 5 << 20 && !shown.contains('\u{1b}'), "{} bytes", shown.len());
    let model = daemon.json(&["agents", "--all"])[0]["model"].clone();
    assert!(!model.as_str().unwrap_or_default().contains('\u{1b}'), "{model}");
}

/// Will not go, and has a child that will not either.
const DEAF: &str = r#"
cat > /dev/null; trap '' TERM HUP INT
(trap '' TERM HUP INT; echo $BASHPID > "$HOME/child"; while :; do sleep 0.1; done) &
touch "$HOME/begun"; while :; do sleep 0.1; done
"#;

#[test]
fn e2e_headless_stopping_a_session_ends_all_of_its_turn() {
    let daemon = headless().agent(DEAF).start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    begun(&daemon);
    let keeper = daemon.wait_session(issue, 1);
    let turn = daemon.wait_turn(issue)["pid"].as_u64().unwrap();
    let child: u64 = daemon.wait_for("the child", || lines(&daemon, "child").first()?.parse().ok());
    daemon.json(&["session", "stop", &issue.to_string()]);
    daemon.wait_state(issue, "paused");
    daemon.wait_settled(issue);
    for pid in [u64::from(keeper), turn, child] {
        daemon.wait_for("the process to be gone", || (!is_there(pid)).then_some(()));
    }
    assert!(daemon.headless_file(issue, "session.json").is_none());
}
