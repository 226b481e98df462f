//! Containers, by the command line of Docker or of Podman: found by a label, ended by their ids.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::process::{End, Error, Run};

/// The programs that know containers, in the order in which they are looked for.
pub const PROGRAMS: [&str; 2] = ["docker", "podman"];

/// How long a program may take.
const LIMIT: Duration = Duration::from_secs(60);
/// The most that is read of its answer.
const ANSWER: usize = 256 << 10;
/// What it gets of our environment.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "XDG_RUNTIME_DIR", "DOCKER_HOST"];

/// Ends and removes the containers that carry a label, and tells how many there were. Volumes stay.
pub fn end_labelled(program: &Path, label: &str) -> Result<usize, String> {
    let filter = format!("label={label}");
    let listed = ask(program, &["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter])?;
    let ids: Vec<&str> = listed.lines().map(str::trim).filter(|id| !id.is_empty()).collect();
    if let Some(odd) = ids.iter().find(|id| !is_id(id)) {
        return Err(format!("it calls this a container: {}", pointsman_core::text::clean_line(odd, 80)));
    }
    if !ids.is_empty() {
        ask(program, &[&["rm", "--force"], &ids[..]].concat())?;
    }
    Ok(ids.len())
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn ask(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let run = Run::new(OsString::from(program))
        .args(arguments)
        .cwd("/")
        .inherit(&INHERITED)
        // The one at home names programs, and agents can write it.
        .env("DOCKER_CONFIG", "/nonexistent")
        .output_cap(ANSWER)
        .time_limit(LIMIT);
    let done = run.finish().map_err(|error: Error| error.to_string())?;
    match done.end {
        End::Exited(0) if !done.truncated => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        end => {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            Err(format!("{end}: {}", pointsman_core::text::clean_line(&said, 300)))
        }
    }
}
