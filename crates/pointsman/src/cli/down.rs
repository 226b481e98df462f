use std::time::{Duration, Instant};

use clap::Args;
use pointsman_store::{DaemonLock, lock};

use super::context::Context;
use super::failure::Failure;
use crate::control::protocol::Request;

/// A daemon that stops finishes what it has begun first.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Stop the daemon; sessions go on, and the next daemon finds them
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

impl Arguments {
    #[allow(clippy::disallowed_methods, reason = "looks until a deadline: there is nobody to be woken by")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("stopping the daemon")?;
        context.ask_daemon::<()>(&Request::Down)?;
        let deadline = Instant::now() + PATIENCE;
        // It has stopped when it has let go of the lock, not when its socket is gone.
        loop {
            match DaemonLock::acquire(&context.paths.lock()) {
                Ok(_) => break,
                Err(lock::Error::Held { .. }) if Instant::now() < deadline => std::thread::sleep(LOOK),
                Err(lock::Error::Held { .. }) => {
                    return Err(Failure::failed("the daemon has not stopped yet").hint("pointsman status"));
                }
                Err(error @ lock::Error::File { .. }) => return Err((&error).into()),
            }
        }
        context.out.say("The daemon has stopped. Sessions go on; pointsman up takes them over.");
        Ok(())
    }
}
