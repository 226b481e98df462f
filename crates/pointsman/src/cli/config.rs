use clap::Subcommand;
use pointsman_core::config::Origin;
use pointsman_view::project::Key;

use super::context::Context;
use super::failure::{Code, Failure};
use super::style;
use crate::project::Project;

/// Show the configuration in force
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  pointsman config show --origin")]
pub(crate) enum Command {
    /// Print every key with its value
    #[command(after_help = "Example:\n  pointsman config show --origin | grep timing")]
    Show {
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,
    },
}

/// A key in force.
struct Shown {
    key: String,
    value: String,
    origin: String,
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::Show { origin } = self;
        let (path, accepted) = match (context.project(), context.nearest_config()?) {
            (Ok(project), _) => (project.config_path, Some(project.config)),
            // A file that nobody registered may be looked at.
            (Err(failure), Some(path)) if failure.code() == Code::NotFound => (path, None),
            (Err(failure), _) => return Err(failure),
        };
        let (project, in_file) = Project::load_with_origin(&path)?;
        let file = project.config_path.display().to_string();
        let source = |from: Origin| match from {
            Origin::File { line } => format!("{file}:{line}"),
            Origin::Default => "default".to_owned(),
        };
        let of_file = |key: &str| in_file.iter().find(|entry| entry.key == key);
        let entries: Vec<Shown> = accepted
            .unwrap_or_else(|| project.config.clone())
            .entries()
            .into_iter()
            .map(|(key, value)| match of_file(&key) {
                Some(entry) if entry.value == value => Shown { origin: source(entry.origin), key, value },
                Some(entry) => {
                    let origin = format!("accepted; {} waits for your approval", source(entry.origin));
                    Shown { origin, key, value }
                }
                None => Shown {
                    origin: format!("accepted; its removal from {file} waits for your approval"),
                    key,
                    value,
                },
            })
            .collect();
        if context.out.is_json() {
            let values: Vec<_> = entries
                .iter()
                .map(|entry| Key {
                    key: entry.key.clone(),
                    value: plain(&entry.value),
                    origin: origin.then(|| entry.origin.clone()),
                })
                .collect();
            return context.out.value(&values);
        }
        let quiet = style::QUIET;
        for entry in &entries {
            match origin {
                true => context
                    .out
                    .line(format!("{} = {}  {quiet}# {}{quiet:#}", entry.key, entry.value, entry.origin))?,
                false => context.out.line(format!("{} = {}", entry.key, entry.value))?,
            }
        }
        Ok(())
    }
}

/// A TOML value as JSON has it.
fn plain(value: &str) -> serde_json::Value {
    let document = toml::from_str::<serde_json::Map<String, serde_json::Value>>(&format!("value = {value}"));
    document.ok().and_then(|mut fields| fields.remove("value")).unwrap_or_else(|| value.into())
}
