//! Budgets are counted in the store: restarts and parallel sessions do not get around them.

use pointsman::control::client;
use pointsman::control::protocol::{Reply, Request};
use pointsman_core::hook::{HookEvent, Report};
use pointsman_core::session::budget::{Spent, TokenClasses};
use pointsman_core::time::Timestamp;
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::super::hooks::{hook, payload, waiting_in};
use super::{measure, measure_tokens, shop};

#[test]
fn e2e_budget_a_soft_mark_warns_and_a_hard_mark_stops_with_the_work_captured() {
    let daemon =
        shop().set("budget.tokens_per_task", "1000").set("timing.handoff_timeout", "\"300ms\"").start();
    let issue = daemon.file_issue("Apples", "write src/apples.txt draft\nsay at work\nhang");
    daemon.wait_shown(issue, "at work");
    measure_tokens(&daemon, "dev-shop-1.1", 700);
    assert_eq!(daemon.notices().len(), 0);
    for tokens in [850, 850, 900] {
        measure_tokens(&daemon, "dev-shop-1.1", tokens);
    }
    daemon.wait_for("a warning", || (!daemon.notices().is_empty()).then_some(()));
    daemon.wait_settled(issue);
    assert_eq!(daemon.notices().len(), 1, "once: {:?}", daemon.notices());
    assert_eq!(daemon.task(issue)["state"], "working");
    // A restart neither forgets what was spent nor warns again.
    daemon.restart();
    measure_tokens(&daemon, "dev-shop-1.1", 910);
    measure_tokens(&daemon, "dev-shop-1.1", 1000);
    let task = daemon.wait_state(issue, "blocked");
    assert!(task["reason"].as_str().unwrap().contains("1000 of 1000 tokens"), "{task}");
    daemon.wait_settled(issue);
    assert_eq!(daemon.session(issue)["exit"], "exhausted");
    let rescues = daemon.rescues();
    assert!(rescues.iter().any(|r| r["session"] == "dev-shop-1.1"), "{rescues:?}");
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
}

#[test]
fn e2e_budget_a_day_that_is_used_up_ends_all_sessions_and_starts_none_even_after_a_restart() {
    let daemon = shop()
        .set("budget.tokens_per_day", "1000")
        .set("dev.concurrency", "3")
        .set("timing.handoff_timeout", "\"300ms\"")
        .start();
    let issues = ["apples", "pears"].map(|fruit| {
        let script = format!("write src/{fruit}.txt draft\nsay at work\nhang");
        daemon.file_issue(fruit, &script)
    });
    for issue in issues {
        daemon.wait_shown(issue, "at work");
    }
    measure_tokens(&daemon, "dev-shop-1.1", 600);
    measure_tokens(&daemon, "dev-shop-2.1", 400);
    for issue in issues {
        let task = wait_parked(&daemon, issue);
        assert!(task["reason"].as_str().unwrap().contains("of 1000 tokens"), "{task}");
    }
    let late = daemon.file_issue("Plums", "say at work\nhang");
    daemon.wait_state(late, "backlog");
    daemon.restart();
    let later = daemon.file_issue("Figs", "say at work\nhang");
    daemon.wait_state(later, "backlog");
    for issue in [late, later] {
        assert_eq!(daemon.task(issue)["state"], "backlog");
        assert_eq!(daemon.sessions(issue).len(), 0);
    }
    // One question for the day, and a person's yes lets all of them go on.
    let asked = wait_asked(&daemon);
    assert_eq!(asked["issue"], Value::Null, "{asked}");
    assert!(asked["subject"].as_str().unwrap().contains("1000 tokens"), "{asked}");
    daemon.json(&["inbox", "approve", &asked["id"].to_string()]);
    for issue in issues {
        daemon.wait_for("its next session", || (daemon.session(issue)["generation"] == 2).then_some(()));
    }
    daemon.wait_for("the task that waited", || (!daemon.sessions(late).is_empty()).then_some(()));
    measure_tokens(&daemon, "dev-shop-1.2", 1000);
    let again = wait_asked(&daemon);
    assert_ne!(again["id"], asked["id"], "what was granted can be used up, too");
}

