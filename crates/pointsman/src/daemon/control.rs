//! The daemon's side of the control socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pointsman_adapters::http::Count;
use pointsman_core::hook::{Report, Told};
use pointsman_core::ids::TaskKey;
use pointsman_core::session::context::Symptom;
use pointsman_core::session::work::Observation;
use pointsman_core::task::{Event, ReviewVerdict, State};
use pointsman_view::forge::{Cost, Queued};
use pointsman_view::session::Taken;

use super::answer::{done, failed};
use super::board::Board;
use super::engine::Input;
use super::factory;
use super::inbound::{Inbound, Inbox};
use super::line;
use super::served::Served;
use super::sources::hooks::{self, Paces};
use super::vault;
use super::world::RealWorld;
use crate::control::protocol::{FailureKind, Fix, ForgeCommand, Reply, Request, RunCommand};
use crate::{claim, embedded_forge};

/// A request is one line; an issue's body is the largest thing in it.
const REQUEST_BYTES: u64 = 16 << 20;
/// A caller that sends nothing is not waited for longer than this.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// The loop answers in milliseconds; this is for a disk that hangs.
const ANSWER_LIMIT: Duration = Duration::from_secs(50);
/// Hooks come many times a second; which session a process is in is good for so long.
const PANES_FRESH: Duration = Duration::from_secs(1);
/// More callers at the same time are turned away.
const CALLERS: usize = 128;

/// Listens for commands.
pub(crate) struct Control {
    /// The road to the loop.
    pub inbox: Inbox,
    /// The tasks as they are.
    pub board: Board,
    /// The forges are in there.
    pub world: Arc<RealWorld>,
    /// Callers that are being served.
    pub callers: AtomicUsize,
    /// Which sessions there are, as far as hooks need to know.
    pub panes: Mutex<Panes>,
    pub paces: Mutex<Paces>,
}

/// The first processes of all sessions, as they were a moment ago.
#[derive(Default)]
pub(crate) struct Panes {
    listed: Option<Instant>,
    pids: Vec<(u32, String)>,
}

