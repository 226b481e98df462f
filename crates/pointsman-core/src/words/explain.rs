//! The facts behind a task's state, in words.
//!
//! This module decides nothing. It describes what [`crate::task::step`] has decided.

use std::time::Duration;

use super::span;
use crate::config::Config;
use crate::ids::Sha;
use crate::part::contribution;
use crate::part::session::Stage;
use crate::session::budget::{self, Level, Limit, Spent};
use crate::session::context::{Source, Urgency};
use crate::task::{Ci, Effect, Headline, Policy, Review, State, Task};
use crate::text::clean_line;
use crate::time::Timestamp;

/// How much of an outside text a fact quotes.
const QUOTE_CHARS: usize = 200;

/// The facts about a task beyond its snapshot.
#[derive(Clone, Debug, Default)]
pub struct TaskSurroundings {
    pub now: Timestamp,
    /// Orders to the world that are not done yet, in their order.
    pub effects: Vec<PendingEffect>,
    /// Messages that the agent has not acknowledged.
    pub unheard: Vec<UnacknowledgedMessage>,
    /// What all its sessions have spent.
    pub spent: Spent,
    /// What its project has spent today.
    pub spent_today: Spent,
}

/// An order to the world that is not done yet.
#[derive(Clone, Debug)]
pub struct PendingEffect {
    pub effect: Effect,
    pub attempts: u32,
    /// What went wrong the last time.
    pub error: Option<String>,
    /// The time of the next try; zero means immediately.
    pub not_before: Timestamp,
}

/// A message that the agent has not acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct UnacknowledgedMessage {
    pub id: i64,
    pub headline: Headline,
    /// How often it was sent.
    pub tries: u32,
}

/// The facts, a sentence each, the most telling first.
pub fn facts(task: &Task, config: &Config, around: &TaskSurroundings) -> Vec<String> {
    let mut facts = vec![format!("{} for {}", task.state, ago(around.now.since(task.since)))];
    facts.extend(task.reason.as_ref().map(|reason| format!("reason: {}", clean_line(reason, QUOTE_CHARS))));
    facts.extend(dependencies(task));
    if task.state == State::Backlog && !config.roles.dev.enabled {
        facts.push("no task starts automatically because roles.dev.enabled is false".to_owned());
    }
    facts.extend(session(task, around.now));
    facts.extend(tree(task, config));
    facts.extend(context(task, config));
    facts.extend(handover(task, around.now));
    facts.extend(parked(task, around.now));
    facts.extend(spent(config, around));
    facts.extend(claim(task));
    facts.extend(work(task));
    facts.push(checks(task, config));
    facts.push(review(task, config));
    facts.extend(risk(task, config));
    facts.extend(question(task, around.now));
    facts.extend(used_up(task, config));
    facts.extend(task.ends_at().map(|at| format!("this state times out {}", when(at, around.now))));
    facts.extend(around.effects.iter().map(|pending| order(pending, around.now)));
    facts.extend(around.unheard.iter().map(unheard));
    facts
}

fn dependencies(task: &Task) -> Option<String> {
    if task.open_dependencies.is_empty() {
        return (task.state == State::Backlog && task.ready)
            .then(|| "all dependencies are closed".to_owned());
    }
    let open: Vec<String> = task.open_dependencies.iter().map(|n| format!("#{n}")).collect();
    Some(format!("depends on {}, which must be closed first", open.join(", ")))
}

fn session(task: &Task, now: Timestamp) -> Vec<String> {
    let name = task.key.session(task.session.generation);
    let mut facts = vec![match task.session.stage {
        Stage::None if task.session.generation == 0 => "no session has been started yet".to_owned(),
        Stage::None => format!("session {name} has ended"),
        Stage::Starting => format!("session {name} is starting"),
        Stage::Alive => format!("session {name} is alive"),
        Stage::Ending => format!("session {name} is being stopped"),
    }];
    facts.extend(
        task.session
            .restart_at
            .map(|at| format!("waiting before the next session, which starts {}", when(at, now))),
    );
    if task.session.idle_looks > 0 {
        facts
            .push(format!("the agent was idle at its prompt in {} checks in a row", task.session.idle_looks));
    }
    facts
}

