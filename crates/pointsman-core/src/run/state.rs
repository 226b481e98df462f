//! Events of a run, and the next duty.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Policy, Run, Status, StepDone};
use crate::text::clean_line;
use crate::time::Timestamp;
use crate::words;

/// Longest reason that is kept.
const REASON_CHARS: usize = 500;

/// An event in the life of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Its session has a name and is about to start.
    SessionPrepared {
        generation: u32,
    },
    SessionStarted {
        generation: u32,
    },
    /// No session can be started.
    NotStarted {
        why: String,
    },
    /// A step is done, says its session.
    StepDone {
        generation: u32,
        step: String,
    },
    /// The session is through, and its result was read.
    Finished {
        generation: u32,
        result: Option<serde_json::Value>,
    },
    /// The session gave up, or its result cannot be used.
    GaveUp {
        generation: u32,
        why: String,
    },
    SessionDied {
        generation: u32,
    },
    TimePassed,
    Stopped {
        by: String,
    },
    /// Its session was put away, with its work kept.
    SessionEnded,
}

/// An event that a run does not accept, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Applies an event to a run.
pub fn step(run: &Run, event: &Event, policy: &Policy, now: Timestamp) -> Result<Run, Refused> {
    let mut run = run.clone();
    let generation = match event {
        Event::SessionPrepared { generation }
        | Event::SessionStarted { generation }
        | Event::StepDone { generation, .. }
        | Event::Finished { generation, .. }
        | Event::GaveUp { generation, .. }
        | Event::SessionDied { generation } => Some(*generation),
        Event::NotStarted { .. } | Event::TimePassed | Event::Stopped { .. } | Event::SessionEnded => None,
    };
    if generation.is_some_and(|generation| generation != run.generation) {
        return refused(words::run::REPLACED.to_owned());
    }
    if run.status.is_over() && *event != Event::SessionEnded {
        return refused(words::run::over(run.status));
    }
    match event {
        Event::SessionPrepared { .. } => Ok(run),
        Event::SessionStarted { .. } if run.status == Status::Starting => {
            (run.status, run.session_open, run.reason) = (Status::Running, true, None);
            Ok(run)
        }
        Event::SessionStarted { .. } => refused(words::run::RUNNING_ALREADY.to_owned()),
        Event::NotStarted { why } => {
            run.never_began = run.generation == 1;
            Ok(over(run, Status::Failed, why, now))
        }
        Event::StepDone { generation, step } => {
            let Some((_, wanted)) = run.formula.step(step) else {
                return refused(words::run::no_such_step(&run.formula.name, step));
            };
            if let Some(missing) = wanted.needs.iter().find(|need| !run.is_done(need)) {
                return refused(words::run::step_too_early(step, missing));
            }
            if !run.is_done(step) {
                run.done.push(StepDone { id: step.clone(), at: now, generation: *generation });
            }
            Ok(run)
        }
        Event::Finished { result, .. } => match run.next_step() {
            None => {
                run.result = result.clone();
                Ok(over(run, Status::Done, "", now))
            }
            Some(missing) => {
                let why = words::run::step_left_out(&missing.id);
                Ok(over(run, Status::Failed, &why, now))
            }
        },
        Event::GaveUp { why, .. } => Ok(over(run, Status::Failed, why, now)),
        Event::SessionDied { .. } => Ok(died(run, policy, now)),
        Event::TimePassed if run.started_at.after(policy.lifetime) <= now => {
            let why = words::run::out_of_time(policy.lifetime);
            Ok(over(run, Status::Failed, &why, now))
        }
        Event::TimePassed => refused(words::run::STILL_HAS_TIME.to_owned()),
        Event::Stopped { by } => {
            let why = words::run::stopped(by);
            Ok(over(run, Status::Stopped, &why, now))
        }
        Event::SessionEnded => {
            run.session_open = false;
            Ok(run)
        }
    }
}

/// The first successor comes at once, the next ones after a growing pause, then we stop.
fn died(mut run: Run, policy: &Policy, now: Timestamp) -> Run {
    run.restarts += 1;
    if run.restarts > policy.restarts {
        return over(run, Status::Failed, &words::run::died_often(policy.restarts + 1), now);
    }
    let pause = match run.restarts {
        0 | 1 => Duration::ZERO,
        n => {
            policy.backoff.saturating_mul(1u32.checked_shl(n - 2).unwrap_or(u32::MAX)).min(policy.backoff_max)
        }
    };
    run.generation += 1;
    run.not_before = now.after(pause);
    (run.status, run.reason) = (Status::Starting, Some(words::run::SESSION_DIED.to_owned()));
    run
}

fn over(mut run: Run, status: Status, why: &str, now: Timestamp) -> Run {
    // One that was just about to be started may be there as well.
    (run.status, run.ended_at, run.session_open) = (status, Some(now), true);
    run.reason = Some(clean_line(why, REASON_CHARS)).filter(|why| !why.is_empty());
    run
}

fn refused(why: String) -> Result<Run, Refused> {
    Err(Refused(why))
}

/// The work that a run needs now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    Time,
    /// A session is to be started, or found.
    Start,
    /// Its session is to be looked after.
    Follow,
    /// Its session is to be put away.
    End,
    Wait,
}

/// The one thing to do next.
pub fn duty(run: &Run, policy: &Policy, now: Timestamp) -> Duty {
    match run.status {
        Status::Starting | Status::Running if run.started_at.after(policy.lifetime) <= now => Duty::Time,
        Status::Starting if run.not_before <= now => Duty::Start,
        Status::Starting => Duty::Wait,
        Status::Running => Duty::Follow,
        Status::Done | Status::Failed | Status::Stopped if run.session_open => Duty::End,
        Status::Done | Status::Failed | Status::Stopped => Duty::Wait,
    }
}