impl Control {
    /// Binds the socket, for us alone. A socket left by a killed daemon is replaced: the caller holds
    /// the lock, so nobody listens there.
    pub(crate) fn listen(self: Arc<Self>, socket: &Path) -> std::io::Result<()> {
        match std::fs::remove_file(socket) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        let listener = UnixListener::bind(socket)?;
        std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
        std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                match stream {
                    Ok(stream) => Arc::clone(&self).serve(stream),
                    Err(error) => tracing::warn!(%error, "a command could not be heard"),
                }
            }
        })?;
        Ok(())
    }

    fn serve(self: Arc<Self>, stream: UnixStream) {
        if self.callers.fetch_add(1, Ordering::SeqCst) >= CALLERS {
            self.callers.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        let spawned = std::thread::Builder::new().name("caller".to_owned()).spawn({
            let control = Arc::clone(&self);
            move || {
                if let Err(error) = control.talk(&stream) {
                    tracing::debug!(%error, "a command went away");
                }
                control.callers.fetch_sub(1, Ordering::SeqCst);
            }
        });
        if spawned.is_err() {
            self.callers.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn talk(&self, mut stream: &UnixStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(REQUEST_LIMIT))?;
        stream.set_write_timeout(Some(REQUEST_LIMIT))?;
        let peer = rustix::net::sockopt::socket_peercred(stream).ok();
        if peer.is_none_or(|p| p.uid != rustix::process::getuid()) {
            return Ok(());
        }
        let mut line = Vec::new();
        BufReader::new(stream.take(REQUEST_BYTES)).read_until(b'\n', &mut line)?;
        let reply = match serde_json::from_slice::<Request>(&line) {
            Ok(request) => self.answer(request, peer.map(|p| p.pid.as_raw_nonzero().get().unsigned_abs())),
            Err(error) => failed(FailureKind::Failed, format!("the request cannot be read: {error}")),
        };
        let mut answer = serde_json::to_vec(&reply)?;
        answer.push(b'\n');
        stream.write_all(&answer)
    }

    fn answer(&self, request: Request, peer: Option<u32>) -> Reply {
        if let Request::ForgeStats { project } = &request {
            return match self.world.project(project) {
                Some(served) => done(costs(&served.forge.costs())),
                None => failed(FailureKind::NotFound, format!("project {project} is not served")),
            };
        }
        if let Request::Health { project, fix } = &request {
            let Some(served) = self.world.project(project) else {
                return failed(FailureKind::NotFound, format!("project {project} is not served"));
            };
            if *fix == Fix::Do && peer.is_some_and(|pid| self.is_in_session(pid)) {
                return failed(FailureKind::Refused, "an agent remedies nothing".to_owned());
            }
            return match factory::examine(&self.world, &self.inbox, &served, *fix) {
                Ok(health) => done(health),
                Err(error) => failed(FailureKind::Failed, format!("{error:#}")),
            };
        }
        if let Request::Forge { project, command } = &request {
            let Some(served) = self.world.project(project) else {
                return failed(FailureKind::NotFound, format!("project {project} is not served"));
            };
            let Some(forge) = &served.embedded else {
                return failed(FailureKind::Refused, format!("{project} has a forge of its own"));
            };
            if approves(command) && peer.is_some_and(|pid| self.is_in_session(pid)) {
                return failed(FailureKind::Refused, "an agent does not approve its own work".to_owned());
            }
            let command = match command {
                ForgeCommand::MergePull { number } => match self.approval(*number) {
                    Ok(approval) => approval,
                    Err(reply) => return reply,
                },
                other => other.clone(),
            };
            let reply = embedded_forge::run_command(forge, &command);
            self.inbox.send(Inbound::AskForge { project: project.clone() });
            return reply;
        }
        if matches!(request, Request::ResumeRole { .. } | Request::LookNow { .. })
            && peer.is_some_and(|pid| self.is_in_session(pid))
        {
            return failed(FailureKind::Refused, "an agent does not steer roles".to_owned());
        }
        if matches!(request, Request::TryNotifiers { .. }) && peer.is_some_and(|pid| self.is_in_session(pid))
        {
            return failed(FailureKind::Refused, "an agent calls nobody".to_owned());
        }
        if let Request::Hook { report } = &request
            && let Some(reply) = self.hook(report, peer)
        {
            return reply;
        }
        if let Request::Claim { project, order } = &request {
            let Some(served) = self.world.project(project) else {
                return failed(FailureKind::NotFound, format!("project {project} is not served"));
            };
            if peer.is_some_and(|pid| self.is_in_session(pid)) {
                return failed(FailureKind::Refused, "a session of the daemon claims nothing".to_owned());
            }
            let place = claim::Place { forge: &*served.forge, git: &self.world.git, config: &served.config };
            let reply = claim::carry_out(&place, order);
            self.inbox.send(Inbound::AskForge { project: project.clone() });
            return reply;
        }
        let request = match request {
            Request::Queue { project, command } => {
                if peer.is_some_and(|pid| self.is_in_session(pid)) {
                    return failed(
                        FailureKind::Refused,
                        "an agent does not steer the merge queue".to_owned(),
                    );
                }
                let Some(served) = self.world.project(&project) else {
                    return failed(FailureKind::NotFound, format!("project {project} is not served"));
                };
                match line::prepare(&served, command) {
                    Ok(command) => Request::Queue { project, command },
                    Err(reply) => return reply,
                }
            }
            Request::Run { project, command } => {
                let speaker = peer.and_then(|pid| self.session_of(pid));
                match (&command, speaker) {
                    (RunCommand::StepDone { session, .. }, Some(epoch))
                        if epoch != super::world::epoch(session) =>
                    {
                        let message = format!("another session speaks for {session}");
                        return failed(FailureKind::Refused, message);
                    }
                    (RunCommand::Start { .. } | RunCommand::Stop { .. }, Some(_)) => {
                        return failed(FailureKind::Refused, "an agent starts and ends no runs".to_owned());
                    }
                    _ => Request::Run { project, command },
                }
            }
            Request::Vault { project, command } => match peer.and_then(|pid| self.identity_of(pid)) {
                Some(session) => match vault::from_session(command, &session) {
                    Ok(command) => Request::Vault { project, command },
                    Err(reply) => return reply,
                },
                None => Request::Vault { project, command },
            },
            other => other,
        };
        let (reply, answer) = sync_channel(1);
        self.inbox.send(Inbound::Ask { request, reply });
        answer
            .recv_timeout(ANSWER_LIMIT)
            .unwrap_or_else(|_| failed(FailureKind::Failed, "the daemon is busy or stopping".to_owned()))
    }

    /// What can be answered before the loop has written it down; none if the loop must be asked.
    fn hook(&self, report: &Report, peer: Option<u32>) -> Option<Reply> {
        let (key, generation) = TaskKey::parse_session(&report.session)?;
        let epoch = super::world::epoch(&report.session);
        if peer.is_some_and(|pid| self.session_of(pid).is_some_and(|other| other != epoch)) {
            let message = format!("another session speaks for {}", report.session);
            return Some(failed(FailureKind::Refused, message));
        }
        let served = self.world.project(&key.project)?;
        let present = self.board.look().get(&key).is_some_and(|task| task.generation == generation);
        if !present {
            return None;
        }
        // Before the answer: the agent goes on only then.
        self.world.stances.hear(report);
        hooks::mark_idle(&served.desk(&key), &report.told);
        if self.paces.lock().unwrap_or_else(PoisonError::into_inner).take(&key, generation, report) {
            let event = Event::SymptomSeen { generation, symptom: Symptom::Slow };
            self.inbox.tell(Input::new(key.clone(), event));
        }
        match &report.told {
            Told::Asked { what } => {
                let identity = key.identity();
                let seat = self.world.drivers.find(&identity).ok().flatten();
                let picture = seat.map(|seat| self.world.tail(&served, &identity, &seat)).unwrap_or_default();
                let event = Event::DialogSeen { generation, what: what.clone(), picture };
                let mut input = Input::new(key, event);
                input.dedup = Some(format!("hook-{}", report.id));
                self.inbox.tell(input);
                Some(done(Taken { taken: true }))
            }
            told if told.matters() => None,
            _ => {
                if let Told::Tool { work, used_tokens, .. } = &report.told {
                    if let Some(event) = used_tokens.and_then(|tokens| self.measured(&served, report, tokens))
                    {
                        self.inbox.tell(Input::new(key.clone(), event));
                    }
                    let observations = vec![Observation::Did((*work).into())];
                    self.inbox.send(Inbound::Observed { key, observations, read_to: None });
                }
                Some(done(Taken { taken: true }))
            }
        }
    }

    /// What a transcript's figures say, by the model that the session runs.
    fn measured(&self, served: &Served, report: &Report, tokens: u64) -> Option<Event> {
        let (_, generation) = TaskKey::parse_session(&report.session)?;
        let reader = self.world.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let row = reader.session(&report.session).ok().flatten();
        hooks::measured(tokens, row.as_ref(), generation, served.config.context.window)
    }

    /// The session of ours that a process descends from, by its epoch.
    fn session_of(&self, pid: u32) -> Option<String> {
        let ancestors = pointsman_adapters::process::ancestors(pid);
        let mut panes = self.panes.lock().unwrap_or_else(PoisonError::into_inner);
        if panes.listed.is_none_or(|at| at.elapsed() > PANES_FRESH) {
            let listed = self.world.drivers.list().ok()?;
            panes.pids = listed.into_iter().map(|(_, seat)| (seat.pid, seat.epoch)).collect();
            panes.listed = Some(Instant::now());
        }
        panes.pids.iter().find(|(pid, _)| ancestors.contains(pid)).map(|(_, epoch)| epoch.clone())
    }

    /// The identity of the session of ours that a process descends from.
    fn identity_of(&self, pid: u32) -> Option<String> {
        let seats = self.world.drivers.list().ok()?;
        let ancestors = pointsman_adapters::process::ancestors(pid);
        seats.into_iter().find(|(_, seat)| ancestors.contains(&seat.pid)).map(|(identity, _)| identity)
    }

    /// A person's order to merge is an approval of the present head; the queue does the rest.
    fn approval(&self, number: u64) -> Result<ForgeCommand, Reply> {
        let picture = self.board.look();
        let Some(task) = picture.values().find(|t| t.pr == Some(number)) else {
            let message = format!("pull request {number} belongs to no task that is under way");
            return Err(failed(FailureKind::NotFound, message));
        };
        match task.state {
            State::AwaitingReview | State::Escalated => Ok(ForgeCommand::Review {
                number,
                verdict: ReviewVerdict::Approve,
                body: "merge ordered".to_owned(),
                author: "operator".to_owned(),
            }),
            State::MergeQueue => Err(done(Queued { number, state: task.state })),
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingCi
            | State::Blocked
            | State::Refused
            | State::Paused
            | State::Merged
            | State::Closed => Err(failed(
                FailureKind::Refused,
                format!("pull request {number} cannot be merged: its task is {}", task.state),
            )),
        }
    }

    /// Whether a process descends from a session of ours.
    fn is_in_session(&self, pid: u32) -> bool {
        let sessions: Vec<u32> = match self.world.drivers.list() {
            Ok(seats) => seats.into_iter().map(|(_, seat)| seat.pid).collect(),
            Err(_) => return false,
        };
        pointsman_adapters::process::ancestors(pid).iter().any(|ancestor| sessions.contains(ancestor))
    }
}

/// What an agent must not say about its own work: that it may land, or that its checks are green.
fn approves(command: &ForgeCommand) -> bool {
    matches!(
        command,
        ForgeCommand::Review { verdict: ReviewVerdict::Approve, .. }
            | ForgeCommand::MergePull { .. }
            | ForgeCommand::SetCheck { .. }
    )
}

/// What asking a forge has cost, as `forge stats` prints it.
fn costs(costs: &[(&'static str, Count)]) -> Vec<Cost> {
    let one = |(operation, count): &(&'static str, Count)| Cost {
        operation: (*operation).to_owned(),
        calls: count.calls,
        unchanged: count.unchanged,
        failed: count.failed,
        sent_bytes: count.sent,
        received_bytes: count.received,
        waited_ms: u64::try_from(count.waited.as_millis()).unwrap_or(u64::MAX),
    };
    costs.iter().map(one).collect()
}
