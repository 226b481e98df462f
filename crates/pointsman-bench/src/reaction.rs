//! From the closing write of a phase file to the message reaching the agent.

use std::time::Duration;

use anyhow::bail;
use serde_json::{Value, json};

use crate::fleet::{Answer, Fleet};
use crate::report::{Report, Target};
use crate::sample::{Chance, Sample};
use crate::{polling, wait};

/// For one answer; a loop with ten seconds of sleep would still make it.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// For all sessions at once.
const BURST_LIMIT: Duration = Duration::from_secs(60);
/// Issue 2: at most so many milliseconds for 99 of 100, with the most sessions.
const P99_LIMIT: f64 = 100.0;

/// How claims are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// How many, one after another.
    pub(crate) claims: usize,
    /// After each answer, a random pause up to this.
    pub(crate) pause: Duration,
}

/// One line of the table.
pub(crate) struct Finding {
    pub(crate) sessions: u64,
    pub(crate) way: &'static str,
    /// What the sessions claimed `done` from.
    pub(crate) claim: &'static str,
    pub(crate) sample: Sample,
    /// Whether this is what was promised.
    pub(crate) promised: bool,
}

/// Random sessions claim one after another.
pub(crate) fn one_by_one(fleet: &mut Fleet, sessions: &[u64], pace: Pace) -> anyhow::Result<Sample> {
    let mut chance = Chance::new();
    let mut millis = Vec::with_capacity(pace.claims);
    for _ in 0..pace.claims {
        let session = sessions[usize::try_from(chance.below(sessions.len() as u64))?];
        fleet.ring(session, "claim")?;
        millis.extend(times(fleet.hear(1, ANSWER_LIMIT)?)?);
        let pause = u64::try_from(pace.pause.as_micros())?;
        wait::pause(Duration::from_micros(chance.below(pause.max(1))))?;
    }
    Ok(Sample::new(millis))
}

/// All sessions claim at once.
pub(crate) fn burst(fleet: &mut Fleet, sessions: &[u64]) -> anyhow::Result<Sample> {
    for session in sessions {
        fleet.ring(*session, "claim")?;
    }
    Ok(Sample::new(times(fleet.hear(sessions.len(), BURST_LIMIT)?)?))
}

fn times(answers: Vec<Answer>) -> anyhow::Result<Vec<f64>> {
    answers
        .into_iter()
        .map(|answer| match answer {
            Answer::Answered(millis) => Ok(millis),
            Answer::Up | Answer::Prompted | Answer::Pushed => {
                bail!("an agent said {answer:?} instead of how it was answered")
            }
        })
        .collect()
}

/// The findings as a report.
pub(crate) fn report(findings: &[Finding]) -> Report {
    let targets = findings
        .iter()
        .filter(|finding| finding.promised)
        .map(|finding| Target {
            what: format!("p99 of the reaction with {} sessions, {}:", finding.sessions, finding.claim),
            unit: "ms",
            limit: P99_LIMIT,
            found: finding.sample.percentile(99),
        })
        .collect();
    Report {
        name: "reaction",
        title: format!(
            "Reaction: from the closing write of the phase file to the line on the agent's terminal, milliseconds.\n\
             \"polling\" is a shell loop with head and tmux send-keys that sleeps for {} s (the original: 10 s).",
            polling::SECONDS
        ),
        header: vec!["WAY", "SESSIONS", "CLAIM", "SAMPLES", "P50", "P99", "MAX"],
        rows: findings.iter().map(row).collect(),
        targets,
        results: findings.iter().map(to_json).collect(),
    }
}

fn row(finding: &Finding) -> Vec<String> {
    let sample = &finding.sample;
    let millis = |value: f64| format!("{value:.1}");
    vec![
        finding.way.to_owned(),
        finding.sessions.to_string(),
        finding.claim.to_owned(),
        sample.len().to_string(),
        millis(sample.percentile(50)),
        millis(sample.percentile(99)),
        millis(sample.max()),
    ]
}

fn to_json(finding: &Finding) -> Value {
    let mut value = finding.sample.to_json();
    value["way"] = json!(finding.way);
    value["sessions"] = json!(finding.sessions);
    value["claim"] = json!(finding.claim);
    if finding.way == "polling" {
        value["poll_seconds"] = json!(polling::SECONDS);
    }
    value
}
