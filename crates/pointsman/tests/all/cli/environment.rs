//! Where a test's commands run, and what they answer.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pointsman_adapters::process;
use pointsman_testkit::{eventually, within};
use serde_json::Value;
use tempfile::TempDir;

/// Far beyond what anything here takes on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Directories of its own, and a checkout called `shop` that may or may not be a project.
pub(crate) struct Environment {
    root: TempDir,
}

/// What a command answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Environment {
    /// With an empty directory `shop`.
    pub(crate) fn empty() -> Self {
        let environment = Self { root: tempfile::Builder::new().prefix("pm").tempdir().unwrap() };
        for dir in ["home", "shop", "phases"] {
            fs::create_dir(environment.path(dir)).unwrap();
        }
        environment
    }

    /// With a repository of one commit.
    pub(crate) fn with_repository() -> Self {
        let environment = Self::empty();
        environment.git(&["init", "-q", "-b", "main", "."]);
        environment.write("README", "A shop.\n");
        environment.commit();
        environment
    }

    /// With a project, made by `init`.
    pub(crate) fn with_project() -> Self {
        let environment = Self::with_repository();
        environment.run(&["init", "--yes"]).ok();
        environment
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn shop(&self) -> PathBuf {
        self.path("shop")
    }

    /// Writes a file of the checkout.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.shop().join(name), text).unwrap();
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "A commit"]);
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(args).current_dir(self.shop());
        let identity = [("NAME", "Ann"), ("EMAIL", "ann@example.org")];
        for (what, value) in identity {
            command.env(format!("GIT_AUTHOR_{what}"), value).env(format!("GIT_COMMITTER_{what}"), value);
        }
        let output = command.env("HOME", self.path("home")).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The program, in the checkout, with nothing of our own environment but the path to other programs.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pointsman"));
        command.args(args).current_dir(self.shop()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", self.path("home")).env("USER", "ann");
        command.env("POINTSMAN_STATE_DIR", self.path("state")).env("POINTSMAN_RUNTIME_DIR", self.path("run"));
        command.env("POINTSMAN_WEB_LISTEN", "");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        finish(self.command(args), b"")
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Answer {
        finish(self.command(args), input)
    }

    /// What a command prints with `--json`; it must succeed.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let answer = finish(self.command(&[args, &["--json"]].concat()), b"");
        answer.ok();
        serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }

    /// Asks again until the answer satisfies.
    pub(crate) fn json_until(&self, args: &[&str], satisfied: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("{args:?} to satisfy"), PATIENCE, || {
            let value = self.json(args);
            satisfied(&value).then_some(value)
        })
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        if self.path("run/tmux.sock").exists() {
            let _ = finish(self.command(&["down"]), b"");
            self.end_tmux();
        }
    }
}

impl Environment {
    /// The server goes when its last client has gone: one that is told to end while a client is just leaving may wait
    /// for it for ever.
    fn end_tmux(&self) {
        let tmux = |args: &[&str]| {
            let output = Command::new("tmux").arg("-S").arg(self.path("run/tmux.sock")).args(args).output();
            String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned()
        };
        let Ok(pid) = tmux(&["display-message", "-p", "#{pid}"]).parse::<u32>() else { return };
        let Some(start_time) = process::start_time(pid) else { return };
        until(|| tmux(&["list-clients"]).is_empty());
        tmux(&["kill-server"]);
        let gone = until(|| !process::is_alive(pid, start_time));
        assert!(gone || std::thread::panicking(), "tmux server {pid} does not end");
    }
}

/// Looks again until it is so, or until it never will be.
fn until(satisfied: impl Fn() -> bool) -> bool {
    within(PATIENCE, || satisfied().then_some(())).is_some()
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command, input: &[u8]) -> Answer {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // In a thread of its own: the program may write while we do. It may also not read at all.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Answer {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Answer {
    /// It succeeded.
    #[track_caller]
    pub(crate) fn ok(&self) -> &Self {
        self.code(0)
    }

    /// It ended with this code.
    #[track_caller]
    pub(crate) fn code(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Its standard error holds this.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "no {text:?} in {self:#?}");
        self
    }

    /// Its standard output is exactly this.
    #[track_caller]
    pub(crate) fn prints(&self, text: &str) -> &Self {
        assert_eq!(self.stdout, text, "{self:#?}");
        self
    }
}

/// The names in a directory, sorted.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
