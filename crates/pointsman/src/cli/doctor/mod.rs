//! `doctor`: each check has an id, what is wrong, and how to fix it.
//!
//! `machine` looks at what the system offers, `installation` at our own directories and the daemon, `project` at the
//! project that is meant, `services` at the servers it lives on, `notifiers` at how its people are told. `whole_way` sends a task its whole way in a copy. Every check does as the daemon
//! does, and changes nothing of the project.

mod hooks;
mod installation;
mod machine;
mod notifiers;
mod project;
mod services;
pub(super) mod whole_way;

use clap::Args;
use pointsman_view::doctor::{Check, Doctor, Grade};

use pointsman_core::words;

use super::context::Context;
use super::failure::{Code, Failure};
use super::{agent, style};
use crate::project::Project;

/// Check everything that Pointsman needs, and say how to fix what is wrong
///
/// At the end, a task runs from start to finish in a throw-away copy of the project: a working tree, a session inside
/// the sandbox, a message and an answer, CI, and the landing. A script plays the agent, so no tokens are spent. Exits
/// with 1 if a check fails; warnings do not count as failures.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman doctor\n  \
    pointsman doctor --agent    # with one real turn of your agent\n  \
    pointsman doctor --quick --json | jq '.checks[] | select(.status != \"ok\")'")]
pub(crate) struct Arguments {
    /// Also run one real turn with the project's agent, which costs a few tokens (see pointsman agent check)
    #[arg(long)]
    agent: bool,
    /// Skip the task in the copy
    #[arg(long, conflicts_with = "agent")]
    quick: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let mut checks = machine::checks(project::wants_terminals(context));
        checks.extend(installation::checks(context));
        checks.extend(project::checks(context));
        // A session looks as far as it sees; only people let a task go its whole way.
        let tries = !self.quick && context.people_only("").is_ok();
        let project = context.project_if_any().ok().flatten().filter(|_| tries);
        if let Some(project) = project {
            let more = self.long_checks(context, &project, &checks)?;
            checks.extend(more);
        }
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

impl Arguments {
    /// Whether it has a copy of the project to remove before it goes.
    pub(super) fn minds_interrupts(&self) -> bool {
        !self.quick
    }

    /// The checks that take longer than a moment. They need everything else.
    fn long_checks(
        &self,
        context: &Context,
        project: &Project,
        before: &[Check],
    ) -> Result<Vec<Check>, Failure> {
        if before.iter().any(|check| check.status == Grade::Fail) {
            return Ok(vec![Check::warn("way", words::doctor::NOT_TRIED, words::doctor::NOT_TRIED_FIX)]);
        }
        let mut checks = whole_way::checks(context, project)?;
        if self.agent && !checks.iter().any(|check| check.status == Grade::Fail) {
            let turn = agent::checks(context, project, None)?;
            checks.extend(turn.into_iter().map(|check| Check { id: format!("agent_{}", check.id), ..check }));
        }
        Ok(checks)
    }
}

/// One check as a line, and its fix as another.
pub(super) fn print(context: &Context, check: &Check) -> Result<(), Failure> {
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
