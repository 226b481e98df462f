//! The results of roles in a span of time, counted from the log. What nobody writes down is not in it.

use std::collections::BTreeMap;

use pointsman_core::ids::ProjectName;
use pointsman_core::log::{self, Entry};
use pointsman_core::role::Role;
use pointsman_core::task::Task;
use pointsman_core::time::Timestamp;
use pointsman_store::{EventFilter, Store};
use pointsman_view::role::Outcomes;

/// How many events are read at once.
const PAGE: u32 = 1_000;
/// What is taken back later counts no more.
const WEEK: i64 = 7 * 86_400_000;
/// The kinds of entries that are counted.
const KINDS: [&str; 6] = [
    log::ROLE_FILED,
    log::ROLE_CLOSED,
    log::RESULT_OVER,
    log::LANDING_REVERTED,
    log::HAND_IN_OVER,
    log::SUPERVISOR_HEARD,
];

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
            kinds: KINDS.map(str::to_owned).to_vec(),
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
                let Some(entry) = Entry::read(&event.kind, &event.data) else { continue };
                if let Entry::HandInOver(over) = &entry
                    && let Some(pr) = over.pr.flatten()
                {
                    handed_in.insert(pr, over.role);
                }
                if event.at >= begins {
                    tally.take(&entry, &handed_in);
                }
            }
        }
    }

    fn take(&mut self, entry: &Entry, handed_in: &BTreeMap<u64, Role>) {
        match entry {
            Entry::RoleFiled(of) => self.count(of.role, "filed"),
            Entry::RoleClosed(of) => self.count(of.role, "closed"),
            Entry::HandInOver(over) => self.count(over.role, over.outcome.as_deref().unwrap_or_default()),
            Entry::ResultOver { role, outcome } if outcome == "reopened" => {
                self.count(*role, "false_alarms");
            }
            Entry::ResultOver { role, outcome } => {
                self.count(*role, outcome);
                if role.predicts() && outcome == "dismissed" {
                    self.count(*role, "false_alarms");
                }
            }
            Entry::LandingReverted { issue, pr, .. } => {
                // An issue is a task's; what is nobody's was a person's.
                let of_task = || issue.is_some().then_some(Task::ROLE);
                let handed_in = pr.and_then(|pr| handed_in.get(&pr)).copied();
                if let Some(role) = handed_in.or_else(of_task) {
                    self.count(role, "reverted");
                }
            }
            Entry::SupervisorHeard { ignored: Some(_), .. } => {
                if let Some(role) = Role::of_entry(entry.kind()) {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pointsman_core::log::Entry;
    use pointsman_view::role::Outcomes;
    use serde_json::{Value, json};

    use pointsman_core::role::Role;

    use super::Tally;

    #[test]
    fn each_role_is_told_what_came_of_its_work_and_nothing_else() {
        let handed_in = BTreeMap::from([(40, Role::Planner)]);
        let mut tally = Tally { counts: BTreeMap::new() };
        let over = |role: &str, outcome: &str| json!({ "role": role, "outcome": outcome });
        let handed_in_over = |pr: u64, outcome: &str| json!({ "role": "planner", "run": 1, "pr": pr, "outcome": outcome, "lines": [] });
        let reverted = |issue: Value, pr: u64| json!({ "sha": "a".repeat(40), "by": "b".repeat(40), "issue": issue, "pr": pr });
        let heard = |ignored: Value| json!({ "by": "ada", "words": "w", "ignored": ignored, "lines": [] });
        let events: Vec<(&str, Value)> = vec![
            ("role_filed", json!({ "role": "predictor" })),
            ("role_filed", json!({ "role": "predictor" })),
            ("result_over", over("predictor", "promoted")),
            ("result_over", over("predictor", "dismissed")),
            ("role_filed", json!({ "role": "planner" })),
            ("result_over", over("planner", "landed")),
            ("result_over", over("planner", "dismissed")),
            ("hand_in_over", handed_in_over(40, "merged")),
            ("hand_in_over", handed_in_over(41, "dismissed")),
            ("role_closed", json!({ "role": "gardener" })),
            ("result_over", over("gardener", "reopened")),
            ("landing_reverted", reverted(json!(3), 4)),
            ("landing_reverted", reverted(json!(null), 40)),
            ("landing_reverted", reverted(json!(null), 99)),
            ("supervisor_heard", heard(json!("disk"))),
            ("supervisor_heard", heard(json!(null))),
        ];
        for (kind, data) in &events {
            tally.take(&Entry::read(kind, data).unwrap(), &handed_in);
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
