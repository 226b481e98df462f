//! The figures of a span of time: what landed, how often it took, how long, and what it cost.
//!
//! Everything is counted from the log; only costs and sessions come from the register of sessions, which is kept for as long. A
//! figure whose base is empty is absent, never zero. `docs/commands.md` defines each of them for people.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::config::RiskClass;
use crate::ids::{Number, ProjectName, Sha};
use crate::log::{self, Entry, TaskEntry};
use crate::part::question::Kind;
use crate::role::Role;
use crate::session::budget::Spent;
use crate::task::{CiVerdict, Event, Exit, QueueOutcome, ReviewVerdict, State};
use crate::time::Timestamp;

/// Two acts of a person that are closer together are one sitting, and the time between them was work.
const SITTING: Duration = Duration::from_secs(600);
/// The first act of a sitting took so long.
const FIRST_ACT: Duration = Duration::from_secs(120);

/// An entry of the log, as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct Logged<'a> {
    pub at: Timestamp,
    pub project: Option<&'a ProjectName>,
    pub issue: Option<Number>,
    pub kind: &'a str,
    pub data: &'a Value,
}

/// A session of the register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    pub project: ProjectName,
    pub issue: Option<Number>,
    pub role: Role,
    /// The model that it was started with.
    pub agent: Option<String>,
    pub created_at: Timestamp,
    pub exit: Option<Exit>,
    pub spent: Spent,
}

/// An issue of a project.
pub type Issue = (ProjectName, Number);

/// The history of an issue, as far as the log tells it.
#[derive(Clone, Debug, Default)]
struct History {
    begun: Option<Timestamp>,
    /// Its state, and since when.
    state: Option<(State, Timestamp)>,
    /// The time that it spent in each state until it landed.
    stages: BTreeMap<State, Duration>,
    landed: Option<Timestamp>,
    /// The class of risk of its head, where that decides who looks at it.
    class: Option<RiskClass>,
    /// The class that it is in if the review agent finds something.
    findings: Option<RiskClass>,
    /// Times that it was handed back: red CI, change requests, and what the merge queue returned.
    returned: u32,
}

/// Reads the log, oldest entry first, and counts.
#[derive(Debug)]
pub struct Counter {
    since: Timestamp,
    issues: BTreeMap<Issue, History>,
    ci: Ci,
    /// What CI said about each commit: whether it was ever green, and ever not.
    verdicts: BTreeMap<Sha, (bool, bool)>,
    reviews: Reviews,
    /// Commits of which the review agent said that they must change, and those that it approved, with their issues.
    refused: BTreeSet<Sha>,
    approved: BTreeMap<Sha, Issue>,
    judged: (u64, u64),
    reverts: u64,
    reverted: BTreeSet<Issue>,
    /// Landings that were taken back, by their class of risk.
    reverted_by_class: BTreeMap<RiskClass, u64>,
    /// The last act of each person.
    acts: BTreeMap<String, Timestamp>,
    person: Duration,
}

/// The runs of CI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ci {
    pub runs: u64,
    /// Runs that failed because of the code.
    pub red: u64,
    /// Commits that were green in one run and not in another.
    pub flaky: u64,
}

/// The reviews, and what became of those of the review agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reviews {
    /// Times that a task began to wait for a review.
    pub asked: u64,
    /// Reviews of the review agent that asked for changes.
    pub found: u64,
    /// Those of them that a person overruled by approving the same commit.
    pub overruled: u64,
    /// Issues that the review agent approved and that were reverted later.
    pub reverted: u64,
}

/// The middle and the slow end of a set of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    pub p50: Duration,
    pub p90: Duration,
}

/// The cost of one issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueCost {
    pub issue: Issue,
    pub landed: bool,
    pub spent: Spent,
}

/// Everything of one agent, or of one role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub sessions: u64,
    pub crashed: u64,
    /// Issues that landed, of those that it worked on.
    pub landed: u64,
    pub spent: Spent,
}

/// The landings of one class of risk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassShare {
    pub landed: u64,
    /// Landings that were taken back, whenever they landed.
    pub reverted: u64,
}

