use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::failure::Failure;

/// Become the agent that SPEC describes; the daemon's own
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What to run, and with what
    spec: PathBuf,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        match crate::daemon::launch(&self.spec)? {}
    }
}

/// Keep the session without a terminal that DIR describes; the daemon's own
#[derive(Debug, Args)]
pub(crate) struct Keep {
    /// Its directory
    dir: PathBuf,
}

impl Keep {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let code = crate::keeper::run(&self.dir)?;
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }
}

/// The scripted agent of the demo and the tests
#[derive(Debug, Args)]
pub(crate) struct Rehearsal {
    /// The agent's own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Rehearsal {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let code = crate::rehearsal::run(self.arguments)?;
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }
}
