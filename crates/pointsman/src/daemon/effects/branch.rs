//! The agent's branch on its way from the gateway to the forge, and the question whether it landed.

use pointsman_adapters::git::RefName;
use pointsman_adapters::git::gateway::Gateway;
use pointsman_adapters::git::push::{Change, Expect, PushOutcome, PushRef};
use pointsman_core::forge::IssueState;
use pointsman_core::ids::Sha;
use pointsman_core::task::{Event, State, Task};
use pointsman_core::words;

use super::{EffectError, EffectPerformer, Outcome};
use crate::daemon::served::Served;

impl EffectPerformer {
    pub(super) fn sync_branch(served: &Served, task: &Task) -> Result<Outcome, EffectError> {
        let branch = served.branch(task)?;
        let gateway = Gateway::create(&served.mirror, &served.session_files(&task.key).gateway, &branch)?;
        let name = format!("refs/pointsman/tasks/{}", task.key.issue);
        let Some(kept) = RefName::new(&name) else {
            return Err(EffectError::never(words::daemon::git::not_a_ref_name(&name)));
        };
        let pushed = gateway.fetch_into(&served.mirror, &kept)?;
        if task.state == State::MergeQueue && pushed.is_some() && pushed.as_ref() == task.contribution.head()
        {
            // Nothing new: it may be landing at this moment, and then nothing of it would be ahead of main any more.
            return Ok(Outcome::event(Event::BranchSynced { head: pushed, protected: Vec::new() }));
        }
        served.mirror.fetch_remote()?;
        let Some(main) = served.mirror.remote_head(&served.primary)? else {
            return Err(EffectError::later(words::daemon::git::no_branch(&served.primary)));
        };
        gateway.show_primary(&served.primary, &main)?;
        let head = match pushed {
            Some(head) if served.mirror.ahead(&main, &head)? > 0 => head,
            Some(_) | None => {
                return Ok(Outcome::event(Event::BranchSynced { head: None, protected: Vec::new() }));
            }
        };
        let protected = served.protected_paths(&main, &head)?;
        let there = served.mirror.remote_head(&branch)?;
        if there.as_ref() != Some(&head) {
            let expect = there.map_or(Expect::Absent, Expect::At);
            let push = PushRef { refname: branch.full(), change: Change::To(head.clone()), expect };
            match served.mirror.push(&[push])? {
                PushOutcome::Done => {}
                // Somebody moved it between our fetch and our push: look again.
                PushOutcome::Stale { refname, .. } => {
                    return Err(EffectError::later(words::daemon::git::moved_by_somebody(refname)));
                }
                PushOutcome::Refused { message } => {
                    return Err(EffectError::never(words::daemon::git::push_refused(&branch, &message)));
                }
            }
        }
        Ok(Outcome::event(Event::BranchSynced { head: Some(head), protected }))
    }

    pub(super) fn verify_merge(served: &Served, task: &Task) -> Result<Outcome, EffectError> {
        Ok(Outcome::event(Event::MergeLooked { merged_as: Self::merged_as(served, task)? }))
    }

    /// Our commit on the main branch: as the forge recorded it, or the head itself.
    fn merged_as(served: &Served, task: &Task) -> Result<Option<Sha>, EffectError> {
        let head = task.contribution.head();
        let pr = match task.contribution.pr() {
            Some(number) => served.forge.pull_request(number)?,
            None => None,
        };
        match pr {
            Some(pr) if pr.merged && pr.state == IssueState::Closed => {
                return Ok(pr.merge_sha.or_else(|| head.cloned()));
            }
            // The embedded forge has just asked git itself: a fetch could say nothing else.
            Some(pr)
                if served.embedded.is_some()
                    && pr.state == IssueState::Open
                    && pr.head_sha.as_ref() == head =>
            {
                return Ok(None);
            }
            Some(_) | None => {}
        }
        let Some(head) = head else { return Ok(None) };
        served.mirror.fetch_remote()?;
        let Some(main) = served.mirror.remote_head(&served.primary)? else { return Ok(None) };
        Ok(served.mirror.is_ancestor(head, &main)?.then(|| head.clone()))
    }
}