/// The figures of a span of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    pub issues_landed: u64,
    pub first_pass_rate: Option<f64>,
    pub attempts_per_landed: Option<f64>,
    pub lead_time: Option<Spread>,
    pub stages: BTreeMap<State, Spread>,
    pub total: Spent,
    pub wasted: Spent,
    pub per_issue: Vec<IssueCost>,
    pub person: Duration,
    pub acceptance_rate: Option<f64>,
    pub reverts: u64,
    pub ci: Ci,
    pub reviews: Reviews,
    pub by_agent: BTreeMap<Option<String>, Share>,
    pub by_role: BTreeMap<Role, Share>,
    /// Empty where the risk does not decide who looks.
    pub by_class: BTreeMap<RiskClass, ClassShare>,
    /// How many issues landed on each day, by the number of days since the beginning.
    pub landed_by_day: BTreeMap<u64, u64>,
}

impl Counter {
    /// Counts what happened since then. What happened before is read for the history of what landed later.
    pub fn new(since: Timestamp) -> Self {
        Self {
            since,
            issues: BTreeMap::new(),
            ci: Ci::default(),
            verdicts: BTreeMap::new(),
            reviews: Reviews::default(),
            refused: BTreeSet::new(),
            approved: BTreeMap::new(),
            judged: (0, 0),
            reverts: 0,
            reverted: BTreeSet::new(),
            reverted_by_class: BTreeMap::new(),
            acts: BTreeMap::new(),
            person: Duration::ZERO,
        }
    }

    /// Takes the next entry in.
    pub fn take(&mut self, logged: Logged<'_>) {
        match Entry::read(logged.kind, logged.data) {
            Some(entry) => self.entry(logged, &entry),
            None => {
                if let (Some(project), Some(issue)) = (logged.project, logged.issue)
                    && let Some(entry) = TaskEntry::read(logged.kind, logged.data)
                    && entry.refused.is_none()
                {
                    self.of_task((project.clone(), issue), logged.at, &entry);
                }
            }
        }
    }

    fn entry(&mut self, logged: Logged<'_>, entry: &Entry) {
        let counts = logged.at >= self.since;
        match entry {
            Entry::LandingReverted { issue, .. } if counts => {
                self.reverts += 1;
                let issue = logged.project.cloned().zip(*issue);
                let class = issue.as_ref().and_then(|issue| self.issues.get(issue)?.class);
                if let Some(class) = class {
                    *self.reverted_by_class.entry(class).or_default() += 1;
                }
                self.reverted.extend(issue);
            }
            Entry::QuestionSettled(log::Question { kind, settled: Some(settled), .. }) => {
                // A review is counted as such.
                if let Some(by) = settled.by.as_deref().filter(|_| *kind != Kind::Review) {
                    self.acted(by, logged.at);
                }
            }
            Entry::PersonSpoke { by, .. } => self.acted(by, logged.at),
            _ => {}
        }
    }

    fn of_task(&mut self, issue: Issue, at: Timestamp, entry: &TaskEntry) {
        self.happened(&issue, at, &entry.event);
        let counts = at >= self.since;
        let history = self.history(&issue, at);
        let before = history.state;
        let to = entry.moved.to;
        if before.is_some_and(|(state, _)| state == to) {
            return;
        }
        if let Some((state, since)) = before
            && history.landed.is_none()
        {
            *history.stages.entry(state).or_default() += at.since(since);
        }
        history.state = Some((to, at));
        match to {
            State::Merged => {
                history.landed.get_or_insert(at);
            }
            // It begins anew: what it took before has nothing to do with it.
            State::Backlog if history.landed.is_some() => {
                *history = History { begun: Some(at), state: Some((to, at)), ..History::default() };
            }
            State::AwaitingReview => self.reviews.asked += u64::from(counts),
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingCi
            | State::MergeQueue
            | State::Escalated
            | State::Blocked
            | State::Refused
            | State::Paused
            | State::Closed => {}
        }
    }

