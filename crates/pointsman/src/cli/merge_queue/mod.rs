//! `pointsman merge-queue`: the queue in front of the main branch, for people and scripts.

mod chain;
mod list;
mod process;
mod serve;
mod show;
mod trial;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pointsman_core::config::MergeStyle;
use pointsman_core::text::clean_line;
use pointsman_core::words;
use pointsman_store::{EntryScope, QueueEntry};
use pointsman_view::queue::{Added, Paused, Removed, Retested};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::Context;
use super::daemon_client::{self, AnsweredBy};
use super::failure::Failure;
use super::time;
use crate::control::protocol::{QueueCommand, Request};
use crate::project::Project;
use crate::queue_view;

pub(super) use trial::end_on_signal;

/// Work with the merge queue in front of the main branch
///
/// Each branch in the queue is rebased (or merged, or squashed) onto the main branch without touching a working tree,
/// tested in that form, and landed exactly as it was tested.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  pointsman merge-queue add fix-login             let a branch of this checkout land
  pointsman merge-queue status --watch            watch the chain
  pointsman mq serve --repo ../shop.git --gate \"cargo test\"
                                                  a queue for any repository, without anything else")]
pub(crate) enum Command {
    /// List the branches that wait to land, next one first
    #[command(after_help = "Example:\n  pointsman merge-queue list")]
    List(QueueSelection),
    /// Draw the chain: what is tested on top of what, what waits, and what was removed and why
    #[command(after_help = "Example:\n  pointsman merge-queue status --watch")]
    Status(chain::Arguments),
    /// List every branch that was ever in the merge queue, newest last
    #[command(
        after_help = "Example:\n  pointsman merge-queue history --json | jq '.[] | select(.status == \"red\")'"
    )]
    History(QueueSelection),
    /// Add a branch of this checkout, or else of the forge, so that it lands
    #[command(after_help = "Examples:\n  \
        pointsman merge-queue add fix-login\n  \
        pointsman merge-queue add fix-login --priority 5 --style squash")]
    Add(Add),
    /// Remove a branch from the merge queue; the branch itself stays as it is
    #[command(after_help = "Example:\n  pointsman merge-queue remove fix-login")]
    Remove(Remove),
    /// Land the next branch now and wait for it, also without a daemon
    Process(process::Arguments),
    /// Show a branch with the gate's last verdict and the end of its log
    #[command(after_help = "Example:\n  pointsman merge-queue show fix-login")]
    Show(show::Arguments),
    /// Test a branch, or main, again after it was red
    #[command(
        after_help = "Examples:\n  pointsman merge-queue retest main\n  pointsman merge-queue retest fix-login"
    )]
    Retest(Retest),
    /// Test a branch on the current main without landing it
    Try(trial::Arguments),
    /// Pause the merge queue: nothing lands until `resume`
    #[command(after_help = "Example:\n  pointsman merge-queue pause --reason \"Release day\"")]
    Pause(Pause),
    /// Resume the merge queue, also after an alarm paused it
    #[command(after_help = "Example:\n  pointsman merge-queue resume")]
    Resume(QueueSelection),
    /// Run a merge queue for any git repository, without forge, agents or configuration
    Serve(serve::Arguments),
}

/// Whose queue.
#[derive(Clone, Debug, Args)]
pub(crate) struct QueueSelection {
    /// The repository of a `merge-queue serve`, instead of this project
    #[arg(long, value_name = "PATH_OR_URL")]
    repo: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The branch
    branch: String,
    /// Higher priorities land first. Waiting raises the priority, so nothing starves
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i64,
    /// How to land it: rebase, merge or squash; by default as the project is configured
    #[arg(long, value_parser = style)]
    style: Option<MergeStyle>,
    #[command(flatten)]
    which: QueueSelection,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The branch, or the entry's number
    what: String,
    #[command(flatten)]
    which: QueueSelection,
}

/// The arguments of `merge-queue retest`.
#[derive(Debug, Args)]
pub(crate) struct Retest {
    /// `main`, an entry's number, or a branch
    #[arg(default_value = "main")]
    what: String,
    #[command(flatten)]
    which: QueueSelection,
}

