//! The GitHub adapter against a real server, if there is one.

use std::time::Duration;

use pointsman_adapters::forge::Forge;
use pointsman_adapters::forge::github::Github;
use pointsman_adapters::git::Git;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::http::{Client, Host, Limits, Method, Request, RetryWait, Scheme};
use pointsman_adapters::secret::Secret;
use pointsman_core::ids::Number;
use pointsman_core::task::ReviewVerdict;
use pointsman_testkit::not_run;
use serde_json::{Value, json};

use super::behaviours::ALL;
use super::forgejo::{clock, opening};
use super::stage::{People, Stage};

/// A person with an account, by the API.
struct Person {
    client: Client,
    repo: String,
    name: String,
}

impl Person {
    fn call(&self, method: Method, rest: &[&str], body: &Value) -> Value {
        let (owner, repo) = self.repo.split_once('/').unwrap();
        let segments: Vec<&str> = ["repos", owner, repo].iter().chain(rest).copied().collect();
        let request = Request::new("act as a person", method, &segments);
        self.client.read(&request.header("accept", "application/vnd.github+json").body(body)).unwrap()
    }
}

impl People for Person {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn open_issue(&self, title: &str, body: &str, labels: &[&str]) -> Number {
        let issue = json!({ "title": title, "body": body, "labels": labels });
        self.call(Method::Post, &["issues"], &issue)["number"].as_u64().unwrap()
    }

    fn comment(&self, number: Number, body: &str) {
        self.call(Method::Post, &["issues", &number.to_string(), "comments"], &json!({ "body": body }));
    }

    fn close_issue(&self, number: Number) {
        self.call(Method::Patch, &["issues", &number.to_string()], &json!({ "state": "closed" }));
    }

    fn close_pull(&self, number: Number) {
        self.call(Method::Patch, &["pulls", &number.to_string()], &json!({ "state": "closed" }));
    }

    fn review(&self, pr: Number, verdict: ReviewVerdict, body: &str) {
        let event = if verdict == ReviewVerdict::Approve { "APPROVE" } else { "REQUEST_CHANGES" };
        let review = json!({ "event": event, "body": body });
        self.call(Method::Post, &["pulls", &pr.to_string(), "reviews"], &review);
    }
}

/// Against the repository that `POINTSMAN_TEST_GITHUB_REPO` names, as `scripts/test-services` does.
#[test]
fn github_keeps_the_contract_on_a_real_server() {
    let variable = |name: &str| std::env::var(format!("POINTSMAN_TEST_GITHUB_{name}")).ok();
    let Some(repo) = variable("REPO") else {
        return not_run("github", "POINTSMAN_TEST_GITHUB_REPO names no repository to test against");
    };
    let need =
        |name: &str| variable(name).unwrap_or_else(|| panic!("POINTSMAN_TEST_GITHUB_{name} is not set"));
    let (dev, reviewer, person) = (need("TOKEN"), need("REVIEW_TOKEN"), need("PERSON_TOKEN"));
    let url = variable("URL").unwrap_or_else(|| "https://github.com".to_owned());
    let api =
        if url == "https://github.com" { "https://api.github.com".into() } else { format!("{url}/api/v3") };
    // A person waits for a server that asks for a pause.
    let limits = Limits { tries: 10, longest_pause: Duration::from_secs(60), ..Limits::default() };
    for (name, behaviour) in ALL {
        eprintln!("{name}");
        let forge = Github::prepare(opening(&url, &repo, &dev, Secret::new(&reviewer))).unwrap();
        forge.look().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let git = Git::open(dir.path()).unwrap().with_account(forge.account());
        let mirror = Mirror::open_or_create(&git, &dir.path().join("mirror.git"), &forge.remote()).unwrap();
        let host = Host::new(&api, clock, limits, RetryWait::default());
        let client = host.client(Some((Scheme::Bearer, Secret::new(&person).unwrap())));
        let user: Value = client.read(&Request::get("read the account", &["user"])).unwrap();
        let name = user["login"].as_str().unwrap().to_owned();
        let person = Box::new(Person { client, repo: repo.clone(), name });
        behaviour(&Stage::new(Box::new(forge), person, mirror, Box::new(dir)));
    }
}
