//! The gardener's inputs beside the issues: how far the main branch has come, and why tasks are blocked. The forge is
//! asked nothing: the mirror and the store have it.

use pointsman_core::gardener::{Blocker, Main, Memory, RepositoryFacts};
use pointsman_core::task::{State, Task};

use crate::daemon::effects::{EffectPerformer, hand_in};
use crate::daemon::served::Served;

/// The file that agents read first.
const AGENTS_MD: &str = "AGENTS.md";

/// Looks at a project's mirror and tasks.
pub(super) fn survey(
    world: &EffectPerformer,
    served: &Served,
    memory: &Memory,
) -> anyhow::Result<RepositoryFacts> {
    let project = &served.config.name;
    let tasks = world.read(|store| store.tasks(Some(project)))?;
    let open = world.read(|store| hand_in::open_of(store, project, super::gardener::ROLE))?;
    let blocker = |task: &Task| Blocker {
        because: task.reason.clone(),
        waits_for: task.refusal.as_ref().map(|refusal| refusal.blocked_by.clone()).unwrap_or_default(),
    };
    let stuck = |task: &&Task| matches!(task.state, State::Blocked | State::Refused);
    let blocked = tasks.iter().filter(stuck).map(|task| (task.key.issue, blocker(task))).collect();
    // What is open is the answer to what would be asked, unless it cannot land.
    let answered = open.iter().any(|run| run.landing().is_none_or(|landing| !landing.is_stuck()));
    let main = if answered { None } else { main(served, memory)? };
    Ok(RepositoryFacts { main, blocked })
}

fn main(served: &Served, memory: &Memory) -> anyhow::Result<Option<Main>> {
    let mirror = &served.mirror;
    let Some(head) = mirror.remote_head(&served.primary)? else { return Ok(None) };
    let touched = mirror.touched(&head, AGENTS_MD)?;
    let asked = match memory.refreshed_at() {
        Some(at) if mirror.commit_exists(&at)? => Some(mirror.ahead(&at, &head)?),
        Some(_) | None => None,
    };
    let commits = asked.map_or(touched.commits, |asked| asked.min(touched.commits));
    Ok(Some(Main { head, commits, missing: !touched.is_there }))
}
