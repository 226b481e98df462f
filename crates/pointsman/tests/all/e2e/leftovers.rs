//! Nothing outlives its session: ten ways to detach, in a terminal and without one, after a crash, a stop, a restart, a hand-over,
//! a halt and the end of the tmux server.
//!
//! Three things can hold the processes of a session together, and each is tried alone: a control group, the pid namespace of a
//! sandbox, and a launcher that adopts orphans. The tests say by name which one they tried.

use std::time::Duration;

use pointsman_adapters::process::{census, cgroup};
use pointsman_adapters::sandbox::Bubblewrap;
use pointsman_testkit::{TestDaemon, eventually, not_run};

use super::shop;

/// After the end of a session nothing of it may run for longer.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// Ten processes that try to stay, each with a file of this generation open, by which the test knows them. The first generation
/// then does what the issue says; the second one waits.
const AGENT: &str = r#"
read -r greeting
run=$(dirname "$POINTSMAN_RESULT_FILE")
exec 9>> "$run/held"
case $POINTSMAN_SESSION in *.1) ;; *) while read -r line; do :; done; exit ;; esac
quiet() { "$@" > /dev/null 2>&1 < /dev/null; }
quiet setsid sleep 1001 &
(quiet sleep 1002 &)
quiet nohup sleep 1003 &
(set -m; quiet sleep 1004 & disown -a)
(exec -a '[kworker/0:1]' sleep 1005 > /dev/null 2>&1 < /dev/null &)
quiet setsid bash -c 'trap "" HUP INT QUIT TERM USR1; while :; do sleep 0.1; done' &
quiet env -i setsid --fork /bin/sleep 1007
(cd /; quiet env -i setsid --fork /bin/bash -c 'trap "" HUP TERM; exec /bin/sleep 1008')
quiet setsid --fork bash -c 'while :; do (sleep 0.3 &); sleep 0.05; done'
trap 'setsid --fork sleep 1010 > /dev/null 2>&1 < /dev/null' EXIT HUP TERM
touch "$run/detached"
case $(cat "$POINTSMAN_INBOX/0000-task.md") in
    *crashes*) kill -9 $$ ;;
    *exits*) exit 1 ;;
    *"hands over"*) PROGRAM gauge --context 0.95; touch "$run/full" ;;
esac
while :; do read -r line || sleep 1; done
"#;

/// The thing that holds the processes of a session together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    ControlGroup,
    PidNamespace,
    Subreaper,
}

fn world(holder: Holder, runtime: &str) -> Option<TestDaemon> {
    println!("processes are held together by: {holder:?}, {runtime}");
    let agent = AGENT.replace("PROGRAM", env!("CARGO_BIN_EXE_pointsman"));
    let setup = shop()
        .agent(&agent)
        .set("timing.handoff_timeout", "\"300ms\"")
        .set("agent.runtime", &format!("{runtime:?}"));
    let setup = setup.set("dev.concurrency", "8").set("timing.restart_backoff", "\"10ms\"");
    let (mode, groups) = match holder {
        Holder::ControlGroup if cgroup::delegated().is_none() => {
            not_run("cgroup", "no control group is delegated to this user");
            return None;
        }
        Holder::ControlGroup => ("off", "on"),
        Holder::PidNamespace => match Bubblewrap::probe(std::env::var_os("PATH").as_deref()) {
            Ok(_) => ("require", "off"),
            Err(why) => {
                not_run("bwrap", &format!("{why:?}"));
                return None;
            }
        },
        Holder::Subreaper => ("off", "off"),
    };
    let setup = setup.set("sandbox.mode", &format!("{mode:?}"));
    Some(setup.daemon_env("POINTSMAN_CGROUPS", groups).start())
}

/// Files an issue and waits until its first session has detached all that it wants to.
fn detached(daemon: &TestDaemon, title: &str) -> u64 {
    let issue = daemon.file_issue_with(title, title);
    let file = daemon.session_files(issue).join("run-1/detached");
    daemon.wait_for(&format!("{title} to detach"), || file.exists().then_some(()));
    issue
}

/// The processes of the first generation that are left.
fn left(daemon: &TestDaemon, issue: u64) -> Vec<u32> {
    census::working_on(&daemon.session_files(issue).join("run-1"))
}

