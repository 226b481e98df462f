//! The hooks of a session that the daemon runs: told to the daemon, or written to the session's spool while there is
//! none. What the agent needs at once is answered here, without asking anybody.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use pointsman_core::hook::{Report, Told, guard, transcript};
use pointsman_core::ids::TaskKey;
use pointsman_core::words::prompt;
use serde_json::Value;

use super::log::Log;
use super::output;
use crate::cli::time;
use crate::control::protocol::{FailureKind, Reply, Request};
use crate::hook_spool::Spool;
use crate::paths::Paths;

/// The daemon answers in milliseconds; one that does not gets the report from the spool.
const PATIENCE: Duration = Duration::from_secs(2);

/// One turn's end of a transcript; what was read before was acknowledged before.
const TURN_BYTES: u64 = 512 * 1024;
/// The end of a transcript since the agent called a tool. An answer that lies further back is told by the next tool.
const TOOL_BYTES: u64 = 64 * 1024;

/// What a session of ours is started with.
pub(super) struct Desk {
    /// `POINTSMAN_SESSION`
    pub(super) session: String,
    /// Variables of the session by name.
    pub(super) variable: fn(&str) -> String,
}

/// Tells the daemon, and answers the agent.
pub(super) fn answer(event: &str, payload: &Value, desk: &Desk, log: &Log) {
    let mut told = Told::read(event, payload);
    let transcript = payload["transcript_path"].as_str().unwrap_or_default();
    match &mut told {
        Told::Stopped { messages, used_tokens, .. } => {
            let end = end_of(transcript, TURN_BYTES);
            *messages = transcript::messages_read(&end);
            *used_tokens = transcript::used_tokens(&end);
        }
        Told::Tool { done: true, used_tokens, .. } => {
            *used_tokens = transcript::used_tokens(&end_of(transcript, TOOL_BYTES));
        }
        Told::Started { .. }
        | Told::Prompted { .. }
        | Told::Tool { done: false, .. }
        | Told::Failed { .. }
        | Told::Asked { .. }
        | Told::Idle
        | Told::Compacting
        | Told::Compacted
        | Told::Ended { .. }
        | Told::Other { .. } => {}
    }
    respond(payload, &told, desk);
    let paths = match Paths::from_env(|name| Some((desk.variable)(name).into())) {
        Ok(paths) => paths,
        Err(error) => return log.line(&format!("{error:#}")),
    };
    let Some((key, _)) = TaskKey::parse_session(&desk.session) else {
        return log.line("POINTSMAN_SESSION names no session");
    };
    let report = Report {
        // No two calls of a machine share their process and their moment.
        id: format!("{}-{}-{}", desk.session, std::process::id(), time::now_nanos()),
        session: desk.session.clone(),
        at: time::now(),
        told,
    };
    let spool = Spool::in_dir(&paths.project(&key.project).sandbox(&key));
    // Older ones first; one that cannot be delivered keeps the others waiting behind it.
    let mut reachable = true;
    let drained = spool.drain(|older| {
        reachable = deliver(&paths, older, log);
        reachable
    });
    if let Err(error) = drained {
        log.line(&format!("the spool cannot be read: {error}"));
    }
    if reachable && deliver(&paths, &report, log) {
        return;
    }
    if let Err(error) = spool.add(&report) {
        log.line(&format!("the daemon does not answer and the spool cannot be written: {error}"));
    }
}

/// The end of the conversation's transcript, however large it is; nothing if it is no file.
fn end_of(path: &str, bytes: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        // Without it a FIFO would hold the agent until someone opens its other end.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let meta = file.metadata()?;
        let mut end = Vec::new();
        if meta.is_file() {
            file.seek(SeekFrom::Start(meta.len().saturating_sub(bytes)))?;
            file.take(bytes).read_to_end(&mut end)?;
        }
        Ok(end)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// What the agent must know at once.
fn respond(payload: &Value, told: &Told, desk: &Desk) {
    match told {
        Told::Started { source, .. } if matches!(source.as_str(), "compact" | "resume" | "clear") => {
            let task = PathBuf::from((desk.variable)("POINTSMAN_INBOX")).join("0000-task.md");
            let text = prompt::again(
                &(desk.variable)("PROJECT_NAME"),
                &(desk.variable)("ISSUE"),
                &task.to_string_lossy(),
                &(desk.variable)("PHASE_FILE"),
                &(desk.variable)("POINTSMAN_SUMMARY_FILE"),
                &(desk.variable)("POINTSMAN_BRANCH"),
            );
            output::context("SessionStart", &text);
        }
        Told::Tool { done: false, .. } if payload["tool_name"] == "Bash" => {
            let command = payload["tool_input"]["command"].as_str().unwrap_or_default();
            if let Some(why) = guard::objection(command, &(desk.variable)("POINTSMAN_PRIMARY_BRANCH")) {
                output::deny(&format!("Pointsman stopped this command: {why}."));
            }
        }
        Told::Started { .. }
        | Told::Prompted { .. }
        | Told::Tool { .. }
        | Told::Stopped { .. }
        | Told::Failed { .. }
        | Told::Asked { .. }
        | Told::Idle
        | Told::Compacting
        | Told::Compacted
        | Told::Ended { .. }
        | Told::Other { .. } => {}
    }
}

/// Whether the report needs no further delivery: it was taken, or nobody will ever want it.
fn deliver(paths: &Paths, report: &Report, log: &Log) -> bool {
    let talk = || -> std::io::Result<Reply> {
        let mut stream = UnixStream::connect(paths.control_socket())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut line = serde_json::to_vec(&Request::Hook { report: report.clone() })?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    };
    match talk() {
        Ok(Reply::Done { .. }) => true,
        Ok(Reply::Failed { kind: FailureKind::Refused | FailureKind::NotFound, message }) => {
            log.line(&message);
            true
        }
        Ok(Reply::Failed { message, .. }) => {
            log.line(&message);
            false
        }
        Err(_) => false,
    }
}
