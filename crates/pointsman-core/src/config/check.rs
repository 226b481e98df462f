//! Rules beyond the types: names, commands, and keys that only make sense together.

mod vault;

use std::path::Component;

use super::document::Document;
use super::{
    Config, Error, ForgeHome, MergeEngine, NotifierKind, RiskReviewer, RiskRule, RiskWhen, Span, branch,
    sections::Argv,
};
use crate::board;
use crate::known_secrets::{is_fingerprint, named_fingerprint};
use crate::sandbox::network::is_entry;
use crate::timetable::Cron;
use crate::words;

/// Nobody gets more people to look at one change.
const MAX_APPROVALS: u32 = 10;
/// Most tasks or checks at the same time.
const MAX_CONCURRENCY: u32 = 1000;

/// Waits that may be nothing at all; every other duration of zero would spin or give up at once.
const MAY_BE_ZERO: [&str; 6] =
    ["check_backoff", "done_grace", "restart_backoff", "restart_backoff_max", "start_grace", "stop_grace"];

/// Variables that hold credentials of services by default, and so never reach an agent.
const CREDENTIALS: [&str; 6] =
    ["CODEBERG_TOKEN", "REVIEW_BOT_TOKEN", "WOODPECKER_TOKEN", "MATRIX_TOKEN", "GITHUB_TOKEN", "WEBHOOK_URL"];

/// Longest name of a room or a person on Matrix.
const MATRIX_NAME: usize = 255;

/// Variables that Pointsman sets for an agent itself.
const OURS: [&str; 3] = ["PHASE_FILE", "PROJECT_NAME", "ISSUE"];

/// The first thing that is wrong, if anything is.
pub(super) fn all(config: &Config, document: &Document<'_>) -> Result<(), Error> {
    let check = Check { config, document };
    check.branches()?;
    check.commands()?;
    check.environment()?;
    check.services()?;
    check.notifiers()?;
    check.roles()?;
    check.risk()?;
    check.hosts()?;
    check.numbers()?;
    check.vault()?;
    check.schedule()?;
    check.variables()?;
    check.lines()
}

/// What this version cannot do yet, a sentence each.
pub(super) fn unsupported(config: &Config) -> Vec<String> {
    let unkept = config.forge.board.as_ref().filter(|_| !config.forge.kind.capabilities().board);
    unkept.into_iter().map(|board| words::config::unsupported_board(board)).collect()
}

struct Check<'c> {
    config: &'c Config,
    document: &'c Document<'c>,
}

