//! `health`: what is wrong with the machine or the project, with the figures it rests on.

use std::collections::BTreeMap;

use pointsman_core::health::{Assessment, Facts, Machine, Memory, Priority, Tail};
use pointsman_core::ids::Number;
use pointsman_core::task::{Phase, State};
use pointsman_core::time::Timestamp;
use pointsman_core::words::health as words;
use serde::{Deserialize, Serialize};

use crate::Time;

/// An assessment of health.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub at: Time,
    pub worst: Option<Priority>,
    pub findings: Vec<Finding>,
    /// Figures that nobody could read.
    pub unknown: Vec<String>,
    pub daemon: bool,
    pub machine: Machine,
    pub machine_text: String,
    /// How many tasks there are in each state; states without a task are absent.
    pub tasks: BTreeMap<State, usize>,
    pub sessions: usize,
    pub agents: Vec<Agent>,
    pub open_issues: Option<usize>,
    pub held_back: Option<String>,
    pub logs: Vec<Tail>,
    /// The remedies that were carried out, or would be.
    pub done: Vec<String>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub priority: Priority,
    pub kind: String,
    pub key: String,
    pub text: String,
    pub task: Option<Number>,
    pub remedy: Option<String>,
    pub advice: Option<String>,
    pub ignored_until: Option<Time>,
}

/// A session that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub session: String,
    pub task: Option<Number>,
    pub phase: Option<Phase>,
    pub gone: bool,
    pub last_seen: Time,
}

impl Health {
    /// The view of an assessment; `done` is what was done about it, or would be.
    pub fn new(
        facts: &Facts,
        assessment: &Assessment,
        logs: &[Tail],
        memory: &Memory,
        done: &[String],
        now: Timestamp,
    ) -> Self {
        let finding = |finding: &pointsman_core::health::Finding| Finding {
            priority: finding.priority(),
            kind: finding.kind().name().to_owned(),
            key: finding.key(),
            text: words::finding(finding, now),
            task: finding.task(),
            remedy: finding.remedy().as_ref().map(words::remedy),
            advice: words::advice(finding),
            ignored_until: memory.ignored_until(finding.kind(), now).map(Time),
        };
        let mut tasks = BTreeMap::new();
        for task in &facts.tasks {
            *tasks.entry(task.state).or_insert(0) += 1;
        }
        let phase = |issue: Option<Number>| {
            facts.tasks.iter().find(|task| Some(task.key.issue) == issue).and_then(|task| task.phase)
        };
        let agent = |session: &pointsman_core::health::SessionFact| Agent {
            session: session.session.clone(),
            task: session.issue,
            phase: phase(session.issue),
            gone: session.gone,
            last_seen: session.last_seen.into(),
        };
        Self {
            at: now.into(),
            worst: assessment.findings.first().map(|finding| finding.priority()),
            findings: assessment.findings.iter().map(finding).collect(),
            unknown: assessment.unknown.clone(),
            daemon: facts.daemon,
            machine: facts.machine.clone(),
            machine_text: words::machine(&facts.machine),
            tasks,
            sessions: facts.sessions.len(),
            agents: facts.sessions.iter().map(agent).collect(),
            open_issues: facts.issues.as_ref().map(Vec::len),
            held_back: facts.held_back.clone(),
            logs: logs.to_vec(),
            done: done.to_vec(),
        }
    }
}
