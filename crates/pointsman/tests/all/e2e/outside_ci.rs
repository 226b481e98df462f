//! CI on servers: whatever reports to the forge, and Woodpecker by its own API. The test plays the machinery.

use std::time::{Duration, Instant};

use pointsman_testkit::TestDaemon;
use pointsman_testkit::fake_forgejo::{FakeForgejo, Faults, Rules};
use pointsman_testkit::fake_woodpecker::{FakeWoodpecker, TOKEN};

use super::LAND;
use super::forgejo::{enter, entry, file, main_log, on, start};

/// A list with a bug in it, which is mended when CI says so.
fn mended(fruit: &str) -> String {
    format!(
        "write src/{fruit}.txt {fruit} BUG\ncommit Add {fruit}\npush\nphase awaiting_ci\nexpect CI failed\n\
         write src/{fruit}.txt {fruit} 3 crowns\ncommit Mend {fruit}\npush\nphase awaiting_ci\n{LAND}"
    )
}

/// The commits of all branches but main.
fn heads(fake: &FakeForgejo, daemon: &TestDaemon) -> Vec<String> {
    let listed = daemon
        .git_in(fake.repository(), &["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads"]);
    let branches = listed.lines().filter_map(|line| line.split_once(' '));
    branches.filter(|(name, _)| *name != "refs/heads/main").map(|(_, sha)| sha.to_owned()).collect()
}

fn has_bug(fake: &FakeForgejo, daemon: &TestDaemon, sha: &str) -> bool {
    let listed = daemon.git_in(fake.repository(), &["ls-tree", "-r", "--name-only", sha, "src"]);
    listed
        .lines()
        .any(|file| daemon.git_in(fake.repository(), &["show", &format!("{sha}:{file}")]).contains("BUG"))
}

#[test]
fn e2e_outside_ci_the_forges_checks_of_exactly_this_commit_decide() {
    let fake = FakeForgejo::start(Rules::default());
    let setup = on(&fake).unset("ci.command").set("ci.kind", "\"forge\"").set("ci.poll", "\"50ms\"");
    let daemon = start(&fake, setup.set("ci.required", "[\"ci/build\"]"));
    let issue = file(&fake, "Add apples", &mended("apples"));
    daemon.wait_for("the task to be closed", || {
        for sha in heads(&fake, &daemon) {
            if fake.statuses(&sha).is_empty() {
                fake.set_status(&sha, "flaky/extra", "failure");
                let word = if has_bug(&fake, &daemon, &sha) { "failure" } else { "success" };
                fake.set_status(&sha, "ci/build", "pending");
                fake.set_status(&sha, "ci/build", word);
            }
        }
        (daemon.task(issue)["state"] == "closed").then_some(())
    });
    assert_eq!(main_log(&fake, &daemon), ["Mend apples", "Add apples", "Open the shop"]);
    assert_eq!(daemon.task(issue)["attempts"]["ci_fixes"], 1);
}

