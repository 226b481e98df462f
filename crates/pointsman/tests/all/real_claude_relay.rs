//! The real Claude Code behind the relay: the key stays outside, and what is counted is what the API gave out.

use pointsman_testkit::TestDaemon;
use pointsman_testkit::claude_api::{ClaudeApi, Step};

use crate::e2e::sandbox_works;
use crate::real_claude::{KEY, WORK, bash, lands, shop, skipping, text};

/// The tokens of all answers that the API has given out, by input and output.
pub(crate) fn given_out(api: &ClaudeApi) -> (u64, u64) {
    api.usages().iter().fold((0, 0), |(input, output), usage| {
        let tokens = |name: &str| usage[name].as_u64().unwrap_or(0);
        (input + tokens("input_tokens"), output + tokens("output_tokens"))
    })
}

/// What is on record of all sessions.
fn spent(daemon: &TestDaemon) -> (u64, u64) {
    let sessions = daemon.json(&["session", "list"]);
    sessions.as_array().into_iter().flatten().fold((0, 0), |(input, output), session| {
        let tokens = |name: &str| session["token_classes"][name].as_u64().unwrap_or(0);
        (input + tokens("input"), output + tokens("output"))
    })
}

#[test]
fn real_claude_behind_the_relay_sees_no_key_and_is_counted_to_the_token() {
    let Some((setup, api)) = shop(&skipping()).filter(|_| sandbox_works()) else { return };
    let look = format!("{{ env; cat \"$CLAUDE_CONFIG_DIR\"/.*.json; }} > seen.txt; {WORK}");
    api.when("] Task #", &[bash(&look), text("Handed in.")]);
    lands(&api);
    let daemon = setup.start();
    let issue = daemon.file_issue_with("Add apples", "They are ripe.");
    daemon.wait_closed(issue);
    let seen = daemon.on_main("seen.txt").unwrap();
    assert!(seen.contains("ANTHROPIC_BASE_URL=http://127.0.0.2:"), "{seen}");
    assert!(!seen.contains(KEY) && !seen.contains(&KEY[KEY.len() - 20..]), "the key is inside: {seen}");
    let keys = api.keys();
    assert!(!keys.is_empty() && keys.iter().all(|key| key == KEY), "{keys:?}");
    daemon.wait_for("the usage to be counted", || (spent(&daemon) == given_out(&api)).then_some(()));
}

#[test]
fn real_claude_behind_the_relay_makes_no_call_beyond_its_budget() {
    let Some((setup, api)) = shop(&skipping()).filter(|_| sandbox_works()) else { return };
    let steps: Vec<Step> = (0..40).map(|n| bash(&format!("sleep 0.2; echo {n}"))).collect();
    api.when("] Task #", &steps);
    let daemon = setup.set("budget.tokens_per_task", "30000").start();
    let issue = daemon.file_issue_with("Count", "To forty.");
    daemon.wait_state(issue, "blocked");
    let (input, output) = given_out(&api);
    // What is given out before the call that passes the limit is below it.
    let last =
        api.usages().iter().map(|usage| usage["input_tokens"].as_u64().unwrap_or(0)).max().unwrap_or(0);
    assert!(input + output >= 30_000, "{input}");
    assert!(input + output < 30_000 + 3 * (last + 10), "{input} with calls of {last}");
}

#[test]
fn real_claude_behind_the_relay_all_sessions_wait_when_the_account_has_to() {
    let Some((setup, api)) = shop(&skipping()).filter(|_| sandbox_works()) else { return };
    api.when("] Task #1 of", &[bash("while ! [ -e go ]; do sleep 0.1; done"), text("Went.")]);
    api.when("] Task #2 of", &[Step::Limited(3600), text("Never.")]);
    let daemon = setup.set("dev.concurrency", "2").start();
    let waiting = daemon.file_issue_with("Wait here", "Wait here.");
    daemon.wait_for("the first to work", || (!api.requests().is_empty()).then_some(()));
    let limited = daemon.file_issue_with("Be limited", "Be limited.");
    for issue in [limited, waiting] {
        daemon.wait_for("it to be parked", || {
            let failed = daemon.events(issue).into_iter().find(|event| event["kind"] == "turn_failed")?;
            failed["data"].to_string().contains("rate_limit").then_some(())
        });
    }
    let task = daemon.task(waiting);
    assert!(task["parked_until"].is_string() && task["reason"] == "parked: rate limit", "{task}");
}
