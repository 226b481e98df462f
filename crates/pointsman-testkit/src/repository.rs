//! A git repository that lives as long as a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A git repository with a working tree and one commit on `main`, removed when this value goes.
///
/// Neither the user's nor the system's git configuration reaches it, and author and dates are fixed: the same steps
/// make the same commit ids on every machine.
#[derive(Debug)]
pub struct TempRepo {
    // Held for its drop: it removes the directory.
    _dir: TempDir,
    root: PathBuf,
}

impl TempRepo {
    /// A repository with one commit, which has one file, `README.md`.
    pub fn new() -> Self {
        let repo = Self::empty();
        repo.commit("README.md", "A repository for a test.\n");
        repo
    }

    /// A repository without any commit.
    pub fn empty() -> Self {
        let dir = tempfile::tempdir().expect("tests need a temporary directory");
        // The system's temporary directory may be a link; git answers with real paths.
        let root = dir.path().canonicalize().expect("it was just made");
        let repo = Self { _dir: dir, root };
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        repo
    }

    /// The working tree.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Writes a file, without committing it.
    pub fn write(&self, file: &str, content: &str) {
        let path = self.root.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("a test's own directory can be written");
        }
        fs::write(path, content).expect("a test's own directory can be written");
    }

    /// Writes a file and commits everything there is; answers the commit's id.
    pub fn commit(&self, file: &str, content: &str) -> String {
        self.write(file, content);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", &format!("Write {file}")]);
        self.head()
    }

    /// The present commit.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "--verify", "HEAD"])
    }

    /// Runs git in the repository and answers what it printed, without white space around it.
    ///
    /// # Panics
    ///
    /// If git fails.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = command(&self.root, arguments).output().expect("git is installed");
        assert!(
            output.status.success(),
            "git {arguments:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Default for TempRepo {
    fn default() -> Self {
        Self::new()
    }
}

/// A call of git that sees nothing of the machine but its programs.
pub(crate) fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(arguments).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Tester");
        command.env(format!("GIT_{role}_EMAIL"), "tester@example.invalid");
        command.env(format!("GIT_{role}_DATE"), "2020-01-01T00:00:00Z");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::TempRepo;

    #[test]
    fn the_same_steps_make_the_same_commits() {
        let build = || {
            let repo = TempRepo::new();
            (repo.head(), repo.commit("src/deep/file.txt", "content\n"))
        };
        let (first, second) = build();
        assert_ne!(first, second);
        assert_eq!(build(), (first, second));
    }

    #[test]
    fn it_is_a_clean_checkout_of_main_and_goes_away() {
        let repo = TempRepo::new();
        let path = repo.path().to_owned();
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
        assert_eq!(repo.git(&["branch", "--show-current"]), "main");
        repo.write("new.txt", "not committed\n");
        assert_eq!(repo.git(&["status", "--porcelain"]), "?? new.txt");
        drop(repo);
        assert!(!path.exists());
    }
}
