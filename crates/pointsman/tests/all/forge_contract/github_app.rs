//! A GitHub App in place of an account: its token is fetched once, renewed in time, and replaced when it is refused.

use pointsman_adapters::forge::github::{AppKey, AppOpening, Github};
use pointsman_adapters::forge::{Error, Forge};
use pointsman_adapters::git::Git;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::http::RetryWait;
use pointsman_adapters::retry::Retry;
use pointsman_testkit::fake_forgejo::{APP, APP_BOT, APP_KEY, FakeForgejo, OWNER, REPO, Rules};

use super::forgejo::{clock, limits};

fn open(fake: &FakeForgejo, id: &str, key: &str) -> Result<Github, Error> {
    let (url, patience) = (fake.url(), RetryWait::default());
    let opening = AppOpening { url: &url, repo: REPO, review_token: None, clock, limits: limits(), patience };
    Github::prepare_app(&AppKey { id, key, installation: None }, opening)
}

#[test]
fn an_app_works_as_an_account_does_with_one_token_for_all() {
    let fake = FakeForgejo::start(Rules::default());
    let issue = fake.create_issue(OWNER, "One", "", &["backlog"]);
    let forge = open(&fake, APP, APP_KEY).unwrap();
    forge.look().unwrap();
    assert_eq!(forge.me(), APP_BOT);
    forge.assign_me(issue).unwrap();
    forge.assign_me(issue).unwrap();
    forge.set_labels(issue, &["in-progress".to_owned()], &["backlog".to_owned()]).unwrap();
    let seen = forge.issue(issue).unwrap().unwrap();
    assert_eq!(seen.assignee.as_deref(), Some(APP_BOT), "a comment says so, once");
    assert_eq!((seen.comments.len(), fake.issue(issue).assignees.len()), (1, 0));
    let dir = tempfile::tempdir().unwrap();
    let git = Git::open(dir.path()).unwrap().with_account(forge.account());
    let mirror = Mirror::open_or_create(&git, &dir.path().join("mirror.git"), &forge.remote()).unwrap();
    mirror.fetch_remote().unwrap();
    assert_eq!(fake.app_tokens(), 1, "git shows the same");
}

#[test]
fn a_token_is_renewed_before_it_ends_and_when_it_is_refused() {
    // Its clock is an hour ahead: what it says about times is read by ours.
    let fake = FakeForgejo::start(Rules { ahead: 3600, ..Rules::default() });
    let forge = open(&fake, APP, APP_KEY).unwrap();
    // The proof of a clock that is an hour behind is refused once; from then on the difference is known.
    let first = forge.look();
    assert!(first.is_ok() || forge.look().is_ok(), "{first:?}");
    forge.open_issues().unwrap();
    assert_eq!(fake.app_tokens(), 1);
    fake.revoke_app_token();
    let error = forge.open_issues().unwrap_err();
    assert_eq!(error.retry(), Retry::Later, "{error}");
    forge.open_issues().unwrap();
    assert_eq!(fake.app_tokens(), 2);
    fake.revoke_app_token();
    fake.app_token_seconds(200);
    forge.open_issues().unwrap_err();
    // Each is over within five minutes, so the next question wants another one.
    forge.open_issues().unwrap();
    forge.open_issues().unwrap();
    assert_eq!(fake.app_tokens(), 4);
}

#[test]
fn an_app_that_is_none_or_lacks_a_right_is_told_so() {
    let fake = FakeForgejo::start(Rules::default());
    assert!(open(&fake, APP, "no key").is_err_and(|error| error.to_string().contains("no private key")));
    let error = open(&fake, "1", APP_KEY).unwrap().look().unwrap_err();
    assert!(error.to_string().contains("could not be decoded"), "{error}");
    fake.deny_app("contents");
    let error = open(&fake, APP, APP_KEY).unwrap().look().unwrap_err();
    assert!(error.to_string().contains("the permission contents: read and write"), "{error}");
    assert!(!error.to_string().contains("ghs_"), "{error}");
}
