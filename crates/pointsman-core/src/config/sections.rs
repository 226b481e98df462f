//! The tables of `pointsman.toml` as types: their keys are the field names, their values are checked in
//! `check.rs`, their defaults stand in `default.toml`.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::kinds::{CiKind, ForgeKind};
use super::{PortRange, Share, Size, Span, Usd};
use crate::agent::Agent;
use crate::notifier::QuietHours;
use crate::role::Role;

/// A program and its arguments; run as they are, without a shell.
pub type Argv = Vec<String>;

/// Declares a table of the configuration: every key typed, unknown keys refused.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
    };
}

/// Declares a choice between words, written in the file in lower case.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// The word in the file.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

table! {
    /// When a session's context is how full.
    Context {
        /// From here on it is watched.
        low: Share,
        /// From here on the agent is asked to save its work.
        medium: Share,
        /// From here on it hands over to a successor.
        high: Share,
        /// Tokens in the window of a model whose name does not say it, where no status line tells.
        window: Option<u64>,
    }
}

table! {
    Forge {
        kind: ForgeKind,
        url: Option<String>,
        /// `owner/name` of the repository.
        repo: Option<String>,
        /// Project board that follows the tasks.
        board: Option<String>,
        /// Number or client id of a GitHub App that develops, in place of an account with a token.
        app_id: Option<String>,
        /// File that holds its private key.
        app_key_file: Option<PathBuf>,
        /// Its installation, if it is not to be looked for.
        app_installation: Option<u64>,
        /// Variable that holds the token; see [`Forge::token_env`] for the default.
        token_env: Option<String>,
        /// File that holds the token.
        token_file: Option<PathBuf>,
        /// Program that prints the token.
        token_command: Option<Argv>,
    }
}

impl Forge {
    /// The variable that holds the token: the one given, else the usual one of the kind.
    pub fn token_env(&self) -> Option<&str> {
        self.token_env.as_deref().or(self.kind.capabilities().token_env)
    }
}

table! {
    Ci {
        kind: CiKind,
        /// What to run in a clean checkout of the commit.
        command: Option<Argv>,
        /// How often an outside CI is asked.
        poll: Span,
        /// How many checks run at the same time.
        concurrency: u32,
        /// With the kind `forge`: the checks that must be green; empty for all there are.
        required: Vec<String>,
        /// Further variables of the daemon's environment for the programs of CI and gate, by name.
        pass_env: Vec<String>,
    }
}

choice! {
    /// How an agent program is run.
    Runtime {
        /// Interactive, in a private tmux server.
        Tmux = "tmux",
        Headless = "headless",
    }
}

table! {
    /// `[agent]`: what holds for every role that does not say otherwise.
    AgentSettings {
        /// The agent that the command starts; guessed by the program's name where it is not given.
        kind: Agent,
        runtime: Runtime,
        command: Argv,
        /// Names of further environment variables it gets.
        pass_env: Vec<String>,
        /// Whether Claude Code takes an interrupted conversation up again.
        resume: bool,
        /// Whether a session of Claude Code whose hooks are not heard is a question for a person.
        require_hooks: bool,
        /// Whether what Claude Code says at the end of each turn is a notice.
        stream_responses: bool,
    }
}

table! {
    /// `[roles.<role>]`.
    RoleSettings {
        /// Whether the role works at all.
        enabled: bool,
        /// Instead of `agent.runtime`.
        runtime: Option<Runtime>,
        /// Instead of `agent.command`.
        command: Option<Argv>,
        /// Instead of `agent.kind`; guessed where the role has a command of its own.
        kind: Option<Agent>,
        /// The model the agent is asked to use.
        model: Option<String>,
        /// When it runs by itself, as five cron fields in UTC.
        schedule: Option<String>,
        /// What its sessions may spend; an amount alone is for one session.
        #[serde(default, deserialize_with = "super::usd::budget")]
        budget: Option<Budget>,
        /// Instead of the keys of `[sandbox]`.
        #[serde(default)]
        sandbox: Option<RoleSandbox>,
    }
}

choice! {
    /// Whether sessions and the programs of a branch run inside a sandbox.
    SandboxMode {
        /// Wherever it works; where it does not, people are told.
        Auto = "auto",
        /// Always: what cannot be enclosed is not started.
        Require = "require",
        Off = "off",
    }
}

