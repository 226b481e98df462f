//! Claude Code's settings and its status line.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::environment::{Environment, PATIENCE, finish, names};

const THEIRS: &str = "{\n  \"zeta\": true,\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \
    \"type\": \"command\",\n            \"command\": \"say done\"\n          }\n        ]\n      }\n    ]\n  },\n  \
    \"alpha\": 1\n}\n";

#[test]
fn what_is_installed_is_taken_out_exactly() {
    let environment = Environment::with_project();
    let dir = environment.shop().join(".claude");
    fs::create_dir_all(dir.join("commands")).unwrap();
    fs::write(dir.join("settings.json"), THEIRS).unwrap();
    fs::write(dir.join("commands/queue.md"), "mine").unwrap();
    for _ in 0..2 {
        environment.run(&["claude", "install", "--project"]).ok().says("queue.md belongs to somebody else");
    }
    let settings: Value = serde_json::from_slice(&fs::read(dir.join("settings.json")).unwrap()).unwrap();
    let commands = settings["hooks"].to_string();
    for words in ["hook on-stop", "hook on-idle", "hook session-start", "hook watch", "say done"] {
        assert_eq!(commands.matches(words).count(), 1, "{words}: {commands}");
    }
    assert_eq!(names(&dir.join("commands")), ["claim.md", "handoff.md", "queue.md", "status.md"]);
    environment.run(&["claude", "uninstall"]).ok();
    assert_eq!(fs::read_to_string(dir.join("settings.json")).unwrap(), THEIRS);
    assert_eq!(names(&dir.join("commands")), ["queue.md"]);
}

#[test]
fn a_users_own_settings_come_and_go_without_a_trace() {
    let environment = Environment::with_project();
    environment.run(&["claude", "install", "--user"]).ok();
    let settings = environment.path("home/.claude/settings.json");
    assert!(fs::read_to_string(&settings).unwrap().contains("hook on-stop"));
    environment.run(&["claude", "uninstall", "--user"]).ok();
    assert!(!environment.path("home/.claude").exists());
    assert!(!environment.shop().join(".claude/settings.json").exists());
}

#[test]
fn a_projects_settings_name_no_place_of_this_machine_and_keep_their_mode_and_their_link() {
    let environment = Environment::with_project();
    let dir = environment.shop().join(".claude");
    fs::create_dir_all(&dir).unwrap();
    let kept = environment.path("home/dotfiles.json");
    fs::write(&kept, "{\n    \"zeta\": true\n}\n").unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&kept, dir.join("settings.json")).unwrap();
    let answer = environment.run(&["claude", "install"]);
    answer.ok().says("not on your PATH").says("claude install --permissions");
    let text = fs::read_to_string(&kept).unwrap();
    assert!(text.contains("\"pointsman hook on-stop\"") && !text.contains("/pointsman"), "{text}");
    assert!(text.starts_with("{\n    \"zeta\": true,\n    \"hooks\""), "{text}");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(dir.join("settings.json").is_symlink(), "the link stays");
    assert!(!text.contains("permissions"), "nothing is allowed that nobody asked for");
    environment.run(&["claude", "install", "--permissions"]).ok();
    assert!(fs::read_to_string(&kept).unwrap().contains("Bash(pointsman handoff:*)"));
    environment.run(&["claude", "uninstall"]).ok();
    assert_eq!(fs::read_to_string(&kept).unwrap(), "{\n    \"zeta\": true\n}\n");
    fs::remove_file(&kept).unwrap();
    environment.run(&["claude", "install"]).code(3).says("leads nowhere");
}

#[test]
fn the_plugin_has_a_page_of_its_own_that_names_its_commands() {
    let plugin = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugin"));
    let page = fs::read_to_string(plugin.join("README.md")).unwrap();
    for file in names(&plugin.join("commands")) {
        let command = format!("`/{}`", file.trim_end_matches(".md"));
        assert!(page.contains(&command), "{command} is missing");
    }
}

