//! Ending things: the daemon, its tmux server, a session. Always by process id or by the socket of this world.

use std::fs;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::people::finish;
use super::{PATIENCE, TestDaemon};
use crate::deadline::eventually;

impl TestDaemon {
    /// SIGKILL to the daemon, if it runs.
    pub fn kill_daemon(&self) {
        if let Some(mut child) = self.child().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM to the daemon; it must end by itself, without an error.
    pub fn stop_daemon(&self) {
        send(self.pid(), Signal::TERM);
        let mut child = self.child().take().expect("the daemon was started");
        let status = eventually("the daemon to stop", PATIENCE, || child.try_wait().ok().flatten());
        assert!(status.success(), "it stopped with {status}\n{}", self.log());
    }

    /// Waits for a daemon that is about to be killed by a crash point.
    pub fn wait_for_death(&self) {
        self.wait_for("the daemon to die", || self.has_ended().then_some(()));
        self.kill_daemon();
    }

    /// SIGKILL, then a new daemon.
    pub fn restart(&self) {
        self.kill_daemon();
        self.start();
    }

    /// SIGKILL to the newest session of an issue.
    pub fn kill_session(&self, issue: u64) {
        send(self.session_pid(issue), Signal::KILL);
    }

    /// SIGKILL to the tmux server; all sessions lose their terminal.
    pub fn kill_tmux(&self) {
        let answer = self.tmux(&["display-message", "-p", "#{pid}"]);
        let pid: u32 = answer.trim().parse().unwrap_or_else(|_| panic!("no tmux server: {answer}"));
        send(pid, Signal::KILL);
    }

    /// Runs a command of our tmux server, answers what it printed.
    pub fn tmux(&self, arguments: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.tmux_socket()).args(arguments);
        self.clean(&mut tmux);
        finish(&mut tmux).stdout
    }

    /// A person's terminal at the session of a task; the caller ends it.
    pub fn attach(&self, issue: u64) -> Child {
        let mut tmux = Command::new("tmux");
        let session = format!("=dev-{}-{issue}:", self.setup.name);
        tmux.arg("-S").arg(self.tmux_socket()).args(["-N", "-C", "attach-session", "-t", &session]);
        self.clean(&mut tmux);
        tmux.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let client = tmux.spawn().expect("tmux is there");
        self.wait_for("the terminal to be attached", || {
            self.tmux(&["list-clients", "-t", &session, "-F", "#{client_pid}"])
                .lines()
                .any(|pid| pid == client.id().to_string())
                .then_some(())
        });
        client
    }

    /// The sessions that our tmux server has.
    pub fn tmux_sessions(&self) -> Vec<String> {
        let listed = self.tmux(&["list-sessions", "-F", "#{session_name}"]);
        listed.lines().map(str::to_owned).filter(|name| name.starts_with("dev-")).collect()
    }

    /// SIGKILL to the turn that runs in a session without a terminal, and not to its keeper.
    pub fn kill_turn(&self, issue: u64) {
        let turn = self.wait_turn(issue);
        send(process_in(&turn).expect("the turn is on record"), Signal::KILL);
    }

    /// A file in the place of a session without a terminal.
    pub fn headless_file(&self, issue: u64, name: &str) -> Option<Value> {
        let place = self.runtime.join("headless").join(format!("dev-{}-{issue}", self.setup.name));
        serde_json::from_slice(&fs::read(place.join(name)).ok()?).ok()
    }

    /// Ends the keepers of sessions without a terminal, and their turns.
    pub(super) fn end_keepers(&self) {
        for place in fs::read_dir(self.runtime.join("headless")).into_iter().flatten().flatten() {
            for name in ["seat.json", "turn.json"] {
                let file = fs::read(place.path().join(name)).unwrap_or_default();
                let process: Value = serde_json::from_slice(&file).unwrap_or_default();
                // The record may be older than the process that has the number now.
                if let Some(pid) = process_in(&process)
                    && started_at(pid) == process["start_time"].as_u64()
                {
                    send(pid, Signal::KILL);
                }
            }
        }
    }

    /// Ends what works in the directories of this world: a killed daemon leaves the programs of CI and gates to the next one, and
    /// there is none.
    pub(super) fn end_programs(&self) {
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        for pid in pids.filter(|pid| *pid != std::process::id()) {
            if fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|dir| dir.starts_with(&self.root)) {
                send(pid, Signal::KILL);
            }
        }
    }

    pub(super) fn end_tmux(&self) {
        if !self.tmux_socket().exists() {
            return;
        }
        let pids = |text: String| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>();
        // A client that a killed daemon has left keeps the server from ending, and programs may ignore the hang-up.
        let clients = pids(self.tmux(&["list-clients", "-F", "#{client_pid}"]));
        let programs = pids(self.tmux(&["list-panes", "-a", "-F", "#{pane_pid}"]));
        self.tmux(&["kill-server"]);
        for pid in clients.into_iter().chain(programs) {
            send(pid, Signal::KILL);
        }
    }
}

fn process_in(record: &Value) -> Option<u32> {
    record["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
}

/// The 22nd field of `/proc/PID/stat`; the second may hold anything, in parentheses.
fn started_at(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id is a small number");
    // It may just have gone by itself.
    let _ = kill_process(pid, signal);
}
