//! Has the vault's agent look at an action before it is fired without a person.
//!
//! The look is a run about the action's hash. Whatever becomes of that run, there is no second one: the engine tells the
//! action when it is over.

use std::sync::mpsc::sync_channel;

use pointsman_adapters::process::free_memory_mb;
use pointsman_core::run::{Event as RunEvent, Run, Subject, vault_key};
use pointsman_core::vault::{Entry, Event, FORMULA, ROLE, heard};
use pointsman_core::words;
use pointsman_core::workflow;
use pointsman_store::RunScope;

use crate::control::protocol::Reply;
use crate::daemon::effects::{EffectError, EffectPerformer};
use crate::daemon::engine::Input;
use crate::daemon::inbound::ThreadReport;
use crate::daemon::outcome::Outcome;
use crate::daemon::served::Served;

/// Who asks, in the list of runs.
const BY: &str = ROLE.as_str();

impl EffectPerformer {
    /// Begins the look, unless there is one.
    pub(in crate::daemon) fn look_at_action(
        &self,
        served: &Served,
        entry: &Entry,
        hash: &str,
    ) -> Result<Outcome, EffectError> {
        let (config, project) = (&served.config, &entry.project);
        let learned = |event| Ok(Outcome::learned(workflow::Event::Vault(event)));
        let nobody = |why: &str| learned(Event::no_opinion(hash, why));
        if !entry.awaits_look || entry.hash != hash {
            return Ok(Outcome::done());
        }
        if let Some(run) = self.read(|store| store.runs_about(project, &vault_key(hash)))?.first() {
            return heard(run).map_or_else(|| Ok(Outcome::done()), learned);
        }
        if !config.roles.vault.enabled {
            return nobody(words::daemon::vault::look_is_off());
        }
        if free_memory_mb().is_some_and(|free| free < config.limits.min_free_memory_mb) {
            return nobody(words::daemon::vault::too_little_memory());
        }
        if self.read(|store| store.runs(project, RunScope::Open))?.iter().any(is_look) {
            return Err(EffectError::later(words::daemon::vault::another_look()));
        }
        let (written, answer) = sync_channel(1);
        self.jobs.inbox.report(ThreadReport::RunWanted {
            project: project.clone(),
            formula: FORMULA.to_owned(),
            subject: Subject::Vault { id: entry.id().clone(), hash: hash.to_owned() },
            by: BY.to_owned(),
            written,
        });
        match answer.recv() {
            Ok(Reply::Done { .. }) => Ok(Outcome::done()),
            Ok(Reply::Failed { message, .. }) => nobody(&message),
            Err(_) => Err(EffectError::later(words::daemon::process::is_stopping())),
        }
    }

    /// Ends the look at an action: somebody has decided, or a person is asked already.
    pub(in crate::daemon) fn call_off_look(&self, entry: &Entry, hash: &str) -> Result<Outcome, EffectError> {
        let about = self.read(|store| store.runs_about(&entry.project, &vault_key(hash)))?;
        for run in about.iter().filter(|run| is_look(run)) {
            self.jobs.inbox.tell(Input::of_run(run.key(), RunEvent::Stopped { by: BY.to_owned() }));
        }
        Ok(Outcome::done())
    }
}

fn is_look(run: &Run) -> bool {
    matches!(run.subject, Some(Subject::Vault { .. })) && !run.status.is_over()
}
