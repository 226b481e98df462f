//! A contribution to the main branch: a branch that is pushed, opened as a pull request, tested, reviewed, queued and
//! merged.
//!
//! [`Contribution::happened`] takes in what became known about it and [`Contribution::time_passed`] what is due. CI, reviews
//! and the merge queue speak of commits, so what they said is kept with the head that they spoke of: a verdict, an approval
//! or an entry of the merge queue without a pushed head cannot be written down. Who made the commits, and who is asked when
//! they cannot land, is the owner's business.

mod event;
mod fact;
mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use event::Event;
pub use fact::{CiVerdict, Fact, PrFact, QueueOutcome, ReviewVerdict};
pub use step::OwnerFacts;

use crate::config::{self, RiskReviewer};
use crate::ids::{Number, Sha};
use crate::part::question::Cause;
use crate::review::{Reviewers, Risk};
use crate::task::Headline;
use crate::time::Timestamp;

/// The verdict of CI on the head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Ci {
    #[default]
    None,
    /// Ordered; `run` tells the answers of different tries apart.
    Pending {
        run: u32,
    },
    Passed,
    Failed {
        /// Whether infrastructure was at fault.
        infra: bool,
        summary: String,
    },
    /// No answer in time.
    TimedOut,
}

/// The verdict of the reviewer on the head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Review {
    #[default]
    None,
    Approved {
        by: String,
    },
    ChangesRequested {
        by: String,
        body: String,
    },
}

/// The attempts that a contribution has used up. They outlive sessions, so that a new session does not start from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempts {
    /// Failures of CI that were handed back.
    pub ci_fixes: u32,
    /// Change requests that were handed back.
    pub review_rounds: u32,
    /// Infrastructure failures retried since CI was last ordered for a new head.
    pub infra_retries: u32,
    /// Merge conflicts that were handed back.
    pub merge_conflicts: u32,
}

/// The thing that a contribution waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaited {
    /// That its commits are on the forge.
    Push,
    Checks,
    Review,
    /// Its turn on the main branch.
    Queue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Wait {
    what: Awaited,
    until: Timestamp,
}

/// The head of the branch as the forge has it, and everything that was said about that commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pushed {
    head: Sha,
    #[serde(default)]
    pr: Option<Number>,
    #[serde(default)]
    ci: Ci,
    /// The last lines of the last run that was not green, for the people who are asked about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    log_end: String,
    #[serde(default)]
    review: Review,
    /// The people who approved this commit, while it needs more of them or since it has enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    approvals: Vec<String>,
    /// The paths it changes that need a person's approval, whoever else reviews.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    protected: Vec<String>,
    /// Its risk; none if nobody judged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    risk: Option<Risk>,
    /// The hosts that its last run was refused, if that made it red.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
}

impl Pushed {
    fn new(head: Sha, pr: Option<Number>) -> Self {
        Self {
            head,
            pr,
            ci: Ci::None,
            log_end: String::new(),
            review: Review::None,
            approvals: Vec::new(),
            protected: Vec::new(),
            risk: None,
            hosts: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
enum Progress {
    /// Nothing of it is on the forge. While that is awaited, until when.
    Local { until: Option<Timestamp> },
    /// On the forge. Without a wait somebody works on it, or was asked about it.
    Pushed { pushed: Pushed, wait: Option<Wait> },
    /// The main branch holds it as this commit. People can merge what we have never pushed.
    Merged { sha: Sha, pushed: Option<Pushed> },
}

/// A contribution and everything that is remembered about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contribution {
    /// The branch that its commits are pushed to.
    pub branch: String,
    /// How often CI was ordered. Numbers are never used twice.
    #[serde(default)]
    pub ci_run: u32,
    #[serde(default)]
    pub attempts: Attempts,
    /// What looked like a secret and was told to whoever works on it, by fingerprint.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    warned: BTreeSet<String>,
    progress: Progress,
}

/// An order that the owner passes on, or a fact that the owner draws its own conclusion from. They come in the order in
/// which they are to be dealt with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Bring the branch to the forge.
    Push,
    /// Find or open the pull request.
    Open,
    Check {
        sha: Sha,
        run: u32,
    },
    RequestReview {
        sha: Sha,
    },
    Enqueue {
        head: Sha,
    },
    Dequeue,
    /// Write the last CI result where the protocol has it.
    Record {
        text: String,
    },
    /// Say something to whoever works on it.
    Tell {
        headline: Headline,
        words: (String, String),
    },
    /// It waits for something else from now on.
    Awaits(Awaited),
    /// It needs other commits before it can land.
    Returned {
        why: String,
    },
    /// It was handed back as often as allowed.
    Exhausted {
        reason: String,
    },
    /// A person has to be asked.
    Ask {
        cause: Cause,
        reason: String,
    },
    /// Its pull request was closed without a merge.
    Closed,
    /// It is on the main branch.
    Merged {
        sha: Sha,
    },
}

/// The judge of whether a change may land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewMode {
    /// A person, on the forge.
    Human,
    /// A program of the project's own.
    Command,
    /// Whoever the risk of the head needs.
    Risk(Reviewers),
    None,
}

