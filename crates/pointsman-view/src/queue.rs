//! The merge queue: `merge-queue …` and the file `.claude/state/merge-queue.json`.

use std::path::PathBuf;

use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::queue::EntryId;
use serde::{Deserialize, Serialize};

use crate::Time;

/// A branch in the merge queue, or one that was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place among those that wait, from 1; none for one that is over.
    pub position: Option<usize>,
    pub entry: EntryId,
    pub project: ProjectName,
    pub branch: String,
    pub pr_number: Option<Number>,
    pub issue: Option<Number>,
    pub identity_name: Option<String>,
    pub worktree_path: Option<PathBuf>,
    pub bead_id: Option<String>,
    pub node_id: Option<String>,
    pub priority: i64,
    pub attempts: u32,
    pub status: Status,
    pub head_sha: Sha,
    pub base_sha: Option<Sha>,
    pub candidate_sha: Option<Sha>,
    pub conflict_files: Vec<String>,
    pub conflicts_with: Option<String>,
    pub requested_at: Time,
    pub tested_since: Option<Time>,
    pub landed_at: Option<Time>,
    pub reason: Option<String>,
    /// The gate's log of a red one, if it is kept.
    #[serde(default)]
    pub log_path: Option<PathBuf>,
}

/// One entry with what the gate said last: `merge-queue show`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    #[serde(flatten)]
    pub entry: Entry,
    /// When the gate last ran on its candidate.
    pub tested_at: Option<Time>,
    /// `green`, `red` or `timed_out`.
    pub verdict: Option<String>,
    /// The end of the gate's log.
    pub log: Option<String>,
}

/// The answer to `merge-queue retest`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retested {
    /// How many verdicts were forgotten.
    pub forgotten: usize,
    /// The entry that is in the queue again, if it was out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
}

/// The answer to `sync`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synced {
    /// The main branch of the forge now.
    pub head: Sha,
    /// How many commits were brought.
    pub commits: u64,
}

/// A branch that was tested on today's main without landing: `merge-queue try`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    pub branch: String,
    pub head_sha: Sha,
    pub base_sha: Sha,
    /// The commit that was tested; none if there is nothing to test.
    pub candidate_sha: Option<Sha>,
    pub verdict: Option<TrialVerdict>,
    pub conflict_files: Vec<String>,
    pub reason: Option<String>,
    /// The gate's log, if the branch is not green.
    pub log_path: Option<PathBuf>,
    /// The end of the gate's log.
    pub log: Option<String>,
    /// The daemon's answer to the command: the checkout to test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<PathBuf>,
}

/// The result of `merge-queue try`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialVerdict {
    Green,
    Red,
    TimedOut,
    /// The gate said nothing about the code.
    Infra,
    Conflict,
    /// The branch changes nothing on main.
    Nothing,
}

/// The standing of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Queued,
    Building,
    Testing,
    Landed,
    Conflict,
    Red,
    Stale,
    Removed,
}

/// The whole queue at a glance: `merge-queue status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    pub length: usize,
    /// The first entry that is being built or tested.
    pub current: Option<Entry>,
    pub landed: usize,
    pub last_landed_at: Option<Time>,
    pub paused: bool,
    pub paused_reason: Option<String>,
    pub frozen_by_audit: bool,
    pub direct_merges_total: u64,
    pub person_merges_total: u64,
    pub main_sha: Option<Sha>,
    pub gate_seconds: Option<f64>,
    pub entries: Vec<Entry>,
}

/// The daemon's answer to `merge-queue add`; the command prints the whole entry where it can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    pub entry: EntryId,
    pub branch: String,
    pub head_sha: Sha,
}

/// The answer to `merge-queue remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    pub entry: EntryId,
    pub branch: String,
    pub status: Status,
}

/// `merge-queue pause` and `resume`; only the latter says whether the queue was paused before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    pub paused: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was_paused: Option<bool>,
}
