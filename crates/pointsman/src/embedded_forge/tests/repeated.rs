//! What the daemon does twice after a crash has happened once.

use pointsman_adapters::forge::{Error, Forge};
use pointsman_core::forge::{IssueState, StateFilter};
use pointsman_core::ids::Sha;
use pointsman_core::task::ReviewVerdict;
use pointsman_core::words;

use super::super::{ACCOUNT, REVIEW_ACCOUNT};
use super::{NOW, World, done, issue, read, strings};
use crate::control::protocol::ForgeCommand;

#[test]
fn labels_are_set_and_read_back() {
    let world = World::new();
    let forge = world.forge();
    let number = issue(&forge, "one");
    for _ in 0..2 {
        let labels = forge.set_labels(number, &strings(&["in-progress"]), &strings(&["backlog"])).unwrap();
        assert_eq!(labels, ["in-progress"]);
    }
    assert_eq!(forge.issue(number).unwrap().unwrap().labels, ["in-progress"]);
}

#[test]
fn the_assignee_is_us() {
    let world = World::new();
    let forge = world.forge();
    let number = issue(&forge, "one");
    for _ in 0..2 {
        forge.assign_me(number).unwrap();
        assert_eq!(forge.issue(number).unwrap().unwrap().assignee.as_deref(), Some(forge.me()));
    }
}

#[test]
fn a_comment_is_written_once_per_marker() {
    let world = World::new();
    let forge = world.forge();
    let number = issue(&forge, "one");
    for _ in 0..2 {
        forge.comment_once(number, "blocked-1", "The first\0").unwrap();
        forge.comment_once(number, "blocked-10", "The second").unwrap();
    }
    let comments = forge.comments_after(number, 0).unwrap();
    let bodies: Vec<&str> = comments.iter().map(|comment| comment.body.as_str()).collect();
    assert_eq!(
        bodies,
        ["The first\n\n<!-- pointsman:blocked-1 -->", "The second\n\n<!-- pointsman:blocked-10 -->"]
    );
    assert_eq!(comments[0].at, NOW);
    assert_eq!(forge.comments_after(number, comments[0].id).unwrap(), comments[1..]);
}

#[test]
fn a_marker_that_is_quoted_or_written_by_somebody_else_is_none() {
    let world = World::new();
    let forge = world.forge();
    let number = issue(&forge, "one");
    let forged = format!("x\n\n{}", words::comment::marker("blocked-2"));
    // A person of our name, and an agent whose terminal we quote.
    let author = ACCOUNT.to_owned();
    done(&forge, &ForgeCommand::Comment { number, body: forged.clone(), author });
    forge.comment_once(number, "blocked-1", &forged).unwrap();
    forge.comment_once(number, "blocked-2", "The real one").unwrap();
    let comments = forge.comments_after(number, 0).unwrap();
    assert_eq!(comments.len(), 3);
    assert_eq!(comments[0].author, "pointsman@localhost");
    assert!(comments[2].body.starts_with("The real one"));
}

#[test]
fn an_endless_comment_keeps_its_marker() {
    let world = World::new();
    let forge = world.forge();
    let number = issue(&forge, "one");
    for _ in 0..2 {
        forge.comment_once(number, "m", &"ä".repeat(3 << 20)).unwrap();
    }
    let comments = forge.comments_after(number, 0).unwrap();
    assert_eq!(comments.len(), 1);
    assert!(comments[0].body.len() <= 4 << 20);
}

#[test]
fn an_issue_is_closed() {
    let world = World::new();
    let forge = world.forge();
    let (one, two) = (issue(&forge, "one"), issue(&forge, "two"));
    for _ in 0..2 {
        forge.close_issue(one).unwrap();
        assert_eq!(forge.issue(one).unwrap().unwrap().state, IssueState::Closed);
    }
    let open: Vec<u64> = forge.open_issues().unwrap().iter().map(|issue| issue.number).collect();
    assert_eq!(open, [two]);
}

