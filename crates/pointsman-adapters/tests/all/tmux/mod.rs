//! A real tmux on a private socket.

mod messages;
mod server;
mod sessions;

use std::path::Path;
use std::process::Command;

use pointsman_adapters::tmux::{NewSession, Server, Started, Target};
use tempfile::TempDir;

/// A server of one test; it is ended with the test.
pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) dir: TempDir,
}

impl Rig {
    pub(crate) fn new() -> Rig {
        let rig = Rig::cold("");
        rig.server.ensure_running().unwrap();
        rig
    }

    /// A server that is not started yet, in a directory of this name.
    pub(crate) fn cold(directory: &str) -> Rig {
        let dir = TempDir::new().unwrap();
        let place = dir.path().join(directory);
        let server = Server::new(place.join("s"), place.join("tmux.conf")).unwrap();
        Rig { server, dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A second object for the same server, as a restarted daemon has it.
    pub(crate) fn second(&self) -> Server {
        Server::new(self.server.socket(), self.dir.path().join("tmux.conf")).unwrap()
    }

    pub(crate) fn start(&self, name: &str, argv: &[&str]) -> Started {
        let transcript = Some(self.path().join(format!("{name}.log")));
        self.server.start(&NewSession { transcript, ..session(name, argv) }).unwrap()
    }

    /// Whether a line of the session's terminal starts like this.
    pub(crate) fn shows(&self, name: &str, text: &str) -> bool {
        let lines = self.server.capture_tail(Target::Session(name), 50).unwrap();
        lines.iter().any(|line| line.starts_with(text))
    }

    /// Asks the server behind the adapter's back.
    pub(crate) fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.server.socket())
            .args(arguments)
            .env_remove("TMUX")
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.server.shut_down();
    }
}

pub(crate) fn session(name: &str, argv: &[&str]) -> NewSession {
    NewSession {
        name: name.to_owned(),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        width: 120,
        height: 30,
        transcript: None,
        epoch: "e1".to_owned(),
    }
}
