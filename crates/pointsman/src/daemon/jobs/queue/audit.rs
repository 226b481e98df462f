//! The audit: every commit that reaches the main branch came through the queue, from a person by an approved pull request,
//! or from a person's push that the project takes. Anything else pauses the merge queue until a person has looked.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use pointsman_adapters::git::history::{MainChange, first_parents, landed_commits};
use pointsman_core::ids::Sha;
use pointsman_core::queue::outside::{Judgement, judge};
use pointsman_core::words;
use pointsman_core::words::daemon::queue::Commit;
use pointsman_store::{Audit, EntryStatus, Stopped, StoppedBy};

use super::super::Jobs;
use super::landing::show_merge;
use super::outside::{self, Arrival};
use super::{pushes, reverts};
use crate::daemon::clock;
use crate::daemon::inbound::ThreadReport;
use crate::daemon::served::Served;

/// How many landings a new daemon makes sure of.
const LAST_LANDINGS: u32 = 20;

/// Asks the forge where main is and audits what is new; next to nothing if nothing is.
pub(in crate::daemon::jobs) fn look_at_main(jobs: &Arc<Jobs>, served: &Arc<Served>) {
    let look = || -> anyhow::Result<()> {
        let Some(main) = served.forge.branch_head(served.primary.as_str())? else { return Ok(()) };
        take_as_it_is(jobs, served)?;
        if jobs.read(|store| store.queue_state(&served.config.name))?.audited.as_ref() == Some(&main) {
            return Ok(());
        }
        served.mirror.fetch_remote()?;
        let Some(main) = served.mirror.remote_head(&served.primary)? else { return Ok(()) };
        look_at(jobs, served, &main).map(drop)
    };
    show_merges(jobs, served);
    if let Err(error) = look() {
        tracing::warn!(project = %served.config.name, error = format!("{error:#}"), "main could not be audited for now");
    }
    outside::test(jobs, served);
    if let Err(error) = reverts::look(jobs, served) {
        tracing::warn!(project = %served.config.name, error = format!("{error:#}"), "main was not looked at for what is taken back");
    }
}

/// The records are older than main: whatever landed since was audited by a daemon whose records are gone.
fn take_as_it_is(jobs: &Jobs, served: &Served) -> anyhow::Result<()> {
    let project = &served.config.name;
    if !jobs.lock().restored.contains(project) {
        return Ok(());
    }
    let _held = served.hold_main();
    served.mirror.fetch_remote()?;
    let Some(main) = served.mirror.remote_head(&served.primary)? else { return Ok(()) };
    let after = jobs.read(|store| store.queue_state(project))?.audited;
    let is_forward = match &after {
        Some(after) => served.mirror.commit_exists(after)? && served.mirror.is_ancestor(after, &main)?,
        None => true,
    };
    // A main that went back is looked at as always.
    if is_forward {
        write_down(jobs, served, Audit { after, upto: main, direct: 0, person: 0, alarm: None });
    }
    jobs.lock().restored.remove(project);
    Ok(())
}

/// Tells the forge again what it could not be told: after its own trouble, or after ours, when the last landings are
/// looked at once.
fn show_merges(jobs: &Jobs, served: &Served) {
    let project = &served.config.name;
    let unshown = jobs.lock().unshown.get(project).cloned();
    let owed = unshown.unwrap_or_else(|| {
        let decided = jobs.read(|store| store.decided_entries(project, LAST_LANDINGS)).unwrap_or_default();
        let landed = decided.into_iter().filter(|entry| entry.status == EntryStatus::Landed);
        let shown = |pr| served.forge.pull_request(pr).is_ok_and(|pr| pr.is_none_or(|pr| pr.merged));
        landed.filter_map(|entry| entry.pr.zip(entry.candidate)).filter(|(pr, _)| !shown(*pr)).collect()
    });
    jobs.lock().unshown.entry(project.clone()).or_insert_with(|| owed.clone());
    for (pr, sha) in owed {
        show_merge(jobs, served, pr, &sha);
    }
}