/// A task whose session ended because the budget of the day is used up.
fn wait_parked(daemon: &TestDaemon, issue: u64) -> Value {
    daemon.wait_for("the end of its session", || {
        daemon.sessions(issue).iter().any(|session| session["exit"] == "exhausted").then_some(())
    });
    let task = daemon.task(issue);
    assert_eq!(task["state"], "working", "{task}");
    assert!(task["waiting_for"].is_string(), "{task}");
    task
}

/// The open question about a budget.
fn wait_asked(daemon: &TestDaemon) -> Value {
    daemon.wait_for("a question about the budget", || {
        let open = daemon.json(&["inbox"]);
        open.as_array()?.iter().find(|asked| asked["kind"] == "budget").cloned()
    })
}

#[test]
fn e2e_budget_of_an_issue_is_asked_about_and_a_yes_starts_the_task_again() {
    let daemon = shop().set("budget.usd_per_issue", "2.0").start();
    let issue = daemon.file_issue("Apples", "write src/apples.txt draft\nsay at work\nhang");
    daemon.wait_shown(issue, "at work");
    measure(&daemon, "dev-shop-1.1", None, usd(2_000_000));
    daemon.wait_state(issue, "blocked");
    daemon.wait_settled(issue);
    let asked = wait_asked(&daemon);
    assert_eq!((&asked["issue"], &asked["owner"]), (&json!(issue), &json!("concern/budget/issue-1")));
    daemon.restart();
    assert_eq!(wait_asked(&daemon)["id"], asked["id"], "it is asked once");
    let refused = daemon.run(&["task", "start", &issue.to_string()]);
    assert!(refused.stderr.contains("pointsman inbox"), "{refused:?}");
    daemon.json(&["inbox", "approve", &asked["id"].to_string()]);
    daemon.wait_state(issue, "working");
    daemon.wait_for("its next session", || (daemon.session(issue)["generation"] == 2).then_some(()));
    let second = daemon.run(&["inbox", "approve", &asked["id"].to_string()]);
    assert!(second.code == Some(3) && second.stderr.contains("was approved by"), "{second:?}");
    measure(&daemon, "dev-shop-1.2", None, usd(1_900_000));
    assert_eq!(daemon.task(issue)["state"], "working", "four dollars may be spent now");
    measure(&daemon, "dev-shop-1.2", None, usd(2_000_000));
    daemon.wait_state(issue, "blocked");
    let again = wait_asked(&daemon);
    daemon.json(&["inbox", "reject", &again["id"].to_string()]);
    assert_eq!(daemon.task(issue)["state"], "blocked");
}

#[test]
fn e2e_budget_of_turns_ends_the_session_between_two_turns_across_restarts_and_deaths() {
    let daemon = shop().set("roles.dev.budget.turns_per_task", "4").start();
    let script = "spend 10 1\nspend 10 1\nsay two turns\ncrash\nwrite src/apples.txt draft\n\
                  spend 10 1\nsay three turns\nspend 10 1\nsay too many\nhang";
    let issue = daemon.file_issue("Apples", script);
    daemon.wait_for("two turns", || (daemon.task(issue)["turns"].as_u64()? >= 2).then_some(()));
    daemon.restart();
    // Two turns of the first session and two of the second.
    let task = daemon.wait_state(issue, "blocked");
    assert!(task["reason"].as_str().unwrap().contains("4 of 4 turns"), "{task}");
    daemon.wait_settled(issue);
    assert_eq!(daemon.session(issue)["exit"], "exhausted");
    assert_eq!(daemon.task(issue)["turns"], 4);
    assert_eq!(daemon.task(issue)["restarts"], 1);
    let rescues = daemon.rescues();
    assert!(rescues.iter().any(|r| r["session"] == "dev-shop-1.2"), "{rescues:?}");
    assert!(daemon.events(issue).iter().any(|e| e["kind"] == "turn_ended"), "it was a boundary");
    // Not even a person starts it on nothing.
    let answer = daemon.run(&["task", "start", &issue.to_string()]);
    assert!(answer.code != Some(0) && answer.stderr.contains("the budget is used up"), "{answer:?}");
}

