use clap::Args;
use pointsman_view::status::Halted;

use super::context::Context;
use super::failure::Failure;
use super::time;
use crate::control::protocol::Request;
use crate::daemon;

/// Stop everything that can spend money, keep its work, and start nothing until `resume`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pointsman halt\n  pointsman halt && pointsman down    # before a reboot"
)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("halting all work")?;
        let mut halted = Halted { by: context.author(), at: time::now().into(), sessions: Vec::new() };
        daemon::halt::begin(&context.paths, &halted)?;
        daemon::halt::freeze(&context.paths);
        let running = context.running_daemon()?.is_some();
        if running {
            halted = context.ask_daemon::<Halted>(&Request::Halt { by: context.author() })?;
        }
        if context.out.is_json() {
            return context.out.value(&halted);
        }
        let ended = match halted.sessions.as_slice() {
            [] => "No session was running.".to_owned(),
            sessions => format!("Captured and ended: {}.", sessions.join(", ")),
        };
        context.out.say(match running {
            true => format!("All work is halted. {ended}"),
            false => {
                "All work is halted. Running work has been stopped; the next daemon captures and ends it."
                    .to_owned()
            }
        });
        context.out.say("Nothing starts until you run: pointsman resume");
        Ok(())
    }
}

/// Let work continue after `halt`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pointsman resume")]
pub(crate) struct Resume {}

impl Resume {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("resuming work")?;
        let was_halted = daemon::halt::in_force(&context.paths).is_some();
        daemon::halt::lift(&context.paths)?;
        if context.running_daemon()?.is_some() {
            context.ask_daemon::<()>(&Request::Resume)?;
        }
        if context.out.is_json() {
            return context.out.value(&pointsman_view::status::Resumed { was_halted });
        }
        context.out.say(match was_halted {
            true => "Work continues.",
            false => "Work was not halted.",
        });
        Ok(())
    }
}
