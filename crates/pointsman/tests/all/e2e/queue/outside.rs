//! What reaches main without the queue: people's merges and pushes, and what only looks like them.

use pointsman_testkit::TestDaemon;
use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, OWNER, REPO, Rules};
use serde_json::Value;

use crate::e2e::{adds, clean, forgejo, shop};

const LAND: &str = "expect CI passed\nphase awaiting_review\nexpect Merged\nphase done";

/// A task whose pull request waits for a review, with its head.
fn in_review(daemon: &TestDaemon) -> (u64, String) {
    let issue = daemon.file_issue("Apples", &format!("{}\n{LAND}", adds("apples")));
    let task = daemon.wait_state(issue, "awaiting_review");
    (issue, task["head_sha"].as_str().unwrap().to_owned())
}

fn status(daemon: &TestDaemon) -> Value {
    daemon.json(&["merge-queue", "status"])
}

fn wait_paused(daemon: &TestDaemon, why: &str) {
    let status =
        daemon.wait_for("the queue to pause", || Some(status(daemon)).filter(|s| s["paused"] == true));
    assert_eq!(status["frozen_by_audit"], true, "{status:#}");
    assert!(status["paused_reason"].as_str().unwrap().contains(why), "{status:#}");
    wait_asked(daemon, "queue_paused");
}

fn wait_asked(daemon: &TestDaemon, kind: &str) {
    daemon.wait_for("a person to be asked", || {
        let inbox = daemon.json(&["inbox"]);
        inbox.as_array().unwrap().iter().any(|question| question["kind"] == kind).then_some(())
    });
}

/// A commit of a person in the forge's repository, with these files beside those of its first parent.
fn commit(daemon: &TestDaemon, parents: &[&str], path: &str, text: &str) -> String {
    let dir = daemon.path(&format!("outside-{}", path.replace('/', "-")));
    daemon.forge_git(&["worktree", "add", "--quiet", "--detach", dir.to_str().unwrap(), parents[0]]);
    std::fs::write(dir.join(path), text).unwrap();
    daemon.git_in(&dir, &["add", "--all"]);
    let tree = daemon.git_in(&dir, &["write-tree"]);
    let mut arguments = vec![
        "-c",
        "user.name=Ann",
        "-c",
        "user.email=ann@example.org",
        "commit-tree",
        &tree,
        "-m",
        "By hand",
    ];
    for parent in parents {
        arguments.extend(["-p", *parent]);
    }
    let made = daemon.forge_git(&arguments);
    daemon.forge_git(&["worktree", "remove", "--force", dir.to_str().unwrap()]);
    made
}

#[test]
fn e2e_queue_an_unapproved_head_on_main_raises_the_alarm() {
    let daemon = shop().reviewed().start();
    let (_, head) = in_review(&daemon);
    daemon.forge_git(&["update-ref", "refs/heads/main", &head]);
    wait_paused(&daemon, "which is not approved at this commit");
    assert_eq!(status(&daemon)["person_merges_total"], 0);
}

#[test]
fn e2e_queue_a_merge_with_something_else_in_it_raises_the_alarm() {
    let daemon = shop().reviewed().start();
    let (issue, head) = in_review(&daemon);
    daemon.json(&["merge-queue", "pause"]);
    daemon.approve(issue);
    let main = daemon.forge_git(&["rev-parse", "main"]);
    let merge = commit(&daemon, &[&head, &main], "src/evil.txt", "nobody reviewed this\n");
    // Parents the other way round: main first, as a merge of the pull request has them.
    let tree = daemon.forge_git(&["rev-parse", &format!("{merge}^{{tree}}")]);
    let merge = daemon.forge_git(&[
        "-c",
        "user.name=Ann",
        "-c",
        "user.email=ann@example.org",
        "commit-tree",
        &tree,
        "-p",
        &main,
        "-p",
        &head,
        "-m",
        "Merge pull request",
    ]);
    daemon.forge_git(&["update-ref", "refs/heads/main", &merge]);
    daemon.wait_for("the commit to be found", || (status(&daemon)["direct_merges_total"] == 1).then_some(()));
    daemon.json(&["merge-queue", "resume"]);
    assert_eq!(status(&daemon)["person_merges_total"], 0);
}

#[test]
fn e2e_queue_a_persons_merge_of_an_approved_pull_request_counts() {
    let daemon = shop().reviewed().start();
    let (issue, head) = in_review(&daemon);
    daemon.json(&["merge-queue", "pause"]);
    daemon.approve(issue);
    daemon.wait_state(issue, "merge_queue");
    let main = daemon.forge_git(&["rev-parse", "main"]);
    let tree = daemon.forge_git(&["rev-parse", &format!("{head}^{{tree}}")]);
    let merge = daemon.forge_git(&[
        "-c",
        "user.name=Ann",
        "-c",
        "user.email=ann@example.org",
        "commit-tree",
        &tree,
        "-p",
        &main,
        "-p",
        &head,
        "-m",
        "Merge pull request",
    ]);
    daemon.forge_git(&["update-ref", "refs/heads/main", &merge]);
    daemon
        .wait_for("the merge to be counted", || (status(&daemon)["person_merges_total"] == 1).then_some(()));
    assert_eq!(status(&daemon)["direct_merges_total"], 0);
    daemon.wait_closed(issue);
}

