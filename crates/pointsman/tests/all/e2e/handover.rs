//! A person takes a task over, works on it in their own checkout, and gives it back.

use pointsman::daemon::crash::HANDOVER_NAMES;
use pointsman_testkit::TestDaemon;

use super::{LAND, shop};

/// The agent commits one thing, leaves another uncommitted, and asks. Its successor in a new tree begins again.
const ASKS: &str = "append src/list.txt apples\ncommit Add apples\npush\nwrite src/draft.txt half\n\
                    append src/list.txt pears\nphase escalate which pears?\nexpect Answer\n";

fn taken(daemon: &TestDaemon) -> u64 {
    let issue =
        daemon.file_issue("Fruit", &format!("{ASKS}commit Add the rest\npush\nphase awaiting_ci\n{LAND}"));
    daemon.wait_state(issue, "escalated");
    issue
}

fn number(issue: u64) -> String {
    issue.to_string()
}

#[test]
fn e2e_a_person_takes_a_task_works_on_it_and_gives_it_back() {
    let daemon = shop().start();
    let issue = taken(&daemon);
    let (checkout, branch) = (daemon.checkout(), format!("pointsman/issue-{issue}"));
    let before = daemon.git_in(&checkout, &["branch", "--show-current"]);

    // Nothing of a person's is overwritten, and the task goes on as if nothing was said.
    std::fs::write(checkout.join("README.md"), "mine\n").unwrap();
    daemon.git_in(&checkout, &["add", "README.md"]);
    let refused = daemon.run(&["task", "take", &number(issue)]);
    assert!(refused.code == Some(3) && refused.stderr.contains("1 uncommitted change"), "{refused:?}");
    assert_eq!(daemon.task(issue)["state"], "escalated");
    daemon.git_in(&checkout, &["rm", "-q", "-f", "README.md"]);
    let given = daemon.run(&["task", "give", &number(issue)]);
    assert!(given.code == Some(3) && given.stderr.contains("nobody has taken it"), "{given:?}");

    let answer = daemon.json(&["task", "take", &number(issue)]);
    assert_eq!((&answer["branch"], &answer["uncommitted"]), (&branch.clone().into(), &true.into()));
    assert_eq!(daemon.git_in(&checkout, &["branch", "--show-current"]).trim(), branch);
    assert_eq!(daemon.git_in(&checkout, &["log", "-1", "--format=%s"]).trim(), "Add apples");
    let status = daemon.git_in(&checkout, &["status", "--porcelain"]);
    assert_eq!(status.trim(), "M src/list.txt\n?? pointsman.toml\n?? src/draft.txt", "{status}");
    let conversation = std::fs::read_to_string(answer["conversation"].as_str().unwrap()).unwrap();
    assert!(conversation.contains("write src/draft.txt"), "{conversation}");
    let task = daemon.task(issue);
    assert_eq!(task["state"], "paused");
    assert!(task["waiting_for"].as_str().unwrap().contains("pointsman task give"), "{task}");
    assert!(daemon.tmux_sessions().is_empty(), "{:?}", daemon.tmux_sessions());
    assert_eq!(daemon.json(&["inbox"]).as_array().unwrap().len(), 0, "the question went with it");

    // What a person would lose without a word is refused with one.
    let resumed = daemon.run(&["task", "resume", &number(issue)]);
    assert!(resumed.code == Some(3) && resumed.stderr.contains("task give"), "{resumed:?}");
    let given = daemon.run(&["task", "give", &number(issue)]);
    assert!(given.code == Some(3) && given.stderr.contains("2 uncommitted changes"), "{given:?}");
    std::fs::write(checkout.join("src/draft.txt"), "whole\n").unwrap();
    daemon.git_in(&checkout, &["add", "src"]);
    daemon.git_in(&checkout, &["commit", "-q", "-m", "By hand"]);
    let head = daemon.git_in(&checkout, &["rev-parse", "HEAD"]).trim().to_owned();
    daemon.git_in(&checkout, &["switch", "-q", before.trim()]);
    let given = daemon.run(&["task", "give", &number(issue)]);
    assert!(given.code == Some(3) && given.stderr.contains(&format!("git switch {branch}")), "{given:?}");
    daemon.git_in(&checkout, &["switch", "-q", &branch]);

    let answer = daemon.json(&["task", "give", &number(issue)]);
    assert_eq!((answer["state"].as_str(), answer["head"].as_str()), (Some("working"), Some(head.as_str())));
    daemon.wait_until(issue, "its second question", |task| {
        task["state"] == "escalated" && task["generation"] == 2
    });
    let prompt = daemon.prompt(issue, 2);
    assert!(prompt.contains("has handed it back to you") && prompt.contains("By hand"), "{prompt}");
    daemon.answer(issue, "The green ones.");
    daemon.wait_closed(issue);
    let log = daemon.main_log();
    assert_eq!(log, ["Add the rest", "Add apples", "By hand", "Add apples", "Open the shop"]);
    assert_eq!(daemon.on_main("src/draft.txt").as_deref(), Some("half"));
    let list = daemon.on_main("src/list.txt").unwrap();
    assert_eq!(list.lines().collect::<Vec<_>>(), ["apples", "pears", "apples", "pears"]);
}

