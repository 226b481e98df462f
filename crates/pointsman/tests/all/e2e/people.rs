//! A person is one person, whatever account they act from.

use pointsman_testkit::fake_forgejo::{FakeForgejo, OWNER, REVIEWER, Rules};

use super::forgejo::{file, on, start};
use super::{adds, shop};

const LAND: &str = "expect CI passed\nphase awaiting_review\nexpect Approved\nexpect Merged\nphase done";

/// `[people]` with the login of this test as `ann`, and a `bob` who is not here.
fn two_people() -> String {
    let uid = rustix::process::getuid().as_raw();
    format!(
        "[people.ann]\nlogin = {:?}\n[people.bob]\nforge = \"bob\"\n",
        pointsman_adapters::login::name(uid)
    )
}

#[test]
fn e2e_a_decision_is_recorded_by_the_name_of_the_person() {
    let daemon = shop().reviewed().machine(&two_people()).start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{LAND}", adds("apples")));
    let pr = daemon.wait_in_review(issue)["pr"].as_u64().unwrap();
    let asked = daemon.wait_for("the question is in the inbox", || {
        daemon.json(&["inbox"]).as_array().and_then(|all| all.first().map(|one| one["id"].clone()))
    });
    daemon.json(&["inbox", "approve", &asked.to_string()]);
    daemon.wait_closed(issue);
    let shown = daemon.json(&["forge", "pr", "show", &pr.to_string()]);
    assert_eq!(shown["reviews"][0]["author"], "ann", "{shown}");
    let second = daemon.run(&["inbox", "approve", &asked.to_string()]);
    assert!(second.stderr.contains("ann"), "{second:?}");
}

#[test]
fn e2e_two_approvals_wait_for_a_second_person() {
    let daemon = shop().reviewed().machine(&two_people()).set("review.approvals", "2").start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{LAND}", adds("apples")));
    daemon.wait_in_review(issue);
    let question = |words: &str| {
        daemon.wait_for(words, || {
            let all = daemon.json(&["inbox"]);
            let asks = |id: &serde_json::Value| {
                daemon.run(&["inbox", "show", &id.to_string()]).stdout.contains(words)
            };
            all.as_array()?.iter().map(|one| one["id"].clone()).find(asks)
        })
    };
    let first = question("2 people have to approve it");
    daemon.json(&["inbox", "approve", &first.to_string()]);
    let second = question("1 of 2 approvals: ann");
    let again = daemon.run(&["inbox", "approve", &second.to_string()]);
    assert!(again.stderr.contains("another person"), "{again:?}");
    assert_eq!(daemon.task(issue)["state"], "awaiting_review");
    let why = daemon.run(&["task", "explain", &issue.to_string()]).stdout;
    assert!(why.contains("1 of 2 approvals: ann"), "{why}");
}

#[test]
fn e2e_two_approvals_need_two_people() {
    let daemon = shop().reviewed().set("review.approvals", "2").build();
    let doctor = daemon.run(&["doctor"]);
    assert!(doctor.stdout.contains("names nobody"), "{doctor:?}");
}

#[test]
fn e2e_nobody_decides_who_is_not_among_the_people() {
    let machine = "[people.carl]\nlogin = \"no-such-login\"\n";
    let daemon = shop().reviewed().machine(machine).start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{LAND}", adds("apples")));
    let pr = daemon.wait_in_review(issue)["pr"].as_u64().unwrap();
    let refused = daemon.run(&["forge", "pr", "review", &pr.to_string(), "--approve"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("[people]"), "{refused:?}");
    assert_eq!(daemon.task(issue)["review"], "none");
}

#[test]
fn e2e_forgejo_a_review_counts_by_the_person_behind_the_account() {
    let fake = FakeForgejo::start(Rules::default());
    let machine = format!("[people.ann]\nforge = {OWNER:?}\n[people.bob]\nforge = {REVIEWER:?}\n");
    let daemon = start(&fake, on(&fake).reviewed().machine(&machine));
    let issue = file(&fake, "Add apples", &format!("{}\n{LAND}", adds("apples")));
    let pr = daemon.wait_in_review(issue)["pr"].as_u64().unwrap();
    fake.review(pr, OWNER, "APPROVED", "fine", &[]);
    daemon.wait_closed(issue);
    let log = daemon.run(&["events"]).stdout;
    assert!(log.contains("ann"), "{log}");
}
