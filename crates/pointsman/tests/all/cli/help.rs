//! Help, completions, manual pages, and colours.

use super::environment::{Environment, finish, names};

#[test]
fn help_teaches_with_examples_and_exit_codes() {
    let environment = Environment::empty();
    let help = environment.run(&["--help"]);
    for text in ["pointsman init", "Exit codes: 0 done", "merge-queue", "-C <DIR>"] {
        assert!(help.ok().stdout.contains(text), "{text} is missing in {}", help.stdout);
    }
    assert!(!help.stdout.contains("rehearsal"), "hidden commands stay hidden");
    for verb in [
        "task",
        "session",
        "forge",
        "events",
        "init",
        "up",
        "phase",
        "doctor",
        "agents",
        "signals",
        "checkpoint",
        "gauge",
    ] {
        let help = environment.run(&[verb, "--help"]);
        assert!(help.ok().stdout.contains("Example"), "{verb} has no example");
    }
}

#[test]
fn wrong_usage_is_2() {
    let environment = Environment::empty();
    for args in [
        &["dance"][..],
        &["task", "show", "one"],
        &["--project", "Not A Name", "status"],
        &["forge", "pr", "review", "1"],
        &["forge", "pr", "review", "1", "--approve", "--request-changes"],
        &["session", "stop"],
        &["ack", "seven"],
    ] {
        environment.run(args).code(2);
    }
}

#[test]
fn completions_and_manual_pages_are_made() {
    let environment = Environment::empty();
    for shell in ["bash", "zsh", "fish"] {
        assert!(environment.run(&["completions", shell]).ok().stdout.contains("merge-queue"), "{shell}");
    }
    assert!(environment.run(&["man"]).ok().stdout.contains(".TH pointsman"));
    let dir = environment.path("man");
    environment.run(&["man", dir.to_str().unwrap()]).ok();
    let pages = names(&dir);
    assert!(pages.contains(&"pointsman.1".to_owned()) && pages.len() > 10, "{pages:?}");
}

#[test]
fn a_pipe_gets_no_colours_unless_they_are_asked_for() {
    let environment = Environment::with_project();
    let coloured = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = environment.command(args);
        command.envs(variables.iter().copied());
        finish(command, b"").ok().stdout.contains('\u{1b}')
    };
    assert!(!coloured(&["status"], &[]));
    assert!(coloured(&["status"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&["status", "--no-color"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&["status"], &[("NO_COLOR", "1")]));
}
