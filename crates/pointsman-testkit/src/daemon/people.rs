//! What people do: file issues, review, answer, look.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::TestDaemon;
use super::setup::Setup;

/// What a command answered.
#[derive(Debug)]
pub struct Answer {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl TestDaemon {
    /// Runs a command of the program.
    pub fn run(&self, arguments: &[&str]) -> Answer {
        finish(&mut self.command(arguments))
    }

    /// Runs a command that must succeed, with `--json`.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let answer = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(answer.code, Some(0), "pointsman {arguments:?}: {answer:#?}");
        serde_json::from_str(answer.stdout.trim()).unwrap_or(Value::Null)
    }

    /// Files an issue with a script for the rehearsal agent, labelled `backlog`; answers its number.
    pub fn file_issue(&self, title: &str, script: &str) -> u64 {
        self.file_issue_with(title, &format!("```text\nrehearsal:begin\n{script}\nrehearsal:end\n```\n"))
    }

    /// The same, with any body.
    pub fn file_issue_with(&self, title: &str, body: &str) -> u64 {
        // By a file: a body may be longer than an argument can be.
        let file = self.path("home/body");
        std::fs::write(&file, body).expect("a test's own directory can be written");
        let file = file.to_string_lossy();
        let issue = self.json(&[
            "forge",
            "issue",
            "create",
            "--title",
            title,
            "--body-file",
            &file,
            "--label",
            "backlog",
        ]);
        issue["number"].as_u64().expect("an issue has a number")
    }

    /// An issue of the forge.
    pub fn issue(&self, issue: u64) -> Value {
        self.json(&["forge", "issue", "show", &issue.to_string()])
    }

    /// The labels of an issue, sorted.
    pub fn labels(&self, issue: u64) -> Vec<String> {
        let issue = self.issue(issue);
        let labels = issue["labels"].as_array().cloned().unwrap_or_default();
        let mut labels: Vec<String> = labels.iter().filter_map(|l| l.as_str().map(str::to_owned)).collect();
        labels.sort();
        labels
    }

    /// The bodies of the comments on an issue.
    pub fn comments(&self, issue: u64) -> Vec<String> {
        let issue = self.issue(issue);
        let comments = issue["comments"].as_array().cloned().unwrap_or_default();
        comments.iter().filter_map(|c| c["body"].as_str().map(str::to_owned)).collect()
    }

    /// A pull request of the forge.
    pub fn pull_request(&self, number: u64) -> Value {
        self.json(&["forge", "pr", "show", &number.to_string()])
    }

    /// All pull requests of the forge.
    pub fn pull_requests(&self) -> Vec<Value> {
        self.json(&["forge", "pr", "list", "--state", "all"]).as_array().cloned().unwrap_or_default()
    }

    /// A person approves the present head of a task's pull request.
    pub fn approve(&self, issue: u64) {
        self.review(issue, &["--approve", "--body", "Good."]);
    }

    /// A person requests changes at the present head of a task's pull request.
    pub fn request_changes(&self, issue: u64, wish: &str) {
        self.review(issue, &["--request-changes", "--body", wish]);
    }

    fn review(&self, issue: u64, words: &[&str]) {
        // A state may be there a moment before the number of its pull request is.
        let pr = self.wait_until(issue, "its pull request", |task| task["pr"].is_u64())["pr"].to_string();
        self.json(&[&["forge", "pr", "review", &pr], words].concat());
    }

    /// A person answers the agent's question.
    pub fn answer(&self, issue: u64, text: &str) {
        self.json(&["task", "answer", &issue.to_string(), text]);
    }

    /// A task as scripts see it; null if there is none yet.
    pub fn task(&self, issue: u64) -> Value {
        let answer = self.run(&["task", "show", &issue.to_string(), "--json"]);
        serde_json::from_str(&answer.stdout).unwrap_or(Value::Null)
    }

    /// All sessions of an issue, oldest first.
    pub fn sessions(&self, issue: u64) -> Vec<Value> {
        let sessions = self.json(&["session", "list"]);
        let sessions = sessions.as_array().cloned().unwrap_or_default();
        sessions.into_iter().filter(|s| s["task"] == issue).collect()
    }

