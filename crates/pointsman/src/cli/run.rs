//! Runs of formulas: begun, watched, ended; and what their sessions say.

use clap::{Args, Subcommand};
use pointsman_core::formula;
use pointsman_core::run::{Run, RunId, Status};
use pointsman_core::text::clean_line;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::RunScope;
use pointsman_view::run as view;

use super::context::Context;
use super::failure::{Code, Failure};
use super::table::{Cell, Table};
use super::{style, time};
use crate::control::protocol::{Request, RunCommand};
use crate::formulas;
use crate::project::Project;

/// Runs shown by `run list`.
const SHOWN: u32 = 50;

/// List, show and stop runs of formulas
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  pointsman run list\n  pointsman run show 4")]
pub(crate) enum Command {
    /// List the latest runs, oldest first
    #[command(after_help = "Example:\n  pointsman run list --json | jq '.[] | [.run, .formula, .status]'")]
    List,
    /// Show a run with its steps
    #[command(after_help = "Example:\n  pointsman run show 4")]
    Show {
        /// The number
        #[arg(value_parser = super::number)]
        run: u64,
    },
    /// Stop a run; its work is kept
    #[command(after_help = "Example:\n  pointsman run stop 4")]
    Stop {
        /// The number
        #[arg(value_parser = super::number)]
        run: u64,
    },
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => list(context),
            Self::Show { run } => show(context, &find(context, &context.project()?, RunId(run))?),
            Self::Stop { run } => {
                context.people_only("ending a run")?;
                let command = RunCommand::Stop { id: RunId(run), by: context.author() };
                let run = order(context, &context.project()?, command)?;
                tell(context, &run, "Stopped.")
            }
        }
    }
}

/// Start a run: a session that works through the formula's steps
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman formula run run-gardener --dry-run\n  \
    pointsman formula run run-gardener && pointsman run list")]
pub(crate) struct Begin {
    /// The formula's name
    name: String,
    /// Print what the session would read, and start nothing
    #[arg(long)]
    dry_run: bool,
}

impl Begin {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let project = context.project()?;
        if self.dry_run {
            return rehearse(context, &project, &self.name);
        }
        context.people_only("starting a run")?;
        let command = RunCommand::Start { formula: self.name, by: context.author() };
        let run = order(context, &project, command)?;
        tell(context, &run, "Begun.")
    }
}

/// Report progress in a run, for agents
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  pointsman step done preflight")]
pub(crate) enum Step {
    /// Report that a step is done
    #[command(after_help = "Example:\n  pointsman step done preflight")]
    Done {
        /// The step's id
        id: String,
        /// The session; by default the one this runs in
        #[arg(long)]
        session: Option<String>,
    },
}

impl Step {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::Done { id, session } = self;
        let session = context.reporting_session(session)?;
        let Some((owner, _)) = WorkflowId::parse_session(&session) else {
            return Err(Failure::not_found(format!("there is no session {session}")));
        };
        let project = owner.project().clone();
        let command = RunCommand::StepDone { session, step: id };
        let run: view::Run = context.ask_and_say(&Request::Run { project, command })?;
        let words = match &run.step {
            Some(next) => format!("Next: {next}."),
            None => "That was the last step.".to_owned(),
        };
        tell(context, &run, &words)
    }
}

/// What a run would be, without one.
fn rehearse(context: &Context, project: &Project, name: &str) -> Result<(), Failure> {
    let found = formulas::find(project.checkout(), name)?;
    let formula = found.render(project.checkout(), &formula::variables(&project.config))?;
    let run = Run::new(RunId(0), formula, &project.config, &context.author(), time::now());
    let places = words::run::RunFiles {
        phase_file: "$PHASE_FILE".to_owned(),
        result_file: "$POINTSMAN_RESULT_FILE".to_owned(),
    };
    let prompt = words::run::prompt(&run, &places, "");
    if context.out.is_json() {
        return context.out.value(&view::Run::dry(&run, prompt));
    }
    context.out.line(prompt.trim_end())
}

fn order(context: &Context, project: &Project, command: RunCommand) -> Result<view::Run, Failure> {
    context.ask_and_say(&Request::Run { project: project.config.name.clone(), command })
}

fn tell(context: &Context, run: &view::Run, words: &str) -> Result<(), Failure> {
    match context.out.is_json() {
        true => context.out.value(run),
        false => {
            let number = run.run.map(|number| format!("{number} ")).unwrap_or_default();
            context.out.line(format!("Run {number}of {}: {words}", run.formula))
        }
    }
}

fn find(context: &Context, project: &Project, id: RunId) -> Result<Run, Failure> {
    let missing = || {
        Failure::new(Code::NotFound, format!("{} has no run {id}", project.config.name))
            .hint("pointsman run list")
    };
    context.store()?.ok_or_else(missing)?.run(&project.config.name, id)?.ok_or_else(missing)
}

fn list(context: &Context) -> Result<(), Failure> {
    let project = context.project()?;
    let runs = match context.store()? {
        Some(store) => store.runs(&project.config.name, RunScope::Last(SHOWN))?,
        None => Vec::new(),
    };
    if context.out.is_json() {
        return context.out.value(&runs.iter().map(view::Run::from).collect::<Vec<_>>());
    }
    let mut table = Table::new(["RUN", "FORMULA", "STATUS", "STEP", "STARTED", "REASON"]);
    for run in &runs {
        let step = run.next_step().map_or_else(String::new, |step| step.id.clone());
        table.row([
            run.id.to_string().into(),
            run.formula.name.as_str().into(),
            Cell::styled(run.status.as_str(), colour(run.status)),
            format!("{step} ({}/{})", run.done.len(), run.formula.steps.len()).trim().to_owned().into(),
            time::relative(run.started_at, time::now()).into(),
            clean_line(run.reason.as_deref().unwrap_or_default(), 160).into(),
        ]);
    }
    context.out.table(&table, "There are no runs yet.")
}

fn show(context: &Context, run: &Run) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(&view::Run::from(run));
    }
    let colour = colour(run.status);
    let mut lines =
        vec![format!("Run {} of {}  {colour}{}{colour:#}", run.id, run.formula.name, run.status.as_str())];
    lines.extend(run.reason.as_deref().map(|why| format!("reason   {}", clean_line(why, 500))));
    lines.push(format!("session  {}", run.session_name()));
    lines.push(format!("started  {} by {}", time::relative(run.started_at, time::now()), run.by));
    for step in &run.formula.steps {
        let mark = if run.is_done(&step.id) { "✔" } else { " " };
        lines.push(format!("  {mark} {}: {}", step.id, clean_line(&step.title, 120)));
    }
    context.out.line(lines.join("\n"))
}

fn colour(status: Status) -> anstyle::Style {
    match status {
        Status::Starting | Status::Running => style::BUSY,
        Status::Done => style::GOOD,
        Status::Failed => style::BAD,
        Status::Stopped => style::QUIET,
    }
}
