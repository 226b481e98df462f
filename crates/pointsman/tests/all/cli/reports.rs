//! What agents report, and what is read of it, without a daemon.

use pointsman_core::ids::ProjectName;
use pointsman_core::signal::Signal;
use pointsman_store::Change;
use serde_json::{Value, json};

use super::environment::{Answer, Environment, finish};
use super::registry::{minutes_ago, store, with_agents};

/// A command as the agent of a session gives it.
fn as_agent(environment: &Environment, session: &str, args: &[&str]) -> Answer {
    let mut command = environment.command(args);
    command.env("POINTSMAN_SESSION", session);
    finish(command, b"")
}

#[test]
fn an_agent_says_where_it_is_and_what_it_costs_also_without_a_daemon() {
    let environment = with_agents();
    let agent = |args: &[&str]| as_agent(&environment, "dev-shop-1.1", args);
    agent(&["checkpoint", "--phase", "planning", "--summary", "the door"])
        .ok()
        .says("The daemon is not running");
    agent(&["gauge", "--context", "0.931", "--turns", "13"]).ok();
    let agents = environment.json(&["agents"]);
    assert_eq!((&agents[0]["context_percent"], &agents[0]["turns"]), (&json!(93.1), &json!(13)));
    assert_eq!((&agents[0]["cost_usd"], &agents[0]["tokens"]), (&json!(1.27), &json!(81_000)), "only grows");
    let explained = environment.json(&["session", "explain", "1"]);
    assert_eq!(explained["work_state"]["work_phase"], "planning");
    let task = environment.json(&["task", "list"]);
    assert_eq!((&task[0]["context_percent"], &task[0]["cost_usd"]), (&json!(93.1), &json!(1.27)));
    let shown = environment.run(&["task", "show", "1"]);
    assert!(shown.ok().stdout.contains("context      93.1% full\nspent        1.27 USD"), "{shown:?}");
}

#[test]
fn nonsense_is_2_and_a_session_speaks_for_itself_only() {
    let environment = with_agents();
    for args in [
        &["checkpoint"][..],
        &["gauge", "--context", "0.5"],
        &["gauge", "--session", "dev-shop-1.1"],
        &["gauge", "--context", "93", "--session", "dev-shop-1.1"],
        &["gauge", "--context", "nan", "--session", "dev-shop-1.1"],
        &["gauge", "--tokens", "-1", "--session", "dev-shop-1.1"],
        &["gauge", "--tokens", "99999999999999999999", "--session", "dev-shop-1.1"],
        &["gauge", "--usd", "1e99", "--session", "dev-shop-1.1"],
        &["checkpoint", "--phase", "dancing", "--session", "dev-shop-1.1"],
        &["signals", "--kind", "agent_danced"],
        &["session", "explain"],
    ] {
        environment.run(args).code(2);
    }
    environment.run(&["checkpoint"]).says("POINTSMAN_SESSION");
    for args in [&["gauge", "--context", "0.5"][..], &["checkpoint"]] {
        let about = |session: &str| environment.run(&[args, &["--session", session]].concat());
        about("dev-shop-99.1").code(4);
        about("../x").code(4);
        about("dev-shop-4.1").code(3).says("is over");
        let other = [args, &["--session", "dev-shop-2.1"]].concat();
        as_agent(&environment, "dev-shop-1.1", &other).code(3).says("cannot report for");
    }
}

