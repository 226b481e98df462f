use std::path::Path;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pointsman_adapters::forge::Forge;
use pointsman_adapters::retry::Retry;
use pointsman_core::config::ForgeKind;
use pointsman_core::labels;
use pointsman_core::sandbox::Place;
use pointsman_core::words;
use pointsman_view::project::Made;
use pointsman_view::queue::Synced;

use super::context::Context;
use super::failure::{Code, Failure};
use super::prompt::{asked, is_yes};
use super::{checkout, sandbox_learn, style};
use crate::control::protocol::{QueueCommand, Request};
use crate::init::{self, InitOptions, Obstacle, WantedForge};
use crate::project::Project;
use crate::trust;

/// Set up Pointsman for this git repository
///
/// `init` checks everything first and writes nothing if something is wrong. It detects how the repository is tested
/// and shows the command. Then it writes pointsman.toml, creates the embedded forge from the committed main branch,
/// and adds it to the checkout as the remote `pointsman`. It pushes nothing to any other remote.
///
/// If the remote `origin` is on GitHub, Codeberg, Forgejo or Gitea, `init` offers to use the issues and pull requests
/// there; --forge accepts and --forge local declines the offer. It first checks each permission of the token. --labels
/// creates the labels that Pointsman uses.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pointsman init\n  pointsman init --name shop --ci cargo test\n  pointsman init --agent ./agent.sh\n  pointsman init --ci \"make test -j2\"\n  pointsman init --forge local\n  GITHUB_TOKEN=… pointsman init --forge --labels"
)]
pub(crate) struct Arguments {
    /// The project's name; by default the directory's
    #[arg(long)]
    name: Option<String>,
    /// The branch that work lands on; by default it is detected
    #[arg(long)]
    branch: Option<String>,
    /// Use the issues and pull requests of the remote `origin`. Give KIND if the host's name does not reveal it;
    /// `local` keeps them on this machine
    #[arg(long, value_name = "KIND", num_args = 0..=1, value_parser = forges())]
    forge: Option<Option<ForgeKind>>,
    /// Create the labels that Pointsman uses on that server
    #[arg(long, requires = "forge")]
    labels: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    /// The command that tests a commit; quote it if it has options
    #[arg(long, value_name = "CMD", num_args = 1..)]
    ci: Option<Vec<String>>,
    /// The agent's command; quote it if it has options. By default, Claude Code
    #[arg(long, value_name = "CMD", num_args = 1..)]
    agent: Option<Vec<String>>,
}

