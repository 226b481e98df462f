//! Evidence for a decision about a pull request: its diff, its checks and their logs.

use std::path::{Path, PathBuf};

use pointsman_core::artifact::{Manifest, Origin};
use pointsman_core::config::{Config, RiskClass, RiskReviewer};
use pointsman_core::forge::CheckState;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::part::contribution::{Contribution, ReviewMode};
use pointsman_core::review::{ReceiptLine, Step, Verified};
use pointsman_core::task::CiVerdict;
use pointsman_core::words;
use serde::{Deserialize, Serialize};

use crate::Time;

/// `forge pr diff`: what a pull request changes, since its branch left the one it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    pub number: Number,
    pub base: String,
    /// The commit at which the branch left its base.
    pub base_sha: Sha,
    pub head_sha: Sha,
    /// The unified diff; absent with `--stat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The files and how much of each changed; only with `--stat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stat: Option<String>,
    /// The commit that you looked at last; only with `--since-last-look`, and none at the first look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_sha: Option<Sha>,
}

/// `forge pr checks`: a check of a commit of a pull request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub sha: Sha,
    pub status: CheckStatus,
    /// How long it took; none while it runs, and for a check that somebody else ran.
    pub seconds: Option<f64>,
    /// The end of its output; none if nobody here has it.
    pub log: Option<String>,
}

/// `ci logs`: the output of one run of the project's CI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CiLog {
    /// Which run of the task's CI, from 1; none for the CI of a person's pull request.
    pub run: Option<u32>,
    /// None if the run is older than the log of events.
    pub sha: Option<Sha>,
    pub status: Option<CheckStatus>,
    pub started_at: Option<Time>,
    pub seconds: Option<f64>,
    pub log: String,
}

/// The answer of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Pending,
    Passed,
    Failed,
    /// The machinery failed, which says nothing about the code.
    Infra,
    TimedOut,
}

impl CheckStatus {
    /// The name that scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Infra => "infra",
            Self::TimedOut => "timed_out",
        }
    }
}

impl From<CheckState> for CheckStatus {
    fn from(state: CheckState) -> Self {
        match state {
            CheckState::Pending => Self::Pending,
            CheckState::Success => Self::Passed,
            CheckState::Failure => Self::Failed,
        }
    }
}

impl From<&CiVerdict> for CheckStatus {
    fn from(verdict: &CiVerdict) -> Self {
        match verdict {
            CiVerdict::Passed => Self::Passed,
            CiVerdict::Failed { .. } => Self::Failed,
            CiVerdict::Infra { .. } | CiVerdict::Unreached { .. } => Self::Infra,
            CiVerdict::TimedOut { .. } => Self::TimedOut,
        }
    }
}

/// The files that sessions and CI left for those who review a pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifacts {
    pub files: Vec<Artifact>,
    /// What was left out, and why, a sentence each.
    pub left_out: Vec<String>,
}

/// One such file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    pub from: Origin,
    pub name: String,
    pub bytes: u64,
    /// The commit that it is about, if that is known.
    pub sha: Option<Sha>,
    pub at: Time,
    pub path: PathBuf,
}

impl Artifacts {
    /// Adds the files of a manifest, which lie in `dir`.
    pub fn add(&mut self, from: Origin, manifest: &Manifest, dir: &Path) {
        self.files.extend(manifest.files.iter().map(|file| Artifact {
            from,
            name: file.name.clone(),
            bytes: file.bytes,
            sha: manifest.sha.clone(),
            at: manifest.at.into(),
            path: dir.join(&file.name),
        }));
        self.left_out.extend(manifest.left_out.iter().cloned());
    }

    /// A line for each file and for what was left out.
    pub fn lines(&self) -> Vec<String> {
        let line = |file: &Artifact| {
            words::artifact::line(file.from.name(), &file.name, file.bytes, &file.path.to_string_lossy())
        };
        self.files.iter().map(line).chain(self.left_out.iter().cloned()).collect()
    }
}

/// The class of risk of a pull request, where that decides who looks at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Risk {
    pub class: RiskClass,
    /// Whom it needs before it may land.
    pub needs: RiskReviewer,
    /// Why it is not in a lower class, a sentence each.
    pub reasons: Vec<String>,
    /// Whether a person looks at it because it was drawn.
    pub sampled: bool,
}

impl Risk {
    /// The risk of the head of a contribution; none where something else decides who looks, or nobody judged it.
    pub fn of(part: &Contribution, config: &Config) -> Option<Self> {
        let (ReviewMode::Risk(reviewers), Some(risk)) = (ReviewMode::new(config), part.risk()) else {
            return None;
        };
        Some(Self {
            class: risk.class,
            needs: reviewers.of(Some(risk)),
            reasons: risk.reasons.clone(),
            sampled: risk.sampled,
        })
    }

    /// Its lines as people read them.
    pub fn lines(&self) -> Vec<String> {
        words::risk::lines_of(self.class, self.needs, self.sampled, &self.reasons)
    }
}

/// One line of a receipt: what was run on a pull request, on which commit, with what result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub step: Step,
    pub sha: Option<Sha>,
    pub result: Verified,
    pub text: String,
}

impl From<&ReceiptLine> for Receipt {
    fn from(line: &ReceiptLine) -> Self {
        let ReceiptLine { step, sha, result, text } = line.clone();
        Self { step, sha, result, text }
    }
}
