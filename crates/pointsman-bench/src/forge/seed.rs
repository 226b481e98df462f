//! The call pattern of the original factory: three scripts every ten minutes, CI asked every 30 s, reviews every five
//! minutes. One request for each question that its description names, and no more: what it asks beside them (the
//! supervisor's look every 20 minutes, the gardener, retries) is left out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use pointsman_adapters::http::{Client, Host, Limits, Method, Request, RetryWait, Scheme};
use pointsman_adapters::secret::Secret;
use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, REPO};
use serde_json::{Value, json};

use super::day::{CODING, Clock, FIXING};
use crate::wait;

const CRON: Duration = Duration::from_secs(600);
const CI_POLL: Duration = Duration::from_secs(30);
const REVIEW_POLL: Duration = Duration::from_secs(300);

/// The factory at work.
pub(super) struct Seed<'a> {
    fake: &'a FakeForgejo,
    client: Client,
    clock: Clock,
    over: &'a AtomicBool,
}

impl<'a> Seed<'a> {
    pub(super) fn new(fake: &'a FakeForgejo, clock: Clock, over: &'a AtomicBool) -> anyhow::Result<Self> {
        let base = format!("{}/api/v1/repos/{REPO}", fake.url());
        let host = Host::new(&base, pointsman::daemon::clock::now, Limits::default(), RetryWait::default());
        let token = Secret::new(&fake.token(DEV)).context("the token is one")?;
        Ok(Self { fake, client: host.client(Some((Scheme::Token, token))), clock, over })
    }

    /// The three scripts that cron starts, until the day is over.
    pub(super) fn run_cron(&self) -> anyhow::Result<()> {
        let mut at = Duration::ZERO;
        let busy = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            while !self.over.load(Ordering::SeqCst) {
                // dev-poll: the number of a label, pull requests that could be merged; then, if nobody is at work, what is
                // in progress and what is in the backlog.
                self.get(&["labels"], "")?;
                let pulls = self.open_pulls()?;
                for (_, sha) in &pulls {
                    if self.state(sha)? == "success" {
                        self.get(&["pulls", &pulls[0].0.to_string(), "reviews"], "")?;
                    }
                }
                if !busy.load(Ordering::SeqCst) {
                    self.get(&["issues"], "in-progress")?;
                    if let Some(issue) =
                        self.get(&["issues"], "backlog")?.as_array().and_then(|all| all.first())
                    {
                        let issue = issue["number"].as_u64().unwrap_or_default();
                        busy.store(true, Ordering::SeqCst);
                        scope.spawn(move || {
                            if let Err(error) = self.work_on(issue) {
                                eprintln!("the original's agent: {error:#}");
                            }
                            busy.store(false, Ordering::SeqCst);
                        });
                    }
                }
                // review-poll: which of them are green and have no review of their head.
                for (number, sha) in self.open_pulls()? {
                    if self.state(&sha)? == "success" {
                        self.get(&["issues", &number.to_string(), "comments"], "")?;
                    }
                }
                // action-poll.
                self.get(&["issues"], "action")?;
                at += CRON;
                self.clock.wait_until(at)?;
            }
            Ok(())
        })
    }

    /// From claim to close.
    fn work_on(&self, issue: u64) -> anyhow::Result<()> {
        let number = issue.to_string();
        let here = ["issues", &number];
        self.get(&here, "")?;
        let labels = self.get(&["labels"], "")?;
        let id = |name: &str| {
            let all = labels.as_array().into_iter().flatten();
            all.filter(|label| label["name"] == name).find_map(|label| label["id"].as_u64())
        };
        let backlog = id("backlog").unwrap_or_default();
        let doing = match id("in-progress") {
            Some(id) => id,
            None => self.fake.make_label("in-progress"),
        };
        self.send(Method::Post, &[&here[..], &["labels"]].concat(), json!({ "labels": [doing] }))?;
        self.send(Method::Delete, &[&here[..], &["labels", &backlog.to_string()]].concat(), Value::Null)?;
        wait::pause(self.clock.real(CODING))?;
        let branch = format!("fix/issue-{issue}");
        let mut head = self.fake.make_commit(&self.main(), "Work");
        self.fake.set_branch(&branch, &head);
        let title = format!("Work on {issue}");
        let order = json!({ "head": branch, "base": "main", "title": title, "body": "" });
        let opened: Value = self.send(Method::Post, &["pulls"], order)?;
        let pr = opened["number"].as_u64().unwrap_or_default().to_string();
        loop {
            while self.state(&head)? != "success" {
                wait::pause(self.clock.real(CI_POLL))?;
            }
            if self.is_approved(&pr, &head)? {
                break;
            }
            wait::pause(self.clock.real(FIXING))?;
            head = self.fake.make_commit(&head, "Mend");
            self.fake.set_branch(&branch, &head);
        }
        // Our server knows no merge but by a push; asking for one counts all the same.
        let _ = self
            .client
            .send(&request(Method::Post, &["pulls", &pr, "merge"]).body(&json!({ "Do": "merge" })));
        self.fake.merge_by_person(pr.parse()?);
        self.get(&["pulls", &pr], "")?;
        self.send(Method::Delete, &[&here[..], &["labels", &doing.to_string()]].concat(), Value::Null)?;
        self.send(Method::Patch, &here, json!({ "state": "closed" }))?;
        Ok(())
    }

    /// Waits for a review of the head; whether it approves.
    fn is_approved(&self, pr: &str, head: &str) -> anyhow::Result<bool> {
        loop {
            wait::pause(self.clock.real(REVIEW_POLL))?;
            // Its head, what the reviewer commented, its reviews.
            self.get(&["pulls", pr], "")?;
            self.get(&["issues", pr, "comments"], "")?;
            let reviews = self.get(&["pulls", pr, "reviews"], "")?;
            let mut of_head = reviews.as_array().into_iter().flatten().filter(|r| r["commit_id"] == head);
            if let Some(last) = of_head.next_back() {
                return Ok(last["state"] == "APPROVED");
            }
        }
    }

    fn main(&self) -> String {
        self.fake.branch("main").unwrap_or_default()
    }

    fn open_pulls(&self) -> anyhow::Result<Vec<(u64, String)>> {
        let listed = self.get(&["pulls"], "")?;
        let facts = |pull: &Value| Some((pull["number"].as_u64()?, pull["head"]["sha"].as_str()?.to_owned()));
        Ok(listed.as_array().into_iter().flatten().filter_map(facts).collect())
    }

    /// What CI says about a commit, in a word.
    fn state(&self, sha: &str) -> anyhow::Result<String> {
        let found = self.get(&["commits", sha, "status"], "")?;
        let all = found["statuses"].as_array().into_iter().flatten();
        let words: Vec<&str> = all.filter_map(|status| status["status"].as_str()).collect();
        let green = !words.is_empty() && words.iter().all(|word| *word == "success");
        Ok(if green { "success" } else { "pending" }.to_owned())
    }

    fn get(&self, path: &[&str], label: &str) -> anyhow::Result<Value> {
        let plain = request(Method::Get, path).query("state", "open").query("limit", 20);
        let narrowed = if label.is_empty() { plain } else { plain.query("labels", label) };
        Ok(self.client.read(&narrowed)?)
    }

    fn send(&self, method: Method, path: &[&str], body: Value) -> anyhow::Result<Value> {
        let order = request(method, path);
        let order = if body.is_null() { order } else { order.body(&body) };
        let answer = self.client.send(&order)?;
        Ok(answer.json().unwrap_or(Value::Null))
    }
}

fn request(method: Method, path: &[&str]) -> Request {
    Request::new("ask", method, path)
}
