//! Landing: a tested candidate becomes the main branch, by one push that compares and swaps.

use std::sync::Arc;

use pointsman_adapters::git::candidate::Style;
use pointsman_adapters::git::push::{Change, Expect, PushOutcome, PushRef};
use pointsman_adapters::git::{BranchName, Locks, clear_dead_locks};
use pointsman_adapters::retry::Retry;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::run;
use pointsman_core::task::QueueOutcome;
use pointsman_core::{text, words};
use pointsman_store::{EntryStatus, QueueEntry, Stopped, StoppedBy};

use super::super::Jobs;
use super::report::{BranchFate, Outcome};
use super::{QueueWorker, QueuedCandidate, audit, pushes};
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::effects::hand_in;
use crate::daemon::engine::Input;
use crate::daemon::served::Served;

/// How often a server may refuse a push before a person is asked.
const REFUSALS: u32 = 2;

/// What came of the push to main.
enum PushedMain {
    /// It is there; the branches may be gone in the same push.
    Done {
        tidied: bool,
    },
    /// Something was not where it was expected.
    Moved,
    Refused {
        message: String,
    },
}

impl QueueWorker<'_> {
    /// Lands the last of these candidates, and with it all before it; false if something is in the way, and the line
    /// has changed and is looked at again.
    pub(super) fn land(&mut self, main: &Sha, members: &[QueuedCandidate]) -> anyhow::Result<bool> {
        crash_point("landing-tested");
        for member in members {
            if !self.is_wanted(&member.entry)? {
                let reason = words::daemon::queue::taken_out().to_owned();
                self.report(member.entry.clone(), QueueOutcome::Stale { reason });
                return Ok(false);
            }
        }
        for member in members {
            let stray = self.stray(member)?;
            if stray.is_empty() {
                continue;
            }
            match self.style(&member.entry) {
                // Commit by commit it takes back what main did, although as a whole it changes nothing there: what is
                // meant has to be said by whoever wrote it. The others go on.
                Style::Rebase => {
                    let with = self.landed_in_the_way(&stray)?;
                    let mut entry = member.entry.clone();
                    entry.conflicts_with.clone_from(&with);
                    self.report(entry, QueueOutcome::Conflict { files: stray, with });
                }
                Style::Merge | Style::Squash => self.alarm(member, &stray),
            }
            return Ok(false);
        }
        // On disk before main moves: whoever audits it finds its commits in the ledger.
        self.show_under_test(members)?;
        if !self.bring_branches(members)? {
            self.main = None;
            return Ok(false);
        }
        crash_point("landing-branch-pushed");
        pushes::remember(&self.served.mirror, members)?;
        crash_point("landing-push-remembered");
        let Some(last) = members.last() else { return Ok(false) };
        let land = PushRef {
            refname: self.served.primary.full(),
            change: Change::To(last.built.commit.clone()),
            expect: Expect::At(main.clone()),
        };
        let tidied = match self.push_main(land, self.branches_to_go(members)?)? {
            PushedMain::Done { tidied } => tidied,
            PushedMain::Moved => {
                self.main = None;
                return Ok(false);
            }
            PushedMain::Refused { message } => {
                self.main = None;
                // Asked once more first: some refusals pass. Then the forge may merge what nobody may push.
                if self.refusals + 1 >= REFUSALS && self.merge_by_forge(main, &members[0])? {
                    return Ok(false);
                }
                let primary = self.served.primary.to_string();
                self.refused(&primary, &message)?;
                return Ok(false);
            }
        };
        (self.refusals, self.troubles) = (0, 0);
        crash_point("landing-main-pushed");
        self.trees.insert(last.built.commit.clone(), last.built.tree.clone());
        self.main_is(last.built.commit.clone())?;
        let audit = audit::ours(self.jobs, self.served, main, &last.built.commit)?;
        let landed = members.iter().map(|member| {
            let shown = self.jobs.read(|store| store.queue_entry(member.entry.id)).ok().flatten();
            let mut entry = shown.unwrap_or_else(|| member.entry.clone());
            (entry.base, entry.candidate) = (Some(member.base.clone()), Some(member.built.commit.clone()));
            let branch = if tidied && entry.pr.is_none() { BranchFate::Gone } else { BranchFate::Goes };
            Outcome {
                entry,
                outcome: QueueOutcome::Landed { sha: member.built.commit.clone() },
                branch,
                log: None,
            }
        });
        self.report_all(landed.collect(), audit);
        Ok(true)
    }

    /// Moves main, and takes branches away in the same push: all or nothing.
    fn push_main(&mut self, land: PushRef, branches: Vec<PushRef>) -> anyhow::Result<PushedMain> {
        let served = Arc::clone(self.served);
        let mirror = &served.mirror;
        let together = !branches.is_empty();
        let all: Vec<PushRef> = std::iter::once(land.clone()).chain(branches).collect();
        let mut outcome = self.push(&all)?;
        let mut tidied = together;
        if together && matches!(outcome, PushOutcome::Refused { .. }) {
            let there = mirror.remote_refs(all[1..].iter().map(|branch| &branch.refname))?;
            if !all[1..].iter().zip(&there).all(|(branch, at)| branch.expect.holds(at.as_ref())) {
                return Ok(PushedMain::Moved);
            }
            // It may be the deletion that it does not like.
            tidied = false;
            outcome = self.push(&[land])?;
        }
        Ok(match outcome {
            PushOutcome::Done => PushedMain::Done { tidied },
            PushOutcome::Stale { .. } => PushedMain::Moved,
            PushOutcome::Refused { message } => PushedMain::Refused { message },
        })
    }

    /// The server said no to a push. It is asked once more after a pause, because some refusals pass. After that nothing
    /// is pushed until a person has looked: a rule of the server stays, and its log should not fill up.
    fn refused(&mut self, branch: &str, message: &str) -> anyhow::Result<()> {
        self.refusals += 1;
        let message = text::clean_line(message, 400);
        if self.refusals < REFUSALS {
            anyhow::bail!(words::queue::push_refused(branch, &message));
        }
        self.refusals = 0;
        let reason = words::queue::push_refused_twice(branch, &message);
        tracing::error!(project = %self.served.config.name, reason, "the merge queue stops");
        self.pause_queue(Stopped { at: clock::now(), by: StoppedBy::Refusal, reason });
        Ok(())
    }

    /// The server refuses to move the branch of an entry, also when it is asked once more. That is no reason to hold up
    /// the others, so only that entry is out, and a person is asked.
    fn refused_branches(
        &mut self,
        members: &[QueuedCandidate],
        moves: Vec<PushRef>,
        message: &str,
    ) -> anyhow::Result<()> {
        self.refusals += 1;
        if self.refusals < REFUSALS {
            anyhow::bail!(words::queue::push_refused(&names(&moves), &text::clean_line(message, 400)));
        }
        self.refusals = 0;
        for moved in moves {
            let entry = members.iter().map(|member| &member.entry);
            let of = |entry: &&QueueEntry| {
                BranchName::new(&entry.branch).is_some_and(|b| b.full() == moved.refname)
            };
            let Some(entry) = entry.clone().find(of).cloned() else { continue };
            if let PushOutcome::Refused { message } = self.push(&[moved])? {
                let reason = words::queue::push_refused(&entry.branch, &text::clean_line(&message, 400));
                self.report(entry, QueueOutcome::Infra { reason, log: String::new() });
            }
        }
        Ok(())
    }

    /// The branches of these candidates, each to be deleted where it was last seen. One with a pull request is looked
    /// after once the forge has seen the merge.
    fn branches_to_go(&self, members: &[QueuedCandidate]) -> anyhow::Result<Vec<PushRef>> {
        let mut gone = Vec::new();
        for member in members.iter().filter(|member| member.entry.pr.is_none()) {
            let Some(branch) = BranchName::new(&member.entry.branch) else { continue };
            if let Some(at) = self.served.mirror.remote_head(&branch)? {
                gone.push(PushRef { refname: branch.full(), change: Change::Delete, expect: Expect::At(at) });
            }
        }
        Ok(gone)
    }

    /// First the head branches, so that the forge shows their pull requests as merged. False if one moved.
    fn bring_branches(&mut self, members: &[QueuedCandidate]) -> anyhow::Result<bool> {
        let served = Arc::clone(self.served);
        let mirror = &served.mirror;
        let mut moves = Vec::new();
        for member in members {
            // Without a pull request nobody looks at it any more.
            let shown = member.entry.pr.is_some() && self.style(&member.entry) == Style::Rebase;
            if member.built.same_as_head || !shown {
                continue;
            }
            let Some(branch) = BranchName::new(&member.entry.branch) else { continue };
            let at = mirror.remote_head(&branch)?.map_or(Expect::Absent, Expect::At);
            if member.entry.issue.is_none() {
                let (project, candidate) = (&self.served.config.name, &member.built.commit);
                let run =
                    self.jobs.read(|store| hand_in::landing_on(store, project, &member.entry.branch))?;
                if let Some(run) = run {
                    // Written before it is there: whoever finds it must not take it for somebody else's.
                    let put = run::Event::CommitPut { commit: candidate.clone() };
                    self.jobs.inbox.tell(Input::of_run(run.key(), put));
                    self.jobs.inbox.wait_until_written();
                }
            }
            moves.push(PushRef {
                refname: branch.full(),
                change: Change::To(member.built.commit.clone()),
                expect: at,
            });
        }
        if moves.is_empty() {
            return Ok(true);
        }
        match self.push(&moves)? {
            PushOutcome::Done => Ok(true),
            PushOutcome::Stale { .. } => Ok(false),
            PushOutcome::Refused { message } => {
                self.refused_branches(members, moves, &message).map(|()| false)
            }
        }
    }

    /// A candidate that changes what none of its branches did must never land: nobody knows why it does.
    fn alarm(&mut self, member: &QueuedCandidate, stray: &[String]) {
        let reason = words::daemon::queue::stray_paths(&member.entry.branch, &member.base, stray);
        tracing::error!(project = %self.served.config.name, reason, "the merge queue stops");
        self.pause_queue(Stopped { at: clock::now(), by: StoppedBy::Audit, reason });
    }

    /// Pushes to the forge. In a repository of ours a lock that a killed git left is no reason to give up.
    fn push(&self, refs: &[PushRef]) -> anyhow::Result<PushOutcome> {
        let outcome = self.served.mirror.push(refs)?;
        let PushOutcome::Refused { message } = &outcome else { return Ok(outcome) };
        if self.served.embedded.is_some() {
            if let Locks::Cleared(paths) = clear_dead_locks(&self.served.paths.forge_repository())? {
                tracing::warn!(?paths, "cleared locks that a killed git left");
                return Ok(self.served.mirror.push(refs)?);
            }
            return Ok(outcome);
        }
        let locks = match self.served.mirror.move_dead_remote_locks()? {
            Locks::None => Vec::new(),
            Locks::Cleared(paths) => {
                tracing::warn!(?paths, "moved locks aside that a killed git left");
                return Ok(self.served.mirror.push(refs)?);
            }
            Locks::InUse { locks, .. } => locks,
        };
        if locks.is_empty() {
            return Ok(outcome);
        }
        Ok(PushOutcome::Refused { message: words::daemon::git::locks_at_server(message, &locks) })
    }

    /// Shows entries as under test, with the candidates they are in.
    pub(super) fn show_under_test(&mut self, members: &[QueuedCandidate]) -> anyhow::Result<()> {
        let mut shown = Vec::new();
        for member in members {
            let known = self.jobs.read(|store| store.queue_entry(member.entry.id))?;
            let Some(mut entry) = known else { continue };
            let candidate = Some(member.built.commit.clone());
            // While something outside fails again and again, the entry goes on saying so: every change is an event.
            let is_said = entry.reason.is_none() || self.troubles > 0;
            if entry.status == EntryStatus::Testing && entry.candidate == candidate && is_said {
                continue;
            }
            entry.status = EntryStatus::Testing;
            entry.base = Some(member.base.clone());
            entry.reason = None;
            entry.attempts += 1;
            entry.tested_since = Some(clock::now());
            entry.candidate = candidate;
            shown.push(entry);
        }
        self.write_down(shown);
        Ok(())
    }

    /// Tells the forge what git knows already, and takes the landed branches away.
    pub(super) fn tidy_forge(&self, landed: &[Outcome]) {
        let mut done = Vec::new();
        for Outcome { entry, outcome, branch: fate, .. } in landed {
            let QueueOutcome::Landed { sha } = outcome else { continue };
            // Nothing of it landed, so there is no merge to show.
            if *fate == BranchFate::Stays {
                continue;
            }
            if let Some(pr) = entry.pr {
                show_merge(self.jobs, self.served, pr, sha);
            }
            if let Some(branch) = BranchName::new(&entry.branch).filter(|_| *fate == BranchFate::Goes) {
                done.push((branch.full(), [sha, &entry.head]));
            }
        }
        if done.is_empty() {
            return;
        }
        let there = match self.served.mirror.remote_refs(done.iter().map(|(name, _)| name)) {
            Ok(there) => there,
            Err(error) => {
                tracing::warn!(%error, "landed branches stay");
                return;
            }
        };
        // Work that came meanwhile stays.
        let gone: Vec<PushRef> = done
            .into_iter()
            .zip(there)
            .filter_map(|((refname, landed), at)| {
                let at = at.filter(|at| landed.contains(&at))?;
                Some(PushRef { refname, change: Change::Delete, expect: Expect::At(at) })
            })
            .collect();
        if gone.is_empty() {
            return;
        }
        // All or none; if one is in the way the others still go.
        if !matches!(self.served.mirror.push(&gone), Ok(PushOutcome::Done)) {
            for branch in gone {
                let name = branch.refname.clone();
                match self.served.mirror.push(&[branch]) {
                    Ok(PushOutcome::Done) => {}
                    Ok(other) => tracing::warn!(branch = %name, ?other, "the landed branch stays"),
                    Err(error) => tracing::warn!(branch = %name, %error, "the landed branch stays"),
                }
            }
        }
    }
}