#[test]
fn e2e_budget_of_wall_time_needs_no_report() {
    let daemon =
        shop().set("budget.time_per_task", "\"1s\"").set("timing.handoff_timeout", "\"100ms\"").start();
    let issue = daemon.file_issue("Apples", "write src/apples.txt draft\nsay at work\nhang");
    let task = daemon.wait_state(issue, "blocked");
    assert!(task["reason"].as_str().unwrap().contains("of 1s of wall time"), "{task}");
    daemon.wait_settled(issue);
    assert_eq!(daemon.session(issue)["exit"], "exhausted");
}

#[test]
fn e2e_budget_turns_are_counted_by_the_hooks_of_claude_code_each_once() {
    let (daemon, issue) = waiting_in(shop().set("budget.turns_per_task", "3"));
    let stop = payload("Stop");
    hook(&daemon, issue, "Stop", &stop);
    assert_eq!(daemon.task(issue)["turns"], 1);
    // Delivered twice, as a spool may do, it is one turn.
    let told = HookEvent::Stopped { busy: false, messages: Vec::new(), used_tokens: None, said: None };
    let report =
        Report { id: "twice".to_owned(), session: "dev-shop-1.1".to_owned(), at: Timestamp(1), told };
    for _ in 0..2 {
        let reply = client::ask(&daemon.control_socket(), &Request::Hook { report: report.clone() });
        assert!(matches!(reply, Ok(Reply::Done { .. })), "{reply:?}");
    }
    assert_eq!(daemon.task(issue)["turns"], 2);
    assert_eq!(daemon.json(&["agents"])[0]["turns"], 2);
    daemon.restart();
    hook(&daemon, issue, "Stop", &stop);
    let task = daemon.wait_state(issue, "blocked");
    assert!(task["reason"].as_str().unwrap().contains("3 of 3 turns"), "{task}");
}

#[test]
fn e2e_budget_of_restarts_per_day_stops_a_crash_loop_of_all_tasks_together() {
    let daemon = shop().set("budget.restarts_per_day", "2").set("timing.restart_backoff", "\"10ms\"").start();
    let dies = daemon.file_issue("Apples", "crash\ncrash\ncrash\ncrash\nhang");
    let task = wait_parked(&daemon, dies);
    assert!(task["reason"].as_str().unwrap().contains("3 of 2 restarts"), "{task}");
    assert_eq!(task["restarts"], 3, "{task}");
    let agents = daemon.json(&["agents", "--all"]);
    let restarts: Vec<u64> = agents
        .as_array()
        .unwrap()
        .iter()
        .filter(|a| a["role"] == "dev")
        .filter_map(|a| a["restarts"].as_u64())
        .collect();
    assert_eq!(restarts, [0, 1, 2, 3], "each says how many died before it");
    // Another task of the day begins no more than this one.
    let late = daemon.file_issue("Pears", "say at work\nhang");
    daemon.wait_state(late, "backlog");
    daemon.restart();
    assert_eq!((daemon.task(late)["state"].as_str(), daemon.sessions(late).len()), (Some("backlog"), 0));
}

#[test]
fn e2e_budget_of_a_role_counts_its_sessions_together_and_a_day_of_it_too() {
    for key in ["roles.dev.budget.tokens_per_day", "budget.tokens_per_day"] {
        let daemon = shop()
            .set(key, "1000")
            .set("dev.concurrency", "2")
            .set("timing.handoff_timeout", "\"300ms\"")
            .start();
        let issues = ["apples", "pears"].map(|fruit| daemon.file_issue(fruit, "say at work\nhang"));
        for issue in issues {
            daemon.wait_shown(issue, "at work");
        }
        measure_tokens(&daemon, "dev-shop-1.1", 500);
        daemon.restart();
        measure_tokens(&daemon, "dev-shop-2.1", 499);
        assert!(issues.iter().all(|issue| daemon.task(*issue)["state"] == "working"), "{key}");
        measure_tokens(&daemon, "dev-shop-2.1", 500);
        for issue in issues {
            let task = wait_parked(&daemon, issue);
            assert!(task["reason"].as_str().unwrap().contains("1000 of 1000 tokens"), "{key}: {task}");
        }
    }
}

