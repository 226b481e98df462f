//! The hooks of a session that the daemon runs: told to the daemon, or written to the session's spool while there is
//! none. What the agent needs at once is answered here, without asking anybody.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use pointsman_core::hook::{self, HookEvent, Report, guard, transcript};
use pointsman_core::session::budget::Spent;
use pointsman_core::words::{message, prompt};
use pointsman_core::workflow::WorkflowId;
use serde_json::Value;

use super::log::Log;
use super::{output, usage, wake};
use crate::cli::time;
use crate::daemon::hook_inbox;
use crate::paths::Paths;
use crate::report::tell;

/// One turn's end of a transcript; what was read before was acknowledged before.
const TURN_BYTES: u64 = 512 * 1024;
/// The end of a transcript since the agent called a tool. An answer that lies further back is told by the next tool.
const TOOL_BYTES: u64 = 64 * 1024;

/// What a session of ours is started with.
pub(super) struct SessionVariables {
    pub(super) session: String,
    /// Variables of the session by name.
    pub(super) variable: fn(&str) -> String,
}

/// Tells the daemon, and answers the agent.
pub(super) fn answer(event: &str, payload: &Value, session_files: &SessionVariables, log: &Log) -> ExitCode {
    let mut told = told(event, payload);
    let place = Paths::from_env(|name| Some((session_files.variable)(name).into())).and_then(|paths| {
        let session = WorkflowId::parse_session(&session_files.session);
        let (id, generation) = session.context("POINTSMAN_SESSION names no session")?;
        let run = paths.project(id.project()).sandbox(&id).join(format!("run-{generation}"));
        Ok((paths, run))
    });
    if hook::plain_name(event) == "wake" {
        return match place {
            Ok((_, run)) => wake::wait(&run, log),
            Err(_) => ExitCode::SUCCESS,
        };
    }
    respond(payload, &told, session_files);
    match place {
        Ok((paths, run)) => {
            // Before the end of a turn: a session that has used up its budget ends there.
            if let Some(spent) = spent(&told, payload, session_files, &run) {
                report(HookEvent::Measured { gauge: None, spent }, &paths, session_files, log);
            }
            if let HookEvent::Stopped { busy, .. } = &mut told {
                let letters = hook_inbox(&run).take();
                if !letters.is_empty() {
                    output::context("Stop", &message::waking(&letters));
                    // It goes on with them.
                    *busy = true;
                }
            }
            report(told, &paths, session_files, log);
        }
        Err(error) => log.line(&format!("{error:#}")),
    }
    ExitCode::SUCCESS
}

/// What the session has used, if that is more than was told before. Without a terminal its output tells it.
fn spent(told: &HookEvent, payload: &Value, session_files: &SessionVariables, run: &Path) -> Option<Spent> {
    let transcript = Some(transcript_path(payload)).filter(|path| !path.is_empty())?;
    if !(session_files.variable)("POINTSMAN_TURN").is_empty() {
        return None;
    }
    match told {
        HookEvent::Started { source, .. } if matches!(source.as_str(), "resume" | "fork") => {
            usage::pass_over(run, transcript);
            None
        }
        HookEvent::Started { .. } | HookEvent::Tool { done: false, .. } | HookEvent::Measured { .. } => None,
        HookEvent::Prompted { .. }
        | HookEvent::Tool { done: true, .. }
        | HookEvent::Stopped { .. }
        | HookEvent::Failed { .. }
        | HookEvent::Asked { .. }
        | HookEvent::Idle
        | HookEvent::Compacting
        | HookEvent::Compacted
        | HookEvent::Ended { .. }
        | HookEvent::Other { .. } => usage::count(run, &session_files.session, transcript),
    }
}

fn told(event: &str, payload: &Value) -> HookEvent {
    let mut told = HookEvent::read(event, payload);
    let transcript = transcript_path(payload);
    match &mut told {
        HookEvent::Stopped { messages, used_tokens, .. } => {
            let end = end_of(transcript, TURN_BYTES);
            messages.extend(transcript::messages_read(&end));
            *used_tokens = transcript::used_tokens(&end);
        }
        HookEvent::Tool { done: true, used_tokens, .. } => {
            *used_tokens = transcript::used_tokens(&end_of(transcript, TOOL_BYTES));
        }
        HookEvent::Started { .. }
        | HookEvent::Prompted { .. }
        | HookEvent::Tool { done: false, .. }
        | HookEvent::Failed { .. }
        | HookEvent::Measured { .. }
        | HookEvent::Asked { .. }
        | HookEvent::Idle
        | HookEvent::Compacting
        | HookEvent::Compacted
        | HookEvent::Ended { .. }
        | HookEvent::Other { .. } => {}
    }
    told
}

fn transcript_path(payload: &Value) -> &str {
    payload["transcript_path"].as_str().unwrap_or_default()
}

/// To the daemon, or into the spool among the session's files.
fn report(told: HookEvent, paths: &Paths, session_files: &SessionVariables, log: &Log) {
    if !(session_files.variable)("POINTSMAN_TURN").is_empty() && matches!(told, HookEvent::Started { .. }) {
        // Its output tells the same, once.
        return;
    }
    let report = Report {
        // No two calls of a machine share their process and their moment.
        id: format!("{}-{}-{}", session_files.session, std::process::id(), time::now_nanos()),
        session: session_files.session.clone(),
        at: time::now(),
        told,
    };
    tell(paths, &report, &|trouble| log.line(trouble));
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
fn respond(payload: &Value, told: &HookEvent, session_files: &SessionVariables) {
    match told {
        HookEvent::Started { source, .. }
            if is_shortened(source, &(session_files.variable)("POINTSMAN_TURN")) =>
        {
            let task = PathBuf::from((session_files.variable)("POINTSMAN_INBOX")).join("0000-task.md");
            let text = prompt::again(
                &(session_files.variable)("PROJECT_NAME"),
                &(session_files.variable)("ISSUE"),
                &task.to_string_lossy(),
                &(session_files.variable)("PHASE_FILE"),
                &(session_files.variable)("POINTSMAN_SUMMARY_FILE"),
                &(session_files.variable)("POINTSMAN_BRANCH"),
            );
            output::context("SessionStart", &text);
        }
        HookEvent::Tool { done: false, .. } if payload["tool_name"] == "Bash" => {
            let command = payload["tool_input"]["command"].as_str().unwrap_or_default();
            if let Some(why) =
                guard::objection(command, &(session_files.variable)("POINTSMAN_PRIMARY_BRANCH"))
            {
                output::deny(&format!("Pointsman stopped this command: {why}."));
            }
        }
        HookEvent::Started { .. }
        | HookEvent::Prompted { .. }
        | HookEvent::Tool { .. }
        | HookEvent::Stopped { .. }
        | HookEvent::Failed { .. }
        | HookEvent::Measured { .. }
        | HookEvent::Asked { .. }
        | HookEvent::Idle
        | HookEvent::Compacting
        | HookEvent::Compacted
        | HookEvent::Ended { .. }
        | HookEvent::Other { .. } => {}
    }
}

/// Whether the protocol may have left the conversation. A session without a terminal takes it up again with every turn;
/// only the first of them follows something that was lost.
fn is_shortened(source: &str, turn: &str) -> bool {
    match source {
        "compact" | "clear" => true,
        "resume" => matches!(turn, "" | "1"),
        _ => false,
    }
}
