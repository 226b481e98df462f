//! Trust: the settings of a project that can run, reach, loosen or spend something. A person has seen and accepted them when
//! the project was registered. A later change of one of them waits for a person; all other settings take effect at once.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{Config, Error};
use crate::sandbox::network::PACKAGES_PRESET;
use crate::sandbox::network::registries::Registry;

/// The name under which the accepted settings of a project are remembered.
pub const MEMORY: &str = "trust";

/// The harm that a setting can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// It starts programs.
    Runs,
    /// It names a server, or hands a secret to a program.
    Reaches,
    /// It decides what needs a person, or what a sandbox lets through.
    Loosens,
    Spends,
}

/// The settings that a person accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// Every setting that needs trust, as a dotted key of TOML with its value in TOML.
    keys: BTreeMap<String, String>,
    /// The project's own formulas, by name.
    #[serde(default)]
    formulas: BTreeMap<String, String>,
    /// Hosts that CI and gates asked for and that a person allowed, beside those of the file.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    hosts: BTreeSet<String>,
}

/// A setting that is not as it was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The dotted key, or `formulas/NAME.toml`.
    pub key: String,
    pub power: Power,
    /// The value that was accepted; none if there was none.
    pub before: Option<String>,
    /// The value that the file has now.
    pub after: Option<String>,
}

impl Trust {
    /// The settings of a file and its formulas that need trust.
    pub fn of(config: &Config, formulas: &BTreeMap<String, String>) -> Self {
        let keys = entries(config).into_iter().filter(|(key, _)| power(key).is_some()).collect();
        Self { keys, formulas: formulas.clone(), hosts: BTreeSet::new() }
    }

    /// Allows CI and gates to reach more hosts.
    pub fn allow(&mut self, hosts: &[String]) {
        self.hosts.extend(hosts.iter().cloned());
    }

    /// Whether CI and gates may reach all of these because a person said so.
    pub fn allows(&self, hosts: &[String]) -> bool {
        hosts.iter().all(|host| self.hosts.contains(host))
    }

    /// The same settings, with the hosts that were allowed before.
    #[must_use]
    pub fn keeping_hosts_of(mut self, earlier: Option<&Self>) -> Self {
        self.hosts.extend(earlier.into_iter().flat_map(|earlier| earlier.hosts.iter().cloned()));
        self
    }

    /// The differences between a file and the defaults, which everybody knows.
    pub fn shown(&self) -> Vec<Difference> {
        let defaults = Self::of(&Config::default(), &BTreeMap::new());
        let mut shown = defaults.differences(self);
        // Whoever registers a project wants to know which program will work on it.
        let agent = "agent.command";
        if let Some(command) = self.keys.get(agent).filter(|_| !shown.iter().any(|entry| entry.key == agent))
        {
            let after = Some(command.clone());
            shown.push(Difference { key: agent.to_owned(), power: Power::Runs, before: None, after });
        }
        shown.sort_by(|a, b| (a.power, &a.key).cmp(&(b.power, &b.key)));
        shown
    }

    /// The settings of `now` that nobody has accepted. A limit that is lowered needs nobody.
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let defaults = entries(&Config::default());
        for key in union(&self.keys, &now.keys) {
            let (before, after) = (self.keys.get(key), now.keys.get(key));
            // An earlier version did not know this key, and worked like its default.
            if before.is_none() && after == defaults.get(key) {
                continue;
            }
            let Some(power) = power(key).filter(|_| before != after && !is_lowered(key, before, after))
            else {
                continue;
            };
            let (before, after) = (before.cloned(), after.cloned());
            found.push(Difference { key: key.clone(), power, before, after });
        }
        for name in union(&self.formulas, &now.formulas) {
            let (before, after) = (self.formulas.get(name).cloned(), now.formulas.get(name).cloned());
            if before != after {
                let key = format!("formulas/{name}.toml");
                found.push(Difference { key, power: Power::Runs, before, after });
            }
        }
        found
    }

    /// The settings in force: those of the file, with the accepted value of everything that nobody has accepted yet. An error if
    /// the two do not fit together.
    pub fn in_force(&self, config: &Config) -> Result<Config, Error> {
        let mut config = self.file_in_force(config)?;
        let listed = &mut config.sandbox.ci_hosts;
        let more: Vec<String> = self.hosts.iter().filter(|host| !listed.contains(host)).cloned().collect();
        listed.extend(more);
        // A registry that CI needs is one of the project's, which the preset stands for.
        let registries: Vec<&String> =
            self.hosts.iter().filter(|host| Registry::parse(host).is_some()).collect();
        let of_roles =
            config.roles.all_mut().into_iter().filter_map(|role| role.sandbox.as_mut()?.hosts.as_mut());
        for listed in of_roles.chain([&mut config.sandbox.hosts]) {
            if listed.iter().any(|word| word == PACKAGES_PRESET) {
                let more = registries.iter().filter(|host| !listed.contains(host));
                let more: Vec<String> = more.map(|host| (*host).clone()).collect();
                listed.extend(more);
            }
        }
        Ok(config)
    }

    fn file_in_force(&self, config: &Config) -> Result<Config, Error> {
        let now = Self::of(config, &self.formulas);
        let differences = self.differences(&now);
        if differences.is_empty() {
            return Ok(config.clone());
        }
        let mut table = Table::try_from(config).expect("the configuration consists of TOML's own types");
        for Difference { key, before, .. } in &differences {
            set(&mut table, &split(key), before.as_deref().and_then(value));
        }
        Config::parse(&table.to_string(), "the accepted settings")
    }

    /// The accepted text of one of the project's formulas; none if none of this name was accepted.
    pub fn formula(&self, name: &str) -> Option<&str> {
        self.formulas.get(name).map(String::as_str)
    }

    /// The accepted formulas of the project, by name.
    pub fn formulas(&self) -> &BTreeMap<String, String> {
        &self.formulas
    }
}

