//! The sandbox: what an agent and what a branch's own CI reach inside, and that the same probes reach it outside.

use std::fs;
use std::path::Path;

use pointsman_testkit::{Setup, TestDaemon};

use super::{sandbox_works, shop};

/// Each probe names something that it must not reach; `reached` is printed for those that it does. The targets are lines
/// of a file in the tree.
const PROBES: &str = r#"
. ./targets
probe() { name=$1; shift; if "$@" > /dev/null 2>&1; then echo "reached $name"; else echo "kept from $name"; fi; }
probe home-file cat "$canary"
echo planted > "$planted"
probe state-directory test -e "$state/pointsman.db"
probe other-session test -e "$state/projects/shop/sessions/dev-shop-99/tree/secret"
probe other-session-write sh -c 'echo planted > "$0/projects/shop/sessions/dev-shop-99/tree/planted"' "$state"
probe people-socket test -S "$runtime/control.sock"
probe tmux-socket test -S "$runtime/tmux.sock"
probe tmux tmux -S "$runtime/tmux.sock" list-sessions
probe signal kill -0 "$daemon"
probe daemon-environment cat "/proc/$daemon/environ"
probe approve env -u POINTSMAN_SESSION POINTSMAN_RUNTIME_DIR="$runtime" POINTSMAN_STATE_DIR="$state" "$program" --project shop forge pr list
probe forge-repository git --git-dir="$state/projects/shop/forge.git" rev-parse main
probe checkout test -e "$checkout/pointsman.toml"
probe shadow test -r /etc/shadow
probe system-write sh -c 'echo planted > /usr/planted-by-a-test && rm /usr/planted-by-a-test'
"#;

/// What nobody keeps a process of the same user from, so that a probe that finds nothing inside means something.
const REACHED_OUTSIDE: [&str; 8] = [
    "home-file",
    "state-directory",
    "other-session",
    "other-session-write",
    "people-socket",
    "signal",
    "forge-repository",
    "checkout",
];

/// A world with something to find in it. Its daemon is not started.
fn world(setup: Setup, mode: &str) -> TestDaemon {
    let daemon = setup.set("sandbox.mode", &format!("{mode:?}")).build();
    fs::write(daemon.path("home/canary"), "secret").unwrap();
    let other = daemon.session_files(99).join("tree");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("secret"), "secret").unwrap();
    daemon
}

/// Commits where the targets are, which only a running world knows.
fn aim(daemon: &TestDaemon) {
    let runtime = daemon.control_socket();
    let mut text = String::new();
    let mut say = |name: &str, path: &Path| text.push_str(&format!("{name}='{}'\n", path.display()));
    say("canary", &daemon.path("home/canary"));
    say("planted", &daemon.path("home/planted"));
    say("state", &daemon.state());
    say("runtime", runtime.parent().unwrap());
    say("program", Path::new(env!("CARGO_BIN_EXE_pointsman")));
    say("checkout", &daemon.checkout());
    text.push_str(&format!("daemon={}\n", daemon.pid()));
    fs::write(daemon.checkout().join("targets"), text).unwrap();
    let git = |words: &[&str]| daemon.git_in(&daemon.checkout(), words);
    git(&["add", "targets"]);
    git(&["commit", "--quiet", "--message=Aim"]);
    daemon.json(&["sync"]);
}

