//! Questions to people: `inbox …`.

use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::part::question::{self, Kind, Owner, QuestionId, Settlement};
use pointsman_core::words;
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::evidence::{Artifacts, Receipt, Risk};

/// A question to a person, with the commands that settle it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub id: Option<QuestionId>,
    pub project: ProjectName,
    pub kind: Kind,
    /// The workflow that asks: `task/3`, `run/7`, `vault/deploy-17`.
    pub owner: Owner,
    pub subject: String,
    pub body: String,
    pub issue: Option<Number>,
    pub pr: Option<Number>,
    pub session: Option<String>,
    /// Sessions that worked outside the sandbox on what is to be reviewed.
    #[serde(default)]
    pub outside: Vec<String>,
    /// Hosts that the session that asks was refused, a sentence each.
    #[serde(default)]
    pub refused: Vec<String>,
    /// What was run on the pull request that is to be reviewed.
    #[serde(default)]
    pub receipt: Vec<Receipt>,
    /// The class of risk of the pull request that is to be reviewed.
    #[serde(default)]
    pub risk: Option<Risk>,
    /// Files that help with the review.
    #[serde(default)]
    pub artifacts: Artifacts,
    pub asked_at: Time,
    /// How often it was asked.
    pub asked: u32,
    pub remind_at: Option<Time>,
    pub expires_at: Option<Time>,
    /// How many other tasks wait for its issue, or for the place that it holds.
    pub holds_up: u32,
    /// How many changed lines there are to review; none for other kinds, and where nobody knows.
    #[serde(default)]
    pub lines: Option<u64>,
    /// Commands. None if it is settled.
    pub settle: Vec<String>,
    pub settled: Option<Settled>,
}

/// The end of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    pub how: SettlementKind,
    /// Nobody if it ended by itself.
    pub by: Option<String>,
    pub at: Time,
    /// The answer, or the reason.
    pub text: Option<String>,
}

/// The way in which a question ended. The names are part of the surface that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettlementKind {
    Approved,
    Rejected,
    Answered,
    Dismissed,
    Expired,
    Withdrawn,
}

impl Question {
    /// A question that keeps so many other tasks waiting, with so many lines to read.
    pub fn new(asked: &question::Question, holds_up: u32, lines: Option<u64>) -> Self {
        let source = &asked.source;
        Self {
            id: asked.id,
            project: source.project.clone(),
            kind: asked.kind,
            owner: source.owner.clone(),
            subject: asked.subject.clone(),
            body: asked.body.clone(),
            issue: source.issue,
            pr: source.pr,
            session: source.session.clone(),
            outside: Vec::new(),
            refused: Vec::new(),
            receipt: Vec::new(),
            risk: None,
            artifacts: Artifacts::default(),
            asked_at: asked.asked_at.into(),
            asked: asked.notices,
            remind_at: asked.remind_at.filter(|_| asked.is_open()).map(Time),
            expires_at: asked.expires_at.filter(|_| asked.is_open()).map(Time),
            holds_up,
            lines,
            settle: if asked.is_open() { words::question::settle(asked) } else { Vec::new() },
            settled: asked.settled.as_ref().map(Settled::from),
        }
    }
}

impl From<&question::Settled> for Settled {
    fn from(settled: &question::Settled) -> Self {
        let (how, text) = match &settled.how {
            Settlement::Approved => (SettlementKind::Approved, None),
            Settlement::Rejected { reason } => (SettlementKind::Rejected, Some(reason)),
            Settlement::Answered { text } => (SettlementKind::Answered, Some(text)),
            Settlement::Dismissed => (SettlementKind::Dismissed, None),
            Settlement::Expired => (SettlementKind::Expired, None),
            Settlement::Withdrawn { why } => (SettlementKind::Withdrawn, Some(why)),
        };
        Self { how, by: settled.by.clone(), at: settled.at.into(), text: text.cloned() }
    }
}
