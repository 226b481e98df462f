//! The configuration as a flat list, for `pointsman config show`.

use super::Config;
use super::document::Document;

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file, or a key of the file that implies it.
    File {
        /// Its line, from 1.
        line: usize,
    },
    Default,
}

/// A key in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub value: String,
    pub origin: Origin,
}

/// Keys and values, tables in alphabetical order after the keys of the root.
pub(super) fn in_force(config: &Config) -> Vec<(String, String)> {
    let mut shown = config.clone();
    shown.merge.gate = config.gate().map(<[String]>::to_vec);
    shown.forge.token_env = config.forge.token_env().map(str::to_owned);
    let table = toml::Table::try_from(&shown).expect("the configuration consists of TOML's own types");
    let mut entries = Vec::new();
    flatten("", &table, &mut entries);
    entries
}

/// The same with the origin of each.
pub(super) fn with_origin(config: &Config, document: &Document<'_>) -> Vec<Entry> {
    let origin = |key: &str| {
        let implied_by = match key {
            "ci.kind" if config.ci.kind.runs_here() => Some("ci.command"),
            "review.mode" => Some("review.command"),
            "agent.kind" => Some("agent.command"),
            "merge.gate" => Some("ci.command"),
            "forge.token_env" => Some("forge.kind"),
            _ => None,
        };
        let line = document.line_of(key).or_else(|| document.line_of(implied_by?));
        line.map_or(Origin::Default, |line| Origin::File { line })
    };
    in_force(config).into_iter().map(|(key, value)| Entry { origin: origin(&key), key, value }).collect()
}

fn flatten(prefix: &str, table: &toml::Table, entries: &mut Vec<(String, String)>) {
    let dotted = |key: &str| if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
    let (tables, values): (Vec<_>, Vec<_>) = table.iter().partition(|(_, value)| value.is_table());
    entries.extend(values.into_iter().map(|(key, value)| (dotted(key), value.to_string())));
    for (key, value) in tables {
        if let toml::Value::Table(inner) = value {
            flatten(&dotted(key), inner, entries);
        }
    }
}
