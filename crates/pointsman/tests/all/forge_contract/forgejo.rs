//! The Forgejo adapter against fake servers, and against a real one if there is one.

use std::time::Duration;

use pointsman_adapters::forge::forgejo::Forgejo;
use pointsman_adapters::forge::{Error, Forge, Opening};
use pointsman_adapters::git::Git;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::http::{Client, Host, Limits, Method, Request, RetryWait, Scheme};
use pointsman_adapters::secret::Secret;
use pointsman_core::ids::Number;
use pointsman_core::task::ReviewVerdict;
use pointsman_core::time::Timestamp;
use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, Faults, OWNER, REPO, REVIEWER, Rules};
use pointsman_testkit::not_run;
use serde_json::{Value, json};

use super::behaviours::{ALL, contract};
use super::stage::{People, Stage};

pub(super) fn clock() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp(since.as_millis() as i64)
}

/// Patient with tries, not with time.
pub(super) fn limits() -> Limits {
    Limits {
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(4),
        failures: 1000,
        ..Limits::default()
    }
}

/// A repository on a server, with the patience of tests.
pub(super) fn opening<'a>(
    url: &'a str,
    repo: &'a str,
    dev: &str,
    review_token: Option<Secret>,
) -> Opening<'a> {
    let token = Secret::new(dev).unwrap().into();
    Opening { url, repo, token, review_token, clock, limits: limits(), patience: RetryWait::default() }
}

/// A server, its repository and three accounts.
pub(super) struct Place {
    pub(super) url: String,
    pub(super) repo: String,
    pub(super) dev: String,
    pub(super) reviewer: String,
    pub(super) person: String,
}

impl Place {
    pub(super) fn of(fake: &FakeForgejo) -> Self {
        let (dev, reviewer, person) = (fake.token(DEV), fake.token(REVIEWER), fake.token(OWNER));
        Self { url: fake.url(), repo: REPO.to_owned(), dev, reviewer, person }
    }

    pub(super) fn open(&self) -> Result<Forgejo, Error> {
        self.open_with(Secret::new(&self.reviewer))
    }

    /// Without an account that reviews.
    pub(super) fn open_alone(&self) -> Result<Forgejo, Error> {
        self.open_with(None)
    }

    fn open_with(&self, review_token: Option<Secret>) -> Result<Forgejo, Error> {
        let forge = Forgejo::prepare(opening(&self.url, &self.repo, &self.dev, review_token))?;
        forge.look()?;
        Ok(forge)
    }

    fn stage(&self, world: impl std::any::Any) -> Stage {
        let forge = loop {
            match self.open() {
                Ok(forge) => break forge,
                Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error}"),
            }
        };
        let dir = tempfile::tempdir().unwrap();
        let git = Git::open(dir.path()).unwrap().with_account(forge.account());
        let mirror = Mirror::open_or_create(&git, &dir.path().join("mirror.git"), &forge.remote()).unwrap();
        let host = Host::new(&format!("{}/api/v1", self.url), clock, limits(), RetryWait::default());
        let client = host.client(Some((Scheme::Token, Secret::new(&self.person).unwrap())));
        let mut person = Person { client, repo: self.repo.clone(), name: String::new() };
        let user = person.call(&Request::get("read the account", &["user"]));
        person.name = user["login"].as_str().unwrap().to_owned();
        Stage::new(Box::new(forge), Box::new(person), mirror, Box::new((dir, world)))
    }
}

/// A person with an account, by the API.
struct Person {
    client: Client,
    repo: String,
    name: String,
}

impl Person {
    fn call(&self, request: &Request) -> Value {
        // Every request is harmless to give again here: tests look at what they themselves made.
        let answer = (0..50).find_map(|_| self.client.send(&request.clone().repeatable()).ok());
        let body = answer.expect("people get through in the end").body;
        serde_json::from_slice(&body).unwrap_or(Value::Null)
    }

    fn write(&self, method: Method, rest: &[&str], body: &Value) -> Value {
        let (owner, repo) = self.repo.split_once('/').unwrap();
        let segments: Vec<&str> = ["repos", owner, repo].iter().chain(rest).copied().collect();
        self.call(&Request::new("act as a person", method, &segments).body(body))
    }

    fn label(&self, name: &str) -> u64 {
        let (owner, repo) = self.repo.split_once('/').unwrap();
        let listed = self.call(&Request::get("list", &["repos", owner, repo, "labels"]).query("limit", 50));
        let found = listed.as_array().unwrap().iter().find(|label| label["name"] == name).cloned();
        let made = || self.write(Method::Post, &["labels"], &json!({ "name": name, "color": "#00aabb" }));
        found.unwrap_or_else(made)["id"].as_u64().unwrap()
    }
}

