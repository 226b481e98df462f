//! What people ask for, and the JSON they get.

use pointsman_core::forge::StateFilter;
use pointsman_core::ids::Sha;
use pointsman_core::task::ReviewVerdict;
use serde_json::json;

use super::{NOW_TEXT, World, create_issue, done, failed, issue, strings};
use crate::control::protocol::{FailureKind, ForgeCommand};
use pointsman_adapters::forge::Forge;

fn review(number: u64, verdict: ReviewVerdict) -> ForgeCommand {
    ForgeCommand::Review { number, verdict, body: "Words".to_owned(), author: "bob".to_owned(), head: None }
}

#[test]
fn an_issue_as_scripts_see_it() {
    let world = World::new();
    let forge = world.forge();
    let number = issue(&forge, "A title");
    let body = "A comment".to_owned();
    done(&forge, &ForgeCommand::Comment { number, body, author: "bob".to_owned() });
    let (add, remove) = (strings(&["b", "a"]), strings(&["backlog"]));
    done(&forge, &ForgeCommand::Label { number, add, remove });
    let closed = done(&forge, &ForgeCommand::SetIssueOpen { number, open: false });
    assert_eq!(
        closed,
        json!({
            "number": 1, "title": "A title", "body": "Text", "state": "closed", "labels": ["a", "b"],
            "comments": [{ "author": "bob", "body": "A comment", "at": NOW_TEXT }],
            "assignee": null, "author": "ann", "created_at": NOW_TEXT,
        })
    );
    assert_eq!(done(&forge, &ForgeCommand::ShowIssue { number }), closed);
    let reopened = done(&forge, &ForgeCommand::SetIssueOpen { number, open: true });
    assert_eq!(reopened["state"], "open");
}

#[test]
fn a_pull_request_as_scripts_see_it() {
    let world = World::new();
    let forge = world.forge();
    let (number, head) = world.pull_request(&forge, "work");
    let reviewed = done(&forge, &review(number, ReviewVerdict::RequestChanges));
    assert_eq!(
        reviewed,
        json!({
            "number": 1, "title": "Title", "body": "Body", "head": "work", "base": "main", "head_sha": head,
            "state": "open", "merged": false, "merge_sha": null, "comments": [], "author": "pointsman",
            "receipt": [], "risk": null, "artifacts": {"files": [], "left_out": []}, "reviews": [{
                "author": "bob", "verdict": "request_changes", "body": "Words", "sha": head, "at": NOW_TEXT,
                "dismissed": false, "lines": [],
            }],
        })
    );
    assert_eq!(done(&forge, &ForgeCommand::ShowPull { number }), reviewed);
    let body = "On a pull request".to_owned();
    let commented = done(&forge, &ForgeCommand::Comment { number, body, author: "bob".to_owned() });
    assert_eq!(commented["comments"][0]["body"], "On a pull request");
}

