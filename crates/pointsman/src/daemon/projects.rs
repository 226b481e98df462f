//! The projects that are served, and what stands in the way of the others.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use pointsman_adapters::git::Git;
use pointsman_adapters::git::local_checkout::{Found, LocalCheckout};
use pointsman_adapters::process::find_program;
use pointsman_core::concern;
use pointsman_core::config::trust::{Difference, MEMORY};
use pointsman_core::config::{Config, Trust};
use pointsman_core::ids::ProjectName;
use pointsman_core::log;
use pointsman_core::part::question::{self, Cause, Kind, Question};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{Change, Memory, ProjectRow, Store, Write};

use super::concerns;
use super::engine::{Engine, Input};
use super::served::Served;
use super::{clock, settings};
use crate::init::PROJECTIONS;
use crate::paths::Paths;
use crate::remote::Environment;
use crate::trust::{self, InForce};

/// A configuration file is text that people write; anything larger is something else.
const CONFIG_BYTES: u64 = 1 << 20;

/// Reads and checks a configuration file.
pub fn read_config(path: &Path) -> anyhow::Result<Config> {
    let length = std::fs::metadata(path).with_context(|| words::daemon::project::cannot_read(path))?.len();
    anyhow::ensure!(length <= CONFIG_BYTES, words::daemon::project::config_too_large(path));
    let text = std::fs::read_to_string(path).with_context(|| words::daemon::project::cannot_read(path))?;
    Ok(crate::project::parse(&text, &path.display().to_string())?)
}

/// The settings in force of a registered project: those of its file that a person has accepted.
pub fn accepted_config(store: &Store, row: &ProjectRow) -> anyhow::Result<Config> {
    Ok(settings_in_force(store, row)?.config)
}

fn settings_in_force(store: &Store, row: &ProjectRow) -> anyhow::Result<InForce> {
    let (config, accepted) = (read_config(&row.config_path)?, trust::accepted(store, &row.name)?);
    trust::in_force(accepted.as_ref(), config, &row.checkout)
        .map_err(|error| anyhow::anyhow!(words::trust::does_not_fit(&error.to_string())))
}

/// Accepts the settings of projects that an earlier version registered, which asked nobody.
pub(crate) fn accept_earlier(engine: &mut Engine) -> anyhow::Result<()> {
    let mut changes = Vec::new();
    for row in engine.store().projects()? {
        if trust::accepted(engine.store(), &row.name)?.is_some() {
            continue;
        }
        // One that cannot be read is accepted when it is registered anew.
        let Ok(config) = read_config(&row.config_path) else { continue };
        let accepted = Memory::new(MEMORY, &trust::asked_for(&config, &row.checkout))?;
        let keys = vec![MEMORY.to_owned()];
        let mut change = Change::logged(clock::now(), &row.name, &log::Entry::SettingsChanged { keys });
        change.memories.push(accepted);
        changes.push(change);
    }
    if !changes.is_empty() {
        engine.write(&changes)?;
    }
    Ok(())
}

/// The question about settings that wait for a person; none where nothing waits.
pub(crate) fn trust_concern(engine: &Engine, project: &ProjectName, waiting: &[Difference]) -> Option<Input> {
    let key = concerns::key(project, Kind::Trust);
    let event = match waiting.is_empty() {
        false => concern::Event::raised(Kind::Trust, words::trust::question(project, waiting)),
        true => {
            engine.workflow(&key.clone().into())?;
            concern::Event::Lifted { why: words::trust::ACCEPTED.to_owned() }
        }
    };
    Some(Input::of_concern(key, event))
}

/// Lets CI and gates of a project reach these hosts, as a person decided.
pub(crate) fn allow_hosts(
    engine: &Engine,
    project: &ProjectName,
    hosts: &[String],
    now: Timestamp,
) -> Result<(Trust, Change), pointsman_store::Error> {
    let mut accepted = trust::accepted(engine.store(), project)?.unwrap_or_default();
    accepted.allow(hosts);
    let keys = vec!["sandbox.ci_hosts".to_owned()];
    let mut change = Change::logged(now, project, &log::Entry::SettingsChanged { keys });
    change.memories.push(Memory::new(MEMORY, &accepted)?);
    Ok((accepted, change))
}

