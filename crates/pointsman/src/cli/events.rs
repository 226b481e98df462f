use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use pointsman_adapters::phase_file;
use pointsman_core::ids::Number;
use pointsman_core::log;
use pointsman_core::position::Cursor;
use pointsman_core::text::clean_line;
use pointsman_store::{self as store, EventFilter, EventRow, Store};
use pointsman_view::event::Event;
use serde_json::Value;

use super::context::Context;
use super::failure::{Code, Failure};
use super::{style, time};

/// How much of an event's details fits on its line.
const SUMMARY_CHARS: usize = 160;
/// How many events are read at once.
const PAGE: u32 = 1_000;
/// The newest events, if nothing else is asked for.
const TAIL: u32 = 200;
/// Between two looks for new events.
const LOOK: Duration = Duration::from_millis(100);
/// A bookmark is one number.
const BOOKMARK_BYTES: u64 = 64;

/// Print what happened, oldest first; with --json, one value per line
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman events --follow\n  \
    pointsman events --since 0 --json | jq -c 'select(.issue == 3)'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: LogSelection,
}

/// Which entries of the log, and whether to go on.
#[derive(Debug, Args)]
pub(crate) struct LogSelection {
    /// Keep printing as things happen
    #[arg(long, short)]
    follow: bool,
    /// Only events after this number, or after this cursor (from an earlier event's JSON); by default the newest, or
    /// all with --json
    #[arg(long, value_name = "SEQ|CURSOR")]
    since: Option<Since>,
    /// Only events after the one whose number is in this file. The file is kept up to date, so a program that restarts
    /// continues where it was
    #[arg(long, value_name = "FILE", conflicts_with = "since")]
    bookmark: Option<PathBuf>,
    /// Only events about this issue
    #[arg(long, value_name = "N", value_parser = super::number)]
    issue: Option<Number>,
    /// Only events of this kind; may be repeated
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Vec<String>,
}

/// Where to begin.
#[derive(Clone, Debug)]
enum Since {
    Seq(i64),
    Cursor(Cursor),
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(seq) => Ok(Self::Seq(seq)),
            Err(_) => text.parse().map(Self::Cursor).map_err(|_| "neither a number nor a cursor".to_owned()),
        }
    }
}

/// Reads a page of the log.
pub(crate) type Read = fn(&Store, &EventFilter) -> store::Result<Vec<EventRow>>;

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        if let Some(unknown) = self.which.kind.iter().find(|kind| !log::is_kind(kind)) {
            return Err(Failure::new(Code::Usage, format!("there is no kind of event called `{unknown}`"))
                .hint("`pointsman events --json | jq -r .kind | sort -u` lists those that have happened"));
        }
        self.which.print(context, Store::events)
    }
}

impl LogSelection {
    /// Prints what `read` finds, a line each.
    #[allow(clippy::disallowed_methods, reason = "looks for more until it is interrupted")]
    pub(crate) fn print(self, context: &Context, read: Read) -> Result<(), Failure> {
        let marked = self.bookmark.as_deref().map(read_bookmark).transpose()?;
        let (since, after) = match self.since {
            Some(Since::Seq(seq)) => (Some(seq), None),
            // Numbers of one file grow with the positions of every project, so they still page.
            Some(Since::Cursor(cursor)) => (Some(0), Some(cursor)),
            None => (None, None),
        };
        let from = marked.or(since).or(context.out.is_json().then_some(0));
        let mut cursor = after.clone();
        let mut filter = EventFilter {
            since: from.unwrap_or(0),
            after,
            project: context.wanted.clone(),
            issue: self.issue,
            kinds: self.kind,
            limit: if from.is_some() { PAGE } else { TAIL },
            latest: from.is_none(),
        };
        let mut store = context.store()?;
        loop {
            // What is in the log by now and not in a page that ends early is passed over by the filter for good.
            let seen = match &store {
                Some(store) => store.last_seq()?,
                None => 0,
            };
            let page = match &store {
                Some(store) => read(store, &filter)?,
                None => Vec::new(),
            };
            for event in &page {
                if context.out.is_json() {
                    let cursor = match (&mut cursor, &store) {
                        (Some(cursor), _) => cursor,
                        (none, Some(store)) => none.insert(store.cursor_at(event.seq - 1)?),
                        (none, None) => none.insert(Cursor::default()),
                    };
                    cursor.advance(event.project.as_ref(), event.project_seq);
                    context.out.value_line(&view(event, cursor))?;
                } else {
                    print_entry(context, event)?;
                }
                filter.since = event.seq;
            }
            // After they are printed: whoever dies in between sees some twice and misses none.
            if let (Some(file), false) = (&self.bookmark, page.is_empty()) {
                phase_file::write_state_file(file, format!("{}\n", filter.since).as_bytes())?;
            }
            let more = !filter.latest && page.len() == filter.limit as usize;
            if store.is_some() {
                (filter.latest, filter.limit) = (false, PAGE);
            }
            if more {
                continue;
            }
            filter.since = filter.since.max(seen);
            if !self.follow {
                return Ok(());
            }
            std::thread::sleep(LOOK);
            if store.is_none() {
                store = context.store()?;
            }
        }
    }
}

