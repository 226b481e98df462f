//! Finding a program before it is started, so that a missing one is said instead of tried.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// As a shell finds it: by its path (a relative one from `cwd`), or in the directories of `path`.
pub fn find_program(name: &str, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(cwd.join(name)).filter(is_program);
    }
    std::env::split_paths(path?).map(|dir| dir.join(name)).find(is_program)
}

#[cfg(test)]
mod tests {
    use super::find_program;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_program_is_found_by_name_by_path_and_only_if_it_can_be_run() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("agent");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        let path = Some(dir.path().as_os_str());
        assert_eq!(find_program("agent", path, dir.path()), None, "nobody may run it");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_program("agent", path, dir.path()), Some(program.clone()));
        assert!(find_program("./agent", None, dir.path()).is_some());
        assert_eq!(find_program(program.to_str().unwrap(), None, dir.path()), Some(program));
        assert_eq!(find_program("agent", None, dir.path()), None);
        assert_eq!(find_program("/no/such/agent", path, dir.path()), None);
    }
}