#[test]
fn e2e_queue_a_persons_push_to_main_is_taken_tested_and_told() {
    let daemon = shop().start();
    let main = daemon.forge_git(&["rev-parse", "main"]);
    daemon.wait_for("main to be known", || status(&daemon)["main_sha"].is_string().then_some(()));
    let pushed = commit(&daemon, &[&main], "src/direct.txt", "by hand\n");
    daemon.forge_git(&["update-ref", "refs/heads/main", &pushed]);
    daemon.wait_for("the push to be counted", || (status(&daemon)["direct_merges_total"] == 1).then_some(()));
    let told =
        || daemon.notices().iter().any(|n| n["title"] == "Somebody pushed to main of shop").then_some(());
    daemon.wait_for("people to be told", told);
    let tested = || {
        let checks = daemon.path("state").join("projects/shop/logs");
        let has = |dir: &std::path::Path| {
            std::fs::read_dir(dir)
                .is_ok_and(|mut all| all.any(|f| f.unwrap().file_name().to_string_lossy().contains("gate")))
        };
        has(&checks).then_some(())
    };
    daemon.wait_for("the gate to run on it", tested);
    assert_eq!(status(&daemon)["paused"], false);
}

#[test]
fn e2e_queue_a_persons_push_that_breaks_main_is_told() {
    let ci = "#!/bin/sh\n! [ -e src/broken.txt ]\n";
    let daemon = shop().file("ci.sh", ci).start();
    let main = daemon.forge_git(&["rev-parse", "main"]);
    daemon.wait_for("main to be known", || status(&daemon)["main_sha"].is_string().then_some(()));
    let pushed = commit(&daemon, &[&main], "src/broken.txt", "broken\n");
    daemon.forge_git(&["update-ref", "refs/heads/main", &pushed]);
    wait_asked(&daemon, "main_red");
    assert_eq!(status(&daemon)["paused"], false);
}

#[test]
fn e2e_queue_a_persons_push_pauses_a_queue_that_is_set_to_pause() {
    let daemon = shop().set("merge.outside_pushes", "\"pause\"").start();
    let main = daemon.forge_git(&["rev-parse", "main"]);
    daemon.wait_for("main to be known", || status(&daemon)["main_sha"].is_string().then_some(()));
    let pushed = commit(&daemon, &[&main], "src/direct.txt", "by hand\n");
    daemon.forge_git(&["update-ref", "refs/heads/main", &pushed]);
    wait_paused(&daemon, "`merge.outside_pushes` is `pause`");
}

/// Outside the sandbox a session can push as well as its operator.
#[test]
fn e2e_queue_a_push_that_a_session_could_have_made_pauses_the_queue() {
    let daemon = shop().outside("this test is about a session that is not enclosed").start();
    let issue = daemon.file_issue("Wait", "phase escalate\nReason: wait");
    daemon.wait_session(issue, 1);
    let main = daemon.forge_git(&["rev-parse", "main"]);
    let pushed = commit(&daemon, &[&main], "src/direct.txt", "by hand\n");
    daemon.forge_git(&["update-ref", "refs/heads/main", &pushed]);
    wait_paused(&daemon, "did not verifiably run inside the sandbox");
}

#[test]
fn e2e_protected_paths_need_a_person_although_nobody_reviews() {
    let daemon = shop().start();
    let script =
        "write ci.sh #!/bin/sh\ncommit Loosen CI\npush\nphase awaiting_ci\nexpect Merged\nphase done";
    let issue = daemon.file_issue("Loosen CI", script);
    let task = daemon.wait_state(issue, "escalated");
    assert!(task["reason"].as_str().unwrap().contains("protected paths (ci.sh)"), "{task:#}");
    assert_eq!(daemon.main_log(), ["Open the shop"]);
    daemon.approve(issue);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Loosen CI", "Open the shop"]);
}

/// Pushes a commit to main of a server, as the holder of a token.
fn push_by(fake: &FakeForgejo, daemon: &TestDaemon, account: &str, file: &str) {
    let checkout = daemon.checkout();
    let there = fake.repository().to_string_lossy().into_owned();
    daemon.git_in(&checkout, &["fetch", "--quiet", &there, "main"]);
    daemon.git_in(&checkout, &["checkout", "--quiet", "--detach", "FETCH_HEAD"]);
    std::fs::write(checkout.join(file), "By hand.\n").unwrap();
    daemon.git_in(&checkout, &["add", file]);
    daemon.git_in(&checkout, &["commit", "--quiet", "--message", &format!("Add {file} by hand")]);
    let url = fake.url().replacen("://", &format!("://{account}:{}@", fake.token(account)), 1);
    daemon.git_in(&checkout, &["push", "--quiet", &format!("{url}/{REPO}.git"), "HEAD:main"]);
}

#[test]
fn e2e_queue_a_push_that_a_server_knows_to_be_a_persons_is_taken() {
    let fake = FakeForgejo::start(Rules::default());
    let daemon = forgejo::start(&fake, forgejo::on(&fake));
    let first = forgejo::file(&fake, "Apples", &clean("apples"));
    daemon.wait_closed(first);
    push_by(&fake, &daemon, OWNER, "notes.txt");
    let second = forgejo::file(&fake, "Pears", &clean("pears"));
    daemon.wait_closed(second);
    assert_eq!(status(&daemon)["paused"], false);
    assert_eq!(forgejo::main_log(&fake, &daemon)[1], "Add notes.txt by hand");
    let told = daemon.notices();
    assert!(told.iter().any(|notice| notice["body"].as_str().unwrap().contains(OWNER)), "{told:#?}");
    // With our own account nobody is a person.
    push_by(&fake, &daemon, DEV, "more.txt");
    let third = forgejo::file(&fake, "Plums", &clean("plums"));
    wait_paused(&daemon, "");
    assert_ne!(daemon.task(third)["state"], "closed");
}
