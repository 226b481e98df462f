//! The way of a session to the API of its model.

use std::collections::BTreeMap;

use pointsman_adapters::secret::Secret;
use pointsman_core::filing;
use pointsman_core::relay::{CredentialName, MODEL, ModelAccess, PLACEHOLDER_KEY};
use pointsman_core::run::Subject;
use pointsman_core::words;
use pointsman_core::workflow::Workflow;

use super::{EffectError, EffectPerformer};
use crate::daemon::served::Served;
use crate::model_login;

/// The directory of settings. One that the configuration hands over may hold a login.
const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

/// What the relay is told of a session, with the credential that it adds.
pub(super) struct RelayedModel {
    pub(super) access: (ModelAccess, Secret),
    /// The variables that lead to it.
    pub(super) services: BTreeMap<String, String>,
}

impl EffectPerformer {
    /// Leads a session inside a sandbox to its model's API through the relay, and takes every credential out of its environment.
    /// None for an agent whose API the relay does not know.
    pub(super) fn relayed_model(
        &self,
        served: &Served,
        owner: &Workflow,
        generation: u32,
        env: &mut BTreeMap<String, String>,
    ) -> Result<Option<RelayedModel>, EffectError> {
        let role = owner.role();
        let (agent, settings) = (served.config.agent_kind(role), served.config.sandbox(role));
        let is_relayed = model_login::is_relayed(agent, &settings, &served.config.agent.pass_env);
        let Some(variable) = agent.relayed_by().filter(|_| is_relayed) else { return Ok(None) };
        let Some(login) = served.enclosure.login()? else {
            return Err(EffectError::later(words::relay::NO_LOGIN));
        };
        for name in CredentialName::ALL.into_iter().filter_map(CredentialName::variable).chain([CONFIG_DIR]) {
            env.remove(name);
        }
        if let Some(name) = CredentialName::ApiKey.variable() {
            env.insert(name.to_owned(), PLACEHOLDER_KEY.to_owned());
        }
        let access = ModelAccess {
            session: owner.id().session(generation),
            role,
            upstream: served.enclosure.model_address(),
            credential: login.name,
            of_stranger: self.is_of_stranger(served, owner)?,
            pools: Vec::new(),
        };
        let services = BTreeMap::from([(variable.to_owned(), MODEL.to_owned())]);
        Ok(Some(RelayedModel { access: (access, login.secret), services }))
    }

    /// Whether somebody may have written what the session works on who may not direct an agent. An issue that a session or a role
    /// of ours filed can repeat the words of anybody.
    fn is_of_stranger(&self, served: &Served, owner: &Workflow) -> Result<bool, EffectError> {
        let issue = match owner {
            Workflow::Task(task) => Some(task.key.issue),
            Workflow::Run(run) => match &run.subject {
                Some(Subject::Action { issue }) => Some(*issue),
                Some(Subject::Review { .. } | Subject::Vault { .. }) | None => None,
            },
            Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => None,
        };
        let Some(issue) = issue else { return Ok(true) };
        let Some(issue) = served.forge.issue(issue)? else { return Ok(true) };
        let is_ours = filing::by_session(&issue.author) || issue.author == served.forge.me();
        Ok(is_ours || !served.may_direct(&issue.author)?)
    }
}
