//! `agent check`: one real turn of an agent in a copy of the project, and what of it works.

use std::time::{Duration, Instant};

use clap::Subcommand;
use pointsman_core::agent::Agent;
use pointsman_core::config::Config;
use pointsman_core::task::{Headline, State, Task};
use pointsman_core::words::doctor as words;
use pointsman_core::words::doctor::agent as said;
use pointsman_store::MessageStatus;
use pointsman_view::doctor::{AgentCheck, Check, Grade};
use serde_json::Value;

use super::context::Context;
use super::doctor::{self, whole_way};
use super::failure::{Code, Failure};
use crate::demo::Interrupted;
use crate::project::Project;
use crate::whole_way::{Copy, Seen, Worker, pause};

/// For a turn of a model.
const TURN_LIMIT: Duration = Duration::from_secs(10 * 60);
/// For a session to end or to start.
const SESSION_LIMIT: Duration = Duration::from_secs(120);
/// The steps, in their order.
const STEPS: [&str; 7] = ["start", "prompt", "hook", "message", "stop", "resume", "tokens"];

/// Try an agent: does it start, receive messages, answer, stop and resume?
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  pointsman agent check")]
pub(crate) enum Command {
    /// Run one real turn in a throw-away copy of the project, inside the sandbox
    ///
    /// The agent receives a small issue and a message, is stopped, and is resumed. This costs a few tokens. Exits with
    /// 1 if a step fails.
    #[command(after_help = "Examples:\n  pointsman agent check\n  pointsman agent check claude --json")]
    Check {
        /// The kind of agent to try instead of the project's
        #[arg(value_name = "KIND", value_parser = kind)]
        kind: Option<Agent>,
    },
}

fn kind(word: &str) -> Result<Agent, String> {
    word.parse().map_err(|error: pointsman_core::agent::UnknownAgent| error.to_string())
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::Check { kind } = self;
        context.people_only("trying an agent")?;
        let project = context.project_if_any()?.ok_or_else(whole_way::no_project)?;
        let agent = kind.unwrap_or_else(|| project.config.agent_kind(Task::ROLE));
        let checks = checks(context, &project, kind)?;
        let failed = checks.iter().any(|check| check.status == Grade::Fail);
        if context.out.is_json() {
            context.out.value(&AgentCheck { agent: agent.as_str().to_owned(), ok: !failed, checks })?;
        } else {
            checks.iter().try_for_each(|check| doctor::print(context, check))?;
        }
        if failed { Err(Failure::silent(Code::Failed)) } else { Ok(()) }
    }
}

/// Every step, with what was seen of it. What comes after a failed one is not tried.
pub(super) fn checks(
    context: &Context,
    project: &Project,
    kind: Option<Agent>,
) -> Result<Vec<Check>, Failure> {
    context.out.say(words::AGENT_WORKS);
    let mut checks = Vec::new();
    if let Err(error) = try_out(context, project, kind, &mut checks) {
        if error.is::<Interrupted>() {
            return Err(Failure::silent(Code::Interrupted));
        }
        let step = STEPS.into_iter().find(|step| !checks.iter().any(|check: &Check| check.id == *step));
        checks.push(Check::fail(step.unwrap_or("tokens"), format!("{error:#}"), said::FIX));
    }
    for step in STEPS {
        if !checks.iter().any(|check| check.id == step) {
            checks.push(Check::warn(step, said::NOT_REACHED, said::FIX));
        }
    }
    Ok(checks)
}

