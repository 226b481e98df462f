//! Panes of the tmux server: their ids, processes and ends.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Error;
use crate::watch::proc_stat::ProcStat;

/// A pane's number within its server, such as `%12`. A new server counts from `%0` again: pair it with an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PaneId(String);

impl FromStr for PaneId {
    type Err = Error;

    fn from_str(text: &str) -> Result<PaneId, Error> {
        let digits = text.strip_prefix('%').unwrap_or_default();
        if digits.is_empty() || digits.len() > 10 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::Malformed { what: "pane", value: text.to_owned(), allowed: "% and digits" });
        }
        Ok(PaneId(text.to_owned()))
    }
}

impl TryFrom<String> for PaneId {
    type Error = Error;

    fn try_from(text: String) -> Result<PaneId, Error> {
        text.parse()
    }
}

impl From<PaneId> for String {
    fn from(id: PaneId) -> String {
        id.0
    }
}

impl fmt::Display for PaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The end of a pane's program: exactly one of the two is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaneExit {
    /// The exit status, if it exited.
    pub status: Option<i32>,
    /// The signal, if one ended it.
    pub signal: Option<i32>,
}

/// A pane as the server and `/proc` describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneInfo {
    /// Its address for [`super::Server::send_message`].
    pub pane_id: PaneId,
    /// The process tmux started in it.
    pub pid: u32,
    /// When that process started, in clock ticks since boot: with the pid it names the process for good.
    /// `None` if the process is gone, or the pid belongs to something the server did not start.
    pub start_time: Option<u64>,
    /// Whether the program has ended.
    pub dead: bool,
    /// How it ended. A dead pane may have none yet: tmux sees the terminal close before it collects the process.
    /// See [`super::Server::wait_for_exit`].
    pub exit: Option<PaneExit>,
    /// The epoch the session was started with; empty for a pane that [`super::Server::start`] did not make.
    pub epoch: String,
}

impl PaneInfo {
    /// What `list-panes` is asked for. The session's name is last: the other fields cannot hold the separator.
    pub(super) const FORMAT: &str = "#{pane_id}|#{pane_pid}|#{pane_dead}|#{pane_dead_status}|#{pane_dead_signal}\
                                     |#{pid}|#{@epoch}|#{session_name}";

    /// Reads a line of that format.
    pub(super) fn parse(line: &str) -> Option<Listed> {
        let fields: Vec<&str> = line.splitn(8, '|').collect();
        let [pane_id, pid, dead, status, signal, server, epoch, session] = fields[..] else { return None };
        let (pid, server): (u32, u32) = (pid.parse().ok()?, server.parse().ok()?);
        let dead = dead == "1";
        let process = ProcStat::read(pid).ok().filter(|stat| stat.parent == server);
        let exit = PaneExit { status: status.parse().ok(), signal: signal.parse().ok() };
        let exit = Some(exit).filter(|exit| dead && (exit.status.is_some() || exit.signal.is_some()));
        let uncollected = dead && exit.is_none() && process.is_some_and(|stat| stat.state == 'Z');
        let start_time = process.filter(|_| !dead).map(|stat| stat.start_time);
        let info =
            PaneInfo { pane_id: pane_id.parse().ok()?, pid, start_time, dead, exit, epoch: epoch.to_owned() };
        Some(Listed { session: session.to_owned(), info, uncollected_by: uncollected.then_some(server) })
    }
}

/// One line of a listing.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) session: String,
    pub(super) info: PaneInfo,
    /// The server's pid, if the pane's process is a zombie that the server has not collected yet.
    pub(super) uncollected_by: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_pane_tells_its_exit() {
        let Listed { session, info, .. } =
            PaneInfo::parse("%3|4194304|1||9|1|e-1|dev-a-4").expect("a complete line");
        assert_eq!(session, "dev-a-4");
        assert_eq!(info.exit, Some(PaneExit { status: None, signal: Some(9) }));
        assert_eq!((info.start_time, info.epoch.as_str()), (None, "e-1"));
        let Listed { info, .. } = PaneInfo::parse("%3|4194304|1|||1|e-1|dev-a-4").expect("a complete line");
        assert!(info.dead && info.exit.is_none(), "closed, and not collected yet");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test's own process")]
    fn a_process_that_the_server_forgot_is_recognised() {
        let mut child = std::process::Command::new("true").spawn().expect("true is everywhere");
        let (pid, me) = (child.id(), std::process::id());
        while ProcStat::read(pid).expect("a child that nobody waits for stays").state != 'Z' {
            std::thread::yield_now();
        }
        let forgotten_by = |line: String| PaneInfo::parse(&line).expect("a complete line").uncollected_by;
        assert_eq!(forgotten_by(format!("%3|{pid}|1|||{me}|e-1|dev-a-4")), Some(me));
        assert_eq!(forgotten_by(format!("%3|{pid}|1|0||{me}|e-1|dev-a-4")), None, "its exit is known");
        assert_eq!(forgotten_by(format!("%3|{pid}|1|||1|e-1|dev-a-4")), None, "not a child of that server");
        child.wait().expect("it is ours to wait for");
        assert_eq!(forgotten_by(format!("%3|{pid}|1|||{me}|e-1|dev-a-4")), None, "collected");
    }

    #[test]
    fn pane_ids_are_nothing_but_numbers() {
        for bad in ["", "%", "3", "%3;", "%-1", "%3 -t %4", "%99999999999"] {
            assert!(bad.parse::<PaneId>().is_err(), "{bad:?}");
        }
        assert_eq!("%12".parse::<PaneId>().expect("a pane id").to_string(), "%12");
    }
}