table! {
    /// `[sandbox]`: what is enclosed, and its limits.
    SandboxSettings {
        mode: SandboxMode,
        /// Processes inside one sandbox; 0 for no limit.
        processes: u32,
        /// Memory of one process.
        memory: Option<Size>,
        /// Size of each temporary file system.
        disk: Option<Size>,
        /// Destinations that a session may reach.
        hosts: Vec<String>,
        /// The same for CI, gates and review programs.
        ci_hosts: Vec<String>,
        /// Whether a role needs containers, which cannot be had inside. Only a role can say so.
        #[serde(skip)]
        containers: bool,
    }
}

table! {
    /// `[roles.<role>.sandbox]`: what differs for one role.
    RoleSandbox {
        mode: Option<SandboxMode>,
        processes: Option<u32>,
        memory: Option<Size>,
        disk: Option<Size>,
        hosts: Option<Vec<String>>,
        /// Its sessions use Docker or Podman, and so run outside.
        containers: Option<bool>,
    }
}

table! {
    Roles {
        dev: RoleSettings,
        review: RoleSettings,
        gardener: RoleSettings,
        /// Watches the health of it all.
        supervisor: RoleSettings,
        planner: RoleSettings,
        predictor: RoleSettings,
        action: RoleSettings,
        vault: RoleSettings,
    }
}

impl Roles {
    /// The settings of one role.
    pub fn get(&self, role: Role) -> &RoleSettings {
        match role {
            Role::Dev => &self.dev,
            Role::Review => &self.review,
            Role::Gardener => &self.gardener,
            Role::Supervisor => &self.supervisor,
            Role::Planner => &self.planner,
            Role::Predictor => &self.predictor,
            Role::Action => &self.action,
            Role::Vault => &self.vault,
        }
    }

    /// The settings of every role, to be changed.
    pub(super) fn all_mut(&mut self) -> [&mut RoleSettings; Role::ALL.len()] {
        let Self { dev, review, gardener, supervisor, planner, predictor, action, vault } = self;
        [dev, review, gardener, supervisor, planner, predictor, action, vault]
    }

    /// Every role with what is configured for it, in the order of [`Role::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Role, &RoleSettings)> {
        Role::ALL.into_iter().map(|role| (role, self.get(role)))
    }
}

choice! {
    /// Who decides whether a change may land.
    ReviewMode {
        /// A person, on the forge.
        Human = "human",
        /// The review agent, or `review.command` in its place.
        Agent = "agent",
        /// Whoever the class of the change needs.
        Risk = "risk",
        None = "none",
    }
}

table! {
    Review {
        mode: ReviewMode,
        /// A program that decides in the agent's place.
        command: Option<Argv>,
        /// People who must approve where people review.
        approvals: u32,
        /// The same for a change of protected paths.
        protected_approvals: u32,
        /// Further paths that need a person, with `*` and `**`.
        protected: Vec<String>,
        /// Paths, with `*` and `**`, in which something may look like a secret, and fingerprints of values that may leave.
        secrets_allowed: Vec<String>,
        /// Reviews by the agent at the same time.
        concurrency: u32,
        /// Variable that holds the reviewer's token, never the author's.
        token_env: String,
        /// File that holds the token.
        token_file: Option<PathBuf>,
        /// Program that prints the token.
        token_command: Option<Argv>,
    }
}

choice! {
    /// A class of risk, lowest first.
    RiskClass {
        Low = "low",
        Medium = "medium",
        High = "high",
        Critical = "critical",
    }
}

choice! {
    /// Whom a change needs before it may land, least first.
    RiskReviewer {
        Nobody = "nobody",
        /// The review agent, or `review.command` in its place.
        Agent = "agent",
        Person = "person",
        TwoPeople = "two_people",
    }
}

choice! {
    /// The thing that a rule about risk looks at.
    RiskWhen {
        /// A changed file that fits `paths`.
        Paths = "paths",
        /// A changed file that fits none of `paths`.
        OtherPaths = "other_paths",
        /// More than `limit` changed lines.
        Lines = "lines",
        /// Tests that are deleted or switched off.
        Tests = "tests",
        /// Files that name dependencies.
        Dependencies = "dependencies",
        /// Modes of files, links, submodules, and lines that give rights.
        Permissions = "permissions",
        /// The review agent found something, or did not decide.
        Findings = "findings",
        /// More than `limit` changes by agents in these files were taken back.
        Reverted = "reverted",
        /// Fewer than `limit` changes by agents in these files have landed.
        Unproven = "unproven",
    }
}