/// The harm that a key can do; none for a key that takes effect at once.
pub fn power(key: &str) -> Option<Power> {
    let parts = split(key);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let last = *parts.last()?;
    let is_command = last == "command" || last.ends_with("_command");
    match parts.as_slice() {
        _ if is_command => Some(Power::Runs),
        ["merge", "gate"]
        | ["tree", "setup" | "teardown"]
        | ["agent", "kind"]
        | ["schedule", "formulas", ..] => Some(Power::Runs),
        ["roles", _, "kind" | "schedule" | "enabled"] => Some(Power::Runs),
        ["vault", ..] | ["tree", "copy"] => Some(Power::Reaches),
        [_, "pass_env"] => Some(Power::Reaches),
        ["forge", "kind" | "url" | "repo" | "app_id" | "app_installation"] => Some(Power::Reaches),
        ["woodpecker", "url" | "repo_id"] | ["matrix", "homeserver" | "room"] => Some(Power::Reaches),
        ["webhook", "url"] | ["webhooks", "listen"] => Some(Power::Reaches),
        _ if last.ends_with("_env") || last.ends_with("_file") => Some(Power::Reaches),
        ["sandbox", ..] | ["roles", _, "sandbox", ..] | ["review" | "risk", ..] => Some(Power::Loosens),
        ["merge", "protected" | "outside_pushes"] | ["ci", "kind" | "required"] => Some(Power::Loosens),
        ["dev", "worktree"] | ["matrix", "people"] | ["tree", "ports" | "port_range"] => Some(Power::Loosens),
        ["budget", ..] | ["roles", _, "budget", ..] | ["limits", _] => Some(Power::Spends),
        _ => None,
    }
}

/// Whether a limit is lower than it was: that needs nobody's yes.
fn is_lowered(key: &str, before: Option<&String>, after: Option<&String>) -> bool {
    let number = |value: Option<&String>| value.and_then(|value| value.parse::<u64>().ok());
    match (number(before), number(after)) {
        (Some(before), Some(after)) => key.starts_with("limits.") && after < before,
        _ => false,
    }
}

fn union<'m>(a: &'m BTreeMap<String, String>, b: &'m BTreeMap<String, String>) -> Vec<&'m String> {
    let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Every key of a configuration with its value.
fn entries(config: &Config) -> BTreeMap<String, String> {
    let table = Table::try_from(config).expect("the configuration consists of TOML's own types");
    let mut found = BTreeMap::new();
    flatten("", &table, &mut found);
    found
}

fn flatten(prefix: &str, table: &Table, found: &mut BTreeMap<String, String>) {
    for (part, value) in table {
        let part = if is_bare(part) { part.clone() } else { format!("\"{part}\"") };
        let key = if prefix.is_empty() { part } else { format!("{prefix}.{part}") };
        match value {
            Value::Table(inner) => flatten(&key, inner, found),
            value => drop(found.insert(key, value.to_string())),
        }
    }
}

/// Whether a part of a key needs no quotes. One with a quote in it keeps it, and is then only ever compared.
fn is_bare(part: &str) -> bool {
    !part.is_empty() && !part.contains('.')
}

/// The parts of a dotted key.
fn split(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in key.chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            c => parts.last_mut().expect("there is a first part").push(c),
        }
    }
    parts
}

fn value(text: &str) -> Option<Value> {
    format!("value = {text}").parse::<Table>().ok()?.remove("value")
}

