use std::io::IsTerminal;

use clap::Args;

use super::failure::{Code, Failure};
use super::out::Out;
use crate::demo;

/// Watch issues become merged branches: real git, real tmux, no account, no model
///
/// Makes two throw-away projects and plays several stories at the same time: a clean task, a failing CI, requested
/// changes, a killed session, a dependency, a question to a person, a hopeless case, a review by the review agent, an
/// action that waits for a person. Ends with a board of what happened.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Keep everything, to look around afterwards
    #[arg(long)]
    keep: bool,
}

impl Arguments {
    pub(crate) fn run(self, out: Out) -> Result<(), Failure> {
        let color = std::io::stdout().is_terminal()
            && anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
        let options = demo::Options { json: out.is_json(), keep: self.keep, color };
        match demo::run(options)? {
            true => Ok(()),
            // The board has told which story went otherwise.
            false => Err(Failure::silent(Code::Failed)),
        }
    }
}
