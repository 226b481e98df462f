//! The risk of a change: git's account of it and the history of its files, for the rules of the core.

use pointsman_adapters::git::changes;
use pointsman_adapters::git::history::touching;
use pointsman_core::config::ReviewMode;
use pointsman_core::ids::Sha;
use pointsman_core::queue::outside::is_session;
use pointsman_core::review::{Change, Past, Record, Risk, RiskFacts, parse};
use pointsman_core::words;

use super::served::Served;

/// How far back the record of agents in the files of a change is read, in commits that touched them.
const HISTORY: usize = 200;
/// A change of more files has no record that anybody could read; its size puts it into a high class by itself.
const FILES: usize = 500;

/// The risk of a change of main up to `head`, where that decides who looks at it. What cannot be read counts against the change.
pub(super) fn judge(served: &Served, main: &Sha, head: &Sha, protected: &[String]) -> Option<Risk> {
    if served.config.review.mode != ReviewMode::Risk {
        return None;
    }
    let unread = |what: &str, error: anyhow::Error| {
        tracing::warn!(head = %head, what, error = format!("{error:#}"), "a rule about risk cannot tell");
    };
    let change = change(served, main, head).map_err(|error| unread("change", error)).ok();
    let past = change.as_ref().map(|change| record(served, main, change));
    let record = past.and_then(|past| past.map_err(|error| unread("history", error)).ok());
    let facts = RiskFacts { change: change.as_ref(), protected, record };
    Some(Risk::of(&served.config.risk, &facts, head))
}

fn change(served: &Served, main: &Sha, head: &Sha) -> anyhow::Result<Change> {
    let base = served.mirror.merge_base(main, head)?;
    let base = base.ok_or_else(|| anyhow::anyhow!(words::daemon::review::no_shared_history()))?;
    let (raw, patch) = changes::lines(&served.mirror, &base, head)?;
    parse(&raw, &patch).ok_or_else(|| anyhow::anyhow!(words::daemon::review::unreadable_change()))
}

fn record(served: &Served, main: &Sha, change: &Change) -> anyhow::Result<Record> {
    anyhow::ensure!(change.files.len() <= FILES, words::risk::TOO_MANY_FILES);
    let paths: Vec<String> = change.files.iter().map(|file| file.path.clone()).collect();
    let commits = touching(&served.mirror, main, &paths, HISTORY)?.into_iter().map(|commit| Past {
        sha: commit.sha,
        by_agent: is_session(&commit.author),
        message: commit.message,
    });
    Ok(Record::of(&commits.collect::<Vec<_>>()))
}
