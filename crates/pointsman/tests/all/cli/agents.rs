//! Who is alive, asked without and with a daemon.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use pointsman_core::task::Exit;
use pointsman_store::Write;
use serde_json::{Value, json};

use super::daemon::{running, working};
use super::environment::{Environment, finish};
use super::registry::{minutes_ago, store, with_agents, write};
use crate::e2e::resilience::identity::SCHEMA;

/// Sessions and their colours.
fn colours(agents: &Value) -> Vec<(&str, &str)> {
    let agents = agents.as_array().unwrap();
    agents
        .iter()
        .filter(|agent| agent["role"] != "daemon")
        .map(|agent| (agent["session_id"].as_str().unwrap(), agent["liveness"].as_str().unwrap()))
        .collect()
}

#[test]
fn ac_1_5_the_registry_is_for_scripts_too_and_needs_no_daemon() {
    let environment = with_agents();
    let agents = environment.json(&["agents"]);
    assert_eq!(
        colours(&agents),
        [
            ("dev-shop-1.1", "green"),
            ("dev-shop-2.1", "yellow"),
            ("dev-shop-3.2", "red"),
            ("dev-shop-6.1", "yellow"),
            ("dev-shop-7.1", "yellow"),
            ("dev-shop-8.1", "red"),
        ]
    );
    let shown = ["liveness", "task", "phase", "context_percent", "cost_usd", "tokens", "state"];
    for field in SCHEMA.iter().chain(&shown) {
        assert!(agents[0].get(*field).is_some(), "{field} is missing in {}", agents[0]);
    }
    let first = &agents[0];
    assert_eq!((&first["role"], &first["name"]), (&json!("dev"), &json!("shop-1")));
    assert_eq!((&first["state"], &first["phase"]), (&json!("working"), &json!("awaiting_ci")));
    assert_eq!((&first["context_percent"], &first["cost_usd"]), (&json!(42.5), &json!(1.27)));
    assert_eq!((&first["tokens"], &first["model"]), (&json!(81_000), &json!("sonnet")));
    assert_eq!((&first["status"], &first["node_id"]), (&json!("active"), &Value::Null));
    assert_eq!(agents[2]["predecessor_id"], "dev-shop-3.1", "AC-1.4");
    assert_eq!((&agents[1]["restarts"], &agents[2]["restarts"]), (&json!(0), &json!(1)));
    assert_eq!((&agents[3]["status"], &agents[5]["status"]), (&json!("starting"), &json!("crashed")));
    environment.run(&["agents"]).ok().says("The daemon is not running");
}

