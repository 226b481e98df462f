//! The agent's branch on its way from the gateway to the forge, and the question whether it landed.

use pointsman_adapters::git::RefName;
use pointsman_adapters::git::gateway::Gateway;
use pointsman_adapters::git::push::{Change, Expect, PushOutcome, PushRef};
use pointsman_adapters::secret::remember_login;
use pointsman_core::artifact::Origin;
use pointsman_core::forge::IssueState;
use pointsman_core::ids::Sha;
use pointsman_core::known_secrets::FoundSecrets;
use pointsman_core::task::{Event, State, Task};
use pointsman_core::words;

use super::{EffectError, EffectPerformer, Outcome};
use crate::daemon::crash::crash_point;
use crate::daemon::leaks;
use crate::daemon::risk;
use crate::daemon::served::{Served, artifacts_of};
use crate::remote::CLAUDE_LOGIN;

impl EffectPerformer {
    pub(super) fn sync_branch(&self, served: &Served, task: &Task) -> Result<Outcome, EffectError> {
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
            return Ok(Outcome::event(Event::BranchSynced {
                head: pushed,
                protected: Vec::new(),
                secret: None,
                risk: None,
            }));
        }
        served.mirror.fetch_remote()?;
        let Some(main) = served.mirror.remote_head(&served.primary)? else {
            return Err(EffectError::later(words::daemon::git::no_branch(&served.primary)));
        };
        gateway.show_primary(&served.primary, &main)?;
        let head = match pushed {
            Some(head) if served.mirror.ahead(&main, &head)? > 0 => head,
            Some(_) | None => {
                return Ok(Outcome::event(Event::BranchSynced {
                    head: None,
                    protected: Vec::new(),
                    secret: None,
                    risk: None,
                }));
            }
        };
        let protected = served.protected_paths(&main, &head)?;
        let risk = risk::judge(served, &main, &head, &protected);
        let (stopped, secret) = self.look_for_secrets(served, task, &main, &head)?;
        if stopped {
            let (head, protected, risk) = (None, Vec::new(), None);
            return Ok(Outcome::event(Event::BranchSynced { head, protected, risk, secret }));
        }
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
        let handed_in = served.session_files(&task.key).artifacts(task.session.generation);
        let key = artifacts_of(Some(task.key.issue), None);
        served.keep_artifacts_in(&handed_in, key, Origin::Session, Some(&head));
        Ok(Outcome::event(Event::BranchSynced { head: Some(head), protected, risk, secret }))
    }

    /// Whether a secret keeps a branch here, and everything in it that its agent is told of.
    fn look_for_secrets(
        &self,
        served: &Served,
        task: &Task,
        main: &Sha,
        head: &Sha,
    ) -> Result<(bool, Option<FoundSecrets>), EffectError> {
        // The agent has this one in its sandbox.
        remember_login(&self.paths.claude_config().join(CLAUDE_LOGIN));
        let found = leaks::look(served, main, head)?;
        let project = &task.key.project;
        let decisions = self.read(|store| leaks::Decisions::read(store, &served.config))?;
        let open = decisions.open(&found);
        let questions = self.read(pointsman_store::Store::open_questions)?;
        leaks::withdraw(&self.jobs.inbox, &questions, &task.key, &open);
        let stopping = decisions.stopping(&open);
        let asked: Vec<_> =
            stopping.iter().filter(|finding| !decisions.is_rejected(finding)).cloned().collect();
        let name = task.contribution.branch.as_str();
        let place = leaks::Place { project, name, issue: Some(task.key.issue), pr: task.contribution.pr() };
        if !asked.is_empty() {
            leaks::ask(&self.jobs.inbox, place, &asked);
            crash_point("secret-asked");
        }
        match stopping.is_empty() {
            true => Ok((false, leaks::told(&open))),
            false => Ok((true, leaks::told(&stopping))),
        }
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
