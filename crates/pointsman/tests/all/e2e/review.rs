//! Reviews, by people and by a program.

use super::{adds, shop};

const LAND: &str = "expect CI passed\nphase awaiting_review\nexpect Approved\nexpect Merged\nphase done";

#[test]
fn e2e_requested_changes_are_made_and_only_the_new_head_can_be_approved() {
    let daemon = shop().reviewed().start();
    let issue = daemon.file_issue(
        "Cherries",
        &format!(
            "{}\nexpect CI passed\nphase awaiting_review\nexpect Changes requested\nwrite src/cherries.txt \
             cherries 9 crowns\ncommit Raise the price\npush\nphase awaiting_review\n{LAND}",
            adds("cherries")
        ),
    );
    let first = daemon.wait_state(issue, "awaiting_review")["head_sha"].clone();
    daemon.request_changes(issue, "Too cheap: $(id)");
    let second = daemon.wait_until(issue, "a new head is reviewed", |task| {
        task["state"] == "awaiting_review" && task["head_sha"] != first
    });
    assert_eq!(second["attempts"]["review_rounds"], 1);
    assert_eq!(second["review"], "none", "the review was of the first head");
    let inbox = daemon.session_files(issue).join("inbox-1");
    let told: Vec<_> = std::fs::read_dir(inbox).unwrap().map(|e| e.unwrap().path()).collect();
    let told = told.iter().find(|p| p.to_string_lossy().contains("changes-requested")).expect("a message");
    assert!(std::fs::read_to_string(told).unwrap().contains("Too cheap: $(id)"));

    daemon.approve(issue);
    daemon.wait_closed(issue);
    assert_eq!(daemon.on_main("src/cherries.txt").unwrap(), "cherries 9 crowns");
}

#[test]
fn e2e_a_push_voids_an_approval() {
    // Reviewed while CI still runs: remembered for that head alone.
    let ci = "#!/bin/sh\nwhile [ -e \"$HOME/hold\" ]; do sleep 0.02; done\n";
    let daemon = shop().reviewed().file("ci.sh", ci).build();
    std::fs::write(daemon.path("home/hold"), "").unwrap();
    daemon.start();
    let issue = daemon.file_issue(
        "Figs",
        &format!(
            "{}\nexpect Answer\nwrite src/figs.txt figs 8 crowns\ncommit Raise the price\npush\nphase \
             awaiting_ci\n{LAND}",
            adds("figs")
        ),
    );
    let first = daemon.wait_until(issue, "CI runs", |task| task["ci"] == "pending" && !task["pr"].is_null());
    daemon.approve(issue);
    daemon.wait_until(issue, "approved", |task| task["review"] == "approved");
    daemon.json(&["session", "send", &issue.to_string(), "Raise the price first."]);
    daemon.wait_until(issue, "a new head", |task| task["head_sha"] != first["head_sha"]);
    std::fs::remove_file(daemon.path("home/hold")).unwrap();
    let task = daemon.wait_state(issue, "awaiting_review");
    assert_eq!(task["review"], "none", "{task}");
    assert_eq!(daemon.main_log(), ["Open the shop"]);
    daemon.approve(issue);
    daemon.wait_closed(issue);
    assert_eq!(daemon.on_main("src/figs.txt").unwrap(), "figs 8 crowns");
}

#[test]
fn e2e_nobody_reviews_so_a_person_is_asked() {
    let daemon = shop().reviewed().set("timing.review_timeout", "\"300ms\"").start();
    let issue =
        daemon.file_issue("Dates", &format!("{}\nexpect No review, escalating\n{LAND}", adds("dates")));
    let task = daemon.wait_state(issue, "escalated");
    assert!(
        task["reason"].as_str().unwrap().contains("nobody reviewed the pull request within 300ms"),
        "{task}"
    );
    daemon.approve(issue);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add dates", "Open the shop"]);
}

/// A reviewer that asks for changes as long as the list has no price in words.
const REVIEWER: &str = r#"#!/bin/sh
[ "$(git rev-parse HEAD)" = "$POINTSMAN_SHA" ] || exit 9
if grep -q nine src/kiwis.txt; then
    echo '{"verdict": "APPROVE", "verdict_reason": "in words"}' > "$POINTSMAN_RESULT_FILE"
else
    echo '{"verdict": "REQUEST_CHANGES", "verdict_reason": "write nine"}' > "$POINTSMAN_RESULT_FILE"
fi
"#;

#[test]
fn e2e_a_program_reviews_and_is_obeyed() {
    let daemon = shop()
        .set("review.mode", "\"agent\"")
        .set("review.command", "[\"./review.sh\"]")
        .file("review.sh", REVIEWER)
        .start();
    let issue = daemon.file_issue(
        "Kiwis",
        &format!(
            "{}\nexpect Changes requested\nwrite src/kiwis.txt kiwis nine crowns\ncommit Say it in words\npush\n\
             phase awaiting_review\n{LAND}",
            adds("kiwis")
        ),
    );
    daemon.wait_closed(issue);
    assert_eq!(daemon.on_main("src/kiwis.txt").unwrap(), "kiwis nine crowns");
    let reviews = daemon.pull_requests()[0]["reviews"].clone();
    let verdicts: Vec<_> =
        reviews.as_array().unwrap().iter().map(|r| r["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["request_changes", "approve"]);
}

#[test]
fn e2e_a_reviewer_that_talks_rubbish_is_asked_twice_and_then_a_person() {
    let daemon = shop()
        .set("review.mode", "\"agent\"")
        .set("review.command", "[\"./review.sh\"]")
        .file(
            "review.sh",
            "#!/bin/sh\necho x >> \"$HOME/asked\"\necho rubbish > \"$POINTSMAN_RESULT_FILE\"\n",
        )
        .start();
    let issue = daemon.file_issue("Limes", &format!("{}\n{LAND}", adds("limes")));
    let task = daemon.wait_state(issue, "escalated");
    assert!(task["reason"].as_str().unwrap().contains("unusable"), "{task}");
    assert_eq!(std::fs::read_to_string(daemon.path("home/asked")).unwrap(), "x\nx\n");
    // A person's word counts where the program's did not.
    daemon.approve(issue);
    daemon.wait_closed(issue);
}
