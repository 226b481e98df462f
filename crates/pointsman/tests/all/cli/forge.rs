//! The embedded forge without a daemon.

use super::environment::{Environment, finish};

#[test]
fn an_issue_lives_without_a_daemon() {
    let environment = Environment::with_project();
    let created = environment
        .json(&["forge", "issue", "create", "--title", "Login", "--body", "Now", "--label", "backlog"]);
    assert_eq!(created["number"], 1);
    for field in ["number", "title", "body", "state", "labels", "comments", "assignee"] {
        assert!(created.get(field).is_some(), "{field} is missing in {created}");
    }
    environment.run(&["forge", "issue", "comment", "1", "--body", "Why?"]).ok();
    environment.run(&["forge", "issue", "label", "1", "--add", "ui", "--remove", "backlog"]).ok();
    environment.run(&["forge", "issue", "label", "1", "login"]).ok();
    environment.run(&["forge", "issue", "label", "1"]).code(2);
    let shown = environment.json(&["forge", "issue", "show", "1"]);
    assert_eq!(shown["labels"], serde_json::json!(["login", "ui"]));
    assert_eq!(
        (&shown["comments"][0]["author"], &shown["comments"][0]["body"]),
        (&crate::login().into(), &"Why?".into())
    );
    assert!(shown["comments"][0]["at"].as_str().unwrap().ends_with('Z'));
    environment.run(&["forge", "issue", "close", "1"]).ok();
    assert_eq!(environment.json(&["forge", "issue", "list"]), serde_json::json!([]));
    assert_eq!(environment.json(&["forge", "issue", "list", "--state", "all"])[0]["state"], "closed");
    environment.run(&["forge", "issue", "reopen", "1"]).ok();
    assert_eq!(environment.json(&["forge", "issue", "list", "--state", "open"])[0]["number"], 1);
    environment.run(&["forge", "issue", "show", "9"]).code(4).says("no issue #9");
    environment.run(&["forge", "pr", "show", "9"]).code(4);
    assert_eq!(environment.json(&["forge", "pr", "list"]), serde_json::json!([]));
}

#[test]
fn hostile_titles_stay_titles() {
    let environment = Environment::with_project();
    let titles = ["#(touch x)", "$(id)", "--upload-pack=touch x", "`id`", "; rm -rf /", "-"];
    for title in titles {
        assert_eq!(environment.json(&["forge", "issue", "create", "--title", title])["title"], title);
    }
    let listed = environment.run(&["forge", "issue", "list"]);
    for title in titles {
        assert!(listed.ok().stdout.contains(title), "{title}");
    }
    assert!(!environment.shop().join("x").exists());
}

#[test]
fn a_terminal_never_sees_what_a_title_tells_it_to_do() {
    let environment = Environment::with_project();
    environment.run(&["forge", "issue", "create", "--title", "red \u{1b}[31mtext\u{7}\u{9b}2J\u{202e}"]).ok();
    for args in [&["forge", "issue", "list"][..], &["forge", "issue", "show", "1"]] {
        let shown = environment.run(args);
        assert!(shown.ok().stdout.contains("red text"), "{shown:?}");
        assert!(!shown.stdout.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{shown:?}");
    }
}

#[test]
fn a_body_of_a_megabyte_with_control_characters_is_kept() {
    let environment = Environment::with_project();
    let body = "\u{1b}[2Jtext \u{8}\u{7f}ä\n".repeat(70_000);
    let create = &["forge", "issue", "create", "--title", "Large", "--body-file", "-", "--json"];
    environment.run_with_input(create, body.as_bytes()).ok();
    let shown = environment.json(&["forge", "issue", "show", "1"]);
    assert!(shown["body"].as_str().unwrap().len() > 700_000);
    assert!(!environment.run(&["forge", "issue", "show", "1"]).ok().stdout.contains('\u{1b}'));
}

#[test]
fn a_session_does_not_steer() {
    let environment = Environment::with_project();
    environment.run(&["forge", "issue", "create", "--title", "Login"]).ok();
    let inside = |args: &[&str]| {
        let mut command = environment.command(args);
        command.env("POINTSMAN_SESSION", "dev-shop-1.1");
        finish(command, b"")
    };
    for args in [
        &["forge", "pr", "review", "1", "--approve"][..],
        &["forge", "pr", "merge", "1"],
        &["forge", "issue", "close", "1"],
        &["forge", "issue", "label", "1", "--add", "backlog"],
        &["task", "start", "1"],
        &["task", "answer", "1", "yes"],
        &["session", "stop", "--all"],
        &["down"],
    ] {
        inside(args).code(3).says("from inside session dev-shop-1.1");
    }
    // What the command does not know to be for people is refused by whoever carries it out.
    inside(&["forge", "issue", "comment", "1", "--body", "A note"]).code(3).says("names a session that");
    assert_eq!(environment.json(&["forge", "issue", "show", "1"])["comments"], serde_json::json!([]));
}

#[test]
fn commands_at_the_same_time_take_turns() {
    let environment = Environment::with_project();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| environment.run(&["forge", "issue", "create", "--title", "One of six"]).ok().code);
        }
    });
    assert_eq!(environment.json(&["forge", "issue", "list"]).as_array().unwrap().len(), 6);
}

#[test]
fn the_board_shows_open_issues_by_label() {
    let environment = Environment::with_project();
    environment.run(&["board"]).ok().prints("");
    let file = |title: &str, labels: &[&str]| {
        let mut words = vec!["forge", "issue", "create", "--title", title];
        words.extend(labels.iter().flat_map(|label| ["--label", label]));
        environment.run(&words).ok();
    };
    file("Sell plums", &["backlog"]);
    file("Sell pears", &["backlog", "blocked"]);
    file("A shop for everybody", &["vision"]);
    file("Disk fills up", &["prediction/unreviewed"]);
    file("Done long ago", &["backlog"]);
    environment.run(&["forge", "issue", "close", "5"]).ok();
    let board = environment.json(&["board"]);
    let columns: Vec<(&str, u64)> = board
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["column"].as_str().unwrap(), column["issues"][0]["number"].as_u64().unwrap()))
        .collect();
    assert_eq!(columns, [("vision", 3), ("prediction", 4), ("backlog", 1), ("blocked", 2)]);
    let shown = environment.run(&["board"]).ok().stdout.clone();
    let first = shown.lines().next().unwrap();
    assert!(first.starts_with("VISION (1)") && first.contains("BLOCKED (1)"), "{shown}");
    assert!(shown.contains("#1 Sell plums") && !shown.contains("Done long ago"), "{shown}");
    assert_eq!(environment.json(&["board", "--labels"]).as_array().unwrap().len(), 10);
}