/// The probes whose names are in this text.
fn reached(text: &str) -> Vec<String> {
    let mut names: Vec<String> =
        text.lines().filter_map(|line| line.trim().strip_prefix("reached ")).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

fn probes_of_ci(mode: &str) -> (TestDaemon, String) {
    let ci = format!("#!/bin/bash\n{PROBES}\n! grep -rn BUG src\n");
    let daemon = world(shop().file("ci.sh", &ci), mode);
    daemon.start();
    aim(&daemon);
    let issue = daemon.file_issue("Apples", &super::clean("apples"));
    daemon.wait_closed(issue);
    let log = daemon.run(&["ci", "logs", &issue.to_string()]).stdout;
    (daemon, log)
}

#[test]
fn e2e_sandbox_ci_of_a_branch_reaches_nothing_but_its_checkout() {
    if !sandbox_works() {
        return;
    }
    let (daemon, log) = probes_of_ci("require");
    assert_eq!(reached(&log), [""; 0], "{log}");
    assert!(log.contains("kept from approve"), "the probes ran: {log}");
    assert!(!daemon.path("home/planted").exists(), "inside there is another home");
    assert!(!daemon.session_files(99).join("tree/planted").exists());
}

/// What the gate printed for a branch that lands.
fn probes_of_gate(mode: &str) -> (TestDaemon, String) {
    let gate = format!("#!/bin/bash\n{PROBES}\necho 'end of the gate'\n");
    let setup = shop().file("gate.sh", &gate).set("merge.gate", "[\"./gate.sh\"]");
    let daemon = world(setup, mode);
    daemon.start();
    aim(&daemon);
    let issue = daemon.file_issue("Apples", &super::clean("apples"));
    daemon.wait_closed(issue);
    let logs = fs::read_dir(daemon.state().join("projects/shop/logs")).unwrap();
    let texts = logs.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    let log = texts.filter(|text| text.contains("end of the gate")).collect();
    (daemon, log)
}

#[test]
fn e2e_sandbox_the_gate_reaches_nothing_but_its_checkout() {
    if !sandbox_works() {
        return;
    }
    let (daemon, log) = probes_of_gate("require");
    assert_eq!(reached(&log), [""; 0], "{log}");
    assert!(log.contains("kept from approve"), "the probes ran: {log}");
    assert!(!daemon.path("home/planted").exists(), "inside there is another home");
    let (_outside, log) = probes_of_gate("off");
    assert!(REACHED_OUTSIDE.iter().all(|name| reached(&log).iter().any(|reached| reached == name)), "{log}");
}

#[test]
fn e2e_sandbox_probes_of_ci_reach_their_targets_outside() {
    let (daemon, log) = probes_of_ci("off");
    let found = reached(&log);
    for name in REACHED_OUTSIDE {
        assert!(found.iter().any(|reached| reached == name), "{name}: {log}");
    }
    assert!(daemon.path("home/planted").exists());
}

/// An agent that probes, uses every command that is meant for it, leaves processes behind and lands its work.
const AGENT: &str = r#"
read -r greeting
{ PROBES } > probes.txt
say() { "$@" > /dev/null 2> err.txt && echo "can $1 $2 $3" || { echo "cannot $1 $2 $3"; cat err.txt; }; }
. ./targets
{
    say "$program" checkpoint --summary half
    say "$program" gauge --tokens 100
    say "$program" forge issue show "$ISSUE"
    say "$program" forge issue create --title Found --body b
    echo '{}' | say "$program" hook UserPromptSubmit
    test "$(cat "$PHASE_FILE")" = "" && echo "can read PHASE_FILE"
    hostname > /dev/null && git log -1 > /dev/null && echo "can run programs"
} > commands.txt 2>&1
rm -f err.txt
setsid bash -c 'trap "" HUP TERM INT; while :; do sleep 0.2; done' marker-of-a-leftover > /dev/null 2>&1 &
(setsid bash -c 'trap "" HUP TERM INT; exec -a marker-of-a-leftover sleep 1000' > /dev/null 2>&1 &)
git add -A && git commit -qm "Probe" && git push -q origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE.new" && mv "$PHASE_FILE.new" "$PHASE_FILE"
while read -r line; do
    case $line in *Merged*) echo PHASE:done > "$PHASE_FILE" ;; *"m-"*) "$program" ack "$(expr "$line" : '.*\(m-[0-9]*\)')" ;; esac
done
"#;

fn agent_lands(mode: &str, runtime: &str) -> (TestDaemon, u64) {
    let script = AGENT.replace("PROBES", PROBES);
    let daemon = world(shop().agent(&script).set("agent.runtime", &format!("{runtime:?}")), mode);
    daemon.start();
    aim(&daemon);
    let issue = daemon.file_issue_with("Probe", "Probe it all.");
    daemon.wait_closed(issue);
    (daemon, issue)
}

#[test]
fn e2e_sandbox_an_agent_works_inside_and_reaches_nothing_else() {
    if !sandbox_works() {
        return;
    }
    let (daemon, issue) = agent_lands("require", "tmux");
    let shown = |file: &str| {
        let url = daemon.json(&["forge", "url"]);
        let repository = Path::new(url["url"].as_str().unwrap()).to_owned();
        daemon.git_in(&repository, &["show", &format!("main:{file}")])
    };
    let probes = shown("probes.txt");
    assert_eq!(reached(&probes), [""; 0], "{probes}");
    assert!(probes.contains("kept from other-session"), "the probes ran: {probes}");
    let commands = shown("commands.txt");
    assert!(!commands.contains("cannot"), "{commands}");
    assert!(commands.contains("can read PHASE_FILE") && commands.contains("can run programs"), "{commands}");
    let session = &daemon.sessions(issue)[0];
    assert_eq!(session["sandboxed"], true, "{session}");
    assert!(!daemon.path("home/planted").exists());
    assert!(!daemon.session_files(99).join("tree/planted").exists());
    daemon.wait_for("everything that the session left to be gone", || (leftovers() == 0).then_some(()));
}

/// Processes of this machine that carry the mark of the agent above.
fn leftovers() -> usize {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let marked = |entry: &fs::DirEntry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"marker-of-a-leftover")
    };
    pids.filter(marked).count()
}

#[test]
fn e2e_sandbox_linked_trees_count_as_outside_and_require_refuses_them() {
    let daemon = shop().set("dev.worktree", "\"linked\"").set("sandbox.mode", "\"require\"").start();
    let issue = daemon.file_issue("Apples", &super::clean("apples"));
    let task = daemon.wait_state(issue, "blocked");
    assert!(task["reason"].as_str().unwrap().contains("sandbox.mode is \"require\""), "{task}");
    let shown = daemon.json(&["sandbox", "show"]);
    assert_eq!(shown["place"], "refused", "{shown}");
}

