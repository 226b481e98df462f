//! What is around a session without a terminal: a person who takes it to one, its variables, a machine without tmux.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use pointsman_testkit::TestDaemon;

use super::{GATED, begun, go, headless, lines};
use crate::e2e::clean;

/// A program of that name: a stream in a turn, a word in a file on a terminal.
const CLAUDE: &str = r#"#!/bin/bash
printf '%s\n' "$*" >> "$HOME/calls"
case " $* " in
*" -p "*) ;;
*) pwd > "$HOME/where"; touch "$HOME/attached"; until [ -e "$HOME/left" ]; do sleep 0.02; done; exit 0 ;;
esac
prompt=$(cat); printf '%s\n' "$prompt" >> "$HOME/prompts"
echo '{"type":"system","subtype":"init","session_id":"c-1","model":"scripted"}'
case $prompt in *"] Answer"*) echo apples > src/apples.txt; git add --all; git commit --quiet --message 'Add apples'
    git push --quiet origin HEAD; echo PHASE:awaiting_ci > "$PHASE_FILE" ;;
*"] Merged"*) echo PHASE:done > "$PHASE_FILE" ;; esac
echo '{"type":"result","subtype":"success","is_error":false,"result":""}'
"#;

#[test]
fn e2e_headless_a_person_takes_the_conversation_to_a_terminal_and_messages_wait() {
    let setup = headless().set("timing.idle_look", "\"10m\"");
    let daemon = setup.file("claude", CLAUDE).set("roles.dev.command", "[\"./claude\"]").start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    daemon.wait_shown(issue, "turn 1 is over");
    std::thread::scope(|scope| {
        let attached = scope.spawn(|| daemon.run(&["session", "attach", &issue.to_string()]));
        daemon.wait_for("the person to be there", || daemon.path("home/attached").exists().then_some(()));
        daemon.json(&["session", "send", &issue.to_string(), "Go on."]);
        daemon.wait_settled(issue);
        assert_eq!(lines(&daemon, "prompts").len(), 1, "the message waits");
        fs::write(daemon.path("home/left"), "").unwrap();
        assert_eq!(attached.join().unwrap().code, Some(0));
    });
    daemon.wait_closed(issue);
    let calls = lines(&daemon, "calls");
    assert!(
        calls[0].contains("--session-id") && calls[0].contains("--output-format stream-json"),
        "{calls:?}"
    );
    let id = calls[0].split("--session-id ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(calls[1].contains(&format!("--resume {id}")) && !calls[1].contains("-p "), "{calls:?}");
    assert!(calls[2..].iter().all(|call| call.contains(&format!("--resume {id}"))), "{calls:?}");
    assert_eq!(lines(&daemon, "where"), [daemon.session_files(issue).join("tree").to_string_lossy()]);
}

#[test]
fn e2e_headless_what_has_no_conversation_cannot_be_taken_to_a_terminal() {
    let daemon = headless().agent(GATED).start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    begun(&daemon);
    daemon.wait_session(issue, 1);
    let answer = daemon.run(&["session", "attach", &issue.to_string()]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert!(answer.stderr.contains("session logs"), "{answer:?}");
    go(&daemon);
    daemon.wait_closed(issue);
}

#[test]
fn e2e_headless_an_agent_finds_no_terminal_and_no_more_than_its_own_variables() {
    let script = r#"
cat > /dev/null; env | cut -d= -f1 | sort > "$HOME/variables"
if (: < /dev/tty) 2>/dev/null; then echo yes; else echo no; fi > "$HOME/terminal"; ps -o tty= -p $$ >> "$HOME/terminal"
touch "$HOME/begun"; until [ -e "$HOME/go" ]; do sleep 0.02; done
"#;
    let daemon = headless().agent(script).daemon_env("CODEBERG_TOKEN", "secret").start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    begun(&daemon);
    daemon.wait_session(issue, 1);
    assert_eq!(lines(&daemon, "terminal"), ["no", "?"]);
    let variables = lines(&daemon, "variables");
    for wanted in ["HOME", "PATH", "PHASE_FILE", "POINTSMAN_SESSION", "POINTSMAN_TURN", "TERM"] {
        assert!(variables.iter().any(|name| name == wanted), "{wanted}: {variables:?}");
    }
    assert!(!variables.iter().any(|name| name.contains("TOKEN") || name == "TMUX"), "{variables:?}");
    go(&daemon);
}

/// Everything that can be run here, but tmux.
fn without_tmux(daemon: &TestDaemon) -> PathBuf {
    let dir = daemon.path("bin");
    fs::create_dir(&dir).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for program in std::env::split_paths(&path).filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten() {
        let link = dir.join(program.file_name());
        if program.file_name() != "tmux" && !link.exists() {
            let _ = symlink(program.path(), link);
        }
    }
    dir
}

#[test]
fn e2e_headless_a_machine_without_tmux_is_enough() {
    let daemon = headless().build();
    let path = without_tmux(&daemon).to_string_lossy().into_owned();
    daemon.start_with(&[("PATH", &path)]);
    let issue = daemon.file_issue("Apples", &clean("apples"));
    daemon.wait_closed(issue);
    let doctor = daemon.command(&["doctor", "--json"]).env("PATH", &path).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let grade = |id: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == id).unwrap()["status"].clone()
    };
    assert_eq!((grade("tmux"), grade("tmux_server")), ("warn".into(), "warn".into()), "{report}");
    assert_eq!((grade("leftovers"), grade("supported")), ("ok".into(), "ok".into()), "{report}");
    assert!(!daemon.log().contains("tmux"), "{}", daemon.log());
}
