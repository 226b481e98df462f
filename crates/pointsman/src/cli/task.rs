use clap::Subcommand;
use pointsman_core::ids::Number;
use pointsman_core::session::budget::{self, Limit, Spent};
use pointsman_core::session::context::Gauge;
use pointsman_core::task::{Ci, Order, Review, State, Task};
use pointsman_core::text::clean_line;
use pointsman_store::Store;
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::table::{Cell, Table};
use super::{explain, style, time};
use crate::control::protocol::Request;

/// Longest title in a table.
const TITLE_CHARS: usize = 120;

/// Tasks: issues being worked on, from claim to close
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    pointsman task list\n  \
    pointsman task explain 3\n  \
    pointsman task answer 3 \"Use the second API\"\n  \
    pointsman task list --json | jq '.[] | select(.state == \"blocked\") | .reason'")]
pub(crate) enum Command {
    /// List the project's tasks
    List {
        /// Only those in this state
        #[arg(long, value_parser = state)]
        state: Option<State>,
    },
    /// Show one task
    Show {
        /// The issue
        issue: Number,
    },
    /// Tell which facts led to the present state, and what is waited for until when
    Explain {
        /// The issue
        issue: Number,
    },
    /// Start it now, whatever stopped it before
    Start {
        /// The issue
        issue: Number,
    },
    /// Set it aside: its session ends, its work is kept
    Pause {
        /// The issue
        issue: Number,
    },
    /// Go on with a paused task
    Resume {
        /// The issue
        issue: Number,
    },
    /// Give it up: its session ends, its work is kept, the issue is blocked
    Stop {
        /// The issue
        issue: Number,
    },
    /// Answer the agent's question
    Answer {
        /// The issue
        issue: Number,
        /// The answer
        #[arg(allow_hyphen_values = true)]
        text: String,
    },
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List { state } => list(context, state),
            Self::Show { issue } => show(context, issue),
            Self::Explain { issue } => explain::run(context, issue),
            Self::Start { issue } => order(context, issue, Order::Start, "is started"),
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
        let values = tasks.iter().map(|task| Ok(to_json(task, spent(store.as_ref(), task)?)));
        return context.out.value(&values.collect::<Result<Vec<_>, Failure>>()?);
    }
    let now = time::now();
    let mut table = Table::new(["ISSUE", "STATE", "FOR", "PR", "WAITING FOR", "TITLE"]);
    for task in &tasks {
        table.row([
            format!("#{}", task.key.issue).into(),
            Cell::styled(task.state.name(), style::of(task.state)),
            time::rough(now.since(task.since)).into(),
            task.pr.map(|number| format!("#{number}")).unwrap_or_default().into(),
            task.waiting_for().unwrap_or_default().into(),
            clean_line(&task.title, TITLE_CHARS).into(),
        ]);
    }
    context.out.table(&table, "No tasks. The daemon makes one of each issue labelled backlog (pointsman up).")
}

