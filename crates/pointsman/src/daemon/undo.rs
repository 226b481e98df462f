//! `task undo`: a pull request that takes back what landed for an issue. It goes the way of every other one, through CI, review
//! and merge queue.

use pointsman_adapters::git::candidate::{Candidate, build_revert};
use pointsman_adapters::git::push::{Change, Expect, PushOutcome, PushRef};
use pointsman_adapters::git::{self, BranchName};
use pointsman_core::forge::{IssueState, PullRequest};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::text::{clean_block, clean_line};
use pointsman_core::words;
use pointsman_view::task::Undone;

use super::answer::{done, failed};
use super::clock;
use super::effects::chain;
use super::served::Served;
use crate::control::protocol::{FailureKind, Reply};

/// The branches of such pull requests are below this.
const BRANCHES: &str = "pointsman/undo";
/// The longest reason that is written down.
const REASON_BYTES: usize = 4 << 10;

/// A person's order to take something back.
pub(super) struct Order<'a> {
    pub(super) issue: Number,
    pub(super) title: &'a str,
    pub(super) landed: &'a Sha,
    pub(super) before: Option<Sha>,
    pub(super) reason: &'a str,
    pub(super) by: &'a str,
}

/// Makes the commit, brings it to the forge and opens the pull request. Repeated, it finds the one that is open.
pub(super) fn open(served: &Served, order: &Order<'_>) -> Reply {
    try_open(served, order).unwrap_or_else(|reply| reply)
}

/// The open pull requests of such orders. The forge is asked only if there is such a branch.
pub(super) fn open_pulls(served: &Served) -> anyhow::Result<Vec<PullRequest>> {
    let below = BranchName::new(BRANCHES).map(|branch| branch.tracking());
    if !below.is_some_and(|below| served.mirror.list_refs(&below).is_ok_and(|refs| !refs.is_empty())) {
        return Ok(Vec::new());
    }
    let mut open = served.forge.open_pull_requests()?;
    open.retain(|pr| pr.head.strip_prefix(BRANCHES).is_some_and(|rest| rest.starts_with('/')));
    Ok(open)
}

fn try_open(served: &Served, order: &Order<'_>) -> Result<Reply, Reply> {
    let refused = |message: String| failed(FailureKind::Refused, message);
    let broken = |error: git::Error| failed(FailureKind::Unavailable, chain(&error));
    let of_forge =
        |error: pointsman_adapters::forge::Error| failed(FailureKind::of_forge(&error), error.to_string());
    let (mirror, primary, issue) = (&served.mirror, &served.primary, order.issue);
    let name = format!("{BRANCHES}/issue-{issue}");
    let Some(branch) = BranchName::new(&name) else {
        return Err(refused(words::daemon::queue::not_a_branch(&name)));
    };
    let answer = |pr: Number| {
        done(Undone {
            issue,
            pr,
            branch: name.clone(),
            reverts: order.landed.clone(),
            link: served.forge.pull_request_link(pr),
        })
    };
    let found = served.forge.pull_request_from(&name, primary.as_str()).map_err(of_forge)?;
    if let Some(pr) = found.filter(|pr| pr.state == IssueState::Open) {
        return Ok(answer(pr.number));
    }
    mirror.fetch_branches(&[&branch, primary]).map_err(broken)?;
    let Some(main) = mirror.remote_head(primary).map_err(broken)? else {
        return Err(failed(FailureKind::NotFound, words::daemon::git::no_branch(primary)));
    };
    if !mirror.is_ancestor(order.landed, &main).map_err(broken)? {
        return Err(refused(words::undo::not_on_main(order.landed, primary.as_str())));
    }
    let before = match &order.before {
        Some(before) => before.clone(),
        None => match mirror.parent_of(order.landed).map_err(broken)? {
            Some(parent) => parent,
            None => return Err(refused(words::undo::is_the_first(order.landed))),
        },
    };
    let title = words::undo::title(issue, &clean_line(order.title, 120));
    let reason = clean_block(order.reason, REASON_BYTES);
    let message = words::undo::message(&title, &before, order.landed, &reason);
    let seconds = clock::now().0.div_euclid(1000);
    let built = build_revert(mirror, &served.union, &main, (&before, order.landed), &message, seconds);
    let commit = match built.map_err(broken)? {
        Candidate::Built(built) => built.commit,
        Candidate::Conflict { files } => return Err(refused(words::undo::conflict(issue, &files))),
        Candidate::Nothing => return Err(refused(words::undo::nothing(issue, primary.as_str()))),
    };
    // What an earlier undo left is replaced: its pull request is closed.
    let there = mirror.remote_head(&branch).map_err(broken)?;
    let push = PushRef {
        refname: branch.full(),
        change: Change::To(commit),
        expect: there.map_or(Expect::Absent, Expect::At),
    };
    match mirror.push(&[push]).map_err(broken)? {
        // Whoever looks for such branches finds it.
        PushOutcome::Done => mirror.fetch_branches(&[&branch]).map_err(broken)?,
        PushOutcome::Stale { .. } => return Err(refused(words::daemon::queue::moved_meanwhile(&branch))),
        PushOutcome::Refused { message } => {
            return Err(refused(words::daemon::git::push_refused(&branch, &message)));
        }
    }
    let body = words::undo::body(issue, order.landed, &reason, &clean_line(order.by, 80));
    let pr = served.forge.ensure_pull_request(&name, primary.as_str(), &title, &body).map_err(of_forge)?;
    Ok(answer(pr))
}