/// Accepts the settings that a question showed. If the file asks for something else by now, nobody has seen that.
pub(crate) fn accept_shown(
    engine: &Engine,
    project: &ProjectName,
    asked: &Question,
    now: Timestamp,
) -> anyhow::Result<Change> {
    let row = engine.store().project(project)?.context(words::daemon::project::not_served_any_more())?;
    let waiting = settings_in_force(engine.store(), &row)?.waiting;
    let shown = words::trust::question(project, &waiting);
    let source = asked.source.clone();
    let policy = question::Policy { remind: Duration::ZERO, timeout: Duration::ZERO };
    let fresh = Question::ask(Kind::Trust, Cause::Daemon, source, &shown, &policy, now);
    let is_same = fresh.text() == asked.text();
    anyhow::ensure!(is_same && !waiting.is_empty(), words::trust::CHANGED_MEANWHILE);
    let earlier = trust::accepted(engine.store(), project)?;
    let accepted = trust::asked_for(&read_config(&row.config_path)?, &row.checkout);
    let accepted = accepted.keeping_hosts_of(earlier.as_ref());
    let keys = waiting.into_iter().map(|difference| difference.key).collect();
    let mut change = Change::logged(now, project, &log::Entry::SettingsChanged { keys });
    change.memories.push(Memory::new(MEMORY, &accepted)?);
    Ok(change)
}

/// Registers the project of a configuration file, whose settings a person has seen: its forge is made if need be.
pub(crate) fn add(
    paths: &Paths,
    engine: &mut Engine,
    config_path: &Path,
    shown: Option<&Trust>,
    hosts: &[String],
) -> anyhow::Result<Config> {
    let config_path = std::path::absolute(config_path)?;
    let config = read_config(&config_path)?;
    let checkout = config_path.parent().map(Path::to_owned).unwrap_or_default();
    let accepted = trust::asked_for(&config, &checkout);
    anyhow::ensure!(shown.is_none_or(|shown| *shown == accepted), words::trust::CHANGED_MEANWHILE);
    if let Some(row) = engine.store().project(&config.name)?
        && row.config_path != config_path
        && row.config_path.exists()
    {
        anyhow::bail!(words::daemon::project::name_is_taken(&config.name, &row.config_path));
    }
    if config.forge.kind.is_embedded() {
        crate::embedded_forge::create(paths, &config, &checkout)?;
    }
    let added = log::Entry::ProjectAdded { config_path: config_path.clone() };
    let mut change = Change::logged(clock::now(), &config.name, &added);
    let (name, added_at) = (config.name.clone(), change.at);
    // Whoever removes a project takes back what was allowed to it.
    let earlier = match engine.store().project(&config.name)? {
        Some(_) => trust::accepted(engine.store(), &config.name)?,
        None => None,
    };
    let mut accepted = accepted.keeping_hosts_of(earlier.as_ref());
    accepted.allow(hosts);
    change.memories.push(Memory::new(MEMORY, &accepted)?);
    change.writes.push(Write::ProjectAdded(ProjectRow { name, config_path, checkout, added_at }));
    engine.write(&[change])?;
    Ok(config)
}

/// The projects that could be opened, and why the others could not.
#[derive(Default)]
pub(crate) struct Opened {
    /// The projects that can be served.
    pub served: BTreeMap<ProjectName, Arc<Served>>,
    /// One line for each that cannot, or whose file is wrong.
    pub problems: Vec<String>,
    /// Keys that a changed file sets to something else.
    pub changed: Vec<(ProjectName, Vec<String>)>,
    /// Settings of each project that no person has accepted yet; empty where nothing waits.
    pub waiting: Vec<(ProjectName, Vec<Difference>)>,
    /// Files that were changed and are wrong, so that the settings from before stay in force.
    pub refused: Vec<(ProjectName, String)>,
}

