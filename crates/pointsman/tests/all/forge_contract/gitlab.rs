//! The GitLab adapter against a fake that speaks GitLab's dialect, and against a real one if there is one.

use std::sync::Arc;

use pointsman_adapters::forge::gitlab::Gitlab;
use pointsman_adapters::forge::{Error, Forge, ServerForge};
use pointsman_adapters::git::Git;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::http::{Client, Host, Method, Request, RetryWait, Scheme};
use pointsman_adapters::retry::Retry;
use pointsman_adapters::secret::Secret;
use pointsman_core::forge::CheckState;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, Faults, OUTSIDER, OWNER, REPO, REVIEWER, Rules};
use pointsman_testkit::not_run;
use serde_json::{Value, json};

use super::behaviours::{ALL, contract};
use super::forgejo::{clock, limits, opening};
use super::stage::{People, Stage};

fn open(fake: &FakeForgejo, reviewer: &str) -> Result<Gitlab, Error> {
    let (url, dev) = (fake.url(), fake.token(DEV));
    let forge = Gitlab::prepare(opening(&url, REPO, &dev, Secret::new(reviewer)))?;
    forge.look()?;
    Ok(forge)
}

/// A person with an account, by the API; what the API has not is done past it.
struct Person {
    client: Client,
    path: String,
    name: String,
    fake: Option<Arc<FakeForgejo>>,
}

impl Person {
    fn new(url: &str, path: &str, token: &str, fake: Option<Arc<FakeForgejo>>) -> Self {
        let host = Host::new(&format!("{url}/api/v4"), clock, limits(), RetryWait::default());
        let client = host.client(Some((Scheme::Bearer, Secret::new(token).unwrap())));
        let mut person = Self { client, path: path.to_owned(), name: String::new(), fake };
        let user = person.call(&Request::get("read the account", &["user"]));
        person.name = user["username"].as_str().unwrap().to_owned();
        person
    }

    fn call(&self, request: &Request) -> Value {
        let answer = (0..50).find_map(|_| self.client.send(&request.clone().repeatable()).ok());
        serde_json::from_slice(&answer.expect("people get through in the end").body).unwrap_or(Value::Null)
    }

    fn write(&self, method: Method, rest: &[&str], body: &Value) -> Value {
        let segments: Vec<&str> = ["projects", &self.path].iter().chain(rest).copied().collect();
        self.call(&Request::new("act as a person", method, &segments).body(body))
    }
}

impl People for Person {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn open_issue(&self, title: &str, body: &str, labels: &[&str]) -> Number {
        let issue = json!({ "title": title, "description": body, "labels": labels.join(",") });
        self.write(Method::Post, &["issues"], &issue)["iid"].as_u64().unwrap()
    }

    fn comment(&self, number: Number, body: &str) {
        self.write(Method::Post, &["issues", &number.to_string(), "notes"], &json!({ "body": body }));
    }

    fn close_issue(&self, number: Number) {
        self.write(Method::Put, &["issues", &number.to_string()], &json!({ "state_event": "close" }));
    }

    fn close_pull(&self, number: Number) {
        self.write(Method::Put, &["merge_requests", &number.to_string()], &json!({ "state_event": "close" }));
    }

    fn review(&self, pr: Number, verdict: ReviewVerdict, body: &str) {
        let number = pr.to_string();
        match (verdict, &self.fake) {
            (ReviewVerdict::Approve, _) => {
                self.write(Method::Post, &["merge_requests", &number, "notes"], &json!({ "body": body }));
                self.write(Method::Post, &["merge_requests", &number, "approve"], &json!({}));
            }
            (_, Some(fake)) => fake.ask_for_changes(pr, &self.name, body),
            // Only a quick action does that.
            (_, None) => {
                let body = json!({ "body": format!("{body}\n\n/submit_review requested_changes") });
                self.write(Method::Post, &["merge_requests", &number, "notes"], &body);
            }
        }
    }
}

