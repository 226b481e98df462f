//! Pull requests of people are reviewed as well.

use std::fs;

use pointsman_testkit::TestDaemon;
use serde_json::Value;

use super::{reviewed_by_agent, reviews, runs};

/// Pushes a branch with one file on top of main, and opens its pull request.
fn open(daemon: &TestDaemon, branch: &str, path: &str, text: &str) -> u64 {
    let url = daemon.json(&["forge", "url"])["url"].as_str().unwrap().to_owned();
    let clone = daemon.path(&format!("clone-{branch}"));
    daemon.git_in(&daemon.path("home"), &["clone", "--quiet", &url, &clone.to_string_lossy()]);
    daemon.git_in(&clone, &["checkout", "--quiet", "-b", branch]);
    let file = clone.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    commit(daemon, branch, &["commit", "--quiet", "--message=By hand"]);
    let head = format!("--head={branch}");
    daemon.json(&["forge", "pr", "create", &head, "--title=By hand"])["number"].as_u64().unwrap()
}

fn commit(daemon: &TestDaemon, branch: &str, how: &[&str]) {
    let clone = daemon.path(&format!("clone-{branch}"));
    daemon.git_in(&clone, &["add", "--all"]);
    daemon.git_in(&clone, how);
    daemon.git_in(&clone, &["push", "--quiet", "--force", "origin", branch]);
}

fn wait_reviews(daemon: &TestDaemon, pr: u64, count: usize) -> Vec<Value> {
    daemon.wait_for("its review", || Some(reviews(daemon, pr)).filter(|reviews| reviews.len() >= count))
}

#[test]
fn e2e_what_did_not_change_is_not_asked_about_again() {
    let daemon = reviewed_by_agent().start();
    let pr = open(&daemon, "pears", "src/pears.txt", "pears 3 crowns\n");
    let first = wait_reviews(&daemon, pr, 1);
    assert_eq!(first[0]["verdict"], "approve");
    assert_eq!(runs(&daemon).len(), 1);
    // Another commit with the same change: the same answer, without a question.
    commit(&daemon, "pears", &["commit", "--quiet", "--amend", "--message=In other words"]);
    let second = wait_reviews(&daemon, pr, 2);
    assert_ne!(first[0]["sha"], second[1]["sha"]);
    assert_eq!(second[1]["verdict"], "approve");
    assert_eq!(runs(&daemon).len(), 1, "nobody was asked");
    // Another change is another question.
    fs::write(daemon.path("clone-pears/src/pears.txt"), "pears 4 crowns\n").unwrap();
    commit(&daemon, "pears", &["commit", "--quiet", "--message=Raise the price"]);
    wait_reviews(&daemon, pr, 3);
    assert_eq!(runs(&daemon).len(), 2);
}

#[test]
fn e2e_code_waits_for_its_ci_and_prose_does_not() {
    let ci = "#!/bin/sh\nwhile [ -e \"$HOME/hold\" ]; do sleep 0.02; done\n";
    let daemon = reviewed_by_agent().file("ci.sh", ci).build();
    fs::write(daemon.path("home/hold"), "").unwrap();
    daemon.start();
    let code = open(&daemon, "code", "src/a.rs", "fn a() {}\n");
    let prose = open(&daemon, "prose", "docs/a.md", "Words.\n");
    wait_reviews(&daemon, prose, 1);
    assert_eq!(reviews(&daemon, code).len(), 0, "its CI is held, so it cannot be reviewed yet");
    fs::remove_file(daemon.path("home/hold")).unwrap();
    let text = wait_reviews(&daemon, code, 1)[0]["body"].clone();
    assert!(text.as_str().unwrap().contains("<!-- reviewed: "), "{text}");
}
