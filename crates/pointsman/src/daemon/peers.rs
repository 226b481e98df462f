//! Facts about a caller: what the kernel, the store and the sessions' own files say about its process.
//!
//! `control/caller.rs` decides what they mean. Nothing here waits for tmux but [`Peers::look_again`]: a tmux server
//! that hangs must not make an agent a person, nor keep a person waiting.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use pointsman_adapters::headless::Headless;
use pointsman_adapters::login::Logins;
use pointsman_adapters::phase_file;
use pointsman_adapters::process::lineage::{self, ProcessHandle};
use pointsman_adapters::process::{Process, host_name};
use pointsman_adapters::tmux::Server;
use pointsman_core::ids::TaskKey;
use pointsman_core::people::{AccountKind, People};
use pointsman_core::run::{RunId, Subject};
use pointsman_core::words;
use pointsman_store::{self as store, SessionRow, SessionScope, Store};

use super::effects::epoch;
use crate::control::access::is_decision;
use crate::control::caller::{
    Caller, CallerKind, Origin, OwnProcesses, OwnSession, ProcessFacts, SessionProcess, SessionProcessKind,
    Unknown, identify,
};
use crate::control::protocol::Request;
use crate::paths::Paths;

/// Names the session to its agent and to all that it starts.
const SESSION: &str = "POINTSMAN_SESSION";
/// The file of [`Origin`] is a few numbers.
const ORIGIN_BYTES: u64 = 1 << 20;

/// The means to identify a caller.
pub(crate) struct Peers {
    uid: u32,
    daemon: Option<Process>,
    origin: Option<Origin>,
    host: String,
    tmux: Arc<Server>,
    headless: Headless,
    /// A reader of its own; none if nothing was ever written.
    store: Option<Mutex<Store>>,
    /// The process of the tmux server when it was last looked for.
    terminals: Mutex<Option<Process>>,
    logins: Logins,
    /// Whose word counts, as the machine's file said when this process began.
    people: People,
}

/// A peer as its socket names it.
#[derive(Debug)]
pub(crate) struct Peer {
    uid: u32,
    /// None if it has ended and cannot be looked at any more.
    process: Option<ProcessHandle>,
}

impl Peer {
    /// The process that connected this socket.
    pub(crate) fn of(stream: &UnixStream) -> std::io::Result<Self> {
        let peer = rustix::net::sockopt::socket_peercred(stream)?;
        let process = ProcessHandle::peer(stream, peer.pid.as_raw_nonzero().get().unsigned_abs());
        Ok(Self { uid: peer.uid.as_raw(), process: process.ok() })
    }
}

impl Peers {
    /// For the daemon. Says in the state directory where it came from, for commands that are run while none is there.
    pub(crate) fn of_daemon(paths: &Paths, tmux: Arc<Server>, people: People) -> anyhow::Result<Self> {
        let origin = origin()?;
        phase_file::write_state_file(&paths.origin(), &serde_json::to_vec(&origin)?)?;
        let store = Some(Store::open_read_only(&paths.database())?);
        let mut peers = Self::new(paths, store, tmux, people)?;
        peers.daemon = Process::of(std::process::id());
        peers.origin = Some(origin);
        Ok(peers)
    }

    /// For a command that acts in the daemon's place, or is about to become one.
    pub(crate) fn of_command(paths: &Paths, people: People) -> anyhow::Result<Self> {
        let (store, has_run) = match Store::open_for_command(&paths.database()) {
            Ok(store) => {
                let has_run = !store.sessions(None, SessionScope::All)?.is_empty();
                (Some(store), has_run)
            }
            Err(store::Error::Missing { .. }) => (None, false),
            // A daemon is about to bring it up to date; until then it cannot be read.
            Err(store::Error::TooOld { .. }) => (None, true),
            Err(error) => return Err(error.into()),
        };
        let tmux = Server::new(paths.tmux_socket(), paths.tmux_config())?;
        let mut peers = Self::new(paths, store, Arc::new(tmux), people)?;
        // Sessions were run here, whoever took the file away.
        if has_run {
            peers.origin.get_or_insert_default();
        }
        Ok(peers)
    }

    fn new(paths: &Paths, store: Option<Store>, tmux: Arc<Server>, people: People) -> anyhow::Result<Self> {
        Ok(Self {
            uid: rustix::process::getuid().as_raw(),
            daemon: None,
            origin: read_origin(&paths.origin())?,
            host: host_name(),
            tmux,
            headless: Headless::new(paths.headless()),
            store: store.map(Mutex::new),
            terminals: Mutex::default(),
            logins: Logins::default(),
            people,
        })
    }

