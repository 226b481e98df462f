//! The predictor: figures from the log, and what they foretell.

use std::collections::BTreeMap;

use pointsman::daemon::engine::Input;
use pointsman::daemon::factory::predictor::{figures, open};
use pointsman_core::deed::Ending;
use pointsman_core::ids::RoleKey;
use pointsman_core::predictor::{Counts, Figures, Memory, Sample, predict};
use pointsman_core::role::Role;
use pointsman_core::role_memory::Event;
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

    assert_eq!(open(&predict(&Memory::default(), &found, &config), &[]).len(), 0);
    let key = RoleKey { project: shop(), role: Role::Predictor };
    let measured = || {
        let sample = Sample { at: now, disks: BTreeMap::new(), free_memory_mb: None };
        let event = Event::Measured { sample, figures: found, open: Default::default() };
        Input::of_role(key.clone(), event)
    };
    stage.engine.take(&[measured()], now).unwrap();
    assert_eq!(stage.deeds_of(Role::Predictor), ["ci-unsteady", "sessions-die"]);
    let ending = Ending::Done { filed: Some(9) };
    let ended = Event::DeedEnded { name: "sessions-die".to_owned(), ending };
    stage.engine.take(&[Input::of_role(key.clone(), ended)], now).unwrap();
    let mut stage = stage.restart();
    stage.engine.take(&[measured()], at(22 * DAY)).unwrap();
    assert_eq!(stage.deeds_of(Role::Predictor).len(), 2, "it has been said");
    let said = stage.events("predictor_filed");
    assert_eq!(said[0].data["lines"][0], "#9 Sessions die more often");
    assert_eq!(stage.events("role_filed")[0].issue, Some(9));
}
