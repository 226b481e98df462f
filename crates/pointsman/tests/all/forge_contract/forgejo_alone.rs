//! What only the Forgejo adapter does: accounts, versions, rights, clocks, doubles.

use pointsman_adapters::forge::Forge;
use pointsman_core::ids::Sha;
use pointsman_core::task::ReviewVerdict;
use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, Faults, OUTSIDER, OWNER, REVIEWER, Rules};

use super::forgejo::{Place, clock};

fn world() -> (FakeForgejo, Place) {
    let fake = FakeForgejo::start(Rules::default());
    let place = Place::of(&fake);
    (fake, place)
}

/// A branch with a commit on top of main, pushed past the API.
fn branch(fake: &FakeForgejo, name: &str) -> Sha {
    let sha = fake.make_commit(&fake.branch("main").unwrap(), name);
    fake.set_branch(name, &sha);
    Sha::new(&sha).unwrap()
}

#[test]
fn one_account_for_both_is_refused_at_the_start() {
    let (fake, place) = world();
    let same = Place { reviewer: fake.token(DEV), ..place };
    let error = same.open().err().unwrap().to_string();
    assert!(error.contains("the same token"), "{error}");
    let another = Place { reviewer: fake.second_token(DEV), ..same };
    let error = another.open().err().unwrap().to_string();
    assert!(error.contains("both tokens belong to `dev-bot`"), "{error}");
}

#[test]
fn what_an_account_may_not_do_is_said_at_the_start() {
    let (fake, place) = world();
    let error = Place { dev: fake.token(OUTSIDER), ..place }.open().err().unwrap().to_string();
    assert!(error.contains("`eve` may not push to it: give the account write access"), "{error}");
    let (_fake, place) = world();
    let error = Place { repo: "ann/other".to_owned(), ..place }.open().err().unwrap().to_string();
    assert!(error.contains("our account may not see it"), "{error}");
    let (_fake, place) = world();
    let error = Place { dev: "wrong".to_owned(), ..place }.open().err().unwrap();
    assert!(error.to_string().contains("the token is not accepted"), "{error}");
}

#[test]
fn an_older_server_is_read_without_what_it_lacks() {
    let fake = FakeForgejo::start(Rules { version: "1.15.11".to_owned(), ..Rules::default() });
    let forge = Place::of(&fake).open().unwrap();
    assert_eq!(forge.version().unwrap().lacks().len(), 3);
    let issue = fake.create_issue(OWNER, "Title", "", &[]);
    assert_eq!(forge.dependencies(issue).unwrap(), [0; 0]);
    assert!(!fake.requests().iter().any(|(_, path)| path.ends_with("dependencies")));
}

#[test]
fn native_dependencies_are_read_when_an_issue_has_changed() {
    let (fake, place) = world();
    let forge = place.open().unwrap();
    let (first, second) = (fake.create_issue(OWNER, "A", "", &[]), fake.create_issue(OWNER, "B", "", &[]));
    fake.depend(second, first);
    forge.open_issues().unwrap();
    for _ in 0..3 {
        assert_eq!(forge.dependencies(second).unwrap(), [first]);
    }
    let asked = fake.requests().iter().filter(|(_, path)| path.ends_with("dependencies")).count();
    assert_eq!(asked, 1);
}

#[test]
fn an_outsiders_word_does_not_count() {
    let (fake, place) = world();
    let forge = place.open().unwrap();
    let head = branch(&fake, "work");
    let pr = forge.ensure_pull_request("work", "main", "T", "B").unwrap();
    fake.review(pr, OUTSIDER, "APPROVED", "ship it", &[]);
    fake.review(pr, OWNER, "COMMENT", "hm", &[]);
    let reviews = forge.pull_request(pr).unwrap().unwrap().reviews;
    assert!(reviews.iter().all(|review| review.dismissed), "{reviews:?}");
    assert!(!forge.may_direct(OUTSIDER).unwrap() && forge.may_direct(OWNER).unwrap());
    fake.review(pr, OWNER, "APPROVED", "fine", &[]);
    let valid = || {
        let reviews = forge.pull_request(pr).unwrap().unwrap().reviews;
        reviews.into_iter().filter(|r| !r.dismissed && r.sha == head).count()
    };
    assert_eq!(valid(), 1);
    fake.dismiss(pr, OWNER);
    assert_eq!(valid(), 0);
}

#[test]
fn remarks_on_lines_reach_whoever_has_to_change_them() {
    let (fake, place) = world();
    let forge = place.open().unwrap();
    branch(&fake, "work");
    let pr = forge.ensure_pull_request("work", "main", "T", "B").unwrap();
    fake.review(pr, OWNER, "REQUEST_CHANGES", "See below.", &[("src/a.rs", 7, "why one?"), ("b", 0, "gone")]);
    let body = forge.pull_request(pr).unwrap().unwrap().reviews.pop().unwrap().body;
    assert_eq!(body, "See below.\n\nsrc/a.rs:7: why one?\n\nb: gone");
    forge.pull_request(pr).unwrap();
    let asked = fake.requests().iter().filter(|(_, path)| path.ends_with("/comments")).count();
    assert_eq!(asked, 1, "they are asked for once");
}

#[test]
fn a_person_who_merges_is_seen() {
    let (fake, place) = world();
    let forge = place.open().unwrap();
    let head = branch(&fake, "work");
    let pr = forge.ensure_pull_request("work", "main", "T", "B").unwrap();
    fake.merge_by_person(pr);
    let seen = forge.pull_request(pr).unwrap().unwrap();
    assert_eq!((seen.merged, seen.merge_sha.as_ref()), (true, Some(&head)));
    assert_eq!(forge.pull_request_of(&head, &[]).unwrap(), Some(pr));
}

