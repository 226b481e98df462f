//! The message socket that newer versions of Claude Code open for each session: one JSON line is one prompt.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use serde_json::json;

use crate::tmux::clean_line;

/// The session takes a line at once, or not at all.
const LIMIT: Duration = Duration::from_secs(2);

/// A connection to the session of one process.
#[derive(Debug)]
pub struct Socket {
    stream: UnixStream,
}

impl Socket {
    /// Connects. Whoever listens must be this very process: the path comes from a file that an agent can write.
    pub fn connect(path: &Path, pid: u32) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        let peer = socket_peercred(&stream)?;
        let listens = peer.pid.as_raw_nonzero().get().unsigned_abs();
        if listens != pid {
            return Err(io::Error::other(format!("process {listens} listens there, not the session")));
        }
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(Self { stream })
    }

    /// Sends one line as a prompt. After an error it may have arrived.
    pub fn send(mut self, text: &str) -> io::Result<()> {
        let content = clean_line(text);
        let mut line = serde_json::to_vec(
            &json!({ "type": "user", "message": { "role": "user", "content": content } }),
        )?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }
}
