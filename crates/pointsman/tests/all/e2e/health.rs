//! How well things are: by command with and without a daemon, and by the supervisor's own looks.

use std::fs;
use std::time::{Duration, SystemTime};

use pointsman_core::health::Memory;
use pointsman_core::ids::ProjectName;
use pointsman_core::time::Timestamp;
use pointsman_store::{Change, Store};
use pointsman_testkit::fake_forgejo::{FakeForgejo, Rules};
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::{adds, clean, forgejo, shop};

/// A project that finds nothing wrong with the machine that the tests happen to run on.
fn on_any_machine() -> Setup {
    shop()
        .set("health.min_memory_mb", "0")
        .set("health.max_swap_mb", "1000000000")
        .set("health.max_disk_percent", "100")
        .set("health.max_load_percent", "1000000")
}

/// A project where every disk is too full, whatever it holds.
pub(crate) fn full_disk() -> Setup {
    on_any_machine().set("health.max_disk_percent", "0")
}

fn keys(health: &Value) -> Vec<String> {
    let findings = health["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["key"].as_str().unwrap().to_owned()).collect()
}

/// Lets the supervisor's time come while the daemon is away.
pub(crate) fn make_due(daemon: &TestDaemon, formula: &str) {
    let_due(daemon, formula);
    daemon.start();
}

/// The same; whoever calls starts the daemon.
pub(crate) fn let_due(daemon: &TestDaemon, formula: &str) {
    daemon.stop_daemon();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let snapshot = json!({ "seen": now, "used": now, "inputs": null, "skipped_because": null });
    let mut store = Store::open(&daemon.state().join("pointsman.db")).unwrap();
    let project = ProjectName::new("shop").unwrap();
    let mut change = Change::new(Timestamp(0), "remembered");
    change.project = Some(project);
    change.memories.push(pointsman_store::Memory {
        name: format!("timetable.{formula}"),
        version: 1,
        snapshot,
    });
    store.commit(&[change]).unwrap();
}

#[test]
fn e2e_health_is_told_with_and_without_a_daemon() {
    let daemon = full_disk().start();
    let issue = daemon.file_issue("Apples", &format!("{}\nphase escalate Which?\nexpect Answer", adds("a")));
    daemon.wait_state(issue, "escalated");
    let health = daemon.json(&["health"]);
    assert_eq!((&health["worst"], &health["daemon"]), (&"P1".into(), &true.into()));
    assert!(keys(&health).contains(&"all-wait".to_owned()), "{health}");
    assert_eq!((&health["tasks"]["escalated"], &health["open_issues"]), (&1.into(), &1.into()));
    assert!(health["machine"]["free_memory_mb"].as_u64().is_some_and(|free| free > 0));
    let text = daemon.run(&["health"]).stdout;
    assert!(
        text.contains("P1 the disk of ") && text.contains("P2 everything waits for a person: #1"),
        "{text}"
    );

    daemon.stop_daemon();
    let health = daemon.json(&["health"]);
    assert_eq!(health["daemon"], false);
    assert!(keys(&health).contains(&"daemon".to_owned()), "{health}");
    let unknown: Vec<&str> = health["unknown"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(unknown.contains(&"issues") && unknown.contains(&"forge"), "{health}");
    let text = daemon.run(&["health"]).stdout;
    assert!(text.contains("Unknown (no daemon is running): "), "{text}");
    assert_eq!(daemon.run(&["health", "--fix"]).code, Some(5));
}

#[test]
fn e2e_health_shows_the_ends_of_logs_without_secrets() {
    let daemon = on_any_machine().start();
    let issue = daemon.file_issue("Apples", &format!("{}\nphase escalate Which?\nexpect Answer", adds("a")));
    daemon.wait_state(issue, "escalated");
    assert!(
        daemon.json(&["health"])["unknown"].as_array().unwrap().contains(&"log".into()),
        "somebody else keeps it"
    );
    // As a detached daemon writes it.
    let now = jiff::Timestamp::now();
    let line = |n: u32| format!("{now} ERROR not written yet tries={n} token=hunter2hunter2\n");
    fs::write(daemon.state().join("daemon.log"), (1..=10).map(line).collect::<String>()).unwrap();
    let health = daemon.wait_for("the session's log to be shown", || {
        let health = daemon.json(&["health"]);
        (health["logs"].as_array()?.len() == 2).then_some(health)
    });
    let text = |finding: &Value| finding["text"].as_str().unwrap_or_default().to_owned();
    let told: Vec<String> = health["findings"].as_array().unwrap().iter().map(text).collect();
    let repeated = "the daemon logged this 10 times within an hour: not written yet tries=# token=[secret]";
    assert!(told.contains(&repeated.to_owned()), "{told:?}");
    let logs = health["logs"].as_array().unwrap();
    assert_eq!((&logs[0]["of"], &logs[1]["of"]), (&"daemon".into(), &"dev-shop-1.1".into()));
    assert!(!health.to_string().contains("hunter2"), "{health}");
    assert_eq!(
        (&health["agents"][0]["session"], &health["agents"][0]["phase"]),
        (&"dev-shop-1.1".into(), &"escalate".into())
    );
    daemon.stop_daemon();
    assert_eq!(daemon.json(&["health"])["logs"][0], logs[0], "also without a daemon");
}

#[test]
fn e2e_health_a_forge_is_silent_when_it_is_asked_and_does_not_answer() {
    let fake = FakeForgejo::start(Rules::default());
    // Seldom asked is not silent, however impatient we are.
    let rare = forgejo::on(&fake).set("timing.forge_poll", "\"1h\"").set("health.stalled_after", "\"1ms\"");
    let daemon = forgejo::start(&fake, rare);
    let known = daemon.wait_for("the issues to be known", || {
        let health = daemon.json(&["health"]);
        (!health["unknown"].as_array()?.contains(&"issues".into())).then_some(health)
    });
    assert!(!keys(&known).contains(&"forge".to_owned()), "{known}");

    fake.change(|rules| rules.faults.errors = 100);
    daemon.stop_daemon();
    daemon.start();
    daemon.wait_for("the forge to be found silent", || {
        keys(&daemon.json(&["health"])).contains(&"forge".to_owned()).then_some(())
    });
    fake.change(|rules| rules.faults.errors = 0);
    daemon.stop_daemon();
    daemon.start();
    daemon.wait_for("it to be well again", || {
        let health = daemon.json(&["health"]);
        let known = !health["unknown"].as_array()?.contains(&"issues".into());
        (known && !keys(&health).contains(&"forge".to_owned())).then_some(())
    });
}

#[test]
fn e2e_health_remedies_are_said_first_and_destroy_no_work() {
    let daemon = on_any_machine().set("health.keep", "\"1h\"").start();
    let issue = daemon.file_issue("Apples", &clean("apples"));
    daemon.wait_closed(issue);
    daemon.wait_settled(issue);
    let logs = daemon.state().join("projects/shop/logs");
    let (old, young, other) = (logs.join("old.log"), logs.join("young.log"), logs.join("old.txt"));
    for file in [&old, &young, &other] {
        fs::write(file, "words").unwrap();
    }
    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    for file in [&old, &other] {
        fs::File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
    }
    assert_eq!(keys(&daemon.json(&["health"])), ["logs"]);
    let dry = daemon.json(&["health", "--fix", "--dry-run"]);
    assert_eq!(dry["done"], json!([format!("remove {}", old.display())]));
    assert!(old.exists());
    daemon.json(&["health", "--fix"]);
    assert!(!old.exists() && young.exists() && other.exists());
    assert_eq!(daemon.json(&["health"])["findings"], json!([]));
}

#[test]
fn e2e_health_the_supervisor_tells_what_it_found_and_nothing_twice() {
    let daemon = full_disk().set("roles.supervisor.enabled", "true").start();
    let told = |daemon: &TestDaemon| -> Vec<String> {
        let notices = daemon.notices();
        let titles = notices.iter().filter_map(|notice| notice["title"].as_str());
        titles.filter(|title| title.contains("needs a person, P1: the disk of")).map(str::to_owned).collect()
    };
    make_due(&daemon, "run-supervisor");
    daemon.wait_for("people to be told", || (told(&daemon).len() == 1).then_some(()));
    let looks = || daemon.run(&["events", "--kind", "supervisor_looked", "--json"]).stdout.lines().count();
    daemon.wait_for("the look to be written down", || (looks() > 0).then_some(()));
    let journal = daemon.json(&["journal", "--role", "supervisor"]);
    let line = journal[0]["lines"][0].as_str().unwrap().to_owned();
    assert!(line.starts_with("P1 the disk of "), "{journal}");
    assert_eq!(daemon.json(&["journal", "--role", "planner"]), json!([]));
    assert_eq!(daemon.json(&["journal", "--day", "2001-01-01"]), json!([]));
    assert_eq!(daemon.run(&["journal", "--day", "yesterday"]).code, Some(2));
    let files = daemon.state().join("projects/shop/supervisor/journal");
    daemon.wait_for("the journal as a file", || {
        let file = fs::read_dir(&files)
            .ok()?
            .flatten()
            .find(|file| !file.file_name().to_string_lossy().starts_with('.'))?;
        fs::read_to_string(file.path()).ok()?.contains(&line).then_some(())
    });
    // A new daemon finds that nothing changed: what it would tell has been told.
    make_due(&daemon, "run-supervisor");
    let looked_at = || {
        let store = Store::open_read_only(&daemon.state().join("pointsman.db")).unwrap();
        let memory: Option<Memory> = store.memory(&ProjectName::new("shop").unwrap(), "supervisor").unwrap();
        memory.unwrap().looked_at
    };
    let before = looked_at();
    make_due(&daemon, "run-supervisor");
    daemon.wait_for("another look", || (looked_at() > before).then_some(()));
    assert_eq!((looks(), told(&daemon).len()), (1, 1));
    assert_eq!(daemon.json(&["run", "list"]), json!([]), "rules need no session");
}

#[test]
fn e2e_health_a_session_judges_what_no_recipe_covers() {
    let steps = ["preflight", "health-assessment", "decide-actions", "report", "journal"];
    let done: String =
        steps.map(|step| format!("{} step done {step}; ", env!("CARGO_BIN_EXE_pointsman"))).concat();
    let script = format!(
        "read -r greeting; grep -c 'everything waits for a person' \"$POINTSMAN_INBOX/0000-task.md\" > \"$HOME/asked\"; \
         {done} echo '{{\"summary\": \"Answer #1 first.\"}}' > \"$POINTSMAN_RESULT_FILE\"; echo PHASE:done > \"$PHASE_FILE\"; \
         read -r end"
    );
    let daemon = shop()
        .set("roles.supervisor.enabled", "true")
        .set("roles.supervisor.command", &json!(["/bin/bash", "-c", script]).to_string())
        .start();
    let issue = daemon.file_issue("Apples", "phase escalate Which?\nexpect Answer");
    daemon.wait_state(issue, "escalated");
    make_due(&daemon, "run-supervisor");
    let told = daemon.wait_for("what it makes of it", || {
        let notices = daemon.notices();
        notices.into_iter().find(|notice| notice["title"] == "shop: the supervisor's assessment")
    });
    assert_eq!(told["body"], "Answer #1 first.");
    assert_eq!(fs::read_to_string(daemon.path("home/asked")).unwrap(), "1\n");
    daemon.wait_for("it to be counted", || {
        let roles = daemon.json(&["roles"]);
        roles.as_array()?.iter().any(|role| role["role"] == "supervisor" && role["used"] == 1).then_some(())
    });
}
