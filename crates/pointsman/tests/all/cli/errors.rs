//! What goes wrong is said with an exit code, a line, and what to do.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use super::environment::{Environment, finish};

#[test]
fn outside_a_project_it_tells_how_to_begin() {
    let environment = Environment::with_repository();
    for args in
        [&["task", "list"][..], &["forge", "issue", "list"], &["config", "show"], &["merge-queue", "list"]]
    {
        environment
            .run(args)
            .code(4)
            .says("error: there is no pointsman.toml")
            .says("hint: run `pointsman init`");
    }
    assert!(!environment.path("state").exists(), "looking makes nothing");
}

#[test]
fn an_unknown_key_is_shown_with_its_line() {
    let environment = Environment::with_project();
    environment.write("pointsman.toml", "name = \"shop\"\n\n[ci]\ncomand = [\"./ci.sh\"]\n");
    for args in
        [&["task", "list"][..], &["up"], &["up", "--detach"], &["status"], &["forge", "issue", "list"]]
    {
        environment.run(args).code(6).says("pointsman.toml:4:1").says("comand").prints("");
    }
    let doctor = environment.run(&["doctor", "--json"]);
    let checks: Value = serde_json::from_str(&doctor.code(1).stdout).unwrap();
    let config = checks["checks"].as_array().unwrap().iter().find(|check| check["id"] == "config").unwrap();
    assert_eq!(config["status"], "fail");
}

#[test]
fn a_role_that_does_not_exist_is_wrong_usage_and_the_roles_are_named() {
    let environment = Environment::with_project();
    for args in [
        &["roles", "look", "gardner"][..],
        &["roles", "resume", "gardner"],
        &["journal", "--role", "gardner"],
    ] {
        environment.run(args).code(2).says("gardner").says("gardener, supervisor, planner").prints("");
    }
    environment.run(&["journal", "--role", "gardener"]).ok();
}

#[test]
fn what_an_agent_can_do_follows_from_its_kind_and_not_from_its_name() {
    let environment = Environment::with_project();
    for (agent, hooks) in [
        ("command = [\"./wrapper\"]", false),
        ("command = [\"./wrapper\"]\nkind = \"claude\"", true),
        ("command = [\"claude\"]", true),
        ("command = [\"claude\"]\nkind = \"program\"", false),
    ] {
        environment.write("pointsman.toml", &format!("name = \"shop\"\n\n[agent]\n{agent}\n"));
        environment.run(&["project", "add", "."]).ok();
        let doctor: Value = serde_json::from_str(&environment.run(&["doctor", "--json"]).stdout).unwrap();
        let checks = doctor["checks"].as_array().unwrap();
        assert_eq!(checks.iter().any(|check| check["id"] == "hooks"), hooks, "{agent}");
    }
    environment.write("pointsman.toml", "name = \"shop\"\n\n[agent]\nkind = \"claud\"\n");
    environment.run(&["config", "show"]).code(6).says("pointsman.toml:4").says("claude");
}

#[test]
fn what_needs_the_daemon_says_so() {
    let environment = Environment::with_project();
    environment.run(&["down"]).code(5).says("hint: pointsman up");
    environment.run(&["session", "send", "1", "hello"]).code(5);
    environment.run(&["status"]).ok();
    assert!(environment.json(&["status"])["daemon"].is_null());
}

#[test]
fn what_does_not_exist_is_4() {
    let environment = Environment::with_project();
    for args in [
        &["task", "show", "7"][..],
        &["task", "explain", "7"],
        &["task", "start", "7"],
        &["session", "logs", "7"],
        &["session", "attach", "7"],
        &["session", "stop", "7"],
        &["ack", "m-7"],
        &["project", "remove", "other"],
        &["project", "add", "/nowhere"],
        &["--project", "other", "task", "list"],
        &["-C", "/nowhere", "status"],
    ] {
        environment.run(args).code(4).prints("");
    }
}