/// The number in a bookmark; 0 if there is none yet.
fn read_bookmark(file: &Path) -> Result<i64, Failure> {
    let unreadable = |why: &dyn std::fmt::Display| {
        Failure::new(Code::Usage, format!("the bookmark {} cannot be used: {why}", file.display()))
            .hint("remove it to start from the beginning")
    };
    let read = phase_file::read_result_file(file, BOOKMARK_BYTES).map_err(|refusal| unreadable(&refusal))?;
    let Some(bytes) = read else { return Ok(0) };
    let text = String::from_utf8_lossy(&bytes);
    text.trim()
        .parse()
        .ok()
        .filter(|seq| *seq >= 0)
        .ok_or_else(|| unreadable(&"it does not contain a number"))
}

fn print_entry(context: &Context, event: &EventRow) -> Result<(), Failure> {
    let quiet = style::QUIET;
    let about = match (&event.project, event.issue) {
        (Some(project), Some(issue)) => format!("{project}#{issue}"),
        (Some(project), None) => project.to_string(),
        (None, _) => "-".to_owned(),
    };
    let line = format!(
        "{quiet}{:>6}  {}{quiet:#}  {about:<16} {:<24} {}",
        event.seq,
        time::local(event.at),
        event.kind,
        summary(event, &[])
    );
    context.out.listed(&line)
}

/// Entries of the log after this one, oldest first.
pub(super) fn after(store: &Store, seq: i64, limit: u32) -> Result<Vec<Event>, Failure> {
    let page = store.events(&EventFilter { since: seq, limit, ..EventFilter::default() })?;
    let Some(first) = page.first() else { return Ok(Vec::new()) };
    let mut cursor = store.cursor_at(first.seq - 1)?;
    let entry = |event: &EventRow| {
        cursor.advance(event.project.as_ref(), event.project_seq);
        view(event, &cursor)
    };
    Ok(page.iter().map(entry).collect())
}

/// The view of an event, and where the log is read on after it.
fn view(event: &EventRow, cursor: &Cursor) -> Event {
    Event {
        seq: event.seq,
        project_seq: event.project_seq,
        cursor: cursor.to_string(),
        at: event.at.into(),
        kind: event.kind.clone(),
        project: event.project.clone(),
        issue: event.issue,
        session: event.session.clone(),
        data: event.data.clone(),
    }
}

/// An event's details on one line: the simple ones without those that are told elsewhere, outside text cleaned.
pub(crate) fn summary(event: &EventRow, told: &[&str]) -> String {
    let Value::Object(fields) = &event.data else { return String::new() };
    let fields = fields.iter().filter(|(key, _)| !told.contains(&key.as_str()));
    let simple = fields.filter_map(|(key, value)| match value {
        Value::String(text) if !text.is_empty() => Some(format!("{key}={text}")),
        Value::Number(number) => Some(format!("{key}={number}")),
        Value::Bool(yes) => Some(format!("{key}={yes}")),
        Value::Object(_) | Value::Array(_) | Value::String(_) | Value::Null => None,
    });
    clean_line(&simple.collect::<Vec<_>>().join(" "), SUMMARY_CHARS)
}
