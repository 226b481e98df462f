//! The predictor: figures from the log, and what they foretell.

use std::collections::BTreeSet;

use pointsman::daemon::factory::predictor::{Predicted, figures, memory, news, write};
use pointsman_core::predictor::{Counts, Figures, Prediction};
use pointsman_store::Change;
use serde_json::json;

use super::{Stage, at, shop};

const DAY: i64 = 24 * 60;

impl Stage {
    fn checked(&mut self, minute: i64, verdict: &str) {
        let mut change = Change::new(at(minute), "checks_finished");
        change.project = Some(shop());
        let verdict = json!({ "verdict": verdict, "summary": "", "reason": "", "log": "" });
        change.data = json!({ "sha": "a".repeat(40), "run": 1, "verdict": verdict, "to": "working" });
        self.engine.write(&[change]).unwrap();
    }

    fn crashed(&mut self, minute: i64) {
        let mut change = Change::new(at(minute), "AGENT_CRASHED");
        change.project = Some(shop());
        self.engine.write(&[change]).unwrap();
    }
}

#[test]
fn two_weeks_are_counted_from_the_log() {
    let mut stage = Stage::new("");
    // Three weeks ago nobody counts.
    for _ in 0..9 {
        stage.checked(0, "failed");
    }
    for minute in 0..10 {
        stage.checked(8 * DAY + minute, if minute < 2 { "failed" } else { "passed" });
    }
    for minute in 0..12 {
        let verdict = ["failed", "infra", "timed_out", "passed"][usize::try_from(minute % 4).unwrap()];
        stage.checked(15 * DAY + minute, verdict);
        stage.crashed(15 * DAY + minute);
    }
    let now = at(21 * DAY + 60);
    let config = stage.config();
    let found = figures(stage.engine.store(), &config, &[], now).unwrap();
    let week = Counts { checks: 12, red: 3, infra: 6, crashes: 12, blocked: 0 };
    let before = Counts { checks: 10, red: 2, ..Counts::default() };
    assert_eq!(found, Figures { week, before, open: 0, stale: 0 });

    let before = memory(stage.engine.store(), &shop()).unwrap();
    let told = news(&before, &found, (&[], &BTreeSet::new()), &config, now);
    let keys: Vec<String> = told.iter().map(Prediction::key).collect();
    assert_eq!(keys, ["ci-unsteady", "sessions-die"]);
    let mut after = before;
    after.looked_at = now;
    after.said.extend(keys.iter().map(|key| (key.clone(), now)));
    let predicted =
        Predicted { memory: after, lines: vec!["#9 Sessions die more often".to_owned()], issues: vec![9] };
    write(&mut stage.engine, &shop(), &predicted, now).unwrap();
    let mut stage = stage.restart();
    let before = memory(stage.engine.store(), &shop()).unwrap();
    assert_eq!(news(&before, &found, (&[], &BTreeSet::new()), &config, at(22 * DAY)), [], "it has been said");
    assert_eq!(stage.events("predictor_filed")[0].data["lines"][0], "#9 Sessions die more often");
}
