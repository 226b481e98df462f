//! R4.1–R4.6: a full context is handed over, not lost.

use pointsman_testkit::TestDaemon;

use super::{LAND, actions, measure_context, shop, signals};

/// Whether these signals were given in this order; others may come between.
#[track_caller]
fn assert_in_order(given: &[String], wanted: &[&str]) {
    let mut rest = given.iter();
    for signal in wanted {
        assert!(rest.any(|s| s == signal), "no {signal} (in order) in {given:?}");
    }
}

#[test]
fn e2e_r4_1_ac_4_1_a_warning_on_screen_is_a_signal_and_saves_the_work() {
    let daemon = shop().start();
    let script = "write src/apples.txt draft\nsay Context left until auto-compact: 8%\nexpect Checkpoint now\n\
                  say saved\nhang";
    let issue = daemon.file_issue("Apples", script);
    daemon.wait_shown(issue, "got: Checkpoint now");
    assert_in_order(&signals(&daemon, issue), &["AGENT_REGISTERED", "CONTEXT_WARNING"]);
    daemon.wait_for("a checkpoint", || (checkpoints(&daemon) > 0).then_some(()));
    assert_eq!(daemon.sessions(issue).len(), 1, "a warning replaces nobody");
}

fn checkpoints(daemon: &TestDaemon) -> usize {
    daemon.json(&["rescue", "list", "--kind", "checkpoint"]).as_array().map_or(0, Vec::len)
}

#[test]
fn e2e_r4_4_r4_6_ac_4_2_ac_4_3_ac_4_5_a_full_context_is_handed_over_with_everything_in_it() {
    let daemon = shop().start();
    let script = format!(
        "write src/apples.txt apples\ncommit Add apples\nwrite src/pears.txt pears\ncheckpoint implementation \
         the pears\ncontext 93\nexit-clean\nwrite src/plums.txt plums\ncommit Add plums\npush\nphase \
         awaiting_ci\n{LAND}"
    );
    let issue = daemon.file_issue("Fruit", &script);
    daemon.wait_session(issue, 2);
    let prompt = daemon.prompt(issue, 2);
    for part in [
        "You are a continuation of dev-shop-1.1, which handed over to you",
        "Resume from phase: implementation, last working on: the pears",
    ] {
        assert!(prompt.contains(part), "no {part:?} in\n{prompt}");
    }
    assert!(!prompt.contains("Save your work and exit"), "that was not meant for the successor:\n{prompt}");
    daemon.wait_closed(issue);

    let given = signals(&daemon, issue);
    assert_in_order(
        &given,
        &[
            "AGENT_REGISTERED",
            "CONTEXT_WARNING",
            "HANDOFF_REQUESTED",
            "AGENT_TERMINATED",
            "AGENT_REGISTERED",
            "HANDOFF_COMPLETE",
            "MERGE_READY",
            "MERGE_COMPLETE",
        ],
    );
    assert!(!given.iter().any(|s| s == "AGENT_CRASHED" || s == "ORCHESTRATOR_STUCK"), "{given:?}");
    let sessions = daemon.sessions(issue);
    assert_eq!((sessions.len(), &sessions[0]["exit"]), (2, &"handoff".into()), "{sessions:?}");
    assert_eq!(daemon.task(issue)["attempts"]["restarts"], 0, "a hand-over is no crash");
    // What it had not committed was committed for it, on its branch.
    let landed = daemon.main_log();
    assert_eq!(
        landed,
        ["Add plums", "Work in progress, handed over to the next session", "Add apples", "Open the shop"]
    );
    assert_eq!(daemon.on_main("src/pears.txt").unwrap(), "pears");
    let first = actions(&daemon, issue, 2);
    assert!(!first.iter().any(|a| a.contains("apples") || a.contains("pears")), "{first:?}");
}

#[test]
fn e2e_ac_4_5_what_cannot_be_committed_is_in_a_rescue_ref_and_in_the_tree() {
    let daemon = shop().start();
    let script =
        format!("write src/pears.txt half a pear\nsay at work\nexit-clean\nsay here\nexpect Answer\n{LAND}");
    let issue = daemon.file_issue("Pears", &script);
    daemon.wait_shown(issue, "at work");
    // A lock that nobody can remove: nobody can commit.
    std::fs::create_dir(daemon.tree(issue).join(".git/index.lock")).unwrap();
    measure_context(&daemon, "dev-shop-1.1", 93);
    daemon.wait_session(issue, 2);
    daemon.wait_shown(issue, "here");
    let rescues = daemon.rescues();
    let rescue =
        rescues.iter().find(|r| r["session"] == "dev-shop-1.1").expect("a rescue of the predecessor");
    let captures = daemon.state().join("projects/shop/captures.git");
    let name = rescue["ref"].as_str().unwrap();
    assert_eq!(daemon.git_in(&captures, &["show", &format!("{name}:src/pears.txt")]), "half a pear");
    assert_eq!(std::fs::read_to_string(daemon.tree(issue).join("src/pears.txt")).unwrap(), "half a pear\n");
    assert_eq!(daemon.git_in(&daemon.tree(issue), &["log", "--format=%s"]), "Open the shop");
}

