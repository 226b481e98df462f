//! Finding a program before it is started, so that what is wrong with it is said instead of tried.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The most of a script's first line that the kernel reads.
const FIRST_LINE: u64 = 256;

/// The outcome of a look for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    Found(PathBuf),
    Missing,
    /// A file that nobody may run.
    NotExecutable(PathBuf),
    /// A script whose first line names a program that is not there.
    NoInterpreter {
        path: PathBuf,
        interpreter: String,
    },
}

/// As a shell finds it: by its path (a relative one from `cwd`), or in the directories of `path`.
pub fn find_program(name: &str, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    candidates(name, path, cwd).into_iter().find(|path| is_executable(path))
}

/// The same, and what is wrong with it otherwise.
pub fn look_for_program(name: &str, path: Option<&OsStr>, cwd: &Path) -> Program {
    let Some(found) = find_program(name, path, cwd) else {
        let file = candidates(name, path, cwd).into_iter().find(|path| path.is_file());
        return file.map_or(Program::Missing, Program::NotExecutable);
    };
    match missing_interpreter(&found, path) {
        Some(interpreter) => Program::NoInterpreter { path: found, interpreter },
        None => Program::Found(found),
    }
}

fn candidates(name: &str, path: Option<&OsStr>, cwd: &Path) -> Vec<PathBuf> {
    if name.contains('/') {
        return vec![cwd.join(name)];
    }
    path.map(|path| std::env::split_paths(path).map(|dir| dir.join(name)).collect()).unwrap_or_default()
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The program that a script's first line names, directly or through `env`, if it is not there.
fn missing_interpreter(script: &Path, path: Option<&OsStr>) -> Option<String> {
    let mut start = Vec::new();
    std::fs::File::open(script).ok()?.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let interpreter = words.next()?;
    if !is_executable(Path::new(interpreter)) {
        return Some(interpreter.to_owned());
    }
    let named = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    let through_env = Path::new(interpreter).file_name().is_some_and(|name| name == "env");
    (through_env && find_program(named, path, Path::new("/")).is_none()).then(|| named.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Program, find_program, look_for_program};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_program_is_found_by_name_by_path_and_only_if_it_can_be_run() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("agent");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        let path = Some(dir.path().as_os_str());
        assert_eq!(find_program("agent", path, dir.path()), None, "nobody may run it");
        assert_eq!(look_for_program("agent", path, dir.path()), Program::NotExecutable(program.clone()));
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_program("agent", path, dir.path()), Some(program.clone()));
        assert_eq!(look_for_program("./agent", None, dir.path()), Program::Found(dir.path().join("./agent")));
        assert_eq!(find_program(program.to_str().unwrap(), None, dir.path()), Some(program));
        assert_eq!(find_program("agent", None, dir.path()), None);
        assert_eq!(look_for_program("/no/such/agent", path, dir.path()), Program::Missing);
    }

    #[test]
    fn a_script_without_its_interpreter_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("agent");
        let cases = [
            ("#!/no/such/python\n", Some("/no/such/python")),
            ("#!/no/such/sh -e", Some("/no/such/sh")),
            ("#!/usr/bin/env no-such-program\n", Some("no-such-program")),
            ("#!/usr/bin/env -S A=1 no-such-program -x\n", Some("no-such-program")),
            ("#!/usr/bin/env sh\n", None),
            ("#! /bin/sh\n", None),
            ("no script at all", None),
        ];
        for (text, expected) in cases {
            std::fs::write(&program, text).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            let path = std::ffi::OsStr::new("/usr/bin:/bin");
            let missing = match look_for_program("./agent", Some(path), dir.path()) {
                Program::NoInterpreter { interpreter, .. } => Some(interpreter),
                Program::Found(_) => None,
                other => panic!("{text:?}: {other:?}"),
            };
            assert_eq!(missing.as_deref(), expected, "{text:?}");
        }
    }
}
