use std::os::unix::process::CommandExt;
use std::process::Command as Program;

use clap::{ArgGroup, Subcommand};
use pointsman_adapters::tmux::Server;
use pointsman_core::ids::{Number, ProjectName, TaskKey};
use pointsman_core::part::session::Stage;
use pointsman_core::task::Order;
use pointsman_store::{RunScope, SessionRow, SessionScope};
use pointsman_view::session::{Paused, Sent};
use pointsman_view::task::Ordered;

use super::context::{Context, inside_session};
use super::failure::{Code, Failure};
use super::table::{Cell, Table};
use super::{session_attach, session_explain, session_log, style, time};
use crate::control::protocol::{Request, RunCommand};
use crate::identity;

/// List, watch and steer sessions: agents at work, each in a terminal of its own
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    pointsman session attach 3            watch the agent of issue 3; Ctrl-b d leaves it alone again\n  \
    pointsman session logs 3 --follow\n  \
    pointsman session explain 3           alive or not, and how we know\n  \
    pointsman session send 3 \"The staging server is back\"\n  \
    pointsman session stop --all          before a reboot; pointsman task resume N goes on")]
pub(crate) enum Command {
    /// List sessions, oldest first
    #[command(after_help = "Example:\n  pointsman session list --live")]
    List {
        /// Only sessions that have not ended
        #[arg(long)]
        live: bool,
    },
    /// Watch a session and type into it; a headless session moves to this terminal between two turns
    #[command(after_help = "Example:\n  pointsman session attach 3    # Ctrl-b d leaves it alone again")]
    Attach {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
    },
    /// Print what a session's terminal showed
    #[command(after_help = "Examples:\n  \
        pointsman session logs 3 --follow\n  \
        pointsman session logs 3 --generation 1\n  \
        pointsman session logs 3 --setup")]
    Logs {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
        /// Keep printing as it goes on
        #[arg(long, short)]
        follow: bool,
        /// This generation instead of the newest
        #[arg(long, value_name = "N")]
        generation: Option<u32>,
        /// Print it raw, with terminal control codes
        #[arg(long)]
        raw: bool,
        /// Print the log of the last set-up of its working tree instead
        #[arg(long, conflicts_with_all = ["follow", "generation", "raw"])]
        setup: bool,
    },
    /// Say whether a session is alive, and what the evidence is
    #[command(after_help = "Example:\n  pointsman session explain 3")]
    Explain {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
        /// This generation instead of the newest
        #[arg(long, value_name = "N")]
        generation: Option<u32>,
    },
    /// Send a message to a session's agent
    #[command(after_help = "Example:\n  pointsman session send 3 \"The staging server is back\"")]
    Send {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
        /// The message
        #[arg(allow_hyphen_values = true)]
        text: String,
    },
    /// End a session by pausing its task; its work is kept
    #[command(group = ArgGroup::new("which").required(true))]
    #[command(after_help = "Examples:\n  pointsman session stop 3\n  pointsman session stop --all")]
    Stop {
        /// The issue
        #[arg(group = "which", value_parser = super::number)]
        issue: Option<Number>,
        /// Stop every session of the project
        #[arg(long, group = "which")]
        all: bool,
    },
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List { live } => list(context, if live { SessionScope::Live } else { SessionScope::All }),
            Self::Attach { issue } => attach(context, issue),
            Self::Logs { issue, setup: true, .. } => {
                session_log::print_setup(context, &context.project()?, &key(context, issue)?)
            }
            Self::Logs { issue, follow, generation, raw, setup: false } => {
                let project = context.project()?;
                let session = newest(context, &key(context, issue)?, generation)?;
                session_log::print(context, &project, &session, follow, raw)
            }
            Self::Explain { issue, generation } => {
                let project = context.project()?;
                let session = newest(context, &key(context, issue)?, generation)?;
                session_explain::run(context, &project, &session)
            }
            Self::Send { issue, text } => send(context, issue, text),
            Self::Stop { issue: Some(issue), .. } => stop(context, issue),
            Self::Stop { issue: None, .. } => stop_all(context),
        }
    }
}

fn key(context: &Context, issue: Number) -> Result<TaskKey, Failure> {
    Ok(TaskKey { project: context.project()?.config.name, issue })
}

fn list(context: &Context, scope: SessionScope) -> Result<(), Failure> {
    let project = context.project_if_any()?.map(|project| project.config.name);
    let rows = match context.store()? {
        Some(store) => store.sessions(project.as_ref(), scope)?,
        None => Vec::new(),
    };
    if context.out.is_json() {
        return context.out.value(&rows.iter().map(identity::session).collect::<Vec<_>>());
    }
    let now = time::now();
    let mut table = Table::new(["SESSION", "ROLE", "STATE", "SANDBOX", "STARTED", "PID", "COST", "TREE"]);
    for row in &rows {
        let state = match (row.ended_at, row.exit) {
            (None, _) => Cell::styled("live", style::BUSY),
            (Some(_), Some(exit)) => Cell::styled(exit.name(), style::QUIET),
            (Some(_), None) => Cell::styled("ended", style::QUIET),
        };
        table.row([
            row.session.as_str().into(),
            row.role.as_str().into(),
            state,
            match identity::sandboxed(row) {
                Some(true) => "inside".into(),
                Some(false) => Cell::styled("outside", style::BAD),
                None => "".into(),
            },
            time::relative(row.created_at, now).into(),
            row.pid.map(|pid| pid.to_string()).unwrap_or_default().into(),
            super::agents::cost(row).into(),
            row.tree.as_ref().map(|tree| tree.display().to_string()).unwrap_or_default().into(),
        ]);
    }
    context.out.table(&table, "No sessions.")
}

