//! `merge-queue try`: the candidate of a branch on today's main, checked out so that the command can run the gate on it.
//!
//! The gate runs in the person's own process and leaves no verdict: what somebody's terminal says about a tree must not
//! let it land.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pointsman_adapters::git::candidate::{self, Candidate, Order};
use pointsman_adapters::git::checkout::remove_checkout;
use pointsman_core::config::MergeStyle;
use pointsman_core::words;
use pointsman_core::words::commit::Heading;
use pointsman_view::queue::{TrialVerdict, Tried};

use super::answer::{done, failed};
use super::clock;
use super::effects::chain;
use super::jobs;
use super::queue_orders::{Landable, find_landable};
use super::served::Served;
use crate::control::protocol::{FailureKind, Reply};

/// What a command that was killed left is removed after this long.
const LEFT_FOR: Duration = Duration::from_secs(24 * 3600);

/// Builds the candidate and checks it out. The answer has a checkout, or a verdict if there is nothing to test.
pub(super) fn prepare(
    served: &Served,
    branch: &str,
    checkout: Option<&Path>,
    style: Option<MergeStyle>,
) -> Reply {
    let Landable { branch, head, main, .. } = match find_landable(served, branch, checkout) {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    let order = Order {
        style: jobs::style_of(style.unwrap_or(served.config.merge.style)),
        onto: &main,
        head: &head,
        heading: &Heading::Branch(branch.to_string()),
        queued_at_secs: clock::now().0.div_euclid(1000),
    };
    let mut tried = Tried {
        branch: branch.to_string(),
        head_sha: head.clone(),
        base_sha: main.clone(),
        candidate_sha: None,
        verdict: None,
        conflict_files: Vec::new(),
        reason: None,
        log_path: None,
        log: None,
        checkout: None,
    };
    match candidate::build(&served.mirror, &served.union, &order) {
        Ok(Candidate::Conflict { files }) => {
            tried.verdict = Some(TrialVerdict::Conflict);
            tried.conflict_files = files;
        }
        Ok(Candidate::Nothing) => {
            let reason = words::queue::nothing_to_land(branch.as_str(), served.primary.as_str());
            (tried.verdict, tried.reason) = (Some(TrialVerdict::Nothing), Some(reason));
        }
        Ok(Candidate::Built(built)) => {
            let dir = new_dir(served);
            if let Err(error) = jobs::check_out(served, &built.commit, &dir) {
                return failed(FailureKind::Failed, format!("{error:#}"));
            }
            tried.candidate_sha = Some(built.commit);
            tried.checkout = Some(dir);
        }
        Err(error) => return failed(FailureKind::Failed, chain(&error)),
    }
    done(tried)
}

/// A directory that nobody else uses; those that were left are removed.
fn new_dir(served: &Served) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let trials = served.paths.trials();
    for entry in fs::read_dir(&trials).into_iter().flatten().flatten() {
        let written = entry.metadata().map(|file| clock::written(&file));
        if written.is_ok_and(|at| at.after(LEFT_FOR) < clock::now())
            && let Err(error) = remove_checkout(&entry.path())
        {
            tracing::warn!(dir = %entry.path().display(), %error, "left a checkout");
        }
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    trials.join(format!("{}-{}-{number}", clock::now().0, std::process::id()))
}
