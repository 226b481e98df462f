//! Commits that reached main without the queue: the facts by which the core judges them, and the test of those that are
//! taken.

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_adapters::git::RefName;
use pointsman_adapters::git::candidate::merged_tree;
use pointsman_adapters::git::history::{MainCommit, introduced};
use pointsman_adapters::git::push::Expect;
use pointsman_core::forge::PullRequest;
use pointsman_core::ids::{Number, Sha, TaskKey};
use pointsman_core::queue::outside::{OutsideCommit, OutsideFacts, Pusher, Unapproved};
use pointsman_core::review::{self, Accounts, Required};
use pointsman_core::time::Timestamp;
use pointsman_store::{EntryStatus, SessionScope};

use super::super::Jobs;
use super::{gate, notices};
use crate::daemon::served::Served;
use crate::identity;

/// The commit of main that the gate has to look at because people pushed it.
const UNTESTED: &str = "refs/pointsman/outside/untested";
/// Below it: the heads that sessions have pushed, by issue.
const TASK_HEADS: &str = "refs/pointsman/tasks";
/// How many decided entries are looked through for the last landing.
const LANDINGS: u32 = 50;

/// A commit of main, along first parents, that is not one of the queue's own.
pub(super) struct Arrival<'a> {
    pub(super) commit: &'a MainCommit,
    /// The pull request that the forge names for it.
    pub(super) pr: Option<Number>,
    /// Whether the queue recorded it as a merge that the forge made.
    pub(super) recorded: bool,
}

/// A commit that is neither ours nor an approved merge, and why it is no merge.
type Direct<'a> = (&'a MainCommit, Option<Unapproved>);

/// Tells merges of approved pull requests, which are counted, from commits that came otherwise. `others` is oldest first.
pub(super) fn merges<'a>(
    served: &Served,
    after: &Sha,
    others: Vec<Arrival<'a>>,
) -> anyhow::Result<(u64, Vec<Direct<'a>>)> {
    let (mut person, mut direct) = (0, Vec::new());
    for group in others
        .chunk_by(|a, b| a.pr.is_some() && a.pr == b.pr && b.commit.parents.first() == Some(&a.commit.sha))
    {
        let Some(number) = group[0].pr else {
            direct.extend(group.iter().map(|arrival| (arrival.commit, None)));
            continue;
        };
        let found = match group.iter().any(|arrival| arrival.recorded) {
            true => None,
            false => fault(served, after, number, group)?,
        };
        match found {
            None => person += group.len() as u64,
            Some(fault) => direct.extend(group.iter().map(|arrival| (arrival.commit, Some(fault.clone())))),
        }
    }
    Ok((person, direct))
}

/// The reason why these commits are not the merge of an approved pull request; none if they are.
fn fault(
    served: &Served,
    after: &Sha,
    number: Number,
    group: &[Arrival<'_>],
) -> anyhow::Result<Option<Unapproved>> {
    let unapproved = Some(Unapproved::PullRequest(number));
    let Some(pr) = served.forge.pull_request(number)? else { return Ok(unapproved) };
    let Some(head) = pr.head_sha.clone() else { return Ok(unapproved) };
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return Ok(unapproved) };
    if !served.mirror.commit_exists(&head)? || !is_approved(served, after, &pr, &head)? {
        return Ok(unapproved);
    }
    if last.commit.sha == head {
        return Ok(None);
    }
    let Some(base) = first.commit.parents.first() else { return Ok(Some(Unapproved::NotTheMergeOf(number))) };
    let merged = merged_tree(&served.mirror, base, &head)?;
    let is_merge = merged == Some(served.mirror.tree_of(&last.commit.sha)?);
    Ok((!is_merge).then_some(Unapproved::NotTheMergeOf(number)))
}

fn is_approved(served: &Served, main: &Sha, pr: &PullRequest, head: &Sha) -> anyhow::Result<bool> {
    let required = served.required_approval(main, head)?;
    let reviews = match required {
        Required::Nothing => Vec::new(),
        Required::Anybody | Required::People(_) => served.forge.open_reviews(pr.number, Some(head))?,
    };
    let person = |account: &str| served.person(account);
    let accounts = Accounts { author: &pr.author, reviewer: served.forge.reviewer(), person: &person };
    Ok(review::is_approved(&reviews, head, required, accounts))
}