fn stage() -> (Arc<FakeForgejo>, Stage) {
    let fake = Arc::new(FakeForgejo::start(Rules::default()));
    let forge = open(&fake, &fake.token(REVIEWER)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let git = Git::open(dir.path()).unwrap().with_account(forge.account());
    let mirror = Mirror::open_or_create(&git, &dir.path().join("mirror.git"), &forge.remote()).unwrap();
    let person = Person::new(&fake.url(), REPO, &fake.token(OWNER), Some(Arc::clone(&fake)));
    let stage = Stage::new(Box::new(forge), Box::new(person), mirror, Box::new(dir)).numbered_apart();
    (fake, stage)
}

contract!(stage().1.telling_pushers());

#[test]
fn gitlab_keeps_the_contract_through_ten_percent_of_trouble() {
    for (n, (name, behaviour)) in ALL.iter().enumerate() {
        // Made twice by a person whose answer got lost: not what is tested here.
        if name.contains("comments") || name.contains("listed") || name.contains("bound") {
            continue;
        }
        eprintln!("{name}");
        let (fake, stage) = stage();
        fake.change(|rules| rules.faults = Faults::ten_percent(n as u64 + 200));
        behaviour(&stage);
    }
}

/// A comment on a merge request is none on the issue of the same number.
#[test]
fn gitlab_comments_of_issues_and_merge_requests_are_kept_apart() {
    let (_fake, stage) = stage();
    let issue = stage.people.open_issue("Title", "", &[]);
    let (pr, ..) = stage.pull_request();
    assert_eq!((issue, pr), (1, 1));
    stage.forge.comment_on_pull_request_once(pr, "there", "On the merge request.").unwrap();
    stage.forge.comment_on_pull_request_once(pr, "there", "On the merge request.").unwrap();
    assert!(stage.forge.comments_after(issue, 0).unwrap().is_empty());
    stage.forge.close_pull_request(pr).unwrap();
    assert_eq!(stage.forge.open_issues().unwrap().len(), 1, "the issue is open");
}

#[test]
fn gitlab_a_failed_job_is_told_with_its_log_and_unknown_states_are_not_green() {
    let fake = FakeForgejo::start(Rules::default());
    let forge = open(&fake, &fake.token(REVIEWER)).unwrap();
    let sha = fake.branch("main").unwrap();
    for (name, word) in
        [("job:build", "failed"), ("job:lint", "success"), ("job:odd", "on_fire"), ("job:wait", "running")]
    {
        fake.set_status(&sha, name, word);
    }
    let checks = forge.checks(&Sha::new(&sha).unwrap()).unwrap();
    let seen: Vec<_> = checks.iter().map(|check| (check.name.as_str(), check.state)).collect();
    let expected = [
        ("build", CheckState::Failure),
        ("lint", CheckState::Success),
        ("odd", CheckState::Failure),
        ("wait", CheckState::Pending),
    ];
    assert_eq!(seen, expected);
    assert!(checks[0].details.contains("the log of build"), "{}", checks[0].details);
}

#[test]
fn gitlab_counts_the_word_of_those_who_may_write() {
    let (fake, stage) = stage();
    let (pr, _, head) = stage.pull_request();
    fake.approve_merge_request(pr, OUTSIDER);
    fake.approve_merge_request(pr, OWNER);
    let reviews = stage.read(pr).reviews;
    let seen: Vec<_> = reviews.iter().map(|r| (r.author.as_str(), r.dismissed, &r.sha)).collect();
    assert_eq!(seen, [(OUTSIDER, true, &head), (OWNER, false, &head)]);
    assert!(!stage.forge.may_direct(OUTSIDER).unwrap() && !stage.forge.may_direct("nobody").unwrap());
    assert!(stage.forge.may_direct(OWNER).unwrap());
}

#[test]
fn gitlab_says_who_it_is_and_what_is_missing() {
    let fake = FakeForgejo::start(Rules {
        protected_main: true,
        gitlab_version: "15.11.0".to_owned(),
        ..Rules::default()
    });
    let forge = open(&fake, &fake.token(REVIEWER)).unwrap();
    let (version, lacks) = ServerForge::version(&forge).unwrap();
    assert!(version == "15.11.0" && lacks[0].contains("16.9"), "{lacks:?}");
    let missing: Vec<String> = forge
        .rights("main")
        .into_iter()
        .filter_map(|right| right.checked.err())
        .map(|e| e.to_string())
        .collect();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].contains("`main` is protected and `dev-bot` may not push"), "{missing:?}");
    let error = open(&fake, &fake.token(DEV)).err().unwrap().to_string();
    assert!(error.contains("the same token"), "{error}");
    let error = open(&fake, &fake.second_token(DEV)).err().unwrap();
    assert!(error.to_string().contains("both tokens belong to"), "{error}");
    assert_eq!(error.retry(), Retry::Never);
}

/// Against the project that `POINTSMAN_TEST_GITLAB_REPO` names, as `scripts/test-services` does.
#[test]
fn gitlab_keeps_the_contract_on_a_real_server() {
    let variable = |name: &str| std::env::var(format!("POINTSMAN_TEST_GITLAB_{name}")).ok();
    let Some(repo) = variable("REPO") else {
        return not_run("gitlab", "POINTSMAN_TEST_GITLAB_REPO names no project to test against");
    };
    let need =
        |name: &str| variable(name).unwrap_or_else(|| panic!("POINTSMAN_TEST_GITLAB_{name} is not set"));
    let (dev, reviewer, person) = (need("TOKEN"), need("REVIEW_TOKEN"), need("PERSON_TOKEN"));
    let url = variable("URL").unwrap_or_else(|| "https://gitlab.com".to_owned());
    for (name, behaviour) in ALL {
        eprintln!("{name}");
        let forge = Gitlab::prepare(opening(&url, &repo, &dev, Secret::new(&reviewer))).unwrap();
        forge.look().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let git = Git::open(dir.path()).unwrap().with_account(forge.account());
        let mirror = Mirror::open_or_create(&git, &dir.path().join("mirror.git"), &forge.remote()).unwrap();
        let person = Box::new(Person::new(&url, &repo, &person, None));
        behaviour(&Stage::new(Box::new(forge), person, mirror, Box::new(dir)).numbered_apart());
    }
}
