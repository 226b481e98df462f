//! Runs the handler of an approved action, once.
//!
//! The intent is on disk before the handler starts, and the outcome after it ended. Whoever dies in between leaves an
//! action that is neither, and that is a question for a person.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pointsman_adapters::phase_file::write_state_file;
use pointsman_adapters::process::{End, Error, Finished, Run};
use pointsman_adapters::secret::{Dotenv, private_text, remember};
use pointsman_core::config::VaultType;
use pointsman_core::text::{clean_block, clean_line, tail_lines};
use pointsman_core::vault::{Entry, Event, Firing, Outcome, Status};
use pointsman_core::words;
use pointsman_core::workflow;

use super::call;
use crate::daemon::crash::crash_point;
use crate::daemon::effects::{EffectError, EffectPerformer, chain};
use crate::daemon::engine::Input;
use crate::daemon::outcome::Outcome as Performance;
use crate::daemon::served::Served;

/// What a handler gets of the daemon's environment beside its secrets.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "USER"];
/// How much of a handler's output is kept.
pub(super) const LOG_BYTES: usize = 256 * 1024;
/// A shorter value is not looked for in the output: half the words there would be hidden.
const LEAST_SECRET: usize = 4;

impl EffectPerformer {
    /// Runs the handler of an action, unless it may have run before.
    pub(in crate::daemon) fn fire(
        &self,
        served: &Served,
        entry: &Entry,
        firing: u32,
    ) -> Result<Performance, EffectError> {
        let learned = |event| Ok(Performance::learned(workflow::Event::Vault(event)));
        match entry.firing(firing) {
            Firing::Begin => {}
            Firing::InDoubt => return learned(Event::FiringLost),
            Firing::Overtaken => return Ok(Performance::done()),
        }
        let (project, id) = (&entry.project, entry.id());
        let Some(begun) = self.jobs.inbox.record(Input::of_action(entry.key(), Event::FiringBegun)) else {
            return Err(EffectError::later(words::daemon::process::is_stopping()));
        };
        let is_ours = |entry: &Entry| entry.status == Status::Firing && entry.firings == firing;
        let entry = self.read(|store| store.vault_entry(project, id))?.filter(is_ours);
        let (Ok(()), Some(entry)) = (begun, entry) else { return Ok(Performance::done()) };
        crash_point("vault-intent-written");
        let outcome = run(self, served, &entry);
        crash_point("vault-handler-ran");
        learned(Event::FiringEnded { firing, outcome })
    }
}

fn run(world: &EffectPerformer, served: &Served, entry: &Entry) -> Outcome {
    let Some(handler) = served.config.vault.types.get(&entry.action.kind) else {
        let why = words::daemon::vault::no_handler(&entry.action.kind);
        return Outcome::Failed { why };
    };
    let done = match (&handler.command, &handler.url) {
        (_, Some(url)) => call::call(world, served, entry, handler, url),
        (Some(command), None) => run_program(world, served, entry, handler, command),
        (None, None) => {
            Err(Outcome::Failed { why: words::daemon::vault::handler_without_program().to_owned() })
        }
    };
    match done {
        Ok((outcome, log)) => {
            let path = served.paths.logs().join(format!("vault-{}.{}.log", entry.id(), entry.firings));
            if let Err(error) = write_state_file(&path, log.as_bytes()) {
                tracing::warn!(%error, "a handler's output was not kept");
            }
            outcome
        }
        Err(outcome) => outcome,
    }
}

/// Runs a program: what came of it and what it printed, or why it never ran to its end.
fn run_program(
    world: &EffectPerformer,
    served: &Served,
    entry: &Entry,
    handler: &VaultType,
    command: &[String],
) -> Result<(Outcome, String), Outcome> {
    let failed = |why: String| Outcome::Failed { why };
    let (program, args) = command
        .split_first()
        .ok_or_else(|| failed(words::daemon::vault::handler_without_program().to_owned()))?;
    trusted(Path::new(program), world.paths.state())
        .map_err(|why| failed(words::daemon::vault::handler_not_run(&why)))?;
    let secrets = secrets(world, handler).map_err(failed)?;
    let input =
        serde_json::to_vec(&entry.action).map_err(|_| failed(words::daemon::vault::not_json().to_owned()))?;
    // A handler is the operator's own program, and still has no rights with us: it works on what an agent submitted, and
    // what it leaves behind would otherwise pass for a person.
    let run = Run::new(program);
    let mut run = if handler.allow_sudo { run } else { run.untrusted() }
        .args(args)
        .cwd("/")
        .inherit(&INHERITED)
        .env("PROJECT_NAME", entry.project.as_str())
        .env("POINTSMAN_VAULT_ID", entry.id().as_str())
        .env("POINTSMAN_VAULT_TYPE", &entry.action.kind)
        .env("POINTSMAN_VAULT_HASH", &entry.hash)
        .stdin(input)
        .output_cap(LOG_BYTES)
        .time_limit(served.config.timing.vault_handler.duration());
    for (name, value) in &secrets {
        run = run.env(*name, value);
    }
    tracing::info!(project = %entry.project, action = %entry.id(), program, "fires a vault action");
    match run.finish() {
        Ok(finished) => {
            let values: Vec<&OsString> = secrets.iter().map(|(_, value)| value).collect();
            let log = readable(&finished, &values);
            Ok((judged(finished.end, &log), log))
        }
        Err(error @ (Error::NotFound { .. } | Error::NoDirectory { .. } | Error::Spawn { .. })) => {
            Err(failed(chain(&error)))
        }
        Err(error @ Error::Io { .. }) => Err(Outcome::Unknown { why: chain(&error) }),
    }
}

