//! Containers, by the command line of Docker or of Podman: found by a label, ended by their ids.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::process::{End, Error, Run};

/// The programs that know containers, in the order in which they are looked for.
pub const PROGRAMS: [&str; 2] = ["docker", "podman"];

/// How long a program may take to say how its containers are.
const LOOK: Duration = Duration::from_secs(5);
/// The most containers that are named.
const NAMED: usize = 50;
/// How long a program may take.
const LIMIT: Duration = Duration::from_secs(60);
/// The most that is read of its answer.
const ANSWER: usize = 256 << 10;
/// What it gets of our environment.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "XDG_RUNTIME_DIR", "DOCKER_HOST"];

/// Ends and removes the containers that carry a label, and tells how many there were. Volumes stay.
pub fn end_labelled(program: &Path, label: &str) -> Result<usize, String> {
    let filter = format!("label={label}");
    let listed = ask(program, &["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter], LIMIT)?;
    let ids: Vec<&str> = listed.lines().map(str::trim).filter(|id| !id.is_empty()).collect();
    if let Some(odd) = ids.iter().find(|id| !is_id(id)) {
        return Err(format!("it calls this a container: {}", pointsman_core::text::clean_line(odd, 80)));
    }
    if !ids.is_empty() {
        ask(program, &[&["rm", "--force"], &ids[..]].concat(), LIMIT)?;
    }
    Ok(ids.len())
}

/// The names of containers that say they are unhealthy, or are started again and again.
pub fn unhealthy(program: &Path) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for filter in ["health=unhealthy", "status=restarting"] {
        let listed = ask(program, &["ps", "--all", "--filter", filter, "--format", "{{.Names}}"], LOOK)?;
        let shown = listed.lines().map(|name| pointsman_core::text::clean_line(name, 100));
        names.extend(shown.filter(|name| !name.is_empty()));
    }
    names.sort();
    names.dedup();
    names.truncate(NAMED);
    Ok(names)
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn ask(program: &Path, arguments: &[&str], limit: Duration) -> Result<String, String> {
    let run = Run::new(OsString::from(program))
        .args(arguments)
        .cwd("/")
        .inherit(&INHERITED)
        // The one at home names programs, and agents can write it.
        .env("DOCKER_CONFIG", "/nonexistent")
        .output_cap(ANSWER)
        .time_limit(limit);
    let done = run.finish().map_err(|error: Error| error.to_string())?;
    match done.end {
        End::Exited(0) if !done.truncated => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        end => {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            Err(format!("{end}: {}", pointsman_core::text::clean_line(&said, 300)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::unhealthy;

    /// Knows `ps` with the filters of the real one, and refuses others.
    const DOCKER: &str = r#"#!/bin/sh
[ "$1 $2 $3 $5 $6" = "ps --all --filter --format {{.Names}}" ] || { echo "unknown flag" >&2; exit 125; }
case "$4" in
health=unhealthy) printf 'web\ndb\n' ;;
status=restarting) printf 'db\n\033[2Jcache\n' ;;
*) echo "invalid filter '$4'" >&2; exit 1 ;;
esac
"#;

    #[test]
    fn ill_containers_are_named_once_and_a_program_that_fails_tells_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("docker");
        fs::write(&program, DOCKER).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(unhealthy(&program).unwrap(), ["cache", "db", "web"]);
        fs::write(&program, "#!/bin/sh\necho 'permission denied' >&2\nexit 1\n").unwrap();
        assert!(unhealthy(&program).unwrap_err().contains("permission denied"));
    }
}