/// A task's session of one generation, or its newest.
/// The newest session of an issue.
pub(super) fn newest_of(
    context: &Context,
    project: &ProjectName,
    issue: Number,
) -> Result<SessionRow, Failure> {
    newest(context, &TaskKey { project: project.clone(), issue }, None)
}

fn newest(context: &Context, key: &TaskKey, generation: Option<u32>) -> Result<SessionRow, Failure> {
    let rows = match context.store()? {
        Some(store) => store.sessions(Some(&key.project), SessionScope::All)?,
        None => Vec::new(),
    };
    rows.into_iter()
        .filter(|row| {
            row.issue == Some(key.issue) && generation.is_none_or(|wanted| row.generation == wanted)
        })
        .max_by_key(|row| row.generation)
        .ok_or_else(|| {
            Failure::not_found(format!("{key} has never had such a session")).hint("pointsman session list")
        })
}

/// Becomes tmux: its terminal is ours. What has none is taken to this one.
fn attach(context: &Context, issue: Number) -> Result<(), Failure> {
    context.people_only("attaching to a session")?;
    let row = newest(context, &key(context, issue)?, None)?;
    if row.ended_at.is_some() {
        return Err(Failure::refused(format!("session {} has ended", row.session))
            .hint(format!("pointsman session logs {issue}")));
    }
    let Some(name) = row.tmux_session else { return session_attach::run(context, &row, issue) };
    let failed =
        |error: pointsman_adapters::tmux::Error| Failure::failed(format!("{:#}", anyhow::Error::new(error)));
    let server = Server::new(context.paths.tmux_socket(), context.paths.tmux_config()).map_err(failed)?;
    let command = server.attach_command(&name).map_err(failed)?;
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::failed("tmux did not say how to attach"));
    };
    Err(exec(program, arguments).into())
}

#[allow(clippy::disallowed_methods, reason = "exec replaces this process; nothing is spawned")]
fn exec(program: &std::ffi::OsStr, arguments: &[std::ffi::OsString]) -> std::io::Error {
    Program::new(program).args(arguments).exec()
}

fn send(context: &Context, issue: Number, text: String) -> Result<(), Failure> {
    if let Some(session) = inside_session() {
        return Err(Failure::refused(format!("session {session} cannot send messages to sessions")));
    }
    if text.trim().is_empty() {
        return Err(Failure::refused("the message is empty"));
    }
    let project = context.project()?.config.name;
    let sent: Sent = context.ask_daemon(&Request::Send { project, issue, text })?;
    if context.out.is_json() {
        return context.out.value(&sent);
    }
    context.out.say("The message is on its way to the agent.");
    Ok(())
}

fn stop(context: &Context, issue: Number) -> Result<(), Failure> {
    context.people_only("ending a session")?;
    let project = context.project()?;
    context.task(&project, issue)?;
    let request = Request::Order { project: project.config.name, issue, order: Order::Pause };
    let stopped: Ordered = context.ask_and_say(&request)?;
    if context.out.is_json() {
        return context.out.value(&stopped);
    }
    context.out.say(format!(
        "Task #{issue} is paused. Its session ends and its work is kept. To continue, run `pointsman task resume \
            {issue}`."
    ));
    Ok(())
}

fn stop_all(context: &Context) -> Result<(), Failure> {
    context.people_only("ending sessions")?;
    let project = context.project()?.config.name;
    let (tasks, runs) = match context.store()? {
        Some(store) => (store.tasks(Some(&project))?, store.runs(&project, RunScope::Open)?),
        None => (Vec::new(), Vec::new()),
    };
    let active: Vec<Number> = tasks
        .iter()
        .filter(|task| task.session_id().is_some() && task.state.has_session())
        .map(|task| task.key.issue)
        .collect();
    let mut paused = Vec::new();
    for issue in active {
        let request = Request::Order { project: project.clone(), issue, order: Order::Pause };
        match context.ask::<Ordered>(&request) {
            Ok(_) => paused.push(issue),
            // It moved on while we were at the others (merged, say): its session ends by itself.
            Err(failure) if failure.code() == Code::Refused => {
                context.out.say(format!("#{issue} ends by itself."))
            }
            Err(failure) => return Err(failure),
        }
    }
    let mut stopped_runs = Vec::new();
    for run in runs.iter().filter(|run| run.session.stage != Stage::None) {
        let command = RunCommand::Stop { id: run.id, by: context.author() };
        let request = Request::Run { project: project.clone(), command };
        match context.ask::<serde_json::Value>(&request) {
            Ok(_) => stopped_runs.push(run.id.0),
            Err(failure) if failure.code() == Code::Refused => {}
            Err(failure) => return Err(failure),
        }
    }
    if context.out.is_json() {
        return context.out.value(&Paused { paused, stopped_runs });
    }
    for run in &stopped_runs {
        context.out.say(format!("Run {run} was stopped."));
    }
    if paused.is_empty() && stopped_runs.is_empty() {
        context.out.say("No session is running.");
    }
    for issue in paused {
        context
            .out
            .say(format!("Task #{issue} is paused. To continue, run `pointsman task resume {issue}`."));
    }
    Ok(())
}
