//! The package registries of a project: those that its lock files and the settings of its tools name, and those that a learning
//! run found. Inside a sandbox each is a read-only mirror at a base address (`mirror`), which the tools are told by variables and,
//! for cargo, by a file of settings.

use core::fmt;
use core::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::mirror::base_path;
use crate::relay::Upstream;

/// A tool that fetches packages and takes the address of its registry from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    Cargo,
    Npm,
    Pip,
    Go,
    Bundler,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cargo, Self::Npm, Self::Pip, Self::Go, Self::Bundler];

    /// The word for it in paths and in entries of a list of hosts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Npm => "npm",
            Self::Pip => "pip",
            Self::Go => "go",
            Self::Bundler => "bundler",
        }
    }

    /// The tool of this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == word)
    }
}

/// The name that cargo's settings have for the registry that is used where a package names none.
const CARGO_DEFAULT: &str = "crates-io";

/// A registry that a tool fetches packages from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Registry {
    pub tool: Tool,
    /// Its address as the tool knows it, without what some tools write before it.
    pub url: String,
    /// The source in cargo's settings that it stands for; none for one that is known by its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Registry {
    /// Reads an entry of a list of hosts, such as `npm+https://packages.example.org/npm/`.
    pub fn parse(entry: &str) -> Option<Self> {
        let (tool, url) = entry.split_once('+')?;
        let source = Some(CARGO_DEFAULT.to_owned());
        Self::at(Tool::named(tool)?, url).map(|one| Self { source: source.filter(|_| one.is_cargo()), ..one })
    }

    fn at(tool: Tool, url: &str) -> Option<Self> {
        Upstream::parse(url).ok()?;
        Some(Self { tool, url: url.to_owned(), source: None })
    }

    fn is_cargo(&self) -> bool {
        self.tool == Tool::Cargo
    }

    /// Whether two are the same, but for the end of the address.
    fn is_same(&self, other: &Self) -> bool {
        self.tool == other.tool && self.url.trim_end_matches('/') == other.url.trim_end_matches('/')
    }

    /// The server of its address.
    pub fn upstream(&self) -> Option<Upstream> {
        Upstream::parse(&self.url).ok()
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.tool.as_str(), self.url)
    }
}

/// Adds registries that are not there yet.
pub fn add(to: &mut Vec<Registry>, more: impl IntoIterator<Item = Registry>) {
    for one in more {
        if !to.iter().any(|known| known.is_same(&one)) {
            to.push(one);
        }
    }
}

/// The order of what names a registry: a setting counts before a lock file, which only says where packages came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    Setting,
    Lock,
}

type Reader = fn(&str) -> Vec<Registry>;

/// The files to look at, at the root of the landed main branch.
const FILES: [(&str, Rank, Reader); 15] = [
    (".cargo/config.toml", Rank::Setting, cargo_settings),
    (".cargo/config", Rank::Setting, cargo_settings),
    (".npmrc", Rank::Setting, |text| after(Tool::Npm, text, &["registry="])),
    (".yarnrc.yml", Rank::Setting, |text| after(Tool::Npm, text, &["npmRegistryServer:"])),
    ("pip.conf", Rank::Setting, |text| after(Tool::Pip, text, &["index-url", "index_url"])),
    ("requirements.txt", Rank::Setting, |text| after(Tool::Pip, text, &["--index-url", "-i "])),
    ("pyproject.toml", Rank::Setting, python_settings),
    ("Pipfile", Rank::Setting, python_settings),
    ("go.env", Rank::Setting, |text| after(Tool::Go, text, &["GOPROXY="])),
    ("Gemfile.lock", Rank::Lock, gems),
    ("Cargo.lock", Rank::Lock, |text| after(Tool::Cargo, text, &["source = \"sparse+"])),
    ("package-lock.json", Rank::Lock, |text| tarballs(text, "\"resolved\":")),
    ("npm-shrinkwrap.json", Rank::Lock, |text| tarballs(text, "\"resolved\":")),
    ("yarn.lock", Rank::Lock, |text| tarballs(text, "resolved ")),
    ("pnpm-lock.yaml", Rank::Lock, |text| tarballs(text, "tarball:")),
];

/// The files that [`registries`] reads.
pub const REGISTRY_FILES: [&str; 15] = {
    let mut names = [""; 15];
    let mut at = 0;
    while at < 15 {
        names[at] = FILES[at].0;
        at += 1;
    }
    names
};

/// Settings of an operator's tools, below the home, with the file of a project that is written alike.
pub const HOME_SETTINGS: [(&str, &str); 6] = [
    (".npmrc", ".npmrc"),
    (".config/pip/pip.conf", "pip.conf"),
    (".pip/pip.conf", "pip.conf"),
    (".cargo/config.toml", ".cargo/config.toml"),
    (".config/go/env", "go.env"),
    (".bundle/config", ".bundle/config"),
];

