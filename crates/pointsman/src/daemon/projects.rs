//! The projects that are served, and what stands in the way of the others.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use pointsman_adapters::git::Git;
use pointsman_adapters::git::local_checkout::{Found, LocalCheckout};
use pointsman_adapters::process::find_program;
use pointsman_core::config::Config;
use pointsman_core::ids::ProjectName;
use pointsman_core::log;
use pointsman_core::words;
use pointsman_store::{Change, ProjectRow, Store, Write};

use super::engine::Engine;
use super::served::Served;
use super::{clock, settings};
use crate::init::PROJECTIONS;
use crate::paths::Paths;
use crate::remote::Environment;

/// A configuration file is text that people write; anything larger is something else.
const CONFIG_BYTES: u64 = 1 << 20;

/// Reads and checks a configuration file.
pub fn read_config(path: &Path) -> anyhow::Result<Config> {
    let length = std::fs::metadata(path).with_context(|| words::daemon::project::cannot_read(path))?.len();
    anyhow::ensure!(length <= CONFIG_BYTES, words::daemon::project::config_too_large(path));
    let text = std::fs::read_to_string(path).with_context(|| words::daemon::project::cannot_read(path))?;
    Ok(crate::project::parse(&text, &path.display().to_string())?)
}

/// Registers the project of a configuration file: its forge is made if need be.
pub(crate) fn add(paths: &Paths, engine: &mut Engine, config_path: &Path) -> anyhow::Result<Config> {
    let config_path = std::path::absolute(config_path)?;
    let config = read_config(&config_path)?;
    let checkout = config_path.parent().map(Path::to_owned).unwrap_or_default();
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
        match open(paths, git, environment, &row.config_path, before) {
            Ok(served) => {
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
    config_path: &Path,
    before: &BTreeMap<ProjectName, Arc<Served>>,
) -> anyhow::Result<Arc<Served>> {
    let config = read_config(config_path)?;
    if let Some(served) = before.get(&config.name) {
        if *served.config == config && served.secrets == settings::secrets(paths, &config) {
            return Ok(Arc::clone(served));
        }
        require_programs(config_path, &served.config, &config, environment)?;
    }
    Ok(Arc::new(Served::open(paths, git, Arc::new(config), environment)?))
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
