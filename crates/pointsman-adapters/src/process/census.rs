//! The processes that are alive on this machine, as far as `/proc` tells us about processes of our own user.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::identity::LEFTOVER_GRACE;

/// Between two looks whether somebody has ended.
const LOOK: Duration = Duration::from_millis(10);

/// Processes that were started with this variable set to this value. Not ourselves.
pub fn with_variable(name: &str, value: &Path) -> Vec<u32> {
    others(|pid| has_variable(pid, name, value))
}

/// Ends all processes that were started with this variable set to this value, whatever group they have moved to:
/// asks, and kills who does not go. Answers how many there were.
pub fn end_with_variable(name: &str, value: &Path) -> usize {
    let asked = signal_with_variable(name, value, Signal::TERM);
    let began = Instant::now();
    while !with_variable(name, value).is_empty() {
        let waited = began.elapsed();
        if waited > LEFTOVER_GRACE * 2 {
            // It hangs in the kernel, or makes new ones faster than they end.
            break;
        }
        if waited > LEFTOVER_GRACE {
            signal_with_variable(name, value, Signal::KILL);
        }
        std::thread::park_timeout(LOOK);
    }
    asked
}

fn signal_with_variable(name: &str, value: &Path, signal: Signal) -> usize {
    let is_signalled = |pid: &u32| {
        let Some(process) = i32::try_from(*pid).ok().and_then(Pid::from_raw) else { return false };
        // Opened before the check: what is signalled is what was looked at.
        let Ok(handle) = pidfd_open(process, PidfdFlags::empty()) else { return false };
        has_variable(*pid, name, value) && pidfd_send_signal(&handle, signal).is_ok()
    };
    with_variable(name, value).iter().filter(|pid| is_signalled(pid)).count()
}

fn has_variable(pid: u32, name: &str, value: &Path) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let wanted = [name.as_bytes(), b"=", value.as_os_str().as_bytes()].concat();
    environment.split(|b| *b == 0).any(|entry| entry == wanted)
}

/// Processes that were started with all of these words. Not ourselves.
pub fn with_words(wanted: &[&str]) -> Vec<u32> {
    others(|pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        wanted.iter().all(|wanted| command.split(|b| *b == 0).any(|word| word == wanted.as_bytes()))
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

    use super::{end_with_variable, inside, with_variable, working_on};
    use crate::process::{End, Run};

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
    fn all_with_a_variable_are_ended_even_those_that_left_their_group_and_ignore_the_request() {
        let dir = tempfile::tempdir().unwrap();
        let script =
            "trap '' TERM; setsid sleep 60 & setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' & wait";
        let other = Run::new("sleep").arg("60").inherit(&["PATH"]).env("POINTSMAN_CENSUS", "elsewhere");
        let other = other.start_job(&dir.path().join("other")).unwrap();
        let run = Run::new("sh").args(["-c", script]).inherit(&["PATH"]).env("POINTSMAN_CENSUS", dir.path());
        let job = run.start_job(&dir.path().join("log")).unwrap();
        eventually("all to be there", LIMIT, || {
            (with_variable("POINTSMAN_CENSUS", dir.path()).len() >= 4).then_some(())
        });
        assert!(end_with_variable("POINTSMAN_CENSUS", dir.path()) >= 4);
        assert!(with_variable("POINTSMAN_CENSUS", dir.path()).is_empty());
        assert_eq!(job.wait(LIMIT).unwrap().end, End::Signalled(9));
        assert!(crate::process::is_alive(other.pid(), other.start_time()));
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
