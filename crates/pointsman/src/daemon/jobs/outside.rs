//! Checks that an outside CI gives a commit: asked for at the forge, or at the CI itself, until they are decided.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use pointsman_core::ids::Sha;
use pointsman_core::schedule::{Ears, checks_pace};
use pointsman_core::task::CiVerdict;
use pointsman_core::verdict::of_checks;

use super::Jobs;
use crate::daemon::clock;
use crate::daemon::served::Served;
use crate::daemon::webhooks::Listening;

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
    let deadline = begun + config.timing.ci_timeout.duration();
    let mut ask_at = begun;
    let mut first = true;
    let rings = || served.listening.as_ref().map_or(0, Listening::rings);
    let mut heard = rings();
    loop {
        if heard != rings() || Instant::now() >= ask_at {
            heard = rings();
            match ask(served, sha, &mut first) {
                Ok(Some(verdict)) => return Some(verdict),
                Ok(None) => {}
                // An outage says nothing about the code; the deadline holds for it too.
                Err(error) => {
                    tracing::warn!(%sha, error = format!("{error:#}"), "the checks cannot be read for now")
                }
            }
            let ears =
                served.listening.as_ref().map_or(Ears::Asking, |listening| listening.ears(clock::now()));
            ask_at = Instant::now() + checks_pace(config.ci.poll.duration(), ears, begun.elapsed());
        }
        if Instant::now() >= deadline {
            let log = "no check of the commit came to an end in time\n".to_owned();
            return Some(CiVerdict::TimedOut { log });
        }
        let pause = ask_at.min(deadline).saturating_duration_since(Instant::now()).min(LOOK);
        match unwanted.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) if !jobs.is_stopping() => {}
            Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// One question. A Woodpecker whose machinery had failed before we asked for the first time runs the commit once more:
/// that is what we were asked to see to.
fn ask(served: &Served, sha: &Sha, first: &mut bool) -> anyhow::Result<Option<CiVerdict>> {
    let Some(ci) = &served.woodpecker else {
        return Ok(of_checks(&served.forge.checks(sha)?, &served.config.ci.required));
    };
    match ci.verdict(sha)? {
        Some(CiVerdict::Infra { .. }) if *first => {
            // If its answer gets lost, the new run is there at the next look.
            *first = false;
            ci.restart_red(sha)?;
            Ok(None)
        }
        verdict => {
            *first = false;
            Ok(verdict)
        }
    }
}