impl Check<'_> {
    fn fail(&self, key: &str, why: impl std::fmt::Display) -> Result<(), Error> {
        Err(self.wrong(key, why))
    }

    fn wrong(&self, key: &str, why: impl std::fmt::Display) -> Error {
        self.document.error_at(key, words::config::wrong_value(key, why))
    }

    fn branches(&self) -> Result<(), Error> {
        let Config { primary_branch, dev, .. } = self.config;
        if let Some(why) = branch::invalid_branch(primary_branch) {
            return self.fail("primary_branch", words::config::impossible_branch(why));
        }
        if let Some(why) = branch::invalid_template(&dev.branch, primary_branch) {
            return self.fail("dev.branch", why);
        }
        let plain =
            dev.phase_dir.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if !dev.phase_dir.is_absolute()
            || !plain
            || dev.phase_dir.to_string_lossy().contains(char::is_control)
        {
            return self.fail("dev.phase_dir", words::config::NOT_A_PLAIN_PATH);
        }
        Ok(())
    }

    fn commands(&self) -> Result<(), Error> {
        let Config {
            ci,
            agent,
            review,
            merge,
            forge,
            woodpecker,
            webhook,
            webhooks,
            matrix,
            roles,
            tree,
            ..
        } = self.config;
        if ci.kind.runs_here() && ci.command.is_none() {
            return Err(self
                .wrong("ci.kind", words::config::CI_COMMAND_MISSING)
                .hint(words::config::CI_COMMAND_MISSING_HINT));
        }
        if !ci.kind.tests_commits() && ci.command.is_some() {
            return Err(self
                .wrong("ci.command", words::config::CI_COMMAND_UNUSED)
                .hint(words::config::CI_COMMAND_UNUSED_HINT));
        }
        self.command("agent.command", Some(&agent.command))?;
        let optional = [
            ("ci.command", &ci.command),
            ("review.command", &review.command),
            ("merge.gate", &merge.gate),
            ("forge.token_command", &forge.token_command),
            ("review.token_command", &review.token_command),
            ("woodpecker.token_command", &woodpecker.token_command),
            ("webhooks.secret_command", &webhooks.secret_command),
            ("matrix.token_command", &matrix.token_command),
            ("webhook.token_command", &webhook.token_command),
        ];
        for (key, command) in optional {
            self.command(key, command.as_ref())?;
        }
        for (key, command) in [("tree.setup", &tree.setup), ("tree.teardown", &tree.teardown)] {
            self.command(key, Some(command).filter(|command| !command.is_empty()))?;
        }
        for (name, role) in roles.iter() {
            self.command(&format!("roles.{name}.command"), role.command.as_ref())?;
        }
        Ok(())
    }

    fn command(&self, key: &str, command: Option<&Argv>) -> Result<(), Error> {
        let Some(command) = command else { return Ok(()) };
        match command.first() {
            None => self.fail(key, words::config::COMMAND_EMPTY),
            Some(program) if program.trim().is_empty() => self.fail(key, words::config::PROGRAM_EMPTY),
            Some(_) if command.iter().any(|part| part.contains('\0')) => {
                self.fail(key, words::config::COMMAND_WITH_NUL)
            }
            Some(_) => Ok(()),
        }
    }

    fn environment(&self) -> Result<(), Error> {
        let Config { agent, ci, forge, review, woodpecker, webhook, webhooks, matrix, .. } = self.config;
        let holders = [
            ("forge.token_env", forge.token_env()),
            ("review.token_env", Some(review.token_env.as_str())),
            ("woodpecker.token_env", Some(woodpecker.token_env.as_str())),
            ("webhooks.secret_env", Some(webhooks.secret_env.as_str())),
            ("matrix.token_env", Some(matrix.token_env.as_str())),
            ("webhook.url_env", Some(webhook.url_env.as_str())),
            ("webhook.token_env", webhook.token_env.as_deref()),
        ];
        for (key, name) in holders {
            // The value is not repeated: people put the token itself here.
            if name.is_some_and(|name| !is_variable(name)) {
                return self.fail(key, words::config::NOT_A_VARIABLE);
            }
        }
        let to_agents = agent.pass_env.iter().map(|name| ("agent.pass_env", name));
        // CI runs what a branch brings.
        for (key, name) in to_agents.chain(ci.pass_env.iter().map(|name| ("ci.pass_env", name))) {
            if !is_variable(name) {
                return self.fail(key, words::config::not_a_variable(name));
            }
            let holds_token = holders.iter().any(|(_, holder)| *holder == Some(name.as_str()));
            if holds_token || CREDENTIALS.contains(&name.as_str()) {
                return self.fail(key, words::config::credential_passed_on(name));
            }
            if OURS.contains(&name.as_str()) || name.starts_with("POINTSMAN_") {
                return self.fail(key, words::config::variable_of_ours(name));
            }
        }
        Ok(())
    }

    fn services(&self) -> Result<(), Error> {
        let Config { forge, woodpecker, webhook, webhooks, matrix, .. } = self.config;
        let can = forge.kind.capabilities();
        if can.home == ForgeHome::Repository && !forge.url.as_deref().is_some_and(is_repository) {
            return self.fail("forge.url", words::config::NOT_A_REPOSITORY);
        }
        let merge = &self.config.merge;
        let asks_the_forge = merge.engine != MergeEngine::Pointsman || !merge.label.is_empty();
        if asks_the_forge && !can.merges {
            return self.fail("merge.engine", words::config::FORGE_DOES_NOT_MERGE);
        }
        if can.home == ForgeHome::Server {
            for (key, value) in [("url", &forge.url), ("repo", &forge.repo)] {
                let known = key == "url" && !can.needs_url;
                if value.is_none() && !known {
                    let why = words::config::forge_key_missing(key);
                    return Err(self.wrong("forge.kind", why).hint(words::config::FORGE_ADDRESS_HINT));
                }
            }
        }
        if self.config.ci.kind.capabilities().pipelines {
            let lacking = match (&woodpecker.url, woodpecker.repo_id, &forge.repo) {
                (None, ..) => Some(words::config::WOODPECKER_URL_MISSING),
                (Some(_), None, None) => Some(words::config::WOODPECKER_REPO_MISSING),
                (Some(_), ..) => None,
            };
            if let Some(why) = lacking {
                return self.fail("ci.kind", why);
            }
        }
        let files = [
            ("forge.token_file", &forge.token_file),
            ("forge.app_key_file", &forge.app_key_file),
            ("review.token_file", &self.config.review.token_file),
            ("woodpecker.token_file", &woodpecker.token_file),
            ("webhooks.secret_file", &webhooks.secret_file),
            ("matrix.token_file", &matrix.token_file),
            ("webhook.token_file", &webhook.token_file),
            ("webhook.url_file", &webhook.url_file),
        ];
        for (key, file) in files {
            if file.as_ref().is_some_and(|file| !file.is_absolute()) {
                return self.fail(key, words::config::NOT_ABSOLUTE);
            }
        }
        let server = if can.home == ForgeHome::Repository { &None } else { &forge.url };
        let addresses = [
            ("forge.url", server),
            ("woodpecker.url", &woodpecker.url),
            ("matrix.homeserver", &matrix.homeserver),
            ("webhook.url", &webhook.url),
        ];
        for (key, address) in addresses {
            let Some(address) = address else { continue };
            let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
            let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or("");
            if host.is_empty() || address.contains(|c: char| c.is_control() || c.is_whitespace()) {
                return self.fail(key, words::config::NOT_AN_ADDRESS);
            }
            if host.contains('@') {
                return self.fail(key, words::config::PASSWORD_IN_ADDRESS);
            }
        }
        if let Some(repo) = &forge.repo {
            let part = |part: &str| {
                !part.is_empty()
                    && !part.starts_with(['.', '-'])
                    && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
            };
            let parts: Vec<&str> = repo.split('/').collect();
            let is_long = parts.len() == 2 || (parts.len() > 2 && forge.kind.capabilities().groups);
            if !is_long || !parts.into_iter().all(part) {
                return self.fail("forge.repo", words::config::NOT_OWNER_AND_NAME);
            }
        }
        Ok(())
    }

    fn hosts(&self) -> Result<(), Error> {
        let Config { sandbox, roles, .. } = self.config;
        let of_role = |(name, hosts): (String, Vec<String>)| (format!("roles.{name}.sandbox.hosts"), hosts);
        let own = roles
            .iter()
            .filter_map(|(name, role)| Some((name.to_string(), role.sandbox.as_ref()?.hosts.clone()?)));
        let general = [("sandbox.hosts", &sandbox.hosts), ("sandbox.ci_hosts", &sandbox.ci_hosts)];
        let general = general.into_iter().map(|(key, hosts)| (key.to_owned(), hosts.clone()));
        for (key, hosts) in general.chain(own.map(of_role)) {
            if let Some(entry) = hosts.iter().find(|entry| !is_entry(entry)) {
                return self.fail(&key, words::sandbox::not_a_host(entry));
            }
        }
        Ok(())
    }

    fn notifiers(&self) -> Result<(), Error> {
        let Config { notify, matrix, .. } = self.config;
        if self.config.tells(NotifierKind::Matrix) {
            for (key, value) in [("homeserver", &matrix.homeserver), ("room", &matrix.room)] {
                if value.is_none() {
                    let why = words::config::matrix_key_missing(key);
                    return Err(self.wrong("notify.to", why).hint(words::config::MATRIX_HINT));
                }
            }
        }
        // A room's id need not name a server; an alias does.
        let room = |room: &str| {
            let name = room.strip_prefix('!').or_else(|| room.strip_prefix('#'));
            name.is_some_and(|name| !name.is_empty())
                && room.len() <= MATRIX_NAME
                && (!room.starts_with('#') || room.contains(':'))
                && !room.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        if !matrix.room.as_deref().is_none_or(room) {
            return self.fail("matrix.room", words::config::NOT_A_ROOM);
        }
        let person = |person: &String| {
            let parts = person.strip_prefix('@').and_then(|rest| rest.split_once(':'));
            parts.is_some_and(|(name, server)| !name.is_empty() && !server.is_empty())
                && person.len() <= MATRIX_NAME
                && person.bytes().all(|b| b.is_ascii_graphic())
        };
        if !matrix.people.iter().all(person) {
            return self.fail("matrix.people", words::config::NOT_ALL_MATRIX_PEOPLE);
        }
        if let Some(zone) = &notify.timezone
            && !is_zone(zone)
        {
            return self.fail("notify.timezone", words::config::NOT_A_TIME_ZONE);
        }
        Ok(())
    }

    fn roles(&self) -> Result<(), Error> {
        let Config { roles, .. } = self.config;
        if roles.review.enabled && !self.config.review_agent() {
            return self.fail("roles.review.enabled", words::config::REVIEW_AGENT_UNUSED);
        }
        if self.config.review_agent() && !roles.review.enabled {
            return self.fail("roles.review.enabled", words::config::REVIEW_AGENT_MISSING);
        }
        for (name, role) in self.config.roles.iter() {
            if !role.model.as_ref().is_none_or(|model| is_model(model)) {
                return self.fail(&format!("roles.{name}.model"), words::config::NOT_A_MODEL);
            }
            if let Some(Err(why)) = role.schedule.as_deref().map(Cron::parse) {
                return self.fail(&format!("roles.{name}.schedule"), why);
            }
        }
        Ok(())
    }

    /// A class is looked at by no fewer than a lower one, and what no rule understood is looked at by a person.
    fn risk(&self) -> Result<(), Error> {
        let risk = &self.config.risk;
        let reviewers = risk.reviewers();
        for pair in reviewers.windows(2) {
            let [(lower, fewer), (key, more)] = pair else { continue };
            if more < fewer {
                return self.fail(key, words::config::looked_at_by_fewer(lower));
            }
        }
        if let Some((key, _)) = reviewers[2..].iter().find(|(_, who)| *who < RiskReviewer::Person) {
            return self.fail(key, words::config::NOT_A_PERSON);
        }
        if risk.sample > 100 {
            return self.fail("risk.sample", words::config::not_between(0, 100));
        }
        if risk.rules.iter().any(|rule| !is_risk_rule(rule)) {
            return self.fail("risk.rules", words::config::NOT_A_RISK_RULE);
        }
        Ok(())
    }

    fn numbers(&self) -> Result<(), Error> {
        let Config { ci, dev, merge, review, timing, limits, vault, .. } = self.config;
        let approvals = [
            ("review.approvals", review.approvals),
            ("review.protected_approvals", review.protected_approvals),
            ("vault.high_risk_approvals", vault.high_risk_approvals),
        ];
        if let Some((key, _)) = approvals.into_iter().find(|(_, n)| !(1..=MAX_APPROVALS).contains(n)) {
            return self.fail(key, words::config::number_of_approvals(MAX_APPROVALS));
        }
        if ci.poll == Span::default() {
            return self.fail("ci.poll", words::config::ZERO_DURATION);
        }
        let durations = toml::Table::try_from(timing).expect("durations are written as text");
        let zero = Span::default().to_string();
        for (key, value) in &durations {
            if value.as_str() == Some(&zero) && !MAY_BE_ZERO.contains(&key.as_str()) {
                return self.fail(&format!("timing.{key}"), words::config::ZERO_DURATION);
            }
        }
        let (first, longest) = (timing.restart_backoff, timing.restart_backoff_max);
        if first > longest && self.document.has("timing.restart_backoff") {
            return self.fail("timing.restart_backoff", words::config::backoff_too_long(longest));
        }
        if first > longest {
            return self.fail("timing.restart_backoff_max", words::config::backoff_too_short(first));
        }
        let counts = [
            ("ci.concurrency", ci.concurrency),
            ("dev.concurrency", dev.concurrency),
            ("review.concurrency", review.concurrency),
            ("merge.batch_size", merge.batch_size),
            ("merge.depth", merge.depth),
        ];
        for (key, value) in counts {
            if !(1..=MAX_CONCURRENCY).contains(&value) {
                return self.fail(key, words::config::not_between(1, MAX_CONCURRENCY));
            }
        }
        let at_least_one = [
            ("limits.idle_looks", limits.idle_looks),
            ("limits.delivery_tries", limits.delivery_tries),
            ("limits.pane_lines", limits.pane_lines),
        ];
        for (key, value) in at_least_one {
            if value == 0 {
                return self.fail(key, words::config::ZERO);
            }
        }
        let context = &self.config.context;
        if context.low > context.medium {
            return self.fail("context.low", words::config::above("medium", context.medium));
        }
        if context.medium > context.high {
            return self.fail("context.medium", words::config::above("high", context.high));
        }
        let tree = &self.config.tree;
        if usize::from(tree.ports) > tree.port_range.count() {
            return self.fail("tree.ports", words::config::more_ports_than(tree.port_range));
        }
        if self.config.health.max_disk_percent > 100 {
            return self.fail("health.max_disk_percent", words::config::NOT_A_PERCENTAGE);
        }
        Ok(())
    }

    fn schedule(&self) -> Result<(), Error> {
        let schedule = &self.config.schedule;
        if !is_zone(&schedule.timezone) {
            return self.fail("schedule.timezone", words::config::NOT_A_TIME_ZONE);
        }
        for (name, cron) in &schedule.formulas {
            let key = format!("schedule.formulas.{name}");
            if !crate::vault::is_name(name) {
                return self.fail(&key, words::config::NOT_A_FORMULA);
            }
            if let Err(why) = Cron::parse(cron) {
                return self.fail(&key, why);
            }
        }
        Ok(())
    }

    fn variables(&self) -> Result<(), Error> {
        for name in self.config.variables.keys() {
            if !crate::formula::is_variable(name) {
                return self.fail(&format!("variables.{name}"), words::config::NOT_A_FORMULA_VARIABLE);
            }
        }
        Ok(())
    }

    fn lines(&self) -> Result<(), Error> {
        let Config { ci, pr, merge, review, forge, .. } = self.config;
        let one_line = |text: &str| !text.trim().is_empty() && !text.contains(char::is_control);
        if !ci.required.iter().all(|name| one_line(name)) {
            return self.fail("ci.required", words::config::NOT_ALL_CHECKS);
        }
        if !pr.checklist.iter().all(|line| one_line(line)) {
            return self.fail("pr.checklist", words::config::NOT_ALL_LINES);
        }
        // Each becomes a line of git's attributes: nothing in it may end the pattern or begin another one.
        let pattern = |glob: &String| {
            !glob.is_empty()
                && !glob.starts_with(['!', '#', '/', '-', '['])
                && !glob.contains("..")
                && glob.chars().all(|c| c.is_alphanumeric() || "._-/*?+@".contains(c))
        };
        if !merge.union.iter().all(pattern) {
            return self.fail("merge.union", words::config::NOT_ALL_UNION_PATHS);
        }
        if !self.config.tree.copy.iter().all(pattern) {
            return self.fail("tree.copy", words::config::NOT_ALL_COPIED_PATHS);
        }
        if !merge.protected.iter().all(pattern) {
            return self.fail("merge.protected", words::config::NOT_ALL_PROTECTED_PATHS);
        }
        let allowed = |entry: &String| match named_fingerprint(entry) {
            Some(hash) => is_fingerprint(hash),
            None => pattern(entry),
        };
        if !review.secrets_allowed.iter().all(allowed) {
            return self.fail("review.secrets_allowed", words::config::NOT_ALL_ALLOWED_SECRETS);
        }
        if !review.protected.iter().all(pattern) {
            return self.fail("review.protected", words::config::NOT_ALL_PROTECTED_PATHS);
        }
        let plain = |id: &String| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
        if !forge.app_id.as_ref().is_none_or(plain) {
            return self.fail("forge.app_id", words::config::NOT_AN_APP_ID);
        }
        if forge.app_id.is_some() != forge.app_key_file.is_some() {
            return self.fail("forge.app_key_file", words::config::APP_INCOMPLETE);
        }
        if forge.app_id.is_some() && !forge.kind.capabilities().apps {
            return self.fail("forge.app_id", words::config::APP_ELSEWHERE);
        }
        if forge.board.as_deref().is_some_and(|board| board::address(board).is_none()) {
            return self.fail("forge.board", words::config::NOT_A_BOARD);
        }
        Ok(())
    }
}

