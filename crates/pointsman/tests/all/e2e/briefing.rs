//! The first prompt of a session, and the reminder for an agent that forgets to say where it is.

use pointsman_testkit::TestDaemon;

use super::shop;

/// An issue that begins only when it is labelled, with these comments.
fn issue_with_comments(daemon: &TestDaemon, body: &str, comments: &[&str]) -> u64 {
    let filed = daemon.json(&["forge", "issue", "create", "--title", "Prices", "--body", body]);
    let number = filed["number"].as_u64().unwrap();
    for comment in comments {
        daemon.json(&["forge", "issue", "comment", &number.to_string(), "--body", comment]);
    }
    daemon.json(&["forge", "issue", "label", &number.to_string(), "--add", "backlog"]);
    number
}

#[test]
fn e2e_an_agent_is_given_the_comments_the_formula_and_what_landed_on_the_files() {
    let formula = "name = \"run-dev\"\ndescription = \"How we work.\"\nversion = 1\n\n[[steps]]\nid = \"taste\"\n\
                   title = \"Taste the apples\"\ndescription = \"All of them.\"\n";
    let setup = shop().file("formulas/run-dev.toml", formula).file("src/prices.txt", "one\n");
    let daemon = setup.agent("read -r greeting\nsleep 1000\n").start();
    let issue = issue_with_comments(
        &daemon,
        "Prices in `src/prices.txt` are wrong.",
        &["In cents, please.", "No, in euros."],
    );
    daemon.wait_session(issue, 1);
    let prompt = daemon.prompt(issue, 1);
    let at = |words: &str| prompt.find(words).unwrap_or_else(|| panic!("{words}: {prompt}"));
    assert!(at("In cents, please.") < at("No, in euros."), "{prompt}");
    assert!(at("## What landed last") < at("Open the shop"), "{prompt}");
    assert!(prompt.contains("1. Taste the apples: All of them."), "{prompt}");
    assert!(at("No, in euros.") < at("## How to signal"), "{prompt}");
}

#[test]
fn e2e_an_agent_that_forgets_its_phase_is_asked_for_it_and_lands() {
    let daemon = shop().set("timing.idle_look", "\"150ms\"").start();
    let forgetful = "write src/apples.txt apples\ncommit Add apples\npush\nexpect Write a phase\nphase awaiting_ci\n\
                     expect Merged\nphase done";
    let issue = daemon.file_issue("Apples", forgetful);
    daemon.wait_closed(issue);
    let asked = daemon.events(issue).iter().filter(|event| event.to_string().contains("idle_prompt")).count();
    assert_eq!(asked, 0);
}

#[test]
fn e2e_an_agent_that_mends_its_ci_and_forgets_the_phase_is_asked_for_it() {
    let daemon = shop().set("timing.idle_look", "\"150ms\"").start();
    let forgetful = "write src/apples.txt BUG\ncommit Add apples\npush\nphase awaiting_ci\nexpect CI failed\n\
                     write src/apples.txt apples\ncommit Mend it\npush\nexpect Write a phase\nphase awaiting_ci\n\
                     expect Merged\nphase done";
    let issue = daemon.file_issue("Apples", forgetful);
    daemon.wait_closed(issue);
    assert_eq!(daemon.on_main("src/apples.txt").unwrap(), "apples");
}
