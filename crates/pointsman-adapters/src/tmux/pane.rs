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

/// How a pane's program ended: one of the two is known.
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
    /// How it ended. A dead pane has none for a moment: tmux sees the terminal close before it collects the process.
    /// See [`super::Server::wait_for_exit`].
    pub exit: Option<PaneExit>,
    /// The epoch the session was started with; empty for a pane that [`super::Server::start`] did not make.
    pub epoch: String,
}

impl PaneInfo {
    /// What `list-panes` is asked for. The session's name is last: the other fields cannot hold the separator.
    pub(super) const FORMAT: &str = "#{pane_id}|#{pane_pid}|#{pane_dead}|#{pane_dead_status}|#{pane_dead_signal}\
                                     |#{pid}|#{@epoch}|#{session_name}";

    /// Reads a line of that format: the session's name and the pane.
    pub(super) fn parse(line: &str) -> Option<(String, PaneInfo)> {
        let fields: Vec<&str> = line.splitn(8, '|').collect();
        let [pane_id, pid, dead, status, signal, server, epoch, session] = fields[..] else { return None };
        let pid = pid.parse().ok()?;
        let server: u32 = server.parse().ok()?;
        let dead = dead == "1";
        let start_time = ProcStat::read(pid)
            .ok()
            .filter(|stat| !dead && stat.parent == server)
            .map(|stat| stat.start_time);
        let exit = PaneExit { status: status.parse().ok(), signal: signal.parse().ok() };
        let exit = Some(exit).filter(|exit| dead && (exit.status.is_some() || exit.signal.is_some()));
        let info =
            PaneInfo { pane_id: pane_id.parse().ok()?, pid, start_time, dead, exit, epoch: epoch.to_owned() };
        Some((session.to_owned(), info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_pane_tells_its_exit() {
        let (session, info) = PaneInfo::parse("%3|4194304|1||9|1|e-1|dev-a-4").expect("a complete line");
        assert_eq!(session, "dev-a-4");
        assert_eq!(info.exit, Some(PaneExit { status: None, signal: Some(9) }));
        assert_eq!((info.start_time, info.epoch.as_str()), (None, "e-1"));
        let (_, info) = PaneInfo::parse("%3|4194304|1|||1|e-1|dev-a-4").expect("a complete line");
        assert!(info.dead && info.exit.is_none(), "closed, and not collected yet");
    }

    #[test]
    fn pane_ids_are_nothing_but_numbers() {
        for bad in ["", "%", "3", "%3;", "%-1", "%3 -t %4", "%99999999999"] {
            assert!(bad.parse::<PaneId>().is_err(), "{bad:?}");
        }
        assert_eq!("%12".parse::<PaneId>().expect("a pane id").to_string(), "%12");
    }
}