/// Sets a value, or takes it out with every table that is empty then.
fn set(table: &mut Table, parts: &[String], value: Option<Value>) {
    match (parts, value) {
        ([], _) => {}
        ([last], Some(value)) => drop(table.insert(last.clone(), value)),
        ([last], None) => drop(table.remove(last)),
        ([first, rest @ ..], value) => {
            let inner = table.entry(first.clone()).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(inner) = inner else { return };
            set(inner, rest, value);
            if inner.is_empty() {
                table.remove(first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(&format!("name = \"shop\"\n{text}"), "pointsman.toml").unwrap()
    }

    fn trust(text: &str) -> Trust {
        Trust::of(&config(text), &BTreeMap::new())
    }

    #[test]
    fn a_key_that_an_earlier_version_did_not_know_is_no_change_while_it_has_its_default() {
        let mut earlier = trust("");
        earlier.keys.retain(|key, _| !key.starts_with("risk."));
        assert!(earlier.keys.len() < trust("").keys.len());
        assert_eq!(earlier.differences(&trust("")), []);
        let looser = earlier.differences(&trust("risk.sample = 0"));
        assert_eq!(looser.iter().map(|found| found.key.as_str()).collect::<Vec<_>>(), ["risk.sample"]);
        let in_force = earlier.in_force(&config("risk.sample = 0")).unwrap();
        assert_eq!(in_force.risk.sample, Config::default().risk.sample);
    }

    #[test]
    fn hosts_that_a_person_allowed_are_added_to_the_list_and_outlive_a_new_acceptance() {
        let mut accepted = trust("");
        accepted.allow(&["registry.example.org:443".to_owned()]);
        let file = config("sandbox.ci_hosts = [\"packages\"]");
        let in_force = trust("sandbox.ci_hosts = [\"packages\"]").keeping_hosts_of(Some(&accepted));
        assert_eq!(
            in_force.in_force(&file).unwrap().sandbox.ci_hosts,
            ["packages", "registry.example.org:443"]
        );
        assert!(in_force.differences(&Trust::of(&file, &BTreeMap::new())).is_empty(), "nothing waits");
        assert!(in_force.allows(&["registry.example.org:443".to_owned()]));
        assert!(!in_force.allows(&["other.example.org:443".to_owned()]));
    }

    /// Every setting of the contract's list: before, after, the key that waits, and its power.
    #[test]
    fn what_can_run_reach_loosen_or_spend_waits_for_a_person() {
        use Power::{Loosens, Reaches, Runs, Spends};
        let rows = [
            ("ci.command = [\"./a\"]", "ci.command = [\"./b\"]", "ci.command", Runs),
            ("", "agent.command = [\"sh\", \"evil\"]", "agent.command", Runs),
            ("", "roles.review.command = [\"x\"]", "roles.review.command", Runs),
            ("", "forge.token_command = [\"steal\"]", "forge.token_command", Runs),
            ("", "merge.gate = [\"true\"]", "merge.gate", Runs),
            ("", "tree.setup = [\"npm\", \"ci\"]", "tree.setup", Runs),
            ("tree.teardown = [\"./a\"]", "tree.teardown = [\"./b\"]", "tree.teardown", Runs),
            ("", "tree.copy = [\".env\"]", "tree.copy", Reaches),
            ("", "tree.ports = 3", "tree.ports", Loosens),
            ("", "tree.port_range = \"5000-5001\"", "tree.port_range", Loosens),
            ("", "schedule.formulas.tidy = \"0 6 * * *\"", "schedule.formulas.tidy", Runs),
            ("", "roles.gardener.schedule = \"* * * * *\"", "roles.gardener.schedule", Runs),
            ("", "roles.gardener.enabled = true", "roles.gardener.enabled", Runs),
            ("", "agent.pass_env = [\"AWS_SECRET\"]", "agent.pass_env", Reaches),
            ("", "ci.pass_env = [\"AWS_SECRET\"]", "ci.pass_env", Reaches),
            ("", "forge.token_file = \"/etc/shadow\"", "forge.token_file", Reaches),
            ("", "review.token_env = \"HOME\"", "review.token_env", Reaches),
            ("", "webhooks.secret_env = \"X\"", "webhooks.secret_env", Reaches),
            ("", "matrix.homeserver = \"https://evil.example\"", "matrix.homeserver", Reaches),
            ("", "webhook.url = \"https://evil.example\"", "webhook.url", Reaches),
            ("", "vault.auto_approve = false", "vault.auto_approve", Reaches),
            ("", "vault.hosts = [\"evil.example\"]", "vault.hosts", Reaches),
            ("", "sandbox.mode = \"off\"", "sandbox.mode", Loosens),
            ("", "roles.action.sandbox.mode = \"off\"", "roles.action.sandbox.mode", Loosens),
            ("", "review.mode = \"none\"", "review.mode", Loosens),
            ("", "merge.protected = []", "merge.protected", Loosens),
            ("", "merge.outside_pushes = \"pause\"", "merge.outside_pushes", Loosens),
            ("", "dev.worktree = \"linked\"", "dev.worktree", Loosens),
            ("ci.command = [\"./a\"]", "", "ci.kind", Loosens),
            ("", "budget.usd_per_issue = 9000.0", "budget.usd_per_issue", Spends),
            ("", "roles.dev.budget = 50.0", "roles.dev.budget.usd_per_session", Spends),
            ("", "limits.session_issues = 300", "limits.session_issues", Spends),
        ];
        for (before, after, key, power) in rows {
            let (trusted, now) = (trust(before), config(after));
            let differences = trusted.differences(&Trust::of(&now, &BTreeMap::new()));
            let found = differences.iter().find(|difference| difference.key == key);
            assert!(found.is_some_and(|found| found.power == power), "{after}: {differences:?}");
            let in_force = trusted.in_force(&now).unwrap_or_else(|error| panic!("{after}: {error}"));
            assert!(trusted.differences(&Trust::of(&in_force, &BTreeMap::new())).is_empty(), "{after}");
            assert_eq!(in_force, config(before), "{after}");
        }
    }

    #[test]
    fn everything_else_takes_effect_at_once() {
        let rows = [
            "dev.concurrency = 4",
            "tree.free_disk = \"9GB\"",
            "timing.ci_timeout = \"5m\"",
            "merge.strategy = \"batch\"",
            "pr.checklist = [\"tests\"]",
            "limits.session_issues = 1",
            "notify.same_within = \"1h\"",
            "roles.review.model = \"opus\"",
            "context.low = 0.5",
            "merge.union = [\"CHANGELOG.md\"]",
            "variables.team = \"fruit\"",
        ];
        for text in rows {
            let (trusted, now) = (trust(""), config(text));
            assert_eq!(trusted.differences(&Trust::of(&now, &BTreeMap::new())), [], "{text}");
            assert_eq!(trusted.in_force(&now).unwrap(), now, "{text}");
        }
    }

    #[test]
    fn the_rest_of_a_changed_file_holds_beside_the_accepted_values() {
        let trusted = trust("ci.command = [\"./ci.sh\"]\nlimits.session_issues = 5");
        let now = config(
            "dev.concurrency = 7\nagent.command = [\"evil\"]\nlimits.session_issues = 2\n\
             [vault.types.deploy]\ncommand = [\"/bin/evil\"]\n[schedule.formulas]\n\"a.b\" = \"0 6 * * *\"",
        );
        let in_force = trusted.in_force(&now).unwrap();
        assert_eq!(in_force.dev.concurrency, 7);
        assert_eq!(in_force.limits.session_issues, 2, "lower than what was accepted");
        assert_eq!(in_force.ci.command.as_deref(), Some(&["./ci.sh".to_owned()][..]));
        assert_eq!(in_force.agent.command, Config::default().agent.command);
        assert!(in_force.vault.types.is_empty() && in_force.schedule.formulas.is_empty());
    }

    #[test]
    fn formulas_are_accepted_by_their_text() {
        let accepted = BTreeMap::from([("tidy".to_owned(), "one".to_owned())]);
        let now = BTreeMap::from([("tidy".to_owned(), "two".to_owned()), ("new".to_owned(), "x".to_owned())]);
        let trusted = Trust::of(&config(""), &accepted);
        let found = trusted.differences(&Trust::of(&config(""), &now));
        let keys: Vec<&str> = found.iter().map(|difference| difference.key.as_str()).collect();
        assert_eq!(keys, ["formulas/new.toml", "formulas/tidy.toml"]);
        assert_eq!((trusted.formula("tidy"), trusted.formula("new")), (Some("one"), None));
    }

    #[test]
    fn registering_shows_what_differs_from_the_defaults_and_the_agent() {
        let shown = trust("ci.command = [\"./ci.sh\"]\nsandbox.mode = \"off\"").shown();
        let keys: Vec<&str> = shown.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["agent.command", "ci.command", "ci.kind", "sandbox.mode"]);
    }

    #[test]
    fn what_is_stored_reads_back() {
        let trusted = trust("ci.command = [\"./ci.sh\", \"a \\\"b\\\"\"]");
        let text = serde_json::to_string(&trusted).unwrap();
        assert_eq!(serde_json::from_str::<Trust>(&text).unwrap(), trusted);
    }
}