#[test]
fn e2e_outside_ci_woodpecker_decides_and_its_own_trouble_costs_no_fix() {
    let (fake, ci) = (FakeForgejo::start(Rules::default()), FakeWoodpecker::start("3.17.0"));
    let setup = on(&fake).unset("ci.command").set("ci.kind", "\"woodpecker\"").set("ci.poll", "\"50ms\"");
    let setup = setup.set("woodpecker.url", &format!("{:?}", ci.url())).daemon_env("WOODPECKER_TOKEN", TOKEN);
    let daemon = start(&fake, setup);
    let issue = file(&fake, "Add pears", &mended("pears"));
    daemon.wait_for("the task to be closed", || {
        for sha in heads(&fake, &daemon) {
            let known = ci.pipelines();
            if !known.iter().any(|(_, _, commit, _)| *commit == sha) {
                let run = ci.run("push", &sha);
                ci.end(run, "failure", &[("clone", 128, "fatal: unable to access the repository")]);
            }
        }
        for (number, parent, sha, status) in ci.pipelines() {
            // What was restarted does what it should.
            match (status.as_str(), parent > 0, has_bug(&fake, &daemon, &sha)) {
                ("running", true, true) => {
                    ci.end(number, "failure", &[("clone", 0, ""), ("test", 1, "found a BUG")])
                }
                ("running", true, false) => ci.end(number, "success", &[("test", 0, "fine")]),
                _ => {}
            }
        }
        (daemon.task(issue)["state"] == "closed").then_some(())
    });
    assert_eq!(main_log(&fake, &daemon), ["Mend pears", "Add pears", "Open the shop"]);
    let attempts = &daemon.task(issue)["attempts"];
    assert_eq!(attempts["ci_fixes"], 1, "a clone that failed is nobody's fault: {attempts}");
    let stats = daemon.json(&["forge", "stats"]);
    let asked = |operation: &str| stats.as_array().unwrap().iter().any(|row| row["operation"] == operation);
    assert!(asked("list issues") && asked("list pipelines"), "every server is counted: {stats:#}");

    std::fs::write(daemon.state().join(".env"), format!("WOODPECKER_TOKEN={TOKEN}\n")).unwrap();
    let open = daemon.run(&["ci", "list"]);
    assert_eq!(open.code, Some(6), "others can read the file: {open:?}");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(daemon.state().join(".env"), private).unwrap();
    let listed = daemon.json(&["ci", "list"]);
    let red =
        listed.as_array().unwrap().iter().rfind(|p| p["status"] == "failure" && p["parent"] != 0).unwrap();
    let number = red["number"].to_string();
    let failed = daemon.json(&["ci", "failures", &number]);
    assert_eq!((&failed[0]["step"], &failed[0]["class"]["class"]), (&"ci/test".into(), &"code".into()));
    assert_eq!(failed[0]["log"], "found a BUG");
    let steps = daemon.json(&["ci", "status", &number]);
    assert_eq!(steps["workflows"][0]["children"][1]["name"], "test");
    assert!(daemon.run(&["ci", "logs", &number, "--step", "test"]).stdout.contains("found a BUG"));
    assert_eq!(daemon.run(&["ci", "status", "4711"]).code, Some(4));
    assert!(!format!("{}{}", daemon.log(), daemon.run(&["ci", "list"]).stdout).contains(TOKEN));
}

/// A CI that refuses to answer is given up after a while, with its words: nobody else waits for that entry.
#[test]
fn e2e_outside_ci_checks_that_can_never_be_read_are_not_waited_for_for_ever() {
    let (fake, ci) = (FakeForgejo::start(Rules::default()), FakeWoodpecker::start("3.17.0"));
    let setup = on(&fake).unset("ci.command").set("ci.kind", "\"woodpecker\"").set("ci.poll", "\"50ms\"");
    let setup = setup.set("woodpecker.url", &format!("{:?}", ci.url())).set("timing.ci_timeout", "\"1s\"");
    ci.revoke_token();
    let daemon = start(&fake, setup.daemon_env("WOODPECKER_TOKEN", TOKEN));
    let checkout = daemon.checkout();
    let there = fake.repository().to_string_lossy().into_owned();
    std::fs::write(checkout.join("src/figs.txt"), "figs 3 crowns\n").unwrap();
    daemon.git_in(&checkout, &["checkout", "--quiet", "-b", "figs"]);
    daemon.git_in(&checkout, &["add", "src"]);
    daemon.git_in(&checkout, &["commit", "--quiet", "--message=Add figs"]);
    daemon.git_in(&checkout, &["push", "--quiet", &there, "figs"]);
    daemon.json(&["merge-queue", "add", "figs"]);
    let reason = daemon.wait_for("the entry to be given up", || {
        let history = daemon.json(&["merge-queue", "history"]);
        let entry = history.as_array()?.iter().find(|entry| entry["status"] == "stale")?.clone();
        Some(entry["reason"].as_str().unwrap_or_default().to_owned())
    });
    assert!(reason.contains("checks of the commit cannot be read") && reason.contains("401"), "{reason}");
    assert_eq!(main_log(&fake, &daemon), ["Open the shop"]);
}

