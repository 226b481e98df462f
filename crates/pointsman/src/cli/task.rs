use clap::Subcommand;
use pointsman_core::ids::Number;
use pointsman_core::session::budget::{self, Limit, Spent};
use pointsman_core::task::{Order, State, Task};
use pointsman_core::text::clean_line;
use pointsman_core::words;
use pointsman_core::words::task::waiting_for;
use pointsman_store::{EntryScope, EntryStatus, Store};
use pointsman_view::task as view;

use super::context::Context;
use super::failure::Failure;
use super::table::{Cell, Table};
use super::{explain, handover, style, time};
use crate::control::protocol::{QueueCommand, Reading, Request};

/// Longest title in a table.
const TITLE_CHARS: usize = 120;

/// Work with tasks: issues being worked on, from claim to close
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    pointsman task list\n  \
    pointsman task explain 3\n  \
    pointsman task answer 3 \"Use the second API\"\n  \
    pointsman task list --json | jq '.[] | select(.state == \"blocked\") | .reason'")]
pub(crate) enum Command {
    /// List the project's tasks
    #[command(after_help = "Examples:\n  \
        pointsman task list --state blocked\n  \
        pointsman task list --json | jq '.[] | [.issue, .state, .waiting_for]'")]
    List {
        /// Only tasks in this state
        #[arg(long, value_parser = state)]
        state: Option<State>,
    },
    /// Show one task
    #[command(after_help = "Example:\n  pointsman task show 3")]
    Show {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
    },
    /// Explain a task's state: the facts behind it, and what it waits for until when
    #[command(after_help = "Example:\n  pointsman task explain 3")]
    Explain {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
    },
    /// Start a task now, whatever stopped it before
    #[command(after_help = "Example:\n  pointsman task start 3")]
    Start {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
    },
    /// Start a new session for a task, whatever its state
    ///
    /// The new session continues in the same tree. With --fresh, it starts over in a new tree from the current main
    /// branch; the content of the old tree is kept (pointsman rescue list).
    #[command(after_help = "Examples:\n  pointsman task restart 3\n  pointsman task restart 3 --fresh")]
    Restart {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
        /// Start over from the current main branch
        #[arg(long)]
        fresh: bool,
    },
    /// Revert what landed for an issue, with a pull request
    ///
    /// The pull request goes through CI, review and merge queue like any other. No agent is needed. If main has
    /// changed the same lines since, the command refuses and names the files.
    #[command(after_help = "Example:\n  pointsman task undo 3 --reason \"The prices are wrong\"")]
    Undo {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
        /// The reason, for the commit and the pull request
        #[arg(long, default_value = words::undo::NO_REASON)]
        reason: String,
    },
    /// Take over a task: its branch comes into your checkout, and its session ends
    ///
    /// The agent's work is captured first. Your checkout switches to the task's branch, and the agent's uncommitted
    /// changes appear as uncommitted changes in your tree. The conversation becomes a file below .claude/state. Nobody
    /// else works on the task until you give it back. The command refuses if your checkout has uncommitted changes.
    #[command(
        after_help = "Example:\n  pointsman task take 3 && $EDITOR src/shop.rs && git commit -a && pointsman task give 3"
    )]
    Take {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
    },
    /// Hand back a task that you took: its agent continues from your commits
    ///
    /// Your checkout must be on the task's branch with nothing uncommitted. Commits of the agent that you dropped are
    /// kept (pointsman rescue list).
    #[command(after_help = "Example:\n  pointsman task give 3")]
    Give {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
    },
    /// Pause a task: its session ends, its work is kept
    #[command(after_help = "Example:\n  pointsman task pause 3 && pointsman rescue list --task 3")]
    Pause {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
    },
    /// Resume a paused task
    #[command(after_help = "Example:\n  pointsman task resume 3")]
    Resume {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
    },
    /// Stop a task: its session ends, its work is kept, and the issue is labelled blocked
    #[command(after_help = "Example:\n  pointsman task stop 3")]
    Stop {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
    },
    /// Answer the agent's question
    #[command(after_help = "Example:\n  pointsman task answer 3 \"Use the second API\"")]
    Answer {
        /// The issue
        #[arg(value_parser = super::number)]
        issue: Number,
        /// The answer
        #[arg(allow_hyphen_values = true)]
        text: String,
    },
}

impl Command {
    /// What it reads, if it is a command that a session may need.
    pub(super) fn reading(&self) -> Option<Reading> {
        match self {
            Self::Show { issue } => Some(Reading::Task { issue: *issue }),
            Self::Explain { issue } => Some(Reading::Explanation { issue: *issue }),
            _ => None,
        }
    }

    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List { state } => list(context, state),
            Self::Show { issue } => show(context, issue),
            Self::Explain { issue } => explain::run(context, issue),
            Self::Start { issue } => order(context, issue, Order::Start, "is started"),
            Self::Restart { issue, fresh: false } => {
                order(context, issue, Order::Restart, "has a new session")
            }
            Self::Restart { issue, fresh: true } => order(
                context,
                issue,
                Order::RestartFresh,
                "starts over; `pointsman rescue list` shows its old work",
            ),
            Self::Undo { issue, reason } => undo(context, issue, reason),
            Self::Take { issue } => handover::take(context, issue),
            Self::Give { issue } => handover::give(context, issue),
            Self::Pause { issue } => order(context, issue, Order::Pause, "is paused"),
            Self::Resume { issue } => order(context, issue, Order::Resume, "goes on"),
            Self::Stop { issue } => order(context, issue, Order::Stop, "is stopped"),
            Self::Answer { issue, text } => answer(context, issue, text),
        }
    }
}