#[test]
fn r1_6_people_see_a_shape_and_a_word_beside_the_colour() {
    let environment = with_agents();
    insta::assert_snapshot!(environment.run(&["agents", "--all"]).ok().stdout, @r"
    LIVENESS   AGENT         ROLE  TASK  STATE    PHASE        WORK  AGE  SEEN     RESTARTS  CONTEXT  COST
    ● fresh    dev-shop-1.1  dev   #1    working  awaiting_ci        2h   20m ago            42.5%    1.27 USD, 12 turns
    ◐ stale    dev-shop-2.1  dev   #2                                2h   20m ago                     —
    ✖ crashed  dev-shop-3.1  dev   #3                                2h   20m ago                     —
    ✖ crashed  dev-shop-3.2  dev   #3                                2h   20m ago  1                  —
    ○ ended    dev-shop-4.1  dev   #4                                2h   20m ago                     —
    ✖ crashed  dev-shop-5.1  dev   #5                                2h   20m ago                     —
    ◐ unknown  dev-shop-6.1  dev   #6                                2h   20m ago                     —
    ◐ unknown  dev-shop-7.1  dev   #7                                2h   20m ago                     —
    ✖ crashed  dev-shop-8.1  dev   #8                                2h   20m ago                     —
    ");
    let mut command = environment.command(&["agents"]);
    command.env("CLICOLOR_FORCE", "1");
    let coloured = finish(command, b"");
    assert!(coloured.ok().stdout.contains("\u{1b}[32m● fresh"), "{coloured:?}");
    assert!(coloured.stdout.contains("\u{1b}[31m✖ crashed"), "{coloured:?}");
}

#[test]
fn one_project_or_nobody_at_all() {
    let environment = with_agents();
    assert_eq!(environment.json(&["agents", "--project", "other"]), json!([]));
    assert_eq!(environment.json(&["agents", "--all", "--project", "shop"]).as_array().unwrap().len(), 9);
    let empty = Environment::empty();
    assert_eq!(empty.json(&["agents"]), json!([]));
    empty.run(&["agents"]).ok().prints("").says("No agents");
}

#[test]
fn watching_looks_again_until_it_is_interrupted() {
    let environment = with_agents();
    let mut child = environment
        .command(&["agents", "--watch", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let mut store = store(&environment);
    let mut row = store.session("dev-shop-1.1").unwrap().unwrap();
    (row.ended_at, row.exit) = (Some(minutes_ago(0)), Some(Exit::Done));
    write(&mut store, Write::Session(Box::new(row)));
    let is_without = |agents: &Value| agents.as_array().unwrap().iter().all(|a| a["task"] != 1);
    assert!(!is_without(&first));
    // A look may have begun before the end was written; not two.
    let later: Vec<Value> =
        lines.by_ref().take(2).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(is_without(&later[1]), "{later:?}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn ac_1_1_a_running_session_is_registered_reports_and_is_explained() {
    let environment = running();
    environment.json_until(&["task", "list"], working);
    let agents = environment.json(&["agents"]);
    assert_eq!(colours(&agents), [("dev-shop-1.1", "green")]);
    assert!(!environment.run(&["agents"]).ok().stderr.contains("not running"));

    let explained = environment.json(&["session", "explain", "1"]);
    for field in ["session", "liveness", "evidence", "work_state"] {
        assert!(!explained[field].is_null(), "{field} is missing in {explained}");
    }
    assert_eq!((&explained["session"], &explained["liveness"]), (&json!("dev-shop-1.1"), &json!("green")));
    let evidence = explained["evidence"].as_array().unwrap();
    for line in ["the process (pid and start time) is there", "its terminal is there"] {
        assert!(evidence.contains(&json!(line)), "{line:?} is missing in {explained}");
    }
    assert_eq!(explained["work_state"]["work_phase"], "investigation");

    let report = |args: &[&str]| environment.run(&[args, &["--session", "dev-shop-1.1"]].concat());
    report(&["checkpoint", "--phase", "testing", "--summary", "-two tests\u{1b}[31m fail"]).ok();
    report(&["gauge", "--context", "0.5", "--usd", "1.27", "--tokens", "81000"]).ok();
    report(&["gauge", "--usd", "1.20"]).ok();
    let explained = environment.json(&["session", "explain", "1"]);
    assert_eq!(explained["work_state"]["work_phase"], "testing");
    assert_eq!(explained["work_state"]["work_summary"], "-two tests fail");
    let task = environment.json(&["task", "show", "1"]);
    assert_eq!((&task["context_percent"], &task["cost_usd"]), (&json!(50.0), &json!(1.27)));
    assert_eq!(task["attempts"]["handoffs"], 0);
    let text = environment.run(&["task", "explain", "1"]);
    assert!(text.ok().stdout.contains("the context is 50% full, according to its status line"), "{text:?}");
    assert!(text.stdout.contains("1.27 USD, 81000 tokens"), "{text:?}");
    let agents = environment.json(&["agents"]);
    assert_eq!(agents[0]["work_phase"], "testing", "{agents}");
    assert!(agents[0]["wall_seconds"].is_u64(), "{agents}");
    let status = environment.run(&["status"]);
    assert!(status.ok().stdout.contains("Cost today\n  shop 1.27 USD, 81000 tokens"), "{status:?}");
    assert_eq!(environment.json(&["status"])["projects"][0]["spent_today"]["usd"], 1.27);
}
