//! The caller's side of the control socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::protocol::{Reply, Request};

/// A command that changes something may have to wait for git or a disk.
const REPLY_LIMIT: Duration = Duration::from_secs(60);

/// A reason why the daemon gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the daemon is not running")]
    NotRunning,
    /// It was reached, and then something broke; whether it acted is unknown.
    #[error("the daemon did not answer")]
    Broken(#[source] std::io::Error),
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
    let mut stream = UnixStream::connect(socket).map_err(|_| Error::NotRunning)?;
    let mut talk = || -> std::io::Result<Reply> {
        stream.set_read_timeout(Some(REPLY_LIMIT))?;
        stream.set_write_timeout(Some(REPLY_LIMIT))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    };
    talk().map_err(Error::Broken)
}