fn list(context: &Context, only: Option<State>) -> Result<(), Failure> {
    let project = context.project()?;
    let mut tasks = match context.store()? {
        Some(store) => store.tasks(Some(&project.config.name))?,
        None => Vec::new(),
    };
    tasks.retain(|task| only.is_none_or(|state| task.state == state));
    if context.out.is_json() {
        let store = context.store()?;
        let values = tasks.iter().map(|task| Ok(view::Task::new(task, spent(store.as_ref(), task)?)));
        return context.out.value(&values.collect::<Result<Vec<_>, Failure>>()?);
    }
    let now = time::now();
    let mut table = Table::new(["ISSUE", "STATE", "FOR", "PR", "WAITING FOR", "TITLE"]);
    for task in &tasks {
        table.row([
            format!("#{}", task.key.issue).into(),
            Cell::styled(task.state.name(), style::of(task.state)),
            time::rough(now.since(task.since)).into(),
            task.contribution.pr().map(|number| format!("#{number}")).unwrap_or_default().into(),
            waiting_for(task).unwrap_or_default().into(),
            clean_line(&task.title, TITLE_CHARS).into(),
        ]);
    }
    context.out.table(
        &table,
        "No tasks. The daemon creates one for each issue with the label backlog (`pointsman \
        up`).",
    )
}

fn show(context: &Context, issue: Number) -> Result<(), Failure> {
    let project = context.project()?;
    let (task, store) = context.task(&project, issue)?;
    let spent = spent(Some(&store), &task)?;
    let view = view::Task::new(&task, spent);
    if context.out.is_json() {
        return context.out.value(&view);
    }
    let (strong, colour) = (style::STRONG, style::of(task.state));
    let title = clean_line(&task.title, TITLE_CHARS);
    context.out.line(format!("{strong}#{issue} {title}{strong:#}"))?;
    context.out.line(format!("state        {colour}{}{colour:#}", task.state))?;
    let number = |number: Number| number.to_string();
    let fields = [
        ("phase", view.phase.map(|phase| phase.to_string())),
        ("reason", view.reason),
        ("waiting_for", view.waiting_for),
        ("branch", Some(view.branch)),
        ("pr", view.pr.map(number)),
        ("head_sha", view.head_sha.map(|sha| sha.to_string())),
        ("session", view.session),
        ("ci", Some(view.ci.name().to_owned())),
        ("review", Some(view.review.name().to_owned())),
        ("since", Some(view.since.to_string())),
        ("deadline", view.deadline.map(|at| at.to_string())),
    ];
    for (name, text) in fields.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        context.out.line(format!("{name:<12} {}", clean_line(&text, 400)))?;
    }
    if let Some(gauge) = task.session.context.gauge {
        context.out.line(format!("context      {}% full", gauge.percent()))?;
    }
    if let Some(told) = budget::describe(spent, Limit::per_task(&project.config.budget)) {
        context.out.line(format!("spent        {told}"))?;
    }
    Ok(())
}

fn order(context: &Context, issue: Number, order: Order, done: &str) -> Result<(), Failure> {
    context.people_only("giving orders about tasks")?;
    let project = context.project()?.config.name;
    let ordered: view::Ordered =
        context.ask_and_say(&Request::Order { project: project.clone(), issue, order })?;
    if context.out.is_json() {
        return context.out.value(&ordered);
    }
    context.out.say(format!("Task {project}#{issue} {done}."));
    Ok(())
}

fn undo(context: &Context, issue: Number, reason: String) -> Result<(), Failure> {
    context.people_only("taking back what landed")?;
    let project = context.project()?;
    let (task, store) = context.task(&project, issue)?;
    let name = project.config.name;
    let entries = store.queue_entries(&name, EntryScope::All)?;
    let landed = entries
        .into_iter()
        .rev()
        .find(|entry| entry.issue == Some(issue) && entry.status == EntryStatus::Landed)
        .and_then(|entry| entry.candidate.zip(entry.base));
    let (landed, before) = match (landed, task.contribution.merged_as()) {
        (Some((landed, before)), _) => (landed, Some(before)),
        // A person merged it on the forge.
        (None, Some(merged)) => (merged.clone(), None),
        (None, None) => return Err(Failure::refused(words::undo::not_landed(issue))),
    };
    let (title, by) = (task.title, context.author());
    let command = QueueCommand::Undo { issue, title, landed, before, reason, by };
    let undone: view::Undone = context.ask_and_say(&Request::Queue { project: name, command })?;
    if context.out.is_json() {
        return context.out.value(&undone);
    }
    context.out.say(words::undo::opened(issue, undone.pr));
    Ok(())
}

fn answer(context: &Context, issue: Number, text: String) -> Result<(), Failure> {
    context.people_only("answering for a person")?;
    if text.trim().is_empty() {
        return Err(Failure::refused("the answer is empty"));
    }
    let project = context.project()?.config.name;
    let request = Request::Answer { project: project.clone(), issue, by: context.author(), text };
    let answered: view::Ordered = context.ask_and_say(&request)?;
    if context.out.is_json() {
        return context.out.value(&answered);
    }
    context.out.say(format!("The answer is on its way to the agent of {project}#{issue}."));
    Ok(())
}

/// The spending of all sessions of a task.
pub(crate) fn spent(store: Option<&Store>, task: &Task) -> Result<Spent, Failure> {
    match store {
        // Without a session nothing was spent: most of a long backlog is not asked about.
        Some(store) if task.session.generation > 0 => Ok(store.spent_on_task(&task.key, time::now())?),
        Some(_) | None => Ok(Spent::default()),
    }
}

fn state(text: &str) -> Result<State, String> {
    State::ALL.into_iter().find(|state| state.name() == text).ok_or_else(|| {
        let names: Vec<&str> = State::ALL.iter().map(|state| state.name()).collect();
        format!("one of {}", names.join(", "))
    })
}
