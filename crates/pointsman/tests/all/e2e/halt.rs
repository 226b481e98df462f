//! `halt` and `resume`: what can spend stops within two seconds, its work is kept, and nothing starts until a person says so.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pointsman_adapters::process::{census, descendants, is_alive, is_stopped, start_time};
use pointsman_testkit::{TestDaemon, eventually};

use super::shop;

/// From the order to the moment at which nothing runs.
const HALTED_WITHIN: Duration = Duration::from_secs(2);

/// The first session works until it is ended; the second one finishes.
const AGENT: &str = r#"
read -r greeting
# Without a terminal every message is a turn of its own.
case $greeting in
*Merged*) echo PHASE:done > "$PHASE_FILE"; exit ;;
*"CI passed"*) exit ;;
esac
exec 9>> "$(dirname "$POINTSMAN_RESULT_FILE")/held"
case $POINTSMAN_SESSION in
*.1)
    echo half > src/half.txt
    trap '' HUP TERM
    setsid --fork bash -c 'while :; do sleep 0.05; done' > /dev/null 2>&1 < /dev/null
    touch "$(dirname "$POINTSMAN_RESULT_FILE")/busy"
    while :; do sleep 0.05; done ;;
esac
git add -A && git commit -qm "Add the rest" && git push -q origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do case $line in *Merged*) echo PHASE:done > "$PHASE_FILE" ;; esac; done
"#;

fn busy(daemon: &TestDaemon, issue: u64) -> PathBuf {
    let run = daemon.session_files(issue).join("run-1");
    daemon.wait_for("the agent to be busy", || run.join("busy").exists().then_some(()));
    run
}

/// Whether any of these does something.
fn at_work(pids: &[u32]) -> bool {
    pids.iter().any(|pid| {
        start_time(*pid).is_some_and(|started| is_alive(*pid, started) && !is_stopped(*pid, started))
    })
}

fn is_kept_until_resumed(mode: &str, runtime: &str, groups: &str) {
    let daemon = shop()
        .agent(AGENT)
        .set("agent.runtime", &format!("{runtime:?}"))
        .set("sandbox.mode", &format!("{mode:?}"))
        .daemon_env("POINTSMAN_CGROUPS", groups)
        .start();
    let issue = daemon.file_issue_with("Half", "Do it.");
    let run = busy(&daemon, issue);
    let working = census::working_on(&run);
    assert!(at_work(&working), "it works before: {working:?}");
    let began = Instant::now();
    let halted = daemon.json(&["halt"]);
    eventually("nothing to be at work", HALTED_WITHIN, || (!at_work(&working)).then_some(()));
    println!("{mode}, {runtime}, cgroups {groups}: halted after {:?}", began.elapsed());
    assert_eq!(halted["sessions"][0], format!("dev-shop-{issue}.1"), "{halted}");
    assert!(census::working_on(&run).is_empty(), "captured, then ended");
    assert!(!daemon.rescues().is_empty(), "the work is kept");
    assert!(daemon.json(&["status"])["halted"]["by"].is_string());
    // Another daemon starts nothing either.
    daemon.restart();
    let second = daemon.file_issue_with("Second", "Do it.");
    daemon.json(&["forge", "issue", "show", &second.to_string()]);
    let doctor = daemon.json(&["doctor"]);
    let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["id"] == "halted").unwrap();
    assert_eq!(check["status"], "warn", "{check}");
    assert!(!daemon.session_files(issue).join("launch-2.json").exists(), "no successor was prepared");
    assert_eq!(daemon.sessions(second).len(), 0);
    assert_eq!(daemon.json(&["resume"])["was_halted"], true);
    daemon.wait_closed(issue);
    assert_eq!(daemon.on_main("src/half.txt").unwrap(), "half", "the successor found the work");
}

#[test]
fn e2e_halt_in_a_terminal() {
    is_kept_until_resumed("auto", "tmux", "off");
}

#[test]
fn e2e_halt_without_a_terminal() {
    is_kept_until_resumed("auto", "headless", "off");
}

#[test]
fn e2e_halt_outside_the_sandbox() {
    is_kept_until_resumed("off", "tmux", "off");
}

#[test]
fn e2e_halt_with_control_groups() {
    is_kept_until_resumed("auto", "tmux", "on");
}

/// CI that hangs the first time.
const CI: &str = "#!/bin/bash\nif [ ! -e /tmp/MARK ]; then touch /tmp/MARK; exec 9< ci.sh; while :; do sleep 0.05; done; fi\n";

#[test]
fn e2e_halt_ends_ci_without_a_verdict_and_without_a_daemon_everything_is_only_stopped() {
    let mark = tempfile::NamedTempFile::new().unwrap();
    fs::remove_file(mark.path()).unwrap();
    let ci = CI.replace("/tmp/MARK", &mark.path().to_string_lossy());
    let daemon = shop().file("ci.sh", &ci).outside("CI leaves a mark for its second run");
    let daemon = daemon.daemon_env("POINTSMAN_CGROUPS", "off").start();
    let issue = daemon.file_issue("Apples", &super::clean("apples"));
    daemon.wait_for("CI to run", || mark.path().exists().then_some(()));
    let checkouts = daemon.state().join("projects/shop/checkouts");
    let working = census::working_on(&checkouts);
    daemon.json(&["halt"]);
    eventually("CI to be ended", HALTED_WITHIN, || (!at_work(&working)).then_some(()));
    daemon.json(&["resume"]);
    daemon.wait_closed(issue);
    let second = daemon.file_issue("Pears", "write src/pears.txt pears\nexpect never");
    let pid = daemon.wait_session(second, 1);
    // The process in front only waits.
    let agent = daemon.wait_for("the agent to run", || {
        let below: Vec<u32> = descendants(pid).iter().map(|process| process.pid).collect();
        (!below.is_empty()).then_some(below)
    });
    daemon.stop_daemon();
    let answer = daemon.run(&["halt"]);
    assert!(answer.stderr.contains("the next daemon captures and ends it"), "{}", answer.stderr);
    eventually("the session to be stopped", HALTED_WITHIN, || (!at_work(&agent)).then_some(()));
    // Programs that the launcher ran before the agent may have ended by themselves.
    assert!(agent.iter().any(|pid| start_time(*pid).is_some()), "it is not ended: nobody could capture it");
    daemon.run(&["resume"]);
    eventually("the session to go on", HALTED_WITHIN, || at_work(&agent).then_some(()));
}