#[test]
fn open_issues_come_without_pull_requests_and_comments() {
    let world = World::new();
    let forge = world.forge();
    let number = issue(&forge, "one");
    world.pull_request(&forge, "work");
    forge.comment_once(number, "m", "Hello").unwrap();
    let open = forge.open_issues().unwrap();
    assert_eq!(open.len(), 1);
    assert!(open[0].comments.is_empty());
    assert_eq!(forge.issue(number).unwrap().unwrap().comments.len(), 1);
}

#[test]
fn a_pull_request_is_opened_once_and_again_after_it_was_closed() {
    let world = World::new();
    let forge = world.forge();
    let (number, head) = world.pull_request(&forge, "work");
    let again = forge.ensure_pull_request("work", "main", "Another title", "").unwrap();
    assert_eq!(again, number);
    let pr = read(&forge, number);
    assert_eq!((pr.title.as_str(), pr.author.as_str(), pr.head_sha), ("Title", ACCOUNT, Some(head)));
    done(&forge, &ForgeCommand::ClosePull { number });
    assert_ne!(forge.ensure_pull_request("work", "main", "Second", "").unwrap(), number);
}

#[test]
fn a_pull_request_needs_work_on_its_branch() {
    let world = World::new();
    let forge = world.forge();
    world.push(&world.stands("main"), "empty");
    for (head, base) in
        [("empty", "main"), ("absent", "main"), ("main", "main"), ("empty", "absent"), ("--x", "main")]
    {
        let refused = forge.ensure_pull_request(head, base, "T", "B");
        assert!(matches!(refused, Err(Error::Refused { .. })), "{head} {base}: {refused:?}");
    }
    assert!(forge.forge_db().prs(StateFilter::All).unwrap().is_empty());
}

#[test]
fn a_commit_is_reviewed_once_by_us() {
    let world = World::new();
    let forge = world.forge();
    let (number, head) = world.pull_request(&forge, "work");
    for verdict in [ReviewVerdict::Approve, ReviewVerdict::RequestChanges] {
        forge.review_once(number, &head, verdict, "Fine").unwrap();
    }
    let reviews = read(&forge, number).reviews;
    assert_eq!(reviews.len(), 1);
    assert_eq!((reviews[0].author.as_str(), reviews[0].verdict), (REVIEW_ACCOUNT, ReviewVerdict::Approve));
    let other = Sha::new(&"b".repeat(40)).unwrap();
    forge.review_once(number, &other, ReviewVerdict::Discuss, "").unwrap();
    assert_eq!(read(&forge, number).reviews.len(), 2);
}

#[test]
fn a_merge_is_recorded_once() {
    let world = World::new();
    let forge = world.forge();
    let (number, head) = world.pull_request(&forge, "work");
    // The queue lands a rebased commit, not the head itself.
    world.git(&["checkout", "--quiet", "--detach", "main"]);
    let candidate = world.commit("rebased");
    world.push(&candidate, "main");
    for _ in 0..2 {
        forge.record_merge(number, &candidate).unwrap();
        let pr = read(&forge, number);
        assert_eq!((pr.state, pr.merged, pr.merge_sha), (IssueState::Closed, true, Some(candidate.clone())));
        assert_eq!(pr.head_sha, Some(head.clone()));
    }
}

#[test]
fn what_is_not_there_is_not_found() {
    let world = World::new();
    let forge = world.forge();
    let sha = world.stands("main");
    let answers = [
        forge.set_labels(9, &[], &[]).map(drop),
        forge.assign_me(9),
        forge.comment_once(9, "m", "x"),
        forge.comments_after(9, 0).map(drop),
        forge.close_issue(9),
        forge.review_once(9, &sha, ReviewVerdict::Approve, ""),
        forge.record_merge(9, &sha),
    ];
    for answer in answers {
        assert!(matches!(answer, Err(Error::NotFound { .. })), "{answer:?}");
    }
    assert!(forge.issue(9).unwrap().is_none() && forge.pull_request(9).unwrap().is_none());
}
