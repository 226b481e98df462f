//! GitHub's own ways of merging: its merge call where nobody may push, its merge queue, auto-merge, and people's pull
//! requests that enter our queue.

use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, OWNER, Rules};
use pointsman_testkit::{Setup, TestDaemon};

use super::adds;
use super::forgejo::{entry, file, main_log, on, start};

fn on_github(fake: &FakeForgejo) -> Setup {
    on(fake).set("forge.kind", "\"github\"").daemon_env("GITHUB_TOKEN", &fake.token(DEV))
}

/// A task that waits for its review; its number and that of its pull request.
fn in_review(fake: &FakeForgejo, daemon: &TestDaemon, fruit: &str, then: &str) -> (u64, u64) {
    let script = format!("{}\nexpect CI passed\nphase awaiting_review\nexpect Approved\n{then}", adds(fruit));
    let issue = file(fake, &format!("Add {fruit}"), &script);
    (issue, daemon.wait_in_review(issue)["pr"].as_u64().unwrap())
}

const DONE: &str = "expect Merged\nphase done";

/// Nobody may push to main. GitHub merges the tested pull request itself, and the files on main are those that were tested.
#[test]
fn e2e_github_a_main_that_nobody_may_push_to_is_merged_by_github() {
    let fake = FakeForgejo::start(Rules { protected_main: true, ..Rules::default() });
    let daemon = start(&fake, on_github(&fake).reviewed());
    let (issue, pr) = in_review(&fake, &daemon, "apples", DONE);
    fake.review(pr, OWNER, "APPROVED", "fine", &[]);
    daemon.wait_closed(issue);
    assert_eq!(main_log(&fake, &daemon), ["Add apples", "Open the shop"]);
    assert_eq!(fake.pull(pr).merged_as, fake.branch("main"));
    let status = daemon.json(&["merge-queue", "status"]);
    assert_eq!((&status["paused"], &status["direct_merges_total"]), (&false.into(), &0.into()), "{status:#}");
    let history = daemon.json(&["merge-queue", "history"]);
    assert_eq!(history[0]["candidate_sha"], fake.branch("main").unwrap().as_str(), "{history:#}");
}

/// A rule requires GitHub's own merge queue: green and approved work is handed to it, and what becomes of it is told.
#[test]
fn e2e_github_its_own_merge_queue_lands_with_merge_engine_forge() {
    let fake = FakeForgejo::start(Rules { protected_main: true, merge_queue: true, ..Rules::default() });
    let daemon = start(&fake, on_github(&fake).reviewed().set("merge.engine", "\"forge\""));
    let (issue, pr) = in_review(&fake, &daemon, "apples", DONE);
    fake.review(pr, OWNER, "APPROVED", "fine", &[]);
    daemon.wait_for("GitHub's queue to have it", || fake.in_merge_queue(pr).then_some(()));
    let waiting = daemon.wait_for("the entry to say so", || {
        let history = daemon.json(&["merge-queue", "history"]);
        history[0]["reason"]
            .as_str()
            .filter(|reason| reason.contains("GitHub's merge queue"))
            .map(str::to_owned)
    });
    assert!(waiting.starts_with("the forge merges it"), "{waiting}");
    fake.end_merge_queue(pr, true);
    daemon.wait_closed(issue);
    assert_eq!(main_log(&fake, &daemon), ["Add apples", "Open the shop"]);

    let (_, pr) = in_review(&fake, &daemon, "pears", "hang");
    fake.review(pr, OWNER, "APPROVED", "fine", &[]);
    daemon.wait_for("GitHub's queue to have it", || fake.in_merge_queue(pr).then_some(()));
    fake.end_merge_queue(pr, false);
    let reason = daemon.wait_for("the entry to be out", || {
        let history = daemon.json(&["merge-queue", "history"]);
        let out = history.as_array()?.iter().find(|entry| entry["status"] == "red")?.clone();
        Some(out["reason"].as_str()?.to_owned())
    });
    assert!(reason.contains("GitHub's merge queue removed it"), "{reason}");
    assert_eq!(main_log(&fake, &daemon), ["Add apples", "Open the shop"]);
}