/// Whether this can be the name of a time zone; which there are, the system knows.
fn is_zone(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "/_+-".contains(c))
}

/// Whether this can be the name of a model. It becomes an argument of the agent program: it must not look like an option.
pub(crate) fn is_model(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('-')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:/@[]-".contains(&b))
}

/// Whether git could take this for a repository and for nothing else.
fn is_repository(address: &str) -> bool {
    let plain = !address.contains(|c: char| c.is_control()) && !address.starts_with('-');
    // `ext::` and its like run programs.
    plain
        && !address.contains("::")
        && (address.starts_with('/') || address.contains("://") || address.contains(':'))
}

/// Whether this can be the name of an environment variable.
fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.len() <= 128
}

/// Whether a rule has what it looks at, and nothing that it would ignore.
fn is_risk_rule(rule: &RiskRule) -> bool {
    let paths =
        rule.paths.as_ref().map(|paths| !paths.is_empty() && paths.iter().all(|path| !path.is_empty()));
    match rule.when {
        RiskWhen::Paths | RiskWhen::OtherPaths => paths == Some(true) && rule.limit.is_none(),
        RiskWhen::Lines | RiskWhen::Unproven => paths.is_none() && rule.limit.is_some(),
        RiskWhen::Reverted => paths.is_none(),
        RiskWhen::Tests | RiskWhen::Dependencies | RiskWhen::Permissions | RiskWhen::Findings => {
            paths.is_none() && rule.limit.is_none()
        }
    }
}
