//! The journal: by role, a line or a few for each event that a person would tell another.

use serde_json::Value;

use crate::log;
use crate::role::Role;
use crate::task::{State, Task};
use crate::text::clean_line;

/// Longest line.
const LINE: usize = 300;
/// Longest title of an issue.
const TITLE: usize = 80;
/// Lines of one entry.
const LINES: usize = 40;

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub role: Role,
    /// What; the first line leads.
    pub lines: Vec<String>,
}

/// The line of an event in the journal; none if it is none of the reader's business. `issue` comes with its title, as far as that is
/// known.
pub fn entry(kind: &str, issue: Option<(u64, &str)>, data: &Value) -> Option<Entry> {
    match log::Entry::read(kind, data) {
        Some(logged) => of_role(&logged),
        None => of_task(issue?, kind, data),
    }
}

/// What a role did, in its own lines, or a run of its formula.
fn of_role(logged: &log::Entry) -> Option<Entry> {
    use log::Entry as Logged;
    let (role, lines) = match logged {
        Logged::SupervisorLooked { lines, .. }
        | Logged::SupervisorJudged { lines, .. }
        | Logged::SupervisorHeard { lines, .. }
        | Logged::GardenerLooked { lines }
        | Logged::GardenerGroomed { lines, .. }
        | Logged::PlannerLooked { lines }
        | Logged::PlannerPlanned { lines, .. }
        | Logged::PredictorFiled { lines } => (Role::of_entry(logged.kind())?, lines),
        Logged::HandIn(said) | Logged::HandInOver(said) => (said.role, &said.lines),
        Logged::RunBegun(run) => return Some(of_run(run, "began")),
        Logged::RunFinished(run) => return Some(of_run(run, "is done")),
        Logged::RunAsked(run) => return Some(of_run(run, "needs a person")),
        Logged::RunGaveUp(run)
        | Logged::RunNotStarted(run)
        | Logged::RunTimedOut(run)
        | Logged::RunStopped(run)
        | Logged::RunSessionDied(run) => {
            let reason = run.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            return Some(of_run(run, &format!("is {}{reason}", run.to.as_str())));
        }
        Logged::EffectDone { .. }
        | Logged::WorkObserved { .. }
        | Logged::OperatorSpoke
        | Logged::PersonSpoke { .. }
        | Logged::QueueEntered(_)
        | Logged::QueueMoved(_)
        | Logged::QueuePaused { .. }
        | Logged::QueueResumed
        | Logged::QuestionAsked(_)
        | Logged::QuestionReminded(_)
        | Logged::QuestionSettled(_)
        | Logged::ConcernChanged { .. }
        | Logged::BudgetGranted { .. }
        | Logged::MainAudited { .. }
        | Logged::LandingReverted { .. }
        | Logged::ScheduleLooked { .. }
        | Logged::RunSessionStarted(_)
        | Logged::RunSessionObserved(_)
        | Logged::RunAnswered(_)
        | Logged::RunTimePassed(_)
        | Logged::RunCleanedUp(_)
        | Logged::RunContribution(_)
        | Logged::RunEffectFailed(_)
        | Logged::RunDeed(_)
        | Logged::RunStepDone(_)
        | Logged::RunSessionEnded(_)
        | Logged::VaultRefused { .. }
        | Logged::VaultSubmitted(_)
        | Logged::VaultApproved(_)
        | Logged::VaultRejected(_)
        | Logged::VaultRaised(_)
        | Logged::VaultLooked(_)
        | Logged::VaultExpired(_)
        | Logged::VaultFiring(_)
        | Logged::VaultFired(_)
        | Logged::VaultLost(_)
        | Logged::VaultTold(_)
        | Logged::VaultTimePassed(_)
        | Logged::RoleFiled(_)
        | Logged::RoleClosed(_)
        | Logged::PredictionTriaged { .. }
        | Logged::ResultOver { .. }
        | Logged::RoleCounted { .. }
        | Logged::RoleResumed { .. }
        | Logged::RoleLookWanted { .. }
        | Logged::Remembered { .. }
        | Logged::ProjectAdded { .. }
        | Logged::ProjectRemoved
        | Logged::SettingsChanged { .. }
        | Logged::SettingsRefused { .. }
        | Logged::SecretDecided { .. }
        | Logged::DecisionKept(_)
        | Logged::DecisionSettled { .. }
        | Logged::Unreadable(_) => return None,
    };
    let lines: Vec<String> = lines.iter().map(|line| clean_line(line, LINE)).take(LINES).collect();
    (role.keeps_journal() && !lines.is_empty()).then_some(Entry { role, lines })
}

