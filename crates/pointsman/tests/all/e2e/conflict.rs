//! Two tasks want the same lines.

use super::{LAND, shop};

/// Waits for a person, then writes the price list and hands it in; a conflict is resolved by keeping both lines.
const AGENT: &str = r#"
await() { while read -r line; do case $line in *"] $1"*) last=$line; return 0 ;; esac; done; }
await 'Task #'
printf 'PHASE:escalate\nReason: when?\n' > "$PHASE_FILE"
await Answer
echo "fruit $ISSUE" > src/prices.txt
git add --all; git commit --quiet --message "Price of fruit $ISSUE"; git push --quiet origin HEAD
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do
    case $line in
    *"] Merge conflict"*)
        cp "${line##*Details: }" "$HOME/conflict-$ISSUE"
        git fetch --quiet origin
        git rebase --quiet origin/main
        printf 'fruit 1\nfruit 2\n' > src/prices.txt
        git add --all; GIT_EDITOR=true git rebase --continue >/dev/null
        git push --quiet --force origin HEAD
        echo PHASE:awaiting_ci > "$PHASE_FILE" ;;
    *"] Merged"*) echo PHASE:done > "$PHASE_FILE" ;;
    esac
done
"#;

#[test]
fn e2e_r3_6_ac_3_3_a_conflict_is_told_with_its_files_and_resolved_by_the_agent() {
    // The gate writes down what it looked at.
    let ci = "#!/bin/sh\ngit rev-parse HEAD >> \"$HOME/tested\"\n! grep -rn BUG src\n";
    let daemon = shop().file("ci.sh", ci).set("dev.concurrency", "2").agent(AGENT).start();
    let issues = ["One", "Two"].map(|title| daemon.file_issue_with(title, "Please."));
    for issue in issues {
        daemon.wait_state(issue, "escalated");
    }
    // Both trees are made before either lands.
    for issue in issues {
        daemon.answer(issue, "Now.");
        daemon.wait_closed(issue);
    }
    assert_eq!(daemon.on_main("src/prices.txt").unwrap(), "fruit 1\nfruit 2");
    assert_eq!(daemon.main_log(), ["Price of fruit 2", "Price of fruit 1", "Open the shop"]);
    let told = std::fs::read_to_string(daemon.path("home/conflict-2")).unwrap();
    assert!(told.contains("exactly these files:\n\n- src/prices.txt\n"), "{told}");
    assert_eq!(daemon.task(issues[1])["attempts"]["merge_conflicts"], 1);
    let tested = std::fs::read_to_string(daemon.path("home/tested")).unwrap();
    let tip = daemon.forge_git(&["rev-parse", "main"]);
    assert!(tested.lines().any(|sha| sha == tip), "main is what was tested:\n{tested}");
}

#[test]
fn e2e_what_passes_alone_and_fails_together_does_not_land() {
    // Red as soon as two lists are there.
    let ci = "#!/bin/sh\n[ $(ls src | wc -l) -le 2 ] || { echo 'too many lists'; exit 1; }\n";
    let daemon = shop().file("ci.sh", ci).set("dev.concurrency", "2").start();
    let issues = ["apples", "pears"].map(|fruit| {
        let script = format!(
            "phase escalate when?\nexpect Answer\nwrite src/{fruit}.txt {fruit}\ncommit Add {fruit}\npush\nphase \
             awaiting_ci\n"
        );
        daemon.file_issue(fruit, &(script + if fruit == "apples" { LAND } else { "expect CI failed\nphase failed too many" }))
    });
    for issue in issues {
        daemon.wait_state(issue, "escalated");
    }
    for issue in issues {
        daemon.answer(issue, "Now.");
        daemon.wait_until(issue, "over", |t| t["state"] == "closed" || t["state"] == "blocked");
    }
    let task = daemon.task(issues[1]);
    assert!(task["reason"].as_str().unwrap().contains("too many"), "{task}");
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
    daemon.wait_settled(issues[1]);
    let told = daemon.transcript(issues[1]);
    assert!(told.contains("got: CI failed on top of the main branch"), "{told}");
}

/// Main moves after the branch was handed in: the agent must see that main when it is told of the conflict.
#[test]
fn e2e_r3_6_a_conflict_resolved_by_a_merge_of_main_lands() {
    let daemon = shop().reviewed().set("dev.concurrency", "2").start();
    let hand_in = |fruit: &str| {
        format!(
            "write src/best.txt {fruit}\ncommit Best is {fruit}\npush\nphase awaiting_ci\nexpect CI passed\n\
             phase awaiting_review\n"
        )
    };
    let first = daemon.file_issue("First", &format!("{}{LAND}", hand_in("plums")));
    let resolve = "expect Merge conflict\nmerge-main\nwrite src/best.txt plums\\npears\ncommit Keep both\npush\n\
                   phase awaiting_ci\nexpect CI passed\nphase awaiting_review\n";
    let second = daemon.file_issue("Second", &format!("{}{resolve}{LAND}", hand_in("pears")));
    for issue in [first, second] {
        daemon.wait_until(issue, "ready", |t| {
            t["state"] == "awaiting_review" && t["phase"] == "awaiting_review"
        });
    }
    daemon.approve(first);
    daemon.wait_closed(first);
    daemon.approve(second);
    daemon.wait_until(second, "resolved", |t| {
        t["attempts"]["merge_conflicts"] == 1 && t["state"] == "awaiting_review" && t["review"] == "none"
    });
    daemon.approve(second);
    daemon.wait_closed(second);
    assert_eq!(daemon.on_main("src/best.txt").unwrap(), "plums\npears");
    assert_eq!(daemon.task(second)["attempts"]["merge_conflicts"], 1);
    let signals = daemon.run(&["signals", "--json", "--since", "0"]).stdout;
    let merges: Vec<serde_json::Value> = signals
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|signal: &serde_json::Value| {
            signal["issue"] == second && signal["kind"].as_str().unwrap().starts_with("MERGE")
        })
        .collect();
    let kinds: Vec<&str> = merges.iter().filter_map(|signal| signal["kind"].as_str()).collect();
    assert_eq!(kinds, ["MERGE_READY", "MERGE_CONFLICT", "MERGE_READY", "MERGE_COMPLETE"]);
    assert_eq!(merges[1]["data"]["files"], serde_json::json!(["src/best.txt"]), "{:#}", merges[1]);
}
