//! The subject of a review: the change, the facts about it, and what the reviewer is given to read.

use anyhow::Context;
use pointsman_adapters::git::changes;
use pointsman_core::forge::{Issue, PullRequest};
use pointsman_core::formula::Formula;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::review::{Change, DIFF_BYTES, Facts, Landed, closes, parse};
use pointsman_core::words;
use pointsman_core::words::review::ReviewFiles;
use sha2::{Digest, Sha256};

use crate::daemon::served::Served;

/// How many commits of the main branch are looked through for work that a change takes back.
const LANDED_COMMITS: usize = 50;
/// How much of them is read, in bytes.
const LANDED_BYTES: usize = 8 << 20;
/// Of so many files at most.
const LANDED_FILES: usize = 500;

/// A change that was looked at.
pub(in crate::daemon) struct Examined {
    /// Where it left the main branch.
    pub(in crate::daemon) base: Sha,
    pub(in crate::daemon) change: Change,
    /// What is known about it.
    pub(in crate::daemon) facts: Facts,
    /// The issue it is for.
    pub(in crate::daemon) issue: Option<Issue>,
}

/// Where a pull request's head left the main branch; none if it is of no commit that we can get.
pub(super) fn base(served: &Served, pr: &PullRequest, head: &Sha) -> anyhow::Result<Option<Sha>> {
    let mirror = &served.mirror;
    if !mirror.commit_exists(head)? {
        mirror.fetch_remote()?;
    }
    anyhow::ensure!(mirror.commit_exists(head)?, words::daemon::git::on_no_branch(&pr.head));
    let main = mirror.remote_head(&served.primary)?;
    let main = main.with_context(|| words::daemon::git::no_branch(&served.primary))?;
    Ok(mirror.merge_base(&main, head)?)
}

/// Looks at a change as it is now. `issue` is the task's, if there is one.
pub(in crate::daemon) fn examine(
    served: &Served,
    pr: &PullRequest,
    head: &Sha,
    issue: Option<Number>,
) -> anyhow::Result<Examined> {
    served.mirror.fetch_remote()?;
    let base = base(served, pr, head)?.context(words::daemon::review::no_shared_history())?;
    let (raw, patch) = changes::lines(&served.mirror, &base, head)?;
    let change = parse(&raw, &patch).context(words::daemon::review::unreadable_change())?;
    let paths: Vec<String> = change.files.iter().take(LANDED_FILES).map(|file| file.path.clone()).collect();
    let landed =
        changes::recent(&served.mirror, &base, &paths, Landed::FORMAT, LANDED_COMMITS, LANDED_BYTES)?;
    let issue = match issue.or_else(|| closes(&pr.body)) {
        Some(number) => served.forge.issue(number)?,
        None => None,
    };
    let wish = issue.as_ref().map(|issue| format!("{}\n{}", issue.title, issue.body));
    let asked = wish.unwrap_or_else(|| format!("{}\n{}", pr.title, pr.body));
    let facts = Facts::of(&served.config, &change, &asked, &Landed::parse(landed.as_bytes()));
    Ok(Examined { base, change, facts, issue })
}

/// A fingerprint of all that a reviewer judges by: the change wherever it is based, what was asked, and the formula.
pub(in crate::daemon) fn inputs(
    served: &Served,
    pr: &PullRequest,
    head: &Sha,
    examined: &Examined,
    formula: &Formula,
) -> anyhow::Result<String> {
    let patch = served.mirror.patch_id(&examined.base, head)?;
    let request = words::review::request(pr, examined.issue.as_ref());
    let facts = words::review::facts(&examined.facts);
    let mut hash = Sha256::new();
    for part in [patch.as_str(), &request, &facts, &serde_json::to_string(formula)?] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What the reviewer is given to read.
pub(in crate::daemon) fn material(
    served: &Served,
    pr: &PullRequest,
    head: &Sha,
    examined: &Examined,
) -> anyhow::Result<ReviewFiles> {
    let mirror = &served.mirror;
    let ours = pr
        .reviews
        .iter()
        .rev()
        .find(|r| Some(r.author.as_str()) == served.forge.reviewer() && r.sha != *head);
    // After a rebase nobody can tell what is new: then the whole change has to do.
    let since = match ours {
        Some(review) if mirror.commit_exists(&review.sha)? && mirror.is_ancestor(&review.sha, head)? => {
            Some(mirror.diff(&review.sha, head, DIFF_BYTES)?)
        }
        Some(_) | None => None,
    };
    Ok(ReviewFiles {
        request: words::review::request(pr, examined.issue.as_ref()),
        facts: words::review::facts(&examined.facts),
        files: words::review::files(&examined.change),
        diff: mirror.diff(&examined.base, head, DIFF_BYTES)?,
        earlier: ours.map(words::review::earlier),
        since,
    })
}
