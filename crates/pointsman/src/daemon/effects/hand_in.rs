//! Effects about the files that a run hands in: the tree in which its session begins, the commit that is made of it, and the
//! branch and the pull request of that commit. The core has the rules and decides the next step.

use std::path::Path;

use anyhow::Context;
use pointsman_adapters::git::checkout::{checkout_exact, restore_from};
use pointsman_adapters::git::mirror::{Mirror, RefUpdate};
use pointsman_adapters::git::push::{Change, Expect, PushOutcome, PushRef};
use pointsman_adapters::git::selection::{self, Changed};
use pointsman_adapters::git::{BranchName, RefName};
use pointsman_adapters::retry::Retry;
use pointsman_core::hand_in::{
    HandInFiles, Landing, Need, Refusal, RefusalReason, carries_on, choose, content, is_text,
};
use pointsman_core::ids::{ProjectName, Sha};
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::part::contribution;
use pointsman_core::role::Role;
use pointsman_core::run::{Event, Run, RunId};
use pointsman_core::task::Notice;
use pointsman_core::words;
use pointsman_core::workflow;
use pointsman_store::{NewEntry, RunScope, Store};

use super::{EffectError, EffectPerformer, Outcome};
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::leaks;
use crate::daemon::outcome::Note;
use crate::daemon::risk;
use crate::daemon::served::Served;

/// The refs of everything that was handed in, in the mirror.
const HAND_INS: &str = "refs/pointsman/hand-in";

/// The run whose hand-in is on its way on a branch.
pub(in crate::daemon) fn landing_on(
    store: &Store,
    project: &ProjectName,
    branch: &str,
) -> Result<Option<Run>, pointsman_store::Error> {
    let open = store.runs(project, RunScope::Open)?;
    Ok(open.into_iter().find(|run| run.contribution().is_some_and(|part| part.branch == branch)))
}

/// The open hand-ins of a role, oldest first.
pub(in crate::daemon) fn open_of(
    store: &Store,
    project: &ProjectName,
    role: Role,
) -> Result<Vec<Run>, pointsman_store::Error> {
    let mut open = store.runs(project, RunScope::Open)?;
    open.retain(|run| run.formula.role() == role && run.hand_in.as_ref().is_some_and(|one| one.is_open()));
    Ok(open)
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
    if !run.may_hand_in() {
        return Ok(checkout_exact(mirror, head, tree)?);
    }
    keep(mirror, &reference("base", run.id)?, head)?;
    let role = run.formula.role();
    let latest = match carries_on(role) {
        true => world.read(|store| open_of(store, &run.project, role))?.pop().and_then(|run| run.hand_in),
        false => None,
    };
    let Some(latest) = latest.map(|latest| latest.files) else {
        return Ok(checkout_exact(mirror, head, tree)?);
    };
    // Whole, or not at all: it is not made again once it is there.
    let building = tree.with_extension("new");
    checkout_exact(mirror, head, &building)?;
    let moved = mirror.changed_paths(&latest.base, head)?;
    let wanted =
        |path: &str| latest.files.iter().any(|file| file == path) && !moved.iter().any(|moved| moved == path);
    restore_from(mirror, &building, head, &latest.commit, wanted)?;
    std::fs::rename(&building, tree).with_context(|| format!("cannot move {}", building.display()))
}

/// Takes what a run that is over may hand in, before its working tree goes.
pub(super) fn take(
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    tree: &Path,
) -> anyhow::Result<Outcome> {
    let (files, refused) = match pick(world, served, run, tree) {
        Ok((files, refused)) => (files, words::hand_in::refused(run.id, &refused)),
        Err(error) => {
            anyhow::ensure!(!world.jobs.is_stopping(), words::daemon::process::is_stopping());
            // All of it is captured. A tree that cannot be looked at must not keep its run from ending.
            let error = format!("{error:#}");
            tracing::warn!(run = %run.identity(), error, "nothing is handed in");
            (None, vec![words::hand_in::unreadable(run.id, &error)])
        }
    };
    crash_point("hand-in-taken");
    Ok(learned(Event::HandedIn { files, refused }))
}

/// Lets go of the base of a run that was looked through, and of the commits of runs that are through.
pub(super) fn tidy(world: &EffectPerformer, served: &Served, run: &Run) -> anyhow::Result<()> {
    if !run.may_hand_in() {
        return Ok(());
    }
    crash_point("hand-in-written");
    let (mirror, project) = (&served.mirror, &served.config.name);
    let base = reference("base", run.id)?;
    if let Some(at) = mirror.read_ref(&base)? {
        mirror.delete_ref(&base, &at)?;
    }
    let all = RefName::new(HAND_INS).with_context(|| words::daemon::git::not_a_ref_name(HAND_INS))?;
    for (name, commit) in mirror.list_refs(&all)? {
        let id = name.as_str().rsplit("/run-").next().and_then(|id| id.parse().ok()).map(RunId);
        let Some(id) = id else { continue };
        let wanted = match world.read(|store| store.run(project, id)) {
            Ok(known) => known.is_some_and(|known| known.is_open()),
            // Nobody knows whether it is still asked for.
            Err(pointsman_store::Error::Unreadable(_)) => true,
            Err(error) => return Err(error.into()),
        };
        if !wanted {
            mirror.delete_ref(&name, &commit)?;
        }
    }
    Ok(())
}

