use std::time::{Duration, Instant};

use clap::Args;
use pointsman_store::{DaemonLock, SessionScope, lock};

use super::context::Context;
use super::failure::Failure;
use crate::control::protocol::Request;
use crate::daemon;
use crate::paths::Paths;

/// A daemon that stops finishes what it has begun first.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Stop the daemon; sessions keep running, and the next daemon takes them over
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pointsman down\n  pointsman halt && pointsman down       before a reboot"
)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("stopping the daemon")?;
        stop(context)?;
        // After a halt they have ended; what is still recorded is brought back by `resume`.
        let sessions = match context.store()?.filter(|_| daemon::halt::in_force(&context.paths).is_none()) {
            Some(store) => store.sessions(None, SessionScope::Live)?.len(),
            None => 0,
        };
        context.out.say(match sessions {
            0 => "The daemon has stopped. No session is running.".to_owned(),
            1 => "The daemon has stopped. 1 session keeps running; `pointsman up` takes it over.".to_owned(),
            n => {
                format!("The daemon has stopped. {n} sessions keep running; `pointsman up` takes them over.")
            }
        });
        Ok(())
    }
}

/// Has the daemon stop, and returns when it has.
pub(crate) fn stop(context: &Context) -> Result<(), Failure> {
    context.ask_daemon::<()>(&Request::Down)?;
    wait_until_stopped(&context.paths).map_err(|error| match error {
        lock::Error::Held { .. } => {
            Failure::failed("the daemon has not stopped yet").hint("pointsman status")
        }
        error @ lock::Error::File { .. } => (&error).into(),
    })
}

/// Returns when a daemon that was told to stop has stopped: when it has let go of the lock, not when its socket is gone.
#[allow(clippy::disallowed_methods, reason = "looks until a deadline: there is nobody to be woken by")]
pub(crate) fn wait_until_stopped(paths: &Paths) -> Result<(), lock::Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match DaemonLock::acquire(&paths.lock()) {
            Ok(_) => return Ok(()),
            Err(lock::Error::Held { .. }) if Instant::now() < deadline => std::thread::sleep(LOOK),
            Err(error) => return Err(error),
        }
    }
}
