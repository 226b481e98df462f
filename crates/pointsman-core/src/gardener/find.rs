//! Faults of the open issues, found by rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::{DUPLICATE, Memory, Texts};
use crate::config::Config;
use crate::dependencies;
use crate::forge::Issue;
use crate::ids::{Number, Sha};
use crate::labels::{ACTION, BLOCKED, IN_PROGRESS, TECH_DEBT, UNDERSPECIFIED, VISION, has};
use crate::time::Timestamp;

/// Issues that are compared with each other, the newest: each with each, so their number counts twice.
const COMPARED: usize = 1000;
/// A longer body is more than one task.
const LONG_BODY: usize = 6000;
/// So many boxes to tick are more than one task.
const MANY_BOXES: usize = 12;
/// A tech-debt issue with fewer characters may be too small for one.
const SMALL_BODY: usize = 300;

/// The key of the finding about `AGENTS.md`.
pub(super) const AGENTS_MD: &str = "agents-md";

/// Something that looks wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// Much has landed since somebody looked at `AGENTS.md`, or at whether there should be one.
    AgentsMd {
        /// The head of the main branch.
        head: Sha,
        /// How many commits have landed since.
        commits: u64,
        /// Whether there is none.
        missing: bool,
    },
    /// Two issues say the same, it seems.
    Duplicate { issue: Number, of: Number, percent: u32 },
    /// Nothing says when it is done.
    NoCriteria { issue: Number },
    /// It is more than one task.
    Oversized { issue: Number },
    /// Nobody has touched it for long.
    Stale { issue: Number, days: u64 },
    /// Issues wait for each other.
    Cycle {
        /// Which; the first stands for all.
        issues: Vec<Number>,
    },
    /// Others wait for it, and it is open for long.
    StaleDependency { issue: Number, waiting: Vec<Number> },
    /// It is blocked: perhaps no longer for a reason.
    Blocked {
        issue: Number,
        /// Issues it waits for that are open.
        #[serde(default)]
        waits: Vec<Number>,
        /// Issues it waited for that are not open any more.
        #[serde(default)]
        met: Vec<Number>,
        /// Why its task is blocked, if it has one.
        #[serde(default)]
        because: Option<String>,
    },
    /// It may be too small for an issue of its own.
    Small { issue: Number },
}

impl Finding {
    /// The issue that something can be done about.
    pub fn issue(&self) -> Number {
        match self {
            Self::Duplicate { issue, .. }
            | Self::NoCriteria { issue }
            | Self::Oversized { issue }
            | Self::Stale { issue, .. }
            | Self::StaleDependency { issue, .. }
            | Self::Blocked { issue, .. }
            | Self::Small { issue } => *issue,
            Self::Cycle { issues } => issues.first().copied().unwrap_or_default(),
            // There is no issue with this number: no line of an answer can be about it.
            Self::AgentsMd { .. } => 0,
        }
    }

    /// All issues it is about.
    pub fn issues(&self) -> Vec<Number> {
        match self {
            Self::AgentsMd { .. } => Vec::new(),
            Self::Duplicate { issue, of, .. } => vec![*issue, *of],
            Self::Cycle { issues } => issues.clone(),
            Self::StaleDependency { issue, waiting } => [*issue].into_iter().chain(waiting.clone()).collect(),
            Self::NoCriteria { issue }
            | Self::Oversized { issue }
            | Self::Stale { issue, .. }
            | Self::Blocked { issue, .. }
            | Self::Small { issue } => vec![*issue],
        }
    }

    /// The same for as long as it is the same trouble.
    pub fn key(&self) -> String {
        let kind = match self {
            Self::AgentsMd { .. } => return AGENTS_MD.to_owned(),
            Self::Duplicate { .. } => "duplicate",
            Self::NoCriteria { .. } => "no-criteria",
            Self::Oversized { .. } => "oversized",
            Self::Stale { .. } => "stale",
            Self::Cycle { .. } => "cycle",
            Self::StaleDependency { .. } => "stale-dependency",
            Self::Blocked { .. } => "blocked",
            Self::Small { .. } => "small",
        };
        let issues: Vec<String> = self.issues().iter().map(ToString::to_string).collect();
        format!("{kind}:{}", issues.join("-"))
    }
}

