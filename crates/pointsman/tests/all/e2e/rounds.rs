//! Rounds of a review: what changed since a person last looked, and comments on lines.

use super::shop;

#[test]
fn e2e_a_second_round_shows_what_changed_and_what_became_of_comments_on_lines() {
    let daemon = shop().reviewed().start();
    let script = "write src/list.txt apples\\npears\\nplums\ncommit Add fruit\npush\nphase awaiting_ci\n\
                  expect CI passed\nphase awaiting_review\nexpect Changes requested\n\
                  write src/list.txt apples\\ngreen pears\\nplums\ncommit Greener\npush\nphase awaiting_ci\n\
                  expect CI passed\nphase awaiting_review\nexpect Merged\nphase done";
    let issue = daemon.file_issue("Fruit", script);
    let first = daemon.wait_in_review(issue);
    let pr = first["pr"].to_string();
    let all = daemon.run(&["forge", "pr", "diff", &pr, "--since-last-look"]);
    assert!(all.stdout.contains("+apples") && all.stderr.contains("first look"), "{all:?}");
    let nothing = daemon.run(&["forge", "pr", "diff", &pr, "--since-last-look"]);
    assert!(nothing.stdout.is_empty() && nothing.stderr.contains("Nothing changed since"), "{nothing:?}");

    let body = "Two things.\n\n- `src/list.txt:2`: green ones\n- `src/list.txt:3`: dried ones?";
    daemon.request_changes(issue, body);
    daemon.wait_until(issue, "the second round", |task| {
        task["state"] == "awaiting_review" && task["head_sha"] != first["head_sha"]
    });
    let messages: String = std::fs::read_dir(daemon.session_files(issue).join("inbox-1"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert!(messages.contains("`src/list.txt:2`: green ones"), "the agent reads file and line: {messages}");
    let new = daemon.json(&["forge", "pr", "diff", &pr, "--since-last-look"]);
    assert_eq!(new["since_sha"], first["head_sha"]);
    let diff = new["diff"].as_str().unwrap();
    assert!(diff.contains("-pears\n+green pears") && !diff.contains("+apples"), "{diff}");
    let shown = daemon.json(&["forge", "pr", "show", &pr]);
    let lines = &shown["reviews"][0]["lines"];
    let states: Vec<_> =
        lines.as_array().unwrap().iter().map(|line| (&line["line"], &line["handled"])).collect();
    assert_eq!(states, [(&2.into(), &"changed".into()), (&3.into(), &"untouched".into())]);
    let text = daemon.run(&["forge", "pr", "show", &pr]);
    assert!(text.stdout.contains("untouched  src/list.txt:3"), "{text:?}");
    daemon.approve(issue);
    daemon.wait_closed(issue);
}
