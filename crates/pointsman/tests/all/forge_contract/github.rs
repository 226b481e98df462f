//! The GitHub adapter against a fake that speaks GitHub's dialect.

use std::sync::Arc;

use pointsman_adapters::forge::github::Github;
use pointsman_adapters::forge::{Error, Forge};
use pointsman_adapters::git::Git;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::secret::Secret;
use pointsman_core::forge::CheckState;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, Faults, OUTSIDER, OWNER, REPO, REVIEWER, Rules};

use super::behaviours::{ALL, contract};
use super::forgejo::opening;
use super::stage::{People, Stage};

fn open(fake: &FakeForgejo, reviewer: &str) -> Result<Github, Error> {
    let (url, dev) = (fake.url(), fake.token(DEV));
    let forge = Github::prepare(opening(&url, REPO, &dev, Secret::new(reviewer)))?;
    forge.look()?;
    Ok(forge)
}

struct Ann(Arc<FakeForgejo>);

impl People for Ann {
    fn name(&self) -> String {
        OWNER.to_owned()
    }

    fn open_issue(&self, title: &str, body: &str, labels: &[&str]) -> Number {
        self.0.create_issue(OWNER, title, body, labels)
    }

    fn comment(&self, number: Number, body: &str) {
        self.0.comment(number, OWNER, body);
    }

    fn close_issue(&self, number: Number) {
        self.0.close(number);
    }

    fn close_pull(&self, number: Number) {
        self.0.close(number);
    }

    fn review(&self, pr: Number, verdict: ReviewVerdict, body: &str) {
        let event = if verdict == ReviewVerdict::Approve { "APPROVED" } else { "REQUEST_CHANGES" };
        self.0.review(pr, OWNER, event, body, &[]);
    }
}