fn show(context: &Context, issue: Number) -> Result<(), Failure> {
    let project = context.project()?;
    let (task, store) = context.task(&project, issue)?;
    let spent = spent(Some(&store), &task)?;
    let value = to_json(&task, spent);
    if context.out.is_json() {
        return context.out.value(&value);
    }
    let (strong, colour) = (style::STRONG, style::of(task.state));
    let title = clean_line(&task.title, TITLE_CHARS);
    context.out.line(format!("{strong}#{issue} {title}{strong:#}"))?;
    context.out.line(format!("state        {colour}{}{colour:#}", task.state))?;
    for field in [
        "phase",
        "reason",
        "waiting_for",
        "branch",
        "pr",
        "head_sha",
        "session",
        "ci",
        "review",
        "since",
        "deadline",
    ] {
        match &value[field] {
            Value::Null => {}
            Value::String(text) => context.out.line(format!("{field:<12} {}", clean_line(text, 400)))?,
            other => context.out.line(format!("{field:<12} {other}"))?,
        }
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
    let value = context.ask_and_say(&Request::Order { project: project.clone(), issue, order })?;
    if context.out.is_json() {
        return context.out.value(&value);
    }
    context.out.say(format!("Task {project}#{issue} {done}."));
    Ok(())
}

fn answer(context: &Context, issue: Number, text: String) -> Result<(), Failure> {
    context.people_only("answering for a person")?;
    if text.trim().is_empty() {
        return Err(Failure::refused("the answer is empty"));
    }
    let project = context.project()?.config.name;
    let request = Request::Answer { project: project.clone(), issue, by: context.author(), text };
    let value = context.ask_and_say(&request)?;
    if context.out.is_json() {
        return context.out.value(&value);
    }
    context.out.say(format!("The answer goes to the agent of {project}#{issue}."));
    Ok(())
}

/// What all sessions of a task have spent.
pub(crate) fn spent(store: Option<&Store>, task: &Task) -> Result<Spent, Failure> {
    match store {
        // Without a session nothing was spent: most of a long backlog is not asked about.
        Some(store) if task.session.generation > 0 => Ok(store.spent_on_task(&task.key, time::now())?),
        Some(_) | None => Ok(Spent::default()),
    }
}

/// Millionths of a dollar as scripts see them.
pub(crate) fn usd(spent: Spent) -> f64 {
    spent.micro_usd as f64 / 1_000_000.0
}

/// A task as scripts see it.
pub(crate) fn to_json(task: &Task, spent: Spent) -> Value {
    let (ci, ci_sha) = match &task.ci {
        Ci::None => ("none", None),
        Ci::Pending { sha, .. } => ("pending", Some(sha)),
        Ci::Passed { sha } => ("passed", Some(sha)),
        Ci::Failed { sha, .. } => ("failed", Some(sha)),
        Ci::TimedOut { sha } => ("timed_out", Some(sha)),
    };
    let (review, review_sha) = match &task.review {
        Review::None => ("none", None),
        Review::Approved { sha, .. } => ("approved", Some(sha)),
        Review::ChangesRequested { sha, .. } => ("changes_requested", Some(sha)),
    };
    json!({
        "project": task.key.project,
        "issue": task.key.issue,
        "title": task.title,
        "state": task.state,
        "phase": task.phase,
        "reason": task.reason,
        "branch": task.branch,
        "pr": task.pr,
        "head_sha": task.head,
        "session": task.session_id(),
        "generation": task.session.generation,
        "ci": ci,
        "ci_sha": ci_sha,
        "review": review,
        "review_sha": review_sha,
        "attempts": task.attempts,
        "since": time::rfc3339(task.since),
        "deadline": task.deadline.map(time::rfc3339),
        "waiting_for": task.waiting_for(),
        "restart_at": task.session.restart_at.map(time::rfc3339),
        "open_dependencies": task.open_dependencies,
        "merged_as": task.merged_as,
        "parked_until": task.session.parked_until.map(time::rfc3339),
        "context_percent": task.session.context.gauge.map(Gauge::percent),
        "cost_usd": usd(spent),
        "tokens": spent.tokens,
        "turns": spent.turns,
        "restarts": spent.restarts,
        "wall_seconds": spent.millis / 1000,
    })
}

fn state(text: &str) -> Result<State, String> {
    State::ALL.into_iter().find(|state| state.name() == text).ok_or_else(|| {
        let names: Vec<&str> = State::ALL.iter().map(|state| state.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::{ProjectName, Sha, TaskKey};
    use pointsman_core::session::budget::Spent;
    use pointsman_core::session::context::{Gauge, Source};
    use pointsman_core::task::{Ci, Stage, State, Task};
    use pointsman_core::time::Timestamp;

    #[test]
    fn a_task_has_every_field_that_scripts_rely_on() {
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue: 3 };
        let mut task = Task::new(key, "t".into(), "pointsman/issue-3".into(), Timestamp(0));
        task.state = State::AwaitingCi;
        (task.session.generation, task.session.stage) = (2, Stage::Alive);
        task.ci = Ci::Pending { sha: Sha::new(&"a".repeat(40)).unwrap(), run: 1 };
        task.deadline = Some(Timestamp(1_000));
        task.session.context.gauge = Some(Gauge { used_permille: 935, source: Source::Transcript });
        let spent = Spent { micro_usd: 1_270_000, ..Spent::default() };
        let value = super::to_json(&task, spent);
        for field in [
            "issue",
            "title",
            "state",
            "phase",
            "reason",
            "branch",
            "pr",
            "head_sha",
            "session",
            "generation",
            "ci",
            "review",
            "attempts",
            "since",
            "deadline",
            "waiting_for",
        ] {
            assert!(value.get(field).is_some(), "{field}");
        }
        for field in ["ci_fixes", "review_rounds", "restarts", "handoffs"] {
            assert_eq!(value["attempts"][field], 0, "{field}");
        }
        assert_eq!(value["state"], "awaiting_ci");
        assert_eq!(value["session"], "dev-shop-3.2");
        assert_eq!((&value["ci"], &value["review"]), (&"pending".into(), &"none".into()));
        assert_eq!(value["deadline"], "1970-01-01T00:00:01.000Z");
        assert_eq!((&value["context_percent"], &value["cost_usd"]), (&93.5.into(), &1.27.into()));
    }
}
