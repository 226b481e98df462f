//! To the daemon if one runs, else in its place.

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

/// The process that carried out a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnsweredBy {
    /// The running daemon: what follows from it is under way.
    Daemon,
    /// We ourselves: what follows from it waits for the next daemon.
    Alone,
}

/// Asks the daemon; without one, acts in its place.
#[allow(clippy::disallowed_methods, reason = "looks until a deadline: there is nobody to be woken by")]
pub(crate) fn ask<V: DeserializeOwned>(paths: &Paths, request: &Request) -> Result<(V, AnsweredBy), Failure> {
    if let Some(reply) = beside_a_silent_daemon(paths, request)? {
        return view(reply).map(|view| (view, AnsweredBy::Daemon));
    }
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match patiently(paths, request) {
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
    match patiently(paths, request) {
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
/// replaced or brought back.
#[allow(clippy::disallowed_methods, reason = "looks until a deadline: there is nobody to be woken by")]
fn patiently(paths: &Paths, request: &Request) -> Result<Reply, client::Error> {
    let deadline = Instant::now() + ENCLOSED_PATIENCE;
    loop {
        match client::ask(&paths.control_socket(), request) {
            Err(client::Error::NotRunning) if is_enclosed(paths) && Instant::now() < deadline => {
                std::thread::sleep(ENCLOSED_LOOK);
            }
            answer => return answer,
        }
    }
}

fn not_running() -> Failure {
    Failure::new(Code::NoDaemon, "the daemon is not running").hint("pointsman up")
}

/// The view in an answer. A daemon of another version may answer with other fields; it has acted all the same.
pub(crate) fn view<V: DeserializeOwned>(reply: Reply) -> Result<V, Failure> {
    match reply {
        Reply::Done { value } => serde_json::from_value(value).map_err(|error| {
            Failure::failed(format!("the daemon did it, but this program cannot read its answer: {error}"))
                .hint("the daemon may be of another version: pointsman status shows which")
        }),
        Reply::Failed { kind, message } => Err(Failure::new(kind.into(), message)),
    }
}

fn broken(error: client::Error) -> Failure {
    Failure::failed(format!("{:#}", anyhow::Error::new(error)))
        .hint("whether it acted is not known: look before you try again (pointsman status, pointsman events)")
}

fn is_held(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(pointsman_store::lock::Error::Held { .. }))
}