pub(super) fn stage() -> (Arc<FakeForgejo>, Stage) {
    let fake = Arc::new(FakeForgejo::start(Rules::default()));
    let forge = open(&fake, &fake.token(REVIEWER)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let git = Git::open(dir.path()).unwrap().with_account(forge.account());
    let mirror = Mirror::open_or_create(&git, &dir.path().join("mirror.git"), &forge.remote()).unwrap();
    let people = Box::new(Ann(Arc::clone(&fake)));
    let stage = Stage::new(Box::new(forge), people, mirror, Box::new(dir));
    (fake, stage)
}

contract!(stage().1.telling_pushers());

#[test]
fn github_keeps_the_contract_through_ten_percent_of_trouble() {
    for (n, (name, behaviour)) in ALL.iter().enumerate() {
        eprintln!("{name}");
        let (fake, stage) = stage();
        fake.change(|rules| rules.faults = Faults::ten_percent(n as u64 + 100));
        behaviour(&stage);
    }
}

#[test]
fn github_check_runs_and_statuses_are_one_list() {
    let fake = FakeForgejo::start(Rules::default());
    let forge = open(&fake, &fake.token(REVIEWER)).unwrap();
    let sha = fake.branch("main").unwrap();
    fake.set_status(&sha, "ci/old", "success");
    fake.set_status(&sha, "run:build", "pending");
    fake.set_status(&sha, "run:lint", "neutral");
    let read = || -> Vec<(String, CheckState)> {
        let checks = forge.checks(&Sha::new(&sha).unwrap()).unwrap();
        checks.into_iter().map(|check| (check.name, check.state)).collect()
    };
    let expected = |build| {
        [("build", build), ("ci/old", CheckState::Success), ("lint", CheckState::Success)]
            .map(|(name, state)| (name.to_owned(), state))
    };
    assert_eq!(read(), expected(CheckState::Pending));
    fake.set_status(&sha, "run:build", "timed_out");
    assert_eq!(read(), expected(CheckState::Failure));
    fake.set_status(&sha, "run:build", "failure");
    let checks = forge.checks(&Sha::new(&sha).unwrap()).unwrap();
    assert_eq!(checks[0].details, "src/list.txt:3: failure: build does not like this");
}

#[test]
fn github_unchanged_answers_cost_nothing_and_the_limit_is_known() {
    let fake = FakeForgejo::start(Rules::default());
    let forge = open(&fake, &fake.token(REVIEWER)).unwrap();
    fake.create_issue(OWNER, "Title", "Text", &[]);
    for _ in 0..5 {
        assert_eq!(forge.open_issues().unwrap().len(), 1);
    }
    let listed = forge.host().counts().all().into_iter().find(|(name, _)| *name == "list issues").unwrap().1;
    assert_eq!((listed.calls, listed.unchanged), (5, 4));
    assert_eq!(forge.host().rate_limit().unwrap().limit, 5000);
}

#[test]
fn github_counts_the_word_of_those_who_may_write() {
    let fake = FakeForgejo::start(Rules::default());
    let forge = open(&fake, &fake.token(REVIEWER)).unwrap();
    let head = fake.make_commit(&fake.branch("main").unwrap(), "work");
    fake.set_branch("work", &head);
    let pr = forge.ensure_pull_request("work", "main", "T", "B").unwrap();
    fake.review(pr, OUTSIDER, "APPROVED", "ship it", &[]);
    fake.review(pr, OWNER, "REQUEST_CHANGES", "See:", &[("a.rs", 3, "why?")]);
    let reviews = forge.pull_request(pr).unwrap().unwrap().reviews;
    let seen: Vec<_> = reviews.iter().map(|r| (r.author.as_str(), r.dismissed, r.body.as_str())).collect();
    assert_eq!(seen, [(OUTSIDER, true, "ship it"), (OWNER, false, "See:\n\na.rs:3: why?")]);
    assert!(!forge.may_direct(OUTSIDER).unwrap() && !forge.may_direct("nobody").unwrap());
    fake.dismiss(pr, OWNER);
    assert_eq!(forge.pull_request(pr).unwrap().unwrap().reviews.len(), 1);
}

#[test]
fn github_shows_a_rebased_landing_by_a_comment() {
    let (fake, stage) = stage();
    let (number, _, _) = stage.pull_request();
    let other = stage.commit(&stage.main());
    stage.push("main", &other);
    stage.forge.record_merge(number, &other).unwrap();
    let pr = stage.read(number);
    assert_eq!((pr.merged, pr.merge_sha), (true, Some(other)));
    assert!(!fake.pull(number).open);
}

#[test]
fn github_refuses_one_account_for_both() {
    let fake = FakeForgejo::start(Rules::default());
    let error = open(&fake, &fake.token(DEV)).err().unwrap().to_string();
    assert!(error.contains("the same token"), "{error}");
}

/// A ruleset that keeps us from pushing is named, with what to do; whoever may get past it is not told anything.
#[test]
fn github_a_ruleset_that_forbids_pushes_is_named() {
    let fake = FakeForgejo::start(Rules { protected_main: true, ..Rules::default() });
    let missing = |forge: &Github| -> Vec<String> {
        let rights = forge.rights("main").into_iter();
        rights.filter_map(|right| right.checked.err()).map(|error| error.to_string()).collect()
    };
    let found = missing(&open(&fake, &fake.token(REVIEWER)).unwrap());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`protect main` keeps `dev-bot` from pushing to `main`"), "{found:?}");
    let (url, owner) = (fake.url(), fake.token(OWNER));
    let owners = Github::prepare(opening(&url, REPO, &owner, None)).unwrap();
    owners.look().unwrap();
    assert_eq!(missing(&owners), [""; 0]);
    fake.change(|rules| rules.protected_main = false);
    assert_eq!(missing(&open(&fake, &fake.token(REVIEWER)).unwrap()), [""; 0]);
}

/// The merge call and what it is made of, as GitHub describes them; an order is given once.
#[test]
fn github_merges_by_an_order_that_is_asked_for_until_it_is_decided() {
    use pointsman_adapters::forge::{ForgeMerge, MergeTies};
    use pointsman_core::config::MergeStyle;
    let (fake, stage) = stage();
    fake.record();
    let (number, _, head) = stage.pull_request();
    assert_eq!(stage.forge.merge_ties(number).unwrap(), MergeTies::default());
    fake.auto_merge(number);
    assert_eq!(stage.forge.merge_ties(number).unwrap(), MergeTies { auto_merge: true, stack: false });
    let (stacked, _, _) = stage.pull_request();
    fake.stack(stacked);
    assert_eq!(stage.forge.merge_ties(stacked).unwrap(), MergeTies { auto_merge: false, stack: true });
    let merge = || stage.forge.merge_pull_request(number, &head, MergeStyle::Rebase).unwrap();
    assert!(matches!(merge(), ForgeMerge::Waiting { .. }));
    let ForgeMerge::Merged { sha } = merge() else { panic!("it is decided") };
    assert_eq!(Some(sha.to_string()), fake.branch("main"));
    assert_eq!(merge(), ForgeMerge::Merged { sha }, "asked again it says the same");
    let (other, branch, old) = stage.pull_request();
    stage.push_to(other, &branch, &stage.commit(&old));
    let late = stage.forge.merge_pull_request(other, &old, MergeStyle::Rebase).unwrap();
    assert!(matches!(late, ForgeMerge::Refused { .. }), "{late:?}");
    stage.forge.rights("main");
    super::github_shapes::check_all(&fake.recorded());
}
