//! The tree in which a role's session begins, and the files that it may hand in at its end.

use std::path::Path;

use anyhow::Context;
use pointsman_adapters::git::RefName;
use pointsman_adapters::git::checkout::{checkout_exact, restore_from};
use pointsman_adapters::git::mirror::{Mirror, RefUpdate};
use pointsman_adapters::git::push::Expect;
use pointsman_adapters::git::selection::{self, Changed};
use pointsman_core::hand_in::{HandInFiles, Refusal, RefusalReason, carries_on, choose, content, is_text};
use pointsman_core::ids::Sha;
use pointsman_core::role::Role;
use pointsman_core::run::{Run, RunId, Status};
use pointsman_core::words;

use super::{HandInReport, memory, send};
use crate::daemon::crash::crash_point;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::inbound::Inbound;
use crate::daemon::served::Served;

/// The refs of everything that was handed in, in the mirror.
const HAND_INS: &str = "refs/pointsman/hand-in";

/// Whether what it changes in files may be handed in.
fn hands_in(run: &Run) -> bool {
    run.subject.is_none() && run.formula.role().hands_in().is_some()
}

/// Makes a run's working tree of the head of the main branch, and remembers that head where no agent can write. A role that
/// carries its own notes on finds those that are not on the main branch yet.
pub(in crate::daemon) fn check_out(
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    head: &Sha,
    tree: &Path,
) -> anyhow::Result<()> {
    let mirror = &served.mirror;
    if !hands_in(run) {
        return Ok(checkout_exact(mirror, head, tree)?);
    }
    keep(mirror, &reference("base", run.id)?, head)?;
    let role = run.formula.role();
    let latest =
        world.read(|store| memory(store, &run.project, role))?.latest().filter(|_| carries_on(role)).cloned();
    let Some(latest) = latest else { return Ok(checkout_exact(mirror, head, tree)?) };
    // Whole, or not at all: it is not made again once it is there.
    let building = tree.with_extension("new");
    checkout_exact(mirror, head, &building)?;
    let moved = mirror.changed_paths(&latest.base, head)?;
    let wanted =
        |path: &str| latest.files.iter().any(|file| file == path) && !moved.iter().any(|moved| moved == path);
    restore_from(mirror, &building, head, &latest.commit, wanted)?;
    std::fs::rename(&building, tree).with_context(|| format!("cannot move {}", building.display()))
}

/// Takes what a run that is over may hand in, if it is done, before its working tree goes.
pub(in crate::daemon) fn take(
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    tree: &Path,
) -> anyhow::Result<()> {
    if !hands_in(run) {
        return Ok(());
    }
    // Without its tree it was looked at before.
    if run.status == Status::Done && tree.exists() {
        hand_in(world, served, run, tree)?;
    }
    let base = reference("base", run.id)?;
    if let Some(at) = served.mirror.read_ref(&base)? {
        served.mirror.delete_ref(&base, &at)?;
    }
    tidy(world, served)
}

