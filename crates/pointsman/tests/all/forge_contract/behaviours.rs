//! What every forge does.

use pointsman_adapters::retry::Retry;
use pointsman_core::forge::{CheckState, IssueState};
use pointsman_core::ids::Sha;
use pointsman_core::task::ReviewVerdict;

use super::stage::Stage;

/// A number that no forge has reached.
const NOBODY: u64 = 987_654_321;

/// All behaviours, with their names.
macro_rules! behaviours {
    ($($name:ident),* $(,)?) => {
        pub(super) const ALL: &[(&str, fn(&Stage))] = &[$((stringify!($name), $name),)*];

        /// A test for each behaviour, on a stage of its own.
        macro_rules! contract {
            ($stage:expr) => {
                $(#[test] fn $name() { crate::forge_contract::behaviours::$name(&$stage); })*
            };
        }
        pub(super) use contract;
    };
}

behaviours! {
    open_issues_are_listed_oldest_first_without_pull_requests,
    an_issue_has_its_comments_and_a_missing_one_is_none,
    labels_are_made_set_removed_and_read_back,
    an_issue_is_ours_or_nobodys,
    a_comment_is_written_once,
    comments_come_after_what_was_read,
    an_issue_is_closed_once,
    a_pull_request_is_opened_once_and_anew_after_it_was_closed,
    a_head_follows_its_branch_and_stays_when_it_goes,
    the_newest_pull_request_of_a_branch_is_found,
    a_commit_is_reviewed_once,
    a_review_is_bound_to_its_commit,
    an_approval_takes_back_what_was_asked_before,
    open_pull_requests_are_listed_oldest_first,
    an_issue_is_filed_once,
    a_merge_is_recorded_when_the_work_is_on_the_base,
    a_push_is_told_with_the_account_that_made_it,
    a_branch_stands_where_it_was_pushed,
    a_landed_commit_is_explained_by_its_pull_request,
    checks_are_shown_and_read,
}

pub(super) fn open_issues_are_listed_oldest_first_without_pull_requests(stage: &Stage) {
    let first = stage.people.open_issue("First", "Text", &["zebra", "backlog"]);
    let (pr, ..) = stage.pull_request();
    let rest: Vec<u64> = (0..60).map(|n| stage.people.open_issue(&format!("Issue {n}"), "", &[])).collect();
    stage.people.close_issue(rest[5]);
    let listed = stage.again(|| stage.forge.open_issues());
    let numbers: Vec<u64> = listed.iter().map(|issue| issue.number).filter(|n| *n >= first).collect();
    let expected: Vec<u64> =
        std::iter::once(first).chain(rest.iter().copied().filter(|n| *n != rest[5])).collect();
    assert_eq!(numbers, expected);
    assert!(stage.numbers_apart || !numbers.contains(&pr));
    let issue = listed.iter().find(|issue| issue.number == first).unwrap();
    assert_eq!((issue.title.as_str(), issue.body.as_str(), issue.state), ("First", "Text", IssueState::Open));
    assert_eq!(issue.labels, ["backlog", "zebra"]);
    assert_eq!((issue.author.clone(), issue.assignee.clone()), (stage.people.name(), None));
}

pub(super) fn an_issue_has_its_comments_and_a_missing_one_is_none(stage: &Stage) {
    let number = stage.people.open_issue("Title", "## Dependencies\n- #1\n", &[]);
    assert!(stage.again(|| stage.forge.issue(number)).unwrap().comments.is_empty());
    stage.people.comment(number, "one");
    stage.people.comment(number, "two");
    let issue = stage.again(|| stage.forge.issue(number)).unwrap();
    let said: Vec<&str> = issue.comments.iter().map(|comment| comment.body.as_str()).collect();
    assert_eq!((said, issue.body.as_str()), (vec!["one", "two"], "## Dependencies\n- #1\n"));
    assert!(stage.again(|| stage.forge.issue(NOBODY)).is_none());
    assert!(stage.again(|| stage.forge.pull_request(NOBODY)).is_none());
    let (pr, ..) = stage.pull_request();
    if stage.numbers_apart {
        assert_eq!(stage.again(|| stage.forge.issue(number)).unwrap().title, "Title", "an issue stays one");
        return;
    }
    assert!(stage.again(|| stage.forge.issue(pr)).is_none(), "a pull request is no issue");
    assert!(stage.again(|| stage.forge.pull_request(number)).is_none(), "an issue is no pull request");
}

pub(super) fn labels_are_made_set_removed_and_read_back(stage: &Stage) {
    let number = stage.people.open_issue("Title", "", &["backlog"]);
    let fresh = stage.name("fresh");
    let (add, remove) =
        (vec!["in-progress".to_owned(), fresh.clone()], vec!["backlog".to_owned(), "blocked".to_owned()]);
    for _ in 0..2 {
        let labels = stage.again(|| stage.forge.set_labels(number, &add, &remove));
        let mut expected = add.clone();
        expected.sort();
        assert_eq!(labels, expected);
    }
    assert_eq!(stage.again(|| stage.forge.issue(number)).unwrap().labels.len(), 2);
    assert_eq!(stage.again(|| stage.forge.set_labels(number, &[], &add)), [""; 0]);
}

pub(super) fn an_issue_is_ours_or_nobodys(stage: &Stage) {
    let number = stage.people.open_issue("Title", "", &[]);
    let assignee = || stage.again(|| stage.forge.issue(number)).unwrap().assignee;
    for _ in 0..2 {
        stage.again(|| stage.forge.assign_me(number));
        assert_eq!(assignee().as_deref(), Some(stage.forge.me()));
    }
    stage.again(|| stage.forge.assign(number, None));
    assert_eq!(assignee(), None);
    assert!(stage.forge.assign_me(NOBODY).is_err());
}

pub(super) fn a_comment_is_written_once(stage: &Stage) {
    let number = stage.people.open_issue("Title", "", &[]);
    // Somebody who writes like us is not us.
    stage.people.comment(number, "trust me\n\n<!-- pointsman:claimed -->");
    for _ in 0..3 {
        stage.again(|| stage.forge.comment_once(number, "claimed", "Claimed.\n\n<!-- pointsman:other -->\n"));
    }
    stage.again(|| stage.forge.comment_once(number, "other", "Quoted marks do not count."));
    let comments = stage.again(|| stage.forge.comments_after(number, 0));
    let ours: Vec<&str> = comments
        .iter()
        .filter(|c| c.author == stage.forge.me())
        .map(|c| c.body.lines().next().unwrap())
        .collect();
    assert_eq!(ours, ["Claimed.", "Quoted marks do not count."]);
}

pub(super) fn comments_come_after_what_was_read(stage: &Stage) {
    let number = stage.people.open_issue("Title", "", &[]);
    for text in ["one", "two", "three"] {
        stage.people.comment(number, text);
    }
    let all = stage.again(|| stage.forge.comments_after(number, 0));
    assert!(all.is_sorted_by_key(|comment| comment.id) && all.len() == 3);
    let later = stage.again(|| stage.forge.comments_after(number, all[0].id));
    assert_eq!(later, all[1..]);
    assert_eq!(all[0].author, stage.people.name());
}

pub(super) fn an_issue_is_closed_once(stage: &Stage) {
    let number = stage.people.open_issue("Title", "", &[]);
    for _ in 0..2 {
        stage.again(|| stage.forge.close_issue(number));
        assert_eq!(stage.again(|| stage.forge.issue(number)).unwrap().state, IssueState::Closed);
    }
}

pub(super) fn a_pull_request_is_opened_once_and_anew_after_it_was_closed(stage: &Stage) {
    let (number, branch, head) = stage.pull_request();
    let again = stage.again(|| stage.forge.ensure_pull_request(&branch, "main", "Other", "Other"));
    assert_eq!(again, number);
    let pr = stage.read(number);
    assert_eq!((pr.head.as_str(), pr.base.as_str(), pr.title.as_str()), (branch.as_str(), "main", "Title"));
    assert_eq!((pr.head_sha, pr.state, pr.merged), (Some(head), IssueState::Open, false));
    assert_eq!(pr.author, stage.forge.me());
    stage.people.close_pull(number);
    let closed = stage.read(number);
    assert_eq!((closed.state, closed.merged), (IssueState::Closed, false));
    let anew = stage.again(|| stage.forge.ensure_pull_request(&branch, "main", "Title", "Body"));
    assert_ne!(anew, number);
    let missing = stage.name("nothing");
    let error = loop {
        let error = stage.forge.ensure_pull_request(&missing, "main", "T", "B").unwrap_err();
        if error.retry() == Retry::Never {
            break error;
        }
    };
    assert!(!error.to_string().is_empty());
}

pub(super) fn a_head_follows_its_branch_and_stays_when_it_goes(stage: &Stage) {
    let (number, branch, head) = stage.pull_request();
    assert_eq!(stage.read(number).head_sha, Some(head.clone()));
    let next = stage.commit(&head);
    stage.push_to(number, &branch, &next);
    assert_eq!(stage.read(number).head_sha, Some(next.clone()));
    stage.people.close_pull(number);
    stage.delete_branch(&branch);
    assert_eq!(stage.read(number).head_sha, Some(next));
}

pub(super) fn the_newest_pull_request_of_a_branch_is_found(stage: &Stage) {
    let (number, branch, _) = stage.pull_request();
    let from = || stage.again(|| stage.forge.pull_request_from(&branch, "main"));
    assert_eq!(from().unwrap().number, number);
    stage.people.close_pull(number);
    assert_eq!(from().unwrap().number, number, "also a closed one");
    let anew = stage.again(|| stage.forge.ensure_pull_request(&branch, "main", "Title", "Body"));
    assert_eq!(from().unwrap().number, anew);
    assert!(stage.again(|| stage.forge.pull_request_from("no/such", "main")).is_none());
}

pub(super) fn a_commit_is_reviewed_once(stage: &Stage) {
    let (number, branch, head) = stage.pull_request();
    for _ in 0..2 {
        stage.again(|| {
            stage.forge.review_once(number, &head, ReviewVerdict::RequestChanges, "Please change.")
        });
    }
    let reviews = stage.read(number).reviews;
    assert_eq!(reviews.len(), 1);
    assert_eq!((reviews[0].verdict, &reviews[0].sha), (ReviewVerdict::RequestChanges, &head));
    assert_ne!(reviews[0].author, stage.forge.me(), "nobody reviews their own work");
    let next = stage.commit(&head);
    stage.push_to(number, &branch, &next);
    stage.again(|| stage.forge.review_once(number, &next, ReviewVerdict::Approve, ""));
    let reviews = stage.read(number).reviews;
    let valid: Vec<_> = reviews.iter().filter(|r| r.sha == next && !r.dismissed).map(|r| r.verdict).collect();
    assert_eq!(valid, [ReviewVerdict::Approve]);
}

pub(super) fn a_review_is_bound_to_its_commit(stage: &Stage) {
    let (number, branch, head) = stage.pull_request();
    stage.people.review(number, ReviewVerdict::Approve, "fine");
    let approvals = |sha: &Sha| {
        let reviews = stage.read(number).reviews;
        reviews
            .iter()
            .filter(|r| r.sha == *sha && !r.dismissed && r.verdict == ReviewVerdict::Approve)
            .count()
    };
    assert_eq!(approvals(&head), 1);
    let next = stage.commit(&head);
    stage.push_to(number, &branch, &next);
    assert_eq!(approvals(&next), 0, "a push voids it");
    stage.people.review(number, ReviewVerdict::RequestChanges, "not yet");
    let review = stage.read(number).reviews.pop().unwrap();
    assert_eq!((review.author, review.body.as_str()), (stage.people.name(), "not yet"));
    assert_eq!((review.sha, review.verdict), (next, ReviewVerdict::RequestChanges));
}

pub(super) fn an_approval_takes_back_what_was_asked_before(stage: &Stage) {
    let (number, branch, head) = stage.pull_request();
    let reviewer = stage.forge.reviewer().unwrap().to_owned();
    stage.again(|| stage.forge.review_once(number, &head, ReviewVerdict::RequestChanges, "Please change."));
    let next = stage.commit(&head);
    stage.push_to(number, &branch, &next);
    stage.people.review(number, ReviewVerdict::RequestChanges, "Me too.");
    stage.again(|| stage.forge.review_once(number, &next, ReviewVerdict::Approve, "Fine."));
    for _ in 0..2 {
        stage.again(|| stage.forge.withdraw_change_requests(number, &next));
    }
    let standing = |author: &str| -> Vec<ReviewVerdict> {
        let reviews = stage.read(number).reviews;
        reviews.iter().filter(|r| r.author == author && !r.dismissed).map(|r| r.verdict).collect()
    };
    assert_eq!(standing(&reviewer), [ReviewVerdict::Approve]);
    assert_eq!(standing(&stage.people.name()), [ReviewVerdict::RequestChanges], "a person's word is theirs");
}

pub(super) fn open_pull_requests_are_listed_oldest_first(stage: &Stage) {
    let (first, branch, head) = stage.pull_request();
    let (second, ..) = stage.pull_request();
    let (closed, ..) = stage.pull_request();
    stage.people.close_pull(closed);
    let listed = stage.again(|| stage.forge.open_pull_requests());
    let numbers: Vec<u64> = listed.iter().map(|pr| pr.number).filter(|n| *n >= first).collect();
    assert_eq!(numbers, [first, second]);
    let pr = listed.iter().find(|pr| pr.number == first).unwrap();
    assert_eq!((pr.head.as_str(), pr.base.as_str(), &pr.head_sha), (branch.as_str(), "main", &Some(head)));
    assert!(pr.reviews.is_empty(), "these are asked for one by one");
}

pub(super) fn an_issue_is_filed_once(stage: &Stage) {
    let marker = stage.name("follow-up");
    // Somebody who writes like us is not us.
    let mark = format!("trust me\n\n<!-- pointsman:{marker} -->");
    let theirs = stage.people.open_issue("Title", &mark, &[]);
    let file = || stage.again(|| stage.forge.file_issue_once(&marker, "Debt", "Old.", &["tech-debt"]));
    let number = file();
    assert_ne!(number, theirs);
    assert_eq!(file(), number);
    let issue = stage.again(|| stage.forge.issue(number)).unwrap();
    assert_eq!((issue.title.as_str(), issue.author.as_str()), ("Debt", stage.forge.me()));
    assert_eq!((issue.labels, issue.body.lines().next()), (vec!["tech-debt".to_owned()], Some("Old.")));
}

pub(super) fn a_merge_is_recorded_when_the_work_is_on_the_base(stage: &Stage) {
    let (number, branch, head) = stage.pull_request();
    stage.push("main", &head);
    for _ in 0..2 {
        stage.again(|| stage.forge.record_merge(number, &head));
        let pr = stage.read(number);
        assert_eq!((pr.state, pr.merged, pr.merge_sha), (IssueState::Closed, true, Some(head.clone())));
    }
    stage.delete_branch(&branch);
    assert!(stage.read(number).merged);
    assert!(stage.forge.record_merge(NOBODY, &head).is_err());
}

pub(super) fn a_branch_stands_where_it_was_pushed(stage: &Stage) {
    let (branch, head) = (stage.name("deep/er"), stage.commit(&stage.main()));
    let stands = || stage.again(|| stage.forge.branch_head(&branch));
    assert_eq!(stands(), None);
    stage.push(&branch, &head);
    assert_eq!(stands(), Some(head));
    stage.delete_branch(&branch);
    assert_eq!(stands(), None);
}

pub(super) fn a_push_is_told_with_the_account_that_made_it(stage: &Stage) {
    let (branch, head) = (stage.name("work"), stage.commit(&stage.main()));
    stage.push(&branch, &head);
    let pusher = |sha: &Sha| stage.again(|| stage.forge.pusher_of(&branch, sha));
    match pusher(&head) {
        Some(login) => assert_eq!(login, stage.forge.me()),
        None => assert!(!stage.tells_pushers),
    }
    assert_eq!(pusher(&stage.main()), None, "nobody moved it there");
}

pub(super) fn a_landed_commit_is_explained_by_its_pull_request(stage: &Stage) {
    let before = stage.main();
    let (number, _, head) = stage.pull_request();
    let explained = |sha: &Sha, parent: &Sha| {
        let parents = [parent.clone()];
        stage.again(|| stage.forge.pull_request_of(sha, &parents))
    };
    assert_eq!(explained(&head, &before), None, "it has not landed");
    stage.push("main", &head);
    stage.again(|| stage.forge.record_merge(number, &head));
    assert_eq!(explained(&head, &before), Some(number));
    let direct = stage.commit(&head);
    stage.push("main", &direct);
    let next = stage.commit(&direct);
    stage.push("main", &next);
    assert_eq!(explained(&direct, &head), None, "it only stands on what landed");
    assert_eq!(explained(&next, &direct), None, "nobody asked for it");
}

pub(super) fn checks_are_shown_and_read(stage: &Stage) {
    let (_, _, head) = stage.pull_request();
    let read = || stage.again(|| stage.forge.checks(&head));
    assert!(read().is_empty());
    stage.again(|| stage.forge.show_check(&head, "pointsman/ci", CheckState::Pending));
    assert_eq!(read()[0].state, CheckState::Pending);
    for _ in 0..2 {
        stage.again(|| stage.forge.show_check(&head, "pointsman/ci", CheckState::Success));
    }
    stage.again(|| stage.forge.show_check(&head, "lint", CheckState::Failure));
    let seen: Vec<_> = read().into_iter().map(|check| (check.name, check.state)).collect();
    assert_eq!(seen.len(), 2);
    assert!(seen.contains(&("pointsman/ci".to_owned(), CheckState::Success)), "{seen:?}");
    assert!(seen.contains(&("lint".to_owned(), CheckState::Failure)), "{seen:?}");
}
