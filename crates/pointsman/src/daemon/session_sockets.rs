//! One control socket for each session inside a sandbox, in a directory of its own that the sandbox shows.
//!
//! Whoever speaks on it is that session: nobody else can see it, and the session sees no other. A daemon that is started
//! again binds the socket anew in the same directory, so that a session inside finds it under the same name.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pointsman_adapters::proxy::ProxyDir;
use pointsman_adapters::unix_socket::bind_in;
use pointsman_core::workflow::WorkflowId;
use rustix::net::{Shutdown, shutdown};

use super::control::Control;
use crate::paths::Paths;

/// The socket's name inside its directory, the same as that of the socket for people.
const NAME: &str = "control.sock";

/// The sockets of all sessions inside a sandbox.
pub(crate) struct SessionSockets {
    paths: Paths,
    open: Mutex<BTreeMap<String, Arc<UnixListener>>>,
    /// Who answers; set once the daemon is ready. A caller before that waits in the socket's queue.
    control: OnceLock<Arc<Control>>,
}

impl SessionSockets {
    /// No sockets yet.
    pub(crate) fn new(paths: Paths) -> Self {
        Self { paths, open: Mutex::default(), control: OnceLock::new() }
    }

    /// The directory with the socket of a session.
    pub(crate) fn dir(&self, session: &str) -> PathBuf {
        self.paths.session_socket_dir(session)
    }

    /// Opens the socket of a session, unless it is open.
    pub(crate) fn open(&self, session: &str) -> io::Result<PathBuf> {
        let dir = self.dir(session);
        let mut open = self.lock();
        if !open.contains_key(session) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
            let listener = Arc::new(bind_in(&dir, NAME)?);
            open.insert(session.to_owned(), Arc::clone(&listener));
            if let Some(control) = self.control.get() {
                serve(session, &listener, control)?;
            }
        }
        Ok(dir)
    }

    /// Opens the sockets of sessions that an earlier daemon started.
    pub(crate) fn reopen<'s>(&self, sessions: impl Iterator<Item = &'s str>) {
        for session in sessions.filter(|session| self.dir(session).is_dir()) {
            if let Err(error) = self.open(session) {
                tracing::warn!(session, %error, "the socket of a session cannot be opened");
            }
        }
    }

    /// Answers from now on.
    pub(crate) fn start(&self, control: &Arc<Control>) -> io::Result<()> {
        let open = self.lock();
        // Under the lock: a socket that is opened meanwhile is served by whoever opens it.
        if self.control.set(Arc::clone(control)).is_err() {
            return Ok(());
        }
        open.iter().try_for_each(|(session, listener)| serve(session, listener, control))
    }

    /// Closes the socket of a session that is over, and removes it.
    pub(crate) fn close(&self, session: &str) {
        if let Some(listener) = self.lock().remove(session) {
            // Wakes the thread that waits for the next caller.
            let _ = shutdown(&*listener, Shutdown::Both);
        }
        let refused = ProxyDir::at(self.paths.proxy()).close(&Paths::proxy_name(session));
        let identity = session.rsplit_once('.').map_or(session, |(identity, _generation)| identity);
        if let Some(id) = WorkflowId::parse_identity(identity)
            && let Err(error) = refused.keep(&self.paths.project(id.project()).refused(session))
        {
            tracing::warn!(session, %error, "refused destinations of a session are not kept");
        }
        let dir = self.dir(session);
        if let Err(error) = fs::remove_dir_all(&dir)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(session, %error, "the socket of a session stays");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<UnixListener>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(session: &str, listener: &Arc<UnixListener>, control: &Arc<Control>) -> io::Result<()> {
    let (session, listener, control) = (session.to_owned(), Arc::clone(listener), Arc::clone(control));
    std::thread::Builder::new().name("session socket".to_owned()).spawn(move || {
        let talk = |stream: UnixStream| Arc::clone(&control).serve_session(stream, session.clone());
        while let Some(stream) = next(&listener) {
            talk(stream);
        }
    })?;
    Ok(())
}

/// The next caller; none once the socket is closed.
fn next(listener: &UnixListener) -> Option<UnixStream> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Some(stream),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return None,
            Err(error) => {
                tracing::warn!(%error, "a session's connection cannot be accepted");
                std::thread::park_timeout(super::control::ACCEPT_PAUSE);
            }
        }
    }
}
