use std::io::{BufRead, IsTerminal};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pointsman_adapters::forge::Forge;
use pointsman_adapters::retry::Retry;
use pointsman_core::config::ForgeKind;
use pointsman_core::labels;
use pointsman_view::project::Made;

use super::context::Context;
use super::failure::{Code, Failure};
use super::style;
use crate::init::{self, InitOptions, Obstacle, WantedForge};
use crate::project::Project;

/// Set up Pointsman for the git repository here
///
/// Looks at everything first and writes nothing if something is wrong. Then it writes pointsman.toml, makes the embedded
/// forge from what is committed, and adds it to the checkout as the remote `pointsman`.
///
/// With --forge the issues and pull requests are those of the server that the remote `origin` names. What the token may do there
/// is checked first, one by one; --labels makes the labels that Pointsman uses.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pointsman init\n  pointsman init --name shop --ci cargo test\n  pointsman init --ci \"make test -j2\"\n  GITHUB_TOKEN=… pointsman init --forge --labels"
)]
pub(crate) struct Arguments {
    /// The project's name; without it, the directory's
    #[arg(long)]
    name: Option<String>,
    /// The branch that work lands on; without it, the one that is found
    #[arg(long)]
    branch: Option<String>,
    /// Use the issues and pull requests of the remote `origin`: the kind is known by its name, or given
    #[arg(long, value_name = "KIND", num_args = 0..=1, value_parser = hosted())]
    forge: Option<Option<ForgeKind>>,
    /// Make the labels that Pointsman uses on that server
    #[arg(long, requires = "forge")]
    labels: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// The command that tests a commit; in quotes if it has options of its own
    #[arg(long, value_name = "CMD", num_args = 1..)]
    ci: Option<Vec<String>>,
}

/// Reads the kind of a forge on a server.
fn hosted() -> impl TypedValueParser<Value = ForgeKind> {
    let words = PossibleValuesParser::new(ForgeKind::hosted().map(ForgeKind::as_str));
    words.try_map(|word| ForgeKind::hosted().find(|kind| kind.as_str() == word).ok_or("no kind of forge"))
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("setting a project up")?;
        let registered: Vec<_> =
            context.registered()?.into_iter().map(|row| (row.name, row.config_path)).collect();
        let wishes = InitOptions {
            name: self.name.or_else(|| context.wanted.as_ref().map(ToString::to_string)),
            branch: self.branch,
            ci: self.ci.map(command),
            forge: match self.forge {
                None => WantedForge::Here,
                Some(None) => WantedForge::Origin,
                Some(Some(kind)) => WantedForge::OriginAs(kind),
            },
        };
        let plan = init::plan(&context.paths, &std::env::current_dir()?, wishes, &registered)?;
        let (out, strong) = (context.out, style::STRONG);
        for note in &plan.notes {
            out.say(format!("note: {note}"));
        }
        let server = context.on_server(&plan.config)?;
        if let Some(forge) = &server {
            check_rights(context, &**forge, &plan.config.primary_branch)?;
        }
        if !self.yes && !confirmed(context, &plan)? {
            return Err(Failure::refused("nothing was written"));
        }
        let file = plan.file();
        let repository = plan.carry_out(&context.paths, |file| -> Result<(), Failure> {
            context.register(&Project::load(file)?).map(drop)
        })?;
        if let Some(forge) = server.filter(|_| self.labels) {
            let made = forge.ensure_labels(&labels::ALL.map(|(name, ..)| name));
            made.map_err(|error| Failure::new(unavailable_or_refused(error.retry()), error.to_string()))?;
            out.say(format!("made {} labels, as far as they were not there", labels::ALL.len()));
        }
        if out.is_json() {
            return out.value(&Made {
                name: plan.config.name,
                primary_branch: plan.config.primary_branch,
                ci: plan.config.ci.command,
                config_path: file,
                url: repository,
                notes: plan.notes,
            });
        }
        let Some(repository) = repository else {
            let forge = &plan.config.forge;
            let (repo, url) = (forge.repo.as_deref().unwrap_or(""), forge.url.as_deref().unwrap_or(""));
            out.say(format!(
                "{strong}Project {} is set up.{strong:#} Its issues and pull requests are those of {repo} on {url}.\n\
                 Wrote {}.\n\n\
                 Next:\n  \
                 label an issue there `backlog`\n  \
                 pointsman up                 in another terminal, or with --detach\n  \
                 pointsman status",
                plan.config.name,
                file.display(),
            ));
            return Ok(());
        };
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

/// Tells which right is there and which is not; fails if one is missing.
fn check_rights(context: &Context, forge: &dyn Forge, branch: &str) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for right in forge.rights(branch) {
        match right.checked {
            Ok(()) => context.out.say(format!("ok       {}", right.what)),
            Err(error) => {
                context.out.say(format!("MISSING  {}: {error}", right.what));
                missing.push((right.what, error.retry()));
            }
        }
    }
    let Some((first, retry)) = missing.first() else { return Ok(()) };
    Err(Failure::new(
        unavailable_or_refused(*retry),
        format!("nothing was written: it is not so that {first}"),
    )
    .hint("docs/forges.md lists the rights that a token needs"))
}

fn unavailable_or_refused(retry: Retry) -> Code {
    if retry == Retry::Later { Code::Unavailable } else { Code::Refused }
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
            | Obstacle::NoOrigin
            | Obstacle::UnknownForge(_)
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
