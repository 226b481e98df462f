//! The sandbox: what an agent and what a branch's own CI reach inside, and that the same probes reach it outside.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use pointsman_adapters::process::census;
use pointsman_testkit::{Setup, TestDaemon};

use super::{sandbox_works, shop};

/// What the same probe finds without a sandbox: then its silence inside means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    /// Nobody keeps a process of the same user from it.
    Reached,
    /// It is refused there as well, by other means.
    Kept,
    /// The system keeps ordinary users from it.
    ReachedByRoot,
}

impl Outside {
    fn is_reached(self) -> bool {
        match self {
            Self::Reached => true,
            Self::Kept => false,
            Self::ReachedByRoot => rustix::process::geteuid().is_root(),
        }
    }
}

/// Something that must not be reached from inside, the command that tries, and what it does outside.
const PROBES: [(&str, &str, Outside); 24] = [
    ("home-file", r#"cat "$home/canary""#, Outside::Reached),
    ("ssh-key", r#"cat "$home/.ssh/id_ed25519""#, Outside::Reached),
    ("login-of-a-tool", r#"cat "$home/.config/gh/hosts.yml""#, Outside::Reached),
    ("state-directory", r#"test -e "$state/pointsman.db""#, Outside::Reached),
    ("other-session", r#"test -e "$other/tree/secret""#, Outside::Reached),
    ("people-socket", r#"test -S "$runtime/control.sock""#, Outside::Reached),
    ("tmux-socket", r#"test -S "$runtime/tmux.sock""#, Outside::Reached),
    ("tmux", r#"tmux -S "$runtime/tmux.sock" list-sessions"#, Outside::Reached),
    ("tmux-starts-a-program", r#"tmux -S "$runtime/tmux.sock" run-shell true"#, Outside::Reached),
    ("socket-of-the-user", r#"test -S "$home/agent.sock""#, Outside::Reached),
    ("signal", r#"kill -0 "$daemon""#, Outside::Reached),
    ("daemon-environment", r#"grep -qa PATH= "/proc/$daemon/environ""#, Outside::Reached),
    ("daemon-directory", r#"ls "/proc/$daemon/cwd/""#, Outside::Reached),
    (
        "approve",
        r#"env -u POINTSMAN_SESSION POINTSMAN_RUNTIME_DIR="$runtime" POINTSMAN_STATE_DIR="$state" "$program" --project shop forge pr list"#,
        Outside::Kept,
    ),
    (
        "forge-repository",
        r#"git --git-dir="$state/projects/shop/forge.git" rev-parse main"#,
        Outside::Reached,
    ),
    (
        "push-round-the-gateway",
        r#"git push --dry-run "$state/projects/shop/forge.git" HEAD:refs/heads/planted"#,
        Outside::Reached,
    ),
    ("checkout", r#"test -e "$checkout/pointsman.toml""#, Outside::Reached),
    ("shadow", "test -r /etc/shadow", Outside::ReachedByRoot),
    (
        "system-write",
        "sh -c 'echo planted > /usr/planted-by-a-test && rm /usr/planted-by-a-test'",
        Outside::ReachedByRoot,
    ),
    ("privileges", r#"grep -q 'NoNewPrivs:.0' /proc/self/status"#, Outside::Kept),
    // Those inside have a home, a phase directory and temporary files of their own: only what is planted counts.
    ("write-to-the-home", r#"sh -c 'echo planted > "$0/planted"' "$home""#, Outside::Reached),
    ("shell-startup", r#"sh -c 'echo planted >> "$0/.bashrc"' "$home""#, Outside::Reached),
    ("other-session-write", r#"sh -c 'echo planted > "$0/tree/planted"' "$other""#, Outside::Reached),
    ("phase-of-another", r#"sh -c 'echo PHASE:failed > "$0/dev-shop-99.phase"' "$phases""#, Outside::Reached),
];

/// Probes that may succeed inside, in a place of their own, with what they plant outside.
const PLANTED: [(&str, &str); 4] = [
    ("write-to-the-home", "home/planted"),
    ("shell-startup", "home/.bashrc"),
    ("other-session-write", "other/tree/planted"),
    ("phase-of-another", "phases/dev-shop-99.phase"),
];

/// All probes as a script; `reached` is printed for those that succeed. The targets are lines of a file in the tree.
fn probes() -> String {
    let mut script = String::from(
        ". ./targets\nprobe() { name=$1; shift; if \"$@\" > /dev/null 2>&1; then echo \"reached $name\"; else echo \"kept from \
         $name\"; fi; }\n",
    );
    for (name, command, _) in PROBES {
        script.push_str(&format!("probe {name} {command}\n"));
    }
    script
}

/// Nothing was reached from inside, as the report and the canaries tell it.
fn assert_nothing_reached(daemon: &TestDaemon, report: &str) {
    for (name, _, _) in PROBES {
        let planted = PLANTED.iter().find(|(probe, _)| *probe == name);
        let told = [format!("kept from {name}"), format!("reached {name}")];
        assert!(told.iter().any(|line| report.contains(line)), "{name} was tried: {report}");
        match planted {
            Some((_, path)) => assert!(!canary(daemon, path).exists(), "{name}: {report}"),
            None => assert!(report.contains(&told[0]), "{name}: {report}"),
        }
    }
}

/// Every probe did what is expected of it without a sandbox.
fn assert_reached_outside(daemon: &TestDaemon, report: &str) {
    let reached: Vec<&str> = report.lines().filter_map(|line| line.trim().strip_prefix("reached ")).collect();
    for (name, _, outside) in PROBES {
        assert_eq!(reached.contains(&name), outside.is_reached(), "{name}: {report}");
    }
    for (name, path) in PLANTED {
        assert!(canary(daemon, path).exists(), "{name}: {report}");
    }
}

/// A place outside, by a name that [`PLANTED`] uses.
fn canary(daemon: &TestDaemon, path: &str) -> PathBuf {
    match path.strip_prefix("other/") {
        Some(below) => daemon.session_files(99).join(below),
        None => daemon.path(path),
    }
}

/// A world with something to find in it. Its daemon is not started.
fn world(setup: Setup, mode: &str) -> TestDaemon {
    let daemon = setup.set("sandbox.mode", &format!("{mode:?}")).build();
    for file in ["home/canary", "home/.ssh/id_ed25519", "home/.config/gh/hosts.yml"] {
        fs::create_dir_all(daemon.path(file).parent().unwrap()).unwrap();
        fs::write(daemon.path(file), "secret").unwrap();
    }
    drop(UnixListener::bind(daemon.path("home/agent.sock")).unwrap());
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
    say("home", &daemon.path("home"));
    say("phases", &daemon.path("phases"));
    say("other", &daemon.session_files(99));
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

fn probes_of_ci(mode: &str) -> (TestDaemon, String) {
    let ci = format!("#!/bin/bash\n{}\n! grep -rn BUG src\n", probes());
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
    assert_nothing_reached(&daemon, &log);
}

/// What the gate printed for a branch that lands.
fn probes_of_gate(mode: &str) -> (TestDaemon, String) {
    let gate = format!("#!/bin/bash\n{}\necho 'end of the probes'\n", probes());
    probes_in_a_log(shop().file("gate.sh", &gate).set("merge.gate", "[\"./gate.sh\"]"), mode)
}

/// What the review program printed for a branch that lands.
fn probes_of_review(mode: &str) -> (TestDaemon, String) {
    let review = format!(
        "#!/bin/bash\n{}\necho '{{\"verdict\": \"APPROVE\", \"verdict_reason\": \"fine\"}}' > \"$POINTSMAN_RESULT_FILE\"\n\
         echo 'end of the probes'\n",
        probes()
    );
    let setup = shop().file("review.sh", &review).set("review.command", "[\"./review.sh\"]");
    probes_in_a_log(setup.set("review.mode", "\"agent\""), mode)
}

fn probes_in_a_log(setup: Setup, mode: &str) -> (TestDaemon, String) {
    let daemon = world(setup, mode);
    daemon.start();
    aim(&daemon);
    let issue = daemon.file_issue("Apples", &super::clean("apples"));
    daemon.wait_closed(issue);
    let logs = fs::read_dir(daemon.state().join("projects/shop/logs")).unwrap();
    let texts = logs.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    let log = texts.filter(|text| text.contains("end of the probes")).collect();
    (daemon, log)
}

#[test]
fn e2e_sandbox_the_review_program_reaches_nothing_but_its_checkout() {
    if !sandbox_works() {
        return;
    }
    let (daemon, log) = probes_of_review("require");
    assert_nothing_reached(&daemon, &log);
    let (daemon, log) = probes_of_review("off");
    assert_reached_outside(&daemon, &log);
}

#[test]
fn e2e_sandbox_the_gate_reaches_nothing_but_its_checkout() {
    if !sandbox_works() {
        return;
    }
    let (daemon, log) = probes_of_gate("require");
    assert_nothing_reached(&daemon, &log);
}

#[test]
fn e2e_sandbox_probes_of_ci_reach_their_targets_outside() {
    let (daemon, log) = probes_of_ci("off");
    assert_reached_outside(&daemon, &log);
}

#[test]
fn e2e_sandbox_probes_of_the_gate_reach_their_targets_outside() {
    let (daemon, log) = probes_of_gate("off");
    assert_reached_outside(&daemon, &log);
}

#[test]
fn e2e_sandbox_probes_of_an_agent_reach_their_targets_outside() {
    for runtime in ["tmux", "headless"] {
        let (daemon, issue) = agent_lands("off", runtime);
        assert_eq!(daemon.sessions(issue)[0]["sandboxed"], false);
        let report = daemon.on_main("probes.txt").unwrap();
        // Without a terminal there is no tmux server.
        let report =
            if runtime == "tmux" { report } else { report.replace("kept from tmux", "reached tmux") };
        assert_reached_outside(&daemon, &report);
    }
}

/// An agent that probes, uses every command that is meant for it, leaves processes behind and lands its work.
const AGENT: &str = r#"
read -r greeting
# Without a terminal every message is a turn of its own.
case $greeting in
*Merged*) echo PHASE:done > "$PHASE_FILE"; exit ;;
*"CI passed"*) exit ;;
esac
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
setsid bash -c 'trap "" HUP TERM INT; while :; do sleep 0.2; done' > /dev/null 2>&1 &
(setsid bash -c 'trap "" HUP TERM INT; exec -a something-else sleep 1000' > /dev/null 2>&1 &)
git add -A && git commit -qm "Probe" && git push -q origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE.new" && mv "$PHASE_FILE.new" "$PHASE_FILE"
while read -r line; do
    case $line in *Merged*) echo PHASE:done > "$PHASE_FILE" ;; *"m-"*) "$program" ack "$(expr "$line" : '.*\(m-[0-9]*\)')" ;; esac
done
"#;

fn agent_lands(mode: &str, runtime: &str) -> (TestDaemon, u64) {
    let script = AGENT.replace("PROBES", &probes());
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
    for runtime in ["tmux", "headless"] {
        let (daemon, issue) = agent_lands("require", runtime);
        assert_nothing_reached(&daemon, &daemon.on_main("probes.txt").unwrap());
        let commands = daemon.on_main("commands.txt").unwrap();
        assert!(!commands.contains("cannot"), "{commands}");
        assert!(
            commands.contains("can read PHASE_FILE") && commands.contains("can run programs"),
            "{commands}"
        );
        let session = &daemon.sessions(issue)[0];
        assert_eq!(session["sandboxed"], true, "{session}");
        let root = daemon.session_files(issue);
        daemon.wait_for("everything that the session left to be gone", || {
            census::working_on(&root).is_empty().then_some(())
        });
    }
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
