//! Small things that a new user meets on the first day: numbers, labels, mistakes in the command line, times.

use std::fs;

use super::environment::{Environment, finish};

#[test]
fn a_number_may_be_written_with_its_hash() {
    let environment = Environment::with_project();
    environment.run(&["forge", "issue", "create", "--title", "T", "--body", "B"]).ok();
    assert_eq!(environment.json(&["forge", "issue", "show", "#1"])["number"], 1);
    environment.run(&["task", "show", "#5"]).code(4).says("#5");
    environment.run(&["task", "show", "five"]).code(2).says("not a number such as 5 or #5");
}

#[test]
fn a_label_that_means_nothing_to_us_is_told() {
    let environment = Environment::with_project();
    let create = |label: &str| {
        environment.run(&["forge", "issue", "create", "--title", "T", "--body", "B", "--label", label])
    };
    create("bcklog").ok().says("ignores the label `bcklog`").says("backlog");
    assert!(!create("backlog").ok().stderr.contains("ignores the label"));
}

#[test]
fn a_mistake_in_the_command_line_is_json_where_json_is_wanted() {
    let environment = Environment::empty();
    for arguments in [["task", "shwo", "--json"], ["--json", "task", "--nonsense"]] {
        let answer = environment.run(&arguments);
        answer.code(2);
        let error: serde_json::Value = serde_json::from_str(&answer.stderr).unwrap();
        assert!(error["error"].as_str().is_some_and(|text| !text.is_empty()), "{answer:?}");
    }
    environment.run(&["task", "shwo"]).code(2).says("Usage");
    assert!(environment.run(&["--json", "--help"]).ok().stdout.contains("Usage"));
}

#[test]
fn an_unknown_kind_of_event_is_wrong_usage() {
    let environment = Environment::with_project();
    environment.run(&["events", "--kind", "phase_climed"]).code(2).says("phase_climed");
    environment.run(&["events", "--kind", "phase_claimed", "--kind", "project_added"]).ok();
    environment.run(&["signals", "--kind", "nonsense"]).code(2);
}

#[test]
fn merging_without_a_daemon_has_its_own_exit_code() {
    let environment = Environment::with_project();
    environment.run(&["forge", "pr", "merge", "1"]).code(5).says("pointsman up");
}

#[test]
fn a_time_zone_that_nobody_knows_is_an_error_with_its_line() {
    let environment = Environment::with_project();
    let file = environment.shop().join("pointsman.toml");
    let text = fs::read_to_string(&file).unwrap();
    let line = text.lines().count() + 3;
    fs::write(&file, format!("{text}\n[schedule]\ntimezone = \"Europe/Atlantis\"\n")).unwrap();
    environment
        .run(&["task", "list"])
        .code(6)
        .says(&format!("pointsman.toml:{line}"))
        .says("Europe/Atlantis");
}

#[test]
fn people_read_local_times_and_scripts_utc_and_no_line_ends_in_blanks() {
    let environment = Environment::with_project();
    let events = |extra: &[&str]| {
        let mut command = environment.command(&[&["events"], extra].concat());
        command.env("TZ", "JST-9");
        finish(command, b"")
    };
    let shown = events(&[]);
    assert!(shown.ok().stdout.contains(" +09:00"), "{shown:?}");
    let json = events(&["--json"]);
    let first: serde_json::Value = serde_json::from_str(json.ok().stdout.lines().next().unwrap()).unwrap();
    assert!(first["at"].as_str().unwrap().ends_with('Z'), "{first}");
    environment.run(&["forge", "issue", "create", "--title", "T", "--body", "B"]).ok();
    for arguments in [&["status"][..], &["forge", "issue", "list"], &["project", "list"], &["events"]] {
        let answer = environment.run(arguments);
        assert!(answer.ok().stdout.lines().all(|line| !line.ends_with(' ')), "{answer:?}");
    }
}

/// A `systemctl` that writes down what it was asked.
fn with_systemctl(environment: &Environment, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let dir = environment.path("bin");
    fs::create_dir_all(&dir).unwrap();
    fs::write(
        dir.join("systemctl"),
        format!("#!/bin/sh\necho \"$*\" >> {}/asked\n{script}\n", dir.display()),
    )
    .unwrap();
    fs::set_permissions(dir.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
}

fn run_with_systemctl(environment: &Environment, arguments: &[&str]) -> super::environment::Answer {
    let mut command = environment.command(arguments);
    let path = format!("{}:{}", environment.path("bin").display(), std::env::var("PATH").unwrap());
    command.env("PATH", path);
    finish(command, b"")
}

#[test]
fn a_service_is_installed_shown_and_removed() {
    let environment = Environment::with_project();
    with_systemctl(&environment, "exit 0");
    let unit = environment.path("home/.config/systemd/user/pointsman.service");
    run_with_systemctl(&environment, &["service", "install"]).ok().says("started it").says("enable-linger");
    let text = fs::read_to_string(&unit).unwrap();
    for line in ["KillMode=process", "Delegate=yes", "WantedBy=default.target"] {
        assert!(text.lines().any(|own| own == line), "{text}");
    }
    assert!(text.contains(&format!("POINTSMAN_STATE_DIR={}", environment.path("state").display())), "{text}");
    let status = run_with_systemctl(&environment, &["service", "status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status.ok().stdout).unwrap();
    assert_eq!((&status["installed"], &status["active"]), (&true.into(), &true.into()), "{status}");
    run_with_systemctl(&environment, &["service", "uninstall"]).ok();
    assert!(!unit.exists());
    let asked = fs::read_to_string(environment.path("bin/asked")).unwrap();
    for order in ["enable pointsman.service", "restart pointsman.service", "disable --now pointsman.service"]
    {
        assert!(asked.contains(&format!("--user {order}")), "{asked}");
    }
    run_with_systemctl(&environment, &["service", "uninstall"]).code(4);
}

#[test]
fn without_a_systemd_nothing_is_written_and_that_is_said() {
    let environment = Environment::with_project();
    with_systemctl(&environment, "echo 'Failed to connect to bus' >&2; exit 1");
    let answer = run_with_systemctl(&environment, &["service", "install"]);
    answer.code(7).says("Failed to connect to bus").says("pointsman up --detach");
    assert!(!environment.path("home/.config/systemd").exists());
}

#[test]
fn the_unit_is_one_that_systemd_accepts() {
    let environment = Environment::with_project();
    let unit = environment.run(&["service", "install", "--print"]).ok().stdout.clone();
    let file = environment.path("pointsman.service");
    fs::write(&file, unit).unwrap();
    let mut command = std::process::Command::new("systemd-analyze");
    command
        .args(["verify", "--user", "--man=no"])
        .arg(&file)
        .env("XDG_RUNTIME_DIR", environment.path("home"));
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!said.contains("pointsman.service"), "{said}");
        }
        Err(_) => pointsman_testkit::not_run("systemd-analyze", "only systemd knows what it accepts"),
    }
}

#[test]
fn a_daemon_is_replaced_and_down_says_that_nothing_runs() {
    let environment = Environment::with_project();
    environment.run(&["up", "--detach"]).ok();
    let first = environment.json(&["status"])["daemon"]["pid"].as_u64().unwrap();
    environment.run(&["up", "--replace"]).ok().says(&format!("process id {first} has stopped"));
    let second = environment.json(&["status"])["daemon"]["pid"].as_u64().unwrap();
    assert_ne!(first, second);
    let down = environment.run(&["down"]);
    assert!(down.ok().stderr.contains("No session is running"), "{down:?}");
    environment.run(&["up", "--replace"]).ok();
    environment.run(&["down"]).ok();
}
