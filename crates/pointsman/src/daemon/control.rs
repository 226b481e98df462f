//! The daemon's side of the control socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pointsman_adapters::http::Count;
use pointsman_adapters::secret::known;
use pointsman_core::concern::{self, About, ConcernKey};
use pointsman_core::ids::{ProjectName, Sha, TaskKey};
use pointsman_core::part::question::{Kind, Owner, Question, QuestionId, Settlement};
use pointsman_core::task::{ReviewVerdict, State};
use pointsman_core::words;
use pointsman_view::forge::{Cost, Queued};
use pointsman_view::inbox::Question as Shown;
use pointsman_view::status::Halted;

use super::answer::{done, failed};
use super::board::TaskBoard;
use super::clock;
use super::conditions::{self, FilingQuestions, ForgeContext};
use super::connections::{ConnectionLimits, LookPermit};
use super::decisions::Made;
use super::effects::EffectPerformer;
use super::engine::Input;
use super::factory;
use super::halt;
use super::handover;
use super::inbound::{Inbox, ThreadReport};
use super::peers::{Peer, Peers};
use super::queue_orders;
use super::reading;
use super::reports::{Reports, ask_loop};
use super::web;
use crate::control::access::{Access, Condition, may, name_of};
use crate::control::caller::{Caller, CallerKind, Unknown};
use crate::control::protocol::{FailureKind, ForgeCommand, InboxCommand, QueueCommand, Reply, Request};
use crate::{claim, embedded_forge};

