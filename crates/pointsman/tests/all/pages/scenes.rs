//! Scenes in which the pages' commands are carried out, and the list of blocks that no test carries out.

use std::fs;

use pointsman_testkit::source;

use super::new_user::NewUser;
use super::page::{self, Block};
use super::{readme, tutorial};
use crate::e2e::sandbox_works;

/// Blocks that no test carries out: page, first line and reason, separated by ` | `.
const NOT_PLAYED: &str = include_str!("not_played.txt");
/// At most so many blocks of a hundred may be on that list.
const NOT_PLAYED_PERCENT: usize = 15;

/// The blocks of one section, and what its reader has before they begin.
struct Scene {
    page: &'static str,
    section: &'static str,
    set: fn(&NewUser),
}

const fn scene(page: &'static str, section: &'static str, set: fn(&NewUser)) -> Scene {
    Scene { page, section, set }
}

const SCENES: [Scene; 13] = [
    scene("docs/how-to.md", "…review in the morning", morning),
    scene("docs/how-to.md", "…work alongside the agents", project),
    scene("docs/how-to.md", "…find out why an agent is stuck", stuck),
    scene("docs/how-to.md", "…run it as a service", service),
    scene("docs/how-to.md", "…write a formula", project),
    scene("docs/how-to.md", "…reduce costs", stuck),
    scene("docs/how-to.md", "…give CI what it needs from the network", project),
    scene("docs/install.md", "As a service", service),
    scene("docs/install.md", "Upgrade", stuck),
    scene("docs/install.md", "Uninstall", stuck),
    scene("docs/claude-code.md", "Your own session: from claim to close", issue),
    scene("docs/operations.md", "Backup", stuck),
    scene("docs/resilience.md", "Checkpoints and rescues", rescued),
];

const AGENT: &str = r#"#!/bin/sh
work() {
    echo "$1" >> "file-$ISSUE.txt"
    git add -A && git commit -qm "Work (#$ISSUE)" && git push -q origin HEAD
    echo PHASE:awaiting_ci > "$PHASE_FILE"
}
if grep -q bucket "$POINTSMAN_INBOX/0000-task.md"; then
    printf 'PHASE:escalate\nReason: %s\n' 'Which bucket shall I use?' > "$PHASE_FILE"
elif grep -q fixture "$POINTSMAN_INBOX/0000-task.md"; then
    echo begun > half.txt
else
    work Work
fi
while read -r line; do
    case $line in
        *'] CI passed'*) echo PHASE:awaiting_review > "$PHASE_FILE" ;;
        *'] Merged'*) echo PHASE:done > "$PHASE_FILE" ;;
        *'] Answer'* | *'] Changes requested'*) work "$line" ;;
    esac
done
"#;

/// A project with an agent, and a daemon.
fn project(user: &NewUser) {
    user.write("agent.sh", AGENT);
    user.write("ci.sh", "#!/bin/sh\ntrue\n");
    user.write("README.md", "# A shop\n");
    user.shell(
        "git init --quiet -b main && chmod +x *.sh && git add . && git commit --quiet -m 'A shop'
         pointsman init --yes --agent ./agent.sh && mkdir ~/phases
         sed -i \"s|^\\[dev\\]|[dev]\\nphase_dir = \\\"$HOME/phases\\\"\\nconcurrency = 5|\" pointsman.toml
         pointsman project add --yes . && pointsman up --detach",
    );
}

fn file_issue(user: &NewUser, title: &str, body: &str) {
    user.shell(&format!("pointsman forge issue create --label backlog --title '{title}' --body '{body}'"));
}

/// Two pull requests and a question, one after another, so that their numbers are known.
fn morning(user: &NewUser) {
    project(user);
    file_issue(user, "Rename the basket", "");
    user.until_printed("pointsman inbox", "pull request 2 ");
    file_issue(user, "Add a currency", "");
    user.until_printed("pointsman inbox", "pull request 4 ");
    file_issue(user, "Upload the report", "Put it into a bucket.");
    user.until_printed("pointsman inbox", "Which bucket");
}

