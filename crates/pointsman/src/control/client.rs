//! The caller's side of the control socket.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::protocol::{Reply, Request};

/// A command that changes something may have to wait for git or a disk.
const REPLY_LIMIT: Duration = Duration::from_secs(60);

/// A command that only reads goes on without the daemon after this long. A daemon at work answers in milliseconds.
const LOOK_LIMIT: Duration = Duration::from_millis(1700);

/// A reason why the daemon gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the daemon is not running")]
    NotRunning,
    /// It listens, and says nothing: it is stopped, or the machine is far too busy. Only a [`look`] finds that out.
    #[error("the daemon runs, but it does not answer")]
    Silent,
    /// It was reached, and then something broke; whether it acted is unknown.
    #[error("the daemon did not answer")]
    Broken(#[source] std::io::Error),
}

impl Error {
    /// Whether the daemon hung up before it had answered, most often because it died. One that is too slow still acts.
    pub(crate) fn is_cut_off(&self) -> bool {
        match self {
            Self::NotRunning | Self::Silent => false,
            Self::Broken(error) => matches!(
                error.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            ),
        }
    }
}

/// Whether somebody listens. Costs no more than a connection: nobody is asked anything.
pub fn is_running(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}

/// Whether a daemon answers. A program that a killed daemon was about to start can hold its socket for a moment longer,
/// so that somebody seems to listen; it hangs up without an answer.
pub fn answers(socket: &Path) -> bool {
    ask(socket, &Request::Status).is_ok()
}

/// Asks the daemon behind `socket`.
pub fn ask(socket: &Path, request: &Request) -> Result<Reply, Error> {
    ask_within(socket, request, REPLY_LIMIT)
}

/// Asks the daemon for something that changes nothing, and does not wait for one that is frozen.
pub fn look(socket: &Path, request: &Request) -> Result<Reply, Error> {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    match ask_within(socket, request, LOOK_LIMIT) {
        Err(Error::Broken(error)) if matches!(error.kind(), TimedOut | WouldBlock) => Err(Error::Silent),
        answer => answer,
    }
}

fn ask_within(socket: &Path, request: &Request, limit: Duration) -> Result<Reply, Error> {
    let mut stream = UnixStream::connect(socket).map_err(|_| Error::NotRunning)?;
    let mut talk = || -> std::io::Result<Reply> {
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    };
    talk().map_err(Error::Broken)
}
