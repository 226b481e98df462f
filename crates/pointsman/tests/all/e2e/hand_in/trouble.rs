//! Something is in the way of what a role hands in: nothing is lost, and people are told once.

use pointsman_testkit::fake_forgejo::{FakeForgejo, OWNER, Rules};

use super::super::forgejo;
use super::super::roles::{answering, journal, wait_journal, work};
use super::factory;

#[test]
fn e2e_hand_in_that_the_forge_refuses_is_told_once_and_tried_again() {
    let daemon = factory().file("AGENTS.md", "# Old\n").start();
    // Nothing can lie below a branch.
    daemon.forge_git(&["branch", "pointsman", "main"]);
    work(&daemon, "echo '# Fresh' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    let told = "shop: what the gardener handed in cannot be opened as a pull request";
    let notices = || daemon.notices().iter().filter(|notice| notice["title"] == told).count();
    daemon.wait_for("people to be told", || (notices() == 1).then_some(()));
    daemon.forge_git(&["branch", "--delete", "--force", "pointsman"]);
    wait_journal(&daemon, "gardener", "pull request #1 is on the main branch: AGENTS.md");
    assert_eq!(notices(), 1);
}

#[test]
fn e2e_hand_in_that_may_not_be_brought_up_to_date_is_told_once_and_tried_again() {
    let daemon = factory().reviewed().file("AGENTS.md", "# Old\n").start();
    work(&daemon, "echo '# Better' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "needs the review of a person");
    // A rule of the forge: branches are made and not moved.
    daemon.forge_git(&["config", "receive.denyNonFastForwards", "true"]);
    work(&daemon, "echo '# Best' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    let told = "shop: pull request #1 of the gardener cannot be brought up to date";
    let notices = || daemon.notices().iter().filter(|notice| notice["title"] == told).count();
    daemon.wait_for("people to be told", || (notices() == 1).then_some(()));
    daemon.forge_git(&["config", "--unset", "receive.denyNonFastForwards"]);
    wait_journal(&daemon, "gardener", "brought pull request #1 up to date with AGENTS.md");
    assert_eq!(notices(), 1);
}

#[test]
fn e2e_hand_in_of_a_tree_that_cannot_be_captured_stays_until_it_can() {
    let daemon = factory().file("AGENTS.md", "# Old\n").start();
    let captures = daemon.state().join("projects/shop/captures.git");
    // Nothing can lie below a reference.
    let rescue = "refs/pointsman/rescue/gardener-shop-1.1";
    work(&daemon, "echo '# Fresh' > AGENTS.md\necho $$ > \"$HOME/pid\"\n");
    let main = daemon.forge_git(&["rev-parse", "main"]);
    daemon.wait_for("the captures", || captures.join("HEAD").exists().then_some(()));
    daemon.git_in(&captures, &["fetch", "--quiet", &daemon.checkout().to_string_lossy(), "main"]);
    daemon.git_in(&captures, &["update-ref", rescue, &main]);
    daemon.json(&["formula", "run", "run-gardener"]);
    daemon.wait_for("its session to be taken down", || {
        let pid = std::fs::read_to_string(daemon.path("home/pid")).ok().filter(|pid| pid.ends_with('\n'))?;
        (!std::path::Path::new("/proc").join(pid.trim()).exists()).then_some(())
    });
    daemon.git_in(&captures, &["update-ref", "-d", rescue]);
    wait_journal(&daemon, "gardener", "pull request #1 is on the main branch: AGENTS.md");
    assert_eq!(daemon.git_in(&captures, &["show", &format!("{rescue}/1:AGENTS.md")]), "# Fresh");
}

#[test]
fn e2e_hand_in_is_tested_once_where_the_forge_takes_no_status() {
    let fake = FakeForgejo::start(Rules { statuses: false, ..Rules::default() });
    let ci = "#!/bin/sh\necho once >> \"$HOME/tested\"\n";
    let setup =
        forgejo::on(&fake).reviewed().agent(&answering()).file("ci.sh", ci).file("AGENTS.md", "# Old\n");
    let daemon = forgejo::start(&fake, setup);
    work(&daemon, "echo '# Fresh' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "needs the review of a person");
    let [number] = fake.pulls().try_into().unwrap();
    fake.review(number, OWNER, "APPROVED", "Good.", &[]);
    wait_journal(&daemon, "gardener", &format!("pull request #{number} is on the main branch: AGENTS.md"));
    let tested = std::fs::read_to_string(daemon.path("home/tested")).unwrap();
    assert_eq!(tested, "once\n", "the merge queue knows what was tested, too");
}

#[test]
fn e2e_hand_in_whose_ci_says_nothing_is_told_once_and_the_next_run_takes_its_place() {
    let fake = FakeForgejo::start(Rules::default());
    let setup =
        forgejo::on(&fake).unset("ci.command").set("ci.kind", "\"forge\"").set("timing.ci_timeout", "\"1s\"");
    let daemon = forgejo::start(&fake, setup.agent(&answering()).file("AGENTS.md", "# Old\n"));
    work(&daemon, "echo '# Fresh' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    let told = "has no CI result";
    wait_journal(&daemon, "gardener", told);
    work(&daemon, "echo '# Fresher' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "brought pull request #1 up to date");
    daemon.wait_for("the other commit to be told of", || {
        (journal(&daemon, "gardener").iter().filter(|line| line.contains(told)).count() == 2).then_some(())
    });
    let notices = daemon.notices();
    let told =
        |notice: &&serde_json::Value| notice["title"].as_str().is_some_and(|title| title.contains(told));
    assert_eq!(notices.iter().filter(told).count(), 2, "once for each commit: {notices:?}");
}

#[test]
fn e2e_hand_in_that_was_red_lands_when_the_next_run_writes_the_same_on_another_main() {
    // What makes it red is not in it.
    let ci = "#!/bin/sh\n! grep -q Fresh AGENTS.md || [ -e planner/MEMORY.md ]\n";
    let daemon = factory().file("ci.sh", ci).file("AGENTS.md", "# Old\n").start();
    work(&daemon, "echo '# Fresh' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "pull request #1 is red");
    work(&daemon, "mkdir -p planner && echo 'I know' > planner/MEMORY.md\n");
    daemon.json(&["formula", "run", "run-planner"]);
    wait_journal(&daemon, "planner", "pull request #2 is on the main branch");
    work(&daemon, "echo '# Fresh' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "brought pull request #1 up to date with AGENTS.md");
    wait_journal(&daemon, "gardener", "pull request #1 is on the main branch: AGENTS.md");
    assert_eq!(daemon.on_main("AGENTS.md").as_deref(), Some("# Fresh"));
}