fn tree(task: &Task, config: &Config) -> Vec<String> {
    let mut facts = Vec::new();
    if task.session.stage == Stage::Starting && !config.tree.setup.is_empty() {
        facts.push(
            "the working tree is set up before the agent starts, unless that is already done".to_owned(),
        );
    }
    if task.setup_failures > 0 {
        let issue = task.key.issue;
        let failed = times(task.setup_failures);
        facts.push(format!(
            "the set-up of the working tree failed {failed}; `pointsman session logs {issue} --setup` shows the log"
        ));
    }
    if !task.ports.is_empty() {
        let ports: Vec<String> = task.ports.iter().map(u16::to_string).collect();
        facts.push(format!("reserved ports: {}", ports.join(", ")));
    }
    facts
}

fn context(task: &Task, config: &Config) -> Option<String> {
    let gauge = task.session.context.gauge?;
    let source = match gauge.source {
        Source::StatusLine => "according to its status line",
        Source::Transcript => "according to its transcript",
        Source::Symptoms => "judging by its symptoms",
    };
    let follows = match Policy::new(config).session.marks.urgency(gauge) {
        Urgency::None => "",
        Urgency::Low => ": Pointsman keeps an eye on it",
        Urgency::Medium => ": the agent was asked to save its work",
        Urgency::High => ": a new session takes over",
    };
    Some(format!("the context is {}% full, {source}{follows}", gauge.percent()))
}

fn handover(task: &Task, now: Timestamp) -> Option<String> {
    let successor = || {
        format!(
            "session {} continues where the previous one handed over",
            task.key.session(task.session.generation)
        )
    };
    let Some(handoff) = task.session.handoff else {
        return (task.session.continues && task.session.stage != Stage::None).then(successor);
    };
    let asked = ago(now.since(handoff.requested_at));
    Some(if handoff.stuck {
        format!(
            "the agent was asked {asked} ago to save its work and exit, but did not, so Pointsman ends the session"
        )
    } else {
        format!(
            "the agent was asked {asked} ago to save its work and exit; Pointsman ends the session {}",
            when(handoff.deadline, now)
        )
    })
}

fn parked(task: &Task, now: Timestamp) -> Option<String> {
    let until = task.session.parked_until?;
    Some(format!(
        "parked because an outside service fails, which uses up no attempt; it continues {}",
        when(until, now)
    ))
}

fn spent(config: &Config, around: &TaskSurroundings) -> Vec<String> {
    let told = |spent, limit, whose: &str, full: &str| {
        let follows = match budget::level(spent, limit) {
            Level::Within => String::new(),
            Level::Soft => ": close to its limit".to_owned(),
            Level::Hard => format!(": {full}"),
        };
        budget::describe(spent, limit).map(|what| format!("{what} spent {whose}{follows}"))
    };
    let task =
        told(around.spent, Limit::per_task(&config.budget), "on this task", "used up, so its session ends");
    // The day is somebody else's story unless it holds this task up.
    let limit = Limit::per_day(&config.budget);
    let day = told(around.spent_today, limit, "by the project today", "used up, so nothing new starts")
        .filter(|_| budget::level(around.spent_today, limit) > Level::Within);
    task.into_iter().chain(day).collect()
}

fn claim(task: &Task) -> Option<String> {
    task.phase.map(|phase| format!("the last phase of the agent is {phase}"))
}

fn work(task: &Task) -> Vec<String> {
    let contribution = &task.contribution;
    let branch = &contribution.branch;
    let mut facts = vec![match contribution.head() {
        Some(head) => format!("{branch} is at {}", head.short()),
        None => format!("{branch} is not on the forge yet"),
    }];
    facts.extend(contribution.pr().map(|number| format!("its pull request is #{number}")));
    facts.extend(
        contribution.merged_as().map(|sha| format!("merged into the main branch as {}", sha.short())),
    );
    facts
}

fn checks(task: &Task, config: &Config) -> String {
    let head = task.contribution.head().map(Sha::short).unwrap_or_default();
    match task.contribution.ci() {
        // An older version wrote down that CI passed where there was none.
        Ci::None | Ci::Passed if !config.ci.kind.tests_commits() => super::ci::off(config),
        Ci::None => "CI has not run yet".to_owned(),
        Ci::Pending { run } => format!("CI is running on {head}, try {run}"),
        Ci::Passed => format!("CI passed on {head}"),
        Ci::Failed { infra, summary } => {
            let whose = if *infra { " because of its infrastructure" } else { "" };
            let summary = clean_line(summary, QUOTE_CHARS);
            format!("CI failed{whose} on {head}: {summary}")
        }
        Ci::TimedOut => format!("CI did not finish in time on {head}"),
    }
}

