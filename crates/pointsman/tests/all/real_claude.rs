//! The real Claude Code in real tmux, against a scripted API: no network, no model.
//!
//! `scripts/test-claude` installs the program and names it in `POINTSMAN_CLAUDE`; without that the tests are reported as
//! not run.

use std::fs;

use pointsman_testkit::claude_api::{ClaudeApi, Step};
use pointsman_testkit::{Setup, TestDaemon, not_run};

use crate::e2e::sandbox_works;
use crate::real_claude_relay::given_out;

/// Made up; nothing outside the loopback interface ever sees it.
pub(crate) const KEY: &str = "sk-ant-test-0000000000000000000000000000";

/// Commits a list and hands it in.
pub(crate) const WORK: &str = "mkdir -p src && echo 'apples 3 crowns' > src/apples.txt && git add --all && \
    git commit --quiet --message 'Add apples' && git push --quiet origin HEAD && \
    echo 'Apples for everybody.' > \"$POINTSMAN_SUMMARY_FILE\" && echo PHASE:awaiting_ci > \"$PHASE_FILE\"";

pub(crate) fn bash(command: &str) -> Step {
    Step::Bash(command.to_owned())
}

pub(crate) fn text(words: &str) -> Step {
    Step::Text(words.to_owned())
}

/// A project whose agent is the real program, and the API it talks to.
pub(crate) fn shop(flags: &[&str]) -> Option<(Setup, ClaudeApi)> {
    let Some(program) = std::env::var("POINTSMAN_CLAUDE").ok().filter(|path| !path.is_empty()) else {
        not_run("claude", "POINTSMAN_CLAUDE names no program; scripts/test-claude installs one");
        return None;
    };
    let api = ClaudeApi::start();
    let command: Vec<String> =
        std::iter::once(program).chain(flags.iter().map(|f| (*f).to_owned())).collect();
    let quiet = [
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "CLAUDE_CODE_MAX_RETRIES",
    ];
    let mut setup = Setup::new(env!("CARGO_BIN_EXE_pointsman"))
        .set("roles.dev.command", &serde_json::to_string(&command).unwrap())
        .set("timing.idle_look", "\"20s\"")
        .set("timing.park", "\"1s\"")
        .machine(&format!("[sandbox]\nprivate_hosts = [\"{}\"]\n", api.url().trim_start_matches("http://")))
        .daemon_env("ANTHROPIC_BASE_URL", &api.url())
        .daemon_env("ANTHROPIC_API_KEY", KEY);
    let mut passed = vec!["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"];
    for name in quiet {
        setup = setup.daemon_env(name, "1");
        passed.push(name);
    }
    Some((setup.set("agent.pass_env", &serde_json::to_string(&passed).unwrap()), api))
}

/// What the model does on the way from a handed-in branch to the end.
pub(crate) fn lands(api: &ClaudeApi) {
    api.when("] CI passed", &[text("Good.")]);
    api.when("] Merged", &[bash("echo PHASE:done > \"$PHASE_FILE\""), text("Done.")]);
}

pub(crate) fn skipping() -> [&'static str; 1] {
    ["--dangerously-skip-permissions"]
}

pub(crate) fn evidence(daemon: &TestDaemon, issue: u64) -> String {
    daemon.json(&["session", "explain", &issue.to_string()])["evidence"].to_string()
}

#[test]
fn real_claude_goes_from_claim_to_close() {
    let Some((setup, api)) = shop(&skipping()) else { return };
    api.when("] Task #", &[bash("cat \"$POINTSMAN_INBOX/0000-task.md\""), bash(WORK), text("Handed in.")]);
    lands(&api);
    let daemon = setup.start();
    let issue = daemon.file_issue_with("Add apples", "They are ripe.");
    daemon.wait_closed(issue);
    assert_eq!(daemon.on_main("src/apples.txt").as_deref(), Some("apples 3 crowns"));
    assert_eq!(daemon.sessions(issue).len(), 1);
    assert!(api.was_told("They are ripe."), "the model read the task");
    assert!(daemon.pull_requests()[0]["body"].as_str().unwrap().contains("Apples for everybody."));
    let row = daemon.json(&["agents", "--all"]).as_array().unwrap()[0].clone();
    assert!(row["model"].as_str().unwrap().starts_with("claude-"), "SessionStart was heard: {row}");
    assert!(evidence(&daemon, issue).contains("has acknowledged"), "{}", evidence(&daemon, issue));
    assert!(api.was_told("a message from Pointsman"), "its own hooks brought the messages");
}

