//! `sync`: the checkout's main branch goes to the embedded forge.

use clap::Args;
use pointsman_view::queue::Synced;

use super::context::Context;
use super::failure::Failure;
use crate::control::protocol::{QueueCommand, Request};
use crate::init;

/// Bring the main branch of the checkout to the embedded forge
///
/// Agents start from the main branch on the forge. After you commit to it in your checkout, run this. The branch on the
/// forge only moves forward; if it has commits that yours has not, pull them first. The merge queue goes on from the new
/// commit. Nothing is pushed to any other remote.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  git commit -m \"Add the agent\" agent.sh && pointsman sync\n  pointsman sync --json"
)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("moving the main branch")?;
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
                "The forge has everything that is on {branch} here ({}). If it has more: git pull {} {branch}",
                synced.head.short(),
                init::REMOTE
            ),
            1 => format!("Brought 1 commit: {branch} on the forge is at {} now.", synced.head.short()),
            n => format!("Brought {n} commits: {branch} on the forge is at {} now.", synced.head.short()),
        });
        Ok(())
    }
}
