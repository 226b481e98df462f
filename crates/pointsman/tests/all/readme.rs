//! The README, followed word for word: its commands from an empty directory to a merged branch.
//!
//! The blocks are taken from the file itself. Between two blocks a person waits until `pointsman status` says what the
//! text names; so does the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pointsman_testkit::eventually;
use tempfile::TempDir;

/// Far beyond the seconds that the README promises, for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
const SECTION: &str = "## Your first merged branch";

/// The blocks marked `sh` of the section, each with the text that follows it.
fn blocks() -> Vec<(String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = fs::read_to_string(path).expect("the README is there");
    let section = readme.split_once(SECTION).expect("the README has the section").1;
    let section = section.split("\n## ").next().expect("there is always a first part");
    let mut blocks = Vec::new();
    for part in section.split("\n```sh\n").skip(1) {
        let (commands, after) = part.split_once("\n```\n").expect("a block ends");
        blocks.push((commands.to_owned(), after.to_owned()));
    }
    blocks
}

/// A new user's machine: a home with a git identity, an empty directory, and the program on the path.
struct NewUser {
    root: TempDir,
}

impl NewUser {
    fn new() -> Self {
        let root = tempfile::Builder::new().prefix("pm").tempdir().unwrap();
        for dir in ["home", "hello", "bin"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        let program = root.path().join("bin/pointsman");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pointsman"), program).unwrap();
        let identity = "[user]\n\tname = Ann\n\temail = ann@example.org\n";
        fs::write(root.path().join("home/.gitconfig"), identity).unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Runs lines in a shell that stops at the first failure, and answers what they print.
    fn shell(&self, lines: &str) -> String {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new("sh");
        command.args(["-euc", lines]).current_dir(self.path("hello")).env_clear();
        command.env("PATH", format!("{}:{path}", self.path("bin").display())).env("HOME", self.path("home"));
        command.env("POINTSMAN_STATE_DIR", self.path("state")).env("POINTSMAN_RUNTIME_DIR", self.path("run"));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{lines}\n{out}\n{err}\n{}", self.log());
        out + &err
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("state/daemon.log")).unwrap_or_default()
    }

    /// Looks at the status until it says this, as the README has its reader do.
    fn status_says(&self, text: &str) {
        eventually(&format!("`pointsman status` to say {text:?}"), PATIENCE, || {
            self.shell("pointsman status").contains(text).then_some(())
        });
    }
}

impl Drop for NewUser {
    fn drop(&mut self) {
        // A test that failed in the middle leaves a daemon and a terminal; both are found by their own sockets.
        let run = |program: &Path, args: &[&str]| {
            let mut command = Command::new(program);
            command.args(args).current_dir("/").env("POINTSMAN_STATE_DIR", self.path("state"));
            let _ = command.env("POINTSMAN_RUNTIME_DIR", self.path("run")).output();
        };
        run(Path::new(env!("CARGO_BIN_EXE_pointsman")), &["down"]);
        let socket = self.path("run/tmux.sock");
        run(Path::new("tmux"), &["-S", &socket.to_string_lossy(), "kill-server"]);
    }
}

#[test]
fn e2e_the_readme_leads_from_an_empty_directory_to_a_merged_branch() {
    let user = NewUser::new();
    let blocks = blocks();
    assert!(blocks.len() >= 5, "the section has only {} blocks", blocks.len());
    let mut printed = String::new();
    for (commands, after) in &blocks {
        printed = user.shell(commands);
        // "… `pointsman status` says `1 awaiting_review`": the reader waits for that.
        for promise in after.split("`pointsman status` says `").skip(1) {
            user.status_says(promise.split('`').next().expect("there is always a first part"));
        }
    }
    assert!(printed.contains("Hello from issue 1"), "{printed}");
    assert!(printed.contains("The daemon has stopped."), "{printed}");
    let last = &blocks.last().expect("there are blocks").1;
    assert!(last.contains("`Hello from issue 1`"), "the README says what is printed: {last}");
}
