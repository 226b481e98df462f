//! The hooks of a session that the daemon runs: told to the daemon, or written to the session's spool while there is
//! none. What the agent needs at once is answered here, without asking anybody.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use pointsman_core::hook::{self, Report, Told, guard};
use pointsman_core::ids::TaskKey;
use pointsman_core::words::{message, prompt};
use serde_json::Value;

use super::log::Log;
use super::{output, wake};
use crate::cli::time;
use crate::control::protocol::{FailureKind, Reply, Request};
use crate::daemon::mailbox;
use crate::hook_spool::Spool;
use crate::paths::Paths;

/// The daemon answers in milliseconds; one that does not gets the report from the spool.
const PATIENCE: Duration = Duration::from_secs(2);

/// One turn's end of a transcript; what was read before was acknowledged before.
const TRANSCRIPT_BYTES: u64 = 512 * 1024;

/// What a session of ours is started with.
pub(super) struct Desk {
    /// `POINTSMAN_SESSION`
    pub(super) session: String,
    /// Variables of the session by name.
    pub(super) variable: fn(&str) -> String,
}

/// Tells the daemon, and answers the agent.
pub(super) fn answer(event: &str, payload: &Value, desk: &Desk, log: &Log) -> ExitCode {
    let told = told(event, payload);
    let place = Paths::from_env(|name| Some((desk.variable)(name).into())).and_then(|paths| {
        let session = TaskKey::parse_session(&desk.session);
        let (key, generation) = session.context("POINTSMAN_SESSION names no session")?;
        let sandbox = paths.project(&key.project).sandbox(&key);
        let run = sandbox.join(format!("run-{generation}"));
        Ok((paths, sandbox, run))
    });
    if hook::plain_name(event) == "wake" {
        return match place {
            Ok((_, _, run)) => wake::wait(&run, log),
            Err(_) => ExitCode::SUCCESS,
        };
    }
    respond(payload, &told, desk);
    match place {
        Ok((paths, sandbox, run)) => {
            if matches!(told, Told::Stopped { .. }) {
                let letters = mailbox(&run).take();
                if !letters.is_empty() {
                    output::context("Stop", &message::waking(&letters));
                }
            }
            tell(told, &paths, &sandbox, desk, log);
        }
        Err(error) => log.line(&format!("{error:#}")),
    }
    ExitCode::SUCCESS
}

fn told(event: &str, payload: &Value) -> Told {
    let mut told = Told::read(event, payload);
    if let Told::Stopped { messages, .. } = &mut told {
        *messages = read_messages(payload["transcript_path"].as_str().unwrap_or_default());
    }
    told
}

/// To the daemon, or into the spool on the session's desk.
fn tell(told: Told, paths: &Paths, sandbox: &Path, desk: &Desk, log: &Log) {
    let report = Report {
        // No two calls of a machine share their process and their moment.
        id: format!("{}-{}-{}", desk.session, std::process::id(), time::now_nanos()),
        session: desk.session.clone(),
        at: time::now(),
        told,
    };
    let spool = Spool::in_dir(sandbox);
    // Older ones first; one that cannot be delivered keeps the others waiting behind it.
    let mut reachable = true;
    let drained = spool.drain(|older| {
        reachable = deliver(paths, older, log);
        reachable
    });
    if let Err(error) = drained {
        log.line(&format!("the spool cannot be read: {error}"));
    }
    if reachable && deliver(paths, &report, log) {
        return;
    }
    if let Err(error) = spool.add(&report) {
        log.line(&format!("the daemon does not answer and the spool cannot be written: {error}"));
    }
}

/// The messages that the end of the conversation's transcript shows as read.
fn read_messages(transcript: &str) -> Vec<i64> {
    let read = || -> std::io::Result<String> {
        let mut file = std::fs::File::open(transcript)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TRANSCRIPT_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TRANSCRIPT_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    hook::messages_read(&read().unwrap_or_default())
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
