//! Who is alive on this machine, as far as `/proc` tells us about processes of our own user.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Processes that were started with this variable set to this value. Not ourselves.
pub fn with_variable(name: &str, value: &Path) -> Vec<u32> {
    let mut wanted = format!("{name}=").into_bytes();
    wanted.extend(value.as_os_str().as_bytes());
    others(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|entry| entry == wanted)
    })
}

/// Processes that work inside a directory. Not ourselves.
pub fn inside(dir: &Path) -> Vec<u32> {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    others(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&dir)))
}

/// Processes that may be at work on what is in a directory: they are in it, have a file of it open, or were started
/// with its path. Rather one too many than one too few. Not ourselves.
pub fn working_on(dir: &Path) -> Vec<u32> {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let path = dir.as_os_str().as_bytes();
    others(|pid| {
        let process = Path::new("/proc").join(pid.to_string());
        let leads_inside = |link: &Path| fs::read_link(link).is_ok_and(|target| target.starts_with(&dir));
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        leads_inside(&process.join("cwd"))
            || command.windows(path.len()).any(|part| part == path)
            || open.into_iter().any(|file| leads_inside(&file.path()))
    })
}

fn others(is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id() && is_wanted(*pid))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pointsman_testkit::eventually;

    use super::{inside, with_variable, working_on};
    use crate::process::Run;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn a_process_is_found_by_its_variable_and_by_where_it_works() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let work = dir.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let job = Run::new("sleep").arg("60").cwd(&work).inherit(&["PATH"]).env("POINTSMAN_CENSUS", &work);
        let job = job.start_job(&log).unwrap();
        assert_eq!(with_variable("POINTSMAN_CENSUS", &work), [job.pid()]);
        assert_eq!(inside(&work), [job.pid()]);
        assert!(with_variable("POINTSMAN_CENSUS", dir.path()).is_empty());
        assert_eq!(working_on(&work), [job.pid()]);
        drop(job);
        eventually("nobody is left", LIMIT, || {
            (inside(&work).is_empty() && working_on(&work).is_empty()).then_some(())
        });
    }

    #[test]
    fn a_process_works_on_what_it_was_told_of_or_has_open() {
        let dir = tempfile::tempdir().unwrap();
        let (work, log) = (dir.path().join("work"), dir.path().join("log"));
        std::fs::create_dir(&work).unwrap();
        let file = work.join("file");
        std::fs::write(&file, "").unwrap();
        for script in ["sleep 60; :", "exec 3< \"$1\"; exec sleep 60"] {
            let run = Run::new("sh").args(["-c", script, "sh"]).arg(&file).inherit(&["PATH"]);
            let job = run.start_job(&log).unwrap();
            // For a moment after its fork a child looks like its parent, and one that was killed is not gone at once.
            eventually(script, LIMIT, || (working_on(&work) == [job.pid()]).then_some(()));
            drop(job);
            eventually("nobody is left", LIMIT, || working_on(&work).is_empty().then_some(()));
        }
    }
}
