//! To the daemon if one runs, else in its place.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_core::words;
use serde::de::DeserializeOwned;

use super::context::is_enclosed;
use super::failure::{Code, Failure};
use super::out::Out;
use crate::control::client;
use crate::control::protocol::{Reply, Request};
use crate::paths::Paths;

/// Commands that act in the daemon's place hold the lock for milliseconds; one that meets another waits.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at a held lock.
const LOCK_LOOK: Duration = Duration::from_millis(20);

/// A session inside a sandbox waits this long for a daemon that is away: a service is started again within seconds.
const ENCLOSED_PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks for a daemon.
const ENCLOSED_LOOK: Duration = Duration::from_millis(50);

/// A request is repeated this often at most after it was cut off: one that breaks the daemon must not go on doing so.
const REPEATS: u32 = 5;

/// The process that carried out a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnsweredBy {
    /// The running daemon: what follows from it is under way.
    Daemon,
    /// We ourselves: what follows from it waits for the next daemon.
    Alone,
}

/// The way from a view to the daemon.
#[derive(Clone, Default)]
pub(crate) enum Route {
    /// Over its socket, as a command; without a daemon in its place.
    #[default]
    Socket,
    /// From within the daemon, for a visitor of the web.
    Inside(Arc<dyn Fn(&Request) -> Reply + Send + Sync>),
}

impl Route {
    /// The reply of the daemon that we are in; none for a command.
    pub(crate) fn inside(&self, request: &Request) -> Option<Reply> {
        match self {
            Self::Socket => None,
            Self::Inside(ask) => Some(ask(request)),
        }
    }

    /// Whether we are in the daemon.
    pub(crate) fn is_inside(&self) -> bool {
        match self {
            Self::Socket => false,
            Self::Inside(_) => true,
        }
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_inside() { "Inside" } else { "Socket" })
    }
}

