use clap::Subcommand;
use pointsman_core::verdict;

use super::deps::read_stdin;
use super::failure::Failure;
use super::out::Out;

/// Judge what a CI said
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tell whether a failed step is the machinery's fault or the code's
    ///
    /// Reads the step's log from standard input and prints `infra <reason>` or `code`.
    #[command(after_help = "Example:\n  pointsman ci classify --step clone --exit 128 < clone.log")]
    Classify {
        /// The step's name
        #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
        step: String,
        /// Its exit code
        #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
        exit: i32,
    },
}

impl Command {
    pub(crate) fn run(self, out: Out) -> Result<(), Failure> {
        let Self::Classify { step, exit } = self;
        let class = verdict::classify(&step, Some(exit), None, &read_stdin()?);
        if out.is_json() { out.value(&class) } else { out.line(class) }
    }
}
