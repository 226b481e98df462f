//! `pointsman.toml`: typed keys, defaults in one readable file, and mistakes reported with their line.
//!
//! A text comes in, and a [`Config`] or an [`Error`] goes out. The program finds and reads the file, the environment
//! and the secrets. `default.toml` has all keys, `kinds.rs` the kinds of forges and CIs, `sections.rs`, `vault.rs`
//! and `numbers.rs` the types, `check.rs` the rules between keys, `document.rs` lines and columns. `words/config.rs` has the
//! texts of mistakes, `words/template.rs` the file that `pointsman init` writes.

mod branch;
mod check;
mod document;
mod entries;
mod error;
mod kinds;
mod machine;
mod numbers;
mod port_range;
mod sections;
mod share;
mod size;
mod span;
pub mod trust;
mod usd;
mod vault;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

pub(crate) use check::is_model;

pub use crate::words::template::{TemplateCi, template};
pub use branch::{invalid_branch, render_branch};
pub use entries::{Entry, Origin};
pub use error::Error;
pub use kinds::{CiCapabilities, CiKind, CiRunner, ForgeCapabilities, ForgeHome, ForgeKind};
pub use machine::{MachineConfig, MachineDigest, MachineSandbox, MachineWeb};
pub use numbers::{Health, Limits, Timing};
pub use port_range::PortRange;
pub use sections::{
    AgentSettings, Argv, Budget, Ci, Context, Dev, Forge, Matrix, Merge, MergeEngine, MergeStrategy,
    MergeStyle, NotifierKind, Notify, OutsidePushes, Pr, Review, ReviewMode, Risk, RiskClass, RiskReviewer,
    RiskRule, RiskWhen, RoleSandbox, RoleSettings, Roles, Runtime, SandboxMode, SandboxSettings, Schedule,
    TreeSettings, Webhook, Webhooks, Woodpecker, Worktree,
};
pub use share::Share;
pub use size::Size;
pub use span::{ParseSpanError, Span};
pub use trust::Trust;
pub use usd::Usd;
pub use vault::{Vault, VaultType};

use crate::agent::Agent;
use crate::ids::ProjectName;
use crate::role::Role;
use crate::words;
use document::Document;

/// All defaults, as the file that people can read.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// A project's configuration with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub name: ProjectName,
    /// The branch that work lands on.
    pub primary_branch: String,
    /// Where issues and pull requests live.
    pub forge: Forge,
    pub ci: Ci,
    pub agent: AgentSettings,
    pub roles: Roles,
    pub review: Review,
    /// The classes of `review.mode = "risk"`.
    pub risk: Risk,
    pub merge: Merge,
    pub pr: Pr,
    /// How issues are worked on.
    pub dev: Dev,
    pub tree: TreeSettings,
    /// How long things may take.
    pub timing: Timing,
    /// How often things may happen.
    pub limits: Limits,
    pub health: Health,
    /// When a context is how full.
    pub context: Context,
    pub woodpecker: Woodpecker,
    /// Webhooks of the forge and the CI, to us.
    pub webhooks: Webhooks,
    pub notify: Notify,
    pub matrix: Matrix,
    /// The address that is called.
    pub webhook: Webhook,
    pub budget: Budget,
    /// When formulas run by themselves.
    pub schedule: Schedule,
    /// What sessions and the programs of a branch can reach.
    pub sandbox: SandboxSettings,
    pub vault: Vault,
    /// What formulas can use beside what they are given.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
}

