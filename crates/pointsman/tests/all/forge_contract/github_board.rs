//! A Projects board on GitHub: what is written there, what is not written twice, and what it says when it says no.

use pointsman_adapters::forge::github::Github;
use pointsman_adapters::forge::{BoardChange, Error, Forge};
use pointsman_adapters::retry::Retry;
use pointsman_core::forge::BoardStatus;
use pointsman_testkit::fake_forgejo::{BOARD, DEV, FakeForgejo, Faults, OWNER, REPO, Rules};

use super::forgejo::opening;

fn open(fake: &FakeForgejo) -> Github {
    let forge = Github::prepare(opening(&fake.url(), REPO, &fake.token(DEV), None)).unwrap();
    forge.with_board(None, BOARD)
}

fn change(status: BoardStatus, agent: &str) -> BoardChange<'_> {
    BoardChange { status: Some(status), agent: Some(agent) }
}

fn shown(status: &str, agent: &str) -> Option<(String, String)> {
    Some((status.to_owned(), agent.to_owned()))
}

#[test]
fn an_issue_is_put_on_the_board_and_changed_only_where_it_differs() {
    let fake = FakeForgejo::start(Rules::default());
    let (one, two) = (fake.create_issue(OWNER, "One", "", &[]), fake.create_issue(OWNER, "Two", "", &[]));
    let three = fake.create_issue(OWNER, "Three", "", &[]);
    let forge = open(&fake);
    assert_eq!(forge.board_item(one).unwrap().item_id, "", "it is not there yet");
    forge.set_board(one, &change(BoardStatus::InProgress, "dev-shop-1")).unwrap();
    assert_eq!(fake.on_board(one), shown("In Progress", "dev-shop-1"));
    let asked = fake.requests().len();
    forge.set_board(one, &change(BoardStatus::InProgress, "dev-shop-1")).unwrap();
    assert_eq!(fake.requests().len(), asked + 1, "a look, and nothing to do");
    forge.set_board(one, &BoardChange { status: Some(BoardStatus::InReview), agent: None }).unwrap();
    assert_eq!(fake.on_board(one), shown("In Review", "dev-shop-1"));
    forge.set_board(one, &change(BoardStatus::Done, "")).unwrap();
    assert_eq!(fake.on_board(one), shown("Done", ""));
    for number in [two, three] {
        forge.set_board(number, &change(BoardStatus::Ready, "dev-shop-2")).unwrap();
    }
    fake.close(three);
    let listed: Vec<_> = forge.board().unwrap().into_iter().map(|item| (item.number, item.status)).collect();
    assert_eq!(
        listed,
        [(one, BoardStatus::Done), (two, BoardStatus::Ready)],
        "open ones, over several pages"
    );
    let claimed: Vec<_> = forge.claimed_on_board().unwrap().into_iter().map(|item| item.number).collect();
    assert_eq!(claimed, [two, three], "closed ones as well");
    assert!(forge.costs().iter().any(|(operation, _)| *operation == "change the board"));
}

#[test]
fn a_board_with_other_columns_is_understood_and_its_ids_are_found_anew() {
    let fake = FakeForgejo::start(Rules::default());
    let issue = fake.create_issue(OWNER, "One", "", &[]);
    let forge = open(&fake);
    forge.set_board(issue, &change(BoardStatus::InReview, "a")).unwrap();
    fake.board_columns(&["Todo", "In progress", "Done"]);
    // The ids that are known are of no use any more: that is said once, and then they are looked up.
    let error = forge.set_board(issue, &change(BoardStatus::InReview, "a")).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    forge.set_board(issue, &change(BoardStatus::InReview, "a")).unwrap();
    assert_eq!(fake.on_board(issue), shown("In progress", "a"), "the column beside");
    forge.set_board(issue, &change(BoardStatus::Backlog, "")).unwrap();
    assert_eq!(fake.on_board(issue), shown("Todo", ""));
    fake.board_columns(&["Todo", "In progress"]);
    let forge = open(&fake);
    let error = forge.set_board(issue, &change(BoardStatus::Done, "")).unwrap_err().to_string();
    assert!(error.contains("its field Status has no option `Done`"), "{error}");
}

#[test]
fn a_board_that_says_no_says_why() {
    let fake = FakeForgejo::start(Rules::default());
    let issue = fake.create_issue(OWNER, "One", "", &[]);
    fake.board_scope(false);
    let error = open(&fake).set_board(issue, &change(BoardStatus::Done, "")).unwrap_err();
    assert!(error.retry() == Retry::Never && error.to_string().contains("scope `project`"), "{error}");
    fake.board_scope(true);
    let forge = Github::prepare(opening(&fake.url(), REPO, &fake.token(DEV), None)).unwrap();
    let error = forge.with_board(None, 99).board_item(issue).unwrap_err().to_string();
    assert!(error.contains("ann has no project 99"), "{error}");
    assert!(open(&fake).board_item(77).is_err(), "there is no such issue");
    let forge = Github::prepare(opening(&fake.url(), REPO, &fake.token(DEV), None)).unwrap();
    assert!(forge.board().unwrap_err().to_string().contains("this forge has no board"));
}

#[test]
fn a_board_is_right_in_the_end_through_ten_percent_of_trouble() {
    let fake = FakeForgejo::start(Rules { faults: Faults::ten_percent(11), ..Rules::default() });
    let forge = open(&fake);
    for round in 0..20 {
        let issue = fake.create_issue(OWNER, "Some", "", &[]);
        let status = BoardStatus::ALL[round % BoardStatus::ALL.len()];
        let told = (0..10).any(|_| forge.set_board(issue, &change(status, "somebody")).is_ok());
        assert!(told, "round {round}");
        assert_eq!(fake.on_board(issue), shown(status.name(), "somebody"));
    }
}