/// One commit of what the rules allow, and what they do not.
fn pick(
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    tree: &Path,
) -> anyhow::Result<(Option<HandInFiles>, Vec<Refusal>)> {
    let (mirror, role) = (&served.mirror, run.formula.role());
    let base = mirror.read_ref(&reference("base", run.id)?)?;
    let base = base.context(words::daemon::hand_in::no_base())?;
    let captures = &served.captures;
    let found = selection::differences(captures, tree, &base)?;
    let changes: Vec<_> = found.iter().map(|one| one.change.clone()).collect();
    let choice = choose(role, &changes);
    let mut refused = choice.refused;
    let chosen: Vec<&Changed> = found.iter().filter(|one| choice.taken.contains(&one.change.path)).collect();
    let mut picked = Vec::new();
    let decisions = world.read(|store| leaks::Decisions::read(store, &served.config))?;
    let mut secrets = Vec::new();
    for (changed, text) in chosen.iter().zip(selection::contents(captures, &chosen)?) {
        let path = &changed.change.path;
        let stopping = decisions.stopping(&decisions.open(&leaks::look_at_file(path, &text)));
        let why = match (is_text(&text), stopping.is_empty()) {
            (true, true) => {
                picked.push(*changed);
                continue;
            }
            (false, _) => RefusalReason::NotText,
            (true, false) => RefusalReason::HoldsSecret,
        };
        refused.push(Refusal { path: path.clone(), why });
        secrets.extend(stopping);
    }
    let name = run.identity();
    let place = leaks::Place { project: &run.project, name: &name, issue: None, pr: None };
    leaks::ask(&world.jobs.inbox, place, &secrets);
    if picked.is_empty() {
        return Ok((None, refused));
    }
    let files: Vec<String> = picked.iter().map(|one| one.change.path.clone()).collect();
    let blobs = picked.iter().filter_map(|one| Some((one.change.path.as_str(), one.blob.as_ref()?)));
    let content = content(blobs);
    let message = words::hand_in::message(role, run.id, &files);
    // At the time of the run and not of now: done again, it is the same commit.
    let seconds = run.started_at.0.div_euclid(1000);
    let commit = selection::commit(captures, &base, &picked, &message, seconds)?;
    mirror.take(captures, &commit, &reference("hand-in", run.id)?)?;
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

/// What a run has on its way; nothing if that has ended while the order waited.
fn on_its_way(run: &Run) -> Option<(&HandInFiles, &Landing)> {
    let handed_in = run.hand_in.as_ref()?;
    Some((&handed_in.files, handed_in.landing()?))
}

fn learned(event: Event) -> Outcome {
    Outcome::learned(workflow::Event::Run(event))
}

fn about(event: contribution::Event) -> Outcome {
    learned(Event::Contribution { about: event })
}

impl EffectPerformer {
    /// Puts the commit on its branch, from where we left it. Somebody else's commits are never pushed over.
    pub(super) fn push_hand_in(&self, served: &Served, run: &Run) -> Result<Outcome, EffectError> {
        let Some((files, landing)) = on_its_way(run) else { return Ok(Outcome::done()) };
        let contribution = &landing.contribution;
        let branch = BranchName::new(&contribution.branch)
            .ok_or_else(|| EffectError::never(words::daemon::git::not_a_branch_name(&contribution.branch)))?;
        served.mirror.fetch_remote()?;
        let there = served.mirror.remote_head(&branch)?;
        let is_ours = |at: &Sha| run.hand_in.as_ref().is_some_and(|handed_in| handed_in.owns(at));
        if let Some(commit) = there.clone().filter(|at| !is_ours(at)) {
            return Ok(learned(Event::BranchTaken { commit }));
        }
        if there.as_ref() != Some(&files.commit) {
            // A value may have become known since the files were taken.
            if let Some(main) = served.mirror.remote_head(&served.primary)? {
                let found = leaks::look(served, &main, &files.commit)?;
                let decisions = self.read(|store| leaks::Decisions::read(store, &served.config))?;
                let stopping = decisions.stopping(&decisions.open(&found));
                if !stopping.is_empty() {
                    let (project, name) = (&run.project, contribution.branch.as_str());
                    let place = leaks::Place { project, name, issue: None, pr: contribution.pr() };
                    leaks::ask(&self.jobs.inbox, place, &stopping);
                    return self.not_opened(served, run, &leaks::described(&stopping));
                }
            }
            let expect = there.map_or(Expect::Absent, Expect::At);
            let push = PushRef { refname: branch.full(), change: Change::To(files.commit.clone()), expect };
            match served.mirror.push(&[push])? {
                PushOutcome::Done => {}
                // Whose it is now is seen at the next look.
                PushOutcome::Stale { refname, .. } => {
                    return Err(EffectError::later(words::daemon::git::moved_by_somebody(refname)));
                }
                PushOutcome::Refused { message } => return self.push_refused(served, run, landing, &message),
            }
            crash_point("hand-in-pushed");
        }
        if let Some(pr) = contribution.pr().filter(|_| contribution.head() != Some(&files.commit)) {
            crash_point("hand-in-replaced");
            let marker = format!("hand-in-{}", run.id);
            match served.forge.comment_on_pull_request_once(pr, &marker, &words::hand_in::replaced(files)) {
                Ok(_) => {}
                // It is there, whether or not people can be told below it.
                Err(error) if error.retry() == Retry::Never => {
                    tracing::warn!(pr, %error, "no comment on what is newer");
                }
                Err(error) => return Err(error.into()),
            }
        }
        let (protected, risk) = match served.mirror.remote_head(&served.primary)? {
            Some(main) => {
                let protected = served.protected_paths(&main, &files.commit)?;
                let risk = risk::judge(served, &main, &files.commit, &protected);
                (protected, risk)
            }
            None => (Vec::new(), None),
        };
        let head = Some(files.commit.clone());
        Ok(about(contribution::Event::Pushed { head, protected, risk, secret: None }))
    }

    /// The forge says no: people are told, once, and it is tried again.
    fn push_refused(
        &self,
        served: &Served,
        run: &Run,
        landing: &Landing,
        message: &str,
    ) -> Result<Outcome, EffectError> {
        let (project, role) = (&served.config.name, run.formula.role());
        let refused = words::daemon::git::push_refused(&landing.contribution.branch, message);
        match landing.contribution.pr() {
            None => self.not_opened(served, run, &refused),
            Some(pr) => {
                let link = served.forge.pull_request_link(pr);
                let notice = words::hand_in::not_replaced(project, role, pr, run.id, message);
                let key = format!("{pr}/not-replaced/{}", run.id);
                self.put_up(&posting(served, role, &key, Some(link), notice))?;
                Err(EffectError::later(refused))
            }
        }
    }

    fn not_opened(&self, served: &Served, run: &Run, why: &str) -> Result<Outcome, EffectError> {
        let role = run.formula.role();
        let notice = words::hand_in::not_opened(&served.config.name, role, run.id, why);
        self.put_up(&posting(served, role, &format!("{}/not-opened", run.id), None, notice))?;
        Err(EffectError::later(words::daemon::hand_in::not_opened_yet(why)))
    }

    /// Finds or opens the pull request. One that is closed was opened and closed while nobody wrote it down.
    pub(super) fn open_hand_in(&self, served: &Served, run: &Run) -> Result<Outcome, EffectError> {
        let Some((files, landing)) = on_its_way(run) else { return Ok(Outcome::done()) };
        let (branch, base) = (&landing.contribution.branch, served.primary.as_str());
        let number = match served.forge.pull_request_from(branch, base)? {
            Some(pr) => pr.number,
            None => {
                let (title, body) = words::hand_in::pull_request(run.formula.role(), files, &served.config);
                match served.forge.ensure_pull_request(branch, base, &title, &body) {
                    Ok(number) => number,
                    Err(error) if error.retry() == Retry::Never => {
                        return self.not_opened(served, run, &error.to_string());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        crash_point("hand-in-opened");
        Ok(about(contribution::Event::Opened { number }))
    }

    pub(super) fn enqueue_hand_in(served: &Served, run: &Run, head: &Sha) -> Outcome {
        let Some((_, landing)) = on_its_way(run) else { return Outcome::done() };
        crash_point("hand-in-entered");
        Outcome::note(Note::Enqueue(Box::new(NewEntry {
            project: served.config.name.clone(),
            branch: landing.contribution.branch.clone(),
            issue: None,
            pr: landing.contribution.pr(),
            identity: Some(run.identity()),
            head: head.clone(),
            requested_at: clock::now(),
            priority: 0,
            worktree: None,
            style: None,
        })))
    }

    /// Tells people what it needs, once for each commit.
    pub(super) fn notify_need(
        &self,
        served: &Served,
        run: &Run,
        need: &Need,
    ) -> Result<Outcome, EffectError> {
        let Some(pr) = run.contribution().and_then(contribution::Contribution::pr) else {
            return Ok(Outcome::done());
        };
        let (role, link) = (run.formula.role(), served.forge.pull_request_link(pr));
        let notice = words::hand_in::notice(&served.config.name, role, pr, need, &link);
        let what = match need {
            Need::Review { commit } => format!("review/{commit}"),
            Need::Checks { commit } => format!("checks/{commit}"),
            Need::Silent { commit } => format!("silent/{commit}"),
            Need::Line { commit, .. } => format!("line/{commit}"),
            Need::Taken => "taken".to_owned(),
        };
        let posting = posting(served, role, &format!("{pr}/{what}"), Some(link), notice);
        Ok(Outcome::notice(self.log(posting)?))
    }
}

fn posting(served: &Served, role: Role, key: &str, link: Option<String>, notice: Notice) -> Posting {
    let project = &served.config.name;
    Posting {
        key: format!("hand-in/{project}/{role}/{key}"),
        project: project.clone(),
        topic: Topic::of_role(role),
        link,
        question: None,
        notice,
    }
}
