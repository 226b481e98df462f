//! The rehearsal agent behaves like a coding agent but follows a script instead of a model. The demo and the tests
//! run it with the same terminal, git and phase file as any agent.
//!
//! The script is in the issue, between `rehearsal:begin` and `rehearsal:end`, with one step per line ([`script`]). A
//! role that runs a formula has its own script there. The agent knows nothing of the daemon. It uses only what any
//! agent gets: its tree, its environment, its terminal and the control socket. It prints one line per step, beginning
//! with `•`, so a transcript shows what a session did first. Without a terminal the script is divided into turns
//! ([`stream`]): a turn ends where the agent would wait for a message. The scripts are in `demo/` and in the tests.

mod message;
mod player;
mod progress;
mod report;
pub mod script;
mod stream;
mod terminal;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Signal, getpid, kill_process};

use player::{Ending, Player, Surroundings};
use report::Reporter;
use stream::Stream;
use terminal::Terminal;

use crate::paths::Paths;

/// The hidden subcommand `pointsman rehearsal-agent`; answers its exit code.
#[allow(clippy::disallowed_methods, reason = "an agent begins here: the environment is its input")]
pub fn run(args: Vec<String>) -> anyhow::Result<i32> {
    let surroundings = Surroundings { pause: pause(&args)?, ..surroundings(|name| std::env::var_os(name))? };
    let stdin = std::io::stdin();
    let stdout = std::io::stdout();
    let session = surroundings.session.clone();
    let headless = surroundings.turn.is_some();
    if headless {
        let mut stream = Stream::begin(&stdout, &session)?;
        let ending = Player::new(surroundings, Terminal::new(&stdin), &mut stream).play()?;
        match ending {
            Ending::TurnOver => stream.over()?,
            Ending::Limited { seconds } => stream.limited(seconds)?,
            Ending::Exit(_) | Ending::Crash | Ending::Hang => {}
        }
        return end(&ending);
    }
    end(&Player::new(surroundings, Terminal::new(&stdin), &stdout).play()?)
}

/// The pause before each step, if one is asked for: people want to see what happens.
fn pause(args: &[String]) -> anyhow::Result<Duration> {
    match args {
        [] => Ok(Duration::ZERO),
        [option, number] if option == "--pause-ms" => {
            let millis =
                number.parse().with_context(|| format!("--pause-ms takes a number, not {number}"))?;
            Ok(Duration::from_millis(millis))
        }
        _ => bail!("the rehearsal agent takes only --pause-ms: its script is in the issue"),
    }
}

fn end(ending: &Ending) -> anyhow::Result<i32> {
    match ending {
        Ending::Exit(code) => Ok(*code),
        Ending::TurnOver => Ok(0),
        Ending::Limited { .. } => Ok(1),
        Ending::Crash => {
            kill_process(getpid(), Signal::KILL).context("cannot kill myself")?;
            // The signal is on its way; nothing may happen before it is here.
            sleep_for_ever()
        }
        Ending::Hang => sleep_for_ever(),
    }
}

fn surroundings(var: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<Surroundings> {
    let path = |name: &str| {
        var(name).map(PathBuf::from).with_context(|| format!("{name} is not set: this runs inside a session"))
    };
    let word = |name: &str| var(name).and_then(|value| value.into_string().ok());
    let session = word("POINTSMAN_SESSION").unwrap_or_default();
    let control = Paths::from_env(&var)?.control_socket();
    Ok(Surroundings {
        tree: std::env::current_dir().context("cannot find my working tree")?,
        phase_file: path("PHASE_FILE")?,
        // Who runs a formula has a result instead.
        summary_file: path("POINTSMAN_SUMMARY_FILE").or_else(|_| path("POINTSMAN_RESULT_FILE"))?,
        plan_file: path("POINTSMAN_PLAN_FILE").ok(),
        runs_formula: var("POINTSMAN_RUN").is_some(),
        inbox: path("POINTSMAN_INBOX")?,
        pointsman: std::env::current_exe().context("cannot find my own program")?,
        reporter: Reporter::new(session.clone(), control),
        session,
        turn: word("POINTSMAN_TURN").and_then(|turn| turn.parse().ok()),
        pause: Duration::ZERO,
    })
}

/// Does nothing for a while.
#[allow(clippy::disallowed_methods, reason = "people watch: there is nothing to wait for")]
fn take_time(pause: Duration) {
    if !pause.is_zero() {
        std::thread::sleep(pause);
    }
}

/// Waits for nothing, and not for the terminal either: from outside it looks busy.
#[allow(clippy::disallowed_methods, reason = "an agent that hangs")]
fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
