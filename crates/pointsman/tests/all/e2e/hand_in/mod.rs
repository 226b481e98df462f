//! Files that roles hand in: what rules allow, as one pull request, through the merge queue, and nothing else.

mod kill;
mod trouble;

use pointsman_testkit::fake_forgejo::{FakeForgejo, OWNER, Rules};
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::health::make_due;
use super::roles::{answering, asked, journal, looked_at, says, wait_journal, work};
use super::{clean, forgejo, shop};

/// The files of roles steer agents, which a person would have to approve.
fn factory() -> Setup {
    shop().agent(&answering()).set("merge.protected", "[]")
}

fn over(daemon: &TestDaemon) -> Vec<(Value, Value, Value, Value)> {
    let events = daemon.run(&["events", "--kind", "hand_in_over", "--json"]).stdout;
    let told = |line: &str| {
        let data = serde_json::from_str::<Value>(line).unwrap()["data"].clone();
        (data["role"].clone(), data["run"].clone(), data["pr"].clone(), data["outcome"].clone())
    };
    events.lines().map(told).collect()
}

const HOSTILE: &str = r#"
mkdir -p docs .claude/agents src
echo 'evil' > src/lemons.txt
echo 'evil' > .claude/agents/AGENTS.md
git config user.name '$(touch /tmp/pwned)' && git config user.email 'root@localhost'
"#;

#[test]
fn e2e_hand_in_lands_exactly_the_allowed_files_once() {
    let daemon = factory().file("AGENTS.md", "# Old\n").start();
    let commit = "git add --all && git commit --quiet -m 'merge: by the person in charge'";
    let hostile = format!("{HOSTILE}\necho '# New' > docs/AGENTS.md\n{commit}\necho '# Fresh' > AGENTS.md\n");
    work(&daemon, &hostile);
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "pull request #1 is on the main branch: AGENTS.md, docs/AGENTS.md");
    assert_eq!(
        daemon.main_log(),
        ["gardener: update AGENTS.md and 1 more", "Open the shop"],
        "one commit, in our words"
    );
    let changed = daemon.forge_git(&["diff", "--name-only", "main~1", "main"]);
    assert_eq!(changed, "AGENTS.md\ndocs/AGENTS.md");
    assert_eq!(daemon.on_main("AGENTS.md").as_deref(), Some("# Fresh"));
    let by = daemon.forge_git(&["log", "-1", "--format=%an <%ae> %cn", "main"]);
    assert_eq!(by, "Pointsman <pointsman@localhost> Pointsman");
    let lines = journal(&daemon, "gardener");
    for told in [
        "opened pull request #1 with AGENTS.md, docs/AGENTS.md",
        "refused: src/lemons.txt, which is not one of its files",
        "refused: .claude/agents/AGENTS.md, which is not one of its files",
    ] {
        assert_eq!(lines.iter().filter(|line| *line == told).count(), 1, "{told}: {lines:?}");
    }
    assert_eq!(over(&daemon), [("gardener".into(), 1.into(), 1.into(), "merged".into())]);
    let [pr] = daemon.pull_requests().try_into().unwrap();
    assert_eq!((&pr["state"], &pr["merged"]), (&"closed".into(), &true.into()), "{pr}");
    daemon.wait_for("its branch to go", || {
        (daemon.forge_git(&["branch", "--format=%(refname:short)"]) == "main").then_some(())
    });
    // All that it did is kept.
    assert!(daemon.rescues().iter().any(|kept| kept["session"] == "gardener-shop-1.1"));
}

#[test]
fn e2e_hand_in_of_links_and_giants_is_refused() {
    let daemon = factory().file("AGENTS.md", "# Old\n").file("docs/AGENTS.md", "# Docs\n").start();
    work(
        &daemon,
        &format!(
            "{HOSTILE}\nrm AGENTS.md && ln -s /etc/passwd AGENTS.md\nrm docs/AGENTS.md\n\
             mkdir -p big bytes && head -c 10485760 /dev/zero | tr '\\0' x > big/AGENTS.md\n\
             printf '\\377\\376' > bytes/AGENTS.md\ngit init --quiet sub && echo x > sub/AGENTS.md\n"
        ),
    );
    daemon.json(&["formula", "run", "run-gardener"]);
    for told in [
        "refused: AGENTS.md, which is not a regular file, or became another kind of file",
        "refused: docs/AGENTS.md, which was deleted",
        "refused: big/AGENTS.md, which is too large",
        "refused: bytes/AGENTS.md, which is not text",
        "refused: src/lemons.txt, which is not one of its files",
    ] {
        wait_journal(&daemon, "gardener", told);
    }
    // Told in one go with what was taken, which is nothing.
    assert!(daemon.pull_requests().is_empty());
    assert_eq!(daemon.main_log(), ["Open the shop"]);
}

