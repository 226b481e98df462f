//! Everything that waits for a person, over all projects, and the ways to settle it.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use clap::{Args, Subcommand};
use pointsman_core::config::Config;
use pointsman_core::ids::TaskKey;
use pointsman_core::part::question::{Kind, Owner, Question, QuestionId, Ranked, Urgency};
use pointsman_core::review::ReceiptLine;
use pointsman_core::task::Task;
use pointsman_core::text::{clean_block, clean_line};
use pointsman_core::words;
use pointsman_store::{ProjectRow, SessionRow, SessionScope, Store};
use pointsman_view::evidence::{Artifacts, Receipt, Risk};
use pointsman_view::inbox as view;

use super::context::Context;
use super::failure::Failure;
use super::table::{Cell, Table};
use super::{evidence, inbox_screen, style, time};
use crate::control::protocol::{InboxCommand, Request};
use crate::project::Project;
use crate::{identity, page};

/// Most of a question that is shown.
const SHOWN_BYTES: usize = 16 * 1024;
/// The most refused hosts that are shown with a question; `session explain` has all.
const REFUSED_LINES: usize = 8;

/// Show what waits for you in all projects, and settle it
///
/// On a terminal, this opens a screen: a list and, next to it, the question, the diff, the CI log, the reviews and the
/// session. Its last line names the keys. Elsewhere it prints a table.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pointsman inbox\n  pointsman inbox --plain\n  pointsman inbox answer 7 \"The red ones\""
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print the table on a terminal, too
    #[arg(long)]
    plain: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show one question in full
    #[command(after_help = "Example:\n  pointsman inbox show 7")]
    Show {
        /// The number
        #[arg(value_parser = super::number)]
        question: u64,
    },
    /// Answer a question; whoever asked it receives the answer
    #[command(after_help = "Example:\n  pointsman inbox answer 7 \"The red ones\"")]
    Answer {
        /// The number
        #[arg(value_parser = super::number)]
        question: u64,
        /// The answer
        text: String,
    },
    /// Approve what is asked
    #[command(after_help = "Example:\n  pointsman inbox approve 7")]
    Approve {
        /// The number
        #[arg(value_parser = super::number)]
        question: u64,
    },
    /// Reject what is asked
    #[command(after_help = "Example:\n  pointsman inbox reject 7 --body \"Split it into two\"")]
    Reject {
        /// The number
        #[arg(value_parser = super::number)]
        question: u64,
        /// The reason
        #[arg(long, default_value = "rejected by a person")]
        body: String,
    },
    /// Remove a question from the list without doing anything about it
    #[command(after_help = "Example:\n  pointsman inbox dismiss 7")]
    Dismiss {
        /// The number
        #[arg(value_parser = super::number)]
        question: u64,
    },
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.command {
            None if self.plain || context.out.is_json() || !on_a_terminal() => list(context),
            None => {
                context.people_only("settling questions")?;
                inbox_screen::run(context)
            }
            Some(Command::Show { question }) => show(context, QuestionId(question)),
            Some(Command::Answer { question, text }) => {
                if text.trim().is_empty() {
                    return Err(Failure::refused("the answer is empty"));
                }
                settle(context, question, |by| InboxCommand::Answer { text, by })
            }
            Some(Command::Approve { question }) => {
                settle(context, question, |by| InboxCommand::Approve { by })
            }
            Some(Command::Reject { question, body }) => {
                settle(context, question, |by| InboxCommand::Reject { reason: body, by })
            }
            Some(Command::Dismiss { question }) => {
                settle(context, question, |by| InboxCommand::Dismiss { by })
            }
        }
    }
}

/// Whether a person can see a screen and press keys.
fn on_a_terminal() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// The open questions in the order in which a person should see them.
pub(crate) fn open(context: &Context, store: &Store) -> Result<Vec<Ranked>, Failure> {
    rank(context, store, store.open_questions()?)
}

/// Questions in the order of the inbox.
fn rank(context: &Context, store: &Store, questions: Vec<Question>) -> Result<Vec<Ranked>, Failure> {
    // A configuration that cannot be read is told elsewhere.
    let read = |row: ProjectRow| Some((row.name.clone(), Project::load(&row.config_path).ok()?));
    let projects: BTreeMap<_, _> = store.projects()?.into_iter().filter_map(read).collect();
    let tasks = store.open_tasks()?;
    let size = |asked: &Question| {
        let project = projects.get(&asked.source.project).filter(|_| asked.kind == Kind::Review)?;
        let is_it = |task: &&Task| {
            task.key.project == asked.source.project && Some(task.key.issue) == asked.source.issue
        };
        evidence::changed_lines(context, project, tasks.iter().find(is_it)?)
    };
    Ok(page::rank(questions, &tasks, |name| projects.get(name).map(|project| &project.config), size))
}

