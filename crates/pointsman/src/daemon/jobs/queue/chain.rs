//! From the merge queue to a chain: which entries may land at all, and their candidates one on top of the other.

use pointsman_adapters::git::BranchName;
use pointsman_adapters::git::candidate::{self, Built, Candidate, Order, Style};
use pointsman_adapters::git::changes;
use pointsman_adapters::git::push::{Change, Expect, PushOutcome, PushRef};
use pointsman_adapters::retry::Retry;
use pointsman_core::ids::Sha;
use pointsman_core::task::QueueOutcome;
use pointsman_core::words;
use pointsman_core::words::commit::Heading;
use pointsman_store::{EntryStatus, QueueEntry};

use super::report::{BranchFate, Outcome};
use super::{QueueWorker, QueuedCandidate};
use crate::daemon::crash::crash_point;
use crate::daemon::leaks;

/// How many of the last landings are looked through for the one that an entry conflicts with.
const LANDINGS: u32 = 50;

/// How many results of building are kept.
const KEPT: usize = 1000;

/// What came of building one entry on one commit.
#[derive(Clone)]
pub(super) enum BuildOutcome {
    Built(Built),
    /// It conflicts in these files.
    Conflict(Vec<String>),
    /// All of it is there already.
    Nothing,
    /// It cannot be built at all.
    Broken(String),
}

/// An entry that does not land because of something that was found in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// A person was asked.
    Waits,
    /// A person said no, and that was reported.
    Over,
}

