//! A merge queue of one: the first in line is built on the current main branch, tested as such, and
//! pushed with a compare-and-swap. Whether it landed is read from git.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use pointsman_adapters::git::candidate::{self, Built, Candidate, Style};
use pointsman_adapters::git::push::{Change, Expect, PushOutcome, PushRef};
use pointsman_adapters::git::{BranchName, RefName};
use pointsman_core::config::MergeStyle;
use pointsman_core::ids::{Sha, TaskKey};
use pointsman_core::task::{CiVerdict, Event, QueueOutcome};
use pointsman_core::text;
use pointsman_store::{EntryScope, EntryStatus, QueueEntry};

use super::Jobs;
use super::checks::{gate_name, remember};
use super::program::Program;
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::engine::Input;
use crate::daemon::inbound::Inbound;
use crate::daemon::served::Served;

/// The main branch may move under us; after this many times somebody else is pushing in a loop.
const BUILDS_LIMIT: u32 = 10;

/// Lands what waits, one after another, until nothing does or something is in the way.
pub(super) fn work_through(jobs: &Arc<Jobs>, served: &Arc<Served>) {
    loop {
        if jobs.is_stopping() {
            return;
        }
        let waiting = jobs.reader().queue_entries(&served.config.name, EntryScope::Unfinished);
        let Ok(Some(entry)) = waiting.map(|entries| entries.into_iter().next()) else { return };
        let mut landing = Landing { jobs, served, entry };
        match landing.run() {
            Ok(Some(outcome)) => landing.report(outcome),
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(branch = landing.entry.branch, %error, "landing failed for now");
                return;
            }
        }
    }
}

struct Landing<'a> {
    jobs: &'a Arc<Jobs>,
    served: &'a Arc<Served>,
    entry: QueueEntry,
}

