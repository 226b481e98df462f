use pointsman_adapters::watch::terminal::{TerminalLook, look};

use crate::deadline::eventually;
use crate::tmux::Rig;

/// Looks until the program has settled; a program that never gets there fails the test.
#[track_caller]
fn settles(argv: &[&str], ready: &str, expected: TerminalLook) {
    let rig = Rig::new();
    let started = rig.start("dev-shop-4", argv);
    eventually("the program is ready", || rig.shows("dev-shop-4", ready).then_some(()));
    eventually(&format!("{argv:?} is {expected:?}"), || (look(started.pid) == expected).then_some(()));
    // And it stays that way: a transient would not be evidence.
    for _ in 0..20 {
        assert_eq!(look(started.pid), expected, "{argv:?}");
    }
}

#[test]
fn a_program_that_reads_its_terminal_awaits_input() {
    settles(&["sh", "-c", "echo ready; exec cat"], "ready", TerminalLook::AwaitingInput);
    settles(&["sh", "-c", "echo ready; read x"], "ready", TerminalLook::AwaitingInput);
    // A child of a script, in the same foreground group.
    settles(&["sh", "-c", "echo ready; cat; echo"], "ready", TerminalLook::AwaitingInput);
}

#[test]
fn a_shell_at_its_prompt_awaits_input() {
    settles(
        &["env", "PS1=ready", "bash", "--norc", "--noprofile", "-i"],
        "ready",
        TerminalLook::AwaitingInput,
    );
}

#[test]
fn a_program_that_sleeps_or_computes_is_busy() {
    settles(&["sh", "-c", "echo ready; exec sleep 1000"], "ready", TerminalLook::Busy);
    settles(&["sh", "-c", "echo ready; sleep 1000; read x"], "ready", TerminalLook::Busy);
    settles(&["sh", "-c", "echo ready; while :; do :; done"], "ready", TerminalLook::Busy);
}

#[test]
fn a_process_without_a_terminal_or_without_life_is_unknown() {
    assert_eq!(look(u32::MAX), TerminalLook::Unknown);
    let mut child = std::process::Command::new("setsid").args(["sleep", "1000"]).spawn().unwrap();
    eventually("setsid has left the terminal", || (look(child.id()) == TerminalLook::Unknown).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
}