/// A formula's agent that reports what it spent, and stays.
const SPENDER: &str = r#"
PROGRAM gauge --tokens 5000 --usd 1.5 > "$HOME/first-$POINTSMAN_SESSION" 2>&1; echo "$?" >> "$HOME/first-$POINTSMAN_SESSION"
PROGRAM gauge --json --input-tokens 100 --cache-writes 200 --cache-reads 9000 --output-tokens 50 --context 0.4 \
    > "$HOME/second-$POINTSMAN_SESSION" 2>&1; echo "$?" >> "$HOME/second-$POINTSMAN_SESSION"
read -r line
read -r line
"#;

const FORMULA: &str = "name = \"tidy\"\ndescription = \"Tidies\"\nversion = 1\n\n[[steps]]\nid = \"look\"\n\
                       title = \"Look\"\ndescription = \"Look.\"\n";

fn spends_in_a_run(setup: Setup) -> Setup {
    let agent = SPENDER.replace("PROGRAM", env!("CARGO_BIN_EXE_pointsman"));
    setup.agent(&agent).file("formulas/tidy.toml", FORMULA)
}

/// The figures of one role.
fn role(daemon: &TestDaemon, name: &str) -> Value {
    let roles = daemon.json(&["roles"]);
    roles.as_array().unwrap().iter().find(|role| role["role"] == name).unwrap().clone()
}

/// The lines that an agent left in its home.
fn told(daemon: &TestDaemon, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(daemon.path("home").join(name)).ok()?;
    text.trim_end().ends_with(|last: char| last.is_ascii_digit()).then_some(text)
}

fn usd(micro_usd: u64) -> Option<Spent> {
    Some(Spent { micro_usd, ..Spent::default() })
}

#[test]
fn e2e_budget_a_formula_run_tells_what_it_spends_by_class_and_in_money() {
    let daemon = spends_in_a_run(shop()).start();
    daemon.json(&["formula", "run", "tidy"]);
    let first = daemon.wait_for("the first report", || told(&daemon, "first-action-shop-1.1"));
    assert_eq!(first, "0\n", "exit code 0 and no complaint");
    let second = daemon.wait_for("the second report", || told(&daemon, "second-action-shop-1.1"));
    assert!(second.ends_with("0\n") && second.contains("action-shop-1.1"), "{second}");
    let work = role(&daemon, "action");
    assert_eq!((&work["tokens"], &work["usd"]), (&json!(9350), &json!(1.5)), "{work}");
    let agent = daemon.json(&["agents"])[0].clone();
    assert_eq!((&agent["cost_usd"], &agent["context_percent"]), (&json!(1.5), &json!(40.0)), "{agent}");
    assert_eq!(daemon.json(&["status"])["projects"][0]["spent_today"]["usd"], 1.5);
}

#[test]
fn e2e_budget_of_every_role_is_read_and_stops_its_runs_and_no_others() {
    let daemon = spends_in_a_run(shop().set("roles.action.budget.usd_per_day", "2")).start();
    let working = daemon.file_issue("Apples", "");
    daemon.wait_session(working, 1);
    daemon.json(&["formula", "run", "tidy"]);
    daemon.wait_for("the second report", || told(&daemon, "second-action-shop-1.1"));
    measure(&daemon, "action-shop-1.1", None, usd(2_000_000));
    let run = daemon.wait_for("the run to be over", || {
        let run = daemon.json(&["run", "show", "1"]);
        (run["open"] == false).then_some(run)
    });
    assert_eq!(run["status"], "stopped", "{run}");
    assert!(run["reason"].as_str().unwrap().contains("2.00 of 2.00 USD"), "{run}");
    let again = daemon.run(&["formula", "run", "tidy"]);
    assert!(again.code == Some(3) && again.stderr.contains("2.00 of 2.00 USD"), "{again:?}");
    assert_eq!(daemon.task(working)["state"], "working", "dev has a budget of its own");
}