impl Landing<'_> {
    /// One entry from queue to main; nothing if the daemon stops.
    fn run(&mut self) -> anyhow::Result<Option<QueueOutcome>> {
        let Some(branch) = BranchName::new(&self.entry.branch) else {
            return Ok(Some(QueueOutcome::Stale { reason: "not a branch name".to_owned() }));
        };
        let mut infra_retries = self.served.config.limits.infra_retries;
        for _ in 0..BUILDS_LIMIT {
            let mirror = &self.served.mirror;
            mirror.fetch_remote()?;
            let Some(main) = mirror.remote_head(&self.served.primary)? else {
                anyhow::bail!("the forge has no branch {}", self.served.primary);
            };
            // A push whose answer we did not live to see.
            if let Some(candidate) = self.entry.candidate.clone()
                && mirror.commit_exists(&candidate)?
                && mirror.is_ancestor(&candidate, &main)?
            {
                return Ok(Some(QueueOutcome::Landed { sha: candidate }));
            }
            let at = mirror.remote_head(&branch)?;
            let ours = at.as_ref() == Some(&self.entry.head) || (at.is_some() && at == self.entry.candidate);
            if !ours {
                return Ok(Some(QueueOutcome::Stale {
                    reason: format!("{branch} is not at the approved commit"),
                }));
            }
            let built = match self.build(&main)? {
                Candidate::Built(built) => built,
                Candidate::Conflict { files, .. } => return Ok(Some(QueueOutcome::Conflict { files })),
                Candidate::Nothing => return Ok(Some(QueueOutcome::Landed { sha: self.entry.head.clone() })),
            };
            self.entry.base = Some(main.clone());
            self.entry.candidate = Some(built.commit.clone());
            self.keep(&built.commit)?;
            self.entry.status = EntryStatus::Testing;
            self.write_down();
            match self.test(&built)? {
                None => return Ok(None),
                Some(CiVerdict::Passed) => {}
                Some(CiVerdict::Failed { summary, log }) => {
                    return Ok(Some(QueueOutcome::Red { summary, log }));
                }
                Some(CiVerdict::TimedOut { log }) => {
                    let summary = "the gate reached its time limit".to_owned();
                    return Ok(Some(QueueOutcome::Red { summary, log }));
                }
                Some(CiVerdict::Infra { .. }) if infra_retries > 0 => {
                    infra_retries -= 1;
                    continue;
                }
                Some(CiVerdict::Infra { reason, .. }) => return Ok(Some(QueueOutcome::Infra { reason })),
            }
            crash_point("landing-tested");
            if !self.is_wanted()? {
                return Ok(Some(QueueOutcome::Stale { reason: "it was taken out of the queue".to_owned() }));
            }
            if self.push(&branch, &main, &built)? {
                return Ok(Some(QueueOutcome::Landed { sha: built.commit }));
            }
        }
        anyhow::bail!("the main branch keeps moving")
    }

    fn build(&mut self, main: &Sha) -> anyhow::Result<Candidate> {
        self.entry.status = EntryStatus::Building;
        let style = match self.served.config.merge.style {
            MergeStyle::Rebase => Style::Rebase,
            MergeStyle::Merge => Style::Merge,
            MergeStyle::Squash => Style::Squash,
        };
        let message = self.message();
        Ok(candidate::build(&self.served.mirror, style, main, &self.entry.head, &message)?)
    }

    /// The message of a merge or squash commit.
    fn message(&self) -> String {
        let title = self
            .entry
            .pr
            .and_then(|n| self.served.forge.pull_request(n).ok().flatten())
            .map_or_else(|| self.entry.branch.clone(), |pr| pr.title);
        let reference = self.entry.pr.map(|n| format!(" (#{n})")).unwrap_or_default();
        format!("{}{reference}\n", text::clean_line(&title, 200))
    }

    /// Keeps the candidate from being collected as long as it is tested.
    fn keep(&self, candidate: &Sha) -> anyhow::Result<()> {
        let name = format!("refs/pointsman/candidates/{}", self.entry.id);
        let refname = RefName::new(&name).ok_or_else(|| anyhow::anyhow!("{name} is no ref name"))?;
        if let Some(old) = self.served.mirror.read_ref(&refname)? {
            self.served.mirror.delete_ref(&refname, &old)?;
        }
        self.served.mirror.update_ref(&refname, candidate, &Expect::Absent)?;
        Ok(())
    }

    /// The gate on the candidate; what was tested before is not tested again.
    fn test(&self, built: &Built) -> anyhow::Result<Option<CiVerdict>> {
        let Some(gate) = self.served.config.gate().map(<[String]>::to_vec) else {
            return Ok(Some(CiVerdict::Passed));
        };
        let known = self.jobs.reader().verdict(&self.served.config.name, &built.tree, &gate_name(&gate))?;
        if let Some(row) = known
            && let Ok(CiVerdict::Passed) = serde_json::from_value::<CiVerdict>(row.verdict)
        {
            return Ok(Some(CiVerdict::Passed));
        }
        let Some(_runner) = self.jobs.runner(self.served) else { return Ok(None) };
        let program = Program {
            name: format!("{}-gate-{}", self.served.config.name, self.entry.id),
            command: &gate,
            sha: &built.commit,
            env: vec![("PROJECT_NAME", self.served.config.name.to_string())],
            limit: self.served.config.timing.ci_timeout.into(),
        };
        let ran = program.run(self.jobs, self.served)?;
        let Some(verdict) = ran.verdict("gate") else { return Ok(None) };
        remember(self.jobs, self.served, &built.commit, &gate, &verdict, ran.log_path);
        Ok(Some(verdict))
    }

    /// Whether the task still wants to land: it may have left while the gate ran.
    fn is_wanted(&self) -> anyhow::Result<bool> {
        let reader = self.jobs.reader();
        let unfinished = reader.queue_entry(self.entry.id)?.is_some_and(|e| e.status.is_unfinished());
        let Some(issue) = self.entry.issue else { return Ok(unfinished) };
        let key = TaskKey { project: self.served.config.name.clone(), issue };
        Ok(unfinished && reader.task(&key)?.is_some_and(|task| task.wants_to_land(&self.entry.head)))
    }

    /// First the head branch, so that the forge shows the pull request as merged, then main, each
    /// only from where we saw it. False if main moved.
    fn push(&self, branch: &BranchName, main: &Sha, built: &Built) -> anyhow::Result<bool> {
        let mirror = &self.served.mirror;
        if !built.same_as_head && self.served.config.merge.style == MergeStyle::Rebase {
            let at = mirror.remote_head(branch)?.map_or(Expect::Absent, Expect::At);
            let head =
                PushRef { refname: branch.full(), change: Change::To(built.commit.clone()), expect: at };
            match mirror.push(&[head])? {
                PushOutcome::Done => {}
                PushOutcome::Stale { .. } => return Ok(false),
                PushOutcome::Refused { message } => anyhow::bail!("the forge refused {branch}: {message}"),
            }
        }
        crash_point("landing-branch-pushed");
        let land = PushRef {
            refname: self.served.primary.full(),
            change: Change::To(built.commit.clone()),
            expect: Expect::At(main.clone()),
        };
        match mirror.push(&[land])? {
            PushOutcome::Done => {
                crash_point("landing-main-pushed");
                Ok(true)
            }
            PushOutcome::Stale { .. } => Ok(false),
            PushOutcome::Refused { message } => {
                anyhow::bail!("the forge refused {}: {message}", self.served.primary)
            }
        }
    }

    fn report(&mut self, outcome: QueueOutcome) {
        let wanted = self.is_wanted().unwrap_or(true);
        match &outcome {
            QueueOutcome::Landed { sha } => {
                self.entry.status = EntryStatus::Landed;
                self.entry.landed_at = Some(clock::now());
                self.tidy_forge(sha);
            }
            QueueOutcome::Conflict { files } => {
                self.entry.status = EntryStatus::Conflict;
                self.entry.conflict_files.clone_from(files);
            }
            QueueOutcome::Red { summary, .. } => {
                self.entry.status = EntryStatus::Red;
                self.entry.reason = Some(summary.clone());
            }
            QueueOutcome::Infra { reason } | QueueOutcome::Stale { reason } => {
                self.entry.status = EntryStatus::Stale;
                self.entry.reason = Some(reason.clone());
            }
        }
        let landed = matches!(outcome, QueueOutcome::Landed { .. });
        if let (Some(issue), true) = (self.entry.issue, wanted || landed) {
            let key = TaskKey { project: self.served.config.name.clone(), issue };
            let event = Event::QueueReported { head: self.entry.head.clone(), outcome };
            self.jobs.inbox.tell(Input::new(key, event));
        }
        if !wanted && !landed {
            self.entry.status = EntryStatus::Removed;
        }
        self.write_down();
    }

    /// Tells the forge what git knows already, and takes the landed branch away.
    fn tidy_forge(&self, sha: &Sha) {
        if let Some(pr) = self.entry.pr
            && let Err(error) = self.served.forge.record_merge(pr, sha)
        {
            tracing::warn!(pr, %error, "the forge does not show the merge");
        }
        let Some(branch) = BranchName::new(&self.entry.branch) else { return };
        if let Ok(Some(at)) = self.served.mirror.remote_head(&branch)
            && (at == *sha || at == self.entry.head)
        {
            let gone = PushRef { refname: branch.full(), change: Change::Delete, expect: Expect::At(at) };
            if let Err(error) = self.served.mirror.push(&[gone]) {
                tracing::warn!(%branch, %error, "the landed branch stays");
            }
        }
    }

    /// Writes the entry and waits until it is on disk.
    fn write_down(&self) {
        let (written, wait) = sync_channel(1);
        self.jobs.inbox.send(Inbound::QueueMoved { entry: Box::new(self.entry.clone()), written });
        // The daemon may be gone: then the next one looks at git.
        let _ = wait.recv();
    }
}
