//! The way of a session's reports to the daemon: over its socket, or through the session's spool while there is none.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use pointsman_core::hook::Report;
use pointsman_core::workflow::WorkflowId;

use crate::control::protocol::{FailureKind, Reply, Request};
use crate::hook_spool::Spool;
use crate::paths::Paths;

/// The daemon answers in milliseconds; one that does not gets the report from the spool.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tells the daemon, or the session's spool while there is none.
pub(crate) fn tell(paths: &Paths, report: &Report, log: &dyn Fn(&str)) {
    let Some((id, generation)) = WorkflowId::parse_session(&report.session) else {
        return log("there is no such session");
    };
    // Older ones first; one that cannot be delivered keeps the others waiting behind it.
    if tell_older(paths, &id, generation, log) && deliver(paths, report, log) {
        return;
    }
    let spool = Spool::of(paths, &id, generation);
    if let Err(error) = spool.add(report) {
        log(&format!("the daemon does not answer and the spool cannot be written: {error}"));
    }
}

/// Tells the daemon what waits in a session's spool; whether nothing waits there any more.
pub(crate) fn tell_older(paths: &Paths, id: &WorkflowId, generation: u32, log: &dyn Fn(&str)) -> bool {
    let mut reachable = true;
    let drained = Spool::of(paths, id, generation).drain(|older| {
        reachable = deliver(paths, older, log);
        reachable
    });
    if let Err(error) = drained {
        log(&format!("the spool cannot be read: {error}"));
    }
    reachable
}

/// Whether the report needs no further delivery: it was taken, or nobody will ever want it.
fn deliver(paths: &Paths, report: &Report, log: &dyn Fn(&str)) -> bool {
    match ask(paths, &Request::Hook { report: report.clone() }) {
        Ok(Reply::Done { .. }) => true,
        Ok(Reply::Failed { kind: FailureKind::Refused | FailureKind::NotFound, message }) => {
            log(&message);
            true
        }
        Ok(Reply::Failed { message, .. }) => {
            log(&message);
            false
        }
        Err(_) => false,
    }
}

/// Asks the daemon, and waits for it no longer than an agent can be kept waiting.
pub(crate) fn ask(paths: &Paths, request: &Request) -> std::io::Result<Reply> {
    let mut stream = UnixStream::connect(paths.control_socket())?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}