/// Variables of an operator's environment that name a registry.
pub const REGISTRY_VARIABLES: [(&str, Tool); 5] = [
    ("npm_config_registry", Tool::Npm),
    ("NPM_CONFIG_REGISTRY", Tool::Npm),
    ("PIP_INDEX_URL", Tool::Pip),
    ("GOPROXY", Tool::Go),
    ("BUNDLE_MIRROR__ALL", Tool::Bundler),
];

/// The registries that one of these files names.
pub fn registries(file: &str, text: &str) -> Vec<(Rank, Registry)> {
    let Some((_, rank, read)) = FILES.iter().find(|(name, ..)| *name == file) else { return Vec::new() };
    let mut found = Vec::new();
    add(&mut found, read(text));
    found.into_iter().map(|one| (*rank, one)).collect()
}

/// The registries that a file of an operator's settings names. Inside a sandbox that file is not seen, so what it says of cargo's
/// default registry is said there in its place.
pub fn operator_registries(like: &str, text: &str) -> Vec<Registry> {
    let found = match like {
        ".cargo/config.toml" => operator_cargo(text),
        ".bundle/config" => after(Tool::Bundler, text, &["BUNDLE_MIRROR__ALL:"]),
        _ => registries(like, text).into_iter().map(|(_, one)| one).collect(),
    };
    found.into_iter().take(1).collect()
}

/// The registry behind a variable of the environment.
pub fn variable_registry(tool: Tool, value: &str) -> Option<Registry> {
    let address = value.split([',', '|', ' ']).map(|word| word.trim_start_matches("sparse+"));
    let mut found = address.filter_map(|word| Registry::at(tool, word));
    found.next().map(|one| Registry { source: one.is_cargo().then(|| CARGO_DEFAULT.to_owned()), ..one })
}

/// The addresses behind these words, at most one a line.
fn after(tool: Tool, text: &str, keys: &[&str]) -> Vec<Registry> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let value = |line: &str| {
        let value = keys.iter().find_map(|key| line.strip_prefix(key))?;
        // Lists have commas or bars; `direct` and `off` are no addresses.
        let words = value.split([' ', ',', '|', '"', '\'', '=', '\t']);
        words.filter(|word| word.contains("://")).find_map(|word| Registry::at(tool, word))
    };
    lines.filter_map(value).collect()
}

/// The registries of packages whose addresses lie behind this word: `https://host/path/name/-/name-1.tgz`.
fn tarballs(text: &str, key: &str) -> Vec<Registry> {
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((_, value)) = line.split_once(key) else { continue };
        let address = value.split([' ', '"', '\'', ',', '}', '#']).find(|word| word.contains("://"));
        let base = address.and_then(|address| {
            let (before, _) = address.split_once("/-/")?;
            let (rest, name) = before.rsplit_once('/')?;
            let is_scope = |rest: &str| rest.rsplit('/').next().is_some_and(|last| last.starts_with('@'));
            let scoped = !name.contains('@') && is_scope(rest);
            let base = if scoped { rest.rsplit_once('/')?.0 } else { rest };
            Registry::at(Tool::Npm, &format!("{base}/"))
        });
        add(&mut found, base);
    }
    found
}

/// Sparse registries in cargo's settings: replaced sources, and registries besides the usual one.
fn cargo_settings(text: &str) -> Vec<Registry> {
    let Ok(table) = text.parse::<toml::Table>() else { return Vec::new() };
    let mut found = Vec::new();
    for (name, url) in cargo_sources(&table) {
        add(&mut found, Registry::at(Tool::Cargo, &url).map(|one| Registry { source: Some(name), ..one }));
    }
    let named = table.get("registries").and_then(toml::Value::as_table).into_iter().flatten();
    let addresses = named.filter_map(|(_, one)| sparse(one.get("index")?));
    add(&mut found, addresses.filter_map(|url| Registry::at(Tool::Cargo, &url)));
    found
}

/// The registry that takes the place of cargo's usual one in an operator's settings.
fn operator_cargo(text: &str) -> Vec<Registry> {
    let Ok(table) = text.parse::<toml::Table>() else { return Vec::new() };
    let sources = table.get("source").and_then(toml::Value::as_table);
    let replacement = |name: &str| sources?.get(name)?.get("replace-with")?.as_str();
    let mut name = CARGO_DEFAULT;
    let mut steps = 0;
    // One may stand for another, which stands for a third.
    while let Some(next) = replacement(name).filter(|_| steps < 10) {
        (name, steps) = (next, steps + 1);
    }
    let found = cargo_sources(&table).into_iter().find(|(source, _)| source == name);
    let default = |one| Registry { source: Some(CARGO_DEFAULT.to_owned()), ..one };
    found.and_then(|(_, url)| Registry::at(Tool::Cargo, &url)).map(default).into_iter().collect()
}

