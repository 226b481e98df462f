//! `doctor` and `agent check`: the way of a task in a copy, and the walls that a newcomer meets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use pointsman_testkit::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::environment::{Answer, Environment};

const AGENT: &str = "#!/bin/sh
echo \"Hello from issue $ISSUE\" >> hello.txt
git add -A && git commit -qm \"Say hello (#$ISSUE)\" && git push -q origin HEAD
echo PHASE:awaiting_ci > \"$PHASE_FILE\"
while read -r line; do
    case $line in
        *'] CI passed'*) echo PHASE:awaiting_review > \"$PHASE_FILE\" ;;
        *'] Merged'*) echo PHASE:done > \"$PHASE_FILE\" ;;
    esac
done
";

fn program(environment: &Environment, name: &str, text: &str, mode: u32) {
    environment.write(name, text);
    fs::set_permissions(environment.shop().join(name), fs::Permissions::from_mode(mode)).unwrap();
}

/// A project with this CI and the agent of the README.
fn project(ci: &str) -> Environment {
    let environment = Environment::with_repository();
    program(&environment, "agent.sh", AGENT, 0o755);
    program(&environment, "ci.sh", ci, 0o755);
    environment.commit();
    environment.run(&["init", "--yes", "--agent", "./agent.sh"]).ok();
    environment
}

fn check(answer: &Answer, id: &str) -> Value {
    let report: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{answer:?}"));
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id}: {answer:?}")).clone()
}

/// Nothing of the copy is left, and nothing of the project was touched.
fn is_untouched(environment: &Environment) {
    assert_eq!(environment.json(&["forge", "issue", "list", "--state", "all"]), serde_json::json!([]));
    assert_eq!(environment.git(&["status", "--porcelain"]), "?? pointsman.toml");
    let left = fs::read_dir(environment.path("home/.cache")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "the copy is removed");
}

#[test]
fn a_doctor_sends_a_task_its_whole_way_in_a_copy() {
    let environment = project("#!/bin/sh\necho fine\n");
    let answer = environment.run(&["doctor", "--json"]);
    answer.ok();
    for id in ["session", "ci", "message", "landing", "main_push", "forge_database"] {
        assert_eq!(check(&answer, id)["status"], "ok", "{answer:?}");
    }
    is_untouched(&environment);
    let quick = environment.run(&["doctor", "--quick", "--json"]);
    assert!(!quick.ok().stdout.contains("\"landing\""), "{quick:?}");
}

#[test]
fn a_doctor_warns_of_a_red_ci_with_its_last_line() {
    let environment = project("#!/bin/sh\necho 'no plums here'\nexit 1\n");
    let answer = environment.run(&["doctor", "--json"]);
    let ci = check(answer.ok(), "ci");
    assert_eq!(ci["status"], "warn");
    assert!(ci["detail"].as_str().unwrap().contains("no plums here"), "{ci}");
    assert_eq!(check(&answer, "message")["status"], "ok", "the agent heard of it");
}

#[test]
fn a_doctor_says_exactly_why_an_agent_program_cannot_be_started() {
    let environment = project("#!/bin/sh\n");
    let failing = |id: &str, words: &str, fix: &str| {
        let answer = environment.run(&["doctor", "--json"]);
        let found = check(answer.code(1), id);
        assert_eq!(found["status"], "fail");
        assert!(found["detail"].as_str().unwrap().contains(words), "{found}");
        assert!(found["fix"].as_str().unwrap().contains(fix), "{found}");
    };
    program(&environment, "agent.sh", AGENT, 0o644);
    failing("agent", "is not executable", "run `chmod +x ./agent.sh`, commit it and run `pointsman sync`");
    program(&environment, "agent.sh", "#!/usr/bin/no-such-shell\n", 0o755);
    failing("agent", "no-such-shell", "install /usr/bin/no-such-shell");
    // In the checkout all is well; main has another file, or none.
    environment.git(&["checkout", "--quiet", "agent.sh"]);
    environment.git(&["rm", "--quiet", "--cached", "agent.sh"]);
    environment.git(&["commit", "--quiet", "-m", "Without the agent"]);
    environment.run(&["sync"]).ok();
    failing("agent_on_main", "in your checkout but not on main", "pointsman sync");
    program(&environment, "agent.sh", AGENT, 0o644);
    environment.git(&["add", "agent.sh"]);
    environment.git(&["commit", "--quiet", "-m", "Not executable"]);
    environment.run(&["sync"]).ok();
    program(&environment, "agent.sh", AGENT, 0o755);
    failing("agent_on_main", "not executable there", "chmod +x ./agent.sh");
}

#[test]
fn an_agent_is_checked_in_one_real_turn() {
    let environment = project("#!/bin/sh\nexit 1\n");
    let answer = environment.run(&["agent", "check", "--json"]);
    answer.ok();
    for id in ["start", "prompt", "hook", "message", "stop", "resume", "tokens"] {
        assert_eq!(check(&answer, id)["status"], "ok", "{answer:?}");
    }
    is_untouched(&environment);
    let answer = environment.run(&["doctor", "--agent", "--json"]);
    assert_eq!(check(answer.ok(), "agent_resume")["status"], "ok");
}

#[test]
fn an_agent_that_gives_up_fails_its_check() {
    let environment = project("#!/bin/sh\n");
    let text =
        "#!/bin/sh\nprintf 'PHASE:failed\\nReason: %s\\n' 'no login' > \"$PHASE_FILE\"\ncat > /dev/null\n";
    program(&environment, "agent.sh", text, 0o755);
    environment.git(&["commit", "--quiet", "-a", "-m", "Give up"]);
    environment.run(&["sync"]).ok();
    let answer = environment.run(&["agent", "check", "--json"]);
    let prompt = check(answer.code(1), "prompt");
    assert_eq!(prompt["status"], "fail");
    assert!(prompt["detail"].as_str().unwrap().contains("no login"), "{prompt}");
    assert_eq!(check(&answer, "resume")["status"], "warn", "it was not reached");
    environment.run(&["agent", "check", "clod"]).code(2).says("claude");
}

#[test]
fn a_doctor_that_is_interrupted_removes_its_copy() {
    let environment = project("#!/bin/sh\nsleep 1000\n");
    let mut doctor =
        environment.command(&["doctor"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let cache = environment.path("home/.cache");
    let is_ready = |copy: fs::DirEntry| {
        let log = fs::read_to_string(copy.path().join("state/up.log")).unwrap_or_default();
        log.lines().any(|line| line == "ready")
    };
    eventually("the copy's daemon to be ready", Duration::from_secs(60), || {
        fs::read_dir(&cache).ok()?.flatten().any(is_ready).then_some(())
    });
    let pid = Pid::from_raw(i32::try_from(doctor.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(doctor.wait().unwrap().code(), Some(130));
    is_untouched(&environment);
}