fn try_out(
    context: &Context,
    project: &Project,
    kind: Option<Agent>,
    checks: &mut Vec<Check>,
) -> anyhow::Result<()> {
    let config: &Config = &project.config;
    let agent = kind.unwrap_or_else(|| config.agent_kind(Task::ROLE));
    let hooks = agent.capabilities().hooks;
    let mut copy = Copy::build(&context.paths, project, kind.map_or(Worker::Agent, Worker::Kind))?;
    copy.start()?;
    let issue = copy.file_issue(words::ISSUE, words::FOR_AGENTS)?;
    let number = issue.to_string();

    let seen =
        wait(&copy, issue, SESSION_LIMIT, |seen| seen.sessions.first().is_some_and(|row| row.pid.is_some()))?;
    let program = kind.map_or_else(|| config.command(Task::ROLE).join(" "), |kind| kind.as_str().to_owned());
    let started = seen.sessions.first().is_some_and(|row| row.pid.is_some());
    let inside = whole_way::is_inside(project);
    if !grade(checks, "start", started, said::started(&program, inside), reason(&seen)) {
        return Ok(());
    }
    let pushed = |seen: &Seen| state(seen).is_some_and(whole_way::has_pushed);
    let seen = wait(&copy, issue, TURN_LIMIT, pushed)?;
    let prompted = pushed(&seen);
    if !grade(
        checks,
        "prompt",
        prompted,
        said::PROMPT.into(),
        format!("{}; {}", said::NO_PROMPT, reason(&seen)),
    ) {
        return Ok(());
    }
    let seen = wait(&copy, issue, TURN_LIMIT, |seen| acknowledged(seen) || answered(seen))?;
    if hooks {
        // A model that nobody configured was named by the hook at the start of the session.
        let named = config.roles.get(Task::ROLE).model.is_none()
            && seen.sessions.iter().any(|row| row.model.is_some());
        let heard = named || acknowledged(&seen);
        match heard {
            true => checks.push(Check::ok("hook", said::HOOK)),
            false => checks.push(Check::fail("hook", said::NO_HOOK, said::HOOK_FIX)),
        }
    } else {
        checks.push(Check::ok("hook", said::NO_HOOKS_NEEDED));
    }
    let good = if acknowledged(&seen) { said::MESSAGE } else { said::ANSWERED };
    let bad = format!("{}; {}", said::NO_MESSAGE, reason(&seen));
    grade(checks, "message", acknowledged(&seen) || answered(&seen), good.into(), bad);

    context.out.say(words::AGENT_STOPS);
    copy.pointsman::<Value>(&["session", "stop", &number])?;
    let ended = |seen: &Seen| seen.sessions.first().is_some_and(|row| row.ended_at.is_some());
    let seen = wait(&copy, issue, SESSION_LIMIT, ended)?;
    if !grade(checks, "stop", ended(&seen), said::STOPPED.into(), said::NOT_STOPPED.into()) {
        return Ok(());
    }
    copy.pointsman::<Value>(&["task", "resume", &number])?;
    let back = |seen: &Seen| seen.sessions.iter().any(|row| row.generation > 1 && row.pid.is_some());
    let seen = wait(&copy, issue, SESSION_LIMIT, back)?;
    grade(
        checks,
        "resume",
        back(&seen),
        said::RESUMED.into(),
        format!("{}; {}", said::NOT_RESUMED, reason(&seen)),
    );

    let tokens: u64 = seen.sessions.iter().map(|row| row.spent.tokens).sum();
    checks.push(match (tokens, hooks) {
        (0, true) => Check::fail("tokens", said::NO_TOKENS, said::HOOK_FIX),
        (0, false) => Check::ok("tokens", said::NO_TOKENS_KNOWN),
        (tokens, _) => Check::ok("tokens", said::tokens(tokens)),
    });
    Ok(())
}

/// Writes a step down; answers whether it went well.
fn grade(checks: &mut Vec<Check>, step: &str, well: bool, good: String, bad: String) -> bool {
    checks.push(if well { Check::ok(step, good) } else { Check::fail(step, bad, said::FIX) });
    well
}

/// Looks until this is so, the task waits for a person, or time is up.
fn wait(copy: &Copy, issue: u64, limit: Duration, enough: impl Fn(&Seen) -> bool) -> anyhow::Result<Seen> {
    let deadline = Instant::now() + limit;
    loop {
        let seen = copy.look(issue)?;
        // A task that is paused by us waits for nobody.
        let stopped = whole_way::has_stopped(&seen) && state(&seen) != Some(State::Paused);
        if enough(&seen) || stopped || copy.daemon_is_gone() || Instant::now() >= deadline {
            return Ok(seen);
        }
        pause();
    }
}

fn state(seen: &Seen) -> Option<State> {
    seen.task.as_ref().map(|task| task.state)
}

fn reason(seen: &Seen) -> String {
    let reason = seen.task.as_ref().and_then(|task| task.reason.as_deref());
    words::stuck(state(seen).unwrap_or(State::Backlog).name(), reason)
}

fn acknowledged(seen: &Seen) -> bool {
    let of_ci = |headline| headline == Headline::CiPassed;
    seen.messages
        .iter()
        .any(|message| of_ci(message.headline) && message.status == MessageStatus::Acknowledged)
}

/// Whether the agent went on after it was told that CI passed.
fn answered(seen: &Seen) -> bool {
    let phase = seen.task.as_ref().and_then(|task| task.phase);
    phase == Some(pointsman_core::task::Phase::AwaitingReview)
}
