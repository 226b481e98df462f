//! Formulas: looked at and checked.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pointsman_core::formula::{self, Formula};
use pointsman_core::text::clean_line;
use pointsman_view::formula::{self as view, Broken, Checked, Listed};

use super::context::Context;
use super::failure::{Code, Failure};
use super::out::Out;
use super::run;
use super::table::Table;
use crate::formulas::{self, Found};
use crate::project::{self, Project};

/// Work with formulas: steps for agents, in TOML files
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    pointsman formula list\n  \
    pointsman formula show run-gardener --raw > formulas/run-gardener.toml\n  \
    pointsman formula check formulas/run-gardener.toml")]
pub(crate) enum Command {
    /// List the project's formulas: its own, in formulas/, and those that ship with Pointsman
    #[command(after_help = "Example:\n  pointsman formula list")]
    List,
    /// Show a formula with the project's variables filled in
    #[command(after_help = "Examples:\n  \
        pointsman formula show run-gardener\n  \
        pointsman formula show run-gardener --raw > formulas/run-gardener.toml")]
    Show {
        /// The formula's name
        name: String,
        /// Print the file unchanged, as a start for a formula of your own
        #[arg(long)]
        raw: bool,
    },
    Run(run::Begin),
    /// Check a formula file and report every mistake with its line
    ///
    /// This needs no project. If there is a pointsman.toml here or above, variables and files are checked as well.
    #[command(after_help = "Example:\n  pointsman formula check formulas/run-gardener.toml")]
    Check(Check),
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The formula's file
    file: PathBuf,
}

impl Command {
    pub(crate) fn run(
        self,
        context: impl FnOnce() -> Result<Context, Failure>,
        out: Out,
    ) -> Result<(), Failure> {
        match self {
            Self::List => list(&context()?),
            Self::Show { name, raw } => show(&context()?, &name, raw),
            Self::Run(arguments) => arguments.run(&context()?),
            Self::Check(Check { file }) => check(out, &file),
        }
    }
}

/// A formula, or why it cannot be used.
type Read = Result<(Found, Formula), formulas::Error>;

fn list(context: &Context) -> Result<(), Failure> {
    let project = context.project()?;
    // One that is wrong is told in its place.
    let variables = formula::variables(&project.config);
    let render = |found: Found| {
        let formula = found.render(project.checkout(), &variables)?;
        Ok((found, formula))
    };
    let listed: Vec<(String, Read)> = formulas::all(project.checkout())
        .into_iter()
        .map(|(name, read)| (name, read.and_then(render)))
        .collect();
    if context.out.is_json() {
        let value = |(name, read): &(String, Read)| match read {
            Ok((found, formula)) => Listed::Usable(view_of(found, formula, &project)),
            Err(error) => Listed::Broken(Broken { name: name.clone(), error: described(error) }),
        };
        return context.out.value(&listed.iter().map(value).collect::<Vec<_>>());
    }
    let mut table = Table::new(["NAME", "STEPS", "MODEL", "FROM", "DESCRIPTION"]);
    for (name, read) in &listed {
        match read {
            Ok((found, formula)) => table.row([
                found.name.as_str().into(),
                formula.steps.len().to_string().into(),
                model(formula, &project).unwrap_or_default().into(),
                if found.file.is_some() { "project" } else { "shipped" }.into(),
                clean_line(&formula.description, 160).into(),
            ]),
            Err(error) => table.row([
                name.as_str().into(),
                "".into(),
                "".into(),
                "project".into(),
                clean_line(&format!("cannot be used: {}", described(error)), 160).into(),
            ]),
        }
    }
    context.out.table(&table, "There are no formulas.")
}

fn show(context: &Context, name: &str, raw: bool) -> Result<(), Failure> {
    let project = context.project()?;
    let found = formulas::find(project.checkout(), name)?;
    if raw {
        return context.out.line(found.text.trim_end());
    }
    let formula = rendered(&found, &project)?;
    if context.out.is_json() {
        return context.out.value(&view_of(&found, &formula, &project));
    }
    let model = model(&formula, &project).map(|model| format!(", model {model}")).unwrap_or_default();
    let mut text =
        format!("{} (version {}{model})\n{}\n", formula.name, formula.version, formula.description);
    if !formula.files.is_empty() {
        text += &format!("\nFiles: {}\n", formula.files.join(", "));
    }
    for (place, step) in formula.steps.iter().enumerate() {
        let needs = if step.needs.is_empty() {
            String::new()
        } else {
            format!("  (after {})", step.needs.join(", "))
        };
        text += &format!(
            "\n{}. {}: {}{needs}\n   {}\n",
            place + 1,
            step.id,
            step.title,
            step.description.replace('\n', "\n   ")
        );
    }
    context.out.line(text.trim_end())
}

/// Only the file is looked at; a project that is found is read and not registered.
fn check(out: Out, file: &Path) -> Result<(), Failure> {
    if !file.is_file() {
        return Err(Failure::not_found(format!("there is no file {}", file.display())));
    }
    let wrong = |error: formulas::Error| Failure::new(Code::Failed, described(&error));
    let text = formulas::read(file).map_err(wrong)?;
    let origin = file.display().to_string();
    let formula = match project::find(&std::env::current_dir()?) {
        Some(config) => {
            let project = Project::load(&config)?;
            let found = Found { name: String::new(), text, file: Some(file.to_owned()) };
            found.render(project.checkout(), &formula::variables(&project.config)).map_err(wrong)?
        }
        None => Formula::parse(&text, &origin).map_err(|error| wrong(error.into()))?,
    };
    if out.is_json() {
        return out.value(&Checked { ok: true, steps: formula.steps.len(), name: formula.name });
    }
    out.line(format!("{origin}: {} has {} steps and no errors", formula.name, formula.steps.len()))
}

fn rendered(found: &Found, project: &Project) -> Result<Formula, Failure> {
    Ok(found.render(project.checkout(), &formula::variables(&project.config))?)
}

/// The project's word for the formula's role wins over the formula's own.
fn model(formula: &Formula, project: &Project) -> Option<String> {
    let own = project.config.roles.get(formula.role()).model.clone();
    own.or_else(|| formula.model.clone())
}

fn view_of(found: &Found, formula: &Formula, project: &Project) -> view::Formula {
    let origin = found.file.as_ref().map_or("shipped".to_owned(), |file| file.display().to_string());
    view::Formula::new(found.name.clone(), formula, model(formula, project), origin)
}

fn described(error: &formulas::Error) -> String {
    match error {
        formulas::Error::Unreadable { source, .. } => format!("{error}: {source}"),
        formulas::Error::Missing(_) | formulas::Error::Invalid(_) => error.to_string(),
    }
}

impl From<formulas::Error> for Failure {
    fn from(error: formulas::Error) -> Self {
        let failure = Self::new(
            match error {
                formulas::Error::Missing(_) => Code::NotFound,
                formulas::Error::Unreadable { .. } => Code::Failed,
                formulas::Error::Invalid(_) => Code::Configuration,
            },
            described(&error),
        );
        match error {
            formulas::Error::Missing(_) => failure.hint("pointsman formula list"),
            formulas::Error::Unreadable { .. } | formulas::Error::Invalid(_) => failure,
        }
    }
}
