use clap::Subcommand;
use pointsman_core::config::Origin;
use pointsman_view::project::Key;

use super::context::Context;
use super::failure::Failure;
use super::style;
use crate::project::Project;

/// The configuration in force
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print every key with its value
    #[command(after_help = "Example:\n  pointsman config show --origin | grep timing")]
    Show {
        /// Tell where each value comes from
        #[arg(long)]
        origin: bool,
    },
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::Show { origin } = self;
        let (project, entries) = Project::load_with_origin(&context.project()?.config_path)?;
        let file = project.config_path.display().to_string();
        let source = |from: Origin| match from {
            Origin::File { line } => format!("{file}:{line}"),
            Origin::Default => "default".to_owned(),
        };
        if context.out.is_json() {
            let values: Vec<_> = entries
                .iter()
                .map(|entry| Key {
                    key: entry.key.clone(),
                    value: plain(&entry.value),
                    origin: origin.then(|| source(entry.origin).to_owned()),
                })
                .collect();
            return context.out.value(&values);
        }
        let quiet = style::QUIET;
        for entry in &entries {
            match origin {
                true => context.out.line(format!(
                    "{} = {}  {quiet}# {}{quiet:#}",
                    entry.key,
                    entry.value,
                    source(entry.origin)
                ))?,
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
