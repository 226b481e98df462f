//! The merge queue on its own: `merge-queue serve` on a bare repository, real git, a real gate. The tests of the PRD's
//! numbers are in `prd`; tasks and agents in the queue are met there and in `conflict`.

mod chains;
mod edges;
mod entering;
mod gate;
mod kill;
mod main_moves;
mod outside;
mod prd;
mod retesting;
mod steering;

use std::fs;
use std::path::PathBuf;

use pointsman_testkit::{Answer, TestDaemon};
use serde_json::Value;

use super::shop;

/// Writes down which tree it looks at, waits while it is held, and is red where a file says BUG.
const GATE: &str = "git rev-parse 'HEAD^{tree}' >> \"$HOME/gates\"; \
                    while [ -e \"$HOME/hold\" ]; do sleep 0.02; done; ! grep -rn BUG src";

/// A repository, its queue, and somebody who pushes branches.
struct Rig {
    daemon: TestDaemon,
    repo: String,
    serve: Vec<String>,
}

impl Rig {
    /// A queue with the usual gate, at work.
    fn start(options: &[&str]) -> Self {
        let rig = Self::new(GATE, options);
        rig.serve();
        rig
    }

    /// A repository with one commit on main; nothing is served yet.
    fn new(gate: &str, options: &[&str]) -> Self {
        Self::build(shop().build(), gate, options)
    }

    /// The same, in a world whose time a test sets.
    fn staged(gate: &str, options: &[&str]) -> Self {
        Self::build(shop().staged().build(), gate, options)
    }

    fn build(daemon: TestDaemon, gate: &str, options: &[&str]) -> Self {
        let work = daemon.path("work");
        fs::create_dir_all(work.join("src")).unwrap();
        fs::write(work.join("src/lemons.txt"), "lemons 1 crown\n").unwrap();
        daemon.git_in(&work, &["init", "--quiet", "--initial-branch=main"]);
        daemon.git_in(&work, &["add", "--all"]);
        daemon.git_in(&work, &["commit", "--quiet", "--message=Open the shop"]);
        let repo = daemon.path("line.git").to_str().unwrap().to_owned();
        daemon.git_in(&work, &["clone", "--quiet", "--bare", ".", &repo]);
        daemon.git_in(&work, &["remote", "add", "origin", &repo]);
        daemon.git_in(&work, &["fetch", "--quiet", "origin"]);
        let poll: &[&str] = if options.contains(&"--poll") { &[] } else { &["--poll", "100ms"] };
        // The gates of these tests leave notes in the home.
        let given = ["merge-queue", "serve", "--repo", &repo, "--gate", gate, "--sandbox", "off"];
        let serve = given.iter().chain(poll).chain(options).map(|word| (*word).to_owned()).collect();
        Self { daemon, repo, serve }
    }

    fn serve(&self) {
        self.serve_with(&[]);
    }

    fn serve_with(&self, env: &[(&str, &str)]) {
        let words: Vec<&str> = self.serve.iter().map(String::as_str).collect();
        self.daemon.start_command(&words, env);
    }

    /// SIGKILL, then the next one.
    fn restart(&self) {
        self.daemon.kill_daemon();
        self.serve();
    }

    fn work(&self) -> PathBuf {
        self.daemon.path("work")
    }

    /// Runs git in the working tree of the person.
    fn person(&self, arguments: &[&str]) -> String {
        self.daemon.git_in(&self.work(), arguments)
    }

    /// Runs git in the repository.
    fn git(&self, arguments: &[&str]) -> String {
        self.daemon.git_in(self.repo.as_ref(), arguments)
    }

    /// Pushes a branch that leaves the first commit and writes a file; answers its head.
    fn push(&self, branch: &str, file: &str, text: &str) -> String {
        let begin = self.person(&["rev-list", "--max-parents=0", "origin/main"]);
        self.person(&["checkout", "--quiet", "-B", "wip", &begin]);
        self.push_on(branch, file, text)
    }

