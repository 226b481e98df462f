//! The backup of the day.

use serde_json::json;

use super::shop;

const DAY: i64 = 86_400_000;

#[test]
fn e2e_a_backup_is_made_each_day_and_the_oldest_go() {
    let daemon = shop().staged().machine("[backup]\nkeep = 2\n").start();
    daemon.json(&["backup"]);
    let daily = || -> Vec<String> {
        let listed = daemon.json(&["backup", "list"]);
        let daily = listed.as_array().unwrap().iter().filter(|one| one["daily"] == true);
        daily.map(|one| one["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
    };
    let mut seen = Vec::new();
    for day in 0..4 {
        let newest = daemon.wait_for(&format!("the backup of day {day}"), || {
            daily().into_iter().next().filter(|name| !seen.contains(name))
        });
        seen.push(newest);
        daemon.stage(&json!({ "ahead_ms": (day + 1) * DAY }));
    }
    daemon.wait_for("the oldest are removed", || (daily().len() <= 2).then_some(()));
    assert!(seen.is_sorted(), "{seen:?}");
    let by_hand = daemon.json(&["backup", "list"]);
    let by_hand = by_hand.as_array().unwrap().iter().filter(|one| one["daily"] == false).count();
    assert_eq!(by_hand, 1, "what a person made stays");
}