fn nothing_outlives(holder: Holder, runtime: &str) {
    let Some(daemon) = world(holder, runtime) else { return };
    let title = |what: &str| format!("One that {what}");
    let gone = |issue: u64, how: &str| {
        eventually(&format!("{how}: nothing of the first session is left"), GONE_WITHIN, || {
            left(&daemon, issue).is_empty().then_some(())
        });
    };
    // By its end the successor is there, and found nobody.
    for how in ["crashes", "exits"] {
        let issue = detached(&daemon, &title(how));
        daemon.wait_session(issue, 2);
        gone(issue, how);
    }
    let issue = detached(&daemon, &title("is stopped"));
    assert!(left(&daemon, issue).len() >= 9, "the probes are there: {:?}", left(&daemon, issue));
    daemon.json(&["session", "stop", &issue.to_string()]);
    daemon.wait_for("it to be stopped", || daemon.session(issue)["ended_at"].is_string().then_some(()));
    gone(issue, "stopped");
    let issue = detached(&daemon, &title("is replaced"));
    daemon.json(&["task", "restart", &issue.to_string()]);
    daemon.wait_session(issue, 2);
    gone(issue, "replaced");
    let issue = detached(&daemon, &title("hands over"));
    daemon.wait_session(issue, 2);
    assert!(daemon.session_files(issue).join("run-1/full").exists());
    gone(issue, "handed over");
    let issue = detached(&daemon, &title("is halted"));
    daemon.json(&["halt"]);
    gone(issue, "halted");
    daemon.json(&["resume"]);
    daemon.wait_session(issue, 2);
    if runtime == "tmux" {
        let issue = detached(&daemon, &title("loses its terminal"));
        daemon.kill_tmux();
        daemon.wait_session(issue, 2);
        gone(issue, "the tmux server was killed");
    } else {
        let issue = detached(&daemon, &title("loses its keeper"));
        daemon.kill_session(issue);
        daemon.wait_session(issue, 2);
        gone(issue, "the keeper was killed");
    }
}

#[test]
fn e2e_leftovers_control_group_in_a_terminal() {
    nothing_outlives(Holder::ControlGroup, "tmux");
}

#[test]
fn e2e_leftovers_control_group_without_a_terminal() {
    nothing_outlives(Holder::ControlGroup, "headless");
}

#[test]
fn e2e_leftovers_pid_namespace_in_a_terminal() {
    nothing_outlives(Holder::PidNamespace, "tmux");
}

#[test]
fn e2e_leftovers_pid_namespace_without_a_terminal() {
    nothing_outlives(Holder::PidNamespace, "headless");
}

#[test]
fn e2e_leftovers_subreaper_in_a_terminal() {
    nothing_outlives(Holder::Subreaper, "tmux");
}

#[test]
fn e2e_leftovers_subreaper_without_a_terminal() {
    nothing_outlives(Holder::Subreaper, "headless");
}

/// CI that leaves processes behind; `$1` is the way that is tried.
const CI: &str = r#"#!/bin/bash
exec 9< ci.sh
setsid sleep 1001 > /dev/null 2>&1 < /dev/null &
env -i setsid --fork /bin/sleep 1002 > /dev/null 2>&1 < /dev/null
! grep -rn BUG src
"#;

#[test]
fn e2e_leftovers_of_ci_are_gone_when_it_has_ended() {
    for (mode, groups) in [("require", "off"), ("off", "on")] {
        let possible = match mode {
            "require" => Bubblewrap::probe(std::env::var_os("PATH").as_deref()).is_ok(),
            _ => cgroup::delegated().is_some(),
        };
        if !possible {
            not_run("sandbox or cgroup", "neither holds the processes of CI together here");
            continue;
        }
        let setup = shop().file("ci.sh", CI).set("sandbox.mode", &format!("{mode:?}"));
        let daemon = setup.daemon_env("POINTSMAN_CGROUPS", groups).start();
        let issue = daemon.file_issue("Apples", &super::clean("apples"));
        daemon.wait_closed(issue);
        let checkouts = daemon.state().join("projects/shop/checkouts");
        eventually(&format!("nothing of CI is left, {mode}"), GONE_WITHIN, || {
            census::working_on(&checkouts).is_empty().then_some(())
        });
    }
}

