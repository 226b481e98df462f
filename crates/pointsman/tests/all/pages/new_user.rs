//! The machine of somebody who reads a page: a home with a git identity, an empty directory, and the program on the path.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pointsman_testkit::within;
use tempfile::TempDir;

use super::page::Block;

/// Far beyond the seconds that the pages promise, for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A reader and their machine.
pub(crate) struct NewUser {
    root: TempDir,
    directory: PathBuf,
    variables: Vec<(String, String)>,
}

impl NewUser {
    /// Somebody in an empty directory of this name.
    pub(crate) fn new(directory: &str) -> Self {
        let root = tempfile::Builder::new().prefix("pm").tempdir().unwrap();
        let directory = root.path().join("home/src").join(directory);
        fs::create_dir_all(&directory).unwrap();
        for dir in ["bin", "run"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        let program = root.path().join("bin/pointsman");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pointsman"), program).unwrap();
        let identity = "[user]\n\tname = Ann\n\temail = ann@example.org\n[advice]\n\tdetachedHead = false\n";
        fs::write(root.path().join("home/.gitconfig"), identity).unwrap();
        Self { root, directory, variables: Vec::new() }
    }

    /// Adds a variable to the environment of every command.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Puts a program on the path.
    pub(crate) fn install(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path("bin").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Writes a file of the directory that their commands run in.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.directory.join(name), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The directory that all of their files are in.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("home/.local/state/pointsman")
    }

    /// Runs lines in a shell that stops at the first failure, and answers what they print.
    pub(crate) fn shell(&self, lines: &str) -> String {
        self.shell_with_input(lines, "")
    }

    /// The same, and types this.
    pub(crate) fn shell_with_input(&self, lines: &str, input: &str) -> String {
        let (is_well, printed) = self.try_shell(lines, input);
        assert!(is_well, "{lines}\n{printed}\n{}", self.log());
        printed
    }

    /// The same, whatever comes of it: whether it went well, and what was printed.
    pub(crate) fn try_shell(&self, lines: &str, input: &str) -> (bool, String) {
        // One file for both streams, so that they come as a terminal shows them.
        let printed = tempfile::NamedTempFile::new_in(self.root.path()).unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new("sh");
        command.args(["-euc", lines]).current_dir(&self.directory).env_clear();
        command.env("PATH", format!("{}:{path}", self.path("bin").display())).env("HOME", self.path("home"));
        command.env("POINTSMAN_RUNTIME_DIR", self.path("run")).env("LANG", "C.UTF-8").env("TZ", "UTC");
        command.env("POINTSMAN_WEB_LISTEN", "");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let append = || fs::OpenOptions::new().append(true).open(printed.path()).unwrap();
        let mut child = command.stdin(Stdio::piped()).stdout(append()).stderr(append()).spawn().unwrap();
        if let Some(mut stdin) = child.stdin.take() {
            // Whoever does not read it has ended.
            let _ = stdin.write_all(input.as_bytes());
        }
        let is_well = child.wait().unwrap().success();
        (is_well, String::from_utf8_lossy(&fs::read(printed.path()).unwrap()).into_owned())
    }

    /// What the daemon has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.state().join("daemon.log")).unwrap_or_default()
    }

    /// Looks until the commands that a page names say what it promises, as it has its reader do.
    pub(crate) fn wait_for_promises(&self, block: &Block) {
        block.promises().iter().for_each(|(command, text)| self.until_printed(command, text));
    }

    /// Runs a command again and again until it prints this.
    pub(crate) fn until_printed(&self, command: &str, text: &str) {
        let mut last = String::new();
        let said = within(PATIENCE, || {
            last = self.try_shell(command, "").1;
            last.contains(text).then_some(())
        });
        assert!(said.is_some(), "`{command}` does not say {text:?}:\n{last}\n{}", self.log());
    }
}

impl Drop for NewUser {
    fn drop(&mut self) {
        // A test that failed in the middle leaves a daemon and a terminal; both are found by their own sockets.
        self.try_shell("pointsman down", "");
        let socket = self.path("run/tmux.sock");
        let _ = Command::new("tmux").arg("-S").arg(socket).arg("kill-server").output();
    }
}