table! {
    /// One rule about risk: it raises a change to its class, or says nothing.
    RiskRule {
        when: RiskWhen,
        class: RiskClass,
        /// With `*` and `**`; for `paths` and `other_paths`.
        paths: Option<Vec<String>>,
        /// For `lines`, `reverted` and `unproven`.
        limit: Option<u32>,
    }
}

table! {
    /// `[risk]`: the classes of `review.mode = "risk"`, and the rules that put changes into them.
    Risk {
        low: RiskReviewer,
        medium: RiskReviewer,
        high: RiskReviewer,
        critical: RiskReviewer,
        /// How many of a hundred changes of the low class people see all the same.
        sample: u32,
        rules: Vec<RiskRule>,
    }
}

impl Risk {
    /// Whom each class needs, lowest class first.
    pub fn reviewers(&self) -> [(&'static str, RiskReviewer); 4] {
        [
            ("risk.low", self.low),
            ("risk.medium", self.medium),
            ("risk.high", self.high),
            ("risk.critical", self.critical),
        ]
    }
}

choice! {
    /// How many candidates the merge queue tests at a time.
    MergeStrategy {
        Sequential = "sequential",
        /// Several in one, bisected on red.
        Batch = "batch",
        Speculative = "speculative",
    }
}

choice! {
    /// What a landed branch looks like in the history.
    MergeStyle {
        /// Its commits on top of main.
        Rebase = "rebase",
        Merge = "merge",
        Squash = "squash",
    }
}

choice! {
    /// Who lands green and approved work.
    MergeEngine {
        /// Our own merge queue.
        Pointsman = "pointsman",
        /// The forge itself, by its merge call or its own merge queue.
        Forge = "forge",
    }
}

choice! {
    /// The fate of commits that reach the main branch without the merge queue.
    OutsidePushes {
        /// A fast-forward that no session can have made is taken, tested and told; anything else pauses the queue.
        Accept = "accept",
        /// Everything pauses the queue.
        Pause = "pause",
    }
}

table! {
    /// `[tree]`: what the working tree of a task needs beside its commit.
    TreeSettings {
        /// Prepares a new tree; empty for none.
        setup: Argv,
        /// Runs before a tree is removed; empty for none.
        teardown: Argv,
        /// Untracked files of the operator's checkout, with `*` and `**`.
        copy: Vec<String>,
        ports: u16,
        port_range: PortRange,
        /// Less room than this on the disk, and no tree is made.
        free_disk: Size,
    }
}

table! {
    Merge {
        engine: MergeEngine,
        outside_pushes: OutsidePushes,
        /// Paths, with `*` and `**`, whose change needs a person whatever `review.mode` says. The programs of CI, gate and
        /// review need one anyway.
        protected: Vec<String>,
        /// People's pull requests with this label, or with auto-merge switched on, enter the merge queue; empty for none.
        label: String,
        strategy: MergeStrategy,
        style: MergeStyle,
        /// What a candidate must pass; see [`super::Config::gate`] for the default.
        gate: Option<Argv>,
        /// Branches tested together at most, with the strategy `batch`.
        batch_size: u32,
        /// Candidates tested at once at most, with the strategy `speculative`.
        depth: u32,
        /// Waiting for so long counts as one step of priority.
        ageing: Span,
        /// Paths, with `*`, where both sides of a conflict are kept, one after the other.
        union: Vec<String>,
    }
}

table! {
    Pr {
        /// Lines put into the PR body as unchecked boxes.
        checklist: Vec<String>,
    }
}

choice! {
    /// What a session's working tree is.
    Worktree {
        /// A clone of its own that borrows the mirror's objects.
        Private = "private",
        /// A linked `git worktree`; shares configuration and hooks, so it is no boundary.
        Linked = "linked",
    }
}

table! {
    Dev {
        /// Tasks at the same time.
        concurrency: u32,
        /// Name of a task's branch, with `{issue}`.
        branch: String,
        /// Directory of the phase files.
        phase_dir: PathBuf,
        /// What a session's working tree is.
        worktree: Worktree,
        /// Whether a person has to accept the agent's plan before it works.
        plan: bool,
    }
}

table! {
    Woodpecker {
        url: Option<String>,
        /// Number of the repository there.
        repo_id: Option<u64>,
        /// Variable that holds the token.
        token_env: String,
        /// File that holds the token.
        token_file: Option<PathBuf>,
        /// Program that prints the token.
        token_command: Option<Argv>,
    }
}

table! {
    Webhooks {
        /// Where webhooks are listened for.
        listen: Option<SocketAddr>,
        /// Variable that holds the secret.
        secret_env: String,
        /// File that holds the secret.
        secret_file: Option<PathBuf>,
        /// Program that prints the secret.
        secret_command: Option<Argv>,
    }
}

table! {
    Matrix {
        homeserver: Option<String>,
        /// Room that is written to: its id, or an alias.
        room: Option<String>,
        /// Whose words in the room count, such as `@ann:example.org`; empty: nobody's, and nothing is read.
        people: Vec<String>,
        /// Variable that holds the token.
        token_env: String,
        /// File that holds the token.
        token_file: Option<PathBuf>,
        /// Program that prints the token.
        token_command: Option<Argv>,
    }
}

choice! {
    NotifierKind {
        /// A file, and lines of the daemon's log.
        Log = "log",
        /// `notify-send`, on this machine.
        Desktop = "desktop",
        /// A call to an address: Slack and whatever takes JSON.
        Webhook = "webhook",
        Matrix = "matrix",
    }
}

table! {
    Notify {
        /// By whom people are told, all at the same time.
        to: Vec<NotifierKind>,
        /// When only what cannot wait is told.
        quiet_hours: Option<QuietHours>,
        /// Where these hours hold; see [`super::Config::quiet_zone`] for the default.
        timezone: Option<String>,
        /// Whether what a person has to act on is told in quiet hours.
        urgent_when_quiet: bool,
        /// The same words within so long are told once.
        same_within: Span,
    }
}

table! {
    Webhook {
        /// The address, if it is no secret.
        url: Option<String>,
        /// Variable that holds the address, if it is one.
        url_env: String,
        url_file: Option<PathBuf>,
        /// Variable that holds a token to be shown there.
        token_env: Option<String>,
        /// File that holds the token.
        token_file: Option<PathBuf>,
        /// Program that prints the token.
        token_command: Option<Argv>,
    }
}

table! {
    /// `[budget]`, for all roles together, and `[roles.<role>.budget]`: no key, no limit.
    #[derive(Default)]
    Budget {
        /// Most a session may cost.
        usd_per_session: Option<Usd>,
        /// Most a task may cost.
        usd_per_task: Option<Usd>,
        /// Most that all sessions about an issue may cost together, ever.
        usd_per_issue: Option<Usd>,
        /// Most a day may cost.
        usd_per_day: Option<Usd>,
        /// Most tokens of a task.
        tokens_per_task: Option<u64>,
        /// Most tokens of a day.
        tokens_per_day: Option<u64>,
        /// Most tokens of a task that are not read from a cache.
        fresh_tokens_per_task: Option<u64>,
        /// Most tokens of a day that are not read from a cache.
        fresh_tokens_per_day: Option<u64>,
        /// Most turns of a task's agents.
        turns_per_task: Option<u64>,
        /// Most turns of a day.
        turns_per_day: Option<u64>,
        /// Most sessions of a day that are started because one died. A task has `limits.restarts`.
        restarts_per_day: Option<u64>,
        /// Longest that a task's sessions may run, together.
        time_per_task: Option<Span>,
        /// Longest that the sessions of a day may run, together.
        time_per_day: Option<Span>,
        /// Longest that sessions about an issue may run that tell neither tokens nor money, together.
        unreported_time_per_issue: Option<Span>,
    }
}

table! {
    Schedule {
        /// Where the times hold: the name of a time zone, such as `Europe/Berlin`.
        timezone: String,
        /// Each time is put off by up to this long.
        jitter: Span,
        /// Whether a time that was missed is made up for, once.
        catch_up: bool,
        /// A role whose results were all noise for this long is not asked any more.
        noise_pause: Span,
        /// Formulas that run only if something changed since the last time.
        only_if_changed: Vec<String>,
        /// When formulas run by themselves, as five cron fields each.
        #[serde(default)]
        formulas: BTreeMap<String, String>,
    }
}

pub(super) use {choice, table};
