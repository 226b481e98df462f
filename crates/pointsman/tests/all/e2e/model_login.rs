//! The operator's login for the model's API: nothing starts without one, no session sees it, and when the service wants nothing more of
//! it, all sessions wait together and are woken once.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use pointsman_testkit::claude_api::{ClaudeApi, Step};
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::json;

use super::hooks::payload;
use super::{sandbox_works, shop};

const TOKEN: &str = "sk-ant-oat01-nightingale-0123456789abcdef";
/// What a person's own login holds.
const OWN_LOGIN: &str = r#"{"claudeAiOauth":{"accessToken":"sk-ant-oat01-blackbird-0123456789"}}"#;

/// Functions of every agent here.
const ASK: &str = r#"
base=${ANTHROPIC_BASE_URL#http://}
at=${base%%/*}
run=$(cd "$CLAUDE_CODE_TMPDIR/.." && pwd)
ask() { # a word for the API; answers the first line
    local body="{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"$1\"}],\"tools\":[{\"name\":\"x\"}]}"
    exec 3<> "/dev/tcp/${at%:*}/${at#*:}"
    printf 'POST /model/v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %s\r\n\r\n%s' "${#body}" "$body" >&3
    timeout 20 head -n 1 <&3 | tr -d '\r'
    exec 3>&-
}
"#;

/// A project with an agent of Claude's kind, and an API that the relay may reach.
fn project(api: &ClaudeApi, agent: &str) -> Setup {
    let address = api.url().trim_start_matches("http://").to_owned();
    shop()
        .agent(&format!("{ASK}\n{}", agent.replace("PROGRAM", env!("CARGO_BIN_EXE_pointsman"))))
        .set("agent.kind", "\"claude\"")
        .set("sandbox.mode", "\"require\"")
        .set("dev.concurrency", "2")
        .machine(&format!("[sandbox]\nprivate_hosts = [\"{address}\"]\n"))
        .daemon_env("ANTHROPIC_BASE_URL", &api.url())
}

fn log_in(daemon: &TestDaemon) {
    let mut child = daemon.command(&["claude", "login"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(TOKEN.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Asks once, notes everything that it can see, and stays.
const LOOKS: &str = r#"
ask hello > "$run/said"
{ env; cat /proc/[0-9]*/environ | tr '\0' '\n'; cat "$CLAUDE_CONFIG_DIR"/.*.json "$CLAUDE_CONFIG_DIR"/*.json
  cat HOME_DIR/.claude/.credentials.json STATE_DIR/claude/.credentials.json STATE_DIR/claude-login
  find / -xdev \( -name .credentials.json -o -name claude-login \) -not -path '/proc/*'
  grep -rs nightingal[e] HOME_DIR STATE_DIR /run /tmp /etc
} > "$run/seen" 2> "$run/errors"
echo done > "$run/done"
sleep 1000
"#;

#[test]
fn e2e_sandbox_login_no_session_starts_without_one_and_none_sees_the_one_that_there_is() {
    if !sandbox_works() {
        return;
    }
    let api = ClaudeApi::start();
    api.when("hello", &[Step::Text("Hello.".to_owned())]);
    // The paths are known when the world is made.
    let daemon = project(&api, "").daemon_env("ANTHROPIC_API_KEY", "").build();
    let looks = LOOKS
        .replace("HOME_DIR", &daemon.path("home").to_string_lossy())
        .replace("STATE_DIR", &daemon.state().to_string_lossy());
    fs::write(daemon.path("agent-shop.sh"), format!("#!/bin/bash\n{ASK}\n{looks}")).unwrap();
    for dir in [daemon.path("home/.claude"), daemon.state().join("claude")] {
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(".credentials.json"), OWN_LOGIN).unwrap();
    }
    daemon.start();
    let issue = daemon.file_issue_with("Look around", "Please.");
    daemon.wait_state(issue, "working");
    daemon.wait_for("the reason to be told", || {
        let facts = daemon.json(&["task", "explain", &issue.to_string()])["facts"].to_string();
        facts.contains("nobody is logged in to Claude").then_some(())
    });
    assert!(daemon.log().contains("no login for Claude is known here"), "{}", daemon.log());
    let waiting = daemon.session(issue);
    assert!(waiting["pid"].is_null() && daemon.tmux_sessions().is_empty(), "{waiting}");
    assert_eq!(api.keys(), [""; 0]);

    log_in(&daemon);
    let run = daemon.session_files(issue).join("run-1");
    daemon.wait_for("the session to look around", || run.join("done").exists().then_some(()));
    let session = daemon.session(issue);
    assert_eq!(session["generation"], 1, "no start was wasted: {session}");
    let task = daemon.task(issue);
    for (attempt, count) in task["attempts"].as_object().unwrap() {
        assert_eq!(count, 0, "{attempt}: {task}");
    }
    let said = fs::read_to_string(run.join("said")).unwrap();
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    assert_eq!(api.keys(), [format!("Bearer {TOKEN}")]);
    let seen = fs::read_to_string(run.join("seen")).unwrap();
    assert!(seen.contains("ANTHROPIC_API_KEY=pointsman-relay-adds-the-key"), "{seen}");
    for secret in ["nightingale", "blackbird", ".credentials.json", "claude-login"] {
        assert!(!seen.contains(secret), "{secret}: {seen}");
    }
    // Nobody copied a login into what the session has, and both are where they were.
    let files = fs::read_dir(run.join("..")).unwrap().flatten();
    assert!(files.into_iter().all(|dir| !dir.path().join(".credentials.json").exists()));
    assert_eq!(fs::read_to_string(daemon.state().join("claude-login")).unwrap(), TOKEN);
    assert_eq!(fs::read_to_string(daemon.path("home/.claude/.credentials.json")).unwrap(), OWN_LOGIN);
}

/// Reports as Claude Code does, and makes its calls when it is told to.
const WORKS: &str = r#"
while ! [ -e "$run/ready" ]; do sleep 0.05; done
PROGRAM hook SessionStart < "$run/started.json"
n=0
while :; do
    n=$((n+1))
    while ! [ -e "$run/go-$n" ]; do sleep 0.05; done
    ask "turn" > "$run/said-$n.new"
    grep -q ' 429' "$run/said-$n.new" && PROGRAM hook StopFailure < "$run/failed.json"
    mv "$run/said-$n.new" "$run/said-$n"
done
"#;

const MINUTE: i64 = 60_000;

struct Sessions {
    daemon: TestDaemon,
    issues: [u64; 2],
}

impl Sessions {
    /// Lets a session make its next call; answers the first line that it got.
    fn call(&self, issue: u64, number: u32) -> String {
        let run = self.daemon.session_files(issue).join("run-1");
        fs::write(run.join(format!("go-{number}")), "").unwrap();
        self.daemon.wait_for("its answer", || fs::read_to_string(run.join(format!("said-{number}"))).ok())
    }

    /// How often a session was told to go on.
    fn woken(&self, issue: u64) -> usize {
        let inbox = fs::read_dir(self.daemon.session_files(issue).join("inbox-1")).unwrap().flatten();
        let texts = inbox.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        texts.filter(|text| text.contains("Continue where you were")).count()
    }

    fn parked_until(&self, issue: u64) -> Option<String> {
        self.daemon.task(issue)["parked_until"].as_str().map(str::to_owned)
    }
}

#[test]
fn e2e_sandbox_login_a_429_of_the_account_parks_all_sessions_at_once_and_wakes_them_once() {
    if !sandbox_works() {
        return;
    }
    let api = ClaudeApi::start();
    api.when("turn", &[Step::Limited(3600)]);
    let mut setup = project(&api, WORKS).staged().daemon_env("ANTHROPIC_API_KEY", TOKEN);
    for key in ["timing.idle_look", "timing.restart_backoff", "timing.stop_grace", "timing.phase_rescan"] {
        setup = setup.unset(key);
    }
    let daemon = setup.start();
    let issues = ["Apples", "Pears"].map(|fruit| daemon.file_issue_with(fruit, "Please."));
    for issue in issues {
        let run = daemon.session_files(issue).join("run-1");
        daemon.wait_session(issue, 1);
        fs::write(run.join("failed.json"), payload("StopFailure.rate_limit").to_string()).unwrap();
        fs::write(run.join("started.json"), payload("SessionStart.startup").to_string()).unwrap();
        fs::write(run.join("ready"), "").unwrap();
    }
    let all = Sessions { daemon, issues };
    let (daemon, [first, second]) = (&all.daemon, all.issues);
    // One finds out. The other one is in the middle of a tool, and makes no call.
    assert!(all.call(first, 1).contains("429"));
    for issue in all.issues {
        daemon.wait_for("it to be parked for an hour", || {
            (daemon.task(issue)["reason"] == "parked: rate limit").then_some(())
        });
    }
    daemon.wait_for("both to wait for the same moment", || {
        let [one, other] = all.issues.map(|issue| all.parked_until(issue));
        (one.is_some() && one == other).then_some(())
    });
    let until = all.parked_until(first);
    // The tool is through: its call goes no further than the relay, and its failure changes nothing.
    assert!(all.call(second, 1).contains("429"));
    assert_eq!(api.requests().len(), 1, "the service is asked nothing while it wants nothing");
    daemon.wait_for("the failure to be noted", || {
        let failed = daemon.events(second).into_iter().filter(|event| event["kind"] == "turn_failed");
        (failed.count() == 2).then_some(())
    });
    assert_eq!(all.issues.map(|issue| all.parked_until(issue)), [until.clone(), until]);
    // A pause of the usual length passes, and a daemon that forgets everything it did not write down.
    daemon.stage(&json!({ "ahead_ms": 20 * MINUTE }));
    daemon.restart();
    let late = daemon.file_issue_with("Plums", "Please.");
    daemon.wait_state(late, "backlog");
    daemon.stage(&json!({ "ahead_ms": 45 * MINUTE }));
    daemon.wait_settled(first);
    assert_eq!(all.issues.map(|issue| all.woken(issue)), [0, 0]);

    api.when("turn", &[Step::Text("Good.".to_owned())]);
    daemon.stage(&json!({ "ahead_ms": 61 * MINUTE }));
    for issue in all.issues {
        daemon.wait_for("it to be woken", || (all.woken(issue) > 0).then_some(()));
        assert!(all.call(issue, 2).contains("200"), "the relay asks the service again");
    }
    daemon.stage(&json!({ "ahead_ms": 90 * MINUTE }));
    daemon.restart();
    for issue in all.issues {
        daemon.wait_settled(issue);
        assert_eq!((all.woken(issue), all.parked_until(issue)), (1, None));
        assert_eq!(daemon.session(issue)["generation"], 1);
        let task = daemon.task(issue);
        for (attempt, count) in task["attempts"].as_object().unwrap() {
            assert_eq!(count, 0, "{attempt}: {task}");
        }
    }
    assert_eq!(api.requests().len(), 3, "the one that was refused, and one of each afterwards");
}