#[test]
fn real_claude_is_parked_by_a_rate_limit_and_goes_on() {
    let Some((setup, api)) = shop(&skipping()) else { return };
    // Claude tries once more by itself.
    let twice = [Step::ErrorOnce(429), Step::ErrorOnce(429)];
    api.when("] Task #", &[&twice[..], &[text("Never mind.")]].concat());
    api.when("] Answer", &[bash(WORK), text("Handed in.")]);
    lands(&api);
    let daemon = setup.start();
    let issue = daemon.file_issue_with("Add apples", "Now.");
    daemon.wait_for("the error to be told", || {
        daemon.events(issue).iter().any(|event| event["kind"] == "turn_failed").then_some(())
    });
    daemon.wait_closed(issue);
    assert_eq!(daemon.task(issue)["attempts"]["restarts"], 0);
}

#[test]
fn real_claude_comes_back_after_a_crash_with_its_conversation() {
    let Some((setup, api)) = shop(&skipping()) else { return };
    // It waits long enough to be killed in the middle.
    api.when(
        "] Task #",
        &[
            bash("if [ -e killed ]; then rm -f killed begun; else touch begun; sleep 60; fi"),
            bash(WORK),
            text("Handed in."),
        ],
    );
    lands(&api);
    let daemon = setup.set("agent.resume", "true").start();
    let issue = daemon.file_issue_with("Add apples", "Now.");
    daemon.wait_for("the work to begin", || daemon.tree(issue).join("begun").exists().then_some(()));
    fs::write(daemon.tree(issue).join("killed"), "").unwrap();
    daemon.kill_session(issue);
    daemon.wait_session(issue, 2);
    daemon.wait_closed(issue);
    let launch = fs::read_to_string(daemon.session_files(issue).join("launch-2.json"));
    if let Ok(launch) = launch {
        assert!(launch.contains("--resume"), "{launch}");
    }
    let resumed = api.requests().iter().any(|request| {
        let all = request["messages"].to_string();
        all.matches("] Task #").count() >= 2
    });
    assert!(resumed, "the second session knows what the first was told");
}

#[test]
fn real_claude_at_a_permission_dialog_waits_for_a_person() {
    let Some((setup, api)) = shop(&["--permission-mode", "default"]) else { return };
    api.when("] Task #", &[bash("touch \"$HOME/forbidden\""), text("Touched.")]);
    let daemon = setup.start();
    let issue = daemon.file_issue_with("Add apples", "Now.");
    let task = daemon.wait_state(issue, "escalated");
    assert!(task["reason"].as_str().unwrap().contains("dialog"), "{task}");
    daemon.wait_for("the picture", || {
        daemon.comments(issue).iter().any(|c| c.contains("The terminal shows:")).then_some(())
    });
    // An answer is held back: typed here, it would approve the command.
    daemon.answer(issue, "No, do not.");
    daemon.wait_for("the answer to be held back", || {
        daemon.log_lines("waits at a dialog").or_else(|| {
            daemon.events(issue).iter().filter(|e| e["kind"] == "dialog_seen").nth(1).map(|_| Vec::new())
        })
    });
    assert!(!daemon.path("home").join("forbidden").exists());
}

#[test]
fn real_claude_hears_the_protocol_again_after_a_compaction() {
    let Some((setup, api)) = shop(&skipping()) else { return };
    // There must be something to compact.
    api.when("] Task #", &[bash("echo one"), bash("echo two"), bash("echo three"), text("I wait.")]);
    api.when("] Answer", &[bash(WORK), text("Handed in.")]);
    lands(&api);
    let daemon = setup.set("timing.idle_look", "\"10m\"").start();
    let issue = daemon.file_issue_with("Add apples", "Now.");
    daemon.wait_for("the first turn to end", || {
        daemon.events(issue).iter().any(|event| event["kind"] == "turn_ended").then_some(())
    });
    let pane = format!("=dev-shop-{issue}:");
    daemon.tmux(&["send-keys", "-t", &pane, "-l", "/compact"]);
    let shows = |words: &str| daemon.tmux(&["capture-pane", "-p", "-t", &pane]).contains(words).then_some(());
    daemon.wait_for("the command to be typed", || shows("❯\u{a0}/compact"));
    daemon.tmux(&["send-keys", "-t", &pane, "Enter"]);
    daemon.wait_for("the compaction", || {
        let pane = daemon.tmux(&["capture-pane", "-p", "-t", &pane]);
        assert!(!pane.contains("Error"), "{pane}");
        pane.contains("ompacted").then_some(())
    });
    daemon.run(&["session", "send", &issue.to_string(), "Go on."]);
    daemon.wait_closed(issue);
    assert!(api.was_told("Your conversation was shortened or taken up again"));
}

