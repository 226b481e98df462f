//! The walls beside the mounts, from inside: refused system calls, Landlock, and that the tools of builds do not notice.

use pointsman_adapters::sandbox::landlock_version;
use pointsman_testkit::{TestDaemon, not_run};

use super::{has_perl, sandbox_works, shop};

/// Calls by number, with the error of each. A call that is answered prints `took`.
const CALLS: &str = r#"
perl -e '
    use strict; use warnings; use POSIX ();
    my $x = (POSIX::uname())[4] eq "x86_64" ? 0 : 1;
    sub ask { my ($name, $numbers, @arguments) = @_;
        my $answer = syscall($numbers->[$x], @arguments);
        print $answer == -1 ? "$name error " . ($!+0) . "\n" : "$name took\n"; }
    ask("keyctl", [250, 219], 0, -3, 0);
    ask("bpf", [321, 280], 0, 0, 0);
    ask("io_uring_setup", [425, 425], 1, 0);
    ask("mount", [165, 40], 0, 0, 0, 0, 0);
    ask("fsopen", [430, 430], "tmpfs", 0);
    ask("setns", [308, 268], 0, 0);
    ask("clone3", [435, 435], 0, 0);
    ask("vsock", [41, 198], 40, 1, 0);
    ask("firewall", [41, 198], 16, 3, 12);
    ask("terminal", [16, 29], 0, 0x5412, "x");
    ask("newer", [500, 500]);
    ask("traced", [101, 117], 0, 0, 0, 0);
    ask("routes", [41, 198], 16, 3, 0);
    ask("namespace", [272, 97], 0x10000000);
'
"#;

/// What a build may need, each if it is installed. The shell itself is the first process of the pid namespace but one.
const TOOLS: &str = r#"
can() { name=$1; shift; if "$@" > out 2>&1; then echo "can $name"; else echo "cannot $name"; cat out; fi; }
has() { command -v "$1" > /dev/null; }
mkdir -p work
can git sh -c 'cd work && git init -q a && cd a && git commit -q --allow-empty -m x && git gc -q && cd .. && git clone -q a b'
can threads perl -e 'for (1..3) { fork() // die or exit } 1 while wait() > 0; rename "work/a", "work/c" or die $!'
can links sh -c 'echo x > work/one && ln work/one work/two && mv work/two work/b/three && rm work/one'
has python3 && can python python3 -c 'import subprocess, threading, socket, multiprocessing
t = threading.Thread(target=lambda: subprocess.check_call(["true"])); t.start(); t.join()
s = socket.create_server(("127.0.0.1", 0)); socket.create_connection(s.getsockname())
p = multiprocessing.get_context("fork").Process(target=print); p.start(); p.join()
q = multiprocessing.Queue(); q.put(1); assert q.get() == 1'
has node && can node node -e 'const fs = require("fs"), {Worker} = require("worker_threads"), cp = require("child_process");
require("os").networkInterfaces(); fs.promises.readFile("ci.sh").then(() => {
new Worker("", {eval: true}).on("exit", () => cp.spawn("true").on("exit", code => process.exit(code))); })'
has go && can go go env GOROOT
has cc && can cc sh -c 'echo "int main(void){return 0;}" > work/m.c && cc -o work/m work/m.c && work/m'
has gdb && can gdb gdb --batch -ex run true
has strace && can strace strace -f -o /dev/null true
has tmux && can tmux sh -c 'tmux -S work/t -f /dev/null new-session -d "sleep 100" && tmux -S work/t list-sessions && tmux -S work/t kill-server'
can shm sh -c 'echo x > /dev/shm/x && rm /dev/shm/x'
can proc sh -c 'echo 100 > /proc/self/oom_score_adj && ls / > /dev/null'
if kill -0 1 2> /dev/null; then echo "signals reach others"; else echo "signals stay"; fi
rm -rf work out
"#;

