//! What CI says, and what it costs.

use super::{LAND, adds, clean, shop};

#[test]
fn e2e_a_red_ci_is_handed_back_with_its_log_and_fixed() {
    let daemon = shop().start();
    let issue = daemon.file_issue(
        "Pears",
        &format!(
            "write src/pears.txt pears BUG\ncommit Add pears\npush\nphase awaiting_ci\nexpect CI failed\n\
             write src/pears.txt pears\ncommit Fix pears\npush\nphase awaiting_ci\n{LAND}"
        ),
    );
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Fix pears", "Add pears", "Open the shop"]);
    assert_eq!(daemon.task(issue)["attempts"]["ci_fixes"], 1);
    let inbox = daemon.session_files(issue).join("inbox-1");
    let told = std::fs::read_dir(inbox).unwrap().map(|e| e.unwrap().path());
    let told = told.into_iter().find(|p| p.to_string_lossy().contains("ci-failed")).expect("a message");
    let told = std::fs::read_to_string(told).unwrap();
    assert!(told.contains("src/pears.txt:1:pears BUG") && told.contains("a BUG is left"), "{told}");
}

#[test]
fn e2e_when_all_fixes_are_used_up_the_task_is_blocked_with_a_diagnosis_and_can_start_again() {
    let daemon = shop().set("limits.ci_fixes", "1").start();
    let issue = daemon.file_issue(
        "Durians",
        "write src/durians.txt BUG\ncommit Add durians\npush\nphase awaiting_ci\nexpect CI failed\n\
         say this cannot be mended\nappend src/durians.txt still BUG\ncommit Try\npush\nphase awaiting_ci\nhang",
    );
    daemon.wait_state(issue, "blocked");
    daemon.wait_settled(issue);
    assert_eq!(daemon.labels(issue), ["backlog", "blocked"]);
    let comments = daemon.comments(issue);
    assert_eq!(comments.len(), 1, "{comments:?}");
    assert!(comments[0].contains("CI still fails after 1 fixes"), "{}", comments[0]);
    assert!(comments[0].contains("• this cannot be mended"), "the last lines of the pane: {}", comments[0]);
    assert_eq!(daemon.session(issue)["exit"], "exhausted");
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
    assert_eq!(daemon.phase_files(), [""; 0]);
    assert_eq!(daemon.main_log(), ["Open the shop"]);
    assert!(daemon.tree(issue).exists(), "the work is kept");
    let notice = daemon.notices().pop().expect("people were told");
    assert!(notice["title"].as_str().unwrap().contains("is blocked"), "{notice}");
    let body = notice["body"].as_str().unwrap();
    assert!(body.contains("The end of the log:") && body.contains("src/durians.txt:1:BUG"), "{body}");

    daemon.json(&["forge", "issue", "label", &issue.to_string(), "--remove", "blocked"]);
    daemon.wait_session(issue, 2);
    let prompt = daemon.prompt(issue, 2);
    assert!(prompt.contains("You are a continuation of dev-shop-1.1"), "{prompt}");
    assert!(prompt.contains("Try") && prompt.contains("src/durians.txt"), "{prompt}");
    assert_eq!(daemon.labels(issue), ["in-progress"]);
    assert_eq!(daemon.task(issue)["attempts"]["ci_fixes"], 0, "a new start");
}

#[test]
fn e2e_a_flaky_ci_costs_no_fix_and_is_counted_and_told() {
    let ci = "#!/bin/sh\nif [ ! -e \"$HOME/tried\" ]; then touch \"$HOME/tried\"; echo the clock was slow; exit 1; fi\n\
              echo all is well\n";
    let daemon = shop().file("ci.sh", ci).start();
    let issue = daemon.file_issue("Apples", &clean("apples"));
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
    assert_eq!(daemon.task(issue)["attempts"]["ci_fixes"], 0);
    assert!(!daemon.transcript(issue).contains("CI failed"), "the agent cannot mend it");
    let told = daemon.notices().into_iter().find(|notice| notice["title"] == "shop#1: CI is flaky");
    assert!(told.expect("people are told")["body"].as_str().unwrap().contains("passed when it ran again"));
    let ci = &daemon.json(&["report"])["ci"];
    assert_eq!((&ci["runs"], &ci["red"], &ci["flaky"]), (&2.into(), &1.into(), &1.into()), "{ci}");
    let log = daemon.json(&["ci", "logs", &issue.to_string()])["log"].as_str().unwrap().to_owned();
    let (green, red) = log.split_once("An earlier run on the same commit failed").expect("both runs");
    assert!(green.contains("all is well") && red.contains("the clock was slow"), "{log}");
}

#[test]
fn e2e_a_red_run_that_cannot_be_repeated_is_red() {
    let ci = "#!/bin/sh\n[ ! -e \"$HOME/tried\" ] || exit 137\ntouch \"$HOME/tried\"; echo a BUG is left; exit 1\n";
    let daemon = shop().file("ci.sh", ci).start();
    let issue = daemon.file_issue("Apples", &format!("{}\nexpect CI failed\nhang", adds("apples")));
    daemon.wait_until(issue, "it costs a fix", |task| task["attempts"]["ci_fixes"] == 1);
    let log = daemon.json(&["ci", "logs", &issue.to_string()])["log"].as_str().unwrap().to_owned();
    assert!(log.contains("a BUG is left"), "{log}");
}