/// What a program alone may know: from the environment, the `.env`, and files.
fn secrets<'h>(world: &EffectPerformer, handler: &'h VaultType) -> Result<Vec<(&'h str, OsString)>, String> {
    let dotenv = Dotenv::read(&world.paths.dotenv()).map_err(|error| chain(&error))?;
    let mut found = Vec::new();
    for name in &handler.secrets {
        let own = (world.environment)(name).or_else(|| dotenv.get(name).map(OsString::from));
        let value = own.ok_or_else(|| words::daemon::vault::secret_not_set(name))?;
        remember(&value.to_string_lossy());
        found.push((name.as_str(), value));
    }
    for (name, file) in handler.secret_files() {
        let text = private_text(file)
            .map_err(|error| words::daemon::vault::secret_unreadable(name, &chain(&error)))?;
        // Editors end a file with a line end.
        found.push((name, OsString::from(text.trim_end_matches(['\r', '\n']))));
    }
    Ok(found)
}

/// Whether a program is the operator's: what others can write is not run.
pub(in crate::daemon) fn trusted(program: &Path, state: &Path) -> Result<(), String> {
    let shown = program.display();
    let real = program.canonicalize().map_err(|error| format!("{shown}: {error}"))?;
    let meta = real.metadata().map_err(|error| format!("{shown}: {error}"))?;
    let owner = meta.uid() == 0 || meta.uid() == rustix::process::getuid().as_raw();
    if !meta.is_file() || !owner || meta.mode() & 0o022 != 0 {
        return Err(words::daemon::vault::program_not_trusted(program));
    }
    if real.starts_with(state) {
        return Err(words::daemon::vault::program_in_state(program));
    }
    Ok(())
}

/// A handler's exit code is its word. Who was ended by a signal or by us gave none.
fn judged(end: End, log: &str) -> Outcome {
    match end {
        End::Exited(0) => Outcome::Done,
        End::Exited(_) => {
            let last = clean_line(tail_lines(log, 1), 200);
            Outcome::Failed { why: words::daemon::vault::handler_failed(end, &last) }
        }
        End::Signalled(_) | End::TimedOut | End::Cancelled => {
            Outcome::Unknown { why: words::daemon::vault::handler_was_ended(end) }
        }
    }
}

/// What a handler printed, without its secrets.
fn readable(finished: &Finished, secrets: &[&OsString]) -> String {
    let mut text = String::from_utf8_lossy(&finished.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&finished.stderr));
    for secret in secrets.iter().filter_map(|secret| secret.to_str()).filter(|s| s.len() >= LEAST_SECRET) {
        text = text.replace(secret, "…");
    }
    clean_block(&text, LOG_BYTES * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_the_output_is_hidden() {
        let finished = Finished {
            end: End::Exited(1),
            stdout: b"token hunter2 used\n".to_vec(),
            stderr: b"hunter2: denied\n".to_vec(),
            truncated: false,
        };
        let log = readable(&finished, &[&OsString::from("hunter2"), &OsString::from("e")]);
        assert_eq!(log, "token … used\n…: denied\n");
        let why = "its handler ended with exit code 1: …: denied".to_owned();
        assert_eq!(judged(finished.end, &log), Outcome::Failed { why });
        assert!(matches!(judged(End::TimedOut, ""), Outcome::Unknown { .. }));
        assert_eq!(judged(End::Exited(0), "anything"), Outcome::Done);
    }

    #[test]
    fn a_handler_is_the_operators_own_file() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (state, program) = (dir.path().join("state"), dir.path().join("handler"));
        std::fs::create_dir(&state).unwrap();
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(trusted(&program, &state), Ok(()));
        assert!(trusted(&dir.path().join("missing"), &state).is_err());
        assert!(trusted(&state, &state).is_err());
        let inside = state.join("handler");
        std::fs::copy(&program, &inside).unwrap();
        std::os::unix::fs::symlink(&inside, dir.path().join("link")).unwrap();
        assert!(trusted(&dir.path().join("link"), &state).unwrap_err().contains("where sessions write"));
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o775)).unwrap();
        assert!(trusted(&program, &state).unwrap_err().contains("nobody else can write"));
    }
}
