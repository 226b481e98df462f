//! Reading commands for sessions whose sandbox hides the database: this program runs, outside, and what it prints is the answer.
//!
//! Its words are made here from numbers; nothing that a session wrote becomes one of them. The access rule has looked at them.

use std::time::Duration;

use pointsman_adapters::process::Run;
use pointsman_adapters::secret::known;
use pointsman_core::words;

use super::answer::{done, failed};
use super::effects::EffectPerformer;
use super::served::Served;
use crate::control::protocol::{FailureKind, Printed, Reading, Reply};

/// A command that reads a server may wait for it.
const LIMIT: Duration = Duration::from_secs(50);
/// The most that is handed on of a log; its middle is left out beyond that.
const MOST: usize = 4 << 20;
/// What the program needs to find its files.
const INHERITED: [&str; 11] = [
    "PATH",
    "HOME",
    "LANG",
    "TZ",
    "TMPDIR",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "POINTSMAN_STATE_DIR",
    "POINTSMAN_RUNTIME_DIR",
    "POINTSMAN_MACHINE_CONFIG",
];

/// What the command prints.
pub(super) fn read(world: &EffectPerformer, served: &Served, what: &Reading, json: bool) -> Reply {
    let run = Run::new(&world.program).args(words_of(what)).args(["--project", served.config.name.as_str()]);
    let run = if json { run.arg("--json") } else { run };
    let tokens = [served.config.forge.token_env().unwrap_or_default(), &served.config.woodpecker.token_env];
    let run = run.inherit(&INHERITED).inherit(&tokens).cwd("/").time_limit(LIMIT).output_cap(MOST);
    match run.finish() {
        Ok(finished) => match finished.end.code().and_then(|code| u8::try_from(code).ok()) {
            Some(code) => {
                let text = |bytes: &[u8]| known().mask(&String::from_utf8_lossy(bytes)).into_owned();
                done(Printed { code, out: text(&finished.stdout), errors: text(&finished.stderr) })
            }
            None => failed(FailureKind::Failed, words::access::reading_ended(finished.end)),
        },
        Err(error) => failed(FailureKind::Failed, words::access::reading_ended(error)),
    }
}

fn words_of(what: &Reading) -> Vec<String> {
    let words = |words: &[&str], number: u64| {
        words.iter().map(|word| (*word).to_owned()).chain([number.to_string()]).collect::<Vec<_>>()
    };
    match what {
        Reading::Task { issue } => words(&["task", "show"], *issue),
        Reading::Explanation { issue } => words(&["task", "explain"], *issue),
        Reading::CiLog { number, run } => {
            let mut line = words(&["ci", "logs"], *number);
            line.extend(run.map(|run| format!("--run={run}")));
            line
        }
    }
}
