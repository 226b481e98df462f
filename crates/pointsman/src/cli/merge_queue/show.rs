//! One entry of the queue, with the gate's last word on it.

use std::path::PathBuf;

use clap::Args;
use pointsman_adapters::git::Git;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_core::queue::Record;
use pointsman_core::task::CiVerdict;
use pointsman_core::text::clean_block;
use pointsman_core::time::Timestamp;
use pointsman_store::QueueEntry;
use pointsman_view::queue::Shown;

use super::super::context::Context;
use super::super::failure::Failure;
use super::super::time;
use super::list::name;
use super::{Queue, QueueSelection};
use crate::queue_view;

/// How much of a log's end is shown, in lines and in bytes.
const LINES: usize = 40;
const BYTES: usize = 16 << 10;

/// The arguments of `merge-queue show`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The entry's number, or a branch for its newest entry
    what: String,
    #[command(flatten)]
    which: QueueSelection,
}

impl Arguments {
    /// Prints the entry and what the gate said of it.
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let queue = Queue::of(context, &self.which)?;
        let entry = queue.find(&self.what)?;
        let tested = Tested::look(&queue, &entry)?;
        if context.out.is_json() {
            let mut views = queue_view::of(std::slice::from_ref(&entry));
            let Some(mut view) = views.pop() else { return Ok(()) };
            view.log_path = tested.as_ref().and_then(|tested| tested.log_path.clone());
            return context.out.value(&Shown {
                entry: view,
                tested_at: tested.as_ref().map(|tested| tested.at.into()),
                verdict: tested.as_ref().map(|tested| tested.verdict.to_owned()),
                log: tested.map(|tested| tested.log),
            });
        }
        let now = time::now();
        let out = &context.out;
        out.line(format!("entry {}  {}  {}", entry.id, entry.branch, name(entry.status)))?;
        out.line(format!("requested {}", time::relative(entry.requested_at, now)))?;
        if let (Some(base), Some(candidate)) = (&entry.base, &entry.candidate) {
            out.line(format!("candidate {candidate} on {base}"))?;
        }
        if let Some(reason) = &entry.reason {
            out.line(format!("reason {}", clean_block(reason, BYTES)))?;
        }
        for file in &entry.conflict_files {
            out.line(format!("conflict in {}", clean_block(file, BYTES)))?;
        }
        let Some(tested) = tested else { return Ok(()) };
        out.line(format!("{} {}", tested.verdict, time::relative(tested.at, now)))?;
        if let Some(path) = &tested.log_path {
            out.line(format!("log {}", path.display()))?;
        }
        match tested.log.is_empty() {
            true => Ok(()),
            false => out.line(format!("\n{}", tested.log)),
        }
    }
}

/// What the gate said about a candidate.
pub(super) struct Tested {
    pub(super) at: Timestamp,
    pub(super) verdict: &'static str,
    pub(super) log_path: Option<PathBuf>,
    /// The end of the log.
    pub(super) log: String,
}

impl Tested {
    /// Nothing if the candidate was never tested, or not lately. Only the mirror's own objects are read; no server is
    /// asked.
    pub(super) fn look(queue: &Queue, entry: &QueueEntry) -> Result<Option<Self>, Failure> {
        let config = &queue.project.config;
        let mirror = queue.context.paths.project(&config.name).mirror();
        let (Some(candidate), Some(gate), true) =
            (&entry.candidate, queue_view::gate_name(config), mirror.is_dir())
        else {
            return Ok(None);
        };
        let Some(store) = queue.context.store()? else { return Ok(None) };
        let tree = || -> anyhow::Result<_> {
            let git = Git::open(queue.context.paths.state())?;
            // Nothing is asked of the remote.
            let mirror = Mirror::open_or_create(&git, &mirror, "/nowhere")?;
            if !mirror.commit_exists(candidate)? {
                return Ok(None);
            }
            Ok(Some(mirror.tree_of(candidate)?))
        };
        let Some(tree) = tree()? else { return Ok(None) };
        let Some(row) = store.verdict(&config.name, &tree, &gate)? else { return Ok(None) };
        let Some(record) = serde_json::from_value::<Record>(row.verdict).ok().and_then(|r| r.kept()) else {
            return Ok(None);
        };
        let (verdict, log) = match record.last {
            CiVerdict::Passed => ("green", String::new()),
            CiVerdict::Failed { log, .. } => ("red", log),
            CiVerdict::TimedOut { log } => ("timed_out", log),
            CiVerdict::Infra { .. } | CiVerdict::Unreached { .. } => return Ok(None),
        };
        let lines: Vec<&str> = log.lines().collect();
        let end = lines[lines.len().saturating_sub(LINES)..].join("\n");
        let log_path = row.log_path.filter(|path| path.is_file());
        Ok(Some(Self { at: row.at, verdict, log_path, log: clean_block(&end, BYTES) }))
    }
}
