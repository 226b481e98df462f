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

fn others(is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id() && is_wanted(*pid))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{inside, with_variable};
    use crate::process::Run;

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
        drop(job);
        assert!(inside(&work).is_empty());
    }
}
