use clap::Subcommand;
use pointsman_adapters::ci::woodpecker::{Error as CiError, Pipeline, Status, Step, Woodpecker, Workflow};
use pointsman_adapters::retry::Retry;
use pointsman_core::text::{clean_block, clean_line};
use pointsman_core::time::Timestamp;
use pointsman_core::verdict::{self, FailedStep};
use pointsman_view::ci as view;

use super::context::Context;
use super::deps::read_stdin;
use super::failure::{Code, Failure};
use super::out::Out;
use super::table::{Cell, Table};
use super::{evidence, style, time};
use crate::control::protocol::Reading;

/// How much of a log is printed, in bytes.
const SHOWN: usize = 256 << 10;

/// Read the results and logs of CI
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  pointsman ci logs 3\n  pointsman ci classify --step clone --exit 128 < clone.log"
)]
pub(crate) enum Command {
    /// Decide whether a failed step is an infrastructure failure or the code's fault
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
    /// List the newest pipelines on the project's Woodpecker
    #[command(after_help = "Example:\n  pointsman ci list")]
    List,
    /// Show the steps of a pipeline, by default the newest
    #[command(after_help = "Examples:\n  pointsman ci status\n  pointsman ci status 214")]
    Status {
        /// The pipeline
        #[arg(value_parser = super::number)]
        number: Option<u64>,
    },
    /// Print the output of CI
    ///
    /// If CI is a command, this is the newest run for an issue or a pull request. With Woodpecker, these are the steps
    /// of a pipeline, by default the newest.
    #[command(after_help = "Examples:\n  pointsman ci logs 3\n  pointsman ci logs 3 --run 1")]
    Logs {
        /// The issue or pull request; with Woodpecker, the pipeline
        #[arg(value_parser = super::number)]
        number: Option<u64>,
        /// This run instead of the newest
        #[arg(long, value_name = "K", conflicts_with = "step")]
        run: Option<u32>,
        /// Only the step with this name (Woodpecker)
        #[arg(long, value_name = "NAME")]
        step: Option<String>,
    },
    /// Print the failed steps of a pipeline with their logs and whether code or infrastructure is at fault; by
    /// default, of the newest red one
    #[command(after_help = "Example:\n  pointsman ci failures 214")]
    Failures {
        /// The pipeline
        #[arg(value_parser = super::number)]
        number: Option<u64>,
    },
}

impl Command {
    /// What it reads, if it is a command that a session may need.
    pub(super) fn reading(&self) -> Option<Reading> {
        match self {
            Self::Logs { number: Some(number), run, step: None } => {
                Some(Reading::CiLog { number: *number, run: *run })
            }
            _ => None,
        }
    }

    pub(crate) fn run(
        self,
        out: Out,
        context: impl FnOnce() -> Result<Context, Failure>,
    ) -> Result<(), Failure> {
        match self {
            Self::Classify { step, exit } => {
                let class = verdict::classify(&step, Some(exit), None, &read_stdin()?);
                if out.is_json() { out.value(&class) } else { out.line(class) }
            }
            Self::List => list(&open(&context()?)?, out),
            Self::Status { number } => status(&pipeline(&open(&context()?)?, number)?, out),
            Self::Logs { number, run, step } => all_logs(&context()?, number, run, step.as_deref(), out),
            Self::Failures { number } => failures(&context()?, number, out),
        }
    }
}

fn all_logs(
    context: &Context,
    number: Option<u64>,
    run: Option<u32>,
    step: Option<&str>,
    out: Out,
) -> Result<(), Failure> {
    let kind = context.project()?.config.ci.kind;
    if kind.runs_here() {
        if step.is_some() {
            return Err(Failure::new(Code::Usage, "a CI that is one command has no steps"));
        }
        let which = || Failure::new(Code::Usage, "name the issue or pull request");
        return evidence::ci_logs(context, number.ok_or_else(which)?, run);
    }
    if kind.capabilities().pipelines {
        if run.is_some() {
            let message = "with Woodpecker, the number of the pipeline identifies the run";
            return Err(Failure::new(Code::Usage, message).hint("pointsman ci list"));
        }
        return logs(context, number, step, out);
    }
    match kind.runs_outside() {
        true if run.is_some() || step.is_some() => Err(Failure::new(
            Code::Usage,
            "the forge runs the CI of this project and numbers no runs or steps",
        )),
        true => {
            let which = || Failure::new(Code::Usage, "say which issue or pull request");
            evidence::ci_logs(context, number.ok_or_else(which)?, None)
        }
        false => Err(Failure::refused("this project has no CI").hint("ci.kind in pointsman.toml")),
    }
}

