use clap::Args;
use pointsman_core::signal::Signal;
use pointsman_store::Store;

use super::context::Context;
use super::events::LogSelection;
use super::failure::{Code, Failure};

/// Print signals, the typed entries of the log, oldest first; with --json, one value per line
///
/// A program that restarts continues after the last signal it has seen: --bookmark keeps its place in a file, and
/// --since takes that signal's number.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman signals --follow --kind AGENT_CRASHED\n  \
    pointsman signals --follow --json --bookmark ~/.seen | ./on-signal\n  \
    pointsman signals --since 1200 --json | jq -c 'select(.kind == \"MERGE_READY\")'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: LogSelection,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let names: Vec<&str> = Signal::ALL.into_iter().map(Signal::name).collect();
        if let Some(unknown) = self.which.kind.iter().find(|kind| !names.contains(&kind.as_str())) {
            return Err(Failure::new(Code::Usage, format!("there is no signal {unknown}"))
                .hint(format!("one of {}", names.join(", "))));
        }
        self.which.print(context, Store::signals)
    }
}
