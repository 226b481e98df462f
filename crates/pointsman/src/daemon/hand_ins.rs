//! The turns of what roles hand in, as the loop takes them: which run's files go to the main branch next. The core decides;
//! the way there is the run's own contribution.

use pointsman_core::hand_in::{Memory, Outcome, Stage, turns};
use pointsman_core::ids::{ProjectName, RunKey};
use pointsman_core::role::Role;
use pointsman_core::run::Run;
use pointsman_core::time::Timestamp;
use pointsman_core::workflow::Workflow;
use pointsman_store::{Error, Store};

use super::engine::{Engine, Input};

/// The events that follow from what waits for its turn.
pub(super) fn due(engine: &Engine) -> Result<Vec<Input>, Error> {
    let waits = |run: &Run| run.hand_in.as_ref().is_some_and(|handed_in| handed_in.stage == Stage::Waiting);
    let mut due = Vec::new();
    for project in engine.served() {
        for role in Role::handing_in() {
            let of_role = |run: &&Run| run.project == *project && run.formula.role() == role;
            let runs: Vec<&Run> = engine.runs().values().map(AsRef::as_ref).filter(of_role).collect();
            if !runs.iter().any(|run| waits(run)) {
                continue;
            }
            let memory = match memory(engine.store(), project, role) {
                Ok(memory) => memory,
                // Nobody knows what people did not want: it waits with the memory.
                Err(Error::Unreadable(_)) => continue,
                Err(error) => return Err(error),
            };
            // What an earlier version left is handed to its runs first.
            if memory.open.is_some() || memory.newer.is_some() {
                continue;
            }
            due.extend(
                turns(&runs, &memory.dismissed).into_iter().map(|(key, event)| Input::of_run(key, event)),
            );
        }
    }
    Ok(due)
}

/// The memory of a role, if a step ended what a run had handed in because people did not want it.
pub(super) fn dismissed(
    store: &Store,
    before: &Workflow,
    after: &Workflow,
) -> Result<Option<pointsman_store::Memory>, Error> {
    let (Workflow::Run(before), Workflow::Run(after)) = (before, after) else { return Ok(None) };
    let is_dismissed = |run: &Run| {
        let stage = run.hand_in.as_ref().map(|handed_in| &handed_in.stage);
        matches!(stage, Some(Stage::Over { outcome: Outcome::Dismissed, .. }))
    };
    let (Some(handed_in), true) = (&after.hand_in, is_dismissed(after) && !is_dismissed(before)) else {
        return Ok(None);
    };
    let role = after.formula.role();
    match memory(store, &after.project, role) {
        Ok(mut memory) => {
            memory.dismiss(&handed_in.files.content);
            pointsman_store::Memory::new(name(role), &memory).map(Some)
        }
        // It is kept as it is, and nothing new of the role is opened until somebody has looked at it.
        Err(Error::Unreadable(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Hands what an earlier version remembered beside the runs to the runs that handed it in.
pub fn adopt(engine: &mut Engine, project: &ProjectName, now: Timestamp) -> Result<(), Error> {
    for role in Role::handing_in() {
        let mut memory = match memory(engine.store(), project, role) {
            Ok(memory) => memory,
            Err(Error::Unreadable(_)) => continue,
            Err(error) => return Err(error),
        };
        let run = |id| RunKey { project: project.clone(), role, id };
        let mut inputs: Vec<Input> =
            memory.hand_over().into_iter().map(|(id, event)| Input::of_run(run(id), event)).collect();
        let Some(first) = inputs.first_mut() else { continue };
        first.memories.push(pointsman_store::Memory::new(name(role), &memory)?);
        for refused in engine.take(&inputs, now)?.into_iter().filter_map(Result::err) {
            tracing::warn!(%project, %role, %refused, "what an earlier version had open is not followed yet");
        }
    }
    Ok(())
}

fn memory(store: &Store, project: &ProjectName, role: Role) -> Result<Memory, Error> {
    Ok(store.memory(project, &name(role))?.unwrap_or_default())
}

fn name(role: Role) -> String {
    format!("hand-in.{role}")
}