/// The facts about what reached main in `(after, upto]` from outside.
pub(super) fn facts(
    jobs: &Jobs,
    served: &Served,
    after: &Sha,
    upto: &Sha,
    direct: &[Direct<'_>],
) -> anyhow::Result<OutsideFacts> {
    let mut commits = Vec::new();
    for (commit, fault) in direct {
        // A merge brings in more than itself.
        let before = commit.parents.first().unwrap_or(after);
        for new in introduced(&served.mirror, before, &commit.sha)? {
            let unapproved = fault.clone();
            commits.push(OutsideCommit { sha: new.sha, committer: new.committer.email, unapproved });
        }
    }
    let new: BTreeSet<Sha> = commits.iter().map(|commit| commit.sha.clone()).collect();
    for (head, work) in unapproved_heads(jobs, served, after)? {
        let theirs = introduced(&served.mirror, after, &head)?;
        let shared: BTreeSet<Sha> =
            theirs.into_iter().map(|commit| commit.sha).filter(|sha| new.contains(sha)).collect();
        for commit in commits.iter_mut().filter(|commit| shared.contains(&commit.sha)) {
            commit.unapproved.get_or_insert_with(|| work.clone());
        }
    }
    Ok(OutsideFacts { rewritten: false, pusher: pusher(jobs, served, upto)?, commits })
}

/// The heads of open pull requests and of tasks that are not approved.
fn unapproved_heads(jobs: &Jobs, served: &Served, main: &Sha) -> anyhow::Result<Vec<(Sha, Unapproved)>> {
    let mut heads = Vec::new();
    let mut approved = BTreeSet::new();
    for pr in served.forge.open_pull_requests()? {
        let Some(head) = pr.head_sha.clone() else { continue };
        if !served.mirror.commit_exists(&head)? {
            continue;
        }
        match is_approved(served, main, &pr, &head)? {
            true => drop(approved.insert(head)),
            false => heads.push((head, Unapproved::PullRequest(pr.number))),
        }
    }
    let Some(tasks) = RefName::new(TASK_HEADS) else { return Ok(heads) };
    for (name, head) in served.mirror.list_refs(&tasks)? {
        let issue = name.as_str().rsplit('/').next().and_then(|issue| issue.parse().ok());
        let known = issue.map(|issue| TaskKey { project: served.config.name.clone(), issue });
        let task = match &known {
            Some(key) => jobs.read(|store| store.task(key))?,
            None => None,
        };
        let is_known = |task: &pointsman_core::task::Task| {
            task.contribution.is_approved(&head) || task.contribution.merged_as().is_some()
        };
        let is_fine = approved.contains(&head)
            || task.as_ref().is_some_and(is_known)
            || !served.mirror.commit_exists(&head)?
            || served.required_approval(main, &head)? == Required::Nothing;
        if !is_fine {
            let branch = task.map_or_else(|| name.to_string(), |task| task.contribution.branch);
            heads.push((head, Unapproved::Branch(branch)));
        }
    }
    Ok(heads)
}

/// Whoever moved main to this commit. The embedded forge does not ask who pushes: whoever can write its directory may, so
/// there the question is whether a session could.
fn pusher(jobs: &Jobs, served: &Served, main: &Sha) -> anyhow::Result<Pusher> {
    if served.embedded.is_none() {
        let login = served.forge.pusher_of(served.primary.as_str(), main)?;
        let is_ours = |login: &String| served.forge.me() == login || served.forge.reviewer() == Some(login);
        return Ok(match login {
            Some(login) if is_ours(&login) => Pusher::OurAccount { login },
            Some(login) => Pusher::Person { login },
            None => Pusher::Unknown,
        });
    }
    let decided = jobs.read(|store| store.decided_entries(&served.config.name, LANDINGS))?;
    let landed = decided.iter().filter(|entry| entry.status == EntryStatus::Landed);
    let since = landed.filter_map(|entry| entry.landed_at).max().unwrap_or(Timestamp(0));
    // Of all projects: outside the sandbox a session can write to any directory of this user.
    let sessions = jobs.read(|store| store.sessions(None, SessionScope::All))?;
    let could = sessions
        .iter()
        .filter(|row| row.ended_at.is_none_or(|ended| ended >= since))
        .find(|row| identity::sandboxed(row) != Some(true));
    Ok(match could {
        Some(row) => Pusher::Session { session: row.session.clone() },
        None => Pusher::NoSession,
    })
}

/// Tells people of a push that is taken, and remembers that the gate has to look at it.
pub(super) fn accepted(
    jobs: &Jobs,
    served: &Served,
    main: &Sha,
    what: &str,
    pusher: &Pusher,
) -> anyhow::Result<()> {
    if let Some(name) = RefName::new(UNTESTED) {
        let expect = served.mirror.read_ref(&name)?.map_or(Expect::Absent, Expect::At);
        served.mirror.update_ref(&name, main, &expect)?;
    }
    let by = match pusher {
        Pusher::Person { login } => Some(login.as_str()),
        Pusher::NoSession | Pusher::Session { .. } | Pusher::OurAccount { .. } | Pusher::Unknown => None,
    };
    tracing::info!(project = %served.config.name, what, "a push to main is taken");
    notices::outside_push(jobs, served, main, what, by);
    Ok(())
}

/// Has the gate look at what people pushed, on a thread of its own, if it has not yet.
pub(super) fn test(jobs: &Arc<Jobs>, served: &Arc<Served>) {
    let untested = |served: &Served| {
        let name = RefName::new(UNTESTED)?;
        let sha = served.mirror.read_ref(&name).ok().flatten()?;
        Some((name, sha))
    };
    if untested(served).is_none() {
        return;
    }
    jobs.submit(format!("gate main of {}", served.config.name), served, move |jobs, served| {
        let Some((name, main)) = untested(served) else { return };
        match gate::test_main(jobs, served, &main) {
            Ok(gate::MainTest::Over) => {
                if let Err(error) = served.mirror.delete_ref(&name, &main) {
                    tracing::warn!(project = %served.config.name, %error, "main is tested once more");
                }
            }
            // The next look at main begins it again.
            Ok(gate::MainTest::Later) => {}
            Err(error) => {
                tracing::warn!(project = %served.config.name, error = format!("{error:#}"), "main could not be tested for now");
            }
        }
    });
}