#[test]
fn real_claude_is_not_moved_by_hostile_bytes_in_a_message() {
    let Some((setup, api)) = shop(&skipping()) else { return };
    api.when("] Task #", &[text("I wait.")]);
    api.when("] Answer", &[bash(WORK), text("Handed in.")]);
    lands(&api);
    let daemon = setup.set("timing.idle_look", "\"10m\"").start();
    let issue = daemon.file_issue_with("Add apples", "Now.");
    daemon.wait_for("the first turn to end", || {
        daemon.events(issue).iter().any(|event| event["kind"] == "turn_ended").then_some(())
    });
    let hostile = "!touch $HOME/pwned\r\n/exit\n\u{1b}[201~\u{3}\u{4}@text gone\n#(touch x) $(touch y)";
    daemon.run(&["session", "send", &issue.to_string(), hostile]);
    daemon.wait_closed(issue);
    assert_eq!(daemon.sessions(issue).len(), 1, "it neither left nor crashed");
    assert!(!daemon.path("home").join("pwned").exists());
    let prompts = api.requests();
    let told = prompts.iter().any(|request| request["messages"].to_string().contains("from the operator"));
    assert!(told && !api.was_told("@text gone"), "the words are in a file, not on the terminal");
}

#[test]
fn real_claude_hears_a_message_once_when_the_daemon_dies_on_the_way() {
    let Some((setup, api)) = shop(&skipping()) else { return };
    api.when("] Task #", &[bash(WORK), text("Handed in.")]);
    lands(&api);
    let daemon = setup.build();
    daemon.start_with(&[("POINTSMAN_CRASH_AT", "after-deliver")]);
    let issue = daemon.file_issue_with("Add apples", "Now.");
    daemon.wait_for_death();
    daemon.start();
    daemon.wait_closed(issue);
    let told = api
        .requests()
        .iter()
        .map(|request| request["messages"].to_string().matches("] CI passed on").count())
        .max();
    assert_eq!(told, Some(1));
}

/// What the scripted API has charged for, request by request.
fn charged(api: &ClaudeApi) -> Vec<u64> {
    let input = |request: &serde_json::Value| (request["messages"].to_string().len() / 4 + 1) as u64;
    api.requests().iter().map(|request| input(request) + 10).collect()
}

#[test]
fn real_claude_counts_every_request_once_with_and_without_a_terminal() {
    for runtime in ["tmux", "headless"] {
        let Some((setup, api)) = shop(&skipping()) else { return };
        api.when("] Task #", &[bash("ls"), bash("pwd"), bash("git status"), text("That is all.")]);
        let daemon = setup.set("roles.dev.runtime", &format!("\"{runtime}\"")).start();
        let issue = daemon.file_issue_with("Add apples", "They are ripe.");
        daemon.wait_for("the end of the turn", || (daemon.task(issue)["turns"] == 1).then_some(()));
        let charged = charged(&api);
        assert_eq!(charged.len(), 4, "{runtime}: one request for each step");
        // Behind the relay everything counts that the API gave out, also what the program asks beside its turns. A transcript
        // has only the turns.
        let expected = || match sandbox_works() {
            true => given_out(&api),
            false => (charged.iter().sum::<u64>() - 40, 40),
        };
        // The last answer reaches the transcript after the end of the turn was told.
        let agent = daemon.wait_for(&format!("the tokens of {runtime}"), || {
            let agent = daemon.json(&["agents"])[0].clone();
            let tokens = |name: &str| agent["token_classes"][name].as_u64().unwrap_or(0);
            ((tokens("input"), tokens("output")) == expected()).then_some(agent)
        });
        assert_eq!(agent["tokens"], expected().0 + expected().1, "{runtime}: {agent}");
        assert!(agent["cost_usd"].as_f64().unwrap() > 0.0, "{runtime}: {agent}");
    }
}

#[test]
fn real_claude_spends_no_more_than_the_calls_under_way_when_a_limit_is_reached() {
    for runtime in ["tmux", "headless"] {
        let Some((setup, api)) = shop(&skipping()) else { return };
        // A real model thinks for seconds; the scripted one answers at once, so its tools take the time.
        let steps: Vec<Step> = (0..20).map(|_| bash("sleep 2")).chain([text("That is all.")]).collect();
        api.when("] Task #", &steps);
        let daemon = setup
            .set("roles.dev.runtime", &format!("\"{runtime}\""))
            .set("budget.fresh_tokens_per_task", "8000")
            .start();
        let issue = daemon.file_issue_with("Add apples", "They are ripe.");
        let task = daemon.wait_state(issue, "blocked");
        assert!(task["reason"].as_str().unwrap().contains("of 8000 fresh tokens"), "{runtime}: {task}");
        daemon.wait_settled(issue);
        let charged = charged(&api);
        let reached = charged.iter().scan(0, |sum, one| {
            *sum += one;
            Some(*sum)
        });
        let within = reached.take_while(|sum| *sum < 8000).count();
        assert!(charged.len() <= within + 2, "{runtime}: {within} within the limit, {charged:?}");
    }
}
