use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pointsman_adapters::phase_file::{self, Reading, Refusal};
use pointsman_core::task::Phase;
use pointsman_view::phase::Read;

use super::failure::{Code, Failure};
use super::out::Out;

/// Write the phase file, for agents that prefer a command, or read one
///
/// $PHASE_FILE names the file. A phase is a claim: it only makes the daemon check the facts.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    git push origin HEAD && pointsman phase awaiting_ci\n  \
    pointsman phase escalate --reason \"Which of the two APIs is meant?\"\n  \
    pointsman phase read /tmp/dev-session-shop-3.phase")]
pub(crate) enum Command {
    /// The branch is pushed and needs CI
    #[command(name = "awaiting_ci", alias = "awaiting-ci")]
    #[command(after_help = "Example:\n  git push origin HEAD && pointsman phase awaiting_ci")]
    AwaitingCi(PhaseReason),
    /// CI passed and the pull request needs a review
    #[command(name = "awaiting_review", alias = "awaiting-review")]
    #[command(after_help = "Example:\n  pointsman phase awaiting_review")]
    AwaitingReview(PhaseReason),
    /// A person has to decide
    #[command(name = "escalate", aliases = ["needs_human", "needs-human"])]
    #[command(
        after_help = "Example:\n  pointsman phase escalate --reason \"Which of the two APIs is meant?\""
    )]
    Escalate(PhaseReason),
    /// The pull request is merged
    #[command(after_help = "Example:\n  pointsman phase done")]
    Done(PhaseReason),
    /// The agent gives up
    #[command(after_help = "Example:\n  \
        pointsman phase failed --reason \"The test needs a database that is not here\"")]
    Failed(PhaseReason),
    /// Print the phase in FILE; if there is none, print nothing and exit with 4
    #[command(after_help = "Example:\n  pointsman phase read /tmp/dev-session-shop-3.phase")]
    Read {
        /// The phase file
        file: PathBuf,
    },
}

/// Why, for people.
#[derive(Debug, Args)]
pub(crate) struct PhaseReason {
    /// The reason, in one line
    #[arg(long, allow_hyphen_values = true)]
    reason: Option<String>,
}

impl Command {
    pub(crate) fn run(self, out: Out) -> Result<(), Failure> {
        match self {
            Self::AwaitingCi(why) => write(Phase::AwaitingCi, &why),
            Self::AwaitingReview(why) => write(Phase::AwaitingReview, &why),
            Self::Escalate(why) => write(Phase::Escalate, &why),
            Self::Done(why) => write(Phase::Done, &why),
            Self::Failed(why) => write(Phase::Failed, &why),
            Self::Read { file } => read(out, &file),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a command begins here: the environment is its input")]
fn write(phase: Phase, why: &PhaseReason) -> Result<(), Failure> {
    let Some(path) = std::env::var_os("PHASE_FILE").filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return Err(Failure::refused("PHASE_FILE is not set: this is not a session of Pointsman")
            .hint("agents run this command; to read a phase file, run `pointsman phase read FILE`"));
    };
    phase_file::write_phase(&path, &format!("PHASE:{phase}"), why.reason.as_deref()).map_err(|refusal| {
        let message = format!("{}: {refusal}", path.display());
        match refusal {
            Refusal::Missing => Failure::not_found(message),
            Refusal::SymbolicLink
            | Refusal::NotRegular(_)
            | Refusal::ForeignOwner(_)
            | Refusal::SeveralLinks(_)
            | Refusal::Exists => Failure::refused(message),
            Refusal::TooLarge { .. } | Refusal::Os(_) => Failure::failed(message),
        }
    })
}

fn read(out: Out, path: &Path) -> Result<(), Failure> {
    let (first_line, reason) = match phase_file::read(path) {
        Reading::Missing | Reading::Empty => return Err(Failure::silent(Code::NotFound)),
        Reading::Refused(refusal) => return Err(Failure::failed(format!("{}: {refusal}", path.display()))),
        Reading::Text { first_line, reason, .. } => (first_line, reason),
    };
    let phase = Phase::parse(&first_line)
        .ok_or_else(|| Failure::failed(format!("{}: `{first_line}` is not a phase", path.display())))?;
    if out.is_json() {
        return out.value(&Read { phase, reason });
    }
    out.line(phase)
}