#[test]
fn evidence_is_told_also_of_the_dead() {
    let environment = with_agents();
    let explained = environment.json(&["session", "explain", "3"]);
    assert_eq!((&explained["session"], &explained["liveness"]), (&json!("dev-shop-3.2"), &json!("red")));
    let text = environment.run(&["session", "explain", "3"]);
    insta::assert_snapshot!(text.ok().stdout, @r"
    dev-shop-3.2
    ✖ crashed
      - the process (pid and start time) is gone
      - its terminal could not be looked at
      - last seen alive 20m ago
      - found gone 2 of the 2 times a death needs
      - its hooks have never reported, so Pointsman cannot supervise it
      - no message has been sent to it
    ");
    let text = environment.run(&["session", "explain", "3", "--generation", "1"]);
    assert!(text.ok().stdout.contains("✖ crashed\n  - recorded as ended 10m ago: crashed"), "{text:?}");
    let stale = environment.run(&["session", "explain", "2"]);
    assert!(stale.ok().stdout.contains("◐ stale"), "{stale:?}");
    assert!(stale.stdout.contains("found stale 3 of 3 times"), "{stale:?}");
    environment.run(&["session", "explain", "99"]).code(4);
}

#[test]
fn status_says_why_nothing_lands() {
    let environment = Environment::with_project();
    let line = || environment.json(&["status"])["projects"][0]["line_stopped"].clone();
    assert_eq!(line(), Value::Null);
    environment.run(&["merge-queue", "pause", "--reason", "a release is under way"]).ok();
    assert_eq!(line(), "a release is under way");
    let told = environment.run(&["status"]).ok().stdout.clone();
    assert!(told.contains("nothing lands: a release is under way\n"), "{told}");
    assert!(told.contains("merge-queue resume"), "{told}");
    environment.run(&["merge-queue", "resume"]).ok();
    assert_eq!(line(), Value::Null);
}

#[test]
fn signals_are_lines_of_json_that_can_be_resumed() {
    let environment = Environment::with_project();
    let happened = |kind: &str, signals: Vec<(Signal, Value)>| {
        let mut change = Change::new(minutes_ago(1), kind);
        change.project = ProjectName::new("shop");
        change.issue = Some(3);
        change.session = Some("dev-shop-3.1".into());
        change.signals = signals;
        store(&environment).commit(&[change]).unwrap();
    };
    happened("session_started", vec![(Signal::AgentRegistered, json!({ "host": "here" }))]);
    happened("session_ended", vec![(Signal::AgentCrashed, json!({})), (Signal::AgentRegistered, json!({}))]);
    let signals = |args: &[&str]| -> Vec<Value> {
        let answer = environment.run(&[&["signals", "--json"], args].concat());
        answer.ok().stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let kinds = |signals: &[Value]| -> Vec<String> {
        signals.iter().map(|signal| signal["kind"].as_str().unwrap().to_owned()).collect()
    };
    let all = signals(&[]);
    assert_eq!(kinds(&all), ["AGENT_REGISTERED", "AGENT_CRASHED", "AGENT_REGISTERED"]);
    for field in ["seq", "at", "kind", "project", "issue", "session", "data"] {
        assert!(all.iter().all(|signal| !signal[field].is_null()), "{field} is missing in {all:?}");
    }
    happened("session_ended", vec![(Signal::MergeReady, json!({}))]);
    let last_seen = all[2]["seq"].to_string();
    assert_eq!(kinds(&signals(&["--since", &last_seen])), ["MERGE_READY"]);
    // A consumer that keeps its place in a file sees each once, whatever came while it was away.
    let file = environment.path("seen");
    let unseen = || signals(&["--bookmark", file.to_str().unwrap()]);
    assert_eq!(unseen().len(), 4);
    assert_eq!(unseen(), Vec::<Value>::new());
    happened("session_ended", vec![(Signal::MergeComplete, json!({}))]);
    assert_eq!(kinds(&unseen()), ["MERGE_COMPLETE"]);
    for (nonsense, why) in
        [("", "contain a number"), ("12 apples", "contain a number"), ("-1", "contain a number")]
    {
        std::fs::write(&file, nonsense).unwrap();
        environment.run(&["signals", "--bookmark", file.to_str().unwrap()]).code(2).says(why);
    }
    std::fs::write(&file, "9".repeat(100)).unwrap();
    environment.run(&["signals", "--bookmark", file.to_str().unwrap()]).code(2).says("bytes");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(environment.path("elsewhere"), &file).unwrap();
    environment.run(&["signals", "--bookmark", file.to_str().unwrap()]).code(2).says("symbolic link");
    assert_eq!(kinds(&signals(&["--kind", "AGENT_CRASHED"])), ["AGENT_CRASHED"]);
    let people = environment.run(&["signals"]);
    assert!(people.ok().stdout.contains("AGENT_REGISTERED         host=here"), "{people:?}");
    assert!(!people.stdout.contains("session_started"), "{people:?}");
    assert!(environment.run(&["events", "--json"]).ok().stdout.contains("session_started"));
}