#[test]
fn lists_without_content_are_empty_arrays() {
    let environment = Environment::with_project();
    for args in [
        &["task", "list"][..],
        &["session", "list"],
        &["merge-queue", "list"],
        &["mq", "history"],
        &["rescue", "list"],
        &["forge", "issue", "list"],
    ] {
        assert_eq!(environment.json(args), serde_json::json!([]), "{args:?}");
    }
    environment.run(&["events", "--json", "--since", "0"]).ok();
}

#[test]
fn with_json_an_error_is_json_on_standard_error() {
    let environment = Environment::with_project();
    let answer = environment.run(&["task", "show", "7", "--json"]);
    answer.code(4).prints("");
    let error: Value = serde_json::from_str(&answer.stderr).unwrap();
    assert!(error["error"].as_str().unwrap().contains("#7"));
    assert!(error["hint"].is_string());
}

/// A clone of a stranger is looked at, and nothing that it names is run or asked.
#[test]
fn nothing_of_a_configuration_is_used_before_somebody_registers_it() {
    let environment = Environment::with_repository();
    let ran = environment.path("ran");
    let command = format!("[\"touch\", \"{}\"]", ran.display());
    environment.write(
        "pointsman.toml",
        &format!(
            "name = \"by-hand\"\n[forge]\nkind = \"forgejo\"\nurl = \"http://127.0.0.1:9\"\nrepo = \"a/b\"\n\
             token_command = {command}\n[ci]\ncommand = {command}\n[matrix]\ntoken_command = {command}\n"
        ),
    );
    fs::create_dir(environment.shop().join("deep")).unwrap();
    environment.run(&["-C", "deep", "task", "list"]).code(4).says("is not registered").says("project add");
    for command in [
        &["status"][..],
        &["doctor"],
        &["health"],
        &["config", "show"],
        &["inbox"],
        &["agents"],
        &["forge", "issue", "list"],
    ] {
        let answer = environment.run(command);
        assert!(answer.code != Some(101), "{answer:?}");
    }
    let start = format!("{{\"cwd\": \"{}\", \"session_id\": \"s\"}}", environment.shop().display());
    for event in ["session-start", "on-stop", "on-idle"] {
        environment.run_with_input(&["hook", event], start.as_bytes());
    }
    assert!(!ran.exists(), "a command of the file was run");
    assert_eq!(environment.json(&["project", "list"]), serde_json::json!([]));
    environment.write("pointsman.toml", "name = \"by-hand\"\n[ci]\ncommand = [\"./ci.sh\"]\n");
    let added = environment.run(&["-C", "deep", "project", "add", ".."]);
    added.ok().says("It runs:").says("ci.command = [\"./ci.sh\"]").says("agent.command = [\"claude\"");
    assert_eq!(environment.json(&["project", "list"])[0]["name"], "by-hand");
    environment.run(&["-C", "/", "forge", "url"]).ok();
    environment.run(&["project", "remove", "by-hand"]).ok();
    environment.run(&["status"]).ok();
    environment.run(&["-C", "deep", "task", "list"]).code(4);
    assert_eq!(environment.json(&["project", "list"]), serde_json::json!([]), "it stays removed");
}

#[test]
fn a_changed_command_waits_until_somebody_accepts_it() {
    let environment = Environment::with_repository();
    environment.write("pointsman.toml", "name = \"shop\"\n");
    environment.run(&["project", "add", "."]).ok();
    environment.write(
        "pointsman.toml",
        "name = \"shop\"\ntiming.ci_timeout = \"7m\"\nreview.mode = \"none\"\nlimits.restarts = 1\n",
    );
    environment.run(&["task", "list"]).ok().says("1 changed setting waits for your approval");
    let shown = environment.run(&["config", "show", "--origin"]);
    shown.ok();
    let line = |key: &str| shown.stdout.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("timing.ci_timeout").contains("\"7m\""), "{}", line("timing.ci_timeout"));
    assert!(line("limits.restarts").contains("= 1 "), "{}", line("limits.restarts"));
    let mode = line("review.mode");
    assert!(mode.contains("\"human\"") && mode.contains("waits for your approval"), "{mode}");
    environment.run(&["project", "add", "."]).ok().says("review.mode: \"human\" → \"none\"");
    let after = environment.run(&["config", "show"]);
    assert!(
        after.ok().stdout.contains("review.mode = \"none\"") && !after.stderr.contains("waits"),
        "{after:?}"
    );
}

