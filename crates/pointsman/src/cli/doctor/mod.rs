//! `doctor`: each check has an id, what is wrong, and how to fix it.
//!
//! `machine` looks at what the system offers, `installation` at our own directories and the daemon, `project` at the
//! project that is meant, `services` at the servers it lives on, `notifiers` at how its people are told. Every check does as the daemon does, and changes nothing.

mod hooks;
mod installation;
mod machine;
mod notifiers;
mod project;
mod services;

use clap::Args;
use pointsman_view::doctor::{Check, Doctor, Grade};

use super::context::Context;
use super::failure::{Code, Failure};
use super::style;

/// Check everything that Pointsman needs, and tell how to fix what is wrong
///
/// Exit code 1 if a check fails; a warning is no failure.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pointsman doctor --json | jq '.checks[] | select(.status != \"ok\")'")]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let mut checks = machine::checks(project::wants_terminals(context));
        checks.extend(installation::checks(context));
        checks.extend(project::checks(context));
        let failed = checks.iter().filter(|check| check.status == Grade::Fail).count();
        if context.out.is_json() {
            context.out.value(&Doctor { ok: failed == 0, checks })?;
        } else {
            checks.iter().try_for_each(|check| print(context, check))?;
        }
        match failed {
            0 => Ok(()),
            // The checks have said it all; a script reads them from standard output.
            _ if context.out.is_json() => Err(Failure::silent(Code::Failed)),
            1 => Err(Failure::failed("one check failed")),
            n => Err(Failure::failed(format!("{n} checks failed"))),
        }
    }
}

fn print(context: &Context, check: &Check) -> Result<(), Failure> {
    let (word, colour) = match check.status {
        Grade::Ok => ("ok  ", style::GOOD),
        Grade::Warn => ("warn", style::WAITING),
        Grade::Fail => ("FAIL", style::ERROR),
    };
    context.out.line(format!("{colour}{word}{colour:#}  {:<16} {}", check.id, check.detail))?;
    match &check.fix {
        Some(fix) => context.out.line(format!("{:24}fix: {fix}", "")),
        None => Ok(()),
    }
}

/// An error with its causes.
fn chain(error: impl Into<anyhow::Error>) -> String {
    format!("{:#}", error.into())
}
