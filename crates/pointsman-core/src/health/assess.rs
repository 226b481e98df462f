//! The rules that turn facts into findings.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Facts, Finding};
use crate::config::Config;
use crate::dependencies::cycles;
use crate::ids::Number;
use crate::part::question::Cause;
use crate::task::State;
use crate::time::Timestamp;

/// The findings, worst first, and the areas that could not be looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assessment {
    pub findings: Vec<Finding>,
    /// What nobody knows, by name.
    pub unknown: Vec<String>,
}

/// Looks at the facts. `before` are the keys of what was wrong the last time: figures that hover about a threshold do
/// not come and go with every look.
pub fn assess(facts: &Facts, config: &Config, before: &BTreeSet<String>, now: Timestamp) -> Assessment {
    let mut findings = Vec::new();
    machine(facts, config, before, &mut findings);
    factory(facts, config, now, &mut findings);
    tasks(facts, config, now, &mut findings);
    dependencies(facts, config, now, &mut findings);
    let left = &facts.leftovers;
    if !left.locks.is_empty() {
        findings.push(Finding::LocksLeft { count: left.locks.len() });
    }
    findings.extend(left.trees.iter().map(|issue| Finding::TreeLeft { issue: *issue }));
    if left.old_logs > 0 {
        findings.push(Finding::LogsOld { count: left.old_logs });
    }
    findings.sort_by_key(|finding| (finding.priority(), finding.key()));
    Assessment { findings, unknown: unknown(facts) }
}

fn machine(facts: &Facts, config: &Config, before: &BTreeSet<String>, findings: &mut Vec<Finding>) {
    let rules = &config.health;
    // What was wrong is well again only when it is better by a tenth of the threshold.
    let stricter = |key: &str, threshold: u64| {
        if before.contains(key) { threshold / 10 } else { 0 }
    };
    if let Some(free_mb) = facts.machine.free_memory_mb
        && free_mb < rules.min_memory_mb.saturating_add(stricter("memory", rules.min_memory_mb))
    {
        findings.push(Finding::MemoryLow { free_mb });
    }
    if let Some(used_mb) = facts.machine.used_swap_mb
        && used_mb > rules.max_swap_mb - stricter("swap", rules.max_swap_mb)
    {
        findings.push(Finding::SwapHigh { used_mb });
    }
    for disk in &facts.machine.disks {
        // A tenth would be far too much of a percentage.
        let margin = if before.contains(&format!("disk:{}", disk.path)) { 2 } else { 0 };
        if disk.used_percent > u64::from(rules.max_disk_percent).saturating_sub(margin) {
            let (path, used_percent, free_mb) = (disk.path.clone(), disk.used_percent, disk.free_mb);
            findings.push(Finding::DiskFull { path, used_percent, free_mb });
        }
    }
    if let (Some(load_centi), Some(cores)) = (facts.machine.load15_centi, facts.machine.cores) {
        let most = rules.max_load_percent.saturating_mul(cores);
        if load_centi > most - stricter("load", most) {
            findings.push(Finding::LoadHigh { load_centi, cores });
        }
    }
    if let Some(names) = facts.machine.unhealthy_containers.as_ref().filter(|names| !names.is_empty()) {
        findings.push(Finding::ContainersIll { names: names.clone() });
    }
}

/// Whether the factory stands still.
fn factory(facts: &Facts, config: &Config, now: Timestamp, findings: &mut Vec<Finding>) {
    let stalled_after = config.health.stalled_after.duration();
    let open = facts.tasks.iter().filter(|task| task.state != State::Closed).count();
    if !facts.daemon && open > 0 {
        findings.push(Finding::DaemonDown { tasks: open });
    }
    if let Some(why) = &facts.line_stopped {
        findings.push(Finding::LineStopped { why: why.clone() });
    }
    if let Some(since) = facts.forge_silent_since.filter(|at| now.since(*at) > stalled_after) {
        findings.push(Finding::ForgeSilent { since });
    }
    findings.extend(
        facts.ill_notifiers.iter().map(|notifier| Finding::NotifierIll { notifier: notifier.clone() }),
    );
    let repeated = facts.log_errors.iter().flatten();
    findings.extend(
        repeated
            .filter(|error| error.count >= config.health.max_log_errors)
            .map(|error| Finding::LogRepeats { text: error.text.clone(), count: error.count }),
    );
    let taken: Vec<_> = facts.tasks.iter().filter(|task| task.state.takes_a_place()).collect();
    let waiting: Vec<Number> =
        taken.iter().filter(|task| task.state == State::Escalated).map(|task| task.key.issue).collect();
    let places = usize::try_from(config.dev.concurrency).unwrap_or(usize::MAX);
    if taken.len() >= places && !waiting.is_empty() && waiting.len() == taken.len() {
        findings.push(Finding::AllWaitForPeople { issues: waiting });
    }
    let ready = facts.tasks.iter().filter(|task| task.state == State::Backlog && task.ready);
    if facts.daemon
        && config.roles.dev.enabled
        && facts.held_back.is_none()
        && taken.len() < places
        && let Some(task) = ready.min_by_key(|task| task.since)
        && now.since(task.since) > stalled_after
        && task.session.parked_until.is_none_or(|until| until <= now)
    {
        findings.push(Finding::NothingBegins { issue: task.key.issue, since: task.since });
    }
    let stale_after = config.timing.stale_after.duration();
    let gone = facts.sessions.iter().filter(|session| session.gone);
    findings.extend(gone.filter(|session| now.since(session.last_seen) > stale_after).map(|session| {
        Finding::AgentDead {
            session: session.session.clone(),
            issue: session.issue,
            since: session.last_seen,
        }
    }));
}

