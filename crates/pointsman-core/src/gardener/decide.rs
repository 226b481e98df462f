//! The choice of proposals that are carried out. Rules have the last word.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::answer::{DustLine, Escalate};
use super::find::is_groomed;
use super::{Action, Answer, AnswerLine, Dust, Finding, Memory, Question, bundles};
use crate::config::Config;
use crate::forge::Issue;
use crate::ids::Number;
use crate::labels::{BLOCKED, UNDERSPECIFIED};
use crate::text::{clean_block, clean_line};
use crate::time::Timestamp;
use crate::words::gardener::Ignored;

/// Longest reason or question that is passed on.
const REASON: usize = 500;
/// Longest text of criteria.
const CRITERIA: usize = 4000;
/// Longest name of a group of dust.
const GROUP: usize = 60;

/// Something that is done on the forge. Each can be done twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case")]
pub enum ForgeChange {
    /// Close an issue that another one stands for.
    CloseDuplicate {
        issue: Number,
        of: Number,
        why: String,
    },
    /// Comment on when it is done.
    SuggestCriteria {
        issue: Number,
        text: String,
    },
    MarkUnderspecified {
        issue: Number,
        why: String,
    },
    Unblock {
        issue: Number,
        why: String,
    },
    Ask {
        issue: Number,
        question: String,
    },
    /// File one issue for many, then close those.
    Bundle {
        dust: Vec<Dust>,
    },
}

impl ForgeChange {
    /// The issues that it closes.
    pub fn closes(&self) -> Vec<Number> {
        match self {
            Self::CloseDuplicate { issue, .. } => vec![*issue],
            Self::Bundle { dust } => dust.iter().map(|dust| dust.issue).collect(),
            Self::SuggestCriteria { .. }
            | Self::MarkUnderspecified { .. }
            | Self::Unblock { .. }
            | Self::Ask { .. } => Vec::new(),
        }
    }
}

/// The deeds that follow from an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub deeds: Vec<ForgeChange>,
    /// What is not, in words.
    pub refused: Vec<String>,
    /// All dust there is then, without what is bundled now.
    pub dust: Vec<Dust>,
    /// Keys of the findings that were decided, with the state they were decided for.
    pub decided: Vec<(String, String)>,
}

/// Decides. `asked` is what the model was asked about: it decides about nothing else. `issues` are the open issues as
/// they are now.
pub fn plan(
    answer: &Answer,
    asked: &[Question],
    issues: &[Issue],
    memory: &Memory,
    config: &Config,
    now: Timestamp,
) -> Plan {
    let mut session_files = Decision {
        asked,
        issues,
        memory,
        config,
        closes: 0,
        plan: Plan::default(),
        touched: BTreeSet::new(),
    };
    session_files.plan.dust = memory.dust.clone();
    for line in &answer.lines {
        if let Err(why) = session_files.take(line, now) {
            session_files.plan.refused.push(why.to_string());
        }
    }
    let mut plan = session_files.plan;
    // Closing many at once is what three of a group are for; one bundle a run is enough.
    if let Some(dust) = bundles(&plan.dust).into_iter().next() {
        plan.dust.retain(|one| !dust.contains(one));
        plan.deeds.push(ForgeChange::Bundle { dust });
    }
    // What was asked is asked again only when it has changed, whatever the answer was.
    plan.decided = asked.iter().map(|one| (one.finding.key(), one.state.clone())).collect();
    plan
}

struct Decision<'d> {
    asked: &'d [Question],
    issues: &'d [Issue],
    memory: &'d Memory,
    config: &'d Config,
    closes: u32,
    plan: Plan,
    touched: BTreeSet<Number>,
}

