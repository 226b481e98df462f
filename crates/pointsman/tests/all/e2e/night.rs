//! The morning after a night: twenty tasks with default timings on a staged clock, in which everything that can go wrong does so
//! once. `status` and `inbox` name exactly what waits, and `report` counts what the log says.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::{adds, shop};

/// The clock goes on by this much at every look.
const TICK_MS: i64 = 5_000;
const HOUR_MS: i64 = 3_600_000;

const LAND: &str = "expect CI passed\nphase awaiting_review\nexpect Approved\nexpect Merged\nphase done";

/// The default configuration, but for what a test machine cannot have.
fn by_default() -> Setup {
    let keys = ["forge_poll", "phase_rescan", "idle_look", "restart_backoff", "stop_grace", "done_grace"];
    keys.iter().fold(shop(), |setup, key| setup.unset(&format!("timing.{key}"))).unset("review.mode").staged()
}

struct Night {
    daemon: TestDaemon,
    ahead: Cell<i64>,
}

impl Night {
    fn later(&self, by_ms: i64) {
        self.ahead.set(self.ahead.get() + by_ms);
        self.daemon
            .stage(&json!({ "ahead_ms": self.ahead.get(), "disk_percent": 10, "free_memory_mb": 8000 }));
    }

    fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        self.daemon.wait_for(what, || {
            self.later(TICK_MS);
            look()
        })
    }

    fn tasks(&self) -> BTreeMap<u64, Value> {
        let tasks = self.daemon.json(&["task", "list"]);
        let tasks = tasks.as_array().cloned().unwrap_or_default();
        tasks.into_iter().map(|task| (task["issue"].as_u64().unwrap(), task)).collect()
    }

    fn wait_states(&self, what: &str, wanted: &[(u64, &str)]) {
        self.wait(what, || {
            let tasks = self.tasks();
            wanted
                .iter()
                .all(|(issue, state)| tasks.get(issue).is_some_and(|task| task["state"] == *state))
                .then_some(())
        });
    }

    fn events(&self) -> Vec<Value> {
        let answer = self.daemon.run(&["events", "--json"]);
        answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The kinds of the open questions with their issues, as the log of events has them.
fn asked(events: &[Value]) -> BTreeMap<u64, (String, Option<u64>)> {
    let mut open = BTreeMap::new();
    for event in events {
        let data = &event["data"];
        let id = data["question"].as_u64().or_else(|| data["id"].as_u64());
        match event["kind"].as_str().unwrap() {
            "question_asked" => {
                let kind = data["kind"].as_str().unwrap().to_owned();
                open.insert(id.unwrap(), (kind, event["issue"].as_u64()));
            }
            "question_settled" => drop(open.remove(&id.unwrap())),
            _ => {}
        }
    }
    open
}

/// The question that a task's state alone demands; none if nobody is needed.
fn needed(task: &Value) -> Option<&'static str> {
    match task["state"].as_str().unwrap() {
        "awaiting_review" => Some("review"),
        "escalated" => Some("question"),
        "blocked" => Some("blocked"),
        // The one that names an open issue begins again by itself.
        "refused" if task["open_dependencies"] == json!([]) => Some("refused"),
        _ => None,
    }
}