/// Somebody told GitHub to merge a task's pull request by itself: nobody pushes past its rules.
#[test]
fn e2e_github_auto_merge_on_a_task_is_respected() {
    let fake = FakeForgejo::start(Rules::default());
    let daemon = start(&fake, on_github(&fake).reviewed());
    let (issue, pr) = in_review(&fake, &daemon, "apples", DONE);
    fake.auto_merge(pr);
    fake.review(pr, OWNER, "APPROVED", "fine", &[]);
    daemon.wait_for("the entry to wait for GitHub", || {
        let history = daemon.json(&["merge-queue", "history"]);
        history[0]["reason"].as_str().filter(|reason| reason.contains("auto-merge is on")).map(drop)
    });
    assert_eq!(main_log(&fake, &daemon), ["Open the shop"]);
    fake.end_merge_queue(pr, true);
    daemon.wait_closed(issue);
    assert_eq!(main_log(&fake, &daemon), ["Add apples", "Open the shop"]);
}

/// A pull request that is one of a stack is merged by GitHub's merge call, the only one that merges stacks.
#[test]
fn e2e_github_one_of_a_stack_is_merged_by_github() {
    let fake = FakeForgejo::start(Rules::default());
    let daemon = start(&fake, on_github(&fake).reviewed());
    let (issue, pr) = in_review(&fake, &daemon, "apples", DONE);
    fake.stack(pr);
    fake.review(pr, OWNER, "APPROVED", "fine", &[]);
    daemon.wait_closed(issue);
    assert_eq!(main_log(&fake, &daemon), ["Add apples", "Open the shop"]);
    assert_eq!(fake.pull(pr).merged_as, fake.branch("main"), "GitHub made the commit");
    let landed = daemon.json(&["merge-queue", "history"])[0].clone();
    assert_eq!(
        (&landed["status"], &landed["base_sha"]),
        (&"landed".into(), &serde_json::Value::Null),
        "{landed}"
    );
    assert_eq!(landed["candidate_sha"], fake.branch("main").unwrap().as_str(), "{landed}");
}

#[test]
fn e2e_github_peoples_pull_requests_enter_by_a_label_or_auto_merge() {
    let fake = FakeForgejo::start(Rules::default());
    let daemon = start(&fake, on_github(&fake).set("merge.label", "\"merge me\""));
    let there = fake.repository().to_string_lossy().into_owned();
    let checkout = daemon.checkout();
    let open = |branch: &str| {
        daemon.git_in(&checkout, &["checkout", "--quiet", "-B", branch, "main"]);
        std::fs::write(checkout.join(format!("src/{branch}.txt")), "3 crowns\n").unwrap();
        daemon.git_in(&checkout, &["add", "src"]);
        daemon.git_in(&checkout, &["commit", "--quiet", "--message", &format!("Add {branch}")]);
        daemon.git_in(&checkout, &["push", "--quiet", &there, branch]);
        fake.open_pull(OWNER, branch, &format!("Add {branch}"))
    };
    let (figs, limes, plums) = (open("figs"), open("limes"), open("plums"));
    fake.label(figs, "merge me");
    daemon.wait_for("the labelled one to land", || {
        (entry(&daemon, "figs")["status"] == "landed").then_some(())
    });
    fake.auto_merge(limes);
    daemon
        .wait_for("the other one to land", || (entry(&daemon, "limes")["status"] == "landed").then_some(()));
    assert_eq!(main_log(&fake, &daemon), ["Add limes", "Add figs", "Open the shop"]);
    daemon.wait_for("both to be shown as merged", || {
        let merged = |number| fake.pull(number).merged_as.is_some() || !fake.pull(number).open;
        (merged(figs) && merged(limes)).then_some(())
    });
    assert!(fake.pull(plums).open, "nobody asked for that one");
    assert_eq!(entry(&daemon, "plums"), serde_json::Value::Null);
    assert_eq!(daemon.json(&["merge-queue", "status"])["direct_merges_total"], 0);
}