/// Asks the daemon; without one, acts in its place.
#[allow(clippy::disallowed_methods, reason = "looks until a deadline: there is nobody to be woken by")]
pub(crate) fn ask<V: DeserializeOwned>(paths: &Paths, request: &Request) -> Result<(V, AnsweredBy), Failure> {
    if let Some(reply) = beside_a_silent_daemon(paths, request)? {
        return view(reply).map(|view| (view, AnsweredBy::Daemon));
    }
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match patiently(&paths.control_socket(), is_enclosed(paths), request) {
            Ok(reply) => return view(reply).map(|view| (view, AnsweredBy::Daemon)),
            // A session inside a sandbox cannot act in the daemon's place.
            Err(client::Error::NotRunning) if is_enclosed(paths) => return Err(not_running()),
            Err(client::Error::NotRunning) => {}
            Err(error @ (client::Error::Broken(_) | client::Error::Silent)) => return Err(broken(error)),
        }
        match crate::daemon::answer_alone(paths, request) {
            Ok(reply) => return view(reply).map(|view| (view, AnsweredBy::Alone)),
            // Another command acts, or a daemon is just starting: both pass.
            Err(error) if is_held(&error) && Instant::now() < deadline => std::thread::sleep(LOCK_LOOK),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Asks the daemon; without one there is nobody to ask.
pub(crate) fn ask_daemon<V: DeserializeOwned>(paths: &Paths, request: &Request) -> Result<V, Failure> {
    match patiently(&paths.control_socket(), is_enclosed(paths), request) {
        Ok(reply) => view(reply),
        Err(client::Error::NotRunning) => Err(not_running()),
        Err(error @ (client::Error::Broken(_) | client::Error::Silent)) => Err(broken(error)),
    }
}

/// The answer to a request that only reads, if a daemon runs and does not give it: the databases are read instead. None for every
/// other request, and if the daemon answers or does not run.
fn beside_a_silent_daemon(paths: &Paths, request: &Request) -> Result<Option<Reply>, Failure> {
    let reads = matches!(request, Request::Forge { command, .. } if command.only_reads());
    if !reads || is_enclosed(paths) {
        return Ok(None);
    }
    match client::look(&paths.control_socket(), request) {
        Ok(reply) => Ok(Some(reply)),
        Err(client::Error::Silent) => {
            say_silent();
            Ok(Some(crate::daemon::read_alone(paths, request)?))
        }
        Err(client::Error::NotRunning | client::Error::Broken(_)) => Ok(None),
    }
}

/// Tells people that what they see is only what is on the disk.
pub(crate) fn say_silent() {
    Out::new(false).say(words::daemon::process::silent());
}

/// Asks the daemon. A session inside a sandbox can neither act in its place nor start one: it waits for a daemon that is being
/// replaced or brought back. A request whose answer got lost with a dying daemon is asked again if that does no harm.
#[allow(clippy::disallowed_methods, reason = "looks until a deadline: there is nobody to be woken by")]
fn patiently(socket: &Path, enclosed: bool, request: &Request) -> Result<Reply, client::Error> {
    let deadline = Instant::now() + ENCLOSED_PATIENCE;
    let mut repeats = 0;
    loop {
        let answer = client::ask(socket, request);
        let again = match &answer {
            Err(client::Error::NotRunning) => enclosed,
            Err(error) if error.is_cut_off() && request.is_repeatable() => {
                repeats += 1;
                repeats <= REPEATS
            }
            Ok(_) | Err(client::Error::Silent | client::Error::Broken(_)) => false,
        };
        if !again || Instant::now() >= deadline {
            return answer;
        }
        std::thread::sleep(ENCLOSED_LOOK);
    }
}

fn not_running() -> Failure {
    Failure::new(Code::NoDaemon, "the daemon is not running").hint("pointsman up")
}

/// The view in an answer. A daemon of another version may answer with other fields; it has acted all the same.
pub(crate) fn view<V: DeserializeOwned>(reply: Reply) -> Result<V, Failure> {
    match reply {
        Reply::Done { value } => serde_json::from_value(value).map_err(|error| {
            Failure::failed(format!(
                "the daemon carried out the request, but this program cannot read its answer: \
                {error}"
            ))
            .hint("the daemon may be of another version; `pointsman status` shows it")
        }),
        Reply::Failed { kind, message } => Err(Failure::new(kind.into(), message)),
    }
}

fn broken(error: client::Error) -> Failure {
    Failure::failed(format!("{:#}", anyhow::Error::new(error)))
        .hint("it is not known whether the request was carried out; check `pointsman status` and `pointsman events` \
            before you try again")
}

fn is_held(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(pointsman_store::lock::Error::Held { .. }))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::thread::JoinHandle;

    use pointsman_core::ids::ProjectName;

    use super::{REPEATS, patiently};
    use crate::control::client;
    use crate::control::protocol::{ForgeCommand, Reply, Request, RunCommand, VaultCommand};

    fn shop() -> ProjectName {
        ProjectName::new("shop").unwrap()
    }

    fn submit() -> Request {
        let command = VaultCommand::Submit { text: "{}".to_owned(), from: None };
        Request::Vault { project: shop(), command }
    }

    fn file_issue() -> Request {
        let command = ForgeCommand::CreateIssue {
            title: "t".to_owned(),
            body: String::new(),
            labels: Vec::new(),
            author: String::new(),
        };
        Request::Forge { project: shop(), command }
    }

    /// A daemon that reads each of so many requests and dies, and then perhaps answers one.
    fn daemon(deaths: u32, then_answers: bool) -> (tempfile::TempDir, PathBuf, JoinHandle<u32>) {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let thread = std::thread::spawn(move || {
            let mut read = 0;
            for place in 0..deaths + u32::from(then_answers) {
                let (mut stream, _) = listener.accept().unwrap();
                BufReader::new(&stream).read_line(&mut String::new()).unwrap();
                read += 1;
                if place == deaths {
                    let answer = serde_json::to_string(&Reply::done("taken")).unwrap();
                    stream.write_all(format!("{answer}\n").as_bytes()).unwrap();
                }
            }
            read
        });
        (dir, socket, thread)
    }

    #[test]
    fn a_command_that_was_cut_off_by_a_dying_daemon_is_asked_again() {
        for enclosed in [true, false] {
            let (_dir, socket, thread) = daemon(2, true);
            let reply = patiently(&socket, enclosed, &submit()).unwrap();
            assert!(matches!(reply, Reply::Done { value } if value == "taken"));
            assert_eq!(thread.join().unwrap(), 3);
        }
    }

    #[test]
    fn what_would_be_done_twice_is_not_asked_again() {
        let (_dir, socket, thread) = daemon(1, false);
        let lost = patiently(&socket, true, &file_issue()).unwrap_err();
        assert!(lost.is_cut_off() && matches!(lost, client::Error::Broken(_)), "{lost:?}");
        assert_eq!(thread.join().unwrap(), 1);
    }

    #[test]
    fn a_request_that_breaks_the_daemon_is_not_repeated_for_ever() {
        let (_dir, socket, thread) = daemon(REPEATS + 1, false);
        assert!(patiently(&socket, true, &submit()).unwrap_err().is_cut_off());
        assert_eq!(thread.join().unwrap(), REPEATS + 1);
    }

    #[test]
    fn only_requests_that_count_once_are_repeatable() {
        let step = |step: &str| RunCommand::StepDone { session: "s".to_owned(), step: step.to_owned() };
        let start = RunCommand::Start { formula: "tidy".to_owned(), by: "ann".to_owned() };
        let cases = [
            (Request::Status, true),
            (submit(), true),
            (Request::Run { project: shop(), command: step("look") }, true),
            (Request::Run { project: shop(), command: start }, false),
            (Request::Forge { project: shop(), command: ForgeCommand::ListBoard }, true),
            (file_issue(), false),
            (Request::Down, false),
        ];
        for (request, repeatable) in cases {
            assert_eq!(request.is_repeatable(), repeatable, "{request:?}");
        }
    }
}