    /// Identifies a peer without asking tmux.
    pub(crate) fn look(&self, peer: &Peer) -> CallerKind {
        self.kind(peer, self.sessions())
    }

    /// The same with tmux's word on its sessions. Only for those that cannot be people: a session that has just been
    /// started speaks before its process is written down.
    pub(crate) fn look_again(&self, peer: &Peer) -> CallerKind {
        let mut sessions = Vec::new();
        for (identity, pane) in self.tmux.list().unwrap_or_default() {
            // `dev-shop-3_2` in tmux is `dev-shop-3.2`.
            let (Some(start_time), Some((_, generation))) = (pane.start_time, pane.epoch.rsplit_once('_'))
            else {
                continue;
            };
            let process = Process { pid: pane.pid, start_time };
            sessions.push(SessionProcess {
                process,
                session: format!("{identity}.{generation}"),
                runtime: SessionProcessKind::Pane,
            });
        }
        self.kind(peer, sessions)
    }

    /// Ourselves, as a caller.
    pub(crate) fn ourselves(&self) -> Caller {
        let peer = Peer { uid: self.uid, process: ProcessHandle::open(std::process::id()).ok() };
        match self.look(&peer) {
            CallerKind::Other(Unknown::InATerminal) => self.caller(self.look_again(&peer)),
            kind => self.caller(kind),
        }
    }

    /// The person as whom the daemon runs.
    pub(crate) fn owner(&self) -> String {
        self.people.recorded(AccountKind::Login, &self.logins.name(self.uid))
    }

    /// With the name of a person, and with what a session owns.
    pub(crate) fn caller(&self, kind: CallerKind) -> Caller {
        match kind {
            CallerKind::Person { uid } => {
                Caller::Person { name: self.people.recorded(AccountKind::Login, &self.logins.name(uid)) }
            }
            CallerKind::Session(session) => match self.read(|store| own(store, &session)) {
                Some(own) => Caller::Session(own),
                None => Caller::Other(Unknown::StrangeSession),
            },
            CallerKind::Keeper(session) => Caller::Keeper { session },
            CallerKind::Other(unknown) => Caller::Other(unknown),
        }
    }

    /// The reason why somebody with a login may not decide this: `[people]` names others.
    pub(crate) fn refuses(&self, caller: &Caller, request: &Request) -> Option<String> {
        match caller {
            Caller::Person { name } | Caller::Token { name, .. }
                if is_decision(request) && !self.people.knows(name) =>
            {
                Some(words::people::not_listed(name))
            }
            _ => None,
        }
    }

    fn kind(&self, peer: &Peer, sessions: Vec<SessionProcess>) -> CallerKind {
        let Some(process) = &peer.process else { return CallerKind::Other(Unknown::Unseen) };
        let known = OwnProcesses {
            uid: self.uid,
            daemon: self.daemon,
            tmux: self.terminals(),
            sessions,
            origin: self.origin.clone(),
        };
        match self.facts(peer.uid, process) {
            Ok(facts) => identify(&facts, &known),
            Err(error) => {
                tracing::debug!(pid = process.pid(), %error, "a caller cannot be identified");
                CallerKind::Other(Unknown::Unseen)
            }
        }
    }

    fn facts(&self, uid: u32, process: &ProcessHandle) -> std::io::Result<ProcessFacts> {
        let lineage = process.lineage()?;
        let marked = lineage::is_marked(process.pid())?;
        let mut foreign = Vec::new();
        if marked && self.origin.as_ref().is_some_and(|origin| origin.marked) {
            let is_foreign = |p: &&Process| lineage::user_of(p.pid).is_ok_and(|user| user != self.uid);
            foreign = lineage.processes.iter().filter(is_foreign).copied().collect();
        }
        let names = lineage::variable_of(process.pid(), SESSION).filter(|session| !session.is_empty());
        // Now, after everything was read: the pid meant the same process all the time.
        match process.is_there() {
            true => Ok(ProcessFacts { uid, lineage, marked, foreign, names }),
            false => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        }
    }