#[test]
fn a_watch_ends_with_the_program_it_watches_for() {
    let environment = Environment::with_project();
    environment.run(&["forge", "issue", "create", "--title", "Fix thing"]).ok();
    environment.run(&["claim", "1", "--branch", "claude/x"]).ok();
    environment.git(&["switch", "-q", "-c", "claude/x"]);
    environment.git(&["commit", "-q", "--allow-empty", "-m", "Work"]);
    environment.run(&["handoff", "--summary", "Fix it"]).ok();
    environment.run_with_input(&["hook", "on-stop"], b"{}").ok();
    // As Claude does it: the hook is the child of a shell, and the shell outlives a killed Claude.
    let claude = environment.path("home/claude");
    std::os::unix::fs::symlink("/bin/bash", &claude).unwrap();
    let script =
        format!("sh -c '\"{}\" hook watch < /dev/null; true' & wait", env!("CARGO_BIN_EXE_pointsman"));
    let started = environment.command(&[]);
    let mut session = std::process::Command::new(&claude);
    session.args(["-c", &script]).current_dir(environment.shop()).env_clear();
    session.envs(started.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut session = session.spawn().unwrap();
    let file = environment.shop().join(".agent-claim.json");
    let watcher = || -> Option<u64> {
        let claim: Value = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
        claim["watch_pid"].as_u64()
    };
    let pid = pointsman_testkit::eventually("the watch to begin", PATIENCE, watcher);
    let there = || std::path::Path::new(&format!("/proc/{pid}/exe")).exists();
    assert!(there());
    session.kill().unwrap();
    session.wait().unwrap();
    pointsman_testkit::eventually("the watch to end", PATIENCE, || (!there()).then_some(()));
    // What happens from now on is told to the next one.
    let sha = environment.git(&["rev-parse", "HEAD"]);
    environment.run(&["forge", "status", "set", &sha, "--context", "ci", "--state", "success"]).ok();
    finish(environment.command(&["hook", "watch"]), b"{}").code(2).says("CI passed!");
}

#[test]
fn broken_settings_are_left_alone() {
    let environment = Environment::with_project();
    let dir = environment.shop().join(".claude");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("settings.json"), "{ // mine\n}").unwrap();
    environment.run(&["claude", "install"]).code(3).says("not JSON");
    assert_eq!(fs::read_to_string(dir.join("settings.json")).unwrap(), "{ // mine\n}");
    assert!(!dir.join("commands").exists());
}

#[test]
fn the_plugin_has_the_hooks_that_install_writes() {
    let environment = Environment::with_project();
    environment.run(&["claude", "install"]).ok();
    let installed = fs::read_to_string(environment.shop().join(".claude/settings.json")).unwrap();
    let installed: Value = serde_json::from_str(&installed).unwrap();
    let plugin = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugin/hooks/hooks.json");
    let plugin: Value = serde_json::from_slice(&fs::read(plugin).unwrap()).unwrap();
    assert_eq!(installed["hooks"], plugin["hooks"]);
}

#[test]
fn a_status_line_shows_the_claim_and_never_fails() {
    let environment = Environment::with_project();
    environment.run(&["forge", "issue", "create", "--title", "Fix thing"]).ok();
    environment.run(&["claim", "1"]).ok();
    let input = json!({
        "workspace": { "project_dir": environment.shop() },
        "context_window": { "used_percentage": 43 }, "cost": { "total_cost_usd": 1.27 },
    });
    let shown = environment.run_with_input(&["statusline"], input.to_string().as_bytes());
    shown.ok().prints("shop · #1 coding · claude/fix-thing-1 · ctx 43% · $1.27\n");
    for input in ["", "{", "[]", "{\"cost\": 7}"] {
        environment.run_with_input(&["statusline"], input.as_bytes()).ok();
    }
    let mut inside = environment.command(&["statusline"]);
    inside.env("POINTSMAN_SESSION", "dev-shop-1.1");
    finish(inside, input.to_string().as_bytes()).ok().prints("shop #1 (no daemon) · ctx 43% · $1.27\n");
}

