use std::path::PathBuf;

use clap::Subcommand;
use pointsman_core::config::Trust;
use pointsman_core::ids::ProjectName;
use pointsman_core::words;
use pointsman_view::project::{self as view, Named};

use super::context::Context;
use super::failure::Failure;
use super::table::Table;
use super::{prompt, sandbox_learn, style, table};
use crate::control::protocol::Request;
use crate::project::{FILE_NAME, Project};
use crate::trust;

/// Add, list and remove the projects that the daemon serves
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  pointsman project add ~/src/shop\n  pointsman project list")]
pub(crate) enum Command {
    /// Register the project of a checkout, or accept its changed settings
    ///
    /// This shows what its pointsman.toml may run, reach, loosen or spend, and records it as accepted. If one of these
    /// settings changes later, the change waits until you run this command again; all other settings take effect at
    /// once.
    #[command(after_help = "Example:\n  pointsman project add ~/src/shop")]
    Add {
        /// The checkout, or its pointsman.toml
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// List the projects
    #[command(after_help = "Example:\n  pointsman project list")]
    List,
    /// Stop serving a project; its checkout and its history stay
    #[command(after_help = "Example:\n  pointsman project remove shop")]
    Remove {
        /// Its name
        #[arg(value_parser = super::project_name)]
        name: ProjectName,
    },
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Add { directory, yes } => {
                context.people_only("adding a project")?;
                let path = if directory.is_dir() { directory.join(FILE_NAME) } else { directory };
                if !path.exists() {
                    return Err(Failure::not_found(format!("there is no {}", path.display()))
                        .hint("run `pointsman init` in that directory"));
                }
                let project = Project::load(&path)?;
                let asked = trust::asked_for(&project.config, project.checkout());
                show(context, &project, &asked)?;
                let question = format!("Register {} with these settings? [Y/n]", project.config.name);
                if !yes && prompt::asked(context, &question)?.is_some_and(|answer| !prompt::is_yes(&answer)) {
                    return Err(Failure::refused("you declined, so nothing was registered"));
                }
                let is_new = context.row_of(&project.config_path)?.is_none();
                let added = context.register(&project, Some(asked))?;
                if context.out.is_json() {
                    return context.out.value(&added);
                }
                context.out.say(format!("Project {} is registered.", project.config.name));
                if is_new && !yes {
                    sandbox_learn::offer(context, &project)?;
                }
                Ok(())
            }
            Self::List => list(context),
            Self::Remove { name } => {
                context.people_only("removing a project")?;
                let removed: Named = context.ask(&Request::RemoveProject { project: name.clone() })?;
                if context.out.is_json() {
                    return context.out.value(&removed);
                }
                context.out.say(format!("Project {name} is no longer served; nothing was deleted."));
                Ok(())
            }
        }
    }
}

/// Shows what the file asks for: all of it if it is new, else what differs from what was accepted.
fn show(context: &Context, project: &Project, asked: &Trust) -> Result<(), Failure> {
    let name = &project.config.name;
    let accepted = match (context.row_of(&project.config_path)?, context.store()?) {
        (Some(row), Some(store)) => trust::accepted(&store, &row.name)?,
        _ => None,
    };
    let (heading, lines) = match &accepted {
        None => (format!("What the settings of {name} can do:"), words::trust::asks_for(&asked.shown())),
        Some(accepted) => {
            let differences = accepted.differences(asked);
            match differences.is_empty() {
                true => return Ok(()),
                false => (
                    format!("What has changed in the settings of {name}:"),
                    words::trust::differences(&differences),
                ),
            }
        }
    };
    context.out.say(heading);
    for line in lines {
        context.out.say(line);
    }
    Ok(())
}

fn list(context: &Context) -> Result<(), Failure> {
    let rows = context.registered()?;
    let problem =
        |path: &PathBuf| Project::load(path).err().map(|error| format!("{:#}", anyhow::Error::new(error)));
    if context.out.is_json() {
        let values: Vec<_> = rows
            .iter()
            .map(|row| view::Project {
                name: row.name.clone(),
                config_path: row.config_path.clone(),
                checkout: row.checkout.clone(),
                added_at: row.added_at.into(),
                problem: problem(&row.config_path),
            })
            .collect();
        return context.out.value(&values);
    }
    let mut table = Table::new(["NAME", "CHECKOUT", "CONFIGURATION"]);
    for row in &rows {
        let state = match problem(&row.config_path) {
            None => table::Cell::styled("valid", style::GOOD),
            Some(why) => {
                let first = why.lines().next().unwrap_or_default();
                table::Cell::styled(pointsman_core::text::clean_line(first, 120), style::BAD)
            }
        };
        table.row([row.name.as_str().into(), row.checkout.display().to_string().into(), state]);
    }
    context
        .out
        .table(&table, "No project is registered. To create one, run `pointsman init` in a git repository.")
}