    /// Sessions as they are written down: none of it needs tmux to answer.
    fn sessions(&self) -> Vec<SessionProcess> {
        let rows = self.read(|store| {
            let read = store.sessions(None, SessionScope::Live);
            let failed =
                |error| tracing::warn!(%error, "sessions cannot be read: those inside one are refused");
            read.map_err(failed).ok()
        });
        rows.unwrap_or_default().into_iter().filter_map(|row| self.process_of(row)).collect()
    }

    fn read<T>(&self, from: impl FnOnce(&Store) -> Option<T>) -> Option<T> {
        from(&self.store.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn process_of(&self, row: SessionRow) -> Option<SessionProcess> {
        if !row.host.is_empty() && row.host != self.host {
            return None;
        }
        let (process, runtime) = match (row.pid, row.start_time) {
            (Some(pid), Some(start_time)) => {
                let runtime =
                    if row.pane.is_some() { SessionProcessKind::Pane } else { SessionProcessKind::Keeper };
                (Process { pid, start_time }, runtime)
            }
            // Just started: a keeper says so itself, in a file.
            _ => {
                let dir = self.headless.session_dir(&row.identity).ok()?;
                let opened = dir.opened().ok().flatten()?;
                let process =
                    dir.keeper_process().ok().flatten().filter(|_| opened.epoch == epoch(&row.session))?;
                (process, SessionProcessKind::Keeper)
            }
        };
        Some(SessionProcess { process, session: row.session, runtime })
    }

    fn terminals(&self) -> Option<Process> {
        let mut known = self.terminals.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.is_some_and(Process::is_alive) {
            *known = self.tmux.process();
        }
        *known
    }
}

/// What a session owns, by what is written down of it.
fn own(store: &Store, session: &str) -> Option<OwnSession> {
    let row = store.session(session).ok().flatten()?;
    let (issue, pr, head) = (None, None, None);
    let nothing = OwnSession { session: row.session, role: row.role, project: row.project, issue, pr, head };
    let project = &nothing.project;
    if let Some(issue) = row.issue {
        let task = store.task(&TaskKey { project: project.clone(), issue }).ok().flatten();
        let (pr, head) =
            task.map_or((None, None), |task| (task.contribution.pr(), task.contribution.head().cloned()));
        return Some(OwnSession { issue: Some(issue), pr, head, ..nothing });
    }
    let run = row.identity.rsplit_once('-').and_then(|(_, id)| id.parse().ok());
    let run = run.and_then(|id| store.run(project, RunId(id)).ok().flatten());
    Some(match run.and_then(|run| run.subject) {
        Some(Subject::Review { pr, sha, .. }) => {
            let tasks = store.tasks(Some(project)).unwrap_or_default();
            let issue =
                tasks.iter().find(|task| task.contribution.pr() == Some(pr)).map(|task| task.key.issue);
            OwnSession { issue, pr: Some(pr), head: Some(sha), ..nothing }
        }
        Some(Subject::Action { issue }) => OwnSession { issue: Some(issue), ..nothing },
        Some(Subject::Vault { .. }) | None => nothing,
    })
}

/// Where this process comes from.
fn origin() -> std::io::Result<Origin> {
    let me = std::process::id();
    let mut ancestors = ProcessHandle::open(me)?.lineage()?.processes;
    ancestors.retain(|process| process.pid != me);
    let marked = lineage::is_marked(me)?;
    let mut near = Vec::new();
    if marked {
        match lineage::reaper() {
            Ok(reaper) => {
                near = ancestors.iter().take_while(|p| p.pid != reaper && p.pid != 1).copied().collect()
            }
            Err(error) => tracing::warn!(%error, "who adopts orphans is not known"),
        }
    }
    Ok(Origin { marked, ancestors, near })
}

fn read_origin(path: &Path) -> anyhow::Result<Option<Origin>> {
    let read = phase_file::read_result_file(path, ORIGIN_BYTES);
    let read = read.map_err(|refusal| anyhow::anyhow!("{}: {refusal}", path.display()))?;
    let parsed = read.map(|bytes| serde_json::from_slice(&bytes)).transpose();
    parsed.with_context(|| words::access::broken_origin(&path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::read_origin;

    #[test]
    fn a_broken_record_of_the_last_daemon_is_named_with_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("origin.json");
        assert_eq!(read_origin(&path).unwrap(), None, "no daemon has ever run here");
        std::fs::write(&path, "{\"marked\": ").unwrap();
        let error = read_origin(&path).unwrap_err().to_string();
        assert!(error.contains(&*path.to_string_lossy()) && error.contains("remove it"), "{error}");
    }
}
