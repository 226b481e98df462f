//! The content of pages and of the screen of the inbox: one question with the evidence for a decision, read as the commands
//! read it.

use std::io::{Read, Seek, SeekFrom};

use pointsman_core::ids::Number;
use pointsman_core::part::question::{Kind, QuestionId};
use pointsman_core::session::budget::{self, Limit};
use pointsman_store::SessionRow;
use pointsman_view::event::Event;
use pointsman_view::forge::{Issue, PullRequest};
use pointsman_view::inbox::Question;
use pointsman_view::status::Status;
use pointsman_view::task::Task;
use pointsman_web::Desk;

use super::context::Context;
use super::failure::Failure;
use super::{events, evidence, inbox, rounds, session, session_log, status, task};
use crate::control::protocol::{ForgeCommand, Request};

/// The end of a transcript.
const TRANSCRIPT_BYTES: u64 = 64 << 10;

/// The view that `status` prints, of all projects.
pub(crate) fn status(context: &Context) -> Result<Status, Failure> {
    status::read(context)
}

/// Open questions, as `inbox` lists them.
pub(crate) fn inbox(context: &Context) -> Result<Vec<Question>, Failure> {
    let Some(store) = context.store()? else { return Ok(Vec::new()) };
    Ok(inbox::open(context, &store)?.iter().map(inbox::shown).collect())
}

/// One question, as `inbox show` prints it.
pub(crate) fn question(context: &Context, id: QuestionId) -> Result<Question, Failure> {
    inbox::read_one(context, id)
}

/// `events` after this entry.
pub(crate) fn events(context: &Context, after: i64, limit: u32) -> Result<Vec<Event>, Failure> {
    match context.store()? {
        Some(store) => events::after(&store, after, limit),
        None => Ok(Vec::new()),
    }
}

/// A question with the evidence for a decision. To show a change is a look at it.
pub(crate) fn desk(context: &Context, id: QuestionId, since: bool) -> Result<Desk, Failure> {
    let question = inbox::read_one(context, id)?;
    let context = &Context { wanted: Some(question.project.clone()), ..context.clone() };
    let why = |failure: Failure| failure.message().to_owned();
    let (mut task_view, mut cost): (Option<Task>, _) = (None, None);
    if let Some(issue) = question.issue {
        let project = context.project()?;
        if let Ok((known, store)) = context.task(&project, issue) {
            let spent = task::spent(Some(&store), &known)?;
            cost = budget::describe(spent, Limit::per_task(&project.config.budget));
            task_view = Some(Task::new(&known, spent));
        }
    }
    let mut looked_before = false;
    let reviewed =
        question.pr.filter(|_| matches!(question.kind, Kind::Review | Kind::HandIn | Kind::Conflict));
    let diff = reviewed.map(|pr| {
        let before = rounds::last_look(context, &question.project, pr);
        let read = match since {
            true => rounds::read_since(context, pr, before.as_ref()),
            false => evidence::read_diff(context, pr, false),
        };
        if let Ok(read) = &read {
            looked_before = before.is_some_and(|before| before != read.head_sha);
            // What is new stays new until the person has decided about it.
            if !since && question.settled.is_none() && !looked_before {
                rounds::remember(context, &question.project, pr, &read.head_sha);
            }
        }
        read.map_err(why)
    });
    Ok(Desk {
        task: task_view,
        cost,
        issue: question.issue.and_then(|number| issue(context, number)),
        pull: question.pr.and_then(|number| pull(context, number)),
        diff,
        looked_before,
        ci: reviewed
            .map(|pr| evidence::read_ci_log(context, question.issue.unwrap_or(pr), None).map_err(why)),
        last_words: question.issue.map(|issue| last_words(context, issue).map(|(_, text)| text).map_err(why)),
        question,
    })
}

/// Remembers the version of a pull request that a person has decided about as the one that they looked at last.
pub(crate) fn decided(context: &Context, question: &Question) {
    let context = &Context { wanted: Some(question.project.clone()), ..context.clone() };
    let Some(number) = question.pr else { return };
    let read = at_our_forge(context, ForgeCommand::ShowPull { number });
    let read: Option<PullRequest> = read.and_then(|request| context.ask(&request).ok());
    if let Some(head) = read.and_then(|pull| pull.head_sha) {
        rounds::remember(context, &question.project, number, &head);
    }
}

/// An issue, where the forge is our own. Others are not asked while somebody scrolls.
pub(super) fn issue(context: &Context, number: Number) -> Option<Issue> {
    context.ask(&at_our_forge(context, ForgeCommand::ShowIssue { number })?).ok()
}

/// A pull request with what became of comments on its lines, likewise.
fn pull(context: &Context, number: Number) -> Option<PullRequest> {
    let read = context.ask(&at_our_forge(context, ForgeCommand::ShowPull { number })?).ok()?;
    Some(rounds::with_line_comments(context, read))
}

fn at_our_forge(context: &Context, command: ForgeCommand) -> Option<Request> {
    let config = context.project().ok()?.config;
    config.forge.kind.is_embedded().then_some(Request::Forge { project: config.name, command })
}

/// The end of the transcript of an issue's newest session, without secrets.
pub(super) fn last_words(context: &Context, issue: Number) -> Result<(SessionRow, String), Failure> {
    let project = context.project()?;
    let row = session::newest_of(context, &project.config.name, issue)?;
    let (_, mut file) = session_log::open(context, &project, &row)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TRANSCRIPT_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TRANSCRIPT_BYTES).read_to_end(&mut bytes)?;
    let text = context.masked(&project.config, &String::from_utf8_lossy(&bytes));
    Ok((row, text))
}