/// Looks through the open issues. What somebody works on is left alone, and so are goals, actions and predictions.
pub fn findings(issues: &[Issue], memory: &Memory, config: &Config, now: Timestamp) -> Vec<Finding> {
    let ours: Vec<&Issue> = issues.iter().filter(|issue| is_groomed(issue)).collect();
    let mut found = duplicates(&ours);
    found.extend(outdated(memory, config));
    for issue in &ours {
        let number = issue.number;
        let oversized = issue.body.chars().count() > LONG_BODY || boxes(&issue.body) > MANY_BOXES;
        if has(&issue.labels, BLOCKED) {
            found.push(blocked(issue, issues, memory));
        } else if has(&issue.labels, TECH_DEBT) && issue.body.chars().count() < SMALL_BODY {
            found.push(Finding::Small { issue: number });
        } else if has(&issue.labels, UNDERSPECIFIED) {
            // It has been said.
        } else if oversized {
            found.push(Finding::Oversized { issue: number });
        } else if !has_criteria(&issue.body) {
            found.push(Finding::NoCriteria { issue: number });
        }
        let untouched = now.since(memory.changed_at(issue));
        if untouched > config.timing.stale_issue.duration() {
            found.push(Finding::Stale { issue: number, days: untouched.as_secs() / 86_400 });
        }
    }
    found.extend(by_dependencies(issues, config, now));
    found.sort();
    found
}

/// Whether the gardener looks at it.
pub(super) fn is_groomed(issue: &Issue) -> bool {
    let apart = |label: &String| {
        label == IN_PROGRESS || label == VISION || label == ACTION || label.starts_with("prediction/")
    };
    !issue.labels.iter().any(apart)
}

/// `AGENTS.md`, when the main branch has moved far enough since it was last touched or asked about.
fn outdated(memory: &Memory, config: &Config) -> Option<Finding> {
    let far = u64::from(config.limits.gardener_refresh);
    let main = memory.ground.main.as_ref().filter(|main| far > 0 && main.commits >= far)?;
    Some(Finding::AgentsMd { head: main.head.clone(), commits: main.commits, missing: main.missing })
}

/// With what it waits for: by its own words, and by those of its task.
fn blocked(issue: &Issue, issues: &[Issue], memory: &Memory) -> Finding {
    let task = memory.ground.blocked.get(&issue.number);
    let mut wanted = dependencies::parse(&issue.body);
    wanted.extend(task.iter().flat_map(|task| &task.waits_for));
    wanted.remove(&issue.number);
    let is_open = |number: &Number| issues.iter().any(|open| open.number == *number);
    let (waits, met) = wanted.into_iter().partition(is_open);
    Finding::Blocked { issue: issue.number, waits, met, because: task.and_then(|task| task.because.clone()) }
}

fn duplicates(issues: &[&Issue]) -> Vec<Finding> {
    let newest = &issues[issues.len().saturating_sub(COMPARED)..];
    let texts = Texts::new(newest.iter().map(|issue| (issue.title.as_str(), issue.body.as_str())));
    let mut found = Vec::new();
    for (place, issue) in newest.iter().enumerate() {
        // The one it is most like stands for all.
        let likeness = |other: usize| (texts.alike(place, other) * 100.0) as u32;
        let older = (0..newest.len()).filter(|other| newest[*other].number < issue.number);
        let best = older
            .map(|other| (likeness(other), other))
            .max_by_key(|(percent, other)| (*percent, usize::MAX - other));
        if let Some((percent, other)) = best.filter(|(percent, _)| f64::from(*percent) >= DUPLICATE * 100.0) {
            found.push(Finding::Duplicate { issue: issue.number, of: newest[other].number, percent });
        }
    }
    found
}

fn by_dependencies(issues: &[Issue], config: &Config, now: Timestamp) -> Vec<Finding> {
    let graph: BTreeMap<Number, BTreeSet<Number>> =
        issues.iter().map(|issue| (issue.number, dependencies::parse(&issue.body))).collect();
    let cycles = dependencies::cycles(&graph).into_iter().map(|issues| Finding::Cycle { issues });
    let stale = issues.iter().filter_map(|issue| {
        let waiting: Vec<Number> = graph
            .iter()
            .filter(|(waits, wanted)| **waits != issue.number && wanted.contains(&issue.number))
            .map(|(waits, _)| *waits)
            .collect();
        let long = now.since(issue.created_at) > config.timing.stale_dependency.duration();
        (long && !waiting.is_empty()).then_some(Finding::StaleDependency { issue: issue.number, waiting })
    });
    cycles.chain(stale).collect()
}

/// Whether the body says when it is done: a heading or a line for it, or boxes to tick.
fn has_criteria(body: &str) -> bool {
    static CRITERIA: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?im)acceptance[ \t-]+criteri|^\W*(done when|definition of done|expected\b|to check\b)")
            .expect("the pattern is fixed and covered by tests")
    });
    CRITERIA.is_match(body) || boxes(body) > 0
}

fn boxes(body: &str) -> usize {
    let is_box = |line: &&str| {
        let line = line.trim_start().trim_start_matches(['-', '*', '+']).trim_start();
        line.starts_with("[ ]") || line.starts_with("[x]") || line.starts_with("[X]")
    };
    body.lines().filter(is_box).count()
}