#[test]
fn lists_are_arrays_by_state() {
    let world = World::new();
    let forge = world.forge();
    let (one, two) = (issue(&forge, "one"), issue(&forge, "two"));
    forge.close_issue(one).unwrap();
    let cases = [
        (StateFilter::Open, vec![two]),
        (StateFilter::Closed, vec![one]),
        (StateFilter::All, vec![one, two]),
    ];
    for (state, expected) in cases {
        let list = done(&forge, &ForgeCommand::ListIssues { state });
        let numbers: Vec<u64> =
            list.as_array().unwrap().iter().map(|i| i["number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, expected, "{state:?}");
        assert_eq!(done(&forge, &ForgeCommand::ListPulls { state }), json!([]));
    }
}

#[test]
fn hostile_text_comes_back_as_it_was() {
    let world = World::new();
    let forge = world.forge();
    let texts = [
        "#(touch x)",
        "$(id) `id` ${IFS}",
        "--upload-pack=touch x",
        "'; DROP TABLE issues; --",
        "\u{1b}]0;owned\u{7}\u{1b}[2J\r\nnext",
        "user\u{202e}gpj.exe \u{e0041}",
        " leading and trailing ",
        "<!-- pointsman:blocked-1 -->",
    ];
    for text in texts {
        let created = done(&forge, &create_issue(text, text));
        assert_eq!((created["title"].as_str(), created["body"].as_str()), (Some(text), Some(text)));
    }
    let every: String = ('\u{1}'..='\u{ff}').cycle().take(1 << 20).collect();
    assert_eq!(done(&forge, &create_issue("large", &every))["body"].as_str(), Some(every.as_str()));
    let nul = done(&forge, &create_issue("a\0b", "\0c\0"));
    assert_eq!((nul["title"].as_str(), nul["body"].as_str()), (Some("ab"), Some("c")));
}

#[test]
fn hostile_branches_and_names_are_only_names() {
    let world = World::new();
    let forge = world.forge();
    let (number, head) = world.pull_request(&forge, "$(id);#(x)'\"");
    assert_eq!(done(&forge, &ForgeCommand::ShowPull { number })["head_sha"], json!(head));
    for (author, shown) in
        [("", "somebody"), ("\u{1b}[2Ja\nb", "a b"), ("pointsman-review", "pointsman-review@localhost")]
    {
        let command = ForgeCommand::Comment { number, body: "x".to_owned(), author: author.to_owned() };
        let comments = done(&forge, &command)["comments"].clone();
        assert_eq!(comments.as_array().unwrap().last().unwrap()["author"], shown);
    }
}

#[test]
fn texts_have_limits_and_hints() {
    let world = World::new();
    let forge = world.forge();
    assert_eq!(done(&forge, &create_issue(&"ä".repeat(1000), ""))["number"], 1);
    assert_eq!(done(&forge, &create_issue("largest", &"x".repeat(4 << 20)))["number"], 2);
    let label = |label: &str| ForgeCommand::Label { number: 1, add: strings(&[label]), remove: Vec::new() };
    let comment =
        |body: &str| ForgeCommand::Comment { number: 1, body: body.to_owned(), author: String::new() };
    let cases = [
        (create_issue("", "x"), "--title"),
        (create_issue(" \n\0", "x"), "--title"),
        (create_issue(&"x".repeat(1001), ""), "1001"),
        (create_issue("t", &"x".repeat((4 << 20) + 1)), "4194305"),
        (comment(" "), "--body"),
        (comment(&"x".repeat((4 << 20) + 1)), "4194305"),
        (label(""), "label"),
        (label(" "), "label"),
        (label("a,b"), "`a,b`"),
        (label("a\u{1b}[2Jb"), "`ab`"),
        (label(&"x".repeat(51)), "50"),
    ];
    for (command, hint) in cases {
        let (kind, message) = failed(&forge, &command);
        assert_eq!(kind, FailureKind::Refused);
        assert!(message.contains(hint), "{message}");
    }
    done(&forge, &label(&"é".repeat(50)));
    assert_eq!(
        done(&forge, &ForgeCommand::ListIssues { state: StateFilter::All }).as_array().unwrap().len(),
        2
    );
}

#[test]
fn only_an_open_pull_request_with_a_head_is_reviewed() {
    let world = World::new();
    let forge = world.forge();
    let refused = |number, word: &str| {
        let (kind, message) = failed(&forge, &review(number, ReviewVerdict::Approve));
        assert_eq!(kind, FailureKind::Refused);
        assert!(message.contains(word), "{message}");
        assert!(forge.pull_request(number).unwrap().unwrap().reviews.is_empty());
    };
    let (closed, _) = world.pull_request(&forge, "closed");
    done(&forge, &ForgeCommand::ClosePull { number: closed });
    done(&forge, &ForgeCommand::ClosePull { number: closed });
    refused(closed, "closed");
    let (headless, _) = world.pull_request(&forge, "headless");
    world.delete_branch("headless");
    refused(headless, "`headless`");
    let (merged, head) = world.pull_request(&forge, "merged");
    world.push(&head, "main");
    refused(merged, "merged");
}

#[test]
fn a_review_is_about_the_head_of_that_moment() {
    let world = World::new();
    let forge = world.forge();
    let (number, first) = world.pull_request(&forge, "work");
    done(&forge, &review(number, ReviewVerdict::RequestChanges));
    let second = world.commit("more");
    world.push(&second, "work");
    let reviews = done(&forge, &review(number, ReviewVerdict::Approve))["reviews"].clone();
    assert_eq!((&reviews[0]["sha"], &reviews[1]["sha"]), (&json!(first), &json!(second)));
}

#[test]
fn a_review_of_a_commit_that_is_not_the_head_any_more_is_refused() {
    let world = World::new();
    let forge = world.forge();
    let (number, first) = world.pull_request(&forge, "work");
    let of = |head: &Sha| match review(number, ReviewVerdict::Approve) {
        ForgeCommand::Review { number, verdict, body, author, .. } => {
            ForgeCommand::Review { number, verdict, body, author, head: Some(head.clone()) }
        }
        other => other,
    };
    let second = world.commit("more");
    world.push(&second, "work");
    let (kind, message) = failed(&forge, &of(&first));
    assert_eq!(kind, FailureKind::Refused);
    assert!(message.contains("has changed since"), "{message}");
    assert_eq!(done(&forge, &of(&second))["reviews"].as_array().unwrap().len(), 1);
}

#[test]
fn landing_is_the_daemons() {
    let world = World::new();
    let forge = world.forge();
    let (number, _) = world.pull_request(&forge, "work");
    let (kind, message) = failed(&forge, &ForgeCommand::MergePull { number });
    assert_eq!(kind, FailureKind::NoDaemon);
    assert!(message.contains("pointsman up"), "{message}");
}

#[test]
fn what_is_not_there_is_not_found_and_the_other_kind_is_named() {
    let world = World::new();
    let forge = world.forge();
    let author = String::new;
    let missing = [
        ForgeCommand::ShowIssue { number: 9 },
        ForgeCommand::Comment { number: 9, body: "x".to_owned(), author: author() },
        ForgeCommand::Label { number: 9, add: Vec::new(), remove: Vec::new() },
        ForgeCommand::SetIssueOpen { number: 9, open: true },
        ForgeCommand::SetIssueOpen { number: 9, open: false },
        ForgeCommand::ShowPull { number: 9 },
        review(9, ReviewVerdict::Approve),
        ForgeCommand::ClosePull { number: 9 },
        ForgeCommand::ShowIssue { number: u64::MAX },
    ];
    for command in missing {
        assert_eq!(failed(&forge, &command).0, FailureKind::NotFound, "{command:?}");
    }
    let number = issue(&forge, "one");
    assert!(failed(&forge, &ForgeCommand::ShowPull { number }).1.contains("forge issue show 1"));
    let (number, _) = world.pull_request(&forge, "work");
    assert!(failed(&forge, &ForgeCommand::ShowIssue { number }).1.contains("forge pr show 2"));
}
