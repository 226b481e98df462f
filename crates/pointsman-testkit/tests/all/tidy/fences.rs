//! Who may touch the world. `clippy.toml` has the fences, each gate carries an `#[allow]` with its reason; here is the
//! list of all gates, so that a new one is a decision and not an accident.

use pointsman_testkit::source::files;

use super::{nothing_found, pattern};

/// What is fenced, and the files with a gate.
const FENCES: [(&str, &str, &[&str]); 9] = [
    (
        "starting a program",
        r"\bCommand::new\(|\bProgram::new\(",
        &[
            // Everything that is run to its end, with a time limit and a cap on its output.
            "crates/pointsman-adapters/src/process.rs",
            // The one program of a process that stays for it, on the terminal of both.
            "crates/pointsman-adapters/src/process/reaper.rs",
            // The control client is talked to for as long as the daemon lives.
            "crates/pointsman-adapters/src/tmux/client.rs",
            // These become another program; nothing is spawned.
            "crates/pointsman/src/daemon/launch.rs",
            "crates/pointsman/src/enclosure.rs",
            "crates/pointsman/src/cli/session.rs",
            // A person talks to an agent on their own terminal, for as long as they like.
            "crates/pointsman/src/cli/session_attach.rs",
            // What is measured is the start of a program.
            "crates/pointsman-bench/src/hooks.rs",
            // The daemon of `up --detach` outlives the command.
            "crates/pointsman/src/cli/up.rs",
        ],
    ),
    (
        "waiting for a fixed time",
        r"\bthread::sleep\(",
        &[
            // tmux has no event for the end of a pane's program; looked at until a deadline.
            "crates/pointsman-adapters/src/tmux/server.rs",
            // Commands that wait for a daemon, a lock or more output: there is nobody to be woken by.
            "crates/pointsman/src/cli/agents.rs",
            "crates/pointsman/src/cli/daemon_client.rs",
            "crates/pointsman/src/cli/down.rs",
            "crates/pointsman/src/cli/events.rs",
            "crates/pointsman/src/cli/handover.rs",
            "crates/pointsman/src/cli/hook/watch.rs",
            "crates/pointsman/src/cli/merge_queue/process.rs",
            "crates/pointsman/src/cli/merge_queue/chain.rs",
            "crates/pointsman/src/cli/notify.rs",
            "crates/pointsman/src/cli/session_log.rs",
            "crates/pointsman/src/cli/up.rs",
            // A full disk says nothing when it has room again.
            "crates/pointsman/src/daemon/dispatcher/mod.rs",
            // The play watches from outside, as a person does; its agent can hang.
            "crates/pointsman/src/demo/mod.rs",
            "crates/pointsman/src/demo/stage.rs",
            "crates/pointsman/src/rehearsal/mod.rs",
            // A task of a copy is watched from outside as well.
            "crates/pointsman/src/whole_way.rs",
        ],
    ),
    (
        "reading the environment",
        r"\benv::vars?(_os)?\(",
        &[
            // The programs of a copy find what those of the project would find.
            "crates/pointsman/src/whole_way.rs",
            // Variables that programs get by name.
            "crates/pointsman-adapters/src/process.rs",
            "crates/pointsman-adapters/src/tmux/client.rs",
            // What is built, for which machine.
            "crates/pointsman/build.rs",
            // The path to the programs that are measured.
            "crates/pointsman-bench/src/hooks.rs",
            // Where a process begins: the command line, the daemon, an agent.
            "crates/pointsman/src/cli/claude.rs",
            "crates/pointsman/src/cli/context.rs",
            "crates/pointsman/src/cli/doctor/project.rs",
            "crates/pointsman/src/cli/hook/log.rs",
            "crates/pointsman/src/cli/hook/mod.rs",
            "crates/pointsman/src/cli/hook/person.rs",
            "crates/pointsman/src/cli/mod.rs",
            "crates/pointsman/src/cli/phase.rs",
            "crates/pointsman/src/cli/session_attach.rs",
            "crates/pointsman/src/cli/statusline.rs",
            "crates/pointsman/src/daemon/crash.rs",
            "crates/pointsman/src/daemon/launch.rs",
            "crates/pointsman/src/daemon/stage.rs",
            "crates/pointsman/src/daemon/start.rs",
            "crates/pointsman/src/demo/mod.rs",
            "crates/pointsman/src/demo/stage.rs",
            "crates/pointsman/src/rehearsal/mod.rs",
            "crates/pointsman/src/rehearsal/player.rs",
        ],
    ),
    (
        "reading the clock",
        r"\bSystemTime::now\(|\bTimestamp::now\(",
        &[
            // One clock; and what tells two moments of it apart.
            "crates/pointsman/src/daemon/clock.rs",
            "crates/pointsman/src/cli/time.rs",
            // A measurement that a shell is part of.
            "crates/pointsman-bench/src/sandbox.rs",
        ],
    ),
    (
        "starting a shell",
        r#""(/bin/)?(ba|da)?sh""#,
        &[
            // The one way to see who adopts an orphan is to make one. Its text is fixed.
            "crates/pointsman-adapters/src/process/lineage.rs",
            // Lines that a person typed for a shell: `init --ci`, `merge-queue serve --gate` and `--on-outcome`.
            "crates/pointsman/src/cli/init.rs",
            "crates/pointsman/src/daemon/jobs/queue/outcomes.rs",
            // A `ci.sh` that is not executable.
            "crates/pointsman-core/src/test_command/mod.rs",
            // Scripts that benchmarks compare with, and agents that they start.
            "crates/pointsman-bench/src/hooks.rs",
            "crates/pointsman-bench/src/polling.rs",
            "crates/pointsman-bench/src/stage.rs",
        ],
    ),
    (
        "writing the daemon's store",
        r"\bstore\.commit\(",
        &[
            // The one writer.
            "crates/pointsman/src/daemon/engine/mod.rs",
            // A person's decision while no daemon runs, under its lock. It has no effect.
            "crates/pointsman/src/daemon/decisions.rs",
            // Stores that are filled to be measured, or to be asked how their queries run.
            "crates/pointsman-bench/src/agents.rs",
            "crates/pointsman-bench/src/history.rs",
            "crates/pointsman-store/src/store/plans.rs",
        ],
    ),
    (
        "forcing git, or letting one side of a conflict win",
        r#""(--force|-f|-D|--hard|-ffdx|-fdx|--ours|--theirs|-X|-Xours|-Xtheirs|ours|theirs)""#,
        &[
            // Fills a tree that was made a moment ago and that no agent has seen.
            "crates/pointsman-adapters/src/git/private_clone.rs",
            // Checkouts for CI hold nobody's work.
            "crates/pointsman-adapters/src/git/checkout.rs",
            // `worktree add` for a branch whose former tree was set aside; nothing is removed.
            "crates/pointsman-adapters/src/git/tree.rs",
            // tmux, not git: the flags of a client.
            "crates/pointsman-adapters/src/tmux/client.rs",
            // Containers that carry our label.
            "crates/pointsman-adapters/src/containers.rs",
            // Repositories that a measurement made itself, and flags of tmux.
            "crates/pointsman-bench/src/agents.rs",
            "crates/pointsman-bench/src/forge/mod.rs",
        ],
    ),
    (
        "removing a directory with everything in it",
        r"\bremove_dir_all\(",
        &[
            // Prompts and outputs of a session without a terminal, after its end; no working tree.
            "crates/pointsman-adapters/src/headless/session_dir.rs",
            // The sockets of a sandbox that has ended.
            "crates/pointsman-adapters/src/proxy/client.rs",
            // Checkouts for CI, indexes that can be built again, and git's own leftovers of a killed process.
            "crates/pointsman-adapters/src/git/checkout.rs",
            "crates/pointsman-adapters/src/git/locks.rs",
            "crates/pointsman-adapters/src/git/warm_index.rs",
            // Copies of artifacts whose place was taken by newer ones.
            "crates/pointsman-adapters/src/artifacts.rs",
            // Directories that a failed `init` made itself.
            "crates/pointsman/src/init/mod.rs",
            // Of a session: the agent's settings before they are made anew, a phase directory that was made too early,
            // the directory of its socket.
            "crates/pointsman/src/daemon/effects/claude.rs",
            "crates/pointsman/src/daemon/effects/session.rs",
            "crates/pointsman/src/daemon/session_sockets.rs",
            // The demo's own stage, and those of benchmarks.
            "crates/pointsman/src/demo/stage.rs",
            "crates/pointsman-bench/src/checkpoint.rs",
            "crates/pointsman-bench/src/stage.rs",
        ],
    ),
    (
        "ending the process",
        r"\bprocess::exit\(",
        // After Ctrl-C, when the stage has been cleared.
        &["crates/pointsman/src/demo/mod.rs"],
    ),
];

#[test]
fn only_gates_lead_through_a_fence() {
    let files = files();
    let mut found = Vec::new();
    for (what, text, gates) in FENCES {
        let fenced = pattern(text);
        for file in files.iter().filter(|f| f.is_rust()) {
            if fenced.is_match(&file.shipped_code()) && !gates.contains(&file.path.as_str()) {
                found.push(format!("{}: {what}", file.path));
            }
        }
    }
    nothing_found("a new gate belongs into the list, with its reason", &found);
}

#[test]
fn every_gate_is_used() {
    let files = files();
    let mut found = Vec::new();
    for (what, text, gates) in FENCES {
        let fenced = pattern(text);
        for gate in gates {
            let file = files.iter().find(|f| f.path == *gate);
            if !file.is_some_and(|f| fenced.is_match(&f.shipped_code())) {
                found.push(format!("{gate}: {what}"));
            }
        }
    }
    nothing_found("a gate that nobody uses is a hole", &found);
}