fn review(task: &Task, config: &Config) -> String {
    let head = task.contribution.head().map(Sha::short).unwrap_or_default();
    match task.contribution.review() {
        Review::None if !task.contribution.approvals().is_empty() => {
            let policy = contribution::Policy::new(config);
            let needed = task.contribution.approvals_needed(policy.approvals, policy.review);
            format!("{} for {head}", super::people::approved_so_far(task.contribution.approvals(), needed))
        }
        Review::None if !task.contribution.protected().is_empty() => {
            super::reason::needs_person(task.contribution.protected())
        }
        Review::None
            if task.contribution.judge(contribution::ReviewMode::new(config))
                == contribution::ReviewMode::None =>
        {
            "no review is needed".to_owned()
        }
        Review::None => "the current head has no review yet".to_owned(),
        Review::Approved { by } => format!("{} approved {head}", clean_line(by, QUOTE_CHARS)),
        Review::ChangesRequested { by, .. } => {
            format!("{} requested changes on {head}", clean_line(by, QUOTE_CHARS))
        }
    }
}

/// The class of the head and why it is in it, where that decides who looks.
fn risk(task: &Task, config: &Config) -> Vec<String> {
    match (contribution::ReviewMode::new(config), task.contribution.risk()) {
        (contribution::ReviewMode::Risk(reviewers), Some(risk)) => {
            super::risk::judged(risk, reviewers.of(Some(risk)))
        }
        _ => Vec::new(),
    }
}

fn question(task: &Task, now: Timestamp) -> Option<String> {
    let asked = task.escalation.as_ref()?;
    Some(format!(
        "a person was asked {}, first {} ago; next reminder: {}",
        times(asked.notices.max(1)),
        ago(now.since(asked.asked_at)),
        asked.remind_at.map_or_else(|| "never".to_owned(), |at| when(at, now))
    ))
}

/// Only attempts that were used: a list of zeros tells the reader nothing.
fn used_up(task: &Task, config: &Config) -> Vec<String> {
    let (used, limits) = (&task.contribution.attempts, &config.limits);
    [
        ("CI fixes", used.ci_fixes, limits.ci_fixes),
        ("review rounds", used.review_rounds, limits.review_rounds),
        ("restarts", task.session.restarts, limits.restarts),
        ("infrastructure retries", used.infra_retries, limits.infra_retries),
        ("merge conflicts", used.merge_conflicts, limits.merge_conflicts),
        ("premature claims of done", task.premature_done, limits.premature_done),
        ("hand-overs", task.session.handoffs, limits.handoffs),
    ]
    .into_iter()
    .filter(|(_, used, _)| *used > 0)
    // The one too many is what ended it; it was never handed to the agent.
    .map(|(what, used, limit)| format!("{} of {limit} {what} used", used.min(limit)))
    .collect()
}

fn order(pending: &PendingEffect, now: Timestamp) -> String {
    let mut fact = format!("pending: {}", pending.effect.kind().replace('_', " "));
    if pending.attempts > 0 {
        fact += &format!(", failed {}", times(pending.attempts));
    }
    if let Some(error) = &pending.error {
        fact += &format!(": {}", clean_line(error, QUOTE_CHARS));
    }
    if pending.not_before > now {
        fact += &format!("; next try {}", when(pending.not_before, now));
    }
    fact
}

fn unheard(message: &UnacknowledgedMessage) -> String {
    let UnacknowledgedMessage { id, headline, tries } = message;
    match tries {
        0 => format!("message m-{id} ({}) has not been sent yet", headline.text()),
        _ => format!("message m-{id} ({}) was sent {} but not acknowledged", headline.text(), times(*tries)),
    }
}

fn times(n: u32) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

fn when(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("in {}", ago(at.since(now))) } else { "now".to_owned() }
}