/// A question as it is shown.
pub(crate) fn shown(Ranked { asked, held_up, lines }: &Ranked) -> view::Question {
    view::Question::new(asked, u32::try_from(*held_up).unwrap_or(u32::MAX), *lines)
}

fn list(context: &Context) -> Result<(), Failure> {
    let mut questions = match context.store()? {
        Some(store) => open(context, &store)?,
        None => Vec::new(),
    };
    if let Some(project) = &context.wanted {
        questions.retain(|ranked| ranked.asked.source.project == *project);
    }
    if context.out.is_json() {
        return context.out.value(&views(context, &questions)?);
    }
    let mut table = Table::new(["NO", "PROJECT", "KIND", "ABOUT", "SINCE", "QUESTION"]);
    let now = time::now();
    for Ranked { asked, .. } in &questions {
        table.row([
            asked.id.map(|id| id.to_string()).unwrap_or_default().into(),
            asked.source.project.as_str().into(),
            Cell::styled(asked.kind.as_str(), colour(asked)),
            about(asked).into(),
            time::relative(asked.asked_at, now).into(),
            clean_line(&asked.subject, 160).into(),
        ]);
    }
    context.out.table(&table, "Nothing needs you.")
}

/// Questions with what is known about each.
fn views(context: &Context, questions: &[Ranked]) -> Result<Vec<view::Question>, Failure> {
    let reviewed = questions.iter().any(|ranked| ranked.asked.kind == Kind::Review);
    let rows = match context.store()?.filter(|_| reviewed) {
        Some(store) => store.sessions(None, SessionScope::All)?,
        None => Vec::new(),
    };
    let view = |ranked: &Ranked| view::Question {
        outside: worked_outside(&rows, &ranked.asked),
        refused: refused_hosts(context, &ranked.asked).unwrap_or_default(),
        receipt: receipt(context, &ranked.asked).iter().map(Receipt::from).collect(),
        risk: risk(context, &ranked.asked),
        artifacts: artifacts(context, &ranked.asked),
        ..shown(ranked)
    };
    Ok(questions.iter().map(view).collect())
}

/// One question, open or settled, with what is known about it.
pub(super) fn read_one(context: &Context, id: QuestionId) -> Result<view::Question, Failure> {
    let (store, asked) = find(context, id)?;
    let views = views(context, &rank(context, &store, vec![asked])?)?;
    views.into_iter().next().ok_or_else(|| Failure::not_found(words::question::unknown(id)))
}

/// The sessions that worked outside the sandbox on what is to be reviewed.
fn worked_outside(rows: &[SessionRow], asked: &Question) -> Vec<String> {
    let Some(issue) = asked.source.issue.filter(|_| asked.kind == Kind::Review) else { return Vec::new() };
    let own = rows.iter().filter(|row| row.project == asked.source.project && row.issue == Some(issue));
    own.filter(|row| identity::sandboxed(row) == Some(false)).map(|row| row.session.clone()).collect()
}

/// The hosts that the session that asks was refused. It may have asked because of them.
fn refused_hosts(context: &Context, asked: &Question) -> Result<Vec<String>, Failure> {
    let session = asked.source.session.as_deref().filter(|_| asked.kind != Kind::HostAccess);
    let Some(session) = session else { return Ok(Vec::new()) };
    let paths = context.paths.project(&asked.source.project);
    Ok(Context::enclosure()?.refused_session(session, &paths))
}

/// What was run on the pull request that is to be reviewed. What cannot be read is not shown.
fn receipt(context: &Context, asked: &Question) -> Vec<ReceiptLine> {
    let receipt = of_reviewed(context, asked, evidence::receipt_of);
    receipt.unwrap_or_default().unwrap_or_default()
}

/// The risk of the pull request that is to be reviewed.
pub(super) fn risk(context: &Context, asked: &Question) -> Option<Risk> {
    let risk = of_reviewed(context, asked, |_, config, task| Ok(Risk::of(&task.contribution, config)));
    risk.ok().flatten().flatten()
}

/// Something about the task whose pull request is to be reviewed; none for other questions.
fn of_reviewed<T>(
    context: &Context,
    asked: &Question,
    read: impl Fn(&Store, &Config, &Task) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let Some(issue) = asked.source.issue.filter(|_| asked.kind == Kind::Review) else { return Ok(None) };
    let Some(store) = context.store()? else { return Ok(None) };
    let key = TaskKey { project: asked.source.project.clone(), issue };
    let row = store.project(&key.project)?;
    let project = row.and_then(|row| Project::load(&row.config_path).ok());
    match (store.task(&key)?, project) {
        (Some(task), Some(project)) => read(&store, &project.config, &task).map(Some),
        _ => Ok(None),
    }
}

