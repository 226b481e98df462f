//! How scripts see an assessment of health.

use pointsman_core::health::{Assessment, Facts, Memory, Tail};
use pointsman_core::task::State;
use pointsman_core::time::Timestamp;
use pointsman_core::words::health as words;
use serde_json::{Value, json};

use crate::daemon::clock::rfc3339;

/// The assessment with the figures it rests on; `done` is what was done about it, or would be.
pub(crate) fn to_json(
    facts: &Facts,
    assessment: &Assessment,
    tails: &[Tail],
    memory: &Memory,
    done: &[String],
    now: Timestamp,
) -> Value {
    let findings: Vec<Value> = assessment
        .findings
        .iter()
        .map(|finding| {
            json!({
                "priority": finding.priority(),
                "kind": finding.kind().name(),
                "key": finding.key(),
                "text": words::finding(finding, now),
                "task": finding.task(),
                "remedy": finding.remedy().as_ref().map(words::remedy),
                "advice": words::advice(finding),
                "ignored_until": memory.ignored_until(finding.kind(), now).map(rfc3339),
            })
        })
        .collect();
    let count = |state: State| facts.tasks.iter().filter(|task| task.state == state).count();
    let tasks: serde_json::Map<String, Value> = State::ALL
        .into_iter()
        .filter(|state| count(*state) > 0)
        .map(|state| (state.name().to_owned(), json!(count(state))))
        .collect();
    let phase = |issue: Option<u64>| {
        let task = facts.tasks.iter().find(|task| Some(task.key.issue) == issue)?;
        task.phase.map(|phase| phase.name())
    };
    let agents: Vec<Value> = facts
        .sessions
        .iter()
        .map(|session| {
            json!({
                "session": session.session,
                "task": session.issue,
                "phase": phase(session.issue),
                "gone": session.gone,
                "last_seen": rfc3339(session.last_seen),
            })
        })
        .collect();
    json!({
        "at": rfc3339(now),
        "worst": assessment.findings.first().map(|finding| finding.priority()),
        "findings": findings,
        "unknown": assessment.unknown,
        "daemon": facts.daemon,
        "machine": facts.machine,
        "machine_text": words::machine(&facts.machine),
        "tasks": tasks,
        "sessions": facts.sessions.len(),
        "agents": agents,
        "open_issues": facts.issues.as_ref().map(Vec::len),
        "held_back": facts.held_back,
        "logs": tails,
        "done": done,
    })
}