fn open(context: &Context) -> Result<Woodpecker, Failure> {
    let project = context.project()?;
    context.ci(&project.config)?.ok_or_else(|| {
        Failure::refused(format!("this project runs its CI as {}", project.config.ci.kind))
            .hint("set ci.kind = \"woodpecker\" and woodpecker.url")
    })
}

fn failure(error: CiError) -> Failure {
    let code = match &error {
        CiError::Call(call) if matches!(call.status(), Some(404)) => Code::NotFound,
        CiError::Call(call) => match call.retry() {
            Retry::Later | Retry::LookFirst => Code::Unavailable,
            Retry::Never => Code::Failed,
        },
        CiError::Unnamed | CiError::TooOld { .. } | CiError::WebPage { .. } => Code::Configuration,
        CiError::NoStep { .. } => Code::NotFound,
    };
    Failure::new(code, error)
}

/// The pipeline that is meant, with its steps.
fn pipeline(ci: &Woodpecker, number: Option<u64>) -> Result<Pipeline, Failure> {
    let number = match number {
        Some(number) => number,
        None => newest(ci, |_| true)?.ok_or_else(|| Failure::not_found("no pipeline has run yet"))?,
    };
    let found = ci.pipeline(number).map_err(failure)?;
    found
        .ok_or_else(|| Failure::not_found(format!("there is no pipeline {number}")).hint("pointsman ci list"))
}

fn newest(ci: &Woodpecker, wanted: impl Fn(&Pipeline) -> bool) -> Result<Option<u64>, Failure> {
    let listed = ci.pipelines().map_err(failure)?;
    Ok(listed.iter().filter(|pipeline| wanted(pipeline)).map(|pipeline| pipeline.number).max())
}

fn colour(status: Status) -> anstyle::Style {
    match status {
        Status::Success => style::GOOD,
        Status::Created | Status::Pending | Status::Running => style::BUSY,
        Status::Blocked | Status::Skipped | Status::Unknown => style::QUIET,
        Status::Failure | Status::Killed | Status::Canceled | Status::Error | Status::Declined => style::BAD,
    }
}

fn list(ci: &Woodpecker, out: Out) -> Result<(), Failure> {
    let pipelines = ci.pipelines().map_err(failure)?;
    if out.is_json() {
        return out.value(&pipelines.iter().map(view_of).collect::<Vec<_>>());
    }
    let mut table = Table::new(["NUMBER", "STATUS", "EVENT", "COMMIT", "SINCE", "MESSAGE"]);
    for pipeline in &pipelines {
        table.row([
            pipeline.number.to_string().into(),
            Cell::styled(pipeline.status.name(), colour(pipeline.status)),
            clean_line(&pipeline.event, 20).into(),
            clean_line(&pipeline.commit, 10).into(),
            time::relative(Timestamp(pipeline.created.saturating_mul(1000)), time::now()).into(),
            clean_line(pipeline.message.lines().next().unwrap_or_default(), 80).into(),
        ]);
    }
    out.table(&table, "no pipelines")
}

fn view_of(pipeline: &Pipeline) -> view::Pipeline {
    view::Pipeline {
        number: pipeline.number,
        parent: pipeline.parent,
        status: pipeline.status.to_string(),
        event: pipeline.event.clone(),
        sha: pipeline.commit.clone(),
        branch: pipeline.branch.clone(),
        message: pipeline.message.clone(),
        workflows: None,
    }
}

