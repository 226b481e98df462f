//! A run of a formula as scripts see it.

use pointsman_core::run::Run;
use serde_json::{Value, json};

use crate::daemon::clock::rfc3339;

/// Its fields; `step` is the one that is next.
pub fn to_json(run: &Run) -> Value {
    let steps: Vec<Value> = run
        .formula
        .steps
        .iter()
        .map(|step| {
            let done = run.done.iter().find(|done| done.id == step.id);
            json!({ "id": step.id, "title": step.title, "done_at": done.map(|done| rfc3339(done.at)) })
        })
        .collect();
    json!({
        "run": run.id,
        "project": run.project,
        "formula": run.formula.name,
        "role": run.formula.role(),
        "model": run.model,
        "step": run.next_step().map(|step| &step.id),
        "steps": steps,
        "status": run.status,
        "reason": run.reason,
        "by": run.by,
        "session": run.session(run.generation),
        "generation": run.generation,
        "started_at": rfc3339(run.started_at),
        "ended_at": run.ended_at.map(rfc3339),
        "open": run.is_open(),
        "result": run.result,
    })
}