/// The kernel is asked to end a sandbox with the process that started it only once everything is mounted. A process that was
/// killed before that is not noticed by bubblewrap.
#[test]
fn e2e_leftovers_of_a_tmux_server_that_is_killed_while_sessions_start() {
    if let Err(why) = Bubblewrap::probe(std::env::var_os("PATH").as_deref()) {
        return not_run("bwrap", &format!("{why:?}"));
    }
    let agent = "read -r greeting\nexec 9>> \"$(dirname \"$POINTSMAN_RESULT_FILE\")/held\"\nsleep 1000\n";
    let daemon = shop()
        .agent(agent)
        .set("sandbox.mode", "\"require\"")
        .set("limits.restarts", "100")
        .daemon_env("POINTSMAN_CGROUPS", "off")
        .start();
    let issue = daemon.file_issue_with("Sleeps", "please");
    let name = format!("dev-shop-{issue}");
    for _ in 1..8 {
        daemon.wait_for("the session to be in tmux", || daemon.tmux_sessions().contains(&name).then_some(()));
        daemon.kill_tmux();
    }
    // A kill before the start was on record costs no generation: the start is tried again.
    let last = daemon.wait_for("a session that stays", || {
        let sessions = daemon.sessions(issue);
        let alive = sessions.iter().find(|session| session["exit"].is_null())?;
        daemon.tmux_sessions().contains(&name).then(|| alive["generation"].as_u64())?
    });
    let root = daemon.session_files(issue);
    for generation in 1..last {
        let left = census::working_on(&root.join(format!("run-{generation}")));
        assert!(left.is_empty(), "generation {generation} of {last}: {left:?}");
    }
}

/// CI that ends by itself, after its daemon.
const SLOW_CI: &str = "#!/bin/bash\nexec 9< ci.sh\nsleep 3\n";

#[test]
fn e2e_leftovers_of_ci_whose_daemon_was_killed_end_with_it() {
    if let Err(why) = Bubblewrap::probe(std::env::var_os("PATH").as_deref()) {
        return not_run("bwrap", &format!("{why:?}"));
    }
    let setup = shop().file("ci.sh", SLOW_CI).set("sandbox.mode", "\"require\"");
    let daemon = setup.daemon_env("POINTSMAN_CGROUPS", "off").start();
    daemon.file_issue("Apples", &super::clean("apples"));
    let checkouts = daemon.state().join("projects/shop/checkouts");
    let working = || census::working_on(&checkouts);
    daemon.wait_for("CI to run", || (!working().is_empty()).then_some(()));
    daemon.kill_daemon();
    daemon.wait_for("the sandbox to end without anybody who ends it", || working().is_empty().then_some(()));
}

/// A session that goes on keeps the tmux server and the proxy. Without one, both end with the daemon.
#[test]
fn e2e_leftovers_of_a_daemon_that_stops_are_its_sessions_and_nothing_else() {
    let daemon = shop().agent("read -r greeting\nsleep 1000\n").start();
    let issue = daemon.file_issue_with("Sleeps", "please");
    let agent = daemon.wait_session(issue, 1);
    let runtime = daemon.control_socket().parent().unwrap().to_owned();
    let socket = runtime.join("tmux.sock").display().to_string();
    let dir = runtime.join("proxy").display().to_string();
    let tmux = || census::with_words(&[&socket]);
    let proxy = || census::with_words(&["proxy", &dir]);
    let has_proxy = Bubblewrap::probe(std::env::var_os("PATH").as_deref()).is_ok();
    assert_eq!((tmux().is_empty(), proxy().is_empty()), (false, !has_proxy));
    assert_eq!(daemon.run(&["down"]).code, Some(0));
    daemon.wait_for_death();
    assert_eq!((tmux().is_empty(), proxy().is_empty()), (false, !has_proxy), "the session goes on");
    daemon.start();
    assert_eq!(daemon.wait_session(issue, 1), agent, "the same session");
    daemon.json(&["session", "stop", "--all"]);
    daemon.wait_for("it to be stopped", || daemon.session(issue)["ended_at"].is_string().then_some(()));
    assert_eq!(daemon.run(&["down"]).code, Some(0));
    daemon.wait_for_death();
    eventually("the proxy to end", GONE_WITHIN, || proxy().is_empty().then_some(()));
    assert!(tmux().is_empty(), "{:?}", tmux());
}