    /// Pushes one more commit on what the person has checked out.
    fn push_on(&self, branch: &str, file: &str, text: &str) -> String {
        fs::write(self.work().join(file), text).unwrap();
        self.person(&["add", "--all"]);
        self.person(&["commit", "--quiet", "--message", &format!("Write {file} for {branch}")]);
        self.person(&["push", "--quiet", "--force", "origin", &format!("HEAD:refs/heads/{branch}")]);
        self.person(&["rev-parse", "HEAD"])
    }

    /// Pushes a branch with a list of its own and puts it into the merge queue.
    fn enter(&self, branch: &str) -> Value {
        self.push(branch, &format!("src/{branch}.txt"), &format!("{branch} 2 crowns\n"));
        self.add(branch)
    }

    /// A command of this queue.
    fn mq(&self, arguments: &[&str]) -> Answer {
        self.daemon.run(&self.words(arguments))
    }

    /// The same, with `--json`; it must succeed.
    fn json(&self, arguments: &[&str]) -> Value {
        let answer = self.mq(&[&["--json"], arguments].concat());
        assert_eq!(answer.code, Some(0), "merge-queue {arguments:?}: {answer:#?}");
        serde_json::from_str(answer.stdout.trim()).unwrap()
    }

    /// Before the arguments: what follows `--` may be anything.
    fn words<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        let at = arguments.iter().position(|word| !word.starts_with("--")).map_or(0, |at| at + 1);
        [&["merge-queue"], &arguments[..at], &["--repo", &self.repo], &arguments[at..]].concat()
    }

    fn add(&self, branch: &str) -> Value {
        self.json(&["add", branch])
    }

    /// The newest entry of a branch.
    fn entry(&self, branch: &str) -> Value {
        let history = self.json(&["history"]);
        let entries = history.as_array().unwrap().iter();
        entries.rev().find(|entry| entry["branch"] == branch).cloned().unwrap_or_default()
    }

    #[track_caller]
    fn wait(&self, branch: &str, status: &str) -> Value {
        self.daemon.wait_for(&format!("{branch} to be {status}"), || {
            let entry = self.entry(branch);
            if entry["status"] == status {
                return Some(entry);
            }
            let over = !["queued", "building", "testing"].iter().any(|open| entry["status"] == *open);
            assert!(!over || entry.is_null(), "{branch} is not {status}: {entry:#}\n{}", self.daemon.log());
            None
        })
    }

    /// Waits until the gate has been started so many times.
    #[track_caller]
    fn wait_gates(&self, runs: usize) {
        let enough = || (self.gates().len() >= runs).then_some(());
        self.daemon.wait_for(&format!("{runs} gates to be started"), enough);
    }

    /// The trees that the gate looked at, in order.
    fn gates(&self) -> Vec<String> {
        let text = fs::read_to_string(self.daemon.path("home/gates")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// From now on gates do not end.
    fn hold(&self) {
        fs::write(self.daemon.path("home/hold"), "").unwrap();
    }

    fn let_go(&self) {
        fs::remove_file(self.daemon.path("home/hold")).unwrap();
    }

    /// Main's subjects along first parents, newest first.
    fn main_log(&self) -> Vec<String> {
        let log = self.git(&["log", "--first-parent", "--format=%s", "main"]);
        log.lines().map(str::to_owned).collect()
    }

    /// Every commit of main along first parents is a tree that the gate has seen, but for the first.
    #[track_caller]
    fn check_main_was_tested(&self) {
        let (gates, main) = (self.gates(), self.git(&["rev-parse", "main^{tree}"]));
        assert!(gates.contains(&main), "main's tree {main} was never tested: {gates:?}");
    }

    /// The branches of the repository, sorted.
    fn branches(&self) -> Vec<String> {
        let listed = self.git(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"]);
        listed.lines().map(str::to_owned).collect()
    }
}
