//! A sandbox for git while it reads a repository or a working tree that an agent can write.
//!
//! Git follows links inside a repository: an agent that replaces `objects` or a reference of its gateway by a link would have the
//! daemon's git read any repository of the operator, and the history found there would become the agent's own branch. A
//! directory of a working tree that becomes a link at the right moment shows git the files behind it. Inside, nothing is there
//! that a link could lead to.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use pointsman_core::sandbox::installation_of;

use super::{Bubblewrap, ISOLATION};
use crate::process;

/// The directories of the system that git and its helpers are in, unless it is installed elsewhere.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/etc/ld.so.cache"];

/// The words that put a program inside, as far as they are the same for every call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    begin: Vec<OsString>,
}

impl Reading {
    /// A sandbox that shows the system and git. `path` are the directories in which git is looked for, `ours` those that are
    /// shown only as far as a call names them.
    pub fn new(bubblewrap: &Bubblewrap, path: Option<&OsStr>, ours: &[PathBuf]) -> Self {
        let mut begin: Vec<OsString> = vec![bubblewrap.program().into()];
        begin.extend(ISOLATION.map(OsString::from));
        begin.extend(["--unshare-net", "--proc", "/proc", "--dev", "/dev"].map(OsString::from));
        let git = process::find_program("git", path, Path::new("/"));
        let mut places: Vec<PathBuf> =
            SYSTEM.iter().map(PathBuf::from).filter(|path| path.exists()).collect();
        let of_system = |places: &[PathBuf], path: &Path| places.iter().any(|dir| path.starts_with(dir));
        for git in git.into_iter().flat_map(|git| [git.canonicalize().ok(), Some(git)]).flatten() {
            if !of_system(&places, &git) {
                places.extend(installation_of(&git, &[]).into_iter().filter(|place| place.exists()));
            }
        }
        for place in &places {
            match place.read_link() {
                Ok(target) => begin.extend(["--symlink".into(), target.into(), place.into()]),
                Err(_) => begin.extend(shown("--ro-bind", place)),
            }
        }
        for dir in ours.iter().filter(|dir| of_system(&places, dir)) {
            begin.extend(["--tmpfs".into(), dir.into()]);
        }
        Self { begin }
    }

    /// The words before a program that sees only these paths, in this directory. It may change what is in `write`.
    pub(crate) fn command(&self, read: &[&Path], write: &[&Path], cwd: &Path) -> Vec<OsString> {
        let mut places: Vec<(&Path, &str)> = read.iter().map(|path| (*path, "--ro-bind")).collect();
        places.extend(write.iter().map(|path| (*path, "--bind")));
        // A path below another one comes after it.
        places.sort_unstable();
        let mut words = self.begin.clone();
        words.extend(places.into_iter().flat_map(|(path, option)| shown(option, path)));
        words.extend(["--remount-ro".into(), "/".into(), "--chdir".into(), cwd.into(), "--".into()]);
        words
    }
}

fn shown(option: &str, path: &Path) -> [OsString; 3] {
    [option.into(), path.into(), path.into()]
}