impl Decision<'_> {
    fn take(&mut self, line: &AnswerLine, now: Timestamp) -> Result<(), Ignored> {
        let issue = match line {
            AnswerLine::Action { issue, .. }
            | AnswerLine::Dust(DustLine { issue, .. })
            | AnswerLine::Escalate(Escalate { issue, .. }) => *issue,
        };
        let findings: Vec<&Finding> =
            self.asked.iter().map(|one| &one.finding).filter(|finding| finding.issue() == issue).collect();
        if findings.is_empty() {
            return Err(Ignored::NotAsked { issue });
        }
        let Some(now_open) = self.issues.iter().find(|open| open.number == issue) else {
            return Err(Ignored::Closed { issue });
        };
        if !is_groomed(now_open) {
            return Err(Ignored::NotGroomed { issue });
        }
        if let AnswerLine::Action { action: Action::Keep { .. }, .. } = line {
            return Ok(());
        }
        if !self.touched.insert(issue) {
            return Err(Ignored::SecondLine { issue });
        }
        let limit = usize::try_from(self.config.limits.gardener_actions).unwrap_or(usize::MAX);
        if self.plan.deeds.len() >= limit {
            return Err(Ignored::TooMany { issue, limit });
        }
        match line {
            AnswerLine::Action { action, .. } => self.act(now_open, action, &findings),
            AnswerLine::Dust(dust) => self.collect(dust, &findings, now),
            AnswerLine::Escalate(Escalate { question, .. }) => {
                self.plan.deeds.push(ForgeChange::Ask { issue, question: clean_line(question, REASON) });
                Ok(())
            }
        }
    }

    fn act(&mut self, open: &Issue, action: &Action, findings: &[&Finding]) -> Result<(), Ignored> {
        let issue = open.number;
        let about = |wanted: fn(&Finding) -> bool| findings.iter().any(|finding| wanted(finding));
        let deed = match action {
            Action::Duplicate { of, why } => {
                // Two have to agree: the rules on this very pair, and the model.
                let found = findings
                    .iter()
                    .any(|finding| matches!(finding, Finding::Duplicate { of: older, .. } if older == of));
                if !found {
                    return Err(Ignored::NotAlike { issue, of: *of });
                }
                if open.assignee.is_some() {
                    return Err(Ignored::Assigned { issue });
                }
                if !self.issues.iter().any(|other| other.number == *of) {
                    return Err(Ignored::Closed { issue: *of });
                }
                if self.closes >= self.config.limits.gardener_closes {
                    return Err(Ignored::EnoughClosed { issue });
                }
                self.closes += 1;
                ForgeChange::CloseDuplicate { issue, of: *of, why: clean_line(why, REASON) }
            }
            Action::Criteria { text } if about(|finding| matches!(finding, Finding::NoCriteria { .. })) => {
                ForgeChange::SuggestCriteria { issue, text: clean_block(text, CRITERIA) }
            }
            Action::Underspecified { why }
                if about(|finding| {
                    matches!(finding, Finding::NoCriteria { .. } | Finding::Oversized { .. })
                }) && !open.labels.iter().any(|label| label == UNDERSPECIFIED) =>
            {
                ForgeChange::MarkUnderspecified { issue, why: clean_line(why, REASON) }
            }
            Action::Unblock { why }
                if about(|finding| matches!(finding, Finding::Blocked { .. }))
                    && open.labels.iter().any(|label| label == BLOCKED) =>
            {
                if self.memory.is_tried_enough(issue) {
                    return Err(Ignored::UnblockedOften { issue });
                }
                ForgeChange::Unblock { issue, why: clean_line(why, REASON) }
            }
            Action::Criteria { .. } | Action::Underspecified { .. } | Action::Unblock { .. } => {
                return Err(Ignored::NotFound { issue });
            }
            Action::Keep { .. } => return Ok(()),
        };
        self.plan.deeds.push(deed);
        Ok(())
    }

    fn collect(&mut self, line: &DustLine, findings: &[&Finding], now: Timestamp) -> Result<(), Ignored> {
        let issue = line.issue;
        if !findings
            .iter()
            .any(|finding| matches!(finding, Finding::Small { .. } | Finding::NoCriteria { .. }))
        {
            return Err(Ignored::NotSmall { issue });
        }
        let group = clean_line(&line.group.to_lowercase(), GROUP);
        if group.is_empty() {
            return Err(Ignored::NoGroup { issue });
        }
        self.plan.dust.retain(|dust| dust.issue != issue);
        self.plan.dust.push(Dust {
            issue,
            group,
            title: clean_line(&line.title, 200),
            reason: clean_line(&line.reason, REASON),
            at: now,
        });
        Ok(())
    }
}
