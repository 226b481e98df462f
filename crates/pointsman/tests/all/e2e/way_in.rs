//! The first day of a new user: a checkout that moves on, a shallow clone, a project without CI, a program that cannot be
//! started.

use std::fs;

use pointsman_testkit::TestDaemon;

use super::shop;

const WORK: &str = "write src/plums.txt plums 2 crowns\ncommit Add plums\npush\nphase awaiting_ci\n";

fn forge_url(daemon: &TestDaemon) -> String {
    daemon.run(&["forge", "url"]).stdout.trim().to_owned()
}

#[test]
fn e2e_sync_moves_main_under_a_running_queue_without_pausing_it() {
    let daemon = shop().start();
    let first = daemon.file_issue("Add plums", &format!("{WORK}expect Merged\nphase done"));
    daemon.wait_closed(first);
    let forge = forge_url(&daemon);
    daemon.git_in(&daemon.checkout(), &["pull", "--quiet", &forge, "main"]);
    fs::write(daemon.checkout().join("src/pears.txt"), "pears 3 crowns\n").unwrap();
    daemon.git_in(&daemon.checkout(), &["add", "src"]);
    daemon.git_in(&daemon.checkout(), &["commit", "--quiet", "--message=Add pears by hand"]);
    assert_eq!(daemon.json(&["sync"])["commits"], 1);
    let script = "write src/figs.txt figs 1 crown\ncommit Add figs\npush\nphase awaiting_ci\nexpect Merged\nphase done";
    let second = daemon.file_issue("Add figs", script);
    daemon.wait_closed(second);
    assert!(daemon.on_main("src/pears.txt").is_some() && daemon.on_main("src/figs.txt").is_some());
    assert!(daemon.json(&["status"])["projects"][0]["line_stopped"].is_null());
}

#[test]
fn e2e_a_shallow_clone_is_a_project_like_any_other() {
    let daemon = shop().unregistered().build();
    let (shop, whole) = (daemon.checkout(), daemon.path("whole"));
    fs::write(shop.join("src/pears.txt"), "pears 3 crowns\n").unwrap();
    daemon.git_in(&shop, &["add", "src"]);
    daemon.git_in(&shop, &["commit", "--quiet", "--message=Second"]);
    fs::rename(&shop, &whole).unwrap();
    let url = format!("file://{}", whole.display());
    let target = shop.to_string_lossy().into_owned();
    daemon.git_in(&whole, &["clone", "--quiet", "--depth=1", &url, &target]);
    fs::copy(whole.join("pointsman.toml"), shop.join("pointsman.toml")).unwrap();
    daemon.start();
    let issue = daemon.file_issue("Add plums", &format!("{WORK}expect Merged\nphase done"));
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log().len(), 2, "{:?}", daemon.main_log());
    // What landed comes back into the shallow clone.
    daemon.git_in(&shop, &["pull", "--quiet", "--ff-only", &forge_url(&daemon), "main"]);
    assert!(shop.join("src/plums.txt").exists());
}

#[test]
fn e2e_without_ci_nothing_anywhere_says_that_ci_passed() {
    let daemon =
        shop().set("ci.kind", "\"none\"").unset("ci.command").set("review.mode", "\"human\"").start();
    let issue = daemon.file_issue("Add plums", &format!("{WORK}expect Merged\nphase done"));
    let pr = daemon.wait_in_review(issue)["pr"].as_u64().unwrap();
    let explained = daemon.run(&["task", "explain", "1"]).stdout;
    let shown = daemon.run(&["forge", "pr", "show", &pr.to_string()]).stdout;
    assert!(shown.contains("CI is off: nothing tests a change before it lands."), "{shown}");
    assert!(explained.contains("CI is off") && !explained.contains("CI passed"), "{explained}");
    assert_eq!(daemon.task(issue)["ci"], "none");
    let prompt = daemon.prompt(issue, 1);
    assert!(!prompt.contains("CI passed") && prompt.contains("This project has no CI"), "{prompt}");
    daemon.approve(issue);
    daemon.wait_closed(issue);
    assert!(!daemon.transcript(issue).contains("CI passed"));
}

/// An agent in the repository itself, as a new user has it.
const AGENT: &str = "#!/bin/sh\necho hello > src/hello.txt\ngit add -A && git commit -qm Hello && git push -q origin HEAD\n\
    echo PHASE:awaiting_ci > \"$PHASE_FILE\"\nwhile read -r line; do case $line in *'] Merged'*) \
    echo PHASE:done > \"$PHASE_FILE\";; esac; done\n";

