//! Ways out of the sandbox that were open once: programs of a branch that only seem to be something else, and repositories that
//! lead to others. `scripts/test-attacks` runs these too.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use pointsman_testkit::TestDaemon;

use super::{clean, sandbox_works, shop};

const CANARY: &str = "canary of the operator";

fn write_program(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A world whose CI is what `make` puts in place of the program, given the place and a file in the home.
fn with_ci(make: impl FnOnce(&Path, &Path)) -> TestDaemon {
    let daemon = shop().set("sandbox.mode", "\"require\"").build();
    let canary = daemon.path("home/private/canary");
    fs::create_dir(canary.parent().unwrap()).unwrap();
    fs::write(&canary, CANARY).unwrap();
    let program = daemon.checkout().join("ci.sh");
    fs::remove_file(&program).unwrap();
    make(&program, &canary);
    daemon.start();
    commit_on_main(&daemon, "ci.sh");
    daemon
}

/// Commits a file of the checkout and brings it to the forge.
fn commit_on_main(daemon: &TestDaemon, file: &str) {
    daemon.git_in(&daemon.checkout(), &["add", file]);
    daemon.git_in(&daemon.checkout(), &["commit", "--quiet", "--message=Change it"]);
    daemon.json(&["sync"]);
}

/// The log of a run of CI, once it says this.
fn log_that_says(daemon: &TestDaemon, text: &str) -> String {
    let issue = daemon.file_issue("Apples", &clean("apples"));
    daemon.wait_for(text, || {
        let log = daemon.run(&["ci", "logs", &issue.to_string()]).stdout;
        log.contains(text).then_some(log)
    })
}

#[test]
fn e2e_attack_a_script_that_seems_to_lack_its_interpreter_runs_inside() {
    if !sandbox_works() {
        return;
    }
    // What stands behind `-u` is no program: env goes on to `sh`. Whoever takes it for the interpreter finds none.
    let daemon = with_ci(|program, canary| {
        let canary = canary.display();
        write_program(
            program,
            &format!("#!/usr/bin/env -S -u no-such-program sh\ncat '{canary}'\necho 'end of the CI'\n"),
        );
    });
    let log = log_that_says(&daemon, "end of the CI");
    assert!(!log.contains(CANARY), "{log}");
}

#[test]
fn e2e_attack_a_link_in_place_of_the_ci_program_shows_nothing_beside_its_target() {
    if !sandbox_works() {
        return;
    }
    let daemon = with_ci(|program, canary| {
        let target = canary.with_file_name("target.sh");
        write_program(&target, &format!("#!/bin/sh\ncat '{}'\n", canary.display()));
        symlink(&target, program).unwrap();
    });
    let log = log_that_says(&daemon, "cannot start");
    assert!(!log.contains(CANARY), "{log}");
}

#[test]
fn e2e_attack_a_gateway_that_leads_to_another_repository_pushes_nothing_of_it() {
    if !sandbox_works() {
        return;
    }
    let agent = r#"
read -r greeting
gateway=$(git remote get-url origin)
. ./targets
for part in $parts; do rm -rf "$gateway/objects/$part"; ln -s "$secret/.git/objects/$part" "$gateway/objects/$part"; done
mkdir -p "$(dirname "$gateway/refs/heads/$POINTSMAN_BRANCH")"
echo "$commit" > "$gateway/refs/heads/$POINTSMAN_BRANCH"
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do :; done
"#;
    let daemon = shop().agent(agent).set("sandbox.mode", "\"require\"").build();
    let secret = daemon.path("home/secret");
    fs::create_dir(&secret).unwrap();
    daemon.git_in(&secret, &["init", "--quiet"]);
    fs::write(secret.join("key"), CANARY).unwrap();
    daemon.git_in(&secret, &["add", "key"]);
    daemon.git_in(&secret, &["commit", "--quiet", "--message=Secret"]);
    let commit = daemon.git_in(&secret, &["rev-parse", "HEAD"]).trim().to_owned();
    let parts = fs::read_dir(secret.join(".git/objects")).unwrap();
    let parts = parts.map(|part| part.unwrap().file_name().into_string().unwrap());
    let parts: Vec<String> = parts.filter(|part| part.len() == 2).collect();
    let targets = format!("secret='{}'\ncommit={commit}\nparts='{}'\n", secret.display(), parts.join(" "));
    fs::write(daemon.checkout().join("targets"), targets).unwrap();
    daemon.start();
    commit_on_main(&daemon, "targets");
    let issue = daemon.file_issue_with("Probe", "Please.");
    daemon.wait_for("the daemon to look at the gateway", || {
        let text = daemon.run(&["task", "explain", &issue.to_string()]).stdout;
        text.contains("git fetch").then_some(())
    });
    assert_eq!(daemon.pull_requests().len(), 0);
    for repository in ["mirror.git", "captures.git"] {
        let dir = daemon.state().join("projects/shop").join(repository);
        let objects = daemon.git_in(&dir, &["cat-file", "--batch-all-objects", "--batch-check"]);
        assert!(!objects.contains(&commit), "{repository}");
    }
}
