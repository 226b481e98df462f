//! The events of a span of time, read from the log: for the command, and for the files that roles keep.

use std::collections::BTreeMap;

use pointsman_core::ids::ProjectName;
use pointsman_core::role::Role;
use pointsman_core::time::Timestamp;
use pointsman_core::words::journal::{Entry, entry};
use pointsman_store::{EventFilter, Store};

/// How many events are read at once.
const PAGE: u32 = 1_000;

/// An entry and when it was written.
pub(crate) struct Written {
    pub(crate) at: Timestamp,
    pub(crate) issue: Option<u64>,
    pub(crate) entry: Entry,
}

/// The entries from one time up to another, oldest first, of one role or of all.
pub(crate) fn read(
    store: &Store,
    project: &ProjectName,
    (begins, ends): (Timestamp, Timestamp),
    role: Option<Role>,
) -> Result<Vec<Written>, pointsman_store::Error> {
    let mut filter = EventFilter {
        since: store.seq_before(begins)?,
        project: Some(project.clone()),
        limit: PAGE,
        ..EventFilter::default()
    };
    let titles: BTreeMap<u64, String> =
        store.tasks(Some(project))?.into_iter().map(|task| (task.key.issue, task.title)).collect();
    let titled = |issue: u64| (issue, titles.get(&issue).map_or("", String::as_str));
    let mut found = Vec::new();
    loop {
        let page = store.events(&filter)?;
        let Some(last) = page.last() else { return Ok(found) };
        filter.since = last.seq;
        let over = last.at >= ends;
        for event in page.iter().filter(|event| event.at >= begins && event.at < ends) {
            let Some(entry) = entry(&event.kind, event.issue.map(titled), &event.data) else { continue };
            if role.is_none_or(|role| role == entry.role) {
                found.push(Written { at: event.at, issue: event.issue, entry });
            }
        }
        if over {
            return Ok(found);
        }
    }
}

/// The first instant of a day (UTC, as in `2026-11-15`) and the first instant after it.
pub(crate) fn span_of(day: &str) -> Option<(Timestamp, Timestamp)> {
    let begins: jiff::civil::Date = day.parse().ok().filter(|_| day.len() == 10)?;
    let at = |date: jiff::civil::Date| {
        let zoned = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Timestamp(zoned.timestamp().as_millisecond()))
    };
    Some((at(begins)?, at(begins.tomorrow().ok()?)?))
}
