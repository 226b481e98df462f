use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;

use super::failure::{Code, Failure};
use super::out::Out;
use crate::demo;

/// Watch issues become merged branches: real git, real tmux, no account, no model
///
/// The demo creates two throw-away projects and plays several stories at the same time: a clean task, a failing CI,
/// requested changes, a killed session, a dependency, a question to a person, a hopeless case, a review by the review
/// agent, and an action that waits for a person. At the end it shows a board with the outcomes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pointsman demo              # about 40 seconds, at a pace people can follow\n  pointsman demo --speed 3    # three times as fast\n  pointsman demo --json | jq '.tasks[] | [.story, .outcome]'"
)]
pub(crate) struct Arguments {
    /// Keep everything, so that you can look around afterwards
    #[arg(long)]
    keep: bool,
    /// Play faster or slower: 2 is twice as fast. Without a terminal, the demo never pauses
    #[arg(long, value_name = "FACTOR", value_parser = demo::Pace::parse)]
    speed: Option<demo::Pace>,
    /// Write an animated SVG of the demo to FILE
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self, out: Out) -> Result<(), Failure> {
        let color = std::io::stdout().is_terminal()
            && anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
        let watched = std::io::stdout().is_terminal() && !out.is_json();
        let default = if watched { demo::Pace::Speed(1.0) } else { demo::Pace::AtOnce };
        let pace = self.speed.unwrap_or(default);
        let options = demo::Options { json: out.is_json(), keep: self.keep, color, pace, svg: self.svg };
        match demo::run(options)? {
            true => Ok(()),
            // The board has told which story went otherwise.
            false => Err(Failure::silent(Code::Failed)),
        }
    }
}