    /// The newest session of an issue; it must be there.
    pub fn session(&self, issue: u64) -> Value {
        self.sessions(issue).pop().unwrap_or_else(|| panic!("issue {issue} has no session"))
    }

    /// The process of the newest session of an issue. An agent may be seen at work a moment before its process is known.
    #[track_caller]
    pub fn session_pid(&self, issue: u64) -> u32 {
        self.wait_for(&format!("issue {issue}: the process of its session"), || {
            u32::try_from(self.session(issue)["pid"].as_u64()?).ok()
        })
    }

    /// What the newest session's terminal showed.
    pub fn transcript(&self, issue: u64) -> String {
        let answer = self.run(&["session", "logs", &issue.to_string()]);
        assert_eq!(answer.code, Some(0), "{answer:#?}");
        answer.stdout
    }

    /// The prompt of a session.
    pub fn prompt(&self, issue: u64, generation: u32) -> String {
        let file = self.session_files(issue).join(format!("inbox-{generation}/0000-task.md"));
        std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
    }

    /// What happened to an issue, oldest first.
    pub fn events(&self, issue: u64) -> Vec<Value> {
        let answer = self.run(&["events", "--json", "--since", "0", "--issue", &issue.to_string()]);
        let lines = answer.stdout.lines();
        lines.map(|line| serde_json::from_str(line).expect("events are lines of JSON")).collect()
    }

    /// The states a task went through, each once in a row.
    pub fn states(&self, issue: u64) -> Vec<String> {
        let mut states: Vec<String> = Vec::new();
        for event in self.events(issue) {
            let data = &event["data"];
            let came_from = data["from"].as_str().filter(|_| states.is_empty());
            let seen = came_from.into_iter().chain(data["to"].as_str());
            for state in seen {
                if states.last().is_none_or(|last| last != state) {
                    states.push(state.to_owned());
                }
            }
        }
        states
    }

    /// What people on duty were told, oldest first.
    pub fn notices(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.state().join("notices.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("notices are lines of JSON")).collect()
    }

    /// What was captured before trees and sessions went.
    pub fn rescues(&self) -> Vec<Value> {
        self.json(&["rescue", "list", "--kind", "rescue"]).as_array().cloned().unwrap_or_default()
    }

    /// Runs git in the forge's repository.
    pub fn forge_git(&self, arguments: &[&str]) -> String {
        let repository = self.state().join("projects").join(&self.setup.name).join("forge.git");
        self.git_in(&repository, arguments)
    }

    /// The subjects of the commits on the forge's main branch, newest first.
    pub fn main_log(&self) -> Vec<String> {
        // Commits of the same second are told apart by their parents alone.
        self.forge_git(&["log", "--topo-order", "--format=%s", "main"]).lines().map(str::to_owned).collect()
    }

    /// A file on the forge's main branch.
    pub fn on_main(&self, path: &str) -> Option<String> {
        let listed = self.forge_git(&["ls-tree", "--name-only", "main", path]);
        (!listed.is_empty()).then(|| self.forge_git(&["show", &format!("main:{path}")]))
    }

    /// Runs git as the user of this world does; it must succeed.
    pub fn git_in(&self, dir: &Path, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.arg("-C").arg(dir).args(arguments);
        self.clean(&mut git);
        let answer = finish(&mut git);
        assert_eq!(answer.code, Some(0), "git {arguments:?}: {answer:#?}");
        answer.stdout.trim_end().to_owned()
    }

    /// Adds another project to this world; its commands take `--project`.
    pub fn add_project(&self, setup: &Setup) {
        let checkout = self.path(&setup.name);
        setup.write_checkout(self, &checkout);
        let answer = self.run(&["project", "add", &checkout.to_string_lossy()]);
        assert_eq!(answer.code, Some(0), "{answer:#?}");
    }
}

/// Runs a program to its end.
pub(super) fn finish(command: &mut Command) -> Answer {
    let output = command.stdin(Stdio::null()).output().expect("the program is installed");
    Answer {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
