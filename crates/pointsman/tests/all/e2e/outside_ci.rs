//! CI on servers: whatever reports to the forge, and Woodpecker by its own API. The test plays the machinery.

use pointsman_testkit::TestDaemon;
use pointsman_testkit::fake_forgejo::{FakeForgejo, Rules};
use pointsman_testkit::fake_woodpecker::{FakeWoodpecker, TOKEN};

use super::LAND;
use super::forgejo::{file, main_log, on, start};

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