impl Config {
    /// Reads a configuration; `origin` is the file's name as it stands in error messages.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        Ok(read(text, origin)?.0)
    }

    /// Reads a configuration and tells for each key in force where it comes from.
    pub fn parse_with_origin(text: &str, origin: &str) -> Result<(Self, Vec<Entry>), Error> {
        let (config, document) = read(text, origin)?;
        let entries = entries::with_origin(&config, &document);
        Ok((config, entries))
    }

    /// The mistake in the value of a key, with the line of the file that sets it: for what only the machine knows.
    pub fn mistake(text: &str, origin: &str, key: &str, why: &str) -> Error {
        match Document::parse(text, origin) {
            Ok((document, _)) => document.error_at(key, words::config::wrong_value(key, why)),
            Err(error) => error,
        }
    }

    /// Files that hold secrets of services.
    pub fn secret_files(&self) -> Vec<&Path> {
        let Self { forge, review, woodpecker, webhooks, webhook, matrix, .. } = self;
        let files = [
            &forge.token_file,
            &forge.app_key_file,
            &review.token_file,
            &woodpecker.token_file,
            &webhooks.secret_file,
            &matrix.token_file,
            &webhook.token_file,
            &webhook.url_file,
        ];
        files.into_iter().filter_map(|file| file.as_deref()).collect()
    }

    /// Variables that hold secrets of services.
    pub fn secret_variables(&self) -> Vec<&str> {
        let Self { forge, review, woodpecker, webhooks, webhook, matrix, vault, .. } = self;
        let named = [&review.token_env, &woodpecker.token_env, &webhooks.secret_env, &matrix.token_env];
        let named = named.into_iter().chain([&webhook.url_env]).map(String::as_str);
        let optional = [forge.token_env(), webhook.token_env.as_deref()].into_iter().flatten();
        named.chain(optional).chain(vault.types.values().flat_map(VaultType::hidden)).collect()
    }

    /// The keys whose values differ, each once, in a stable order.
    pub fn changed_keys(&self, other: &Self) -> Vec<String> {
        let (before, after) = (self.entries(), other.entries());
        let differs = |of: &[(String, String)], key: &str, value: &str| {
            !of.iter().any(|(other, known)| other == key && known == value)
        };
        let gone = before.iter().filter(|(key, value)| differs(&after, key, value));
        let new = after.iter().filter(|(key, value)| differs(&before, key, value));
        let keys: BTreeSet<&String> = gone.chain(new).map(|(key, _)| key).collect();
        keys.into_iter().cloned().collect()
    }

    /// Every key in force with its value in TOML, in a stable order.
    pub fn entries(&self) -> Vec<(String, String)> {
        entries::in_force(self)
    }

    /// The command that a candidate must pass before it lands: `merge.gate`, else the command of the CI.
    pub fn gate(&self) -> Option<&[String]> {
        let ci = self.ci.command.as_deref().filter(|_| self.ci.kind.runs_here());
        self.merge.gate.as_deref().or(ci)
    }

    /// Whether the gate is what an outside CI says about a commit, on the forge or itself.
    pub fn gate_is_checks(&self) -> bool {
        self.merge.gate.is_none() && self.ci.kind.runs_outside()
    }

    /// The runtime for the sessions of a role.
    pub fn runtime(&self, role: Role) -> Runtime {
        self.roles.get(role).runtime.unwrap_or(self.agent.runtime)
    }

    /// The program of a role's sessions with its arguments.
    pub fn command(&self, role: Role) -> &Argv {
        self.roles.get(role).command.as_ref().unwrap_or(&self.agent.command)
    }

    /// The agent that a role's sessions run.
    pub fn agent_kind(&self, role: Role) -> Agent {
        self.roles.get(role).kind.unwrap_or(self.agent.kind)
    }

    /// The sandbox of a role's sessions.
    pub fn sandbox(&self, role: Role) -> SandboxSettings {
        let general = &self.sandbox;
        let Some(own) = &self.roles.get(role).sandbox else { return general.clone() };
        SandboxSettings {
            mode: own.mode.unwrap_or(general.mode),
            processes: own.processes.unwrap_or(general.processes),
            memory: own.memory.or(general.memory),
            disk: own.disk.or(general.disk),
            hosts: own.hosts.clone().unwrap_or_else(|| general.hosts.clone()),
            ci_hosts: general.ci_hosts.clone(),
            containers: own.containers.unwrap_or(false),
        }
    }

    /// Whether any role that works runs in terminals.
    pub fn wants_terminals(&self) -> bool {
        self.roles.iter().any(|(role, settings)| settings.enabled && self.runtime(role) == Runtime::Tmux)
    }

    /// Whether the review agent decides, about some changes at least.
    pub fn review_agent(&self) -> bool {
        self.program_reviews() && self.review.command.is_none()
    }

    /// Whether the review agent, or a program in its place, decides about some changes.
    pub fn program_reviews(&self) -> bool {
        match self.review.mode {
            ReviewMode::Agent => true,
            ReviewMode::Risk => {
                self.risk.reviewers().iter().any(|(_, reviewer)| *reviewer == RiskReviewer::Agent)
            }
            ReviewMode::Human | ReviewMode::None => false,
        }
    }

    /// The time zone of the quiet hours: `notify.timezone`, else that of the timetable.
    pub fn quiet_zone(&self) -> &str {
        self.notify.timezone.as_deref().unwrap_or(&self.schedule.timezone)
    }

    /// Whether people are told in any way but the log.
    pub fn tells_anybody(&self) -> bool {
        self.notify.to.iter().any(|kind| *kind != NotifierKind::Log)
    }

    /// Whether people are told in this way.
    pub fn tells(&self, kind: NotifierKind) -> bool {
        self.notify.to.contains(&kind)
    }

    /// Whether people are listened to.
    pub fn listens(&self) -> bool {
        self.tells(NotifierKind::Matrix) && !self.matrix.people.is_empty()
    }

    /// The branch of an issue.
    pub fn branch(&self, issue: u64) -> String {
        render_branch(&self.dev.branch, issue)
    }

    /// Settings that this version cannot follow yet, a sentence each; empty if it can follow all.
    pub fn unsupported(&self) -> Vec<String> {
        check::unsupported(self)
    }
}

impl Default for Config {
    /// The defaults, for a project called `project`.
    fn default() -> Self {
        Self::parse(DEFAULT_TOML, "default.toml").expect("the embedded file is read by the tests")
    }
}

fn read<'t>(text: &'t str, origin: &'t str) -> Result<(Config, Document<'t>), Error> {
    let (document, table) = Document::parse(text, origin)?;
    document.refuse_secrets()?;
    if !document.has("name") {
        return Err(document
            .error_at("name", words::config::NAME_MISSING)
            .hint(words::config::NAME_MISSING_HINT));
    }
    let mut config: Config = document.deserialize(table)?;
    // Who names a command wants it run; an explicit word, also "none", always wins.
    if config.ci.command.is_some() && !document.has("ci.kind") {
        config.ci.kind = CiKind::OF_COMMAND;
    }
    // The one place where an agent is guessed.
    if !document.has("agent.kind") {
        config.agent.kind = Agent::of_command(&config.agent.command);
    }
    for settings in config.roles.all_mut() {
        settings.kind = settings.kind.or_else(|| settings.command.as_deref().map(Agent::of_command));
    }
    if config.review.command.is_some() && !document.has("review.mode") {
        config.review.mode = ReviewMode::Agent;
    }
    // Who wants the review agent in one place wants it in the other.
    if config.roles.review.enabled && !document.has("review.mode") {
        config.review.mode = ReviewMode::Agent;
    }
    if config.review_agent() && !document.has("roles.review.enabled") {
        config.roles.review.enabled = true;
    }
    check::all(&config, &document)?;
    Ok((config, document))
}
