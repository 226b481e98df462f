//! Landings that are taken back: found in what is new on main, for what came of a role's work.

use std::collections::BTreeMap;

use pointsman_adapters::git::history::{landed_commits, reverting};
use pointsman_core::ids::Sha;
use pointsman_core::value::reverted_by;
use pointsman_store::{EntryStatus, QueueEntry};

use super::super::Jobs;
use crate::daemon::clock;
use crate::daemon::factory::results::{REVERTS, Revert};
use crate::daemon::factory::{RoleReport, send};
use crate::daemon::served::Served;

/// How many landings are looked through, the newest.
const LANDINGS: u32 = 500;

/// Looks at what is new on main as far as it was audited; next to nothing if nothing is.
pub(super) fn look(jobs: &Jobs, served: &Served) -> anyhow::Result<()> {
    let project = &served.config.name;
    let Some(main) = jobs.read(|store| store.queue_state(project))?.audited else { return Ok(()) };
    let before = jobs.read(|store| store.cursor(Some(project), REVERTS))?.as_deref().and_then(Sha::new);
    if before.as_ref() == Some(&main) {
        return Ok(());
    }
    let reverts = match &before {
        // What was there before us, or on a main that was replaced, is not ours to count.
        Some(before) if served.mirror.commit_exists(before)? => find(jobs, served, before, &main)?,
        Some(_) | None => Vec::new(),
    };
    send(&jobs.inbox, RoleReport::Reverted { project: project.clone(), upto: main, reverts });
    Ok(())
}

fn find(jobs: &Jobs, served: &Served, before: &Sha, main: &Sha) -> anyhow::Result<Vec<Revert>> {
    let found = reverting(&served.mirror, before, main)?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let landed = landings(jobs, served)?;
    let now = clock::now();
    let landed_at = |sha: &Sha| landed.get(sha).and_then(|entry| entry.landed_at);
    let mut reverts = Vec::new();
    for (by, message) in found {
        for sha in reverted_by(&message, landed_at, now) {
            let entry = landed.get(&sha);
            let (issue, pr) = (entry.and_then(|entry| entry.issue), entry.and_then(|entry| entry.pr));
            reverts.push(Revert { sha, by: by.clone(), issue, pr });
        }
    }
    Ok(reverts)
}

/// The commits of the last landings, and whose they are.
fn landings(jobs: &Jobs, served: &Served) -> anyhow::Result<BTreeMap<Sha, QueueEntry>> {
    let mut commits = BTreeMap::new();
    // Git takes its time, and the loop needs the reader meanwhile.
    let entries = jobs.read(|store| store.decided_entries(&served.config.name, LANDINGS))?;
    for entry in entries {
        let (EntryStatus::Landed, Some(base), Some(candidate)) =
            (entry.status, &entry.base, &entry.candidate)
        else {
            continue;
        };
        let landed = landed_commits(&served.mirror, base, candidate)?;
        commits.extend(landed.into_iter().map(|sha| (sha, entry.clone())));
    }
    Ok(commits)
}