    /// Counts what an event says by itself. Events that are not named here say nothing that is counted.
    fn happened(&mut self, issue: &Issue, at: Timestamp, event: &Event) {
        let counts = at >= self.since;
        if let Event::ChecksFinished { sha, verdict, flaky, .. } = event {
            let (green, red) = (*verdict == CiVerdict::Passed, matches!(verdict, CiVerdict::Failed { .. }));
            if counts {
                // A flaky one was run twice.
                self.ci.runs += 1 + u64::from(*flaky);
                self.ci.red += u64::from(red || *flaky);
                let known = self.verdicts.entry(sha.clone()).or_default();
                known.0 |= green;
                known.1 |= !green || *flaky;
            }
            self.history(issue, at).returned += u32::from(red);
        }
        if let Event::BranchSynced { head: Some(_), risk, .. } = event {
            let history = self.history(issue, at);
            history.class = risk.as_ref().map(|risk| risk.class);
            history.findings = risk.as_ref().map(|risk| risk.findings);
        }
        if let Event::ReviewPosted { sha, verdict, by, by_agent, .. } = event {
            if *by_agent && *verdict == ReviewVerdict::Discuss {
                let history = self.history(issue, at);
                history.class = history.class.max(history.findings);
            }
            self.reviewed(issue, at, (sha, *verdict), (!by_agent).then_some(by));
        }
        if let Event::QueueReported {
            outcome: QueueOutcome::Conflict { .. } | QueueOutcome::Red { .. },
            ..
        } = event
        {
            self.history(issue, at).returned += 1;
        }
    }

    /// Counts a review, by a person or by the review agent.
    fn reviewed(
        &mut self,
        issue: &Issue,
        at: Timestamp,
        (sha, verdict): (&Sha, ReviewVerdict),
        person: Option<&String>,
    ) {
        let counts = at >= self.since;
        let (asks, approves) = (verdict == ReviewVerdict::RequestChanges, verdict == ReviewVerdict::Approve);
        self.history(issue, at).returned += u32::from(asks);
        match person {
            None if asks => {
                self.reviews.found += u64::from(counts);
                self.refused.insert(sha.clone());
            }
            None if approves => {
                self.approved.insert(sha.clone(), issue.clone());
            }
            None => {}
            Some(by) => {
                self.acted(by, at);
                self.judged.0 += u64::from(counts && approves);
                self.judged.1 += u64::from(counts && asks);
                if approves && self.refused.remove(sha) {
                    self.reviews.overruled += u64::from(counts);
                }
            }
        }
    }

    fn history(&mut self, issue: &Issue, at: Timestamp) -> &mut History {
        let history = self.issues.entry(issue.clone()).or_default();
        history.begun.get_or_insert(at);
        history
    }

    fn acted(&mut self, by: &str, at: Timestamp) {
        let before = self.acts.insert(by.to_owned(), at);
        if at < self.since {
            return;
        }
        let pause = before.map(|before| at.since(before)).filter(|pause| *pause < SITTING);
        self.person += pause.unwrap_or(FIRST_ACT);
    }

