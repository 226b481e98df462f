//! Working on the merge queue now: the daemon does it if one runs, else this command.

use std::time::Duration;

use clap::Args;
use pointsman_store::{EntryScope, EntryStatus, QueueEntry};

use super::super::context::Context;
use super::super::failure::{Code, Failure};
use super::list::name;
use super::{Queue, QueueSelection};
use crate::control::client;
use crate::control::protocol::QueueCommand;
use crate::daemon;
use crate::queue_view;

/// Between two looks at the merge queue.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pointsman merge-queue process
  pointsman merge-queue process --all --repo ../shop.git
It ends with 0 if the branch landed (with --all: if every one did), else with 1.")]
pub(crate) struct Arguments {
    /// Land every waiting branch, not only the next one
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    which: QueueSelection,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("steering the merge queue")?;
        let queue = Queue::of(context, &self.which)?;
        let mut watched = queue.entries(EntryScope::Unfinished)?;
        if !self.all {
            watched.truncate(1);
        }
        if watched.is_empty() {
            context.out.say("The merge queue is empty.");
            return if context.out.is_json() { context.out.value(&queue_view::of(&[])) } else { Ok(()) };
        }
        for entry in &watched {
            context.out.say(format!("{}: waiting", entry.branch));
        }
        if client::answers(&queue.context.paths.control_socket()) {
            queue.order::<()>(QueueCommand::Look)?;
            follow(&queue, &watched)?;
        } else {
            super::super::up::log_to_stderr(context.verbose, "warn");
            let project = queue.project.config.name.clone();
            let entry = watched.first().map(|entry| entry.id).filter(|_| !self.all);
            let only_queue = Some(daemon::OnlyQueue { project, entry });
            daemon::run(&queue.context.paths, daemon::Options { only_queue, ..daemon::Options::default() })?;
        }
        let all = queue.read(EntryScope::All)?;
        let over: Vec<QueueEntry> =
            all.into_iter().filter(|entry| watched.iter().any(|w| w.id == entry.id)).collect();
        if context.out.is_json() {
            context.out.value(&queue_view::of(&over))?;
        } else {
            for entry in &over {
                let why = entry.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                context.out.line(format!("{}: {}{why}", entry.branch, name(entry.status)))?;
            }
        }
        match over.iter().all(|entry| entry.status == EntryStatus::Landed) {
            true => Ok(()),
            false => Err(Failure::silent(Code::Failed)),
        }
    }
}

/// Waits until these are over, or the merge queue is paused.
#[allow(clippy::disallowed_methods, reason = "the store has no event for a reader: it is looked at again")]
fn follow(queue: &Queue, watched: &[QueueEntry]) -> Result<(), Failure> {
    loop {
        let Some(store) = queue.context.store()? else { return Ok(()) };
        let mut open = false;
        for entry in watched {
            open |= store.queue_entry(entry.id)?.is_some_and(|entry| entry.status.is_unfinished());
        }
        if !open {
            return Ok(());
        }
        if let Some(stopped) = store.queue_state(&queue.project.config.name)?.stopped {
            return Err(Failure::refused(format!("the merge queue is paused: {}", stopped.reason))
                .hint("pointsman merge-queue resume"));
        }
        std::thread::sleep(LOOK);
    }
}