impl ReviewMode {
    /// The judge that a project's configuration names.
    pub fn new(config: &config::Config) -> Self {
        match config.review.mode {
            config::ReviewMode::None => Self::None,
            config::ReviewMode::Human => Self::Human,
            config::ReviewMode::Agent => Self::Command,
            config::ReviewMode::Risk => Self::Risk(Reviewers::new(&config.risk)),
        }
    }
}

/// The numbers of people who must approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approvals {
    /// Where people review.
    pub usual: u32,
    /// For a change of protected paths.
    pub protected: u32,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { usual: 1, protected: 1 }
    }
}

impl Approvals {
    /// The numbers of a project's configuration.
    pub fn new(config: &config::Config) -> Self {
        Self { usual: config.review.approvals, protected: config.review.protected_approvals }
    }

    /// The number of people that a change needs if people decide about it.
    pub fn needed(self, mode: ReviewMode, touches_protected: bool, risk: Option<&Risk>) -> usize {
        let usual = match mode {
            ReviewMode::Human => self.usual,
            ReviewMode::Risk(reviewers) => match reviewers.of(risk) {
                RiskReviewer::Nobody | RiskReviewer::Agent => 1,
                RiskReviewer::Person => self.usual,
                RiskReviewer::TwoPeople => self.usual.max(2),
            },
            // A person may approve in the place of a program, and one is as good as the program.
            ReviewMode::Command | ReviewMode::None => 1,
        };
        let needed = if touches_protected { usual.max(self.protected) } else { usual };
        usize::try_from(needed.max(1)).unwrap_or(usize::MAX)
    }
}

/// The numbers and switches that contributions are handled by.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether there is a CI at all.
    pub has_ci: bool,
    pub review: ReviewMode,
    pub approvals: Approvals,
    /// No answer from CI for this long is a time-out.
    pub ci_timeout: Duration,
    /// No review for this long is a time-out.
    pub review_timeout: Duration,
    pub queue_timeout: Duration,
    /// Failures of CI that are handed back.
    pub ci_fixes: u32,
    /// Change requests that are handed back.
    pub review_rounds: u32,
    /// Infrastructure failures retried per head.
    pub infra_retries: u32,
    /// Merge conflicts that are handed back.
    pub merge_conflicts: u32,
}

impl Policy {
    /// The numbers of a project's configuration.
    pub fn new(config: &config::Config) -> Self {
        let (timing, limits) = (&config.timing, &config.limits);
        Self {
            has_ci: config.ci.kind.tests_commits(),
            review: ReviewMode::new(config),
            approvals: Approvals::new(config),
            ci_timeout: timing.ci_timeout.into(),
            review_timeout: timing.review_timeout.into(),
            queue_timeout: timing.queue_timeout.into(),
            ci_fixes: limits.ci_fixes,
            review_rounds: limits.review_rounds,
            infra_retries: limits.infra_retries,
            merge_conflicts: limits.merge_conflicts,
        }
    }
}

impl Contribution {
    /// One of which nothing is on the forge yet.
    pub fn new(branch: String) -> Self {
        let progress = Progress::Local { until: None };
        Self { branch, ci_run: 0, attempts: Attempts::default(), warned: BTreeSet::new(), progress }
    }

    /// One whose head is on the forge, and about which nothing else is known.
    pub fn at(branch: String, head: Sha, pr: Option<Number>) -> Self {
        let progress = Progress::Pushed { pushed: Pushed::new(head, pr), wait: None };
        Self { progress, ..Self::new(branch) }
    }

    fn pushed(&self) -> Option<&Pushed> {
        match &self.progress {
            Progress::Local { .. } => None,
            Progress::Pushed { pushed, .. } => Some(pushed),
            Progress::Merged { pushed, .. } => pushed.as_ref(),
        }
    }

    /// The head of the branch as the forge has it.
    pub fn head(&self) -> Option<&Sha> {
        self.pushed().map(|pushed| &pushed.head)
    }

    /// The hosts that the last run on the head was refused, if it waits for a person to decide about them.
    pub fn refused_hosts(&self) -> &[String] {
        self.pushed().map(|pushed| pushed.hosts.as_slice()).unwrap_or_default()
    }

    /// Its pull request.
    pub fn pr(&self) -> Option<Number> {
        self.pushed().and_then(|pushed| pushed.pr)
    }

    /// The verdict of CI on the head.
    pub fn ci(&self) -> &Ci {
        self.pushed().map_or(&Ci::None, |pushed| &pushed.ci)
    }

    /// The last lines of the last run on the head that was not green.
    pub fn log_end(&self) -> &str {
        self.pushed().map_or("", |pushed| &pushed.log_end)
    }

    /// The verdict of the reviewer on the head.
    pub fn review(&self) -> &Review {
        self.pushed().map_or(&Review::None, |pushed| &pushed.review)
    }

