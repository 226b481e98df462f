use clap::{Args, Subcommand};
use pointsman_adapters::git::local_checkout::{Found, LocalCheckout};
use pointsman_adapters::git::{BranchName, Git};
use pointsman_core::claim::{Claim, FILE_NAME, Phase, branch_name};
use pointsman_core::ids::Number;
use pointsman_core::text::clean_line;
use pointsman_core::words;
use pointsman_view::claim::{Claimed, Finished, Released};
use serde::de::DeserializeOwned;

use super::claim_file::ClaimFile;
use super::context::Context;
use super::failure::Failure;
use super::time;
use crate::control::protocol::{ClaimOrder, Request};

/// The longest summary: it becomes the title of a pull request.
const SUMMARY_CHARS: usize = 200;

/// Claim an issue for the Claude Code session in this checkout
///
/// The board shows it as In Progress, you become its assignee, and .agent-claim.json guides the hooks until the issue
/// is closed. The daemon never starts a claimed issue.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  pointsman claim 42\n  pointsman claim done"
)]
pub(crate) struct Claiming {
    #[command(subcommand)]
    command: Option<Command>,
    /// The issue
    #[arg(value_parser = super::number, required = true)]
    issue: Option<Number>,
    /// The branch to work on; by default the current one or, if that is the primary branch, a new one named after the
    /// issue
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
    /// Who works on it, for the Agent field of the board
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    agent: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Close the issue of this checkout's claim, because its pull request is merged
    ///
    /// The claim file is removed. Run it after you have seen that the work is done; nothing closes an issue by itself.
    #[command(after_help = "Example:\n  pointsman claim done")]
    Done,
}

/// Hand in the work of this checkout's claim
///
/// The phase becomes ready_for_pr. When the agent's response ends, the Stop hook opens the pull request.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pointsman handoff --summary \"Fix the race in the queue\"")]
pub(crate) struct HandOff {
    /// What was done, in one line: the title of the pull request
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Option<String>,
}

/// Give up this checkout's claim
///
/// The issue becomes free again. The branch, its commits and an open pull request stay.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pointsman release")]
pub(crate) struct Release {}

impl Claiming {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let Some(issue) = self.issue else { return done(context) };
        context.people_only("claiming an issue")?;
        let project = context.project()?;
        let checkout = here(context)?;
        let file = ClaimFile::in_dir(checkout.root());
        if let Some(claim) = file.read()? {
            if claim.issue_number != issue {
                return Err(Failure::refused(format!(
                    "this checkout has claimed issue #{}",
                    claim.issue_number
                ))
                .hint("to hand it in, run `pointsman handoff`; to give it up, run `pointsman release`"));
            }
            return shown(context, &claim, "is already claimed");
        }
        let by = context.author();
        let agent_id = match self.agent {
            Some(agent) => clean_line(&agent, 100),
            None => format!("{by}-{}", time::now().0 / 1000),
        };
        let take = ClaimOrder::Take { issue, agent_id: agent_id.clone(), by };
        let taken: Claimed = ask(context, take)?;
        let keep = || -> Result<Claim, Failure> {
            let branch = match self.branch {
                Some(branch) => branch,
                None => match checkout.current_branch()? {
                    Some(branch) if branch != project.config.primary_branch => branch,
                    Some(_) | None => branch_name(issue, &taken.title),
                },
            };
            if BranchName::new(&branch).is_none() {
                return Err(Failure::refused(format!("`{branch}` is not a branch name")));
            }
            // Never committed, and no change that anyone could commit.
            checkout.exclude(&format!("/{FILE_NAME}"))?;
            let claim =
                Claim::new(issue, taken.item_id.clone(), branch, agent_id.clone(), taken.status.name());
            file.write(&claim)?;
            Ok(claim)
        };
        match keep() {
            Ok(claim) => shown(context, &claim, "is claimed"),
            Err(failure) => {
                // Nothing here would ever give it back.
                ask::<()>(context, ClaimOrder::Release { issue, agent_id })?;
                Err(failure)
            }
        }
    }
}

impl HandOff {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("handing in")?;
        let (file, claim) = claimed(context)?;
        if claim.phase == Phase::Done {
            return Err(Failure::refused(format!("issue #{} is already done", claim.issue_number)));
        }
        let summary = self.summary.as_deref().unwrap_or(&claim.summary);
        let summary = clean_line(summary, SUMMARY_CHARS);
        if summary.is_empty() {
            return Err(Failure::refused("the summary is missing; it becomes the title of the pull request")
                .hint("pointsman handoff --summary \"Fix the race in the queue\""));
        }
        if claim.branch.trim().is_empty() {
            return Err(
                Failure::refused(format!("{FILE_NAME} names no branch")).hint("write it into the file")
            );
        }
        let order = ClaimOrder::CheckPushed { branch: claim.branch.clone(), checkout: file.dir().to_owned() };
        ask::<()>(context, order)?;
        let claim = file.change(&claim, |claim| {
            claim.phase = Phase::ReadyForPr;
            claim.summary = summary;
        })?;
        shown(context, &claim, "is handed in; the pull request will be opened when this response ends")
    }
}

impl Release {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("giving a claim back")?;
        let (file, claim) = claimed(context)?;
        let order = ClaimOrder::Release { issue: claim.issue_number, agent_id: claim.agent_id.clone() };
        ask::<()>(context, order)?;
        file.remove()?;
        if context.out.is_json() {
            return context.out.value(&Released { issue: claim.issue_number, released: true });
        }
        context
            .out
            .say(format!("Issue #{} is free again. Branch {} stays.", claim.issue_number, claim.branch));
        Ok(())
    }
}

/// A person says that the work is done: what the Stop hook does with `phase: done`, at once.
fn done(context: &Context) -> Result<(), Failure> {
    context.people_only("closing an issue")?;
    let (file, claim) = claimed(context)?;
    let order = ClaimOrder::Finish {
        issue: claim.issue_number,
        pr: claim.pr_number,
        branch: claim.branch.clone(),
        agent_id: claim.agent_id.clone(),
    };
    ask::<()>(context, order)?;
    file.remove()?;
    if context.out.is_json() {
        return context.out.value(&Finished { issue: claim.issue_number, closed: true });
    }
    context.out.say(words::claim::closed(claim.issue_number));
    Ok(())
}

fn claimed(context: &Context) -> Result<(ClaimFile, Claim), Failure> {
    let file = ClaimFile::in_dir(here(context)?.root());
    match file.read()? {
        Some(claim) => Ok((file, claim)),
        None => Err(Failure::not_found("no issue is claimed in this checkout").hint("pointsman claim 42")),
    }
}

/// The checkout that a person or their session is in.
pub(super) fn here(context: &Context) -> Result<LocalCheckout, Failure> {
    let git = Git::open(context.paths.state())?;
    match LocalCheckout::find(&git, &std::env::current_dir()?)? {
        Found::Checkout(checkout) => Ok(checkout),
        Found::Bare | Found::Nothing => Err(Failure::not_found("this is not a git checkout")
            .hint("run the command in the checkout with the work")),
    }
}

fn ask<T: DeserializeOwned>(context: &Context, order: ClaimOrder) -> Result<T, Failure> {
    let project = context.project()?.config.name;
    context.ask(&Request::Claim { project, order })
}

fn shown(context: &Context, claim: &Claim, how: &str) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(claim);
    }
    context.out.say(format!(
        "Issue #{} {how}. Branch {}.",
        claim.issue_number,
        clean_line(&claim.branch, 120)
    ));
    context.out.line(claim.issue_number)
}