/// Single tasks that get nowhere.
fn tasks(facts: &Facts, config: &Config, now: Timestamp, findings: &mut Vec<Finding>) {
    let stalled_after = config.health.stalled_after.duration();
    for task in &facts.tasks {
        let (issue, since) = (task.key.issue, task.since);
        let cause = task.escalation.as_ref().map(|asked| asked.cause);
        let finding = match task.state {
            State::AwaitingCi if now.since(since) > config.timing.ci_timeout.duration() => {
                Some(Finding::CiStuck { issue, since })
            }
            State::Escalated => match (cause, task.contribution.pr()) {
                (Some(Cause::Ci), _) => Some(Finding::CiStuck { issue, since }),
                (Some(Cause::Review), Some(pr)) => Some(Finding::PullRequestStuck { issue, pr, since }),
                _ => None,
            },
            State::AwaitingReview if now.since(since) > config.timing.review_timeout.duration() => {
                task.contribution.pr().map(|pr| Finding::PullRequestStuck { issue, pr, since })
            }
            State::MergeQueue if now.since(since) > stalled_after => {
                task.contribution.pr().map(|pr| Finding::PullRequestStuck { issue, pr, since })
            }
            State::Blocked => Some(Finding::TaskBlocked { issue, since }),
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Refused
            | State::Paused
            | State::Merged
            | State::Closed => None,
        };
        findings.extend(finding);
    }
}

fn dependencies(facts: &Facts, config: &Config, now: Timestamp, findings: &mut Vec<Finding>) {
    let graph: BTreeMap<Number, BTreeSet<Number>> = match &facts.issues {
        Some(issues) => {
            issues.iter().map(|issue| (issue.number, issue.dependencies.iter().copied().collect())).collect()
        }
        // Tasks know as much of it as concerns them.
        None => facts
            .tasks
            .iter()
            .map(|task| (task.key.issue, task.open_dependencies.iter().copied().collect()))
            .collect(),
    };
    findings.extend(cycles(&graph).into_iter().map(|issues| Finding::DependencyCycle { issues }));
    for issue in facts.issues.iter().flatten() {
        let waiting: Vec<Number> = graph
            .iter()
            .filter(|(waits, wanted)| **waits != issue.number && wanted.contains(&issue.number))
            .map(|(waits, _)| *waits)
            .collect();
        if !waiting.is_empty() && now.since(issue.created_at) > config.timing.stale_dependency.duration() {
            let (issue, since) = (issue.number, issue.created_at);
            findings.push(Finding::DependencyStale { issue, waiting, since });
        }
    }
}

fn unknown(facts: &Facts) -> Vec<String> {
    let machine = &facts.machine;
    let figures = [
        ("memory", machine.free_memory_mb.is_none()),
        ("swap", machine.used_swap_mb.is_none()),
        ("disk", machine.disks.is_empty()),
        ("load", machine.load_centi.is_none()),
        ("containers", machine.containers.is_none() || machine.unhealthy_containers.is_none()),
        ("log", facts.log_errors.is_none()),
        ("issues", facts.issues.is_none()),
        ("forge", facts.issues.is_none() && facts.forge_silent_since.is_none()),
    ];
    figures.into_iter().filter(|(_, unknown)| *unknown).map(|(name, _)| name.to_owned()).collect()
}
