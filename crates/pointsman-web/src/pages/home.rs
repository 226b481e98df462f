//! The page that a person reads first.

use askama::Template;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_view::status::Status;

use super::rows::{QuestionRow, TaskRow};
use super::{Link, Shell};

/// More rows of one part are not shown.
const ROWS: usize = 50;

#[derive(Template)]
#[template(path = "home.html")]
pub(super) struct Home {
    shell: Shell,
    notices: Vec<Line>,
    needs: Vec<QuestionRow>,
    oldest: String,
    running: Vec<TaskRow>,
    waiting: Vec<TaskRow>,
    queued: usize,
    queue_hint: &'static str,
    queues: Vec<Line>,
    landed: Vec<TaskRow>,
    landed_count: usize,
    landed_hint: String,
    cost: String,
    cost_hint: String,
    costs: Vec<Line>,
}

/// A line about a project.
struct Line {
    project: String,
    tone: &'static str,
    text: String,
}

impl Home {
    /// The page of all projects, or of one.
    pub(super) fn new(mut shell: Shell, status: &Status, project: &str, now: Timestamp) -> Self {
        let names: Vec<&str> = status.projects.iter().map(|project| project.name.as_str()).collect();
        let chosen = names.contains(&project).then_some(project);
        let shown = |name: &str| chosen.is_none_or(|chosen| chosen == name);
        let all =
            Link { href: "/".to_owned(), name: "All projects".to_owned(), is_current: chosen.is_none() };
        let links = names.iter().map(|name| Link {
            // A name is letters, digits and dashes.
            href: format!("/?project={name}"),
            name: (*name).to_owned(),
            is_current: chosen == Some(*name),
        });
        shell.projects = std::iter::once(all).chain(links).collect();
        let projects: Vec<_> =
            status.projects.iter().filter(|project| shown(project.name.as_str())).collect();
        let questions: Vec<_> = status.questions.iter().filter(|q| shown(q.project.as_str())).collect();
        let oldest = questions.iter().map(|asked| asked.asked_at.0).min();
        let landed: Vec<_> = status.landed.iter().rev().filter(|l| shown(l.project.as_str())).collect();
        let pending = |tasks: &[pointsman_view::status::Pending]| -> Vec<TaskRow> {
            let tasks = tasks.iter().filter(|task| shown(task.project.as_str()));
            tasks.map(|task| TaskRow::new(task, now)).take(ROWS).collect()
        };
        let since = status.landed_since.map(|since| words::rough(now.since(since.0)));
        let spent: f64 =
            projects.iter().filter_map(|project| project.spent_today.usd).fold(0.0, |sum, usd| sum + usd);
        let turns: u64 = projects.iter().map(|project| project.spent_today.turns).sum();
        Self {
            notices: notices(status),
            needs: questions.iter().map(|asked| QuestionRow::new(asked, now)).take(ROWS).collect(),
            oldest: oldest.map(|at| format!("oldest {}", words::rough(now.since(at)))).unwrap_or_default(),
            running: pending(&status.running),
            waiting: pending(&status.waiting),
            queued: projects.iter().map(|project| project.merge_queue).sum(),
            queue_hint: match projects.iter().any(|project| project.line_stopped.is_some()) {
                true => "paused",
                false => "",
            },
            queues: projects.iter().map(|project| queue_line(project)).collect(),
            landed_count: landed.len(),
            landed: landed.iter().map(|landed| TaskRow::landed(landed, now)).take(ROWS).collect(),
            landed_hint: since.map(|since| format!("in the last {since}")).unwrap_or_default(),
            cost: usd(spent),
            cost_hint: format!("{turns} turns"),
            costs: projects.iter().map(|project| cost_line(project)).collect(),
            shell,
        }
    }
}

fn notices(status: &Status) -> Vec<Line> {
    let line = |tone, text: String| Line { project: String::new(), tone, text };
    let halted = status.halted.as_ref().map(|halted| line("off", words::daemon::process::halted(&halted.by)));
    let problems =
        status.daemon.iter().flat_map(|daemon| &daemon.problems).map(|problem| line("bad", problem.clone()));
    let warnings = status.projects.iter().flat_map(|project| {
        project.warnings.iter().map(|warning| line("you", format!("{}: {warning}", project.name)))
    });
    halted.into_iter().chain(problems).chain(warnings).collect()
}

fn queue_line(project: &pointsman_view::status::Project) -> Line {
    let (tone, text) = match (&project.line_stopped, project.merge_queue) {
        (Some(reason), _) => ("bad", format!("paused: {reason}")),
        (None, 0) => ("off", "nothing waits".to_owned()),
        (None, count) => ("run", format!("{count} in the queue")),
    };
    Line { project: project.name.to_string(), tone, text }
}

fn cost_line(project: &pointsman_view::status::Project) -> Line {
    let text = match (project.spent_today.usd, project.spent_today.tokens) {
        (Some(spent), _) => usd(spent),
        (None, Some(tokens)) => format!("{tokens} tokens"),
        (None, None) => "not reported".to_owned(),
    };
    Line { project: project.name.to_string(), tone: "", text }
}

fn usd(amount: f64) -> String {
    format!("${amount:.2}")
}
