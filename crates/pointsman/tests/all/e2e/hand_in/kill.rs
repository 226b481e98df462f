//! The daemon is killed while something is handed in: there is one pull request, and it lands once.

use pointsman::daemon::crash::{HAND_IN_AGAIN_NAMES, HAND_IN_NAMES};

use super::super::roles::{journal, wait_journal, work};
use super::{factory, over};

#[test]
fn e2e_hand_in_killed_while_it_is_brought_up_to_date_is_one() {
    let daemon = factory().reviewed().file("AGENTS.md", "# Old\n").start();
    work(&daemon, "echo '# Better' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "opened pull request #1");
    daemon.stop_daemon();
    work(&daemon, "echo '# Best' > AGENTS.md\n");
    daemon.start_with(&[("POINTSMAN_CRASH_AT", HAND_IN_AGAIN_NAMES[0])]);
    daemon.json(&["formula", "run", "run-gardener"]);
    daemon.wait_for_death();
    daemon.start();
    wait_journal(&daemon, "gardener", "brought pull request #1 up to date with AGENTS.md");
    daemon.json(&["forge", "pr", "review", "1", "--approve"]);
    wait_journal(&daemon, "gardener", "pull request #1 is on the main branch");
    assert_eq!(daemon.on_main("AGENTS.md").as_deref(), Some("# Best"));
    assert_eq!(over(&daemon), [("gardener".into(), 2.into(), 1.into(), "merged".into())]);
    assert_eq!((daemon.pull_requests().len(), daemon.main_log().len()), (1, 2));
}

#[test]
fn e2e_hand_in_whose_candidate_was_pushed_in_vain_is_still_ours() {
    let daemon = factory().reviewed().file("AGENTS.md", "# Old\n").start();
    work(&daemon, "echo '# Better' > AGENTS.md\nmkdir -p planner && echo 'I know' > planner/MEMORY.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "pull request #1 needs the review of a person");
    // Main moves on, so that what is to land is not the commit that was handed in.
    daemon.json(&["formula", "run", "run-planner"]);
    wait_journal(&daemon, "planner", "pull request #2 needs the review of a person");
    daemon.json(&["forge", "pr", "review", "2", "--approve"]);
    wait_journal(&daemon, "planner", "pull request #2 is on the main branch");
    let branch = daemon.pull_request(1)["head"].as_str().unwrap().to_owned();
    let handed_in = daemon.forge_git(&["rev-parse", &branch]);
    daemon.stop_daemon();
    daemon.start_with(&[("POINTSMAN_CRASH_AT", "landing-branch-pushed")]);
    daemon.json(&["forge", "pr", "review", "1", "--approve"]);
    daemon.wait_for_death();
    assert_ne!(daemon.forge_git(&["rev-parse", &branch]), handed_in, "the candidate");
    // Somebody else changes the same line.
    let (checkout, forge) = (daemon.checkout(), daemon.state().join("projects/shop/forge.git"));
    let forge = forge.to_string_lossy();
    daemon.git_in(&checkout, &["fetch", "--quiet", &forge, "main"]);
    daemon.git_in(&checkout, &["checkout", "--quiet", "--force", "FETCH_HEAD"]);
    std::fs::write(checkout.join("AGENTS.md"), "# Mine\n").unwrap();
    daemon.git_in(&checkout, &["commit", "--quiet", "--message=Mine", "AGENTS.md"]);
    daemon.git_in(&checkout, &["push", "--quiet", &forge, "HEAD:main"]);
    daemon.start();
    daemon.wait_for("the conflict to be told", || {
        // A push past the queue may have stopped the line.
        if daemon.json(&["merge-queue", "status"])["frozen_by_audit"] == true {
            daemon.json(&["merge-queue", "resume"]);
        }
        let out = |line: &String| line.contains("pull request #1 was removed from the merge queue");
        journal(&daemon, "gardener").iter().any(out).then_some(())
    });
    work(&daemon, "echo '# Best' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "brought pull request #1 up to date with AGENTS.md");
    let lines = journal(&daemon, "gardener");
    assert!(!lines.iter().any(|line| line.contains("somebody else")), "{lines:?}");
}

#[test]
fn e2e_hand_in_killed_before_it_is_opened_lands_once() {
    killed_at(&HAND_IN_NAMES[..3]);
}

#[test]
fn e2e_hand_in_killed_after_it_was_opened_lands_once() {
    killed_at(&HAND_IN_NAMES[3..]);
}

#[test]
fn e2e_hand_in_killed_while_it_lands_lands_once() {
    killed_at(&["landing-main-pushed", "landing-tidied", "queue-reported"]);
}

fn killed_at(places: &[&str]) {
    for place in places {
        let daemon = factory().file("AGENTS.md", "# Old\n").start();
        daemon.stop_daemon();
        work(&daemon, "echo '# Fresh' > AGENTS.md\n");
        daemon.start_with(&[("POINTSMAN_CRASH_AT", place)]);
        daemon.json(&["formula", "run", "run-gardener"]);
        daemon.wait_for_death();
        daemon.start();
        wait_journal(&daemon, "gardener", "pull request #1 is on the main branch: AGENTS.md");
        assert_eq!(daemon.main_log(), ["gardener: update AGENTS.md", "Open the shop"], "{place}");
        assert_eq!((daemon.pull_requests().len(), over(&daemon).len()), (1, 1), "{place}");
        let opened = "opened pull request #1 with AGENTS.md";
        assert_eq!(journal(&daemon, "gardener").iter().filter(|line| *line == opened).count(), 1, "{place}");
    }
}
