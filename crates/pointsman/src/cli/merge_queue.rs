use clap::Subcommand;
use pointsman_core::text::clean_line;
use pointsman_store::{EntryScope, EntryStatus, QueueEntry};
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::table::{Cell, Table};
use super::{style, time};

/// The line in front of the main branch
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the branches that wait to land, first in line first
    List,
    /// Tell what is being tested now and how many wait
    Status,
    /// List all branches that were ever in the line, newest last
    History,
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let project = context.project()?.config.name;
        let read = |scope| -> Result<Vec<QueueEntry>, Failure> {
            Ok(match context.store()? {
                Some(store) => store.queue_entries(&project, scope)?,
                None => Vec::new(),
            })
        };
        match self {
            Self::List => print(context, &read(EntryScope::Unfinished)?, "The merge queue is empty."),
            Self::History => print(context, &read(EntryScope::All)?, "Nothing was ever in the merge queue."),
            Self::Status => status(context, &read(EntryScope::All)?),
        }
    }
}

fn print(context: &Context, entries: &[QueueEntry], nothing: &str) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(&to_json(entries));
    }
    let mut table = Table::new(["ENTRY", "STATUS", "ISSUE", "PR", "SINCE", "BRANCH"]);
    let now = time::now();
    let number = |number: Option<u64>| number.map(|n| format!("#{n}")).unwrap_or_default();
    for entry in entries {
        let reason =
            entry.reason.as_deref().map(|why| format!("  {}", clean_line(why, 120))).unwrap_or_default();
        table.row([
            entry.id.to_string().into(),
            Cell::styled(name(entry.status), colour(entry.status)),
            number(entry.issue).into(),
            number(entry.pr).into(),
            time::relative(entry.requested_at, now).into(),
            format!("{}{reason}", clean_line(&entry.branch, 120)).into(),
        ]);
    }
    context.out.table(&table, nothing)
}

fn status(context: &Context, entries: &[QueueEntry]) -> Result<(), Failure> {
    let waiting: Vec<QueueEntry> =
        entries.iter().filter(|entry| entry.status.is_unfinished()).cloned().collect();
    let current = waiting.iter().position(|entry| entry.status != EntryStatus::Queued);
    let values = to_json(&waiting);
    let landed = entries.iter().filter(|entry| entry.status == EntryStatus::Landed);
    if context.out.is_json() {
        return context.out.value(&json!({
            "length": waiting.len(),
            "current": current.map(|at| values[at].clone()),
            "landed": landed.clone().count(),
            "last_landed_at": landed.filter_map(|entry| entry.landed_at).max().map(time::rfc3339),
            "entries": values,
        }));
    }
    let text = match current.map(|at| &waiting[at]) {
        Some(entry) => format!(
            "{} {}, {} waiting",
            name(entry.status),
            clean_line(&entry.branch, 120),
            waiting.len() - 1
        ),
        None => format!("{} waiting", waiting.len()),
    };
    context.out.line(format!("{text}, {} landed", landed.count()))
}

/// Entries as scripts see them; the position counts those that still wait.
fn to_json(entries: &[QueueEntry]) -> Vec<Value> {
    let mut position = 0;
    let mut place = |entry: &QueueEntry| {
        entry.status.is_unfinished().then(|| {
            position += 1;
            position
        })
    };
    entries
        .iter()
        .map(|entry| {
            json!({
                "position": place(entry),
                "entry": entry.id,
                "project": entry.project,
                "branch": entry.branch,
                "pr_number": entry.pr,
                "issue": entry.issue,
                "identity_name": entry.identity,
                "status": entry.status,
                "head_sha": entry.head,
                "base_sha": entry.base,
                "candidate_sha": entry.candidate,
                "conflict_files": entry.conflict_files,
                "requested_at": time::rfc3339(entry.requested_at),
                "landed_at": entry.landed_at.map(time::rfc3339),
                "reason": entry.reason,
            })
        })
        .collect()
}

fn name(status: EntryStatus) -> &'static str {
    match status {
        EntryStatus::Queued => "queued",
        EntryStatus::Building => "building",
        EntryStatus::Testing => "testing",
        EntryStatus::Landed => "landed",
        EntryStatus::Conflict => "conflict",
        EntryStatus::Red => "red",
        EntryStatus::Stale => "stale",
        EntryStatus::Removed => "removed",
    }
}

fn colour(status: EntryStatus) -> anstyle::Style {
    match status {
        EntryStatus::Queued | EntryStatus::Stale | EntryStatus::Removed => style::QUIET,
        EntryStatus::Building | EntryStatus::Testing => style::BUSY,
        EntryStatus::Landed => style::GOOD,
        EntryStatus::Conflict | EntryStatus::Red => style::BAD,
    }
}