#[test]
fn a_copy_of_the_configuration_does_not_take_the_project_over() {
    let environment = Environment::with_project();
    environment.commit();
    environment.git(&["clone", "-q", ".", "../copy"]);
    let answer = environment.run(&["-C", "../copy", "task", "list"]);
    answer.ok().says("is registered with");
    let projects = environment.json(&["project", "list"]);
    assert!(projects[0]["config_path"].as_str().unwrap().ends_with("/shop/pointsman.toml"), "{projects}");
    // A checkout that has moved is registered anew.
    fs::rename(environment.shop(), environment.path("moved")).unwrap();
    fs::create_dir(environment.shop()).unwrap();
    environment.run(&["-C", "../moved", "task", "list"]).code(4).says("project add");
    environment.run(&["-C", "../moved", "project", "add", "."]).ok();
    let projects = environment.json(&["project", "list"]);
    assert!(projects[0]["config_path"].as_str().unwrap().ends_with("/moved/pointsman.toml"), "{projects}");
}

#[test]
fn the_environment_names_the_configuration() {
    let environment = Environment::with_repository();
    fs::write(environment.shop().join("other.toml"), "name = \"other\"\n").unwrap();
    let mut command = environment.command(&["config", "show", "--origin"]);
    command.env("POINTSMAN_CONFIG", environment.shop().join("other.toml"));
    let answer = finish(command, b"");
    assert!(answer.ok().stdout.contains("name = \"other\""), "{answer:?}");
    assert!(answer.stdout.contains("other.toml:1"), "{answer:?}");
    assert!(answer.stdout.contains("timing.review_timeout = \"3h\"  # default"), "{answer:?}");
    let mut command = environment.command(&["status"]);
    command.env("POINTSMAN_CONFIG", "/nowhere/pointsman.toml");
    finish(command, b"").code(6).says("/nowhere/pointsman.toml");
}

#[test]
fn a_missing_tmux_is_said_before_anything_is_lost() {
    let environment = Environment::with_repository();
    let programs = environment.path("programs");
    fs::create_dir(&programs).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.exists()).unwrap();
    symlink(git, programs.join("git")).unwrap();
    let run = |args: &[&str]| {
        let mut command = environment.command(args);
        command.env("PATH", &programs);
        finish(command, b"")
    };
    run(&["init", "--yes"]).ok().says("tmux is missing");
    run(&["forge", "issue", "create", "--title", "Kept"]).ok();
    run(&["up"]).code(1).says("tmux is not installed").says("hint: install tmux");
    run(&["up", "--detach"]).code(1).says("tmux is not installed");
    run(&["doctor"]).code(1);
    assert_eq!(environment.json(&["forge", "issue", "list"])[0]["title"], "Kept");
}

#[test]
fn a_doctor_tells_what_is_wrong_and_how_to_fix_it() {
    let environment = Environment::with_project();
    let mut command = environment.command(&["doctor", "--json"]);
    command.env("POINTSMAN_RUNTIME_DIR", environment.path(&"x".repeat(120)));
    let answer = finish(command, b"");
    let value: Value = serde_json::from_str(&answer.code(1).stdout).unwrap();
    let checks = value["checks"].as_array().unwrap();
    for check in checks {
        for field in ["id", "status", "detail", "fix"] {
            assert!(check.get(field).is_some(), "{field} is missing in {check}");
        }
    }
    let find = |id: &str| checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id}"));
    assert_eq!(find("runtime_dir")["status"], "fail");
    assert!(find("runtime_dir")["fix"].as_str().unwrap().contains("POINTSMAN_RUNTIME_DIR"));
    for id in ["git", "tmux", "tmux_server", "pidfd", "state_dir", "database", "config", "forge", "phase_dir"]
    {
        assert_eq!(find(id)["status"], "ok", "{id}");
    }
}