    /// The people who approved the head.
    pub fn approvals(&self) -> &[String] {
        self.pushed().map_or(&[], |pushed| &pushed.approvals)
    }

    /// The number of people who must approve the head if people decide about it.
    pub fn approvals_needed(&self, approvals: Approvals, mode: ReviewMode) -> usize {
        approvals.needed(mode, !self.protected().is_empty(), self.risk())
    }

    /// The risk of the head; none if nobody judged it.
    pub fn risk(&self) -> Option<&Risk> {
        self.pushed().and_then(|pushed| pushed.risk.as_ref())
    }

    /// The judge of the head: where the risk decides, whoever its class needs.
    pub fn judge(&self, mode: ReviewMode) -> ReviewMode {
        match mode {
            ReviewMode::Human | ReviewMode::Command | ReviewMode::None => mode,
            ReviewMode::Risk(reviewers) => match reviewers.of(self.risk()) {
                RiskReviewer::Person | RiskReviewer::TwoPeople => ReviewMode::Human,
                RiskReviewer::Nobody | RiskReviewer::Agent if !self.protected().is_empty() => {
                    ReviewMode::Human
                }
                RiskReviewer::Agent => ReviewMode::Command,
                RiskReviewer::Nobody => ReviewMode::None,
            },
        }
    }

    /// The paths it changes that need a person's approval.
    pub fn protected(&self) -> &[String] {
        self.pushed().map_or(&[], |pushed| &pushed.protected)
    }

    /// The commit of the main branch that holds it.
    pub fn merged_as(&self) -> Option<&Sha> {
        match &self.progress {
            Progress::Merged { sha, .. } => Some(sha),
            Progress::Local { .. } | Progress::Pushed { .. } => None,
        }
    }

    /// The head and the number of the run, while CI is expected to answer.
    pub fn pending(&self) -> Option<(&Sha, u32)> {
        let pushed = self.pushed()?;
        match pushed.ci {
            Ci::Pending { run } => Some((&pushed.head, run)),
            Ci::None | Ci::Passed | Ci::Failed { .. } | Ci::TimedOut => None,
        }
    }

    /// Whether CI passed on exactly this commit.
    pub fn passed(&self, commit: &Sha) -> bool {
        self.pushed().is_some_and(|pushed| pushed.head == *commit && pushed.ci == Ci::Passed)
    }

    /// Whether exactly this commit was approved.
    pub fn is_approved(&self, commit: &Sha) -> bool {
        let approved = |pushed: &Pushed| matches!(pushed.review, Review::Approved { .. });
        self.pushed().is_some_and(|pushed| pushed.head == *commit && approved(pushed))
    }

    /// Whether exactly this commit waits for its turn on the main branch.
    pub fn is_queued(&self, commit: &Sha) -> bool {
        self.awaited() == Some(Awaited::Queue) && self.head() == Some(commit)
    }

    /// The thing that it waits for.
    pub fn awaited(&self) -> Option<Awaited> {
        match &self.progress {
            Progress::Local { until } => until.map(|_| Awaited::Push),
            Progress::Pushed { wait, .. } => wait.map(|wait| wait.what),
            Progress::Merged { .. } => None,
        }
    }

    /// The moment at which its present wait is over.
    pub fn wake_at(&self) -> Option<Timestamp> {
        match &self.progress {
            Progress::Local { until } => *until,
            Progress::Pushed { wait, .. } => wait.map(|wait| wait.until),
            Progress::Merged { .. } => None,
        }
    }

    /// Time went by in which this machine was not awake. The waits for a push, for CI and in the merge queue count only the
    /// other; a review is awaited by the clock on the wall, as the people who give it live by.
    pub fn skip(&mut self, by_ms: i64) {
        match &mut self.progress {
            Progress::Local { until } => *until = until.map(|at| at.moved(by_ms)),
            Progress::Pushed { wait: Some(wait), .. } => match wait.what {
                Awaited::Push | Awaited::Checks | Awaited::Queue => wait.until = wait.until.moved(by_ms),
                Awaited::Review => {}
            },
            Progress::Pushed { wait: None, .. } | Progress::Merged { .. } => {}
        }
    }

    /// Its commits are about to be brought to the forge, which may take until then.
    pub fn await_push(&mut self, until: Timestamp) {
        match &mut self.progress {
            Progress::Local { until: patience } => *patience = Some(until),
            Progress::Pushed { wait, .. } => *wait = Some(Wait { what: Awaited::Push, until }),
            Progress::Merged { .. } => {}
        }
    }

    /// Nothing is awaited from now on: somebody works on it, was asked about it, or has set it aside.
    pub fn rest(&mut self) {
        match &mut self.progress {
            Progress::Local { until } => *until = None,
            Progress::Pushed { wait, .. } => *wait = None,
            Progress::Merged { .. } => {}
        }
    }

    /// Forgets the commits and the attempts of earlier work. The numbers of its CI runs go on.
    pub fn begin_anew(&mut self) {
        self.attempts = Attempts::default();
        self.progress = Progress::Local { until: None };
    }
}