#[test]
fn e2e_infrastructure_that_fails_once_costs_no_fix() {
    let ci = "#!/bin/sh\nif [ ! -e \"$HOME/tried\" ]; then touch \"$HOME/tried\"; exit 137; fi\n";
    let daemon = shop().file("ci.sh", ci).start();
    let issue = daemon.file_issue("Apples", &clean("apples"));
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
    assert_eq!(daemon.task(issue)["attempts"]["ci_fixes"], 0);
    assert!(!daemon.transcript(issue).contains("CI failed"), "the agent cannot mend infrastructure");
}

#[test]
fn e2e_infrastructure_that_keeps_failing_is_a_question_to_a_person() {
    let ci = "#!/bin/sh\n[ -e \"$HOME/mended\" ] || exit 137\n";
    let daemon = shop().file("ci.sh", ci).start();
    let issue =
        daemon.file_issue("Apples", &format!("{}\nexpect Answer\nphase awaiting_ci\n{LAND}", adds("apples")));
    let task = daemon.wait_state(issue, "escalated");
    assert!(task["reason"].as_str().unwrap().contains("CI infrastructure failed again"), "{task}");
    assert_eq!(task["attempts"]["ci_fixes"], 0);
    std::fs::write(daemon.path("home/mended"), "").unwrap();
    daemon.answer(issue, "The machine was full. Try again.");
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
}

#[test]
fn e2e_a_ci_that_gives_no_answer_is_stopped_and_a_person_is_asked() {
    let ci = "#!/bin/sh\n[ -e \"$HOME/mended\" ] || { echo $$ > \"$HOME/ci.pid\"; sleep 1000; }\n";
    let daemon = shop().file("ci.sh", ci).set("timing.ci_timeout", "\"3s\"").start();
    let issue = daemon.file_issue(
        "Apples",
        &format!("{}\nexpect CI timeout\nexpect Answer\nphase awaiting_ci\n{LAND}", adds("apples")),
    );
    let task = daemon.wait_state(issue, "escalated");
    assert!(task["reason"].as_str().unwrap().contains("CI did not finish within 3s"), "{task}");
    let pid = std::fs::read_to_string(daemon.path("home/ci.pid")).unwrap();
    daemon.wait_for("the CI to be gone", || {
        (!std::path::Path::new("/proc").join(pid.trim()).exists()).then_some(())
    });
    std::fs::write(daemon.path("home/mended"), "").unwrap();
    daemon.answer(issue, "Mended.");
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
}

#[test]
fn e2e_an_outside_ci_decides_by_its_checks_of_exactly_that_commit() {
    // Squashed, so that the candidate is another commit than the head that was checked.
    let daemon = shop()
        .set("ci.kind", "\"forge\"")
        .set("ci.poll", "\"50ms\"")
        .set("ci.required", "[\"build\"]")
        .set("merge.style", "\"squash\"")
        .start();
    let issue = daemon.file_issue(
        "Apples",
        &format!("{}\nexpect CI failed\nwrite src/apples.txt apples 4 crowns\ncommit Mend\npush\nphase awaiting_ci\n{LAND}", adds("apples")),
    );
    let says = |sha: &str, state: &str| {
        daemon.json(&["forge", "status", "set", sha, "--context", "build", "--state", state]);
    };
    let first = daemon.wait_until(issue, "CI is waited for", |task| task["ci"] == "pending");
    let first = first["head_sha"].as_str().unwrap().to_owned();
    daemon.json(&["forge", "status", "set", &first, "--context", "lint", "--state", "success"]);
    says(&first, "failure");
    let second = daemon.wait_until(issue, "a new head is checked", |task| {
        task["ci"] == "pending" && task["head_sha"] != first.as_str()
    });
    says(second["head_sha"].as_str().unwrap(), "success");
    let candidate = daemon.wait_for("a candidate under test", || {
        let line = daemon.json(&["merge-queue", "list"]);
        line[0]["candidate_sha"].as_str().map(str::to_owned)
    });
    assert_ne!(second["head_sha"], candidate.as_str());
    let branch = daemon.wait_for("its branch", || {
        let listed = daemon.forge_git(&["for-each-ref", "--format=%(refname)", "--points-at", &candidate]);
        listed.contains("refs/heads/pointsman/candidate/").then_some(listed)
    });
    assert_eq!(daemon.main_log(), ["Open the shop"], "{branch}");
    says(&candidate, "success");
    daemon.wait_closed(issue);
    assert_eq!(daemon.forge_git(&["rev-parse", "main"]), candidate, "what was checked is what landed");
    assert_eq!(daemon.forge_git(&["for-each-ref", "refs/heads/pointsman"]), "");
}
