//! The machine sleeps: work is given the time that it was awake, people the time on the clock.

use serde_json::json;

use super::shop;

const HOUR: i64 = 3_600_000;

#[test]
fn e2e_a_machine_that_slept_replaces_no_session_and_asks_people_in_time() {
    let daemon = shop().staged().set("timing.session_timeout", "\"2h\"").start();
    let works = daemon.file_issue("Apples", "say at work\nhang");
    daemon.wait_shown(works, "at work");
    daemon.stage(&json!({ "ahead_ms": 9 * HOUR, "asleep_ms": 9 * HOUR }));
    daemon.wait_for("the sleep to be noticed", || daemon.log_lines("was not awake"));
    let lines = daemon.log_lines("was not awake").unwrap();
    let [line] = &lines[..] else { panic!("{lines:?}") };
    // The two clocks are read one after the other.
    let by: i64 =
        line.split("by_ms=").nth(1).and_then(|rest| rest.split(' ').next()?.trim().parse().ok()).unwrap();
    assert!((by - 9 * HOUR).abs() < 1000, "{line}");
    assert_eq!(daemon.task(works)["state"], "working");
    // A daemon that is started later does not count it again.
    daemon.restart();
    daemon.wait_settled(works);
    assert_eq!(daemon.session(works)["generation"], 1);
    // Awake for two hours more, it is replaced.
    daemon.stage(&json!({ "ahead_ms": 11 * HOUR + 60_000, "asleep_ms": 9 * HOUR }));
    daemon.wait_for("its successor", || (daemon.session(works)["generation"] == 2).then_some(()));
}