fn workflow(workflow: &Workflow) -> view::Workflow {
    let step = |step: &Step| view::Step {
        id: step.id,
        pid: step.pid,
        name: step.name.clone(),
        state: step.state.to_string(),
        exit_code: step.exit_code,
        error: step.error.clone(),
    };
    view::Workflow {
        name: workflow.name.clone(),
        state: workflow.state.to_string(),
        error: workflow.error.clone(),
        children: workflow.children.iter().map(step).collect(),
    }
}

fn status(pipeline: &Pipeline, out: Out) -> Result<(), Failure> {
    if out.is_json() {
        let workflows = Some(pipeline.workflows.iter().map(workflow).collect());
        return out.value(&view::Pipeline { workflows, ..view_of(pipeline) });
    }
    out.line(format!(
        "pipeline {} ({}) of {}: {}",
        pipeline.number,
        clean_line(&pipeline.event, 20),
        clean_line(&pipeline.commit, 10),
        pipeline.status
    ))?;
    let mut table = Table::new(["STEP", "STATUS", "EXIT", "WORKFLOW", "ERROR"]);
    for (workflow, step) in pipeline.workflows.iter().flat_map(|w| w.children.iter().map(move |s| (w, s))) {
        table.row([
            clean_line(&step.name, 40).into(),
            Cell::styled(step.state.name(), colour(step.state)),
            step.exit_code.to_string().into(),
            clean_line(&workflow.name, 40).into(),
            clean_line(&step.error, 80).into(),
        ]);
    }
    out.table(&table, "no steps")
}

fn logs(context: &Context, number: Option<u64>, wanted: Option<&str>, out: Out) -> Result<(), Failure> {
    let (ci, config) = (open(context)?, context.project()?.config);
    let pipeline = pipeline(&ci, number)?;
    let steps = pipeline.workflows.iter().flat_map(|workflow| &workflow.children);
    let steps: Vec<_> = steps.filter(|step| wanted.is_none_or(|name| step.name == name)).collect();
    if let (Some(name), []) = (wanted, steps.as_slice()) {
        return Err(failure(CiError::NoStep { pipeline: pipeline.number, step: clean_line(name, 60) }));
    }
    let mut read = Vec::new();
    for step in steps {
        let log = context.masked(&config, &ci.log(pipeline.number, step.id).map_err(failure)?);
        if out.is_json() {
            let (name, status) = (step.name.clone(), step.state.to_string());
            read.push(view::StepLog { step: name, status, exit: step.exit_code, log });
        } else {
            out.line(format!("== {} ({}, exit {})", clean_line(&step.name, 60), step.state, step.exit_code))?;
            out.line(clean_block(&log, SHOWN))?;
        }
    }
    if out.is_json() { out.value(&read) } else { Ok(()) }
}

fn failures(context: &Context, number: Option<u64>, out: Out) -> Result<(), Failure> {
    let (ci, config) = (open(context)?, context.project()?.config);
    let red = match number {
        Some(number) => Some(pipeline(&ci, Some(number))?.number),
        None => newest(&ci, |pipeline| pipeline.status.is_red())?,
    };
    let mut failed: Vec<FailedStep> = match red {
        Some(red) => ci.failures(red).map_err(failure)?,
        None => Vec::new(),
    };
    for step in &mut failed {
        step.log = context.masked(&config, &step.log);
    }
    if out.is_json() {
        let one = |step: &FailedStep| view::FailedStep {
            pipeline: red,
            step: step.name.clone(),
            exit: step.exit,
            class: step.class(),
            log: step.log.clone(),
        };
        return out.value(&failed.iter().map(one).collect::<Vec<_>>());
    }
    let Some(red) = red else { return out.line("no pipeline has failed") };
    for step in &failed {
        let exit = step.exit.map_or(String::new(), |code| format!(", exit {code}"));
        out.line(format!("== pipeline {red}, {}{exit}: {}", clean_line(&step.name, 60), step.class()))?;
        out.line(clean_block(&step.log, SHOWN))?;
    }
    Ok(())
}