    /// The figures. The sessions are those of the register; those that began earlier are left out.
    pub fn finish(mut self, sessions: &[SessionFacts]) -> Figures {
        let since = self.since;
        let landed: BTreeMap<&Issue, &History> =
            self.issues.iter().filter(|(_, history)| history.landed.is_some_and(|at| at >= since)).collect();
        let (first, attempts) = landed.values().fold((0_u64, 0_u64), |(first, attempts), history| {
            (first + u64::from(history.returned == 0), attempts + 1 + u64::from(history.returned))
        });
        let count = u64::try_from(landed.len()).unwrap_or(u64::MAX);
        let lead = landed.values().filter_map(|h| Some(h.landed?.since(h.begun?))).collect();
        let mut stages: BTreeMap<State, Vec<Duration>> = BTreeMap::new();
        for (state, spent) in landed.values().flat_map(|history| &history.stages) {
            stages.entry(*state).or_default().push(*spent);
        }
        let mut landed_by_day = BTreeMap::new();
        for at in landed.values().filter_map(|history| history.landed) {
            *landed_by_day.entry(at.since(since).as_secs() / 86_400).or_insert(0) += 1;
        }
        let mut by_class: BTreeMap<RiskClass, ClassShare> = BTreeMap::new();
        for class in landed.values().filter_map(|history| history.class) {
            by_class.entry(class).or_default().landed += 1;
        }
        for (class, count) in &self.reverted_by_class {
            by_class.entry(*class).or_default().reverted = *count;
        }
        let given_up = |issue: &Issue| {
            self.issues.get(issue).is_some_and(|history| {
                let over =
                    matches!(history.state, Some((State::Blocked | State::Refused | State::Closed, _)));
                over && history.landed.is_none()
            })
        };
        let is_landed = |issue: &Issue| landed.contains_key(issue);
        let sessions: Vec<&SessionFacts> =
            sessions.iter().filter(|session| session.created_at >= since).collect();
        let mut costs: BTreeMap<Issue, Spent> = BTreeMap::new();
        let (mut by_agent, mut by_role) = (BTreeMap::new(), BTreeMap::new());
        let (mut of_agent, mut of_role) = (BTreeMap::new(), BTreeMap::new());
        let (mut total, mut wasted) = (Spent::default(), Spent::default());
        for session in &sessions {
            total = total.plus(session.spent);
            let issue = session.issue.map(|issue| (session.project.clone(), issue));
            if let Some(issue) = issue.clone() {
                let cost = costs.entry(issue.clone()).or_default();
                *cost = cost.plus(session.spent);
                if given_up(&issue) {
                    wasted = wasted.plus(session.spent);
                }
                if is_landed(&issue) {
                    of_agent.entry(session.agent.clone()).or_insert_with(BTreeSet::new).insert(issue.clone());
                    of_role.entry(session.role).or_insert_with(BTreeSet::new).insert(issue);
                }
            }
            by_agent.entry(session.agent.clone()).or_insert_with(Share::default).add(session);
            by_role.entry(session.role).or_insert_with(Share::default).add(session);
        }
        for (agent, issues) in of_agent {
            by_agent.entry(agent).or_default().landed = u64::try_from(issues.len()).unwrap_or(u64::MAX);
        }
        for (role, issues) in of_role {
            by_role.entry(role).or_default().landed = u64::try_from(issues.len()).unwrap_or(u64::MAX);
        }
        let per_issue = costs
            .into_iter()
            .map(|(issue, spent)| IssueCost { landed: is_landed(&issue), issue, spent })
            .collect();
        self.ci.flaky = count_of(self.verdicts.values().filter(|(green, other)| *green && *other).count());
        let approved: BTreeSet<&Issue> = self.approved.values().collect();
        self.reviews.reverted =
            count_of(self.reverted.iter().filter(|issue| approved.contains(issue)).count());
        Figures {
            issues_landed: count,
            first_pass_rate: ratio(first, count),
            attempts_per_landed: ratio(attempts, count),
            lead_time: spread(lead),
            stages: stages.into_iter().filter_map(|(state, all)| Some((state, spread(all)?))).collect(),
            total,
            wasted,
            per_issue,
            person: self.person,
            acceptance_rate: ratio(self.judged.0, self.judged.0 + self.judged.1),
            reverts: self.reverts,
            ci: self.ci,
            reviews: self.reviews,
            by_agent,
            by_role,
            by_class,
            landed_by_day,
        }
    }
}

impl Share {
    fn add(&mut self, session: &SessionFacts) {
        self.sessions += 1;
        self.crashed += u64::from(session.exit.is_some_and(|exit| Exit::UNEXPECTED.contains(&exit)));
        self.spent = self.spent.plus(session.spent);
    }
}

fn count_of(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// None of nothing.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "counts of issues are small")]
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// By the nearest rank: every answer is one of the durations.
fn spread(mut all: Vec<Duration>) -> Option<Spread> {
    all.sort_unstable();
    let rank = |percent: usize| all.get((all.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    Some(Spread { p50: rank(50)?, p90: rank(90)? })
}