#[test]
fn a_merge_of_what_is_not_on_the_base_is_refused() {
    let (fake, place) = world();
    let forge = place.open().unwrap();
    let head = branch(&fake, "work");
    let pr = forge.ensure_pull_request("work", "main", "T", "B").unwrap();
    let error = forge.record_merge(pr, &head).unwrap_err().to_string();
    assert!(error.contains("Wrong commit ID"), "{error}");
    assert!(fake.pull(pr).open);
}

#[test]
fn a_review_without_an_account_for_it_is_refused_with_a_hint() {
    let (fake, place) = world();
    let forge = place.open_alone().unwrap();
    let head = branch(&fake, "work");
    let pr = forge.ensure_pull_request("work", "main", "T", "B").unwrap();
    let error = forge.review_once(pr, &head, ReviewVerdict::Approve, "").unwrap_err().to_string();
    assert!(error.contains("there is no review account: see review.token_env"), "{error}");
    assert!(fake.pull(pr).reviews.is_empty());
}

#[test]
fn times_are_by_our_clock_even_if_the_servers_is_an_hour_off() {
    for ahead in [-3600, 3600] {
        let fake = FakeForgejo::start(Rules { ahead, ..Rules::default() });
        let forge = Place::of(&fake).open().unwrap();
        let issue = fake.create_issue(OWNER, "Title", "", &[]);
        fake.comment(issue, OWNER, "now");
        let at = forge.comments_after(issue, 0).unwrap()[0].at;
        let apart = (at.0 - clock().0).abs();
        assert!(apart < 60_000, "{apart} ms");
    }
}

#[test]
fn tasks_at_the_same_time_make_a_label_once() {
    let (fake, place) = world();
    let forge = place.open().unwrap();
    let issues: Vec<u64> = (0..8).map(|_| fake.create_issue(OWNER, "Title", "", &[])).collect();
    let labels = ["in-progress".to_owned(), "blocked".to_owned()];
    std::thread::scope(|scope| {
        for issue in &issues {
            scope.spawn(|| forge.set_labels(*issue, &labels, &[]).unwrap());
        }
    });
    assert_eq!(fake.labels().len(), 2, "{:?}", fake.labels());
}

/// Every answer to a write is lost after the deed; nothing is there twice.
#[test]
fn an_answer_that_got_lost_doubles_nothing() {
    let (fake, place) = world();
    let forge = place.open().unwrap();
    let issue = fake.create_issue(OWNER, "Title", "", &[]);
    let head = branch(&fake, "work");
    let pr = forge.ensure_pull_request("work", "main", "T", "B").unwrap();
    branch(&fake, "second");
    let labels = ["in-progress".to_owned()];
    for n in 0..40u64 {
        fake.change(|rules| rules.faults = Faults { lost: 45, dice: n, ..Faults::default() });
        let _ = forge.comment_once(issue, "claimed", "Claimed.");
        let _ = forge.set_labels(issue, &labels, &[]);
        let _ = forge.review_once(pr, &head, ReviewVerdict::Approve, "fine");
        let _ = forge.ensure_pull_request("second", "main", "T", "B");
    }
    fake.change(|rules| rules.faults = Faults::default());
    assert_eq!(fake.issue(issue).comments.len(), 1);
    assert_eq!(fake.issue(issue).labels, ["in-progress"]);
    assert_eq!(fake.labels(), ["in-progress"], "the label was made once");
    assert_eq!(fake.pull(pr).reviews.len(), 1);
    assert_eq!(fake.pulls().len(), 2);
}

#[test]
fn an_assignment_counts_if_it_is_there_afterwards() {
    let fake = FakeForgejo::start(Rules { late_assignee: true, ..Rules::default() });
    let forge = Place::of(&fake).open().unwrap();
    let issue = fake.create_issue(OWNER, "Title", "", &[]);
    forge.assign_me(issue).unwrap();
    assert_eq!(forge.issue(issue).unwrap().unwrap().assignee.as_deref(), Some(DEV));
    // One that got lost is made once more; a server that takes none says so by that.
    let other = fake.create_issue(OWNER, "Title", "", &[]);
    fake.change(|rules| rules.lost_assignments = 1);
    forge.assign_me(other).unwrap();
    assert_eq!(fake.issue(other).assignees, [DEV]);
    let third = fake.create_issue(OWNER, "Title", "", &[]);
    fake.change(|rules| rules.lost_assignments = 9);
    assert!(forge.assign_me(third).unwrap_err().to_string().contains("assigned to nobody afterwards"));
}

/// Tokens are in headers, and nowhere else: not in what is written, not in what is said.
#[test]
fn no_token_is_in_anything_that_is_written_or_said() {
    let (fake, place) = world();
    let forge = place.open().unwrap();
    let issue = fake.create_issue(OWNER, "Title", "", &[]);
    branch(&fake, "work");
    forge.comment_once(issue, "m", "text").unwrap();
    forge.ensure_pull_request("work", "main", "T", "B").unwrap();
    let missing = forge.assign_me(4711).unwrap_err();
    let refused = forge.ensure_pull_request("nothing", "main", "T", "B").unwrap_err();
    let said = format!(
        "{} {missing} {missing:?} {refused:?} {:?} {}",
        fake.all_text(),
        forge.account(),
        forge.remote()
    );
    for account in [DEV, REVIEWER, OWNER] {
        assert!(!said.contains(&fake.token(account)), "{account}");
        assert!(!fake.requests().iter().any(|(_, path)| path.contains(&fake.token(account))));
    }
}