#[test]
fn e2e_sandbox_show_tells_what_a_session_sees() {
    if !sandbox_works() {
        return;
    }
    let daemon = shop().set("roles.action.sandbox.containers", "true").start();
    let containers = daemon.json(&["sandbox", "show", "action"]);
    assert_eq!(containers["place"], "outside", "{containers}");
    assert!(containers["why"].as_str().unwrap().contains("containers = true"), "{containers}");
    let shown = daemon.json(&["sandbox", "show"]);
    assert_eq!(shown["place"], "inside", "{shown}");
    let mounts = shown["mounts"].as_array().unwrap();
    let find = |path: &Path| mounts.iter().find(|mount| mount["path"] == *path.to_string_lossy());
    assert_eq!(find(&daemon.path("home")).unwrap()["access"], "empty");
    assert_eq!(find(Path::new("/usr")).unwrap()["access"], "read");
    assert!(find(&daemon.state()).is_none(), "{shown}");
    let off = shop().named("kiosk").set("sandbox.mode", "\"off\"").start();
    let shown = off.json(&["sandbox", "show"]);
    assert_eq!(
        (&shown["place"], shown["mounts"].as_array().unwrap().len()),
        (&"outside".into(), 0),
        "{shown}"
    );
}

/// The first session is killed in the middle of git's work; the second finds its lock.
const KILLED_IN_GIT: &str = r#"
read -r greeting
if [ ! -e tried ]; then
    touch tried .git/index.lock
    kill -9 $$
fi
echo apples > src/apples.txt
git add src/apples.txt && git commit --quiet --message 'Add apples' && git push --quiet origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do case "$line" in *Merged*) echo PHASE:done > "$PHASE_FILE";; esac; done
"#;

#[test]
fn e2e_sandbox_a_lock_that_a_killed_git_left_is_gone_before_the_successor_begins() {
    if !sandbox_works() {
        return;
    }
    let daemon = shop().set("sandbox.mode", "\"require\"").agent(KILLED_IN_GIT).start();
    let issue = daemon.file_issue_with("Apples", "please");
    daemon.wait_closed(issue);
    assert_eq!(daemon.session(issue)["session"], "dev-shop-1.2", "it died once");
    assert_eq!(daemon.on_main("src/apples.txt").unwrap(), "apples");
}

#[test]
fn e2e_sandbox_a_session_reads_its_own_task_log_and_pull_request_and_no_other() {
    if !sandbox_works() {
        return;
    }
    let program = env!("CARGO_BIN_EXE_pointsman");
    let agent = format!(
        "echo one > one.txt && git add . && git commit -qm One && git push -q origin HEAD\n\
         echo PHASE:awaiting_ci > \"$PHASE_FILE\"\n\
         while read -r line; do case $line in *'CI passed'*) break ;; esac; done\n\
         ask() {{ echo \"== $*\"; {program} \"$@\"; echo \"code $?\"; }}\n\
         {{ ask task show $ISSUE; ask task show $ISSUE --json; ask task explain '#1'; ask ci logs $ISSUE\n\
         ask task show 99; ask ci logs 99; ask task list; }} > said.txt 2>&1\n\
         git add . && git commit -qm Said && git push -q origin HEAD\n\
         echo PHASE:awaiting_ci > \"$PHASE_FILE\"\nsleep 1000\n"
    );
    let ci = "#!/bin/sh\necho 'the words of the CI'\n";
    let daemon = shop().agent(&agent).file("ci.sh", ci).reviewed().set("sandbox.mode", "\"require\"").start();
    let issue = daemon.file_issue_with("Work", "Please.");
    assert_eq!(issue, 1);
    let said = daemon.wait_for("what it read", || {
        let text = std::fs::read_to_string(daemon.tree(issue).join("said.txt")).ok()?;
        (text.matches("\ncode ").count() == 7).then_some(text)
    });
    let part = |command: &str| {
        let after =
            said.split(&format!("== {command}\n")).nth(1).unwrap_or_else(|| panic!("{command}: {said}"));
        after.split("\n== ").next().unwrap().to_owned()
    };
    for (command, wanted) in [
        ("task show 1", "awaiting"),
        ("task show 1 --json", "\"state\": \"awaiting_"),
        ("task explain #1", "awaiting"),
        ("ci logs 1", "the words of the CI"),
    ] {
        let shown = part(command);
        assert!(shown.trim_end().ends_with("code 0"), "{command}: {shown}");
        assert!(shown.contains(wanted), "{command}: {shown}");
    }
    for command in ["task show 99", "ci logs 99"] {
        let shown = part(command);
        assert!(shown.contains("may read") && shown.trim_end().ends_with("code 3"), "{shown}");
    }
    assert!(!part("task list").trim_end().ends_with("code 0"), "{said}");
}
