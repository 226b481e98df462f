//! `sync`: the checkout's main branch goes to the embedded forge.

use clap::Args;
use pointsman_view::queue::Synced;

use super::context::Context;
use super::failure::Failure;
use crate::control::protocol::{QueueCommand, Request};
use crate::init;

/// Push the main branch of the checkout to the embedded forge
///
/// Agents start from the main branch on the forge, so run this after you commit to main in your checkout. The branch
/// on the forge only moves forward; if it has commits that yours lacks, pull them first. The merge queue continues
/// from the new commit. Nothing is pushed to any other remote.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  git commit -m \"Add the agent\" agent.sh && pointsman sync\n  pointsman sync --json"
)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("pushing the main branch")?;
        let project = context.project()?;
        let (checkout, by) = (project.checkout().to_owned(), context.author());
        let command = QueueCommand::Sync { checkout, by };
        let synced: Synced =
            context.ask(&Request::Queue { project: project.config.name.clone(), command })?;
        if context.out.is_json() {
            return context.out.value(&synced);
        }
        let branch = &project.config.primary_branch;
        context.out.say(match synced.commits {
            0 => format!(
                "The forge is up to date with {branch} here ({}). If it is ahead, run `git pull {} {branch}`.",
                synced.head.short(),
                init::REMOTE
            ),
            1 => format!("Pushed 1 commit; {branch} on the forge is now at {}.", synced.head.short()),
            n => format!("Pushed {n} commits; {branch} on the forge is now at {}.", synced.head.short()),
        });
        Ok(())
    }
}
