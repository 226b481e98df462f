//! The rules of a project's vault, from its configuration.

use super::entry::Policy;
use super::estimate::Estimate;
use crate::config::Config;

impl Policy {
    /// As it is configured.
    pub fn new(config: &Config) -> Self {
        let Config { vault, timing, .. } = config;
        Self {
            auto_approve: vault.auto_approve,
            high_risk_approvals: vault.high_risk_approvals,
            look: config.roles.vault.enabled,
            people: vault.people.clone(),
            timeout: timing.vault_timeout.duration(),
            approval: timing.vault_approval.duration(),
            renotify: timing.escalation_renotify.duration(),
        }
    }
}

/// The operator's estimate of a type; none if there is no such type.
pub fn rule(config: &Config, kind: &str) -> Option<Estimate> {
    let known = config.vault.types.get(kind)?;
    Some(Estimate { risk: known.risk, reversible: known.reversible, requires_human: known.requires_human })
}
