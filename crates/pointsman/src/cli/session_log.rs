//! The transcript of a session's terminal: live from the phase directory, afterwards from the state directory.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pointsman_core::ids::TaskKey;
use pointsman_core::text::{clean_block, clean_line};
use pointsman_core::words;
use pointsman_store::SessionRow;
use pointsman_view::session::Log;
use rustix::fs::OFlags;

use super::context::Context;
use super::failure::Failure;
use crate::project::Project;

/// Longest line that is shown.
const LINE_BYTES: usize = 16 * 1024;
/// So much is shown at once.
const PIECE_BYTES: usize = 1 << 20;
/// Between two looks for more.
const LOOK: Duration = Duration::from_millis(100);

/// Prints the transcript of a session, and with `follow` its further lines until the session ends.
#[allow(clippy::disallowed_methods, reason = "looks for more until it is interrupted")]
pub(crate) fn print(
    context: &Context,
    project: &Project,
    session: &SessionRow,
    follow: bool,
    raw: bool,
) -> Result<(), Failure> {
    let (path, file) = open(context, project, session)?;
    let mut transcript = BufReader::new(file);
    if context.out.is_json() && !follow {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut transcript, &mut bytes)?;
        let text = context.masked(&project.config, &String::from_utf8_lossy(&bytes));
        let text = if raw { text } else { clean_block(&text, usize::MAX) };
        return context.out.value(&Log { session: session.session.clone(), path, text });
    }
    let mut lines = Vec::new();
    loop {
        let ended = !follow || has_ended(context, session)?;
        loop {
            // A line that is not finished yet stays here until the rest of it is there.
            let more = transcript.read_until(b'\n', &mut lines)? > 0;
            if more && lines.len() < PIECE_BYTES {
                continue;
            }
            let whole = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let rest = lines.split_off(if ended && !more { lines.len() } else { whole });
            let shown = std::mem::replace(&mut lines, rest);
            if shown.is_empty() {
                break;
            }
            for line in masked(context, project, shown).split_inclusive(|byte| *byte == b'\n') {
                show(context, line, raw)?;
            }
            if !more {
                break;
            }
        }
        if ended {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

/// Prints the log of the last set-up of a task's tree.
pub(crate) fn print_setup(context: &Context, project: &Project, key: &TaskKey) -> Result<(), Failure> {
    let path = context.paths.project(&key.project).setup_log(&key.identity());
    let mut bytes = Vec::new();
    match open_own(&path) {
        Ok(mut file) => drop(std::io::Read::read_to_end(&mut file, &mut bytes)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Failure::not_found(words::session::no_setup_log(key.issue)));
        }
        Err(error) => return Err(error.into()),
    }
    let text = context.masked(&project.config, &String::from_utf8_lossy(&bytes));
    let text = clean_block(&text, usize::MAX);
    if context.out.is_json() {
        return context.out.value(&Log { session: key.identity(), path, text });
    }
    context.out.line(text.trim_end())
}

/// Lines without secrets. Those that have none stay byte by byte as they are.
fn masked(context: &Context, project: &Project, lines: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8_lossy(&lines);
    let masked = context.masked(&project.config, &text);
    if masked == text { lines } else { masked.into_bytes() }
}

fn show(context: &Context, line: &[u8], raw: bool) -> Result<(), Failure> {
    if raw {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(line)?;
        return Ok(stdout.flush()?);
    }
    // The last of several carriage returns is what was to be seen in the end.
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches(['\n', '\r']).rsplit('\r').next().unwrap_or_default().to_owned();
    context.out.line(clean_block(&text, LINE_BYTES))
}

fn has_ended(context: &Context, session: &SessionRow) -> Result<bool, Failure> {
    let now = match context.store()? {
        Some(store) => store.session(&session.session)?,
        None => None,
    };
    Ok(now.is_none_or(|row| row.ended_at.is_some()))
}

/// The transcript moves when the task is over; whichever place has it.
pub(super) fn open(
    context: &Context,
    project: &Project,
    session: &SessionRow,
) -> Result<(PathBuf, File), Failure> {
    let kept = context.paths.project(&session.project).transcript(&session.session);
    let identity =
        session.session.rsplit_once('.').map_or(session.session.as_str(), |(identity, _)| identity);
    let live = project.config.dev.phase_dir.join(format!("{identity}.log"));
    for path in [kept, live] {
        match open_own(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Failure::refused(format!(
                    "{}: {error}",
                    clean_line(&path.to_string_lossy(), 400)
                )));
            }
        }
    }
    Err(Failure::not_found(format!("there is no transcript of session {}", session.session)))
}

/// Anybody may write to the phase directory: only a regular file of our own is read.
fn open_own(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw() {
        Ok(file)
    } else {
        Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, "it is not a file of ours"))
    }
}