fn log_of_ci(mode: &str) -> (TestDaemon, String) {
    let ci = format!(
        "#!/bin/bash\nexport GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a\n{TOOLS}\n{CALLS}\ntrue\n"
    );
    let daemon = shop().file("ci.sh", &ci).set("sandbox.mode", &format!("{mode:?}")).start();
    let issue = daemon.file_issue("Apples", &super::clean("apples"));
    daemon.wait_closed(issue);
    let log = daemon.run(&["ci", "logs", &issue.to_string()]).stdout;
    (daemon, log)
}

#[test]
fn e2e_sandbox_walls_refuse_calls_that_no_build_needs_and_let_tools_work() {
    if !sandbox_works() || !has_perl() {
        return;
    }
    let (daemon, log) = log_of_ci("require");
    let shown = daemon.json(&["sandbox", "show"]);
    assert!(!log.contains("cannot "), "{log}");
    assert!(log.contains("can git") && log.contains("can proc"), "{log}");
    assert_eq!(shown["syscall_filter"], true, "{shown}");
    for (call, error) in [
        ("keyctl", 1),
        ("bpf", 1),
        ("io_uring_setup", 38),
        ("mount", 1),
        ("fsopen", 1),
        ("setns", 1),
        ("clone3", 38),
        ("vsock", 97),
        ("firewall", 93),
        ("terminal", 1),
        ("newer", 38),
        ("namespace", 1),
    ] {
        assert!(log.contains(&format!("{call} error {error}\n")), "{call}: {log}");
    }
    assert!(log.contains("traced took") && log.contains("routes took"), "{log}");
    assert_eq!(shown["landlock"].as_u64(), landlock_version().map(u64::from));
    match landlock_version() {
        Some(6..) => assert!(log.contains("signals stay"), "{log}"),
        Some(_) | None => not_run("landlock", "the kernel does not keep signals inside"),
    }
}

#[test]
fn e2e_sandbox_walls_are_not_there_outside() {
    if !has_perl() {
        return;
    }
    let (daemon, log) = log_of_ci("off");
    let shown = daemon.json(&["sandbox", "show"]);
    assert_eq!((&shown["syscall_filter"], &shown["landlock"]), (&false.into(), &serde_json::Value::Null));
    // The same calls with arguments that do nothing: the kernel looks at them, and at most the user may not.
    for call in ["keyctl took", "traced took", "clone3 error 22", "firewall took"] {
        assert!(log.contains(call), "{call}: {log}");
    }
    assert!(!log.contains("terminal error 1\n") && !log.contains("setns error 1\n"), "{log}");
}

/// An agent with a terminal, and one without, find both walls; so does everything that it starts.
#[test]
fn e2e_sandbox_walls_stand_around_agents_of_both_kinds() {
    if !sandbox_works() || !has_perl() {
        return;
    }
    for runtime in ["tmux", "headless"] {
        let script = format!(
            "read -r greeting\n{{ {CALLS}\nkill -0 1 2> /dev/null && echo signals reach others; }} > calls.txt\n\
             git add -A && git commit -qm Calls && git push -q origin HEAD\necho PHASE:awaiting_ci > \"$PHASE_FILE\"\n\
             while read -r line; do case $line in *Merged*) echo PHASE:done > \"$PHASE_FILE\" ;; esac; done\n"
        );
        let daemon = shop()
            .agent(&script)
            .set("agent.runtime", &format!("{runtime:?}"))
            .set("sandbox.mode", "\"require\"")
            .start();
        let issue = daemon.file_issue_with("Calls", "Call.");
        daemon.wait_for("the calls on main", || daemon.on_main("calls.txt"));
        let calls = daemon.on_main("calls.txt").unwrap();
        assert!(calls.contains("keyctl error 1\n") && calls.contains("vsock error 97\n"), "{calls}");
        assert!(landlock_version() < Some(6) || !calls.contains("signals reach"), "{calls}");
        assert_eq!(daemon.sessions(issue)[0]["sandboxed"], true);
    }
}