fn cargo_sources(table: &toml::Table) -> Vec<(String, String)> {
    let sources = table.get("source").and_then(toml::Value::as_table).into_iter().flatten();
    sources.filter_map(|(name, one)| Some((name.clone(), sparse(one.get("registry")?)?))).collect()
}

fn sparse(value: &toml::Value) -> Option<String> {
    value.as_str()?.strip_prefix("sparse+").map(str::to_owned)
}

/// The index that takes the place of the usual one, in the settings of Python's tools.
fn python_settings(text: &str) -> Vec<Registry> {
    let Ok(table) = text.parse::<toml::Table>() else { return Vec::new() };
    let tool = |name: &str| table.get("tool").and_then(|tools| tools.get(name));
    let own = tool("uv").and_then(|uv| uv.get("index-url")).into_iter();
    let lists = [
        tool("uv").and_then(|uv| uv.get("index")),
        tool("poetry").and_then(|poetry| poetry.get("source")),
        tool("pdm").and_then(|pdm| pdm.get("source")),
        table.get("source"),
    ];
    let listed = lists.into_iter().flatten().filter_map(toml::Value::as_array).flatten();
    let urls = own.chain(listed.filter_map(|one| one.get("url"))).filter_map(toml::Value::as_str);
    urls.filter_map(|url| Registry::at(Tool::Pip, url)).collect()
}

/// The servers of gems; those of repositories have the same word before them.
fn gems(text: &str) -> Vec<Registry> {
    let (mut found, mut is_gems) = (Vec::new(), false);
    for line in text.lines() {
        match line.starts_with(' ') {
            false => is_gems = line == "GEM",
            true if is_gems => {
                let address = line.trim().strip_prefix("remote:").map(str::trim);
                add(&mut found, address.and_then(|url| Registry::at(Tool::Bundler, url)));
            }
            true => {}
        }
    }
    found
}

/// The variables that lead tools to their mirrors. `address` is that of the proxy inside.
pub fn variables(registries: &[Registry], address: &str) -> Vec<(String, String)> {
    let mut set = Vec::new();
    for tool in Tool::ALL {
        let Some(at) = registries.iter().position(|one| one.tool == tool) else { continue };
        let base = format!("{address}{}", base_path(tool, at));
        let own: Vec<(&str, &str)> = match tool {
            // A file has more to say.
            Tool::Cargo => continue,
            Tool::Npm => vec![
                ("npm_config_registry", base.as_str()),
                // Lock files name the address outside, also behind this one.
                ("npm_config_replace_registry_host", "always"),
                // These speak to the registry about other things than packages.
                ("npm_config_audit", "false"),
                ("npm_config_fund", "false"),
                ("npm_config_update_notifier", "false"),
            ],
            Tool::Pip => vec![("PIP_INDEX_URL", base.as_str()), ("PIP_DISABLE_PIP_VERSION_CHECK", "1")],
            Tool::Go => vec![("GOPROXY", base.trim_end_matches('/'))],
            Tool::Bundler => vec![("BUNDLE_MIRROR__ALL", base.as_str())],
        };
        set.extend(own.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    set
}

/// The settings that lead cargo to its mirrors, for the file in its home. Those of a project count more, so nothing that it
/// sets is changed: what it names by itself is replaced once more.
pub fn cargo_file(registries: &[Registry], address: &str) -> Option<String> {
    let (mut text, mut replaced) = (String::new(), Vec::new());
    for (at, registry) in registries.iter().enumerate().filter(|(_, one)| one.is_cargo()) {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let (own, base) = (format!("pointsman-{at}"), base_path(Tool::Cargo, at));
        let of = registry.source.clone().unwrap_or_else(|| format!("pointsman-for-{at}"));
        // A second table of the same name would make the file unusable: the first one counts.
        if replaced.contains(&of) {
            continue;
        }
        let _ = writeln!(text, "[source.{}]", quoted(&of));
        if registry.source.is_none() {
            let _ = writeln!(text, "registry = {}", quoted(&format!("sparse+{}", registry.url)));
        }
        let _ = writeln!(text, "replace-with = {}", quoted(&own));
        let _ = writeln!(text, "[source.{own}]\nregistry = {}", quoted(&format!("sparse+{address}{base}")));
        replaced.push(of);
    }
    (!text.is_empty()).then_some(text)
}
