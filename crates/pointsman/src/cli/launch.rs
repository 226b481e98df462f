use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::context::ENVIRONMENT;
use super::failure::Failure;
use super::network::Forward;
use crate::daemon::Side;

/// Runs a command that stands between the daemon and an agent or a test, if the command line is one. Several of them are part of
/// every start, and the arguments of all other commands take a millisecond to set up.
pub(crate) fn shortcut() -> Option<Result<ExitCode, Failure>> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match words.first()?.to_str()? {
        "launch" => Some(alone::<Arguments>(&words)?.run()),
        "enter" => Some(alone::<Enter>(&words)?.run()),
        "confine" => Some(alone::<Confine>(&words)?.run()),
        "forward" => Some(alone::<Forward>(&words)?.run()),
        _ => None,
    }
}

/// The arguments of one command. None for a mistake, which is told by whoever knows all commands.
fn alone<A: Args>(words: &[OsString]) -> Option<A> {
    let command = A::augment_args(clap::Command::default());
    A::from_arg_matches(&command.try_get_matches_from(words).ok()?).ok()
}

/// Become the agent that SPEC describes; the daemon's own
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What to run, and with what
    spec: PathBuf,
    /// The sandbox is around us already
    #[arg(long)]
    inside: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let side = if self.inside { Side::Inside } else { Side::Outside };
        Ok(ExitCode::from(crate::daemon::launch(&self.spec, side)?))
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

/// Take on the limits of a sandbox and become COMMAND; the daemon's own
#[derive(Debug, Args)]
pub(crate) struct Enter {
    /// The limits, as JSON
    limits: Option<String>,
    /// The way to the network, as JSON
    #[arg(long)]
    network: Option<String>,
    /// The rights below paths, as JSON
    #[arg(long)]
    rights: Option<String>,
    /// What to run
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Enter {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let (limits, rights) = (self.limits.as_deref(), self.rights.as_deref());
        let network = self.network.as_deref();
        match crate::enclosure::enter(limits, rights, network, &self.command, ENVIRONMENT)? {}
    }
}

/// Join the control group of a job, note its sandbox and become COMMAND; the daemon's own
#[derive(Debug, Args)]
pub(crate) struct Confine {
    /// The means to find its processes, as JSON
    members: String,
    /// COMMAND is a sandbox
    #[arg(long)]
    sandbox: bool,
    /// The filter of system calls holds inside
    #[arg(long)]
    filter: bool,
    /// The layers of its checkout, as JSON
    #[arg(long)]
    layers: Option<String>,
    /// What to run
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Confine {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let layers = self.layers.as_deref();
        match crate::enclosure::confine(&self.members, layers, self.sandbox, self.filter, self.command)? {}
    }
}
