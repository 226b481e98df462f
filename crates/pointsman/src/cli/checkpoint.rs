use clap::Args;
use pointsman_core::session::work::WorkPhase;
use pointsman_view::session::Saved;

use super::context::Context;
use super::failure::Failure;
use crate::control::protocol::Request;

/// Report progress and save the working tree, for agents
///
/// If this session dies, its successor is told what was reported here.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman checkpoint --phase testing --summary \"The parser is done, two tests fail\"\n  \
    pointsman checkpoint                     only save")]
pub(crate) struct Arguments {
    /// The stage of the work: investigation, planning, implementation, testing or completion
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    phase: Option<WorkPhase>,
    /// What you are working on, in one line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Option<String>,
    /// The session to report for; an agent's own is in POINTSMAN_SESSION
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let session = context.reporting_session(self.session)?;
        let request = Request::Checkpoint { session, phase: self.phase, summary: self.summary };
        let answer: Saved = context.ask_and_say(&request)?;
        if context.out.is_json() { context.out.value(&answer) } else { Ok(()) }
    }
}

fn phase(text: &str) -> Result<WorkPhase, String> {
    WorkPhase::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = WorkPhase::ALL.into_iter().map(WorkPhase::name).collect();
        format!("one of {}", names.join(", "))
    })
}
