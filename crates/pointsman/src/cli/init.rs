use std::io::{BufRead, IsTerminal};

use clap::Args;

use super::context::Context;
use super::failure::{Code, Failure};
use super::style;
use crate::init::{self, Obstacle, Wishes};
use crate::project::Project;

/// Set up Pointsman for the git repository here
///
/// Looks at everything first and writes nothing if something is wrong. Then it writes pointsman.toml, makes the embedded
/// forge from what is committed, and adds it to the checkout as the remote `pointsman`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pointsman init\n  pointsman init --name shop --ci cargo test\n  pointsman init --ci \"make test -j2\""
)]
pub(crate) struct Arguments {
    /// The project's name; without it, the directory's
    #[arg(long)]
    name: Option<String>,
    /// The branch that work lands on; without it, the one that is found
    #[arg(long)]
    branch: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// The command that tests a commit; in quotes if it has options of its own
    #[arg(long, value_name = "CMD", num_args = 1..)]
    ci: Option<Vec<String>>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("setting a project up")?;
        let registered: Vec<_> =
            context.registered()?.into_iter().map(|row| (row.name, row.config_path)).collect();
        let wishes = Wishes {
            name: self.name.or_else(|| context.wanted.as_ref().map(ToString::to_string)),
            branch: self.branch,
            ci: self.ci.map(command),
        };
        let plan = init::plan(&context.paths, &std::env::current_dir()?, wishes, &registered)?;
        let (out, strong) = (context.out, style::STRONG);
        for note in &plan.notes {
            out.say(format!("note: {note}"));
        }
        if !self.yes && !confirmed(context, &plan)? {
            return Err(Failure::refused("nothing was written"));
        }
        let file = plan.file();
        let repository = plan.carry_out(&context.paths, |file| -> Result<(), Failure> {
            context.register(&Project::load(file)?).map(drop)
        })?;
        if out.is_json() {
            return out.value(&serde_json::json!({
                "name": plan.config.name,
                "primary_branch": plan.config.primary_branch,
                "ci": plan.config.ci.command,
                "config_path": file,
                "url": repository,
                "notes": plan.notes,
            }));
        }
        let ci = plan.config.ci.command.as_ref().map_or("none".to_owned(), |words| words.join(" "));
        out.say(format!(
            "{strong}Project {} is set up.{strong:#} Branch {}, CI: {ci}.\n\
             Wrote {}; added the remote {} ({}).\n\n\
             Next:\n  \
             pointsman forge issue create --title \"…\" --body \"…\" --label backlog\n  \
             pointsman up                 in another terminal, or with --detach\n  \
             pointsman status\n  \
             git pull {} {}     what has landed",
            plan.config.name,
            plan.config.primary_branch,
            file.display(),
            init::REMOTE,
            repository.display(),
            init::REMOTE,
            plan.config.primary_branch
        ));
        Ok(())
    }
}

/// A single word with blanks in it is a line for a shell; several words are run as they are.
fn command(words: Vec<String>) -> Vec<String> {
    match words.as_slice() {
        [line] if line.contains(char::is_whitespace) => vec!["sh".to_owned(), "-c".to_owned(), line.clone()],
        _ => words,
    }
}

/// Asks, if there is somebody to ask.
fn confirmed(context: &Context, plan: &init::Plan) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(true);
    }
    context.out.say(format!("Write {} for project {}? [Y/n]", plan.file().display(), plan.config.name));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes"))
}

impl From<Obstacle> for Failure {
    fn from(obstacle: Obstacle) -> Self {
        let code = match &obstacle {
            Obstacle::NotARepository(_) | Obstacle::MissingBranch(_) => Code::NotFound,
            Obstacle::Bare(_)
            | Obstacle::NoCommit
            | Obstacle::NoBranch
            | Obstacle::Configured(_)
            | Obstacle::NameTaken { .. }
            | Obstacle::RemoteTaken(_) => Code::Refused,
            Obstacle::BadName(_) => Code::Usage,
            Obstacle::Config(_) => Code::Configuration,
            Obstacle::Git(_) | Obstacle::Failed(_) => Code::Failed,
        };
        let failure = Self::new(code, &obstacle);
        match obstacle.advice() {
            Some(advice) => failure.hint(advice),
            None => failure,
        }
    }
}