#[test]
fn e2e_hand_in_waits_for_a_person_where_people_review_and_a_dismissed_one_stays_away() {
    let daemon = factory().reviewed().file("AGENTS.md", "# Old\n").start();
    work(&daemon, "echo '# Unwanted' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "pull request #1 needs the review of a person");
    assert_eq!(daemon.on_main("AGENTS.md").as_deref(), Some("# Old"));
    let asked = "shop: pull request #1 of the gardener needs your review";
    let asks = || daemon.notices().iter().filter(|notice| notice["title"] == asked).count();
    daemon.wait_for(asked, || (asks() > 0).then_some(()));
    assert_eq!(asks(), 1);
    daemon.json(&["forge", "pr", "close", "1"]);
    wait_journal(&daemon, "gardener", "pull request #1 was closed by somebody");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "run 2 handed in something that somebody closed before");
    assert_eq!(daemon.pull_requests().len(), 1);

    // Something else, which is brought up to date by the next run before anybody has looked at it.
    work(&daemon, "echo '# Better' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "opened pull request #2 with AGENTS.md");
    let before = daemon.pull_request(2)["head_sha"].clone();
    work(&daemon, "echo '# Best' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "brought pull request #2 up to date with AGENTS.md");
    assert_ne!(daemon.pull_request(2)["head_sha"], before);
    daemon.json(&["forge", "pr", "review", "2", "--approve"]);
    wait_journal(&daemon, "gardener", "pull request #2 is on the main branch");
    assert_eq!(daemon.on_main("AGENTS.md").as_deref(), Some("# Best"));
    // What is over is let go of when the next run is.
    work(&daemon, "");
    daemon.json(&["formula", "run", "run-gardener"]);
    daemon.wait_for("its commits to be let go of", || {
        let mirror = daemon.state().join("projects/shop/mirror.git");
        daemon.git_in(&mirror, &["for-each-ref", "refs/pointsman/hand-in"]).is_empty().then_some(())
    });
    assert_eq!(
        over(&daemon),
        [
            ("gardener".into(), 1.into(), 1.into(), "dismissed".into()),
            ("gardener".into(), 4.into(), 2.into(), "merged".into()),
        ]
    );
    assert_eq!(daemon.pull_requests().len(), 2);
}

#[test]
fn e2e_hand_in_of_the_planner_carries_its_notes_on() {
    let daemon = factory().reviewed().start();
    let note = |day: &str| {
        format!(
            "mkdir -p planner/journal\necho {day} >> planner/MEMORY.md\necho {day} > planner/journal/{day}.md\n\
             echo '# Mine now' > AGENTS.md\n"
        )
    };
    work(&daemon, &note("monday"));
    daemon.json(&["formula", "run", "run-planner"]);
    wait_journal(
        &daemon,
        "planner",
        "opened pull request #1 with planner/MEMORY.md, planner/journal/monday.md",
    );
    work(&daemon, &note("tuesday"));
    daemon.json(&["formula", "run", "run-planner"]);
    wait_journal(&daemon, "planner", "brought pull request #1 up to date");
    daemon.json(&["forge", "pr", "review", "1", "--approve"]);
    wait_journal(&daemon, "planner", "pull request #1 is on the main branch");
    assert_eq!(daemon.on_main("planner/MEMORY.md").as_deref(), Some("monday\ntuesday"));
    let changed = daemon.forge_git(&["diff", "--name-only", "main~1", "main"]);
    assert_eq!(changed, "planner/MEMORY.md\nplanner/journal/monday.md\nplanner/journal/tuesday.md");
    assert_eq!(daemon.main_log().len(), 2);
}

#[test]
fn e2e_hand_in_agents_md_is_refreshed_when_main_has_moved_and_asked_about_once() {
    let daemon = shop()
        .set("roles.gardener.enabled", "true")
        .set("roles.gardener.command", r#"["bash", "-c", '. "$HOME/gardener.sh"']"#)
        .set("limits.gardener_refresh", "1")
        .set("merge.protected", "[]")
        .file("AGENTS.md", "# Old\n")
        .build();
    std::fs::write(daemon.path("home/gardener.sh"), answering()).unwrap();
    says(&daemon, &json!({ "lines": [] }));
    work(&daemon, "echo '# Fresh' > AGENTS.md; echo evil > src/lemons.txt");
    daemon.start();
    // Nothing has landed since it was written: nobody is asked.
    look_again(&daemon);
    assert_eq!(daemon.json(&["run", "list"]), json!([]));
    let issue = daemon.file_issue("Apples", &clean("apples"));
    daemon.wait_closed(issue);
    make_due(&daemon, "run-gardener");
    wait_journal(&daemon, "gardener", "is on the main branch: AGENTS.md");
    let asked = asked(&daemon);
    assert!(
        asked.contains("- AGENTS.md: commits on the main branch since it was last checked: 1\n"),
        "{asked}"
    );
    assert_eq!(daemon.on_main("AGENTS.md").as_deref(), Some("# Fresh"));
    assert_eq!(daemon.main_log(), ["gardener: update AGENTS.md", "Add apples", "Open the shop"]);
    // That it landed is no reason to ask again.
    look_again(&daemon);
    assert_eq!(daemon.json(&["run", "list"]).as_array().map(Vec::len), Some(1));
    assert_eq!(daemon.main_log().len(), 3);
}

/// Waits until the gardener has looked once more.
fn look_again(daemon: &TestDaemon) {
    let before = looked_at(daemon, "gardener");
    make_due(daemon, "run-gardener");
    daemon.wait_for("another look", || (looked_at(daemon, "gardener") > before).then_some(()));
}

#[test]
fn e2e_hand_in_on_a_server_is_tested_reviewed_and_landed() {
    let fake = FakeForgejo::start(Rules::default());
    let setup = forgejo::on(&fake).reviewed().agent(&answering()).file("AGENTS.md", "# Old\n");
    let daemon = forgejo::start(&fake, setup);
    work(&daemon, "echo '# Fresh' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-gardener"]);
    // Our CI has run on it: nobody else would.
    wait_journal(&daemon, "gardener", "needs the review of a person");
    let [number] = fake.pulls().try_into().unwrap();
    fake.review(number, OWNER, "APPROVED", "Good.", &[]);
    wait_journal(&daemon, "gardener", &format!("pull request #{number} is on the main branch: AGENTS.md"));
    assert_eq!(forgejo::main_log(&fake, &daemon), ["gardener: update AGENTS.md", "Open the shop"]);
    assert!(fake.pull(number).merged_as.is_some());
    assert_eq!(fake.pulls().len(), 1);
}

/// Approves whatever it is shown.
const REVIEWER: &str = "#!/bin/sh\necho '{\"verdict\": \"APPROVE\", \"verdict_reason\": \"good\"}' > \
    \"$POINTSMAN_RESULT_FILE\"\n";

#[test]
fn e2e_hand_in_is_reviewed_by_the_program_and_what_steers_agents_by_a_person_too() {
    let daemon = shop()
        .agent(&answering())
        .set("review.mode", "\"agent\"")
        .set("review.command", "[\"./review.sh\"]")
        .file("review.sh", REVIEWER)
        .file("AGENTS.md", "# Old\n")
        .start();
    work(&daemon, "mkdir -p planner && echo 'I know' > planner/MEMORY.md\necho '# Fresh' > AGENTS.md\n");
    daemon.json(&["formula", "run", "run-planner"]);
    wait_journal(&daemon, "planner", "pull request #1 is on the main branch: planner/MEMORY.md");
    daemon.json(&["formula", "run", "run-gardener"]);
    wait_journal(&daemon, "gardener", "pull request #2 needs the review of a person");
    let verdict = |pr: u64| daemon.pull_request(pr)["reviews"][0]["verdict"].clone();
    assert_eq!((verdict(1), verdict(2)), ("approve".into(), "discuss".into()));
    assert_eq!(daemon.on_main("AGENTS.md").as_deref(), Some("# Old"));
    daemon.json(&["forge", "pr", "review", "2", "--approve"]);
    wait_journal(&daemon, "gardener", "pull request #2 is on the main branch: AGENTS.md");
    assert_eq!(daemon.main_log().len(), 3);
}

#[test]
fn e2e_hand_in_that_is_red_waits_and_a_person_brings_it_back() {
    let ci = "#!/bin/sh\nif [ -e \"$HOME/red\" ]; then grep -q Old AGENTS.md; fi\n";
    let daemon = factory().file("ci.sh", ci).file("AGENTS.md", "# Old\n").start();
    std::fs::write(daemon.path("home/red"), "").unwrap();
    work(&daemon, "echo '# Fresh' > AGENTS.md\n");
    let branch = format!("pointsman/gardener-1-{}", {
        daemon.json(&["formula", "run", "run-gardener"]);
        wait_journal(&daemon, "gardener", "pull request #1 is red");
        let head = daemon.pull_request(1)["head_sha"].as_str().unwrap().to_owned();
        head[..10].to_owned()
    });
    assert_eq!(daemon.pull_request(1)["head"], branch.as_str());
    // Main moves on meanwhile, so that what lands is not the commit that was handed in.
    std::fs::remove_file(daemon.path("home/red")).unwrap();
    work(&daemon, "mkdir -p planner && echo 'I know' > planner/MEMORY.md\n");
    daemon.json(&["formula", "run", "run-planner"]);
    wait_journal(&daemon, "planner", "pull request #2 is on the main branch");
    daemon.json(&["merge-queue", "add", &branch]);
    wait_journal(&daemon, "gardener", "pull request #1 is on the main branch: AGENTS.md");
    assert_eq!(over(&daemon)[1], ("gardener".into(), 1.into(), 1.into(), "merged".into()));
    assert_eq!(daemon.on_main("AGENTS.md").as_deref(), Some("# Fresh"));
}