/// Reads the kind of a forge that has issues.
fn forges() -> impl TypedValueParser<Value = ForgeKind> {
    let kinds = || ForgeKind::ALL.into_iter().filter(|kind| kind.capabilities().issues);
    let words = PossibleValuesParser::new(kinds().map(ForgeKind::as_str));
    words.try_map(move |word| kinds().find(|kind| kind.as_str() == word).ok_or("no kind of forge"))
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
            agent: self.agent.map(command),
            search_path: Context::search_path(),
            forge: match self.forge {
                None => WantedForge::Unsaid,
                Some(None) => WantedForge::Origin,
                Some(Some(kind)) if kind.is_embedded() => WantedForge::Here,
                Some(Some(kind)) => WantedForge::OriginAs(kind),
            },
        };
        let dir = std::env::current_dir()?;
        let mut plan = init::plan(&context.paths, &dir, wishes.clone(), &registered)?;
        if let Some((kind, origin)) = plan.offer.clone() {
            // Asked before anything is written: afterwards there would be two sets of issues.
            let here = format!(
                "Issues and pull requests will be kept on this machine. {} is on {}: to use its issues and pull requests \
                 instead, run `rm pointsman.toml && pointsman init --forge {kind}`.",
                origin.repo, origin.url
            );
            let question =
                format!("Use the issues and pull requests of {} on {}? [y/N]", origin.repo, origin.url);
            if !self.yes && answered(context, &question)? == Some(true) {
                let wishes = InitOptions { forge: WantedForge::OriginAs(kind), ..wishes };
                plan = init::plan(&context.paths, &dir, wishes, &registered)?;
            } else {
                plan.notes.push(here);
            }
        }
        let enclosure = Context::enclosure()?;
        let place = enclosure.place(&plan.config.sandbox, plan.config.dev.worktree);
        if let Place::Outside(why) = &place {
            plan.notes.push(words::sandbox::warning(why));
        }
        plan.notes.extend(enclosure.login_warning(&plan.config));
        let learn = match place == Place::Inside && plan.config.gate().is_some() {
            true => "pointsman sandbox learn      run the tests once, to see which hosts they need\n  ",
            false => "",
        };
        let plan = plan;
        let (out, strong) = (context.out, style::STRONG);
        show_tests(context, &plan);
        let asked_for = trust::asked_for(&plan.config, plan.file().parent().unwrap_or(Path::new(".")));
        for line in words::trust::asks_for(&asked_for.shown()) {
            out.say(line);
        }
        for note in &plan.notes {
            out.say(format!("note: {note}"));
        }
        let server = context.on_server(&plan.config)?;
        if let Some(forge) = &server {
            check_rights(context, &**forge, &plan.config.primary_branch)?;
        }
        if !self.yes && !confirmed(context, &plan)? {
            return Err(Failure::refused("you declined, so nothing was written"));
        }
        let file = plan.file();
        let repository = plan.carry_out(&context.paths, |file| -> Result<(), Failure> {
            let project = Project::load(file)?;
            let shown = trust::asked_for(&project.config, project.checkout());
            context.register(&project, Some(shown)).map(drop)
        })?;
        if repository.is_some() {
            bring_main(context, &file);
        }
        if let Some(forge) = server.filter(|_| self.labels) {
            let made = forge.ensure_labels(&labels::ALL.map(|(name, ..)| name));
            made.map_err(|error| Failure::new(unavailable_or_refused(error.retry()), error.to_string()))?;
            out.say(format!("The forge has all {} labels that Pointsman uses.", labels::ALL.len()));
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
                "{strong}Project {} is set up.{strong:#} It uses the issues and pull requests of {repo} on \
                    {url}.\nWrote {}.\n\nNext:\n  label an issue there `backlog`\n  pointsman up                 in \
                    another terminal, or with --detach\n  pointsman status",
                plan.config.name,
                file.display(),
            ));
            return Ok(());
        };
        let learn =
            match learn.is_empty() || self.yes || !sandbox_learn::offer(context, &Project::load(&file)?)? {
                true => learn,
                false => "",
            };
        let branch = &plan.config.primary_branch;
        out.say(format!(
            "{strong}Project {} is set up.{strong:#} Changes land on {branch}.\n\
             Wrote {}. Added the remote {} ({}).\n\n\
             Agents start from {branch} as it is there. After you commit to {branch} yourself, run `pointsman sync`.\n\n\
             Next:\n  \
             {learn}\
             pointsman up --detach        start the daemon\n  \
             pointsman forge issue create --title \"…\" --body \"…\" --label backlog\n  \
             pointsman status             what runs, and what needs you\n  \
             git pull {} {branch}      get what has landed",
            plan.config.name,
            file.display(),
            init::REMOTE,
            repository.display(),
            init::REMOTE,
        ));
        Ok(())
    }
}

/// Brings main to a forge that was there before and is behind. What stands in the way is said; the project is set up all
/// the same.
fn bring_main(context: &Context, file: &Path) {
    let Ok(project) = Project::load(file) else { return };
    if !checkout::ahead(context, &project).is_ok_and(|ahead| ahead.is_some()) {
        return;
    }
    let (checkout, by) = (project.checkout().to_owned(), context.author());
    let command = QueueCommand::Sync { checkout, by };
    let request = Request::Queue { project: project.config.name.clone(), command };
    if let Err(failure) = context.ask::<Synced>(&request) {
        let branch = &project.config.primary_branch;
        context.out.say(format!("note: {branch} was not pushed to the forge: {}", failure.message()));
    }
}

/// Shows how the project is tested, and why we think so.
fn show_tests(context: &Context, plan: &init::Plan) {
    let (out, detected) = (context.out, &plan.detected);
    let ci = &plan.config.ci;
    if ci.kind.runs_outside() {
        let file = detected.forge_ci.as_deref().unwrap_or_default();
        return out.say(format!("Tests: the forge runs them on every push ({file})."));
    }
    let Some(command) = &ci.command else { return };
    if detected.argv().as_ref() != Some(command) {
        return out.say(format!("Tests: {}", command.join(" ")));
    }
    for test in &detected.used {
        out.say(format!("Tests: {}  (found {})", test.line, test.because));
    }
    for test in &detected.covered {
        out.say(format!("       {} is part of that  (found {})", test.line, test.because));
    }
    out.say("       To change this, edit `command` below [ci] in pointsman.toml.");
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
        format!("a permission is missing ({first}), so nothing was written"),
    )
    .hint("docs/forges.md lists the permissions that a token needs"))
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

/// Asks, if there is somebody to ask. An empty answer is yes.
fn confirmed(context: &Context, plan: &init::Plan) -> Result<bool, Failure> {
    let question = format!("Write {} for project {}? [Y/n]", plan.file().display(), plan.config.name);
    let Some(answer) = asked(context, &question)? else { return Ok(true) };
    Ok(is_yes(&answer))
}

/// Asks, if there is somebody to ask. An empty answer is no.
fn answered(context: &Context, question: &str) -> Result<Option<bool>, Failure> {
    Ok(asked(context, question)?.map(|answer| matches!(answer.as_str(), "y" | "yes")))
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
