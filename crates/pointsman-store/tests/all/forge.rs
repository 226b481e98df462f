//! The database of the embedded forge.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pointsman_core::forge::{BoardStatus, Check, CheckState, IssueState, StateFilter};
use pointsman_core::task::ReviewVerdict;
use pointsman_store::{Error, ForgeDatabase};
use tempfile::TempDir;

use crate::world::{at, sha};

struct Shelf {
    forge_db: ForgeDatabase,
    _directory: TempDir,
    path: PathBuf,
}

fn fresh() -> Shelf {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forge.db");
    Shelf { forge_db: ForgeDatabase::open(&path).unwrap(), _directory: directory, path }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn an_issue_comes_back_with_its_labels_and_comments() {
    let Shelf { mut forge_db, .. } = fresh();
    let labels = words(&["tech-debt", "backlog", "backlog"]);
    let number = forge_db.create_issue("Title", "Body", &labels, "ann", at(5)).unwrap();
    let first = forge_db.comment(number, "bob", "one", at(6)).unwrap();
    let second = forge_db.comment(number, "bob", "two", at(7)).unwrap();
    forge_db.assign(number, Some("pointsman")).unwrap();

    let issue = forge_db.issue(number).unwrap().unwrap();
    assert_eq!((issue.title.as_str(), issue.body.as_str(), issue.author.as_str()), ("Title", "Body", "ann"));
    assert_eq!((issue.state, issue.created_at), (IssueState::Open, at(5)));
    assert_eq!(issue.labels, ["backlog", "tech-debt"]);
    assert_eq!(
        issue.comments.iter().map(|c| (c.id, c.body.as_str())).collect::<Vec<_>>(),
        [(first, "one"), (second, "two")]
    );
    assert_eq!(issue.assignee.as_deref(), Some("pointsman"));
    assert_eq!(forge_db.comments_after(number, first).unwrap(), issue.comments[1..]);
    forge_db.assign(number, None).unwrap();
    assert_eq!(forge_db.issue(number).unwrap().unwrap().assignee, None);
}

#[test]
fn labels_are_set_and_read_back() {
    let Shelf { mut forge_db, .. } = fresh();
    let number = forge_db.create_issue("t", "", &words(&["backlog", "bug"]), "ann", at(1)).unwrap();
    let set = |forge_db: &mut ForgeDatabase| {
        forge_db.set_labels(number, &words(&["in-progress"]), &words(&["backlog", "never-there"])).unwrap()
    };
    assert_eq!(set(&mut forge_db), ["bug", "in-progress"]);
    assert_eq!(set(&mut forge_db), ["bug", "in-progress"], "twice is once");
    assert_eq!(forge_db.issue(number).unwrap().unwrap().labels, ["bug", "in-progress"]);
}

#[test]
fn issues_are_listed_by_state() {
    let Shelf { mut forge_db, .. } = fresh();
    for title in ["a", "b", "c"] {
        forge_db.create_issue(title, "", &[], "ann", at(1)).unwrap();
    }
    forge_db.close_issue(2, at(5)).unwrap();
    forge_db.close_issue(2, at(6)).unwrap();
    let numbers = |forge_db: &ForgeDatabase, filter| {
        forge_db.issues(filter).unwrap().iter().map(|issue| issue.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&forge_db, StateFilter::Open), [1, 3]);
    assert_eq!(numbers(&forge_db, StateFilter::Closed), [2]);
    assert_eq!(numbers(&forge_db, StateFilter::All), [1, 2, 3]);
    forge_db.reopen_issue(2).unwrap();
    assert!(numbers(&forge_db, StateFilter::Closed).is_empty());
}

#[test]
fn issues_are_counted_by_author_whatever_became_of_them() {
    let Shelf { mut forge_db, .. } = fresh();
    for author in ["ann", "dev-shop-1.1", "ann"] {
        forge_db.create_issue("t", "", &[], author, at(1)).unwrap();
    }
    forge_db.close_issue(1, at(5)).unwrap();
    let counts = ["ann", "dev-shop-1.1", "dev-shop-1"].map(|author| forge_db.issues_by(author).unwrap());
    assert_eq!(counts, [2, 1, 0]);
}

#[test]
fn issues_and_pull_requests_share_their_numbers() {
    let Shelf { mut forge_db, .. } = fresh();
    let issue = forge_db.create_issue("t", "", &[], "ann", at(1)).unwrap();
    let pr = forge_db.create_pr("work", "main", "t", "", "bot", at(2)).unwrap();
    let next = forge_db.create_issue("t", "", &[], "ann", at(3)).unwrap();
    assert_eq!([issue, pr, next], [1, 2, 3]);
    assert_eq!(forge_db.issue(pr).unwrap(), None);
    assert_eq!(forge_db.pr(issue).unwrap(), None);
    forge_db.comment(pr, "ann", "on a pull request", at(4)).unwrap();
    assert_eq!(forge_db.comments_after(pr, 0).unwrap().len(), 1);
}

#[test]
fn a_branch_has_one_open_pull_request() {
    let Shelf { mut forge_db, .. } = fresh();
    let first = forge_db.create_pr("work", "main", "t", "b", "bot", at(1)).unwrap();
    match forge_db.create_pr("work", "main", "again", "", "bot", at(2)) {
        Err(Error::Exists(number)) => assert_eq!(number, first),
        other => panic!("{other:?}"),
    }
    forge_db.create_pr("work", "release", "other base", "", "bot", at(3)).unwrap();
    forge_db.close_pr(first).unwrap();
    let second = forge_db.create_pr("work", "main", "new try", "", "bot", at(4)).unwrap();
    assert_eq!(second, first + 2, "a refused one takes no number");
    assert_eq!(forge_db.pr_for("work", "main").unwrap().unwrap().number, second);
    forge_db.close_pr(second).unwrap();
    assert_eq!(forge_db.pr_for("work", "main").unwrap().unwrap().number, second, "closed ones are found too");
    assert_eq!(forge_db.pr_for("other", "main").unwrap(), None);
}

#[test]
fn a_pull_request_merges_once() {
    let Shelf { mut forge_db, .. } = fresh();
    let number = forge_db.create_pr("work", "main", "t", "b", "bot", at(1)).unwrap();
    forge_db.mark_merged(number, &sha('a')).unwrap();
    forge_db.mark_merged(number, &sha('b')).unwrap();
    forge_db.close_pr(number).unwrap();
    let pr = forge_db.pr(number).unwrap().unwrap();
    assert_eq!((pr.state, pr.merged, pr.merge_sha), (IssueState::Closed, true, Some(sha('a'))));
    assert_eq!(forge_db.prs(StateFilter::Open).unwrap(), []);
    assert_eq!(forge_db.prs(StateFilter::All).unwrap().len(), 1);
}

#[test]
fn a_review_is_bound_to_its_commit_and_can_be_taken_back() {
    let Shelf { mut forge_db, .. } = fresh();
    let pr = forge_db.create_pr("work", "main", "t", "b", "bot", at(1)).unwrap();
    let no = forge_db.review(pr, "ann", ReviewVerdict::RequestChanges, "tests?", &sha('a'), at(2)).unwrap();
    let yes = forge_db.review(pr, "ann", ReviewVerdict::Approve, "", &sha('b'), at(3)).unwrap();
    let hm = forge_db.review(pr, "bob", ReviewVerdict::Discuss, "hm", &sha('b'), at(4)).unwrap();
    forge_db.dismiss_review(no).unwrap();
    let reviews = forge_db.reviews(pr).unwrap();
    assert_eq!(reviews.iter().map(|r| r.id).collect::<Vec<_>>(), [no, yes, hm]);
    assert_eq!((reviews[0].dismissed, reviews[1].dismissed), (true, false));
    assert_eq!((reviews[1].verdict, &reviews[1].sha), (ReviewVerdict::Approve, &sha('b')));
    assert_eq!(forge_db.pr(pr).unwrap().unwrap().reviews, reviews);
}

#[test]
fn what_does_not_exist_is_not_found() {
    let Shelf { mut forge_db, .. } = fresh();
    let pr = forge_db.create_pr("work", "main", "t", "b", "bot", at(1)).unwrap();
    let issue = forge_db.create_issue("t", "", &[], "ann", at(1)).unwrap();
    let answers = [
        forge_db.comment(9, "ann", "x", at(1)).map(drop),
        forge_db.comments_after(9, 0).map(drop),
        forge_db.set_labels(pr, &words(&["a"]), &[]).map(drop),
        forge_db.assign(pr, None),
        forge_db.close_issue(9, at(1)),
        forge_db.reopen_issue(9),
        forge_db.review(issue, "ann", ReviewVerdict::Approve, "", &sha('a'), at(1)).map(drop),
        forge_db.reviews(issue).map(drop),
        forge_db.dismiss_review(9),
        forge_db.close_pr(issue),
        forge_db.mark_merged(issue, &sha('a')),
    ];
    for answer in answers {
        assert!(matches!(answer, Err(Error::NotFound { .. })), "{answer:?}");
    }
    assert_eq!(forge_db.issue(9).unwrap(), None);
}

#[test]
fn hostile_text_comes_back_as_it_was() {
    let Shelf { mut forge_db, .. } = fresh();
    let large = "\u{1}\0é'\"\n".repeat(200_000);
    for text in ["\0", "#(touch x)", "$(id)", "--upload-pack=x", "'; DROP TABLE issues; --", &large] {
        let number = forge_db.create_issue(text, text, &words(&[text]), text, at(1)).unwrap();
        forge_db.comment(number, text, text, at(2)).unwrap();
        let issue = forge_db.issue(number).unwrap().unwrap();
        assert!([&issue.title, &issue.body, &issue.author, &issue.labels[0]].iter().all(|t| *t == text));
        assert_eq!((issue.comments[0].body.as_str(), issue.comments[0].author.as_str()), (text, text));
    }
}

#[test]
fn two_processes_may_open_and_write_at_once() {
    const WRITERS: usize = 4;
    const EACH: usize = 10;
    let directory = tempfile::tempdir().unwrap();
    // Several fresh files: the first moment, when the file is made and migrated, is the risky one.
    for round in 0..5 {
        let path = directory.path().join(format!("forge-{round}.db"));
        let start = std::sync::Barrier::new(WRITERS);
        let numbers: Vec<u64> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        let mut forge_db = ForgeDatabase::open(&path).unwrap();
                        let mut create = |_| forge_db.create_issue("t", "", &[], "ann", at(1)).unwrap();
                        (0..EACH).map(&mut create).collect::<Vec<_>>()
                    })
                })
                .collect();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
        assert_eq!(distinct, (1..=u64::try_from(WRITERS * EACH).unwrap()).collect());
    }
    let mut left: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["forge-0.db", "forge-1.db", "forge-2.db", "forge-3.db", "forge-4.db"]);
}