#[test]
fn an_idle_session_is_woken_once_for_each_piece_of_news() {
    let environment = Environment::with_project();
    environment.run(&["forge", "issue", "create", "--title", "Fix thing"]).ok();
    environment.run(&["claim", "1", "--branch", "claude/x"]).ok();
    let watch = || finish(environment.command(&["hook", "watch"]), b"{}");
    watch().ok().prints("");
    environment.git(&["switch", "-q", "-c", "claude/x"]);
    environment.git(&["commit", "-q", "--allow-empty", "-m", "Work"]);
    environment.run(&["handoff", "--summary", "Fix it"]).ok();
    environment.run_with_input(&["hook", "on-stop"], b"{}").ok();
    let sha = environment.git(&["rev-parse", "HEAD"]);
    environment.run(&["forge", "status", "set", &sha, "--context", "ci", "--state", "success"]).ok();
    watch().code(2).says("CI passed! All 1 checks green.");
    environment.git(&["push", "-q", "pointsman", "claude/x:main"]);
    watch().code(2).says("PR #2 merged! Should I close issue #1?");
    // Told already: it would stay beside the session; a claim that is gone ends it.
    let file = environment.shop().join(".agent-claim.json");
    let claim = fs::read_to_string(&file).unwrap();
    assert!(claim.contains("last_told"), "{claim}");
    fs::remove_file(&file).unwrap();
    watch().ok().prints("");
}

const TOKEN: &str = "sk-ant-oat01-nightingale-0123456789abcdef";

#[test]
fn a_login_is_kept_for_the_daemon_alone_and_forgotten_again() {
    let environment = Environment::with_project();
    let kept = environment.path("state/claude-login");
    for no_token in ["", "  \n", "two words\n", "one\ntwo\n"] {
        let answer = environment.run_with_input(&["claude", "login"], no_token.as_bytes());
        answer.code(3).says("this is not a token").says("claude setup-token");
        assert!(!kept.exists(), "{no_token:?}");
    }
    let answer = environment.run_with_input(&["claude", "login"], format!("{TOKEN}\n").as_bytes());
    answer.ok().prints("").says("cannot see it");
    assert!(!answer.stderr.contains("nightingale"), "{answer:?}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), TOKEN);
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    let mut command = environment.command(&["claude", "login", "--json"]);
    command.env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-another");
    let answer = finish(command, TOKEN.as_bytes());
    let said: Value = serde_json::from_str(&answer.ok().stdout).unwrap();
    assert_eq!(said, json!({ "kept": true, "variable": "CLAUDE_CODE_OAUTH_TOKEN" }));
    environment.run(&["claude", "logout"]).ok().says("revoke it");
    assert!(!kept.exists());
    environment.run(&["claude", "logout"]).ok().says("No token was stored");
    // Nobody logs in on behalf of a person.
    let mut inside = environment.command(&["claude", "login"]);
    inside.env("POINTSMAN_SESSION", "dev-shop-1.1");
    let answer = finish(inside, TOKEN.as_bytes());
    assert!(answer.code != Some(0) && !kept.exists(), "{answer:?}");
}

#[test]
fn without_a_login_init_up_and_doctor_say_so_until_there_is_one() {
    if !crate::e2e::sandbox_works() {
        return;
    }
    const MISSING: &str = "no login for Claude is known here, so no session of Claude starts";
    let environment = Environment::with_repository();
    let init = environment.run(&["init", "--yes"]);
    init.ok().says(MISSING).says("pointsman claude login");
    let check = || {
        let answer = environment.run(&["doctor", "--quick", "--json"]);
        let report: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{answer:?}"));
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == "claude_login").cloned().unwrap_or_default()
    };
    let missing = check();
    assert_eq!(missing["status"], "warn", "{missing}");
    assert!(
        missing.to_string().contains(MISSING) && missing.to_string().contains("claude login"),
        "{missing}"
    );
    environment.run(&["up", "--detach"]).ok().says(MISSING);
    environment.run(&["down"]).ok();
    environment.run_with_input(&["claude", "login"], TOKEN.as_bytes()).ok();
    let found = check();
    assert_eq!(found["status"], "ok", "{found}");
    assert!(
        found.to_string().contains("pointsman claude login") && !found.to_string().contains("nightingale")
    );
    let up = environment.run(&["up", "--detach"]);
    assert!(!up.ok().stderr.contains(MISSING), "{up:?}");
    environment.run(&["down"]).ok();
    // An agent that the relay does not know needs none.
    let other = Environment::with_repository();
    let init = other.run(&["init", "--yes", "--agent", "./agent.sh"]);
    assert!(!init.ok().stderr.contains(MISSING), "{init:?}");
}