fn reason(daemon: &TestDaemon, issue: u64) -> String {
    daemon.wait_state(issue, "blocked")["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn e2e_a_program_that_cannot_be_started_is_said_to_be_exactly_that_until_it_can() {
    let daemon = shop().start();
    let settings = daemon.checkout().join("pointsman.toml");
    let text = fs::read_to_string(&settings).unwrap();
    let text: String = text
        .lines()
        .map(|line| {
            if line.starts_with("command = [") && line.contains("rehearsal") {
                "command = [\"./agent.sh\"]"
            } else {
                line
            }
        })
        .map(|line| format!("{line}\n"))
        .collect();
    // The daemon reads the file by itself, asks for what can run something, and says which key has changed.
    fs::write(&settings, text).unwrap();
    let question = daemon.wait_for("the changed command to be asked about", || {
        let inbox = daemon.json(&["inbox"]);
        inbox.as_array().unwrap().iter().find(|question| question["kind"] == "trust").cloned()
    });
    let shown = daemon.run(&["inbox", "show", &question["id"].to_string()]).stdout;
    assert!(shown.contains("agent.command:") && shown.contains("./agent.sh"), "{shown}");
    daemon.json(&["inbox", "approve", &question["id"].to_string()]);
    daemon.wait_for("the settings are read", || {
        let events = daemon.run(&["events", "--json", "--kind", "settings_changed"]).stdout;
        events.contains("agent.command").then_some(())
    });

    let issue = daemon.file_issue_with("Say hello", "Hello.");
    assert!(reason(&daemon, issue).contains("./agent.sh is not found"), "{}", reason(&daemon, issue));

    // It is in the checkout, and nobody else can see it.
    fs::write(daemon.checkout().join("agent.sh"), AGENT).unwrap();
    daemon.run(&["task", "restart", "#1"]);
    daemon.wait_for("it is said to be in the checkout alone", || {
        reason(&daemon, issue).contains("in your checkout but not on main").then_some(())
    });

    // It is on main, without its bit; a new tree is made from there.
    daemon.git_in(&daemon.checkout(), &["add", "agent.sh"]);
    daemon.git_in(&daemon.checkout(), &["commit", "--quiet", "--message=Add the agent"]);
    assert_eq!(daemon.run(&["sync"]).code, Some(0));
    daemon.run(&["task", "restart", "1"]);
    daemon.wait_for("its tree is said to be older", || {
        reason(&daemon, issue).contains("the tree of this task is older").then_some(())
    });
    daemon.run(&["task", "restart", "1", "--fresh"]);
    daemon.wait_for("it is said not to be executable", || {
        reason(&daemon, issue).contains("on main but not executable").then_some(())
    });

    daemon.git_in(&daemon.checkout(), &["update-index", "--chmod=+x", "agent.sh"]);
    daemon.git_in(&daemon.checkout(), &["commit", "--quiet", "--message=Make it a program"]);
    assert_eq!(daemon.run(&["sync"]).code, Some(0));
    assert_eq!(daemon.run(&["task", "restart", "1", "--fresh"]).code, Some(0));
    daemon.wait_closed(issue);
    assert!(daemon.on_main("src/hello.txt").is_some());
}

#[test]
fn e2e_a_fresh_restart_keeps_the_old_work_and_begins_from_todays_main() {
    let script =
        "write src/old.txt an idea\ncommit An idea\npush\nwrite src/loose.txt not committed\nexpect Answer";
    let daemon = shop().start();
    let issue = daemon.file_issue("Two ways", script);
    daemon.wait_session(issue, 1);
    daemon.wait_for("the first work is there", || {
        daemon.tree(issue).join("src/loose.txt").exists().then_some(())
    });
    assert_eq!(daemon.run(&["task", "restart", "1", "--fresh"]).code, Some(0));
    daemon.wait_session(issue, 2);
    daemon.wait_for("the new session has done the same again", || {
        daemon.tree(issue).join("src/loose.txt").exists().then_some(())
    });
    let log = daemon.git_in(&daemon.tree(issue), &["log", "--format=%s", "origin/main..HEAD"]);
    assert_eq!(log, "An idea", "the new branch begins at main");
    assert!(!daemon.rescues().is_empty(), "the old work is kept");
    assert!(!daemon.prompt(issue, 2).contains("You are a continuation"), "{}", daemon.prompt(issue, 2));
}

#[test]
fn e2e_a_wrong_file_leaves_the_settings_from_before_in_force_and_is_told() {
    let daemon = shop().start();
    let settings = daemon.checkout().join("pointsman.toml");
    let good = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, format!("{good}\n[dev2]\nconcurrency = 2\n")).unwrap();
    let problem = daemon.wait_for("the mistake is told", || {
        let status =
            daemon.run(&["--project", "shop", "-C", "/", "events", "--json", "--kind", "settings_refused"]);
        status.stdout.contains("goes on with its settings from before").then_some(status.stdout)
    });
    assert!(problem.contains("unknown key"), "{problem}");
    fs::write(&settings, good).unwrap();
    let issue = daemon.file_issue("Add plums", &format!("{WORK}expect Merged\nphase done"));
    daemon.wait_closed(issue);
}
