//! Gates that do not behave: what they started goes with them.

use std::fs;
use std::path::Path;

use super::Rig;

/// Starts children that outlive it, in sessions of their own and not, writes down who they are, and never ends.
const FORKS: &str = "sleep 1000 & echo $! >> \"$HOME/pids\"; (sleep 1000 & echo $! >> \"$HOME/pids\"); \
                     echo $$ >> \"$HOME/pids\"; wait; sleep 1000";

fn pids(rig: &Rig) -> Vec<String> {
    let text = fs::read_to_string(rig.daemon.path("home/pids")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A process that is gone, or dead and not yet buried.
fn is_gone(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with(['Z', 'X']))
}

#[track_caller]
fn wait_gone(rig: &Rig, pids: &[String]) {
    rig.daemon
        .wait_for("all processes of the gate to be gone", || pids.iter().all(|p| is_gone(p)).then_some(()));
}

#[test]
fn e2e_queue_a_gate_that_never_ends_is_ended_with_all_it_started() {
    let rig = Rig::new(FORKS, &["--gate-timeout", "1s"]);
    rig.serve();
    rig.enter("one");
    // Red twice, and main is no better: nobody is blamed, nothing lands.
    rig.daemon.wait_for("main to be found red", || rig.daemon.log_lines("main itself is red"));
    let started = pids(&rig);
    assert!(started.len() >= 9, "two runs of the branch and one of main at least: {started:?}");
    wait_gone(&rig, &started);
    assert_eq!(rig.main_log(), ["Open the shop"]);
}

#[test]
fn e2e_queue_a_gate_is_ended_when_the_queue_stops_and_runs_again_after() {
    let rig = Rig::new(FORKS, &[]);
    rig.serve();
    rig.enter("one");
    let started = || (pids(&rig).len() == 3).then_some(());
    rig.daemon.wait_for("the gate to be started", started);
    rig.wait("one", "testing");
    rig.daemon.stop_daemon();
    wait_gone(&rig, &pids(&rig));
    assert_eq!(rig.entry("one")["status"], "testing");
    rig.serve();
    rig.daemon.wait_for("the gate to be started again", || (pids(&rig).len() == 6).then_some(()));
    // Killed, it can end nothing: the next one does.
    let left = pids(&rig);
    rig.restart();
    wait_gone(&rig, &left);
    rig.daemon.wait_for("the gate to be started again", || (pids(&rig).len() == 9).then_some(()));
    let last = pids(&rig);
    rig.daemon.stop_daemon();
    wait_gone(&rig, &last);
}

#[test]
fn e2e_queue_a_gate_that_nobody_needs_any_more_is_ended() {
    let rig = Rig::new(FORKS, &[]);
    rig.serve();
    rig.enter("one");
    rig.daemon.wait_for("the gate to be started", || (pids(&rig).len() == 3).then_some(()));
    rig.json(&["remove", "one"]);
    wait_gone(&rig, &pids(&rig));
}

#[test]
fn e2e_queue_a_gate_finds_a_clean_checkout_and_no_secret() {
    let gate = "env > \"$HOME/env\"; git status --porcelain > \"$HOME/status\"; git remote >> \"$HOME/status\"; pwd > \"$HOME/pwd\"";
    let rig = Rig::new(gate, &[]);
    rig.serve_with(&[("CODEBERG_TOKEN", "secret-of-the-daemon")]);
    rig.enter("one");
    rig.wait("one", "landed");
    let read = |name: &str| fs::read_to_string(rig.daemon.path("home").join(name)).unwrap();
    assert_eq!(read("status"), "origin\n", "no file is changed, and origin is there to be read");
    assert!(!read("env").contains("secret-of-the-daemon"), "{}", read("env"));
    assert!(read("env").contains("CI=true"), "{}", read("env"));
    let candidate = rig.entry("one")["candidate_sha"].as_str().unwrap().to_owned();
    assert!(read("env").contains(&format!("POINTSMAN_SHA={candidate}")), "{}", read("env"));
    assert!(!Path::new(read("pwd").trim()).exists(), "the checkout is gone");
}

/// Large files are not in git; `origin` of the checkout leads to them.
#[test]
fn e2e_queue_a_gate_finds_large_files_by_its_origin() {
    if std::process::Command::new("git")
        .args(["lfs", "version"])
        .output()
        .is_ok_and(|done| !done.status.success())
    {
        return pointsman_testkit::not_run("git-lfs", "git lfs is not installed");
    }
    // The hooks and filters are the user's; a checkout of the queue has none.
    let gate = "git lfs install --local && git lfs pull && cat src/large.bin > \"$HOME/seen\"";
    let rig = Rig::new(gate, &[]);
    rig.person(&["lfs", "install", "--local"]);
    rig.person(&["checkout", "--quiet", "-B", "wip", "origin/main"]);
    rig.person(&["lfs", "track", "*.bin"]);
    let text = "large ".repeat(2000);
    rig.push_on("large", "src/large.bin", &text);
    rig.person(&["lfs", "push", "--all", "origin"]);
    assert!(rig.git(&["show", "large:src/large.bin"]).starts_with("version https://git-lfs"), "a pointer");
    rig.serve();
    rig.add("large");
    rig.wait("large", "landed");
    assert_eq!(std::fs::read_to_string(rig.daemon.path("home/seen")).unwrap(), text);
}
