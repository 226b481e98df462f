//! Reports to people, and their times: if something changed, and again after a while if it needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Finding, Kind};
use crate::config::Config;
use crate::run::RunId;
use crate::text::clean_block;
use crate::time::Timestamp;
use crate::words;

/// Lines of a model's summary that are passed on.
const SUMMARY_LINES: usize = 10;
/// Longest summary.
const SUMMARY_BYTES: usize = 2000;

/// What is back sooner has not really gone.
const COMES_BACK: Duration = Duration::from_secs(24 * 3600);

/// The supervisor's memory between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub looked_at: Timestamp,
    /// What was wrong then, ignored or not.
    pub findings: Vec<Finding>,
    /// What people were told last, by key.
    pub told: BTreeSet<String>,
    pub told_at: Timestamp,
    /// How often the same was told.
    pub repeat: u32,
    /// Warnings that nobody wants to hear, until when.
    pub ignored: BTreeMap<Kind, Timestamp>,
    /// What a model was asked about, by key, and when it was last found.
    pub judged: BTreeMap<String, Timestamp>,
    /// What people were told to be well again, by key, and when.
    pub gone: BTreeMap<String, Timestamp>,
    /// The run that was asked and is not heard yet.
    pub run: Option<RunId>,
}

impl Memory {
    /// The keys of what was wrong.
    pub fn keys(&self) -> BTreeSet<String> {
        self.findings.iter().map(Finding::key).collect()
    }

    /// Until when nobody wants to hear of it.
    pub fn ignored_until(&self, kind: Kind, now: Timestamp) -> Option<Timestamp> {
        self.ignored.get(&kind).copied().filter(|until| *until > now)
    }
}

/// The consequences of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What is to be remembered.
    pub memory: Memory,
    /// Whether what is wrong is not what was wrong before: then it goes into the journal.
    pub changed: bool,
    /// What people are told; nothing if there is nothing new.
    pub told: Option<HealthSummary>,
    /// What no recipe covers and no model has seen yet.
    pub ask: Vec<Finding>,
}

/// A summary that people get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthSummary {
    /// What is new since the last one.
    pub new: Vec<Finding>,
    /// What stands as it stood.
    pub standing: Vec<Finding>,
    /// What is well again, as it was.
    pub gone: Vec<Finding>,
    /// Whether a person has to act.
    pub urgent: bool,
    /// How often it was said before.
    pub repeat: u32,
}

/// Decides what a look means.
pub fn report(before: &Memory, findings: &[Finding], config: &Config, now: Timestamp) -> Report {
    let comes_and_goes = |finding: &Finding| {
        let gone = before.gone.get(&finding.key());
        !finding.priority().escalates() && gone.is_some_and(|at| now.since(*at) < COMES_BACK)
    };
    let (heard, unheard): (Vec<&Finding>, Vec<&Finding>) = findings
        .iter()
        .partition(|finding| before.ignored_until(finding.kind(), now).is_none() && !comes_and_goes(finding));
    let keys: BTreeSet<String> = heard.iter().map(|finding| finding.key()).collect();
    // What was told and is not to be heard any more stands all the same: it is not well again.
    let hushed: BTreeSet<String> =
        unheard.iter().map(|finding| finding.key()).filter(|key| before.told.contains(key)).collect();
    let keys_before: BTreeSet<String> = before.told.difference(&hushed).cloned().collect();
    let urgent = heard.iter().any(|finding| finding.priority().escalates());
    let again = keys == keys_before
        && urgent
        && now.since(before.told_at) >= config.timing.escalation_renotify.duration();
    let (new, standing): (Vec<Finding>, Vec<Finding>) = heard
        .iter()
        .map(|finding| (*finding).clone())
        .partition(|finding| !keys_before.contains(&finding.key()));
    let is_gone = |finding: &&Finding| {
        let key = finding.key();
        keys_before.contains(&key) && !keys.contains(&key)
    };
    let gone: Vec<Finding> = before.findings.iter().filter(is_gone).cloned().collect();
    let news = keys != keys_before;
    let told = (news || again).then(|| HealthSummary {
        urgent: again || new.iter().any(|finding| finding.priority().escalates()),
        new,
        standing,
        gone: gone.clone(),
        repeat: if again { before.repeat + 1 } else { 0 },
    });
    let all: BTreeSet<String> = findings.iter().map(Finding::key).collect();
    let ask: Vec<Finding> = heard
        .iter()
        .filter(|_| config.health.ask_model && before.run.is_none())
        .filter(|finding| needs_judgement(finding))
        .filter(|finding| before.judged.get(&finding.key()).is_none_or(|at| now.since(*at) >= COMES_BACK))
        .map(|finding| (*finding).clone())
        .collect();
    let mut memory = before.clone();
    memory.looked_at = now;
    memory.findings = findings.to_vec();
    memory.ignored.retain(|_, until| *until > now);
    // What is well again may be told and asked about when it comes back, but not if it comes and goes.
    memory.judged.iter_mut().filter(|(key, _)| all.contains(*key)).for_each(|(_, at)| *at = now);
    memory.judged.retain(|_, at| now.since(*at) < COMES_BACK);
    memory.gone.retain(|_, at| now.since(*at) < COMES_BACK);
    memory.gone.extend(gone.iter().map(|finding| (finding.key(), now)));
    memory.told = keys.into_iter().chain(hushed).collect();
    if let Some(told) = &told {
        memory.told_at = now;
        memory.repeat = told.repeat;
    }
    Report { changed: all != before.keys(), memory, told, ask }
}

/// Reads a model's judgement of findings: a few lines for people, and nothing else.
pub fn judgement(result: Option<&serde_json::Value>) -> Result<String, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Judgement {
        summary: String,
    }
    let Some(result) = result else { return Err(words::answer::NO_RESULT.to_owned()) };
    let judged: Judgement =
        serde_json::from_value(result.clone()).map_err(|error| words::answer::not_a("summary", error))?;
    let lines: Vec<&str> = judged.summary.lines().take(SUMMARY_LINES).collect();
    Ok(clean_block(&lines.join("\n"), SUMMARY_BYTES))
}

/// Whether a model may have something to say: no recipe covers it, and it is not the machine's own trouble, which no
/// session can mend and which another session would make worse.
fn needs_judgement(finding: &Finding) -> bool {
    finding.remedy().is_none()
        && match finding.kind() {
            Kind::Ci
            | Kind::Log
            | Kind::Agent
            | Kind::Pipeline
            | Kind::PullRequest
            | Kind::Dependency
            | Kind::Blocked => true,
            Kind::Memory
            | Kind::Swap
            | Kind::Disk
            | Kind::Load
            | Kind::Containers
            | Kind::Daemon
            | Kind::Notifier
            | Kind::Housekeeping => false,
        }
}