fn of_run(run: &log::Run, said: &str) -> Entry {
    let line = clean_line(&format!("run {} of {} {said}", run.run, run.formula), LINE);
    Entry { role: Role::of_formula(&run.formula), lines: vec![line] }
}

/// A task came to a state in which a person would look up.
fn of_task((issue, title): (u64, &str), kind: &str, data: &Value) -> Option<Entry> {
    let moved = log::TaskMove::read(kind, data)?;
    let from = moved.from?;
    let said = match moved.to {
        State::Working => worked_on(from),
        State::Escalated => "needs a person",
        State::Blocked => "is blocked",
        State::Refused => "was refused",
        State::Merged => "is on the main branch",
        State::Closed => "is closed",
        State::Backlog
        | State::WaitingDependencies
        | State::AwaitingCi
        | State::AwaitingReview
        | State::MergeQueue
        | State::Paused => return None,
    };
    let title = if title.is_empty() { String::new() } else { format!(" {}", clean_line(title, TITLE)) };
    Some(Entry { role: Task::ROLE, lines: vec![format!("#{issue}{title} {said}")] })
}

/// What brought a task to its agent, so that the lines of a day differ as its work does.
fn worked_on(from: State) -> &'static str {
    match from {
        State::AwaitingCi => "is back with its agent after CI",
        State::AwaitingReview => "is back with its agent after a review",
        State::MergeQueue => "is back with its agent from the merge queue",
        State::Escalated => "goes on after an answer",
        State::Paused => "goes on after a pause",
        State::Backlog
        | State::WaitingDependencies
        | State::Working
        | State::Blocked
        | State::Refused
        | State::Merged
        | State::Closed => "is being worked on",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::entry;

    #[test]
    fn what_a_person_would_tell_another() {
        let looked =
            |lines: Value| json!({"findings": [], "unknown": [], "done": [], "told": true, "lines": lines});
        let run = |formula: &str, to: &str, reason: Value| json!({"run": 3, "formula": formula, "step": null, "to": to, "reason": reason});
        let cases = [
            (
                "supervisor_looked",
                None,
                looked(json!(["P1 disk", "done: x"])),
                Some(("supervisor", "P1 disk")),
            ),
            ("supervisor_looked", None, looked(json!([])), None),
            (
                "gardener_groomed",
                None,
                json!({"run": 3, "lines": ["closed\n#7"]}),
                Some(("gardener", "closed #7")),
            ),
            (
                "run_begun",
                None,
                run("run-planner", "starting", json!(null)),
                Some(("planner", "run 3 of run-planner began")),
            ),
            (
                "run_gave_up",
                None,
                run("tidy", "failed", json!("no broom")),
                Some(("action", "run 3 of tidy is failed: no broom")),
            ),
            ("run_step_done", None, run("tidy", "running", json!(null)), None),
            (
                "phase_claimed",
                Some(3),
                json!({"from": "working", "to": "escalated"}),
                Some(("dev", "#3 Prices needs a person")),
            ),
            (
                "checks_finished",
                Some(3),
                json!({"from": "awaiting_ci", "to": "working"}),
                Some(("dev", "#3 Prices is back with its agent after CI")),
            ),
            ("phase_claimed", Some(3), json!({"to": "escalated"}), None),
            ("phase_claimed", Some(3), json!({"from": "working", "to": "awaiting_ci"}), None),
            ("issue_observed", None, json!({}), None),
            (
                "hand_in_over",
                None,
                json!({"role": "planner", "run": 2, "pr": 3, "lines": ["pull request #3 is on the main branch"]}),
                Some(("planner", "pull request #3 is on the main branch")),
            ),
            ("hand_in", None, json!({"role": "dev", "run": 2, "lines": ["x"]}), None),
        ];
        for (kind, issue, data, expected) in cases {
            let found = entry(kind, issue.map(|issue| (issue, "Prices")), &data);
            let found = found.as_ref().map(|entry| (entry.role.as_str(), entry.lines[0].as_str()));
            assert_eq!(found, expected, "{kind} {data}");
        }
    }
}
