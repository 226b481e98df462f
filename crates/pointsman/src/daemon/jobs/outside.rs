//! Checks that an outside CI gives a commit: asked for at the forge, or at the CI itself, until they are decided.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use pointsman_adapters::ci::woodpecker::{self, CommitVerdict};
use pointsman_adapters::forge;
use pointsman_adapters::retry::Retry;
use pointsman_core::ids::Sha;
use pointsman_core::schedule::{WebhookSupport, checks_pace};
use pointsman_core::task::CiVerdict;
use pointsman_core::verdict::of_checks;
use pointsman_core::words;

use super::Jobs;
use crate::daemon::clock;
use crate::daemon::effects::chain;
use crate::daemon::served::Served;
use crate::daemon::webhooks::{ProjectWebhooks, Topic};

/// How long the log of a red run is waited for: a CI stores it a moment after the status, or there is none.
const LOG_LIMIT: Duration = Duration::from_secs(15);
/// How often it is looked for.
const LOG_PACE: Duration = Duration::from_secs(1);
/// Checks that the server refuses to show are given up after this long: a commit may be unknown to it for a moment after a
/// push, but a token that was revoked stays so.
const REFUSED_LIMIT: Duration = Duration::from_secs(120);
/// The daemon's end is looked for at least this often.
const LOOK: Duration = Duration::from_secs(1);

/// Waits for the checks of exactly this commit. Nothing if nobody wants to know any more, which is told by the channel,
/// or if the daemon stops.
pub(super) fn wait_for_checks(
    jobs: &Jobs,
    served: &Served,
    sha: &Sha,
    unwanted: &Receiver<()>,
) -> Option<CiVerdict> {
    let config = &served.config;
    let begun = Instant::now();
    let mut deadline = begun + config.timing.ci_timeout.duration();
    let mut ask_at = begun;
    let mut first = true;
    let mut silent_since = None;
    let mut refused: Option<(Instant, String)> = None;
    let mut log_until = None;
    let rings = || served.listening.as_ref().map_or(0, ProjectWebhooks::rings);
    let mut heard = rings();
    loop {
        if heard != rings() || Instant::now() >= ask_at {
            heard = rings();
            let answer = ask(served, sha, &mut first);
            match &answer {
                // What nobody could read in the meantime is not late.
                Ok(_) => {
                    deadline += silent_since.take().map_or(Duration::ZERO, |at: Instant| at.elapsed());
                    refused = None;
                }
                Err(error) => {
                    let reason = chain(error);
                    tracing::warn!(%sha, error = reason, "the checks cannot be read for now");
                    match error.retry() {
                        Retry::Later | Retry::LookFirst => {
                            silent_since.get_or_insert_with(Instant::now);
                        }
                        // The server answers, so it is not silent; asking it for ever changes nothing.
                        Retry::Never => {
                            deadline +=
                                silent_since.take().map_or(Duration::ZERO, |at: Instant| at.elapsed());
                            let since = refused.map_or_else(Instant::now, |(since, _)| since);
                            refused = Some((since, reason));
                        }
                    }
                }
            }
            let webhook_support = served.listening.as_ref().map_or(WebhookSupport::Asking, |listening| {
                listening.webhook_support(Topic::Checks, clock::now())
            });
            let pace = checks_pace(config.ci.poll.duration(), webhook_support, begun.elapsed());
            ask_at = Instant::now() + pace;
            match answer.unwrap_or(Answer::Open) {
                Answer::Open => log_until = None,
                Answer::Decided(verdict) => return Some(verdict),
                Answer::WithoutLog(verdict) => {
                    if Instant::now() >= *log_until.get_or_insert_with(|| Instant::now() + LOG_LIMIT) {
                        return Some(verdict);
                    }
                    ask_at = Instant::now() + pace.min(LOG_PACE);
                }
            }
        }
        let is_due = Instant::now() >= deadline && silent_since.is_none();
        match &refused {
            Some((since, reason)) if is_due || since.elapsed() >= REFUSED_LIMIT => {
                let reason = words::queue::checks_unreadable(reason);
                return Some(CiVerdict::Infra { reason, log: String::new() });
            }
            Some(_) | None => {}
        }
        if is_due {
            let log = words::daemon::queue::no_check_in_time().to_owned();
            return Some(CiVerdict::TimedOut { log });
        }
        let next = if silent_since.is_some() { ask_at } else { ask_at.min(deadline) };
        let pause = next.saturating_duration_since(Instant::now()).min(LOOK);
        match unwanted.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) if !jobs.is_stopping() => {}
            Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error(transparent)]
    Forge(#[from] forge::Error),
    #[error(transparent)]
    Ci(#[from] woodpecker::Error),
}

impl Unread {
    fn retry(&self) -> Retry {
        match self {
            Self::Forge(error) => error.retry(),
            Self::Ci(error) => error.retry(),
        }
    }
}

/// What a question came to.
enum Answer {
    Open,
    Decided(CiVerdict),
    /// Red, and its log is not there yet.
    WithoutLog(CiVerdict),
}

/// One question. A Woodpecker whose machinery had failed before we asked for the first time runs the commit once more:
/// that is what we were asked to see to.
fn ask(served: &Served, sha: &Sha, first: &mut bool) -> Result<Answer, Unread> {
    let Some(ci) = &served.woodpecker else {
        let verdict = of_checks(&served.forge.checks(sha)?, &served.config.ci.required);
        return Ok(verdict.map_or(Answer::Open, Answer::Decided));
    };
    let CommitVerdict { verdict, lacks_log } = ci.look(sha)?;
    let is_first = std::mem::take(first);
    Ok(match verdict {
        None => Answer::Open,
        Some(CiVerdict::Infra { .. }) if is_first => {
            // If its answer gets lost, the new run is there at the next look.
            ci.restart_red(sha)?;
            Answer::Open
        }
        Some(verdict) if lacks_log => Answer::WithoutLog(verdict),
        Some(verdict) => Answer::Decided(verdict),
    })
}