/// The files that help with a review.
pub(super) fn artifacts(context: &Context, asked: &Question) -> Artifacts {
    if asked.kind != Kind::Review {
        return Artifacts::default();
    }
    evidence::artifacts_of(context, &asked.source.project, asked.source.issue, asked.source.pr)
}

fn show(context: &Context, id: QuestionId) -> Result<(), Failure> {
    let (store, asked) = find(context, id)?;
    let rows = store.sessions(Some(&asked.source.project), SessionScope::All)?;
    let outside = worked_outside(&rows, &asked);
    let refused = refused_hosts(context, &asked)?;
    let receipt = receipt(context, &asked);
    let risk = risk(context, &asked);
    let artifacts = artifacts(context, &asked);
    if context.out.is_json() {
        let receipt = receipt.iter().map(Receipt::from).collect();
        let ranked = rank(context, &store, vec![asked])?;
        return match ranked.first() {
            Some(ranked) => context.out.value(&view::Question {
                outside,
                refused,
                receipt,
                risk,
                artifacts,
                ..shown(ranked)
            }),
            None => Ok(()),
        };
    }
    let ranked = rank(context, &store, vec![asked.clone()])?;
    let (held_up, size) = ranked.first().map_or((0, None), |ranked| (ranked.held_up, ranked.lines));
    let colour = colour(&asked);
    let now = time::now();
    let mut lines = vec![
        format!("question {id}  {colour}{}{colour:#}  {}", asked.kind, words::question::heading(asked.kind)),
        format!("project  {}", asked.source.project),
        format!("about    {}", about(&asked)),
    ];
    lines.extend(asked.source.session.as_deref().map(|session| format!("session  {session}")));
    if !outside.is_empty() {
        lines.push(format!("outside  {} worked without a sandbox", outside.join(", ")));
    }
    lines.extend(refused.iter().take(REFUSED_LINES).map(|line| format!("network  {line}")));
    lines.extend(risk.iter().flat_map(Risk::lines).map(|line| format!("risk     {line}")));
    lines.extend(receipt.iter().map(|line| format!("receipt  {}", words::receipt::line(line))));
    lines.extend(artifacts.lines().iter().map(|line| format!("artifact {line}")));
    lines.push(format!("asked    {}", time::relative(asked.asked_at, now)));
    lines.extend(size.map(|size| format!("changes  {}", words::page::lines(size))));
    if held_up > 0 {
        lines.push(format!("holds up {}", words::page::other_tasks(held_up)));
    }
    match &asked.settled {
        Some(settled) => {
            let end = words::question::ending(settled);
            lines.push(format!("settled  {end}, {}", time::relative(settled.at, now)));
        }
        None => {
            lines.extend(asked.expires_at.map(|at| format!("expires  {}", time::relative(at, now))));
            lines.extend(
                words::question::settle(&asked).into_iter().map(|command| format!("settle   {command}")),
            );
        }
    }
    lines.push(format!("\n{}", clean_block(asked.text(), SHOWN_BYTES)));
    context.out.line(lines.join("\n"))
}

fn settle(
    context: &Context,
    question: u64,
    command: impl FnOnce(String) -> InboxCommand,
) -> Result<(), Failure> {
    context.people_only("settling a question")?;
    let question = QuestionId(question);
    let (_, asked) = find(context, question)?;
    let command = command(context.author());
    let project = asked.source.project;
    let settled: view::Question = context.ask_and_say(&Request::Inbox { project, question, command })?;
    if context.out.is_json() {
        return context.out.value(&settled);
    }
    context.out.say(words::question::done(question));
    Ok(())
}

fn find(context: &Context, id: QuestionId) -> Result<(Store, Question), Failure> {
    let missing = || Failure::not_found(words::question::unknown(id)).hint("pointsman inbox");
    let store = context.store()?.ok_or_else(missing)?;
    let asked = store.question(id)?.ok_or_else(missing)?;
    Ok((store, asked))
}

/// Whatever the question is about: an issue if there is one.
pub(super) fn about(asked: &Question) -> String {
    match (asked.source.issue, asked.source.pr) {
        (Some(issue), _) => format!("#{issue}"),
        (None, Some(pr)) => format!("#{pr}"),
        (None, None) => match &asked.source.owner {
            // Its kind says it all.
            Owner::Concern(_) => String::new(),
            owner @ (Owner::Task(_) | Owner::Run(_) | Owner::Vault(_)) => owner.to_string(),
        },
    }
}

pub(super) fn colour(asked: &Question) -> anstyle::Style {
    match asked.kind.traits().urgency {
        Urgency::Endangers => style::BAD,
        Urgency::HoldsUp | Urgency::Costs => style::BUSY,
        Urgency::CanWait => style::QUIET,
    }
}
