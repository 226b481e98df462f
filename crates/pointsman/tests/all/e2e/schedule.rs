//! Roles that run by themselves, when their time has come.

use pointsman::daemon::timetable::memory_name;
use pointsman_core::ids::ProjectName;
use pointsman_core::time::Timestamp;
use pointsman_core::timetable::ScheduleMemory;
use pointsman_store::{Change, Memory, Store};
use pointsman_testkit::TestDaemon;
use serde_json::{Value, json};

use super::shop;

/// Does the steps of its formula and leaves a result.
const AGENT: &str = r#"
env > "$HOME/env"
sed -n 's/^## [0-9]*\. \([a-z-]*\):.*/\1/p' "$POINTSMAN_INBOX/0000-task.md" | while read -r step; do
    PROGRAM step done "$step" || exit 1
done
cp "$HOME/result" "$POINTSMAN_RESULT_FILE"
echo PHASE:done > "$PHASE_FILE"
read -r line
"#;

/// The daemon was away for so many hours.
fn away_for(daemon: &TestDaemon, formula: &str, hours: i64) {
    let project = ProjectName::new("shop").unwrap();
    let mut store = Store::open(&daemon.state().join("pointsman.db")).unwrap();
    let name = memory_name(formula);
    let remembered: Option<ScheduleMemory> = store.memory(&project, &name).unwrap();
    let mut remembered = remembered.expect("the daemon has looked at the clock");
    remembered.seen = Timestamp(remembered.seen.0 - hours * 3_600_000);
    let mut change = Change::new(remembered.seen, "schedule_looked");
    change.project = Some(project);
    change.memories.push(Memory::new(name, &remembered).unwrap());
    store.commit(&[change]).unwrap();
}

fn scheduled(daemon: &TestDaemon, formula: &str) -> Option<Value> {
    let all = daemon.json(&["schedule"]);
    all.as_array()?.iter().find(|entry| entry["formula"] == formula).cloned()
}

#[test]
fn e2e_a_role_runs_when_its_time_has_come() {
    let agent = AGENT.replace("PROGRAM", env!("CARGO_BIN_EXE_pointsman"));
    // Once a day, half a day away from now.
    let hour = (pointsman::daemon::clock::now().0 / 3_600_000 + 12) % 24;
    let daemon = shop()
        .agent(&agent)
        .file("VISION.md", "Fruit for all.\n")
        .set("roles.planner.enabled", "true")
        .set("roles.planner.schedule", &format!("\"30 {hour} * * *\""))
        .set("limits.min_free_memory_mb", "0")
        .start();
    std::fs::write(daemon.path("home/result"), r#"{"triage": [], "issues": []}"#).unwrap();
    let known =
        |daemon: &TestDaemon| scheduled(daemon, "run-planner").filter(|entry| !entry["next"].is_null());
    daemon.wait_for("its timetable", || known(&daemon));
    // It is remembered from when on times count.
    daemon.wait_for("the clock to be looked at", || {
        let reader = Store::open_read_only(&daemon.state().join("pointsman.db")).ok()?;
        let shop = ProjectName::new("shop").unwrap();
        reader.memory::<ScheduleMemory>(&shop, &memory_name("run-planner")).ok()?
    });
    daemon.stop_daemon();
    away_for(&daemon, "run-planner", 25);
    daemon.start();
    let done = daemon.wait_for("a run that is over", || {
        let runs = daemon.json(&["run", "list"]);
        runs.as_array()?.iter().find(|run| !run["ended_at"].is_null()).cloned()
    });
    assert_eq!((&done["status"], &done["by"]), (&"done".into(), &"schedule".into()), "{done}");
    assert_eq!(done["result"], json!({"triage": [], "issues": []}));
    let env = std::fs::read_to_string(daemon.path("home/env")).unwrap();
    assert!(env.contains("POINTSMAN_MODEL=opus"), "{env}");
    let entry = scheduled(&daemon, "run-planner").unwrap();
    assert_eq!(entry["outcome"], "done", "{entry}");
    assert!(!entry["last"].is_null() && !entry["next"].is_null(), "{entry}");
}