#[test]
fn e2e_unrelated_commits_are_not_taken_and_what_a_person_drops_is_kept() {
    let daemon = shop().start();
    let issue = taken(&daemon);
    let (checkout, branch) = (daemon.checkout(), format!("pointsman/issue-{issue}"));
    // A branch of theirs by that name stays theirs.
    daemon.git_in(&checkout, &["branch", &branch]);
    daemon.git_in(&checkout, &["switch", "-q", &branch]);
    daemon.git_in(&checkout, &["commit", "-q", "--allow-empty", "-m", "Mine"]);
    let refused = daemon.run(&["task", "take", &number(issue)]);
    assert!(refused.code == Some(3) && refused.stderr.contains("git branch -m"), "{refused:?}");
    daemon.git_in(&checkout, &["branch", "-m", &branch, "mine"]);
    // A file that git does not know is not overwritten either.
    std::fs::write(checkout.join("src/draft.txt"), "precious\n").unwrap();
    let refused = daemon.run(&["task", "take", &number(issue)]);
    assert!(refused.code == Some(3) && refused.stderr.contains("src/draft.txt"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(checkout.join("src/draft.txt")).unwrap(), "precious\n");
    std::fs::remove_file(checkout.join("src/draft.txt")).unwrap();
    let agents = daemon.json(&["task", "take", &number(issue)])["head"].as_str().unwrap().to_owned();
    daemon.git_in(&checkout, &["add", "src"]);
    daemon.git_in(&checkout, &["commit", "-q", "-m", "Everything"]);

    // Another history by the right name.
    daemon.git_in(&checkout, &["switch", "-q", "--orphan", "strange"]);
    daemon.git_in(&checkout, &["commit", "-q", "--allow-empty", "-m", "Strange"]);
    daemon.git_in(&checkout, &["branch", "-M", &branch, "kept"]);
    daemon.git_in(&checkout, &["branch", "-M", "strange", &branch]);
    let given = daemon.run(&["task", "give", &number(issue)]);
    assert!(given.code == Some(3) && given.stderr.contains("history"), "{given:?}");
    assert_eq!(daemon.task(issue)["state"], "paused");

    // Without the agent's commit: it is a person's right, and the commit is kept.
    daemon.git_in(&checkout, &["switch", "-q", "-C", &branch, "main"]);
    daemon.git_in(&checkout, &["commit", "-q", "--allow-empty", "-m", "From scratch"]);
    daemon.json(&["task", "give", &number(issue)]);
    daemon.wait_until(issue, "its second question", |task| {
        task["state"] == "escalated" && task["generation"] == 2
    });
    let kept = daemon.rescues().iter().any(|rescue| {
        let name = rescue["ref"].as_str().unwrap_or_default();
        let captures = daemon.state().join("projects/shop/captures.git");
        let contains = daemon.git_in(&captures, &["rev-list", name]);
        contains.lines().any(|line| line == agents)
    });
    assert!(kept, "{:?}", daemon.rescues());
    daemon.answer(issue, "The green ones.");
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add the rest", "Add apples", "From scratch", "Open the shop"]);
}

#[test]
fn e2e_a_daemon_that_dies_while_a_task_is_taken_or_given_back_loses_nothing() {
    let daemon = shop().start();
    let issue = taken(&daemon);
    let checkout = daemon.checkout();
    daemon.json(&["task", "take", &number(issue)]);
    daemon.restart();
    assert_eq!(daemon.task(issue)["state"], "paused", "nobody went on with it");
    // Asked again, it brings the same.
    daemon.git_in(&checkout, &["checkout", "-q", "--force", "main"]);
    std::fs::remove_file(checkout.join("src/draft.txt")).unwrap();
    assert_eq!(daemon.json(&["task", "take", &number(issue)])["uncommitted"], true);
    daemon.git_in(&checkout, &["add", "src"]);
    daemon.git_in(&checkout, &["commit", "-q", "-m", "By hand"]);
    daemon.stop_daemon();
    let alone = daemon.run(&["task", "give", &number(issue)]);
    assert_eq!(alone.code, Some(5), "{alone:?}");
    // It dies between the old tree and the new one, and once more when the session is prepared.
    daemon.start_with(&[("POINTSMAN_CRASH_AT", HANDOVER_NAMES[0])]);
    daemon.run(&["task", "give", &number(issue)]);
    daemon.wait_for_death();
    daemon.start_with(&[("POINTSMAN_CRASH_AT", "session-prepared")]);
    daemon.wait_for_death();
    daemon.start();
    daemon.wait_until(issue, "its second question", |task| {
        task["state"] == "escalated" && task["generation"] == 2
    });
    daemon.answer(issue, "The green ones.");
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add the rest", "Add apples", "By hand", "Add apples", "Open the shop"]);
}
