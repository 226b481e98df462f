//! The files of a run's session: its working tree, and what is to be read about the very thing that it is about.

use anyhow::Context;
use pointsman_adapters::git::RefName;
use pointsman_adapters::git::checkout::{checkout_exact, restore_from};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::review::is_steering;
use pointsman_core::run::{Run, Status, Subject};
use pointsman_core::words;

use super::containers;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::effects::hand_in;
use crate::daemon::served::{Served, SessionFiles};
use crate::daemon::{actions, reviews};

/// What is laid out for one session.
#[derive(Default)]
pub(in crate::daemon) struct PreparedFiles {
    /// Files for its inbox, with what they hold.
    pub(in crate::daemon) files: Vec<(&'static str, String)>,
    /// What its prompt says about them.
    pub(in crate::daemon) briefing: String,
    pub(in crate::daemon) env: Vec<(&'static str, String)>,
}

/// Makes the working tree, if there is none, and collects the rest.
pub(in crate::daemon) fn lay_out(
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    generation: u32,
    session_files: &SessionFiles,
) -> anyhow::Result<PreparedFiles> {
    match &run.subject {
        None => {
            check_out_main(world, served, run, session_files)?;
            Ok(PreparedFiles::default())
        }
        Some(Subject::Action { issue }) => {
            check_out_main(world, served, run, session_files)?;
            let known =
                served.forge.issue(*issue)?.with_context(|| words::daemon::run::issue_is_gone(*issue))?;
            let label = containers::label(world, &run.key().session(generation));
            Ok(PreparedFiles {
                files: vec![("request.md", words::action::request(&known))],
                briefing: words::action::briefing(*issue, &session_files.inbox(generation).to_string_lossy()),
                env: vec![("ISSUE", issue.to_string()), ("POINTSMAN_CONTAINER_LABEL", label)],
            })
        }
        Some(Subject::Vault { id, hash }) => {
            check_out_main(world, served, run, session_files)?;
            let entry =
                world.read(|store| store.vault_entry(&run.project, id))?.filter(|entry| entry.hash == *hash);
            let entry = entry.with_context(|| words::daemon::run::vault_action_is_gone(id))?;
            Ok(PreparedFiles {
                files: vec![("action.json", words::vault::shown(&entry))],
                briefing: words::vault::briefing(id, &session_files.inbox(generation).to_string_lossy()),
                env: Vec::new(),
            })
        }
        Some(Subject::Review { pr, sha, .. }) => for_review(served, generation, session_files, *pr, sha),
    }
}

fn check_out_main(
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    session_files: &SessionFiles,
) -> anyhow::Result<()> {
    if session_files.tree.exists() {
        return Ok(());
    }
    served.mirror.fetch_remote()?;
    let head = served.mirror.remote_head(&served.primary)?;
    let head = head.with_context(|| words::daemon::git::no_branch(&served.primary))?;
    hand_in::check_out(world, served, run, &head, &session_files.tree)
}

/// What an action committed is kept for the dev agent, if it came to an end.
pub(in crate::daemon) fn take_commits(
    served: &Served,
    run: &Run,
    session_files: &SessionFiles,
) -> anyhow::Result<()> {
    let Some(Subject::Action { issue }) = &run.subject else { return Ok(()) };
    if run.status == Status::Done && session_files.tree.exists() {
        let kept = actions::kept_at(*issue)?;
        served.mirror.fetch_path(&session_files.tree, &RefName::head(), &kept)?;
    }
    Ok(())
}

/// The head itself; but what steers agents comes from where it left the main branch.
fn for_review(
    served: &Served,
    generation: u32,
    session_files: &SessionFiles,
    pr: Number,
    head: &Sha,
) -> anyhow::Result<PreparedFiles> {
    let known = served.forge.pull_request(pr)?;
    let known = known.with_context(|| words::daemon::review::pull_request_is_gone(pr))?;
    let examined = reviews::examine(served, &known, head, None)?;
    if !session_files.tree.exists() {
        checkout_exact(&served.mirror, head, &session_files.tree)?;
        restore_from(&served.mirror, &session_files.tree, head, &examined.base, is_steering)?;
    }
    let material = reviews::material(served, &known, head, &examined)?;
    let inbox = session_files.inbox(generation);
    let briefing = words::review::briefing(pr, head, &material, &inbox.to_string_lossy());
    let files = material.files().into_iter().map(|(name, text)| (name, text.to_owned())).collect();
    let env = vec![
        ("POINTSMAN_PR", pr.to_string()),
        ("POINTSMAN_SHA", head.to_string()),
        ("POINTSMAN_BASE", examined.base.to_string()),
    ];
    Ok(PreparedFiles { files, briefing, env })
}
