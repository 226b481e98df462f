use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::failure::Failure;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pointsman completions bash > ~/.local/share/bash-completion/completions/pointsman"
)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<(), Failure> {
        use std::io::Write;
        // Written into memory first: the generator panics if its output breaks.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Cli::command(), "pointsman", &mut script);
        Ok(std::io::stdout().lock().write_all(&script)?)
    }
}