#[derive(Debug, Args)]
pub(crate) struct Pause {
    /// The reason, shown to everybody who asks
    #[arg(long, default_value = "paused by a person")]
    reason: String,
    #[command(flatten)]
    which: QueueSelection,
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(which) => {
                let queue = Queue::of(context, &which)?;
                list::print(&queue, &queue.entries(EntryScope::Unfinished)?, "The merge queue is empty.")
            }
            Self::History(which) => {
                let queue = Queue::of(context, &which)?;
                let entries = queue.read(EntryScope::All)?;
                list::print(&queue, &entries, "Nothing has been in the merge queue yet.")
            }
            Self::Status(arguments) => arguments.run(context),
            Self::Add(add) => add.run(context),
            Self::Remove(Remove { what, which }) => {
                context.people_only("steering the merge queue")?;
                let queue = Queue::of(context, &which)?;
                let removed: Removed = queue.order(QueueCommand::Remove { what, by: context.author() })?;
                queue.tell(&removed, &words::queue::removed(removed.entry.0))
            }
            Self::Process(arguments) => arguments.run(context),
            Self::Show(arguments) => arguments.run(context),
            Self::Retest(Retest { what, which }) => {
                context.people_only("steering the merge queue")?;
                let queue = Queue::of(context, &which)?;
                let candidates = match what.as_str() {
                    // Whoever was tried on a red main is tried again too.
                    "main" => queue
                        .entries(EntryScope::Unfinished)?
                        .into_iter()
                        .filter_map(|e| e.candidate)
                        .collect(),
                    _ => queue.find(&what)?.candidate.into_iter().collect(),
                };
                let by = context.author();
                let retested: Retested = queue.order(QueueCommand::Retest { what, candidates, by })?;
                let words = match retested.entry {
                    Some(entry) => format!("It will be tested again as entry {entry}."),
                    None => "It will be tested again.".to_owned(),
                };
                queue.tell(&retested, &words)
            }
            Self::Try(arguments) => arguments.run(context),
            Self::Pause(Pause { reason, which }) => {
                context.people_only("steering the merge queue")?;
                let queue = Queue::of(context, &which)?;
                let paused: Paused = queue.order(QueueCommand::Pause { reason })?;
                queue.tell(&paused, "Nothing lands until you run `pointsman merge-queue resume`.")
            }
            Self::Resume(which) => {
                context.people_only("steering the merge queue")?;
                let queue = Queue::of(context, &which)?;
                let resumed: Paused = queue.order(QueueCommand::Resume)?;
                let was = resumed.was_paused == Some(true);
                queue.tell(&resumed, words::queue::resumed(was))
            }
            Self::Serve(arguments) => arguments.run(context),
        }
    }

    /// Whether it has something to put in order before it goes.
    pub(crate) fn minds_interrupts(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Process(_) | Self::Try(_))
    }
}

impl Add {
    fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("steering the merge queue")?;
        let queue = Queue::of(context, &self.which)?;
        let checkout = checkout_for(&self.which)?;
        let added: Added = queue.order(QueueCommand::Add {
            branch: self.branch,
            checkout,
            priority: self.priority,
            style: self.style,
            by: context.author(),
        })?;
        let entries = queue.entries(EntryScope::Unfinished)?;
        let place = entries.iter().position(|entry| added.entry == entry.id);
        if context.out.is_json() {
            return match place.and_then(|at| queue_view::of(&entries).into_iter().nth(at)) {
                Some(entry) => context.out.value(&entry),
                // It is over already.
                None => context.out.value(&added),
            };
        }
        let place = place.map(|at| format!(", number {} in the merge queue", at + 1)).unwrap_or_default();
        context.out.line(format!("Entry {}{place}.", added.entry))
    }
}

/// The checkout that a branch is taken from. With --repo the repository itself is meant, not what we stand in.
fn checkout_for(which: &QueueSelection) -> Result<Option<PathBuf>, Failure> {
    Ok(match which.repo {
        Some(_) => None,
        None => Some(std::env::current_dir()?),
    })
}

/// One project's queue, of the installation it belongs to.
pub(super) struct Queue {
    context: Context,
    project: Project,
    /// The repository, if it is the queue of a `merge-queue serve`.
    repo: Option<String>,
}

impl Queue {
    fn of(context: &Context, which: &QueueSelection) -> Result<Self, Failure> {
        let context = match &which.repo {
            Some(repo) => serve::context_of(context, repo)?,
            None => context.clone(),
        };
        let project = context.project()?;
        Ok(Self { context, project, repo: which.repo.clone() })
    }

    fn read(&self, scope: EntryScope) -> Result<Vec<QueueEntry>, Failure> {
        Ok(match self.context.store()? {
            Some(store) => store.queue_entries(&self.project.config.name, scope)?,
            None => Vec::new(),
        })
    }

    /// The newest entry of this number or branch.
    fn find(&self, what: &str) -> Result<QueueEntry, Failure> {
        let number = what.strip_prefix('#').unwrap_or(what).parse().ok();
        let meant = |entry: &QueueEntry| entry.branch == what || number == Some(entry.id.0);
        self.read(EntryScope::All)?.into_iter().rev().find(meant).ok_or_else(|| {
            let shown = clean_line(what, 200);
            Failure::not_found(format!("no branch and no entry of the queue is called {shown}"))
                .hint("pointsman merge-queue history")
        })
    }

    /// In the order in which they will land.
    fn entries(&self, scope: EntryScope) -> Result<Vec<QueueEntry>, Failure> {
        let ageing = self.project.config.merge.ageing.duration();
        Ok(queue_view::sorted(self.read(scope)?, time::now(), ageing))
    }

    fn order<V: DeserializeOwned>(&self, command: QueueCommand) -> Result<V, Failure> {
        let project = self.project.config.name.clone();
        let (value, by) = daemon_client::ask(&self.context.paths, &Request::Queue { project, command })?;
        if by == AnsweredBy::Alone {
            let start = match &self.repo {
                Some(repo) => format!("pointsman merge-queue serve --repo {repo} --gate COMMAND"),
                None => "pointsman up".to_owned(),
            };
            self.context.out.say(format!(
                "This merge queue is not being worked on now. The order is recorded; to continue, run `{start}`."
            ));
        }
        Ok(value)
    }

    fn tell(&self, view: &impl Serialize, words: &str) -> Result<(), Failure> {
        match self.context.out.is_json() {
            true => self.context.out.value(view),
            false => self.context.out.line(words),
        }
    }
}

fn style(text: &str) -> Result<MergeStyle, String> {
    serde_json::from_value(Value::from(text)).map_err(|_| "rebase, merge or squash".to_owned())
}