/// To the second from a second on: milliseconds are noise to a reader.
fn ago(duration: Duration) -> String {
    let seconds = duration.as_secs();
    span(if seconds > 0 { Duration::from_secs(seconds) } else { duration })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{PendingEffect, TaskSurroundings, UnacknowledgedMessage, facts};
    use crate::config::Config;
    use crate::ids::{ProjectName, Sha, TaskKey};
    use crate::part::contribution::{self, CiVerdict, Contribution, Fact, OwnerFacts, ReviewVerdict};
    use crate::part::question::{self, Cause, Kind, Question};
    use crate::session::budget::Spent;
    use crate::session::context::{Gauge, Source};
    use crate::task::{Effect, Handoff, Headline, Phase, Stage, State, Task};
    use crate::time::Timestamp;

    const NOW: Timestamp = Timestamp(10_000_000);

    fn task(state: State) -> Task {
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue: 3 };
        let mut task =
            Task::new(key, "title".to_owned(), "pointsman/issue-3".to_owned(), Timestamp(9_940_000));
        task.state = state;
        task
    }

    fn told(task: &Task, config: &str, around: TaskSurroundings) -> String {
        let config = Config::parse(&format!("name = \"shop\"\n{config}"), "test").unwrap();
        facts(task, &config, &TaskSurroundings { now: NOW, ..around }).join("\n")
    }

    fn sha(digit: &str) -> Sha {
        Sha::new(&digit.repeat(40)).unwrap()
    }

    #[test]
    fn a_task_in_the_backlog_tells_what_it_depends_on() {
        let mut waiting = task(State::WaitingDependencies);
        waiting.open_dependencies = vec![1, 2];
        let text = told(&waiting, "", TaskSurroundings::default());
        assert!(text.starts_with("waiting_dependencies for 1m\n"), "{text}");
        assert!(text.contains("depends on #1, #2, which must be closed first"), "{text}");
        assert!(text.contains("no session has been started yet"), "{text}");
        assert!(text.contains("CI is off: nothing tests a change"), "{text}");
        let off = told(&task(State::Backlog), "[roles.dev]\nenabled = false", TaskSurroundings::default());
        assert!(off.contains("no task starts automatically because roles.dev.enabled is false"), "{off}");
    }

    #[test]
    fn ci_and_review_name_the_commit_they_are_about() {
        let mut waiting = task(State::AwaitingReview);
        (waiting.session.stage, waiting.session.generation) = (Stage::Alive, 2);
        waiting.phase = Some(Phase::AwaitingReview);
        let config = Config::parse("name = \"shop\"\n[ci]\ncommand = [\"./ci.sh\"]", "test").unwrap();
        let policy = contribution::Policy::new(&config);
        let around = OwnerFacts { asked: None, policy: &policy, now: NOW };
        let head = sha("b");
        waiting.contribution = Contribution::at("pointsman/issue-3".to_owned(), head.clone(), Some(4));
        let by = "an\u{1b}[31mna";
        for fact in [
            Fact::Pushed { head: Some(&head), protected: &[], secret: None, risk: None },
            Fact::ChecksFinished { sha: &head, run: 1, verdict: &CiVerdict::Passed },
            Fact::Reviewed {
                sha: &head,
                verdict: ReviewVerdict::RequestChanges,
                by,
                by_agent: false,
                body: "",
            },
        ] {
            waiting.contribution.happened(&fact, &around).unwrap();
        }
        waiting.contribution.attempts.ci_fixes = 1;
        waiting.deadline = Some(NOW.after(std::time::Duration::from_secs(90)));
        let text = told(&waiting, "[ci]\ncommand = [\"./ci.sh\"]", TaskSurroundings::default());
        for line in [
            "session dev-shop-3.2 is alive",
            "the last phase of the agent is awaiting_review",
            "pointsman/issue-3 is at bbbbbbbbbb",
            "its pull request is #4",
            "CI passed on bbbbbbbbbb",
            "anna requested changes on bbbbbbbbbb",
            "1 of 3 CI fixes used",
            "this state times out in 1m 30s",
        ] {
            assert!(text.lines().any(|l| l == line), "{line:?} is missing in\n{text}");
        }
    }

    #[test]
    fn a_limit_that_was_passed_reads_as_used_up() {
        let mut task = task(State::Blocked);
        task.contribution.attempts.ci_fixes = 4;
        let text = told(&task, "", TaskSurroundings::default());
        assert!(text.contains("3 of 3 CI fixes used") && !text.contains("4 of 3"), "{text}");
    }

    #[test]
    fn what_is_not_done_yet_tells_its_error_and_its_next_try() {
        let around = TaskSurroundings {
            effects: vec![PendingEffect {
                effect: Effect::OpenPullRequest,
                attempts: 2,
                error: Some("the forge is\naway".into()),
                not_before: NOW.after(std::time::Duration::from_secs(30)),
            }],
            unheard: vec![
                UnacknowledgedMessage { id: 7, headline: Headline::CiFailed, tries: 2 },
                UnacknowledgedMessage { id: 8, headline: Headline::Answer, tries: 0 },
            ],
            ..TaskSurroundings::default()
        };
        let text = told(&task(State::AwaitingCi), "", around);
        assert!(
            text.contains("pending: open pull request, failed 2 times: the forge is away; next try in 30s"),
            "{text}"
        );
        assert!(text.contains("message m-7 (CI failed) was sent 2 times but not acknowledged"), "{text}");
        assert!(text.contains("message m-8 (Answer) has not been sent yet"), "{text}");
    }

    #[test]
    fn an_escalation_tells_how_often_a_person_was_asked() {
        let mut asked = task(State::Escalated);
        asked.reason = Some("which colour?".into());
        let policy =
            question::Policy { remind: Duration::from_secs(3660), timeout: Duration::from_secs(86_400) };
        let asked_at = Timestamp(NOW.0 - 60_000);
        let source = asked.source();
        asked.escalation =
            Some(Question::ask(Kind::Question, Cause::Agent, source, "which colour?", &policy, asked_at));
        let text = told(&asked, "", TaskSurroundings::default());
        assert!(text.contains("reason: which colour?"), "{text}");
        assert!(text.contains("a person was asked once, first 1m ago; next reminder: in 1h"), "{text}");
    }

    #[test]
    fn every_state_can_be_told() {
        for state in State::ALL {
            assert!(told(&task(state), "", TaskSurroundings::default()).starts_with(state.name()));
        }
    }

    #[test]
    fn a_full_context_and_its_hand_over_are_told() {
        let mut full = task(State::Working);
        (full.session.stage, full.session.generation) = (Stage::Alive, 2);
        full.session.context.gauge = Some(Gauge { used_permille: 935, source: Source::StatusLine });
        full.session.handoffs = 1;
        full.session.continues = true;
        let text = told(&full, "", TaskSurroundings::default());
        for line in [
            "the context is 93.5% full, according to its status line: a new session takes over",
            "session dev-shop-3.2 continues where the previous one handed over",
        ] {
            assert!(text.lines().any(|l| l == line), "{line:?} is missing in\n{text}");
        }
        assert!(text.contains("1 of ") && text.contains(" hand-overs used"), "{text}");
        let mut handoff = Handoff {
            requested_at: Timestamp(NOW.0 - 20_000),
            deadline: Timestamp(NOW.0 + 40_000),
            stuck: false,
        };
        full.session.handoff = Some(handoff);
        let text = told(&full, "", TaskSurroundings::default());
        assert!(
            text.contains(
                "the agent was asked 20s ago to save its work and exit; Pointsman ends the session in 40s"
            ),
            "{text}"
        );
        handoff.stuck = true;
        full.session.handoff = Some(handoff);
        let text = told(&full, "", TaskSurroundings::default());
        assert!(
            text.contains(
                "asked 20s ago to save its work and exit, but did not, so Pointsman ends the session"
            ),
            "{text}"
        );
    }

    #[test]
    fn parking_and_budgets_are_told() {
        let mut parked = task(State::Working);
        (parked.session.stage, parked.session.generation) = (Stage::Alive, 1);
        parked.session.parked_until = Some(Timestamp(NOW.0 + 300_000));
        let spent = Spent { tokens: 900, micro_usd: 1_000_000, ..Spent::default() };
        let around = || TaskSurroundings { spent, spent_today: spent, ..TaskSurroundings::default() };
        let text = told(&parked, "", around());
        assert!(
            text.contains(
                "parked because an outside service fails, which uses up no attempt; it continues in 5m"
            ),
            "{text}"
        );
        assert!(text.lines().any(|l| l == "1.00 USD, 900 tokens spent on this task"), "{text}");
        assert!(!text.contains("today"), "the day holds nothing up: {text}");
        let text = told(&parked, "[budget]\nusd_per_task = 1.0\nusd_per_day = 1.2", around());
        assert!(
            text.contains("1.00 of 1.00 USD, 900 tokens spent on this task: used up, so its session ends"),
            "{text}"
        );
        assert!(
            text.contains("1.00 of 1.20 USD, 900 tokens spent by the project today: close to its limit"),
            "{text}"
        );
    }
}