impl QueueWorker<'_> {
    /// The main branch as the forge has it.
    pub(super) fn main_branch(&mut self) -> anyhow::Result<Sha> {
        if let Some(main) = &self.main {
            return Ok(main.clone());
        }
        let mirror = &self.served.mirror;
        mirror.fetch_remote()?;
        let Some(main) = mirror.remote_head(&self.served.primary)? else {
            anyhow::bail!(words::daemon::git::no_branch(&self.served.primary));
        };
        self.main_is(main.clone())?;
        self.fetched = true;
        Ok(main)
    }

    /// The main branch is here now. What is blamed on an entry must hold for a base that is green, so suspects on
    /// another base go back into the merge queue.
    pub(super) fn main_is(&mut self, main: Sha) -> anyhow::Result<()> {
        let mut kept = Vec::new();
        for member in std::mem::take(&mut self.aside) {
            if member.base == main || self.is_green(&member.base)? {
                kept.push(member);
            }
        }
        self.aside = kept;
        self.main = Some(main);
        Ok(())
    }

    /// Entries that can land, in order. None if something was reported: the merge queue has changed.
    pub(super) fn still_valid(
        &mut self,
        entries: Vec<QueueEntry>,
        main: &Sha,
    ) -> anyhow::Result<Option<Vec<QueueEntry>>> {
        for entry in &entries {
            if let Some(outcome) = self.settled(entry, main)? {
                self.report(entry.clone(), outcome);
                return Ok(None);
            }
        }
        self.fetched = false;
        let mut free = Vec::new();
        for entry in entries {
            match self.look_for_secrets(&entry, main)? {
                Some(Held::Waits) => {}
                Some(Held::Over) => return Ok(None),
                None => free.push(entry),
            }
        }
        Ok(Some(self.in_order(free)))
    }

    /// Whether something in a branch keeps it from landing. It waits for a person, and the others go on.
    pub(super) fn look_for_secrets(
        &mut self,
        entry: &QueueEntry,
        main: &Sha,
    ) -> anyhow::Result<Option<Held>> {
        let config = &self.served.config;
        // `merge-queue serve` has no inbox in which a person could settle it.
        if self.served.embedded.is_none() && !config.forge.kind.is_hosted() {
            return Ok(None);
        }
        let decisions = self.jobs.read(|store| leaks::Decisions::read(store, config))?;
        let open = decisions.open(self.looked_at.findings(self.served, main, &entry.head));
        if let Some(rejected) = open.iter().find(|finding| decisions.is_rejected(finding)) {
            let summary = words::queue::is_secret(&leaks::described(std::slice::from_ref(rejected)));
            self.report(entry.clone(), QueueOutcome::Red { summary, log: String::new() });
            return Ok(Some(Held::Over));
        }
        if open.is_empty() {
            return Ok(None);
        }
        let place =
            leaks::Place { project: &config.name, name: &entry.branch, issue: entry.issue, pr: entry.pr };
        leaks::ask(&self.jobs.inbox, place, &open);
        crash_point("secret-asked-in-queue");
        let reason = Some(words::queue::waits_for_secret(&leaks::described(&open)));
        if entry.reason != reason {
            let mut entry = entry.clone();
            (entry.reason, entry.status) = (reason, EntryStatus::Queued);
            self.write_down(vec![entry]);
        }
        Ok(Some(Held::Waits))
    }

    /// What is known of an entry without building it.
    fn settled(&mut self, entry: &QueueEntry, main: &Sha) -> anyhow::Result<Option<QueueOutcome>> {
        let stale = |reason: String| Ok(Some(QueueOutcome::Stale { reason }));
        let Some(branch) = BranchName::new(&entry.branch) else {
            return stale(words::daemon::git::not_a_branch_name(&entry.branch));
        };
        if branch == self.served.primary {
            return stale(words::daemon::queue::entry_is_main().to_owned());
        }
        let mirror = &self.served.mirror;
        // A push whose answer we did not live to see. What we pushed since main was fetched is known.
        if self.fetched
            && let Some(sha) = self.landed(entry, main)?
        {
            return Ok(Some(QueueOutcome::Landed { sha }));
        }
        if !self.is_at(entry, &branch)? {
            // It may have come since the forge was last asked.
            mirror.fetch_remote()?;
            if !self.is_at(entry, &branch)? {
                let reason = match self.served.mirror.remote_head(&branch)? {
                    Some(at) => words::daemon::queue::moved_while_waiting(&branch, &at),
                    None => words::daemon::queue::deleted_while_waiting(&branch),
                };
                return stale(reason);
            }
        }
        self.take_back(entry, &branch, main)?;
        Ok(None)
    }

    /// A landing that did not end left the branch at its candidate. If main has moved since, the next candidate is another
    /// one, and the branch would look as if somebody had moved it: it goes back to where it was let in.
    fn take_back(&self, entry: &QueueEntry, branch: &BranchName, main: &Sha) -> anyhow::Result<()> {
        let mirror = &self.served.mirror;
        if entry.base.as_ref() == Some(main) {
            return Ok(());
        }
        let Some(at) = mirror.remote_head(branch)?.filter(|at| *at != entry.head) else { return Ok(()) };
        let back = PushRef {
            refname: branch.full(),
            change: Change::To(entry.head.clone()),
            expect: Expect::At(at),
        };
        match mirror.push(&[back])? {
            PushOutcome::Done => Ok(mirror.fetch_branches(&[branch])?),
            other => anyhow::bail!(words::queue::push_refused(branch.as_str(), &format!("{other:?}"))),
        }
    }

    /// The candidate of the entry, if it is on main.
    pub(super) fn landed(&self, entry: &QueueEntry, main: &Sha) -> anyhow::Result<Option<Sha>> {
        let mirror = &self.served.mirror;
        let Some(candidate) = &entry.candidate else { return Ok(None) };
        let is_on_main = mirror.commit_exists(candidate)? && mirror.is_ancestor(candidate, main)?;
        Ok(is_on_main.then(|| candidate.clone()))
    }

    /// Whether the branch is where it was when it was let in, or where a landing that did not end has put it.
    fn is_at(&self, entry: &QueueEntry, branch: &BranchName) -> anyhow::Result<bool> {
        let at = self.served.mirror.remote_head(branch)?;
        Ok(at.as_ref() == Some(&entry.head) || (at.is_some() && at == entry.candidate))
    }

    /// The candidates that are worth having now. None if something was reported: the merge queue has changed.
    pub(super) fn chain(
        &mut self,
        entries: &[QueueEntry],
        main: &Sha,
    ) -> anyhow::Result<Option<Vec<QueuedCandidate>>> {
        let window = self.window()?;
        let mut members: Vec<QueuedCandidate> = Vec::new();
        for mut entry in entries.iter().cloned() {
            if members.len() >= window {
                break;
            }
            if self.aside.iter().any(|member| member.entry.id == entry.id) {
                continue;
            }
            let base = members.last().map_or(main, |member| &member.built.commit).clone();
            match self.made(&entry, &base)? {
                BuildOutcome::Built(built) => {
                    entry.base = Some(base.clone());
                    members.push(QueuedCandidate { entry, base, built });
                    self.start_at_once(&members)?;
                }
                BuildOutcome::Broken(reason) => {
                    self.report(entry, QueueOutcome::Stale { reason });
                    return Ok(None);
                }
                BuildOutcome::Nothing if base == *main => {
                    self.report_nothing_to_land(entry, main)?;
                    return Ok(None);
                }
                BuildOutcome::Conflict(files) if base == *main => {
                    let with = self.landed_in_the_way(&files)?;
                    entry.conflicts_with.clone_from(&with);
                    self.report(entry, QueueOutcome::Conflict { files, with });
                    return Ok(None);
                }
                // Whether those ahead of it land is not known yet: it waits for them.
                BuildOutcome::Nothing => {}
                BuildOutcome::Conflict(files) => {
                    let reason = self.waits_for(&files, &members)?;
                    if entry.reason.as_ref() != Some(&reason) {
                        entry.reason = Some(reason);
                        entry.status = EntryStatus::Queued;
                        self.write_down(vec![entry]);
                    }
                }
            }
        }
        Ok(Some(members))
    }

    /// Nothing of the branch is left to land on main. It has landed if git says so. A task whose changes came to main by
    /// another way is done too, and its pull request is closed without a merge; any other branch is refused and stays,
    /// because its commits are nowhere else.
    fn report_nothing_to_land(&mut self, mut entry: QueueEntry, main: &Sha) -> anyhow::Result<()> {
        if self.served.mirror.is_ancestor(&entry.head, main)? {
            let sha = entry.head.clone();
            self.report(entry, QueueOutcome::Landed { sha });
            return Ok(());
        }
        let outcome = match entry.issue {
            Some(_) => {
                // No commit of the queue's is on main for it, also none of an earlier test.
                (entry.base, entry.candidate) = (None, None);
                QueueOutcome::Landed { sha: main.clone() }
            }
            None => QueueOutcome::Stale {
                reason: words::queue::nothing_to_land(&entry.branch, self.served.primary.as_str()),
            },
        };
        self.report_all(vec![Outcome { entry, outcome, branch: BranchFate::Stays, log: None }], None);
        Ok(())
    }

    pub(super) fn made(&mut self, entry: &QueueEntry, base: &Sha) -> anyhow::Result<BuildOutcome> {
        let key = (base.clone(), entry.id);
        if let Some(made) = self.built.get(&key) {
            return Ok(made.clone());
        }
        // Old bases are of no use any more, but telling which costs more than building anew now and then.
        if self.built.len() >= KEPT {
            self.built.clear();
        }
        let order = Order {
            style: self.style(entry),
            onto: base,
            head: &entry.head,
            heading: &self.heading(entry),
            queued_at_secs: entry.requested_at.0.div_euclid(1000),
        };
        let made = match candidate::build(&self.served.mirror, &self.served.union, &order) {
            Ok(Candidate::Built(built)) => BuildOutcome::Built(built),
            Ok(Candidate::Conflict { files }) => BuildOutcome::Conflict(files),
            Ok(Candidate::Nothing) => BuildOutcome::Nothing,
            // One branch that cannot be built must not hold up the others.
            Err(error) if error.retry() == Retry::Never => {
                BuildOutcome::Broken(crate::daemon::effects::chain(&error))
            }
            Err(error) => return Err(error.into()),
        };
        self.built.insert(key, made.clone());
        Ok(made)
    }

    /// What a merge or squash commit is about. A rebase keeps the messages of its commits, so the forge is not asked.
    fn heading(&self, entry: &QueueEntry) -> Heading {
        let branch = entry.branch.clone();
        let asked = entry.pr.filter(|_| self.style(entry) != Style::Rebase);
        match asked.and_then(|n| self.served.forge.pull_request(n).ok().flatten()) {
            Some(pr) => Heading::PullRequest { number: pr.number, title: pr.title, branch },
            None => Heading::Branch(branch),
        }
    }

    fn waits_for(&self, files: &[String], members: &[QueuedCandidate]) -> anyhow::Result<String> {
        for member in members.iter().rev() {
            if self.touches(&member.base, &member.built.commit, files)? {
                return Ok(words::daemon::queue::waits_for(&member.entry.branch, files));
            }
        }
        Ok(words::daemon::queue::waits_for_those_ahead(files))
    }

    /// The landed branch that changed the same files, newest first.
    pub(super) fn landed_in_the_way(&self, files: &[String]) -> anyhow::Result<Option<String>> {
        let decided = self.jobs.read(|store| store.decided_entries(&self.served.config.name, LANDINGS))?;
        for landed in decided.into_iter().filter(|entry| entry.status == EntryStatus::Landed) {
            if let (Some(base), Some(candidate)) = (&landed.base, &landed.candidate)
                && self.served.mirror.commit_exists(candidate)?
                && self.touches(base, candidate, files)?
            {
                let number = landed.pr.map(|n| format!(" (#{n})")).unwrap_or_default();
                return Ok(Some(format!("{}{number}", landed.branch)));
            }
        }
        Ok(None)
    }

    fn touches(&self, base: &Sha, tip: &Sha, files: &[String]) -> anyhow::Result<bool> {
        let changed = self.served.mirror.changed_paths(base, tip)?;
        Ok(changed.iter().any(|path| files.contains(path)))
    }

    /// The paths a candidate changes although its branch did not. It depends on nothing but what it is built on, so
    /// that it can be found out before it is needed.
    pub(super) fn stray(&mut self, member: &QueuedCandidate) -> anyhow::Result<Vec<String>> {
        let QueuedCandidate { entry, base, built } = member;
        if let Some(stray) = self.strays.get(&built.commit) {
            return Ok(stray.clone());
        }
        let heads = std::slice::from_ref(&entry.head);
        let stray = changes::stray_paths(&self.served.mirror, base, &built.commit, heads)?;
        self.strays.insert(built.commit.clone(), stray.clone());
        Ok(stray)
    }
}
