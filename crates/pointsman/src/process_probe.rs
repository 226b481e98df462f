//! Sessions as this machine sees them, right now. What follows from it is the core's to say.

use pointsman_adapters::process;
use pointsman_adapters::tmux::Server;
use pointsman_core::session::liveness::{
    DEATHS_NEEDED, Evidence, Liveness, Probe, Rules, SessionHealth, judge,
};
use pointsman_core::time::Timestamp;
use pointsman_store::{SessionRow, SessionStatus};

use crate::paths::Paths;

/// A witness on this machine.
#[derive(Debug)]
pub(crate) struct ProcessProbe {
    /// Processes mean something on their own machine only.
    host: String,
}

impl ProcessProbe {
    /// A probe for sessions of this host.
    pub(crate) fn new() -> Self {
        Self { host: process::host_name() }
    }

    /// The recorded and the observed facts about a session. tmux is asked by [`terminal`], by callers that can wait
    /// for it.
    pub(crate) fn evidence(&self, row: &SessionRow, terminal: Option<Probe>) -> Evidence {
        let (process, times_gone) = self.process(row);
        Evidence {
            started_at: row.created_at,
            last_seen: row.last_seen,
            process,
            terminal,
            times_gone,
            times_stale: row.times_stale,
        }
    }

    /// The health of a session. An ended one is not looked at: its end is on record.
    pub(crate) fn health(&self, row: &SessionRow, rules: &Rules, now: Timestamp) -> SessionHealth {
        match row.status() {
            SessionStatus::Starting | SessionStatus::Active => {
                let found = judge(&self.evidence(row, Some(Probe::Unseen)), rules, now);
                let idle = found == Liveness::Alive && self.is_stopped(row);
                SessionHealth::Open(if idle { Liveness::Stale } else { found })
            }
            SessionStatus::Terminated => SessionHealth::Ended,
            SessionStatus::Crashed => SessionHealth::Crashed,
        }
    }

    /// Whether its process is there and held: it will give no sign until somebody lets it go on.
    fn is_stopped(&self, row: &SessionRow) -> bool {
        let here = row.host.is_empty() || row.host == self.host;
        here && row.pid.zip(row.start_time).is_some_and(|(pid, start)| process::is_stopped(pid, start))
    }

    /// A process that is not there is looked for as often as a death needs: a look may fail.
    fn process(&self, row: &SessionRow) -> (Probe, u32) {
        match (row.pid, row.start_time) {
            (Some(pid), Some(start)) if row.host.is_empty() || row.host == self.host => {
                let there = (0..DEATHS_NEEDED).any(|_| process::is_alive(pid, start));
                if there { (Probe::There, 0) } else { (Probe::Gone, DEATHS_NEEDED) }
            }
            _ => (Probe::Unseen, 0),
        }
    }
}

/// tmux's word on a session's pane, if it has one. A pane of the same name may be a successor's.
pub(crate) fn terminal(paths: &Paths, row: &SessionRow) -> Option<Probe> {
    let name = row.tmux_session.as_ref()?;
    let found = Server::new(paths.tmux_socket(), paths.tmux_config()).and_then(|server| server.find(name));
    Some(match found {
        Ok(Some(pane)) if !pane.dead && Some(pane.pid) == row.pid => Probe::There,
        Ok(Some(_) | None) => Probe::Gone,
        Err(_) => Probe::Unseen,
    })
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::ProjectName;
    use pointsman_core::session::budget::Spent;
    use pointsman_core::session::liveness::Probe;
    use pointsman_core::task::Task;
    use pointsman_core::time::Timestamp;
    use pointsman_store::SessionRow;

    use super::ProcessProbe;

    fn ourselves() -> SessionRow {
        let pid = std::process::id();
        SessionRow {
            session: "dev-shop-3.1".into(),
            identity: "dev-shop-3".into(),
            project: ProjectName::new("shop").unwrap(),
            issue: Some(3),
            role: Task::ROLE,
            generation: 1,
            host: pointsman_adapters::process::host_name(),
            model: None,
            bead_id: None,
            node_id: None,
            hook_path: None,
            tmux_session: None,
            pane: None,
            pid: Some(pid),
            start_time: pointsman_adapters::process::start_time(pid),
            tree: None,
            created_at: Timestamp(0),
            last_seen: Timestamp(0),
            times_stale: 0,
            ended_at: None,
            exit: None,
            acknowledges: false,
            predecessor: None,
            gauge: None,
            spent: Spent::default(),
        }
    }

    #[test]
    fn a_process_is_seen_on_its_own_machine_only() {
        let look = |row: &SessionRow| {
            let evidence = ProcessProbe::new().evidence(row, None);
            (evidence.process, evidence.times_gone)
        };
        let row = ourselves();
        assert_eq!(look(&row), (Probe::There, 0));
        let reused = SessionRow { start_time: row.start_time.map(|at| at + 1), ..row.clone() };
        assert_eq!(look(&reused), (Probe::Gone, 2), "the pid means another process");
        let elsewhere = SessionRow { host: "elsewhere.invalid".into(), ..reused };
        assert_eq!(look(&elsewhere), (Probe::Unseen, 0));
        assert_eq!(look(&SessionRow { pid: None, ..row }), (Probe::Unseen, 0));
    }
}
