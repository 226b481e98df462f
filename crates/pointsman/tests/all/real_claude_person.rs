//! A person's own session of the real Claude Code: the five manual tests of the hook-driven life cycle, as a person would
//! do them, in one session and without a daemon. See `real_claude` for what this needs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use pointsman_testkit::claude_api::{ClaudeApi, Step};
use pointsman_testkit::{Setup, TestDaemon, not_run};
use serde_json::{Value, json};

/// Made up; nothing outside the loopback interface ever sees it.
const KEY: &str = "sk-ant-test-0000000000000000000000000000";

fn bash(command: &str) -> Step {
    Step::Bash(command.to_owned())
}

fn text(words: &str) -> Step {
    Step::Text(words.to_owned())
}

/// The terminal of a person. Ends with its tmux server.
struct Terminal<'a> {
    world: &'a TestDaemon,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    fn open(world: &'a TestDaemon, api: &ClaudeApi, claude: &str) -> Self {
        let home = world.path("home");
        let here = fs::canonicalize(world.checkout()).unwrap();
        let config = json!({
            "hasCompletedOnboarding": true, "bypassPermissionsModeAccepted": true, "theme": "dark",
            "customApiKeyResponses": { "approved": [&KEY[KEY.len() - 20..]], "rejected": [] },
            "projects": { here.to_string_lossy(): { "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true } },
        });
        fs::write(home.join(".claude.json"), config.to_string()).unwrap();
        fs::create_dir_all(home.join(".claude")).unwrap();
        fs::write(home.join(".claude/settings.json"), r#"{"skipDangerousModePermissionPrompt": true}"#)
            .unwrap();
        let ours = PathBuf::from(env!("CARGO_BIN_EXE_pointsman")).parent().unwrap().to_owned();
        let path = format!("{}:{}", ours.display(), std::env::var("PATH").unwrap());
        let terminal = Self { world, socket: home.join("person.sock") };
        let mut words: Vec<String> =
            ["new-session", "-d", "-s", "person", "-x", "160", "-y", "50", "-c"].map(str::to_owned).to_vec();
        words.extend([here.to_string_lossy().into_owned(), "--".to_owned(), "env".to_owned()]);
        let api_url = api.url();
        for (name, value) in [
            ("PATH", path.as_str()),
            ("ANTHROPIC_BASE_URL", &api_url),
            ("ANTHROPIC_API_KEY", KEY),
            ("POINTSMAN_STATE_DIR", &world.state().to_string_lossy()),
            ("POINTSMAN_RUNTIME_DIR", &world.control_socket().parent().unwrap().to_string_lossy()),
            ("IS_SANDBOX", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ] {
            words.push(format!("{name}={value}"));
        }
        words.extend([claude.to_owned(), "--dangerously-skip-permissions".to_owned()]);
        terminal.tmux(&words.iter().map(String::as_str).collect::<Vec<_>>());
        terminal.waits_for("❯");
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(words);
        tmux.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.world.path("home"));
        tmux.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env("USER", "ann").env("SHELL", "/bin/sh");
        String::from_utf8_lossy(&tmux.output().unwrap().stdout).into_owned()
    }

    fn shows(&self, words: &str) -> bool {
        self.tmux(&["capture-pane", "-p", "-t", "=person:"]).contains(words)
    }

    fn waits_for(&self, words: &str) {
        self.world.wait_for(
            &format!("{words:?} in {}", self.tmux(&["capture-pane", "-p", "-t", "=person:"])),
            || self.shows(words).then_some(()),
        );
    }

    /// Types a line; Enter is repeated as long as it stands in the box.
    fn types(&self, line: &str) {
        self.tmux(&["send-keys", "-t", "=person:", "-l", line]);
        self.waits_for(&format!("❯\u{a0}{line}"));
        self.world.wait_for("the line to be sent", || {
            self.tmux(&["send-keys", "-t", "=person:", "Enter"]);
            (!self.shows(&format!("❯\u{a0}{line}"))).then_some(())
        });
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn claim(world: &TestDaemon) -> Option<Value> {
    let text = fs::read_to_string(world.checkout().join(".agent-claim.json")).ok()?;
    serde_json::from_str(&text).ok()
}

fn waits_for_phase(world: &TestDaemon, phase: &str) -> Value {
    world.wait_for(&format!("phase {phase}"), || claim(world).filter(|claim| claim["phase"] == phase))
}

#[test]
fn real_claude_of_a_person_goes_from_claim_to_close() {
    let Some(claude) = std::env::var("POINTSMAN_CLAUDE").ok().filter(|path| !path.is_empty()) else {
        return not_run("claude", "POINTSMAN_CLAUDE names no program; scripts/test-claude installs one");
    };
    let world = Setup::new(env!("CARGO_BIN_EXE_pointsman")).build();
    assert_eq!(world.run(&["claude", "install"]).code, Some(0));
    world.json(&["forge", "issue", "create", "--title", "Fix thing", "--body", "It races."]);
    let api = ClaudeApi::start();
    api.when(
        "Claim issue 1 and begin",
        &[bash("pointsman claim 1 --json"), bash("git switch -q -c claude/fix-thing-1"), text("Claimed.")],
    );
    api.when(
        "Hand in the work of this checkout",
        &[
            bash("echo fixed > thing.txt && git add thing.txt && git commit -qm 'Fix thing'"),
            bash("pointsman handoff --summary 'Fix race condition'"),
            text("Handed in."),
        ],
    );
    api.when(
        "yes, close it",
        &[
            bash("sed -i 's/\"phase\": *\"[a-z_]*\"/\"phase\": \"done\"/' .agent-claim.json"),
            text("Closing."),
        ],
    );
    let terminal = Terminal::open(&world, &api, &claude);
    world.wait_for("the board to be told", || {
        terminal.types("hello");
        api.was_told("Fix thing").then_some(())
    });

    // 1: the signal file.
    terminal.types("/claim 1");
    let first = waits_for_phase(&world, "coding");
    assert_eq!((&first["issue_number"], &first["branch"]), (&1.into(), &"claude/fix-thing-1".into()));

    // 2: the pull request, by the end of a response; its address is put before the model.
    terminal.waits_for("Claimed.");
    terminal.types("/handoff");
    let created = waits_for_phase(&world, "pr_created");
    let pr = created["pr_number"].as_u64().unwrap();
    world.wait_for("the model to be told", || api.was_told(&format!("PR #{pr} created")).then_some(()));

    // 3: the checks reach the idle session.
    let sha = world.pull_request(pr)["head_sha"].as_str().unwrap().to_owned();
    world.run(&["forge", "status", "set", &sha, "--context", "lint", "--state", "success"]);
    terminal.types("what does CI say");
    world.wait_for("CI's answer", || api.was_told("CI passed! All 1 checks green").then_some(()));

    // 4: the merge is told, and nothing is closed by itself.
    let checkout = world.checkout();
    let forge = world.run(&["forge", "url"]).stdout;
    world.git_in(&checkout, &["push", "-q", forge.trim(), "claude/fix-thing-1:main"]);
    terminal.types("is it merged");
    world.wait_for("the merge", || {
        api.was_told(&format!("PR #{pr} merged! Should I close issue #1?")).then_some(())
    });
    assert_eq!(world.issue(1)["state"], "open");

    // 5: the person's word closes it.
    terminal.types("yes, close it");
    world.wait_for("the issue to be closed", || (world.issue(1)["state"] == "closed").then_some(()));
    world.wait_for("the file to be gone", || claim(&world).is_none().then_some(()));
}
