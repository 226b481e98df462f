//! The embedded forge on a real file system with real git.

mod commands;
mod creation;
mod facts;
mod handles;
mod repeated;

use std::path::{Path, PathBuf};
use std::process::Command;

use pointsman_adapters::git::Git;
use pointsman_core::config::Config;
use pointsman_core::forge::PullRequest;
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::time::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

use super::{EmbeddedForge, create, run_command};
use crate::control::protocol::{FailureKind, ForgeCommand, Reply};
use crate::paths::Paths;
use pointsman_adapters::forge::Forge;

/// When everything here happens.
const NOW: Timestamp = Timestamp(1_700_000_000_000);
const NOW_TEXT: &str = "2023-11-14T22:13:20.000Z";

/// A person's checkout and an empty state directory.
struct World {
    dir: TempDir,
    paths: Paths,
    config: Config,
    git: Git,
}

impl World {
    /// A checkout with one commit on `main`, and no forge yet.
    fn without_forge() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(dir.path().join("state"), dir.path().join("run"));
        let name = ProjectName::new("shop").unwrap();
        let config = Config { name, primary_branch: "main".to_owned(), ..Config::default() };
        let git = Git::open(paths.state()).unwrap();
        let world = Self { dir, paths, config, git };
        std::fs::create_dir(world.checkout()).unwrap();
        world.git(&["init", "--quiet", "--initial-branch=main"]);
        world.commit("first");
        world
    }

    fn new() -> Self {
        let world = Self::without_forge();
        world.create().unwrap();
        world
    }

    fn checkout(&self) -> PathBuf {
        self.dir.path().join("checkout")
    }

    fn create(&self) -> anyhow::Result<PathBuf> {
        create(&self.paths, &self.config, &self.checkout())
    }

    fn forge(&self) -> EmbeddedForge {
        EmbeddedForge::open(&self.paths.project(&self.config.name), "main", &self.git, || NOW).unwrap()
    }

    fn repository(&self) -> PathBuf {
        self.paths.project(&self.config.name).forge_repository()
    }

    /// Git as a person runs it in the checkout.
    fn git(&self, args: &[&str]) -> String {
        git_in(&self.checkout(), args)
    }

    fn commit(&self, message: &str) -> Sha {
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        Sha::new(&self.git(&["rev-parse", "HEAD"])).unwrap()
    }

    /// Pushes a commit of the checkout as a branch of the forge.
    fn push(&self, sha: &Sha, branch: &str) {
        let to = self.repository();
        self.git(&[
            "push",
            "--quiet",
            "--force",
            to.to_str().unwrap(),
            &format!("{sha}:refs/heads/{branch}"),
        ]);
    }

    fn delete_branch(&self, branch: &str) {
        let to = self.repository();
        self.git(&["push", "--quiet", to.to_str().unwrap(), &format!(":refs/heads/{branch}")]);
    }

    /// Where the forge has a branch.
    fn stands(&self, branch: &str) -> Sha {
        Sha::new(&git_in(&self.repository(), &["rev-parse", &format!("refs/heads/{branch}")])).unwrap()
    }

    /// A branch with one commit on top of main, and its pull request.
    fn pull_request(&self, forge: &EmbeddedForge, branch: &str) -> (Number, Sha) {
        self.git(&["checkout", "--quiet", "--detach", "main"]);
        let head = self.commit(branch);
        self.push(&head, branch);
        let number = forge.ensure_pull_request(branch, "main", "Title", "Body").unwrap();
        (number, head)
    }
}

#[allow(clippy::disallowed_methods, reason = "a test's own git")]
fn git_in(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(["-c", "user.name=A Person", "-c", "user.email=person@example.org"])
        .args(args)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("LC_ALL", "C")])
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn done(forge: &EmbeddedForge, command: &ForgeCommand) -> Value {
    match run_command(forge, command) {
        Reply::Done { value } => value,
        Reply::Failed { kind, message } => panic!("{command:?}: {kind:?} {message}"),
    }
}

fn failed(forge: &EmbeddedForge, command: &ForgeCommand) -> (FailureKind, String) {
    match run_command(forge, command) {
        Reply::Done { value } => panic!("{command:?} was done: {value}"),
        Reply::Failed { kind, message } => (kind, message),
    }
}

fn issue(forge: &EmbeddedForge, title: &str) -> Number {
    let created = done(forge, &create_issue(title, "Text"));
    created["number"].as_u64().unwrap()
}

fn create_issue(title: &str, body: &str) -> ForgeCommand {
    let labels = vec!["backlog".to_owned()];
    ForgeCommand::CreateIssue {
        title: title.to_owned(),
        body: body.to_owned(),
        labels,
        author: "ann".to_owned(),
    }
}

fn read(forge: &EmbeddedForge, number: Number) -> PullRequest {
    forge.pull_request(number).unwrap().unwrap()
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
