//! What happened, by role, a line or a few for each event that a person would tell another.

use serde_json::Value;

use crate::role::Role;
use crate::task::Task;
use crate::text::clean_line;

/// Longest line.
const LINE: usize = 300;
/// Lines of one entry.
const LINES: usize = 40;

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub role: Role,
    /// What; the first line leads.
    pub lines: Vec<String>,
}

/// What an event says to a reader; nothing if it is none of their business.
pub fn entry(kind: &str, issue: Option<u64>, data: &Value) -> Option<Entry> {
    let role = match kind {
        "hand_in" | "hand_in_over" => data["role"].as_str().and_then(|word| word.parse().ok()),
        _ => Role::of_entry(kind),
    };
    if let Some(role) = role.filter(|role: &Role| role.keeps_journal()) {
        let lines: Vec<String> = data["lines"]
            .as_array()?
            .iter()
            .filter_map(Value::as_str)
            .map(|line| clean_line(line, LINE))
            .take(LINES)
            .collect();
        return (!lines.is_empty()).then_some(Entry { role, lines });
    }
    let said = match kind {
        "run_begun" => "began".to_owned(),
        "run_finished" => "is done".to_owned(),
        "run_gave_up" | "run_not_started" | "run_timed_out" | "run_stopped" | "run_session_died" => {
            let reason = data["reason"].as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("is {}{reason}", data["to"].as_str().unwrap_or("over"))
        }
        _ => return of_task(issue?, data),
    };
    let formula = data["formula"].as_str()?;
    let line = clean_line(&format!("run {} of {formula} {said}", data["run"]), LINE);
    Some(Entry { role: Role::of_formula(formula), lines: vec![line] })
}

/// A task came to where a person would look up.
fn of_task(issue: u64, data: &Value) -> Option<Entry> {
    data.get("from")?;
    let said = match data["to"].as_str()? {
        "working" => "is being worked on",
        "escalated" => "needs a person",
        "blocked" => "is blocked",
        "refused" => "was refused",
        "merged" => "is on the main branch",
        "closed" => "is closed",
        _ => return None,
    };
    Some(Entry { role: Task::ROLE, lines: vec![format!("#{issue} {said}")] })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::entry;

    #[test]
    fn what_a_person_would_tell_another() {
        let cases = [
            (
                "supervisor_looked",
                None,
                json!({"lines": ["P1 disk", "done: x"]}),
                Some(("supervisor", "P1 disk")),
            ),
            ("supervisor_looked", None, json!({"lines": []}), None),
            ("gardener_groomed", None, json!({"lines": ["closed\n#7"]}), Some(("gardener", "closed #7"))),
            (
                "run_begun",
                None,
                json!({"run": 3, "formula": "run-planner"}),
                Some(("planner", "run 3 of run-planner began")),
            ),
            (
                "run_gave_up",
                None,
                json!({"run": 3, "formula": "tidy", "to": "failed", "reason": "no broom"}),
                Some(("action", "run 3 of tidy is failed: no broom")),
            ),
            ("run_step_done", None, json!({"run": 3, "formula": "tidy"}), None),
            (
                "phase_claimed",
                Some(3),
                json!({"from": "working", "to": "escalated"}),
                Some(("dev", "#3 needs a person")),
            ),
            ("phase_claimed", Some(3), json!({"to": "escalated"}), None),
            ("phase_claimed", Some(3), json!({"from": "working", "to": "awaiting_ci"}), None),
            ("issue_observed", None, json!({}), None),
            (
                "hand_in_over",
                None,
                json!({"role": "planner", "lines": ["pull request #3 is on the main branch"]}),
                Some(("planner", "pull request #3 is on the main branch")),
            ),
            ("hand_in", None, json!({"role": "dev", "lines": ["x"]}), None),
        ];
        for (kind, issue, data, expected) in cases {
            let found = entry(kind, issue, &data);
            let found = found.as_ref().map(|entry| (entry.role.as_str(), entry.lines[0].as_str()));
            assert_eq!(found, expected, "{kind} {data}");
        }
    }
}
