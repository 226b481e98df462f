//! The line as a table.

use pointsman_core::text::clean_line;
use pointsman_store::{EntryStatus, QueueEntry};

use super::super::failure::Failure;
use super::super::table::{Cell, Table};
use super::super::{style, time};
use super::Queue;
use super::show::Tested;
use crate::queue_view;

pub(super) fn print(queue: &Queue, entries: &[QueueEntry], nothing: &str) -> Result<(), Failure> {
    let context = &queue.context;
    if context.out.is_json() {
        let mut views = queue_view::of(entries);
        for (view, entry) in views.iter_mut().zip(entries) {
            if entry.status == EntryStatus::Red {
                view.log_path = Tested::look(queue, entry)?.and_then(|tested| tested.log_path);
            }
        }
        return context.out.value(&views);
    }
    let mut table = Table::new(["#", "ENTRY", "STATUS", "ISSUE", "PR", "SINCE", "BRANCH"]);
    let now = time::now();
    let number = |number: Option<u64>| number.map(|n| format!("#{n}")).unwrap_or_default();
    let mut position = 0;
    for entry in entries {
        let reason =
            entry.reason.as_deref().map(|why| format!("  {}", clean_line(why, 160))).unwrap_or_default();
        let place = if entry.status.is_unfinished() {
            position += 1;
            position.to_string()
        } else {
            String::new()
        };
        table.row([
            place.into(),
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

pub(super) fn name(status: EntryStatus) -> &'static str {
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

pub(super) fn colour(status: EntryStatus) -> anstyle::Style {
    match status {
        EntryStatus::Queued | EntryStatus::Stale | EntryStatus::Removed => style::QUIET,
        EntryStatus::Building | EntryStatus::Testing => style::BUSY,
        EntryStatus::Landed => style::GOOD,
        EntryStatus::Conflict | EntryStatus::Red => style::BAD,
    }
}
