//! The line as a picture: main, the candidates on top of it, who waits behind, who left and why.

use std::time::Duration;

use anstyle::Style;
use clap::Args;
use pointsman_core::ids::Sha;
use pointsman_core::queue::EntryId;
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_store::{EntryScope, EntryStatus, QueueEntry, QueueRow, StoppedBy};
use pointsman_view::queue::Overview;

use super::super::context::Context;
use super::super::failure::Failure;
use super::super::{style, time};
use super::list::{colour, name};
use super::{Queue, QueueSelection};
use crate::queue_view;

/// Between two pictures.
const LOOK: Duration = Duration::from_millis(500);
/// How many that are over are shown.
const OVER: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Redraw it continuously
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    which: QueueSelection,
}

impl Arguments {
    #[allow(
        clippy::disallowed_methods,
        reason = "the store has no event for a reader: it is looked at again"
    )]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let queue = Queue::of(context, &self.which)?;
        loop {
            let picture = Picture::look(&queue)?;
            if context.out.is_json() {
                context.out.value(&picture.view())?;
            } else if self.watch {
                context.out.redraw_text(&picture.draw(time::now()))?;
            } else {
                context.out.line(picture.draw(time::now()))?;
            }
            if !self.watch {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
    }
}

struct Picture {
    line: QueueRow,
    waiting: Vec<QueueEntry>,
    over: Vec<QueueEntry>,
    landed: usize,
    /// How long the gate takes, in milliseconds.
    pace: Option<u64>,
    primary: String,
}

impl Picture {
    fn look(queue: &Queue) -> Result<Self, Failure> {
        let config = &queue.project.config;
        let all = queue.entries(EntryScope::All)?;
        let (waiting, mut over): (Vec<_>, Vec<_>) = all.into_iter().partition(|e| e.status.is_unfinished());
        let landed = over.iter().filter(|e| e.status == EntryStatus::Landed).count();
        over.sort_by_key(|entry| entry.id);
        // Old news: the branch has landed since, or is in the merge queue again.
        let later: Vec<(String, EntryId)> = waiting
            .iter()
            .chain(over.iter().filter(|entry| entry.status == EntryStatus::Landed))
            .map(|entry| (entry.branch.clone(), entry.id))
            .collect();
        let is_news = |entry: &QueueEntry| {
            entry.status == EntryStatus::Landed
                || !later.iter().any(|(branch, id)| *branch == entry.branch && *id > entry.id)
        };
        over.retain(is_news);
        let (line, pace) = match queue.context.store()? {
            Some(store) => {
                let gate = config.gate().map(|gate| serde_json::to_string(gate).unwrap_or_default());
                let pace = gate.map(|gate| store.gate_pace(&config.name, &gate)).transpose()?.flatten();
                (store.queue_state(&config.name)?, pace)
            }
            None => (QueueRow::default(), None),
        };
        Ok(Self { line, waiting, over, landed, pace, primary: config.primary_branch.clone() })
    }

    fn view(&self) -> Overview {
        let entries = queue_view::of(&self.waiting);
        let current = self.waiting.iter().position(|entry| entry.status != EntryStatus::Queued);
        let last = self.over.iter().filter_map(|entry| entry.landed_at).max();
        let stopped = self.line.stopped.as_ref();
        Overview {
            length: entries.len(),
            current: current.and_then(|at| entries.get(at).cloned()),
            landed: self.landed,
            last_landed_at: last.map(Into::into),
            paused: stopped.is_some(),
            paused_reason: stopped.map(|stopped| stopped.reason.clone()),
            frozen_by_audit: stopped.is_some_and(|stopped| stopped.by == StoppedBy::Audit),
            direct_merges_total: self.line.direct_merges,
            person_merges_total: self.line.person_merges,
            main_sha: self.line.audited.clone(),
            gate_seconds: self.pace.map(|ms| ms as f64 / 1000.0),
            entries,
        }
    }

    fn draw(&self, now: Timestamp) -> String {
        let mut lines = Vec::new();
        let main = self.line.audited.as_ref().map(|sha| format!(" {}", sha.short())).unwrap_or_default();
        lines.push(format!("{}{main}", paint(&self.primary, style::STRONG)));
        for (at, entry) in self.waiting.iter().enumerate() {
            let rail = if entry.status == EntryStatus::Queued { "┊" } else { "│" };
            let knot = if entry.status == EntryStatus::Queued { "◌" } else { "●" };
            lines.push(paint(rail, style::QUIET));
            let number = entry.pr.map(|n| format!(" #{n}")).unwrap_or_default();
            lines.push(format!(
                "{} {:>2} {}{number}  {}{}",
                paint(knot, colour(entry.status)),
                at + 1,
                clean_line(&entry.branch, 80),
                paint(name(entry.status), colour(entry.status)),
                self.told(entry, now)
            ));
        }
        if self.waiting.is_empty() {
            lines.push(paint("nothing waits", style::QUIET));
        }
        if let Some(stopped) = &self.line.stopped {
            let who = match stopped.by {
                StoppedBy::Person | StoppedBy::Refusal => "paused",
                StoppedBy::Audit => "frozen",
            };
            let since = time::relative(stopped.at, now);
            lines.push(String::new());
            lines.push(paint(&format!("{who} {since}: {}", clean_line(&stopped.reason, 600)), style::ASKING));
        }
        let removed: Vec<&QueueEntry> =
            self.over.iter().filter(|entry| entry.status != EntryStatus::Landed).collect();
        if !removed.is_empty() {
            lines.push(String::new());
        }
        for entry in removed.iter().rev().take(OVER) {
            lines.push(format!(
                "{} {}  {}  {}",
                paint("✗", colour(entry.status)),
                clean_line(&entry.branch, 80),
                paint(name(entry.status), colour(entry.status)),
                why(entry)
            ));
        }
        lines.push(String::new());
        lines.push(format!(
            "{} waiting, {} landed, {} bypassed the queue, {} merged by people{}",
            self.waiting.len(),
            self.landed,
            self.line.direct_merges,
            self.line.person_merges,
            self.pace.map(|ms| format!(", the gate takes {}", span(ms))).unwrap_or_default()
        ));
        lines.join("\n")
    }

    /// What is known of an entry that waits: base and candidate, how long it runs, when it may be over.
    fn told(&self, entry: &QueueEntry, now: Timestamp) -> String {
        let mut told = String::new();
        let short = |sha: &Option<Sha>| sha.as_ref().map(|sha| sha.short().to_string());
        if let (Some(base), Some(candidate)) = (short(&entry.base), short(&entry.candidate)) {
            told += &format!("  {candidate} on {base}");
        }
        if let Some(since) = entry.tested_since {
            let ran = u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX);
            told += &format!("  for {}", span(ran));
            if let Some(left) = self.pace.map(|pace| pace.saturating_sub(ran)).filter(|left| *left > 0) {
                told += &format!(", about {} left", span(left));
            }
        }
        if let Some(reason) = &entry.reason {
            told += &format!("  {}", clean_line(reason, 160));
        }
        told
    }
}

fn why(entry: &QueueEntry) -> String {
    let reason = entry.reason.as_deref().unwrap_or_default();
    let files: Vec<String> = entry.conflict_files.iter().take(3).map(|f| clean_line(f, 80)).collect();
    match files.is_empty() {
        true => clean_line(reason, 160),
        false => format!("{} {}", files.join(", "), clean_line(reason, 160)).trim_end().to_owned(),
    }
}

fn span(ms: u64) -> String {
    match ms / 1000 {
        0 => format!("{ms} ms"),
        seconds @ 1..=119 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

fn paint(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}
