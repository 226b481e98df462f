//! What came of what roles did in a span of time, counted from the log. What nobody writes down is not in it.

use std::collections::BTreeMap;

use pointsman_core::ids::ProjectName;
use pointsman_core::role::Role;
use pointsman_core::task::Task;
use pointsman_core::time::Timestamp;
use pointsman_store::{EventFilter, Store};
use pointsman_view::role::Outcomes;
use serde_json::Value;

use crate::daemon::factory::results::{CLOSED, FILED, OVER, REVERTED};

/// How many events are read at once.
const PAGE: u32 = 1_000;
/// What is taken back later counts no more.
const WEEK: i64 = 7 * 86_400_000;
/// What a role handed in was decided on.
const HANDED_IN: &str = "hand_in_over";
/// A person spoke to the supervisor.
const HEARD: &str = "supervisor_heard";

/// Counts by role and name.
pub(crate) struct Tally {
    counts: BTreeMap<(Role, String), u64>,
}

impl Tally {
    /// Reads the log from a point in time on.
    pub(crate) fn read(
        store: &Store,
        project: &ProjectName,
        begins: Timestamp,
    ) -> Result<Self, pointsman_store::Error> {
        // What was handed in before may have been taken back since.
        let from = Timestamp(begins.0.saturating_sub(WEEK));
        let mut filter = EventFilter {
            since: store.seq_before(from)?,
            project: Some(project.clone()),
            kinds: [FILED, CLOSED, OVER, REVERTED, HANDED_IN, HEARD].map(str::to_owned).to_vec(),
            limit: PAGE,
            ..EventFilter::default()
        };
        let mut tally = Self { counts: BTreeMap::new() };
        // Whose pull requests they are that are nobody's task.
        let mut handed_in: BTreeMap<u64, Role> = BTreeMap::new();
        loop {
            let page = store.events(&filter)?;
            let Some(last) = page.last() else { return Ok(tally) };
            filter.since = last.seq;
            for event in &page {
                if let (HANDED_IN, Some(pr)) = (event.kind.as_str(), event.data["pr"].as_u64()) {
                    handed_in.extend(named(&event.data).map(|role| (pr, role)));
                }
                if event.at >= begins {
                    tally.take(&event.kind, &event.data, &handed_in);
                }
            }
        }
    }

    fn take(&mut self, kind: &str, data: &Value, handed_in: &BTreeMap<u64, Role>) {
        let outcome = data["outcome"].as_str().unwrap_or_default();
        match (kind, named(data)) {
            (FILED, Some(role)) => self.count(role, "filed"),
            (CLOSED, Some(role)) => self.count(role, "closed"),
            (HANDED_IN, Some(role)) => self.count(role, outcome),
            (OVER, Some(role)) if outcome == "reopened" => self.count(role, "false_alarms"),
            (OVER, Some(role)) => {
                self.count(role, outcome);
                if role.predicts() && outcome == "dismissed" {
                    self.count(role, "false_alarms");
                }
            }
            (REVERTED, _) => {
                // An issue is a task's; what is nobody's was a person's.
                let of_task = || data["issue"].is_u64().then_some(Task::ROLE);
                let handed_in = data["pr"].as_u64().and_then(|pr| handed_in.get(&pr)).copied();
                if let Some(role) = handed_in.or_else(of_task) {
                    self.count(role, "reverted");
                }
            }
            (HEARD, _) if !data["ignored"].is_null() => {
                if let Some(role) = Role::of_entry(HEARD) {
                    self.count(role, "false_alarms");
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, role: Role, what: &str) {
        *self.counts.entry((role, what.to_owned())).or_default() += 1;
    }

    /// The counts that are known of a role.
    pub(crate) fn of(&self, role: Role) -> Outcomes {
        let known = role.results();
        let count = |name: &str| {
            let key = (role, name.to_owned());
            known.contains(&name).then(|| self.counts.get(&key).copied().unwrap_or_default())
        };
        Outcomes {
            merged: count("merged"),
            reverted: count("reverted"),
            dismissed: count("dismissed"),
            false_alarms: count("false_alarms"),
            filed: count("filed"),
            landed: count("landed"),
            closed: count("closed"),
            promoted: count("promoted"),
            watched: count("watched"),
            // Tasks are counted from the tasks, not from the log.
            blocked: None,
            refused: None,
        }
    }
}

/// The role that an entry of the log names.
fn named(data: &Value) -> Option<Role> {
    data["role"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pointsman_view::role::Outcomes;
    use serde_json::{Value, json};

    use pointsman_core::role::Role;

    use super::Tally;

    #[test]
    fn each_role_is_told_what_came_of_its_work_and_nothing_else() {
        let handed_in = BTreeMap::from([(40, Role::Planner)]);
        let mut tally = Tally { counts: BTreeMap::new() };
        let over = |role: &str, outcome: &str| json!({ "role": role, "outcome": outcome });
        let events: Vec<(&str, Value)> = vec![
            ("role_filed", json!({ "role": "predictor" })),
            ("role_filed", json!({ "role": "predictor" })),
            ("result_over", over("predictor", "promoted")),
            ("result_over", over("predictor", "dismissed")),
            ("role_filed", json!({ "role": "planner" })),
            ("result_over", over("planner", "landed")),
            ("result_over", over("planner", "dismissed")),
            ("hand_in_over", json!({ "role": "planner", "pr": 40, "outcome": "merged" })),
            ("hand_in_over", json!({ "role": "planner", "pr": 41, "outcome": "dismissed" })),
            ("role_closed", json!({ "role": "gardener" })),
            ("result_over", over("gardener", "reopened")),
            ("landing_reverted", json!({ "issue": 3, "pr": 4 })),
            ("landing_reverted", json!({ "issue": null, "pr": 40 })),
            ("landing_reverted", json!({ "issue": null, "pr": 99 })),
            ("supervisor_heard", json!({ "ignored": "disk" })),
            ("supervisor_heard", json!({ "ignored": null })),
            ("hand_in_over", json!("nonsense")),
        ];
        for (kind, data) in &events {
            tally.take(kind, data, &handed_in);
        }
        let dev = Outcomes { reverted: Some(1), ..Outcomes::default() };
        assert_eq!(tally.of(Role::Dev), dev);
        let supervisor = Outcomes { false_alarms: Some(1), ..Outcomes::default() };
        assert_eq!(tally.of(Role::Supervisor), supervisor);
        let predictor = Outcomes {
            dismissed: Some(1),
            false_alarms: Some(1),
            filed: Some(2),
            promoted: Some(1),
            watched: Some(0),
            ..Outcomes::default()
        };
        assert_eq!(tally.of(Role::Predictor), predictor);
        let planner = Outcomes {
            merged: Some(1),
            reverted: Some(1),
            dismissed: Some(2),
            filed: Some(1),
            landed: Some(1),
            ..Outcomes::default()
        };
        assert_eq!(tally.of(Role::Planner), planner);
        let gardener = tally.of(Role::Gardener);
        assert_eq!((gardener.false_alarms, gardener.filed, gardener.closed), (Some(1), Some(0), Some(1)));
        assert_eq!(tally.of(Role::Vault), Outcomes::default());
    }
}