/// Opens every registered project; `before` are those that are open already and unchanged.
pub(crate) fn open_all(
    paths: &Paths,
    git: &Git,
    environment: Environment,
    store: &Store,
    before: &BTreeMap<ProjectName, Arc<Served>>,
) -> anyhow::Result<Opened> {
    let mut opened = Opened::default();
    for row in store.projects()? {
        match open(paths, git, environment, store, &row, before) {
            Ok((served, waiting)) => {
                opened.waiting.push((row.name.clone(), waiting));
                if let Some(known) = before.get(&row.name) {
                    let keys = known.config.changed_keys(&served.config);
                    if !keys.is_empty() {
                        opened.changed.push((row.name.clone(), keys));
                    }
                }
                if !before.contains_key(&row.name) {
                    overlook_projections(git, &row.checkout);
                }
                opened.problems.extend(served.notifiers.problems(&row.name));
                opened.served.insert(row.name, served);
            }
            // A file is often wrong for a moment while somebody edits it. Whatever works goes on.
            Err(error) if before.contains_key(&row.name) => {
                let why = words::daemon::project::settings_refused(&row.name, format!("{error:#}"));
                opened.problems.push(why.clone());
                opened.refused.push((row.name.clone(), why));
                opened.served.insert(row.name.clone(), Arc::clone(&before[&row.name]));
            }
            Err(error) => {
                let problem = words::daemon::project::cannot_be_served(&row.name, format!("{error:#}"));
                tracing::error!("{problem}");
                opened.problems.push(problem);
            }
        }
    }
    Ok(opened)
}

fn open(
    paths: &Paths,
    git: &Git,
    environment: Environment,
    store: &Store,
    row: &ProjectRow,
    before: &BTreeMap<ProjectName, Arc<Served>>,
) -> anyhow::Result<(Arc<Served>, Vec<Difference>)> {
    let InForce { config, waiting } = settings_in_force(store, row)?;
    if let Some(served) = before.get(&config.name) {
        if *served.config == config && served.secrets == settings::secrets(paths, &config) {
            return Ok((Arc::clone(served), waiting));
        }
        require_programs(&row.config_path, &served.config, &config, environment)?;
    }
    Ok((Arc::new(Served::open(paths, git, Arc::new(config), environment)?), waiting))
}

/// Refuses a changed command whose program is not on this machine. A relative one is found in the trees of tasks.
fn require_programs(
    path: &Path,
    before: &Config,
    after: &Config,
    environment: Environment,
) -> anyhow::Result<()> {
    let changed = before.changed_keys(after);
    let commands = [
        ("agent.command", Some(&after.agent.command)),
        ("ci.command", after.ci.command.as_ref()),
        ("merge.gate", after.merge.gate.as_ref()),
        ("review.command", after.review.command.as_ref()),
    ];
    let search = environment("PATH");
    for (key, command) in commands {
        let Some(program) = command.and_then(|words| words.first()) else { continue };
        let relative = program.contains('/') && !program.starts_with('/');
        let there = || find_program(program, search.as_deref(), Path::new("/")).is_some();
        if changed.iter().any(|other| other == key) && !relative && !there() {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let why = words::config::no_such_program(program);
            return Err(Config::mistake(&text, &path.display().to_string(), key, &why).into());
        }
    }
    Ok(())
}

/// Has git overlook what we show in a checkout. Without it nothing breaks; it is only in the way.
fn overlook_projections(git: &Git, checkout: &Path) {
    let overlooked = LocalCheckout::find(git, checkout).and_then(|found| match found {
        Found::Checkout(checkout) => checkout.exclude(PROJECTIONS),
        Found::Bare | Found::Nothing => Ok(()),
    });
    if let Err(error) = overlooked {
        tracing::warn!(checkout = %checkout.display(), %error, "git will list our files there as new");
    }
}
