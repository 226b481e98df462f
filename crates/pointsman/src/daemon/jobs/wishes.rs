//! Pull requests of people that enter the merge queue by themselves: by a label, by the forge's auto-merge button, or because
//! a person ordered something to be taken back.

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_core::forge::PullRequest;
use pointsman_core::review::{self, Accounts, Required};
use pointsman_store::EntryScope;

use super::Jobs;
use crate::control::protocol::{QueueCommand, Reply, Request};
use crate::daemon::reports::ask_loop;
use crate::daemon::served::Served;
use crate::daemon::undo;

/// Lets those enter that are approved as the project requires and were not in the queue with this head before: a branch
/// that was taken out comes back with a new commit, or by `merge-queue retest`.
pub(super) fn enter(jobs: &Arc<Jobs>, served: &Arc<Served>, of_tasks: &BTreeSet<String>) {
    let look = || -> anyhow::Result<()> {
        let project = &served.config.name;
        // A person has ordered these.
        let mut wished = undo::open_pulls(served)?;
        if !served.config.merge.label.is_empty() {
            wished.extend(served.forge.merge_wishes(&served.config.merge.label)?);
        }
        if wished.is_empty() {
            return Ok(());
        }
        let known = jobs.read(|store| store.queue_entries(project, EntryScope::All))?;
        for pr in wished {
            let Some(head) = pr.head_sha.clone() else { continue };
            let was_in = known.iter().any(|entry| entry.branch == pr.head && entry.head == head);
            let is_ours = pr.base == served.primary.as_str() && !of_tasks.contains(&pr.head);
            if was_in || !is_ours || !is_approved(served, &pr)? {
                continue;
            }
            let command = QueueCommand::Enter {
                branch: pr.head.clone(),
                head,
                pr: Some(pr.number),
                priority: 0,
                style: None,
                by: pr.author.clone(),
            };
            match ask_loop(&jobs.inbox, Request::Queue { project: project.clone(), command }) {
                Reply::Done { .. } => {
                    tracing::info!(pr = pr.number, "a person's pull request enters the merge queue")
                }
                Reply::Failed { message, .. } => {
                    tracing::warn!(
                        pr = pr.number,
                        message,
                        "a person's pull request cannot enter the merge queue"
                    );
                }
            }
        }
        Ok(())
    };
    if let Err(error) = look() {
        tracing::warn!(project = %served.config.name, error = format!("{error:#}"), "people's pull requests could not be looked at");
    }
}

/// Whether the head is approved as the project requires.
fn is_approved(served: &Served, pr: &PullRequest) -> anyhow::Result<bool> {
    let Some(head) = &pr.head_sha else { return Ok(false) };
    if !served.mirror.commit_exists(head)? {
        served.mirror.fetch_remote()?;
    }
    let Some(main) = served.mirror.remote_head(&served.primary)? else { return Ok(false) };
    let required = served.required_approval(&main, head)?;
    let reviews = match required {
        Required::Nothing => Vec::new(),
        Required::Anybody | Required::People(_) => served.forge.open_reviews(pr.number, Some(head))?,
    };
    let person = |account: &str| served.person(account);
    let accounts = Accounts { author: &pr.author, reviewer: served.forge.reviewer(), person: &person };
    Ok(review::is_approved(&reviews, head, required, accounts))
}