#[test]
fn e2e_the_morning_after_a_night_of_twenty_tasks_names_exactly_what_waits() {
    let daemon = by_default().set("dev.concurrency", "6").set("merge.outside_pushes", "\"pause\"").build();
    let night = Night { daemon, ahead: Cell::new(0) };
    night.later(0);
    night.daemon.start();
    let file = |title: &str, script: &str| night.daemon.file_issue(title, script);

    // What goes wrong and gives its place back.
    let too_large = file("Everything", "refuse too_large all of it at once");
    let failed = file("Hopeless", "phase failed the till is locked");
    let red = format!(
        "write src/red.txt BUG 1\ncommit One\npush\nphase awaiting_ci\n{}",
        (2..=4)
            .map(|n| format!(
                "expect CI failed\nwrite src/red.txt BUG {n}\ncommit More\npush\nphase awaiting_ci\n"
            ))
            .collect::<String>()
    );
    let exhausted = file("Red for ever", &red);
    night.wait_states(
        "the first three to be stuck",
        &[(too_large, "refused"), (failed, "blocked"), (exhausted, "blocked")],
    );

    // What lands while somebody is still awake.
    let landed: Vec<u64> =
        ["apples", "pears", "plums"].map(|fruit| file(fruit, &format!("{}\n{LAND}", adds(fruit)))).to_vec();
    for issue in &landed {
        night.wait_states("a review", &[(*issue, "awaiting_review")]);
        night.wait("its pull request", || night.tasks()[issue]["pr"].as_u64());
        night.daemon.approve(*issue);
    }
    night.wait("the three to land", || {
        let tasks = night.tasks();
        landed.iter().all(|issue| tasks[issue]["state"] == "closed").then_some(())
    });

    // What holds a place until the morning: four reviews, one of them of an agent that died, and two questions.
    let review = |fruit: &str| file(fruit, &format!("{}\n{LAND}", adds(fruit)));
    let figs = review("figs");
    let first = format!("refuse unmet_dependency #{figs} the figs come first");
    let waits_for_issue = file("After the figs", &first);
    let mut reviews = vec![figs, review("dates"), review("kiwis")];
    reviews.push(file("limes", &format!("crash\n{}\n{LAND}", adds("limes"))));
    let questions: Vec<u64> = ["Which price?", "Which colour?"]
        .map(|question| {
            file(question, &format!("phase escalate {question}\nexpect Answer\n{}", adds("guavas")))
        })
        .to_vec();
    let body =
        format!("Depends on #{failed}.\n```text\nrehearsal:begin\n{}\nrehearsal:end\n```\n", adds("nuts"));
    let behind = night.daemon.file_issue_with("Behind the hopeless one", &body);
    let ready: Vec<u64> = (0..6).map(|n| file(&format!("Ready {n}"), &adds("grapes"))).collect();
    let mut wanted: Vec<(u64, &str)> = reviews.iter().map(|issue| (*issue, "awaiting_review")).collect();
    wanted.extend(questions.iter().map(|issue| (*issue, "escalated")));
    wanted.push((behind, "waiting_dependencies"));
    wanted.push((waits_for_issue, "refused"));
    wanted.extend(ready.iter().map(|issue| (*issue, "backlog")));
    night.wait_states("everybody to be where the night ends", &wanted);

    // Somebody pushes to main past the queue.
    let url = night.daemon.run(&["forge", "url"]).stdout.trim().to_owned();
    let work = night.daemon.path("elsewhere");
    night.daemon.git_in(&night.daemon.path(""), &["clone", "--quiet", &url, work.to_str().unwrap()]);
    fs::write(work.join("src/odd.txt"), "odd\n").unwrap();
    night.daemon.git_in(&work, &["add", "src"]);
    night.daemon.git_in(&work, &["commit", "--quiet", "--message", "odd"]);
    night.daemon.git_in(&work, &["push", "--quiet", "origin", "HEAD:main"]);
    night.wait("the queue to pause", || {
        let inbox = night.daemon.json(&["inbox"]);
        inbox.as_array()?.iter().any(|asked| asked["kind"] == "queue_paused").then_some(())
    });
    // Two hours later, and the daemon was killed in between: nothing is asked twice, nothing is forgotten.
    night.daemon.kill_daemon();
    night.later(2 * HOUR_MS);
    night.daemon.restart();
    night.wait("the question about what never starts", || {
        let inbox = night.daemon.json(&["inbox"]);
        inbox.as_array()?.iter().any(|asked| asked["kind"] == "starved").then_some(())
    });

    let tasks = night.tasks();
    assert_eq!(tasks.len(), 20);
    let mut due: Vec<(String, Option<u64>)> = tasks
        .iter()
        .filter_map(|(issue, task)| Some((needed(task)?.to_owned(), Some(*issue))))
        .chain([("queue_paused".to_owned(), None), ("starved".to_owned(), None)])
        .collect();
    due.sort();
    let inbox = night.daemon.json(&["inbox"]);
    let inbox = inbox.as_array().unwrap();
    let shown =
        |question: &Value| (question["kind"].as_str().unwrap().to_owned(), question["issue"].as_u64());
    let mut listed: Vec<_> = inbox.iter().map(shown).collect();
    listed.sort();
    assert_eq!(listed, due, "the inbox is what the tasks and the queue need");
    assert_eq!(due.len(), 4 + 2 + 2 + 1 + 2, "{due:?}");
    let events = night.events();
    let mut logged: Vec<_> = asked(&events).into_values().collect();
    logged.sort();
    let kinds = |all: &[(String, Option<u64>)]| all.iter().map(|(kind, _)| kind.clone()).collect::<Vec<_>>();
    assert_eq!(kinds(&logged), kinds(&due), "and what was asked and not settled in the log");

    // `status` has every task once: it needs somebody, runs or waits, unless it is over.
    let status = night.daemon.json(&["status"]);
    let ids = |all: &Value| {
        all.as_array().unwrap().iter().map(|one| one["id"].clone().to_string()).collect::<BTreeSet<_>>()
    };
    assert_eq!(ids(&status["questions"]), ids(&json!(inbox)));
    let issues = |part: &str| -> BTreeSet<u64> {
        status[part].as_array().unwrap().iter().map(|task| task["issue"].as_u64().unwrap()).collect()
    };
    assert_eq!(issues("landed"), landed.iter().copied().collect());
    assert_eq!(issues("waiting"), ready.iter().copied().chain([behind, waits_for_issue]).collect());
    assert!(issues("running").is_empty(), "{status}");
    let waiting = status["waiting"].as_array().unwrap();
    let reason = |issue: u64| {
        let found = waiting.iter().find(|task| task["issue"] == issue).unwrap();
        found["waiting_for"].as_str().unwrap().to_owned()
    };
    assert!(reason(ready[0]).contains("concurrency is 6"), "{}", reason(ready[0]));
    assert!(reason(behind).contains(&format!("#{failed}")), "{}", reason(behind));
    assert!(reason(waits_for_issue).contains(&format!("#{figs}")), "{}", reason(waits_for_issue));
    let page = night.daemon.run(&["status"]).stdout;
    for (_, issue) in &due {
        assert!(issue.is_none_or(|issue| page.contains(&format!("#{issue}"))), "{issue:?}: {page}");
    }

    // `report` against the log.
    let report = night.daemon.json(&["report"]);
    let count = |wanted: &dyn Fn(&Value) -> bool| events.iter().filter(|event| wanted(event)).count();
    let to = |event: &Value, state: &str| event["data"]["from"].is_string() && event["data"]["to"] == state;
    assert_eq!(report["issues_landed"], count(&|event| to(event, "merged")));
    assert_eq!(report["issues_landed"], 3);
    assert_eq!(report["reviews"]["asked"], count(&|event| to(event, "awaiting_review")));
    assert_eq!(report["ci"]["runs"], count(&|event| event["kind"] == "checks_finished"));
    let is_red = |event: &Value| event["data"]["verdict"]["verdict"] == "failed";
    assert_eq!(report["ci"]["red"], count(&|event| event["kind"] == "checks_finished" && is_red(event)));
    assert_eq!(
        report["by_role"][0]["sessions"],
        night.daemon.json(&["session", "list"]).as_array().unwrap().len()
    );
}