/// Audits main up to this commit; false if the queue has to stop for it, or if main has moved on.
pub(super) fn look_at(jobs: &Jobs, served: &Served, main: &Sha) -> anyhow::Result<bool> {
    take_as_it_is(jobs, served)?;
    let _held = served.hold_main();
    let line = jobs.read(|store| store.queue_state(&served.config.name))?;
    if line.audited.as_ref() == Some(main) {
        return Ok(true);
    }
    // Another look may have found and audited a newer main since the caller looked. Seen from there the caller's main looks
    // rewound, so the caller looks again.
    if served.mirror.remote_head(&served.primary)?.as_ref() != Some(main) {
        return Ok(false);
    }
    // A person's order may have moved it as well.
    if served.embedded.is_some() && served.forge.branch_head(served.primary.as_str())?.as_ref() != Some(main)
    {
        return Ok(false);
    }
    let audit = match line.audited {
        // What was there before us is not ours to judge.
        None => Audit { after: None, upto: main.clone(), direct: 0, person: 0, alarm: None },
        Some(after) => examine(jobs, served, after, main)?,
    };
    let quiet = audit.alarm.is_none();
    if let Some(alarm) = &audit.alarm {
        tracing::error!(project = %served.config.name, reason = alarm.reason, "the merge queue stops");
    }
    write_down(jobs, served, audit);
    Ok(quiet)
}

/// What a push of ours put on main needs no examination: it went there from a main that was audited.
pub(super) fn ours(jobs: &Jobs, served: &Served, from: &Sha, upto: &Sha) -> anyhow::Result<Option<Audit>> {
    let audited = jobs.read(|store| store.queue_state(&served.config.name))?.audited;
    let from = audited.filter(|audited| audited == from);
    Ok(from.map(|from| Audit { after: Some(from), upto: upto.clone(), direct: 0, person: 0, alarm: None }))
}

fn write_down(jobs: &Jobs, served: &Served, audit: Audit) {
    let (written, wait) = sync_channel(1);
    jobs.inbox.report(ThreadReport::Audited { project: served.config.name.clone(), audit, written });
    // The daemon may be gone: then the next one examines it.
    let _ = wait.recv();
}

/// What is ours on main is what the queue recorded. A pull request that a person merged is one if it was approved and
/// nothing else came with it. The rest is judged by the core.
fn examine(jobs: &Jobs, served: &Served, after: Sha, main: &Sha) -> anyhow::Result<Audit> {
    let (commits, rewritten) = match first_parents(&served.mirror, &after, main)? {
        MainChange::Forward { commits, .. } => (commits, false),
        MainChange::Rewritten { commits, .. } => (commits, true),
    };
    // What could not be read in one go is read in the next round.
    let upto = if rewritten { main.clone() } else { commits.last().map_or(main, |c| &c.sha).clone() };
    let mut ours = std::collections::BTreeSet::new();
    // A push that outlived its daemon is ours, also if the entry has another candidate by now.
    for push in pushes::begun(&served.mirror)? {
        if served.mirror.commit_exists(&push.candidate)?
            && served.mirror.is_ancestor(&push.candidate, main)?
        {
            ours.extend(landed_commits(&served.mirror, &push.base, &push.candidate)?);
        }
    }
    let mut others: Vec<Arrival<'_>> = Vec::new();
    // Newest first: a landing names its last commit, and its base tells how far it reaches.
    for commit in commits.iter().rev() {
        let landed = jobs.read(|store| store.entry_of_candidate(&served.config.name, &commit.sha))?;
        let recorded = landed.is_some();
        if let Some((base, candidate)) = landed.and_then(|entry| entry.base.zip(entry.candidate)) {
            ours.extend(landed_commits(&served.mirror, &base, &candidate)?);
        }
        if ours.contains(&commit.sha) {
            continue;
        }
        let pr = served.forge.pull_request_of(&commit.sha, &commit.parents)?;
        others.push(Arrival { commit, pr, recorded });
    }
    others.reverse();
    let (person, direct) = outside::merges(served, &after, others)?;
    let count = direct.len().max(usize::from(rewritten)) as u64;
    let named: Vec<Commit<'_>> = direct
        .iter()
        .map(|(commit, _)| Commit { sha: &commit.sha, subject: &commit.subject, author: &commit.author.name })
        .collect();
    let done = |reason: Option<String>| {
        let alarm = reason.map(|reason| Stopped { at: clock::now(), by: StoppedBy::Audit, reason });
        Audit { after: Some(after.clone()), upto: upto.clone(), direct: count, person, alarm }
    };
    if rewritten {
        return Ok(done(Some(words::daemon::queue::main_was_rewritten(&after, &named))));
    }
    if named.is_empty() {
        return Ok(done(None));
    }
    let facts = outside::facts(jobs, served, &after, &upto, &direct)?;
    match judge(served.config.merge.outside_pushes, &facts) {
        Judgement::Pause { why } => Ok(done(Some(words::daemon::queue::pushed_past_queue(&named, &why)))),
        Judgement::Accept => {
            // Before it is written down: a daemon that is killed in between does both again.
            outside::accepted(jobs, served, &upto, &words::daemon::queue::past_queue(&named), &facts.pusher)?;
            Ok(done(None))
        }
    }
}
