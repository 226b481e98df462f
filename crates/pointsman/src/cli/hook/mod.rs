//! `pointsman hook EVENT`: what Claude Code calls when something happens in a session.
//!
//! A hook must never break the agent: whatever comes in, it ends within seconds with exit code 0, and what went wrong
//! is a line in `hook.log`. The common case is a few system calls: no database, no project, no call, and no command
//! tree is built for it. [`input`] reads what Claude says, [`person`] drives the claim life cycle of a person's own
//! session, [`supervised`] tells the daemon about its own, [`output`] is what Claude understands.

mod input;
mod log;
mod output;
mod person;
mod supervised;
pub(super) mod usage;
mod wake;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::failure::Failure;
use input::{Input, Payload};
use log::Log;

/// Handle an event of Claude Code; its hooks call this
///
/// EVENT is one of Claude's event names in any case, or on-stop, on-idle, session-start. The event's JSON is read from
/// standard input. The exit code is always 0, except that watch and wake exit with 2 to wake an idle session.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  echo '{}' | pointsman hook on-stop")]
pub(crate) struct Arguments {
    /// The event
    event: String,
    /// The event's JSON, for programs that pass it as an argument
    payload: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        Ok(take(&self.event, self.payload))
    }
}

/// What a session tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    SessionStart,
    Stop,
    Notification,
    /// The name under which a person's own hooks ask for what an idle session should know.
    Idle,
    /// The name under which they ask to be woken.
    Watch,
    Other,
}

impl Event {
    fn named(name: &str) -> Self {
        match pointsman_core::hook::plain_name(name).as_str() {
            "sessionstart" => Self::SessionStart,
            "stop" | "onstop" => Self::Stop,
            "notification" => Self::Notification,
            "onidle" | "idle" => Self::Idle,
            "watch" => Self::Watch,
            _ => Self::Other,
        }
    }
}

/// The way around the command tree: building it costs more than the whole hook. None if this is no plain call of
/// `hook`.
#[allow(clippy::disallowed_methods, reason = "a process begins here: the environment is its input")]
pub(crate) fn shortcut() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != "hook" {
        return None;
    }
    let event = words.next()?.into_string().ok()?;
    let payload = words.next().map(OsString::into_string).transpose().ok()?;
    let plain = |text: &str| !text.starts_with('-');
    let all_plain = plain(&event) && payload.as_deref().is_none_or(plain) && words.next().is_none();
    all_plain.then(|| take(&event, payload))
}

/// The JSON on standard input; null if there is none.
pub(super) fn read_value() -> serde_json::Value {
    input::read().value()
}

/// Where we were called.
struct Call {
    event: Event,
    payload: Payload,
    /// The project's root as Claude names it, else where the session is.
    dir: PathBuf,
    log: Log,
}

#[allow(clippy::disallowed_methods, reason = "a process begins here: the environment is its input")]
fn take(event: &str, argument: Option<String>) -> ExitCode {
    let log = Log::of(event);
    let input = match argument {
        Some(text) => Input::Text(text.into_bytes()),
        None => input::read(),
    };
    let payload = match input.payload() {
        Ok(payload) => payload,
        Err(why) => {
            log.line(&why.to_string());
            match why {
                // The seed's hooks need nothing of it: the claim file says it all.
                input::InvalidInput::Empty => Payload::default(),
                input::InvalidInput::TooLarge
                | input::InvalidInput::Endless
                | input::InvalidInput::NoObject
                | input::InvalidInput::Malformed(_) => {
                    return ExitCode::SUCCESS;
                }
            }
        }
    };
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = named("CLAUDE_PROJECT_DIR")
        .or_else(|| payload.cwd())
        .and_then(|dir| std::path::absolute(dir).ok())
        .or_else(|| std::env::current_dir().ok());
    let Some(dir) = dir else {
        log.line("neither CLAUDE_PROJECT_DIR nor the event names the directory");
        return ExitCode::SUCCESS;
    };
    match std::env::var("POINTSMAN_SESSION").ok().filter(|session| !session.is_empty()) {
        Some(session) => {
            let variable = |name: &str| std::env::var(name).unwrap_or_default();
            let session_files = supervised::SessionVariables { session, variable };
            return supervised::answer(event, &payload.value(), &session_files, &log);
        }
        None => {
            let call = Call { event: Event::named(event), payload, dir, log };
            if call.event == Event::Watch {
                return watch::run(&call);
            }
            person::answer(&call);
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::Event;

    #[test]
    fn names_are_taken_in_any_case_and_spelling() {
        for (name, event) in [
            ("Stop", Event::Stop),
            ("STOP", Event::Stop),
            ("on-stop", Event::Stop),
            ("on_idle", Event::Idle),
            ("SessionStart", Event::SessionStart),
            ("session-start", Event::SessionStart),
            ("Notification", Event::Notification),
            ("TomorrowsEvent", Event::Other),
        ] {
            assert_eq!(Event::named(name), event, "{name}");
        }
    }
}