/// Woodpecker stores the log of a step a moment after its status. The agent gets the log all the same, and is told once.
#[test]
fn e2e_outside_ci_a_log_that_comes_late_is_waited_for() {
    let (fake, ci) = (FakeForgejo::start(Rules::default()), FakeWoodpecker::start("3.17.0"));
    let setup = on(&fake).unset("ci.command").set("ci.kind", "\"woodpecker\"").set("ci.poll", "\"50ms\"");
    let setup = setup.set("woodpecker.url", &format!("{:?}", ci.url())).daemon_env("WOODPECKER_TOKEN", TOKEN);
    ci.logs_come_late();
    let daemon = start(&fake, setup);
    let issue = file(&fake, "Add pears", &mended("pears"));
    daemon.wait_for("the task to be closed", || {
        for sha in heads(&fake, &daemon) {
            if !ci.pipelines().iter().any(|(_, _, commit, _)| *commit == sha) {
                let run = ci.run("push", &sha);
                match has_bug(&fake, &daemon, &sha) {
                    true => ci.end(run, "failure", &[("test", 1, "found a BUG in pears")]),
                    false => ci.end(run, "success", &[("test", 0, "fine")]),
                }
            }
        }
        (daemon.task(issue)["state"] == "closed").then_some(())
    });
    let inbox = std::fs::read_dir(daemon.session_files(issue).join("inbox-1")).unwrap();
    let told = inbox.map(|entry| entry.unwrap().path());
    let failed: Vec<_> = told.filter(|path| path.to_string_lossy().contains("ci-failed")).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let told = std::fs::read_to_string(&failed[0]).unwrap();
    assert!(told.contains("found a BUG in pears"), "{told}");
    assert_eq!(daemon.task(issue)["attempts"]["ci_fixes"], 1);
}

/// While the server is away nobody is blamed and nobody is asked: the branch waits for longer than a CI may take, and
/// lands when the server is back.
#[test]
fn e2e_outside_ci_a_queued_branch_waits_while_the_server_is_away() {
    const LIMIT: Duration = Duration::from_secs(1);
    let fake = FakeForgejo::start(Rules::default());
    let setup = on(&fake).unset("ci.command").set("ci.kind", "\"forge\"").set("ci.poll", "\"50ms\"");
    let daemon = start(&fake, setup.set("timing.ci_timeout", &format!("\"{}s\"", LIMIT.as_secs())));
    // Git goes on, so the branch enters and its candidate is pushed; only the API is away.
    fake.change(|rules| rules.faults = Faults { errors: 100, ..Faults::default() });
    enter(&fake, &daemon, "figs");
    let candidate = daemon.wait_for("the candidate to be pushed", || {
        let listed = daemon.git_in(fake.repository(), &["for-each-ref", "--format=%(refname) %(objectname)"]);
        let found = listed.lines().find(|line| line.contains("pointsman/candidate/"))?;
        Some(found.rsplit_once(' ')?.1.to_owned())
    });
    let silent = daemon.wait_for("the silence to be noticed", || {
        daemon.log_lines("the checks cannot be read for now").map(|_| Instant::now())
    });
    daemon.wait_for("the outage to be longer than a CI may take", || {
        let waiting = entry(&daemon, "figs");
        assert_eq!(waiting["status"], "testing", "{waiting:#}");
        (silent.elapsed() > LIMIT * 2).then_some(())
    });
    fake.set_status(&candidate, "ci/build", "success");
    fake.change(|rules| rules.faults = Faults::default());
    daemon.wait_for("it to land", || (entry(&daemon, "figs")["status"] == "landed").then_some(()));
    assert_eq!(main_log(&fake, &daemon), ["Add figs", "Open the shop"]);
}