/// The first session hears nothing; its successor lands what is there.
const DEAF: &str = r#"
case $POINTSMAN_SESSION in
*.1) echo draft > src/apples.txt; touch "$HOME/busy"; trap '' HUP TERM; while :; do sleep 0.05; done ;;
esac
read -r prompt
echo apples >> src/apples.txt; git add --all; git commit --quiet --message 'Add apples'
git push --quiet origin HEAD; echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do case $line in *"] Merged"*) echo PHASE:done > "$PHASE_FILE" ;; esac; done
"#;

#[test]
fn e2e_r4_5_ac_4_4_a_session_that_does_not_hand_over_is_ended_with_its_work_captured() {
    let daemon = shop().agent(DEAF).set("timing.handoff_timeout", "\"500ms\"").start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    daemon.wait_for("the agent to be busy", || daemon.path("home/busy").exists().then_some(()));
    daemon.wait_session(issue, 1);
    measure_context(&daemon, "dev-shop-1.1", 95);
    daemon.wait_session(issue, 2);
    daemon.wait_closed(issue);
    assert_in_order(
        &signals(&daemon, issue),
        &[
            "CONTEXT_WARNING",
            "HANDOFF_REQUESTED",
            "ORCHESTRATOR_STUCK",
            "AGENT_TERMINATED",
            "AGENT_REGISTERED",
            "HANDOFF_COMPLETE",
        ],
    );
    assert_eq!(daemon.sessions(issue)[0]["exit"], "stuck");
    let rescues = daemon.rescues();
    assert!(rescues.iter().any(|r| r["session"] == "dev-shop-1.1"), "{rescues:?}");
    assert_eq!(daemon.on_main("src/apples.txt").unwrap(), "draft\napples");
}

#[test]
fn e2e_r4_2_r4_3_low_watches_medium_saves_high_hands_over_each_once() {
    let daemon = shop().start();
    let issue =
        daemon.file_issue("Apples", "say at work\nexpect Checkpoint now\nsay saved\nexit-clean\nhang");
    daemon.wait_shown(issue, "at work");
    for percent in [10, 76, 77, 75] {
        measure_context(&daemon, "dev-shop-1.1", percent);
    }
    assert_eq!(signals(&daemon, issue).iter().filter(|s| *s == "CONTEXT_WARNING").count(), 1);
    measure_context(&daemon, "dev-shop-1.1", 86);
    daemon.wait_shown(issue, "saved");
    measure_context(&daemon, "dev-shop-1.1", 93);
    daemon.wait_session(issue, 2);
    let given = signals(&daemon, issue);
    assert_eq!(given.iter().filter(|s| *s == "CONTEXT_WARNING").count(), 3, "{given:?}");
    assert_eq!(given.iter().filter(|s| *s == "HANDOFF_REQUESTED").count(), 1, "{given:?}");
}

#[test]
fn e2e_r4_4_a_daemon_that_dies_during_a_hand_over_finishes_it() {
    let daemon = shop().start();
    let script = format!(
        "write src/apples.txt apples\nsay at work\nexit-clean\ncommit Add apples\npush\nphase awaiting_ci\n{LAND}"
    );
    let issue = daemon.file_issue("Apples", &script);
    daemon.wait_shown(issue, "at work");
    measure_context(&daemon, "dev-shop-1.1", 93);
    daemon.restart();
    daemon.wait_closed(issue);
    let sessions = daemon.sessions(issue);
    assert_eq!((sessions.len(), &sessions[0]["exit"]), (2, &"handoff".into()), "{sessions:?}");
    assert_in_order(&signals(&daemon, issue), &["HANDOFF_REQUESTED", "AGENT_TERMINATED", "HANDOFF_COMPLETE"]);
}

#[test]
fn e2e_r4_4_an_agent_that_was_told_to_hand_over_and_sits_at_its_prompt_is_ended() {
    // With the usual time-outs: without us it would sit there for a minute, and be called stuck.
    for agent in ["while read -r line; do :; done", "while read -r line; do echo \"heard: $line\"; done"] {
        let daemon = shop().set("timing.idle_look", "\"200ms\"").agent(agent).start();
        let issue = daemon.file_issue_with("Apples", "please");
        daemon.wait_session(issue, 1);
        daemon.wait_state(issue, "working");
        measure_context(&daemon, "dev-shop-1.1", 94);
        daemon.wait_session(issue, 2);
        let sessions = daemon.sessions(issue);
        assert_eq!(sessions[0]["exit"], "handoff", "{sessions:?}");
        assert_eq!(daemon.task(issue)["attempts"]["restarts"], 0, "a hand-over is no crash");
        let prompt = daemon.prompt(issue, 2);
        assert!(prompt.contains("which handed over to you because its context was full"), "{prompt}");
    }
}