impl People for Person {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn open_issue(&self, title: &str, body: &str, labels: &[&str]) -> Number {
        let made = self.write(Method::Post, &["issues"], &json!({ "title": title, "body": body }));
        let number = made["number"].as_u64().unwrap();
        if !labels.is_empty() {
            let ids: Vec<u64> = labels.iter().map(|label| self.label(label)).collect();
            self.write(Method::Post, &["issues", &number.to_string(), "labels"], &json!({ "labels": ids }));
        }
        number
    }

    fn comment(&self, number: Number, body: &str) {
        self.write(Method::Post, &["issues", &number.to_string(), "comments"], &json!({ "body": body }));
    }

    fn close_issue(&self, number: Number) {
        self.write(Method::Patch, &["issues", &number.to_string()], &json!({ "state": "closed" }));
    }

    fn close_pull(&self, number: Number) {
        self.write(Method::Patch, &["pulls", &number.to_string()], &json!({ "state": "closed" }));
    }

    fn review(&self, number: Number, verdict: ReviewVerdict, body: &str) {
        let event = if verdict == ReviewVerdict::Approve { "APPROVED" } else { "REQUEST_CHANGES" };
        // The commit that the person sees: without one a Gitea takes its own reference, which follows later than the page.
        let (owner, repo) = self.repo.split_once('/').unwrap();
        let number = number.to_string();
        let seen = self.call(&Request::get("look", &["repos", owner, repo, "pulls", &number]));
        let review = json!({ "event": event, "body": body, "commit_id": seen["head"]["sha"] });
        self.write(Method::Post, &["pulls", &number, "reviews"], &review);
    }
}

fn fake(rules: Rules) -> Stage {
    let fake = FakeForgejo::start(rules);
    Place::of(&fake).stage(fake)
}

contract!(fake(Rules::default()).telling_pushers());

/// A server that gives less at once than it is asked for.
#[test]
fn forgejo_reads_small_pages_to_the_end() {
    let lists = ["open_issues", "labels", "newest", "reviewed_once"];
    for (name, behaviour) in ALL.iter().filter(|(name, _)| lists.iter().any(|list| name.contains(list))) {
        eprintln!("{name}");
        behaviour(&fake(Rules { page: 7, ..Rules::default() }));
    }
}

#[test]
fn a_merge_is_noted_where_it_cannot_be_recorded() {
    let stage = fake(Rules { manual_merge: false, ..Rules::default() });
    super::behaviours::a_merge_is_recorded_when_the_work_is_on_the_base(&stage);
}

/// A busy server: heads move after the push has returned, a pull request cannot be merged while it is being checked, and
/// an assignment is answered as it was before, or forgotten.
#[test]
fn forgejo_keeps_the_contract_on_a_server_with_delays() {
    let late = ["head", "review", "merge", "landed", "ours", "approval"];
    for (name, behaviour) in ALL.iter().filter(|(name, _)| late.iter().any(|word| name.contains(word))) {
        eprintln!("{name}");
        behaviour(&fake(Rules::delayed()));
    }
}

/// The server fails in one of ten requests, in every way there is; what is true in the end is the same.
#[test]
fn forgejo_keeps_the_contract_through_ten_percent_of_trouble() {
    for (n, (name, behaviour)) in ALL.iter().enumerate() {
        // Made twice by a person whose answer got lost: not what is tested here.
        if name.contains("comments") || name.contains("listed") {
            continue;
        }
        eprintln!("{name}");
        let faults = Faults::ten_percent(n as u64 + 1);
        let server = FakeForgejo::start(Rules::default());
        let stage = Place::of(&server).stage(());
        server.change(|rules| rules.faults = faults);
        behaviour(&stage);
    }
}

/// Against the server that `POINTSMAN_TEST_FORGEJO_URL` names, as `scripts/test-services` does.
#[test]
fn forgejo_keeps_the_contract_on_a_real_server() {
    let variable = |name: &str| std::env::var(format!("POINTSMAN_TEST_FORGEJO_{name}")).ok();
    let Some(url) = variable("URL") else {
        return not_run("forgejo", "POINTSMAN_TEST_FORGEJO_URL names no server to test against");
    };
    let need =
        |name: &str| variable(name).unwrap_or_else(|| panic!("POINTSMAN_TEST_FORGEJO_{name} is not set"));
    let (repo, dev, reviewer, person) =
        (need("REPO"), need("TOKEN"), need("REVIEW_TOKEN"), need("PERSON_TOKEN"));
    let place = Place { url, repo, dev, reviewer, person };
    for (name, behaviour) in ALL {
        eprintln!("{name}");
        behaviour(&place.stage(()));
    }
}