/// Lets go of commits that are neither open nor about to be. One whose run is not through yet still has its base.
fn tidy(world: &EffectPerformer, served: &Served) -> anyhow::Result<()> {
    let (mirror, project) = (&served.mirror, &served.config.name);
    let all = RefName::new(HAND_INS).with_context(|| words::daemon::git::not_a_ref_name(HAND_INS))?;
    for (name, commit) in mirror.list_refs(&all)? {
        let run = name.as_str().rsplit("/run-").next().and_then(|run| run.parse().ok()).map(RunId);
        let Some(run) = run else { continue };
        // In this order: what is written down is written before its base goes.
        if mirror.read_ref(&reference("base", run)?)?.is_some() {
            continue;
        }
        let mut wanted = false;
        for role in Role::handing_in() {
            let memory = match world.read(|store| memory(store, project, role)) {
                Ok(memory) => memory,
                // Nobody knows whether it is still asked for.
                Err(pointsman_store::Error::Unreadable(_)) => {
                    wanted = true;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            wanted |= memory.open.is_some_and(|open| open.taken.run == run);
            wanted |= memory.newer.is_some_and(|newer| newer.run == run);
        }
        if !wanted {
            mirror.delete_ref(&name, &commit)?;
        }
    }
    Ok(())
}

fn hand_in(world: &EffectPerformer, served: &Served, run: &Run, tree: &Path) -> anyhow::Result<()> {
    let (taken, refused) = match pick(served, run, tree) {
        Ok((taken, refused)) => (taken, words::hand_in::refused(run.id, &refused)),
        Err(error) => {
            anyhow::ensure!(!world.jobs.is_stopping(), words::daemon::process::is_stopping());
            // All of it is captured. A tree that cannot be looked at must not keep its run from ending.
            let error = format!("{error:#}");
            tracing::warn!(run = %run.identity(), error, "nothing is handed in");
            (None, vec![words::hand_in::unreadable(run.id, &error)])
        }
    };
    crash_point("hand-in-taken");
    let inbox = &world.jobs.inbox;
    send(inbox, &run.project, run.formula.role(), HandInReport::Taken { run: run.id, taken, refused })?;
    crash_point("hand-in-written");
    inbox.send(Inbound::AskForge { project: run.project.clone() });
    Ok(())
}

/// One commit of what the rules allow, and what they do not.
fn pick(served: &Served, run: &Run, tree: &Path) -> anyhow::Result<(Option<HandInFiles>, Vec<Refusal>)> {
    let (mirror, role) = (&served.mirror, run.formula.role());
    let base = mirror.read_ref(&reference("base", run.id)?)?;
    let base = base.context(words::daemon::hand_in::no_base())?;
    let found = selection::differences(mirror, tree, &base)?;
    let changes: Vec<_> = found.iter().map(|one| one.change.clone()).collect();
    let choice = choose(role, &changes);
    let mut refused = choice.refused;
    let chosen: Vec<&Changed> = found.iter().filter(|one| choice.taken.contains(&one.change.path)).collect();
    let mut picked = Vec::new();
    for (changed, text) in chosen.iter().zip(selection::contents(mirror, &chosen)?) {
        match is_text(&text) {
            true => picked.push(*changed),
            false => refused.push(Refusal { path: changed.change.path.clone(), why: RefusalReason::NotText }),
        }
    }
    if picked.is_empty() {
        return Ok((None, refused));
    }
    let files: Vec<String> = picked.iter().map(|one| one.change.path.clone()).collect();
    let blobs = picked.iter().filter_map(|one| Some((one.change.path.as_str(), one.blob.as_ref()?)));
    let content = content(blobs);
    let message = words::hand_in::message(role, run.id, &files);
    // At the time of the run and not of now: done again, it is the same commit.
    let commit = selection::commit(mirror, &base, &picked, &message, run.started_at.0.div_euclid(1000))?;
    keep(mirror, &reference("hand-in", run.id)?, &commit)?;
    Ok((Some(HandInFiles { run: run.id, commit, base, content, files }), refused))
}

/// `refs/pointsman/<what>/run-7`, in the mirror, which no agent can write.
fn reference(what: &str, run: RunId) -> anyhow::Result<RefName> {
    let name = format!("refs/pointsman/{what}/run-{run}");
    RefName::new(&name).with_context(|| words::daemon::git::not_a_ref_name(&name))
}

fn keep(mirror: &Mirror, name: &RefName, commit: &Sha) -> anyhow::Result<()> {
    let before = mirror.read_ref(name)?;
    if before.as_ref() == Some(commit) {
        return Ok(());
    }
    match mirror.update_ref(name, commit, &before.map_or(Expect::Absent, Expect::At))? {
        RefUpdate::Done => Ok(()),
        RefUpdate::Stale { .. } => anyhow::bail!(words::daemon::git::moved_by_somebody(name)),
    }
}
