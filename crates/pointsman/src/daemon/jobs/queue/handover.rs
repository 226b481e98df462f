//! Entries that the forge itself merges: all of them with `merge.engine = "forge"`, those whose pull request has auto-merge
//! switched on or is one of a stack, and a tested one whose push the server refuses.
//!
//! Nothing is tested for the first two: the forge's rules decide, and its own merge queue tests. Whether something landed
//! is read from the forge, because the commit on main is the forge's.

use std::time::{Duration, Instant};

use pointsman_adapters::forge::ForgeMerge;
use pointsman_core::config::MergeEngine;
use pointsman_core::forge::IssueState;
use pointsman_core::ids::Sha;
use pointsman_core::task::QueueOutcome;
use pointsman_core::words;
use pointsman_store::{Audit, EntryStatus, QueueEntry, Stopped, StoppedBy};

use super::chain::Held;
use super::report::{BranchFate, Outcome};
use super::{QueueWorker, QueuedCandidate};
use crate::daemon::clock;

/// How long a merge that replaces a refused push is waited for.
const MERGE_LIMIT: Duration = Duration::from_secs(300);
/// Between two looks at it.
const MERGE_PACE: Duration = Duration::from_secs(2);

impl QueueWorker<'_> {
    /// Takes the entries out that the forge merges, and follows them. None if something was reported: the queue has changed.
    pub(super) fn hand_over(&mut self, entries: Vec<QueueEntry>) -> anyhow::Result<Option<Vec<QueueEntry>>> {
        let mut ours = Vec::new();
        for entry in entries {
            if !self.is_the_forges(&entry)? {
                ours.push(entry);
                continue;
            }
            // What the forge already has in its hands is not asked about any more.
            if entry.status == EntryStatus::Queued {
                let main = self.main_branch()?;
                match self.look_for_secrets(&entry, &main)? {
                    Some(Held::Waits) => continue,
                    Some(Held::Over) => return Ok(None),
                    None => {}
                }
            }
            if self.follow_forge(entry)? {
                return Ok(None);
            }
        }
        Ok(Some(ours))
    }

    fn is_the_forges(&mut self, entry: &QueueEntry) -> anyhow::Result<bool> {
        let by_forge = self.served.config.merge.engine == MergeEngine::Forge;
        let (Some(pr), false) = (entry.pr, by_forge) else { return Ok(by_forge) };
        let ties = match self.ties.get(&entry.id) {
            Some(ties) => *ties,
            None => {
                let ties = self.served.forge.merge_ties(pr)?;
                self.ties.insert(entry.id, ties);
                ties
            }
        };
        // A person's pull request may have come here by that very button.
        let came_by_button = entry.issue.is_none() && !self.served.config.merge.label.is_empty();
        Ok(ties.stack || (ties.auto_merge && !came_by_button))
    }

    /// Looks how far the forge is with an entry; true if it is over.
    fn follow_forge(&mut self, mut entry: QueueEntry) -> anyhow::Result<bool> {
        let Some(number) = entry.pr else {
            let reason = words::queue::FORGE_TAKES_PULL_REQUESTS.to_owned();
            self.report(entry, QueueOutcome::Stale { reason });
            return Ok(true);
        };
        if !self.is_wanted(&entry)? {
            let reason = words::daemon::queue::taken_out().to_owned();
            self.report(entry, QueueOutcome::Stale { reason });
            return Ok(true);
        }
        let forge = &self.served.forge;
        let Some(pr) = forge.pull_request(number)? else {
            let reason = words::queue::pull_request_gone(number);
            self.report(entry, QueueOutcome::Stale { reason });
            return Ok(true);
        };
        let landed_as = pr.merge_sha.clone().or(pr.head_sha.clone()).filter(|_| pr.merged);
        if let Some(sha) = landed_as {
            self.landed_by_forge(entry, sha);
            return Ok(true);
        }
        if pr.state == IssueState::Closed {
            let reason = words::queue::pull_request_gone(number);
            self.report(entry, QueueOutcome::Stale { reason });
            return Ok(true);
        }
        let waits = self.ties.get(&entry.id).is_some_and(|ties| ties.auto_merge && !ties.stack);
        let merge = match waits {
            // Somebody has told the forge to merge it as soon as its rules are met.
            true => ForgeMerge::Waiting { words: words::queue::AUTO_MERGE_IS_ON.to_owned() },
            false => forge.merge_pull_request(number, &entry.head, self.merge_style(&entry))?,
        };
        match merge {
            ForgeMerge::Merged { sha } => {
                self.landed_by_forge(entry, sha);
                Ok(true)
            }
            ForgeMerge::Refused { reason } => {
                let summary = words::queue::forge_refused_merge(&reason);
                self.report(entry, QueueOutcome::Red { summary, log: String::new() });
                Ok(true)
            }
            ForgeMerge::Waiting { words } => {
                let reason = Some(words::queue::handed_to_forge(&words));
                if entry.status != EntryStatus::Testing || entry.reason != reason {
                    entry.tested_since = entry.tested_since.or(Some(clock::now()));
                    (entry.status, entry.reason) = (EntryStatus::Testing, reason);
                    self.write_down(vec![entry]);
                }
                Ok(false)
            }
        }
    }

    fn landed_by_forge(&mut self, mut entry: QueueEntry, sha: Sha) {
        self.main = None;
        (entry.base, entry.candidate) = (None, Some(sha.clone()));
        self.report_all(
            vec![Outcome {
                entry,
                outcome: QueueOutcome::Landed { sha },
                branch: BranchFate::Goes,
                log: None,
            }],
            None,
        );
    }

    /// The server lets nobody push there: it is asked to merge the tested pull request itself. Only if what it makes has the
    /// tested tree has the work landed; anything else stops the queue. False if the server cannot or will not.
    pub(super) fn merge_by_forge(&mut self, main: &Sha, member: &QueuedCandidate) -> anyhow::Result<bool> {
        let Some(pr) = member.entry.pr else { return Ok(false) };
        let head = match self.style(&member.entry) {
            pointsman_adapters::git::candidate::Style::Rebase => member.built.commit.clone(),
            _ => member.entry.head.clone(),
        };
        let until = Instant::now() + MERGE_LIMIT;
        let style = self.merge_style(&member.entry);
        let sha = loop {
            match self.served.forge.merge_pull_request(pr, &head, style) {
                Ok(ForgeMerge::Merged { sha }) => break sha,
                Ok(ForgeMerge::Waiting { .. }) if Instant::now() < until && !self.jobs.is_stopping() => {}
                Ok(ForgeMerge::Waiting { .. }) => return Ok(false),
                Ok(ForgeMerge::Refused { reason }) => {
                    tracing::warn!(project = %self.served.config.name, pr, reason, "the forge does not merge it either");
                    return Ok(false);
                }
                Err(error) => {
                    tracing::debug!(%error, "the forge has no merge call");
                    return Ok(false);
                }
            }
            if let Ok(signal) = self.signals.recv_timeout(MERGE_PACE) {
                self.take(signal);
            }
        };
        self.served.mirror.fetch_remote()?;
        let tree = self.served.mirror.tree_of(&sha)?;
        if tree != member.built.tree {
            let reason = words::queue::forge_merged_something_else(&member.entry.branch, &sha);
            tracing::error!(project = %self.served.config.name, reason, "the merge queue stops");
            self.pause_queue(Stopped { at: clock::now(), by: StoppedBy::Audit, reason });
            return Ok(true);
        }
        self.refusals = 0;
        let shown = self.jobs.read(|store| store.queue_entry(member.entry.id)).ok().flatten();
        let mut entry = shown.unwrap_or_else(|| member.entry.clone());
        (entry.base, entry.candidate) = (Some(main.clone()), Some(sha.clone()));
        self.main = None;
        let audited = self.jobs.read(|store| store.queue_state(&self.served.config.name))?.audited;
        let audit = audited.filter(|audited| audited == main).map(|after| Audit {
            after: Some(after),
            upto: sha.clone(),
            direct: 0,
            person: 0,
            alarm: None,
        });
        let outcome = QueueOutcome::Landed { sha };
        self.report_all(vec![Outcome { entry, outcome, branch: BranchFate::Goes, log: None }], audit);
        Ok(true)
    }
}