/// A request is one line; an issue's body is the largest thing in it.
const REQUEST_BYTES: u64 = 16 << 20;
/// A caller that sends nothing is not waited for longer than this.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// Of what an agent sends: an issue of this length is longer than anybody reads.
const FOREIGN_BYTES: u64 = 1 << 20;
/// The most that is read and thrown away of a request that is too long. A client reads the reply only after it has sent
/// everything.
const DISCARDED_BYTES: u64 = 64 << 20;
/// The pause after a connection could not be accepted. The reason, most often too many open files, takes a moment to pass.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Listens for commands.
pub(crate) struct Control {
    /// The channel to the loop.
    pub inbox: Inbox,
    /// The tasks as they are.
    pub board: TaskBoard,
    /// The forges are in there.
    pub world: Arc<EffectPerformer>,
    pub peers: Peers,
    pub connections: Arc<ConnectionLimits>,
    pub reports: Arc<Reports>,
    /// The dashboard and the API; none if they are switched off or nobody can listen there.
    pub web: OnceLock<web::Web>,
    /// Held while a session files an issue, so that two of its processes do not both file the last one.
    pub filing: Mutex<()>,
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
            let pause = || std::thread::park_timeout(ACCEPT_PAUSE);
            accept(listener.incoming(), |stream| Arc::clone(&self).serve(stream), pause);
        })?;
        Ok(())
    }

    fn serve(self: Arc<Self>, stream: UnixStream) {
        let look = self.connections.look();
        spawn_caller(move || self.talk(&stream, look));
    }

    /// Serves a caller on the socket of one session: it is that session, whatever process it is.
    pub(super) fn serve_session(self: Arc<Self>, stream: UnixStream, session: String) {
        spawn_caller(move || self.answer_as(&stream, CallerKind::Session(session), None));
    }

    fn talk(&self, stream: &UnixStream, look: LookPermit) -> std::io::Result<()> {
        let peer = Peer::of(stream)?;
        let kind = self.peers.look(&peer);
        drop(look);
        self.answer_as(stream, kind, Some(&peer))
    }

    fn answer_as(
        &self,
        stream: &UnixStream,
        mut kind: CallerKind,
        peer: Option<&Peer>,
    ) -> std::io::Result<()> {
        stream.set_read_timeout(Some(REQUEST_LIMIT))?;
        stream.set_write_timeout(Some(REQUEST_LIMIT))?;
        let reply = match self.connections.take(&kind, Instant::now()) {
            Ok(_connection) => {
                // tmux may be slow to answer, so that is asked only of those who cannot be people.
                if let (CallerKind::Other(Unknown::InATerminal), Some(peer)) = (&kind, peer) {
                    kind = self.peers.look_again(peer);
                }
                let most =
                    if matches!(kind, CallerKind::Person { .. }) { REQUEST_BYTES } else { FOREIGN_BYTES };
                let caller = self.peers.caller(kind);
                let reply = match read_line(stream, most)? {
                    None => failed(FailureKind::Refused, words::access::too_long(most)),
                    Some(line) => match serde_json::from_slice::<Request>(&line) {
                        Ok(request) => self.answer(&caller, &request),
                        Err(error) => {
                            failed(FailureKind::Failed, words::access::no_request(&error.to_string()))
                        }
                    },
                };
                return send(stream, &reply);
            }
            Err(full) => failed(FailureKind::Failed, full),
        };
        send(stream, &reply)
    }

    /// The one place where it is asked who may ask what.
    pub(super) fn answer(&self, caller: &Caller, request: &Request) -> Reply {
        if let Some(why) = self.peers.refuses(caller, request) {
            return failed(FailureKind::Refused, why);
        }
        let (request, condition) = match may(caller, request) {
            Access::Allowed(request) => (*request, None),
            Access::AllowedIf(request, condition) => (*request, Some(condition)),
            Access::Refused(why) => {
                // Not louder: an agent can ask a hundred times a second.
                tracing::debug!(%caller, request = name_of(request), "refused: {why}");
                return failed(refusal_of(caller, request), why);
            }
        };
        let _filing = match condition {
            Some(Condition::MayFile) => Some(self.filing.lock().unwrap_or_else(PoisonError::into_inner)),
            Some(Condition::MessageIsOwn(_) | Condition::IssueIsOpen(_)) | None => None,
        };
        if let (Some(condition), Caller::Session(own)) = (condition, caller) {
            let served = self.world.project(&own.project);
            let at_the_forge = served.as_deref().and_then(|served| {
                Some(ForgeContext { forge: served.embedded.as_deref()?, config: &served.config })
            });
            // Everybody shares the reader, and a look at the forge can take long: it is not held meanwhile.
            let message = |id| self.world.read(|store| store.message(id));
            let key = |session: &str| ConcernKey {
                project: own.project.clone(),
                about: About::one_of(Kind::Filing, session),
            };
            let filing = FilingQuestions {
                approved: &|session| {
                    let owner = Owner::Concern(key(session).about);
                    let asked = self.world.read(|store| store.last_question(&own.project, &owner));
                    let settled = asked.ok().flatten().and_then(|asked| asked.settled);
                    settled.is_some_and(|settled| settled.how == Settlement::Approved)
                },
                ask: &|own, why| {
                    let event = concern::Event::Raised {
                        kind: Kind::Filing,
                        text: why,
                        issue: own.issue,
                        pr: None,
                        told: false,
                    };
                    self.inbox.tell(Input::of_concern(key(&own.session), event));
                },
            };
            if let Err(reply) = conditions::holds(condition, own, message, at_the_forge, &filing) {
                return reply;
            }
        }
        let reply = self.carry_out(caller, request);
        match caller {
            // Issues and comments are outside text, and this one is on its way to an agent.
            Caller::Session(_) => reply.visible(),
            _ => reply,
        }
    }

    fn carry_out(&self, caller: &Caller, request: Request) -> Reply {
        match request {
            Request::ForgeStats { project } => match self.world.project(&project) {
                Some(served) => done(costs(&served.costs())),
                None => not_served(&project),
            },
            Request::Mask { text } => done(known().mask(&text)),
            Request::Health { project, fix } => {
                let Some(served) = self.world.project(&project) else { return not_served(&project) };
                match factory::examine(&self.world, &self.inbox, &served, fix) {
                    Ok(value) => done(value),
                    Err(error) => failed(FailureKind::Failed, format!("{error:#}")),
                }
            }
            Request::Forge { project, command } => {
                let Some(served) = self.world.project(&project) else { return not_served(&project) };
                let Some(forge) = &served.embedded else {
                    return failed(FailureKind::Refused, words::access::not_embedded(project.as_str()));
                };
                let command = match command {
                    ForgeCommand::MergePull { number } => match self.approval(number, caller) {
                        Ok(approval) => approval,
                        Err(reply) => return reply,
                    },
                    other => other,
                };
                let reply = embedded_forge::run_command(forge, &command);
                let request = Request::Forge { project: project.clone(), command };
                if let (Caller::Person { .. }, Some(made)) = (caller, Made::of(&request, &reply)) {
                    self.inbox.report(ThreadReport::Decided(Box::new(made)));
                }
                self.inbox.report(ThreadReport::AskForge { project });
                reply
            }
            Request::Claim { project, order } => {
                let Some(served) = self.world.project(&project) else { return not_served(&project) };
                let is_worked_on = |issue| {
                    let key = TaskKey { project: project.clone(), issue };
                    self.world
                        .read(|store| store.task(&key))
                        .is_ok_and(|task| claim::is_worked_on(task.as_ref()))
                };
                let place = claim::ClaimContext {
                    forge: &*served.forge,
                    git: &self.world.git,
                    config: &served.config,
                    is_worked_on: &is_worked_on,
                };
                let reply = claim::carry_out(&place, &order);
                self.inbox.report(ThreadReport::AskForge { project });
                reply
            }
            Request::Queue { project, command } => {
                let Some(served) = self.world.project(&project) else { return not_served(&project) };
                // The audit must not see a main that we have moved and not yet written down.
                let _moving = matches!(command, QueueCommand::Sync { .. }).then(|| served.hold_main());
                match queue_orders::prepare(&served, command) {
                    Ok(command) => ask_loop(&self.inbox, Request::Queue { project, command }),
                    Err(reply) => reply,
                }
            }
            Request::Handover { project, command } => {
                let Some(served) = self.world.project(&project) else { return not_served(&project) };
                match handover::prepare(&self.world, &served, command) {
                    Ok(command) => ask_loop(&self.inbox, Request::Handover { project, command }),
                    Err(reply) => reply,
                }
            }
            Request::Read { project, what, json } => match self.world.project(&project) {
                Some(served) => reading::read(&self.world, &served, &what, json),
                None => not_served(&project),
            },
            Request::Web { command } => web::answer(self.web.get(), command),
            Request::Hook { report } => self.reports.take(report),
            Request::Inbox { project, question, command } => self.settle(caller, project, question, command),
            Request::Halt { by } => self.halt(&by),
            request @ (Request::Status
            | Request::Down
            | Request::Resume
            | Request::Order { .. }
            | Request::Answer { .. }
            | Request::Acknowledge { .. }
            | Request::Checkpoint { .. }
            | Request::Measure { .. }
            | Request::Send { .. }
            | Request::ReloadProjects
            | Request::AddProject { .. }
            | Request::RemoveProject { .. }
            | Request::Run { .. }
            | Request::Vault { .. }
            | Request::ResumeRole { .. }
            | Request::LookNow { .. }
            | Request::TryNotifiers { .. }) => ask_loop(&self.inbox, request),
        }
    }

    /// Settles a question. A review is posted on the embedded forge first: the loop must not wait for it.
    fn settle(&self, caller: &Caller, project: ProjectName, id: QuestionId, command: InboxCommand) -> Reply {
        let asked = self.world.read(|store| store.question(id)).ok().flatten();
        let review = asked.filter(|asked| asked.kind == Kind::Review && asked.is_open());
        if let Some(asked) = &review
            && let Err(reply) = self.review(caller, &project, asked, &command)
        {
            return reply;
        }
        match (ask_loop(&self.inbox, Request::Inbox { project, question: id, command }), review) {
            // The review counts, and its task was quicker: nobody waits for an answer any more.
            (Reply::Failed { kind: FailureKind::Refused, .. }, Some(asked)) => {
                done(Shown::new(&asked, 0, None))
            }
            (reply, _) => reply,
        }
    }

    /// A yes or no to a pull request counts for the head that the question names.
    fn review(
        &self,
        caller: &Caller,
        project: &ProjectName,
        asked: &Question,
        command: &InboxCommand,
    ) -> Result<(), Reply> {
        let refused = |why: String| Err(failed(FailureKind::Refused, why));
        let (verdict, body) = match command {
            InboxCommand::Approve { .. } => (ReviewVerdict::Approve, String::new()),
            InboxCommand::Reject { reason, .. } => (ReviewVerdict::RequestChanges, reason.clone()),
            // The loop says that these do not settle it.
            InboxCommand::Answer { .. } | InboxCommand::Dismiss { .. } => return Ok(()),
        };
        let Some(number) = asked.source.pr else { return Ok(()) };
        let Some(served) = self.world.project(project) else { return Err(not_served(project)) };
        if served.embedded.is_none() {
            return refused(words::question::review_on_the_forge(number));
        }
        let picture = self.board.look();
        let task = picture.values().find(|task| task.contribution.pr() == Some(number));
        let names_head = |head: &&Sha| asked.source.owner.to_string().ends_with(head.as_str());
        let Some(head) = task.and_then(|task| task.contribution.head()).filter(names_head).cloned() else {
            return refused(words::question::another_head(number));
        };
        let approvals = task.map(|task| task.contribution.approvals()).unwrap_or_default();
        if verdict == ReviewVerdict::Approve && approvals.contains(&caller.author()) {
            return refused(words::vault::ANOTHER_PERSON.to_owned());
        }
        // The branch may move while this is on its way.
        let head = Some(head);
        let review = ForgeCommand::Review { number, verdict, body, author: caller.author(), head };
        let request = Request::Forge { project: project.clone(), command: review };
        match self.carry_out(caller, request) {
            Reply::Done { .. } => Ok(()),
            reply @ Reply::Failed { .. } => Err(reply),
        }
    }

    /// Everything is stopped before anything is captured, and no project is served before anything is ended.
    fn halt(&self, by: &str) -> Reply {
        let paths = &self.world.paths;
        let mut halted = Halted { by: by.to_owned(), at: clock::now().into(), sessions: Vec::new() };
        if let Err(error) = halt::begin(paths, &halted) {
            return failed(FailureKind::Failed, format!("{error:#}"));
        }
        halt::freeze(paths);
        let projects = self.world.projects.read().unwrap_or_else(PoisonError::into_inner).clone();
        self.world.jobs.halt();
        // What the loop hands out after this belongs to no project that is served.
        if let reply @ Reply::Failed { .. } = ask_loop(&self.inbox, Request::ReloadProjects) {
            return reply;
        }
        halted.sessions = self.world.end_halted(&projects);
        halt::end_jobs(&projects);
        tracing::warn!(by, sessions = halted.sessions.join(", "), "all work is halted");
        done(halted)
    }

    /// A person's order to merge is an approval of the present head; the queue does the rest.
    fn approval(&self, number: u64, caller: &Caller) -> Result<ForgeCommand, Reply> {
        let picture = self.board.look();
        let Some(task) = picture.values().find(|t| t.contribution.pr() == Some(number)) else {
            let message = words::daemon::request::pull_request_without_task(number);
            return Err(failed(FailureKind::NotFound, message));
        };
        match task.state {
            State::AwaitingReview | State::Escalated => Ok(ForgeCommand::Review {
                number,
                verdict: ReviewVerdict::Approve,
                body: words::daemon::request::merge_ordered().to_owned(),
                author: caller.author(),
                head: task.contribution.head().cloned(),
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
            | State::Closed => {
                Err(failed(FailureKind::Refused, words::daemon::request::not_mergeable(number, task.state)))
            }
        }
    }
}

/// Talks to a caller on a thread of its own.
fn spawn_caller(talk: impl FnOnce() -> std::io::Result<()> + Send + 'static) {
    let spawned = std::thread::Builder::new().name("caller".to_owned()).spawn(move || {
        if let Err(error) = talk() {
            tracing::debug!(%error, "a connection broke");
        }
    });
    if let Err(error) = spawned {
        tracing::warn!(%error, "a connection cannot be served");
    }
}

/// Serves every connection. After one that could not be accepted it pauses: the next attempt would fail as well.
fn accept(
    incoming: impl Iterator<Item = std::io::Result<UnixStream>>,
    serve: impl Fn(UnixStream),
    pause: impl Fn(),
) {
    for stream in incoming {
        match stream {
            Ok(stream) => serve(stream),
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                pause();
            }
        }
    }
}

