//! `report`: the figures of a span of time.

use std::collections::BTreeMap;

use pointsman_core::config::RiskClass;
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::report::{Figures, Share, Spread as Spans};
use pointsman_core::role::Role;
use pointsman_core::session::budget::Spent;
use pointsman_core::task::State;
use serde::{Deserialize, Serialize};

use crate::task::usd;

/// The figures of a span of time: what was done, how well, and at which cost. A figure without a base is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub issues_landed: u64,
    /// The share of them that CI, review and merge queue took at the first try.
    pub first_pass_rate: Option<f64>,
    pub attempts_per_landed: Option<f64>,
    pub lead_time: LeadTime,
    pub cost: Cost,
    /// An estimate from the times between the acts of people.
    pub person_minutes: f64,
    /// The share of the reviews of people that approved.
    pub acceptance_rate: Option<f64>,
    pub reverts: u64,
    pub ci: Ci,
    pub reviews: Reviews,
    pub by_agent: Vec<AgentShare>,
    pub by_role: Vec<RoleShare>,
    /// Empty unless the risk decides who looks at a change.
    pub by_class: Vec<ClassShare>,
}

/// From the first sight of an issue until it landed, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeadTime {
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    /// The part in each state.
    pub by_stage: BTreeMap<State, Spread>,
}

/// The middle and the slow end, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub p50: f64,
    pub p90: f64,
}

/// The money of sessions that began in the span. Null where none of them told any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub total: Option<f64>,
    /// The part for issues that are blocked, refused, or closed without a landing.
    pub wasted: Option<f64>,
    pub per_issue: Vec<IssueCost>,
}

/// The cost of one issue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IssueCost {
    pub project: ProjectName,
    pub issue: Number,
    pub landed: bool,
    pub usd: Option<f64>,
    pub tokens: Option<u64>,
}

/// The runs of CI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ci {
    pub runs: u64,
    pub red: u64,
    /// Commits that were green in one run and not in another.
    pub flaky: u64,
}

/// The reviews, and what became of those of the review agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviews {
    pub asked: u64,
    pub found: u64,
    pub overruled: u64,
    pub reverted: u64,
}

/// The share of one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentShare {
    /// The model that its sessions were started with; null if none was named.
    pub agent: Option<String>,
    #[serde(flatten)]
    pub work: Work,
}

/// The share of one role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleShare {
    pub role: Role,
    #[serde(flatten)]
    pub work: Work,
}

/// The landings of one class of risk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassShare {
    pub class: RiskClass,
    pub landed: u64,
    pub reverted: u64,
}

/// Sessions, and what came of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    pub sessions: u64,
    pub crashed: u64,
    /// Issues that landed, of those that it worked on.
    pub landed: u64,
    pub usd: Option<f64>,
    pub tokens: Option<u64>,
}

impl Report {
    /// The figures of a span.
    pub fn new(figures: &Figures) -> Self {
        Self {
            issues_landed: figures.issues_landed,
            first_pass_rate: figures.first_pass_rate,
            attempts_per_landed: figures.attempts_per_landed,
            lead_time: LeadTime {
                p50: figures.lead_time.map(|spread| spread.p50.as_secs_f64()),
                p90: figures.lead_time.map(|spread| spread.p90.as_secs_f64()),
                by_stage: figures.stages.iter().map(|(state, spread)| (*state, (*spread).into())).collect(),
            },
            cost: Cost {
                total: money(figures.total, figures.total),
                wasted: money(figures.wasted, figures.total),
                per_issue: figures
                    .per_issue
                    .iter()
                    .map(|cost| IssueCost {
                        project: cost.issue.0.clone(),
                        issue: cost.issue.1,
                        landed: cost.landed,
                        usd: money(cost.spent, figures.total),
                        tokens: tokens(cost.spent, figures.total),
                    })
                    .collect(),
            },
            person_minutes: figures.person.as_secs_f64() / 60.0,
            acceptance_rate: figures.acceptance_rate,
            reverts: figures.reverts,
            ci: Ci { runs: figures.ci.runs, red: figures.ci.red, flaky: figures.ci.flaky },
            reviews: Reviews {
                asked: figures.reviews.asked,
                found: figures.reviews.found,
                overruled: figures.reviews.overruled,
                reverted: figures.reviews.reverted,
            },
            by_agent: figures
                .by_agent
                .iter()
                .map(|(agent, share)| AgentShare { agent: agent.clone(), work: work(share, figures.total) })
                .collect(),
            by_role: figures
                .by_role
                .iter()
                .map(|(role, share)| RoleShare { role: *role, work: work(share, figures.total) })
                .collect(),
            by_class: figures
                .by_class
                .iter()
                .map(|(class, share)| ClassShare {
                    class: *class,
                    landed: share.landed,
                    reverted: share.reverted,
                })
                .collect(),
        }
    }
}

impl From<Spans> for Spread {
    fn from(spread: Spans) -> Self {
        Self { p50: spread.p50.as_secs_f64(), p90: spread.p90.as_secs_f64() }
    }
}

/// Money is told if any session told any.
fn money(spent: Spent, total: Spent) -> Option<f64> {
    usd(spent).filter(|_| total.micro_usd > 0)
}

fn tokens(spent: Spent, total: Spent) -> Option<u64> {
    (total.tokens > 0).then_some(spent.tokens)
}

fn work(share: &Share, total: Spent) -> Work {
    Work {
        sessions: share.sessions,
        crashed: share.crashed,
        landed: share.landed,
        usd: money(share.spent, total),
        tokens: tokens(share.spent, total),
    }
}