fn names(refs: &[PushRef]) -> String {
    let names: Vec<String> = refs.iter().map(|moved| moved.refname.to_string()).collect();
    names.join(", ")
}

/// Closes the pull request of a task whose changes came to main by another way, and says so there. The forge would show
/// somebody else's commit as its merge.
pub(super) fn close_without_merge(served: &Served, pr: Number, main: &Sha) {
    let words = words::queue::landed_by_another_way(main.short());
    let told = served.forge.comment_on_pull_request_once(pr, "nothing-to-land", &words);
    if let Err(error) = told.and_then(|()| served.forge.close_pull_request(pr)) {
        tracing::warn!(pr, %error, "a pull request without anything to land stays open");
    }
}

/// Has the forge show a merge; if it does not answer, it is told again when main is next looked at.
pub(super) fn show_merge(jobs: &Jobs, served: &Served, pr: Number, sha: &Sha) {
    let project = &served.config.name;
    let told = served.forge.record_merge(pr, sha);
    let mut running = jobs.lock();
    let unshown = running.unshown.entry(project.clone()).or_default();
    match told {
        Ok(()) => {
            unshown.remove(&pr);
        }
        Err(error) if error.retry() == Retry::Later => {
            tracing::warn!(pr, %error, "the forge does not show the merge yet");
            unshown.insert(pr, sha.clone());
        }
        Err(error) => {
            tracing::warn!(pr, %error, "the forge does not show the merge");
            unshown.remove(&pr);
        }
    }
}
