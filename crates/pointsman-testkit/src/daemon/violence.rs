//! Ending things: the daemon, its tmux server, a session. Always by process id or by the socket of this world.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

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

    /// The sessions that our tmux server has.
    pub fn tmux_sessions(&self) -> Vec<String> {
        let listed = self.tmux(&["list-sessions", "-F", "#{session_name}"]);
        listed.lines().map(str::to_owned).filter(|name| name.starts_with("dev-")).collect()
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

fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id is a small number");
    // It may just have gone by itself.
    let _ = kill_process(pid, signal);
}