/// Issue 1, whose agent has begun and waits.
fn stuck(user: &NewUser) {
    project(user);
    file_issue(user, "Test the basket", "Use the fixture.");
    user.until_printed("cat ~/.local/state/pointsman/projects/*/sessions/*/tree/half.txt", "begun");
}

/// The same, taken up by a second session in a new tree.
fn rescued(user: &NewUser) {
    stuck(user);
    user.shell("pointsman task restart 1 --fresh");
    user.until_printed("pointsman rescue list", "rescue/dev-shop-1.1/1");
}

/// A project whose issue 1 nobody has begun.
fn issue(user: &NewUser) {
    project(user);
    user.shell("pointsman forge issue create --title 'Fix the race'");
}

/// A systemd that agrees to everything.
fn service(user: &NewUser) {
    user.install("systemctl", "#!/bin/sh\nexit 0\n");
}

/// Carries out the blocks of a page, section by section.
fn play(page: &str) {
    if !sandbox_works() {
        return;
    }
    let blocks = page::blocks(&page::read(page));
    for scene in SCENES.iter().filter(|scene| scene.page == page) {
        let user = NewUser::new("shop");
        (scene.set)(&user);
        for block in blocks.iter().filter(|block| block.section == scene.section) {
            user.shell(&block.commands);
            user.wait_for_promises(block);
        }
    }
}

#[test]
fn e2e_the_how_tos_work() {
    play("docs/how-to.md");
}

#[test]
fn e2e_what_the_page_about_installing_says_works_and_nothing_is_left() {
    play("docs/install.md");
}

#[test]
fn e2e_what_the_pages_for_operators_say_works() {
    ["docs/claude-code.md", "docs/operations.md", "docs/resilience.md"].into_iter().for_each(play);
}

/// Every block of commands of the repository, with its page.
fn all() -> Vec<(String, Block)> {
    let pages = source::files().into_iter().filter(|file| file.is_markdown());
    let of = |file: source::SourceFile| {
        page::blocks(&file.text).into_iter().map(move |block| (file.path.clone(), block))
    };
    pages.flat_map(of).collect()
}

fn is_played(page: &str, block: &Block) -> bool {
    let is_here = |scene: &Scene| scene.page == page && scene.section == block.section;
    page == tutorial::PAGE
        || page == "README.md" && block.section == readme::SECTION
        || SCENES.iter().any(is_here)
}

#[test]
fn every_block_of_commands_is_carried_out_or_has_a_reason() {
    let all = all();
    let listed: Vec<Vec<&str>> = NOT_PLAYED.lines().map(|line| line.split(" | ").collect()).collect();
    assert!(
        listed.iter().all(|entry| entry.len() == 3 && !entry[2].is_empty()),
        "page | first line | reason"
    );
    let is_listed = |page: &str, block: &Block| {
        listed.iter().any(|entry| entry[0] == page && Some(entry[1]) == block.commands.lines().next())
    };
    for (page, block) in &all {
        let is_known = is_played(page, block) != is_listed(page, block);
        assert!(
            is_known,
            "{page}, {}: not carried out, or listed although it is:\n{}",
            block.section, block.commands
        );
    }
    let unplayed = all.iter().filter(|(page, block)| is_listed(page, block)).count();
    assert_eq!(unplayed, listed.len(), "not_played.txt has an entry for a block that is gone");
    assert!(
        unplayed * 100 <= all.len() * NOT_PLAYED_PERCENT,
        "{unplayed} of {} are not carried out",
        all.len()
    );
    for scene in &SCENES {
        let is_there = all.iter().any(|(page, block)| page == scene.page && block.section == scene.section);
        assert!(is_there, "{} has no commands in {}", scene.page, scene.section);
    }
    assert!(fs::exists(page::root().join(tutorial::PAGE)).unwrap());
}