/// One line of at most so many bytes; none if it is longer.
fn read_line(stream: &UnixStream, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    BufReader::new(stream.take(most)).read_until(b'\n', &mut line)?;
    if line.len() as u64 == most && !line.ends_with(b"\n") {
        BufReader::new(stream.take(DISCARDED_BYTES)).skip_until(b'\n')?;
        return Ok(None);
    }
    Ok(Some(line))
}

/// The kind of a refusal. A hook gives its report up when it is refused, and puts it into the session's spool when the
/// daemon fails. Where it is only uncertain who asks, the report must not be lost: a spool counts for its own task alone.
fn refusal_of(caller: &Caller, request: &Request) -> FailureKind {
    match (request, caller) {
        (Request::Hook { .. }, Caller::Other(unknown)) if unknown.may_pass() => FailureKind::Failed,
        _ => FailureKind::Refused,
    }
}

fn send(mut stream: &UnixStream, reply: &Reply) -> std::io::Result<()> {
    let mut answer = serde_json::to_vec(reply)?;
    answer.push(b'\n');
    stream.write_all(&answer)
}

fn not_served(project: &ProjectName) -> Reply {
    failed(FailureKind::NotFound, words::daemon::request::not_served(project))
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{Error, Write};
    use std::os::unix::net::UnixStream;

    use pointsman_core::hook::{HookEvent, Report};
    use pointsman_core::time::Timestamp;

    use super::{accept, read_line, refusal_of};
    use crate::control::caller::{Caller, Unknown};
    use crate::control::protocol::{FailureKind, Request};

    #[test]
    fn a_connection_that_cannot_be_accepted_is_followed_by_a_pause() {
        let full = || Err(Error::from_raw_os_error(24));
        let (served, paused) = (Cell::new(0), Cell::new(0));
        let incoming = [full(), full(), Ok(UnixStream::pair().unwrap().0), full()];
        accept(incoming.into_iter(), |_| served.set(served.get() + 1), || paused.set(paused.get() + 1));
        assert_eq!((served.get(), paused.get()), (1, 3));
    }

    #[test]
    fn a_line_that_is_too_long_is_read_to_its_end_and_thrown_away() {
        let (daemon, mut client) = UnixStream::pair().unwrap();
        // More than the socket holds: the client is stuck until all of it is read.
        let sent = std::thread::spawn(move || {
            client.write_all(&[b'x'; 1 << 20]).unwrap();
            client.write_all(b"\nnext\n").unwrap();
            client
        });
        assert_eq!(read_line(&daemon, 100).unwrap(), None);
        let _client = sent.join().unwrap();
        let (daemon, mut client) = UnixStream::pair().unwrap();
        client.write_all(b"1234\n").unwrap();
        assert_eq!(read_line(&daemon, 5).unwrap().as_deref(), Some(b"1234\n".as_slice()));
    }

    #[test]
    fn a_report_of_a_caller_that_could_not_be_identified_goes_to_the_spool() {
        let told = HookEvent::Prompted { messages: Vec::new() };
        let report = Report { id: "1".into(), session: "dev-shop-1.1".into(), at: Timestamp(0), told };
        let hook = Request::Hook { report };
        for unknown in [Unknown::Unseen, Unknown::InATerminal, Unknown::StrangeSession] {
            assert_eq!(refusal_of(&Caller::Other(unknown), &hook), FailureKind::Failed);
            assert_eq!(refusal_of(&Caller::Other(unknown), &Request::Down), FailureKind::Refused);
        }
        for unknown in [Unknown::Marked, Unknown::NotTold, Unknown::OfTheDaemon, Unknown::AnotherUser] {
            assert_eq!(refusal_of(&Caller::Other(unknown), &hook), FailureKind::Refused);
        }
        let keeper = Caller::Keeper { session: "dev-shop-2.1".into() };
        assert_eq!(refusal_of(&keeper, &hook), FailureKind::Refused, "another session's");
    }
}