#[test]
fn what_one_process_writes_the_other_sees() {
    let Shelf { mut forge_db, path, _directory } = fresh();
    let mut other = ForgeDatabase::open(&path).unwrap();
    let number = forge_db.create_issue("t", "", &[], "ann", at(1)).unwrap();
    other.set_labels(number, &words(&["blocked"]), &[]).unwrap();
    assert_eq!(forge_db.issue(number).unwrap().unwrap().labels, ["blocked"]);
}

#[test]
fn the_board_keeps_the_latest_word_about_an_issue() {
    let Shelf { mut forge_db, _directory, path } = fresh();
    let number = forge_db.create_issue("t", "", &[], "ann", at(1)).unwrap();
    assert_eq!(forge_db.board_row(number).unwrap(), None);
    forge_db.set_board_row(number, BoardStatus::InProgress, "ann-1").unwrap();
    forge_db.set_board_row(number, BoardStatus::InReview, "ann-1").unwrap();
    let again = ForgeDatabase::open(&path).unwrap();
    assert_eq!(again.board_row(number).unwrap(), Some((BoardStatus::InReview, "ann-1".to_owned())));
    assert!(matches!(forge_db.set_board_row(99, BoardStatus::Done, ""), Err(Error::NotFound { .. })));
}

#[test]
fn a_check_is_replaced_by_its_latest_answer() {
    let Shelf { mut forge_db, .. } = fresh();
    let check = |name: &str, state| Check { name: name.to_owned(), state, details: String::new() };
    forge_db.set_check(&sha('a'), "test", CheckState::Pending, at(1)).unwrap();
    forge_db.set_check(&sha('a'), "lint", CheckState::Success, at(1)).unwrap();
    forge_db.set_check(&sha('a'), "test", CheckState::Failure, at(2)).unwrap();
    let expected = [check("lint", CheckState::Success), check("test", CheckState::Failure)];
    assert_eq!(forge_db.checks(&sha('a')).unwrap(), expected);
    assert_eq!(forge_db.checks(&sha('b')).unwrap(), []);
}