#[test]
fn e2e_budget_a_review_agent_that_spends_stops_the_day_for_all() {
    let daemon = shop()
        .set("review.mode", "\"agent\"")
        .set("limits.min_free_memory_mb", "0")
        .set("dev.concurrency", "2")
        .set("budget.usd_per_day", "3")
        .set("timing.handoff_timeout", "\"300ms\"")
        .start();
    let works = daemon.file_issue("Apples", "write src/apples.txt draft\nsay at work\nhang");
    let script = "write src/figs.txt figs\ncommit Add figs\npush\nphase awaiting_ci\nexpect CI passed\n\
                  phase awaiting_review\nhang";
    let text = format!(
        "rehearsal:begin\n{script}\nrehearsal:end\nrehearsal-review:begin\nsay looking\nhang\nrehearsal-review:end\n"
    );
    let reviewed = daemon.file_issue_with("Figs in src/figs.txt", &text);
    daemon.wait_shown(works, "at work");
    let review = daemon.wait_for("a review", || {
        let agents = daemon.json(&["agents"]);
        let agents = agents.as_array()?.iter().filter(|agent| agent["role"] == "review");
        agents.filter_map(|agent| agent["session_id"].as_str()).next().map(str::to_owned)
    });
    measure(&daemon, &review, None, usd(2_990_000));
    assert_eq!(daemon.task(works)["state"], "working");
    // What the review spends is spent on the issue that it is about.
    measure(&daemon, &review, None, usd(3_000_000));
    let task = wait_parked(&daemon, works);
    assert!(task["reason"].as_str().unwrap().contains("3.00 of 3.00 USD"), "{task}");
    // Its review was stopped, so a person is asked for one.
    daemon.wait_state(reviewed, "escalated");
    daemon.wait_for("the review to end", || {
        let runs = daemon.json(&["run", "list"]);
        runs.as_array()?.iter().all(|run| run["open"] == false && run["status"] == "stopped").then_some(())
    });
    let late = daemon.file_issue("Plums", "say at work\nhang");
    daemon.wait_state(late, "backlog");
    daemon.restart();
    assert_eq!(daemon.task(late)["state"], "backlog");
    assert_eq!(
        daemon.json(&["run", "list"]).as_array().unwrap().len(),
        1,
        "no review begins on an empty purse"
    );
    assert_eq!(role(&daemon, "review")["usd"], 3.0);
}

#[test]
fn e2e_budget_of_an_issue_counts_its_reviews_and_fresh_tokens_leave_out_what_a_cache_gave() {
    let daemon = shop()
        .set("budget.usd_per_issue", "2")
        .set("budget.fresh_tokens_per_task", "1000")
        .set("timing.handoff_timeout", "\"300ms\"")
        .set("dev.concurrency", "2")
        .start();
    let issues = ["apples", "pears"].map(|fruit| daemon.file_issue(fruit, "say at work\nhang"));
    for issue in issues {
        daemon.wait_shown(issue, "at work");
    }
    let cached = TokenClasses { input: 100, cache_writes: 300, cache_reads: 900_000, output: 99 };
    measure(&daemon, "dev-shop-1.1", None, Some(Spent::of_classes(cached)));
    measure(&daemon, "dev-shop-2.1", None, usd(1_500_000));
    assert!(issues.iter().all(|issue| daemon.task(*issue)["state"] == "working"));
    let more = TokenClasses { output: 600, ..cached };
    measure(&daemon, "dev-shop-1.1", None, Some(Spent::of_classes(more)));
    let task = daemon.wait_state(issues[0], "blocked");
    assert!(task["reason"].as_str().unwrap().contains("1000 of 1000 fresh tokens"), "{task}");
    measure(&daemon, "dev-shop-2.1", None, usd(2_000_000));
    let task = daemon.wait_state(issues[1], "blocked");
    assert!(task["reason"].as_str().unwrap().contains("2.00 of 2.00 USD"), "{task}");
}
