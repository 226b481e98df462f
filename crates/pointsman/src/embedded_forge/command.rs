//! People's commands to the embedded forge. Every answer is what the command prints with `--json`.

use pointsman_adapters::forge::{BoardChange, Error, Forge};
use pointsman_core::filing;
use pointsman_core::forge::{IssueState, PullRequest, StateFilter};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::words;
use pointsman_view::forge as view;

use super::limits::{self, InvalidText};
use super::{EmbeddedForge, database_error, git_error};
use crate::control::protocol::{FailureKind, ForgeCommand, Reply};

/// Executes a person's command.
pub fn run_command(forge: &EmbeddedForge, command: &ForgeCommand) -> Reply {
    match execute(forge, command) {
        Ok(reply) => reply,
        Err(Failure { kind, message }) => Reply::Failed { kind, message },
    }
}

struct Failure {
    kind: FailureKind,
    message: String,
}

impl Failure {
    fn refused(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Refused, message: message.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { kind: FailureKind::of_forge(&error), message: error.to_string() }
    }
}

impl From<InvalidText> for Failure {
    fn from(unfit: InvalidText) -> Self {
        Self::refused(unfit.to_string())
    }
}

fn execute(forge: &EmbeddedForge, command: &ForgeCommand) -> Result<Reply, Failure> {
    if let Some(number) = subject(command).filter(|number| i64::try_from(*number).is_err()) {
        // More than the database can count to.
        return Err(missing("issue or pull request", number, None));
    }
    match command {
        ForgeCommand::CreateIssue { title, body, labels, author } => {
            let (title, mut body) = (limits::title(title)?, limits::body(body)?);
            limits::labels(labels)?;
            if let Some(mark) = filing::mark(author) {
                body = limits::body(&format!("{}\n\n{mark}", body.trim_end()))?;
            }
            let created =
                forge.forge_db().create_issue(&title, &body, labels, &limits::person(author), forge.now());
            show_issue(forge, created.map_err(database_error("create an issue"))?)
        }
        ForgeCommand::ListIssues { state } => list_issues(forge, *state),
        ForgeCommand::ShowIssue { number } => show_issue(forge, *number),
        ForgeCommand::Comment { number, body, author } => {
            let body = limits::comment(body)?;
            let written = forge.forge_db().comment(*number, &limits::person(author), &body, forge.now());
            written.map_err(database_error("comment"))?;
            show_either(forge, *number)
        }
        ForgeCommand::Label { number, add, remove } => {
            limits::labels(add)?;
            forge.set_labels(*number, add, remove)?;
            show_issue(forge, *number)
        }
        ForgeCommand::SetIssueOpen { number, open: true } => {
            forge.forge_db().reopen_issue(*number).map_err(database_error("reopen an issue"))?;
            show_issue(forge, *number)
        }
        ForgeCommand::SetIssueOpen { number, open: false } => {
            forge.close_issue(*number)?;
            show_issue(forge, *number)
        }
        ForgeCommand::CreatePull { head, title, body, author } => {
            let (title, body) = (limits::title(title)?, limits::body(body)?);
            let author = limits::person(author);
            let number = forge.open_pull(head, &forge.primary, (&title, &body), &author)?;
            show_pull(forge, number)
        }
        ForgeCommand::ListPulls { state } => list_pulls(forge, *state),
        ForgeCommand::ShowPull { number } => show_pull(forge, *number),
        ForgeCommand::Review { number, verdict, body, author, head } => {
            let sha = head_to_review(forge, *number, head.as_ref())?;
            let (body, author) = (limits::body(body)?, limits::person(author));
            let written = forge.forge_db().review(*number, &author, *verdict, &body, &sha, forge.now());
            written.map_err(database_error("review a pull request"))?;
            show_pull(forge, *number)
        }
        ForgeCommand::ClosePull { number } => {
            // Looked at first, so that its head is remembered, and landed work is merged instead of closed.
            require_pull(forge, *number)?;
            forge.forge_db().close_pr(*number).map_err(database_error("close a pull request"))?;
            forge.repository.forget_question(*number);
            show_pull(forge, *number)
        }
        ForgeCommand::MergePull { number } => Err(Failure {
            kind: FailureKind::NoDaemon,
            message: format!(
                "pull request #{number} lands through the merge queue, which the daemon runs: start it with `pointsman up`"
            ),
        }),
        ForgeCommand::ListBoard => {
            let items: Vec<_> = forge.board()?.into_iter().map(view::BoardItem::from).collect();
            Ok(Reply::done(items))
        }
        ForgeCommand::SetBoard { number, status, agent } => {
            forge.set_board(*number, &BoardChange { status: *status, agent: agent.as_deref() })?;
            Ok(Reply::done(view::BoardItem::from(forge.board_item(*number)?)))
        }
        ForgeCommand::ListChecks { sha } => list_checks(forge, sha),
        ForgeCommand::SetCheck { sha, name, state } => {
            let name = limits::check(name)?;
            if !forge.repository.has(sha).map_err(git_error("look for a commit"))? {
                let message = format!("the forge has no commit {}: push it first", sha.short());
                return Err(Failure { kind: FailureKind::NotFound, message });
            }
            forge.show_check(sha, &name, *state)?;
            list_checks(forge, sha)
        }
    }
}

/// Which issue or pull request a command is about.
fn subject(command: &ForgeCommand) -> Option<Number> {
    match command {
        ForgeCommand::ShowIssue { number }
        | ForgeCommand::Comment { number, .. }
        | ForgeCommand::Label { number, .. }
        | ForgeCommand::SetIssueOpen { number, .. }
        | ForgeCommand::ShowPull { number }
        | ForgeCommand::Review { number, .. }
        | ForgeCommand::ClosePull { number }
        | ForgeCommand::MergePull { number }
        | ForgeCommand::SetBoard { number, .. } => Some(*number),
        ForgeCommand::CreateIssue { .. }
        | ForgeCommand::CreatePull { .. }
        | ForgeCommand::ListIssues { .. }
        | ForgeCommand::ListPulls { .. }
        | ForgeCommand::ListBoard
        | ForgeCommand::ListChecks { .. }
        | ForgeCommand::SetCheck { .. } => None,
    }
}

/// The commit that a review would be about; the refusal if there can be none.
pub(crate) fn reviewable_head(
    forge: &EmbeddedForge,
    number: Number,
    seen: Option<&Sha>,
) -> Result<Sha, Reply> {
    head_to_review(forge, number, seen).map_err(|Failure { kind, message }| Reply::Failed { kind, message })
}

fn head_to_review(forge: &EmbeddedForge, number: Number, seen: Option<&Sha>) -> Result<Sha, Failure> {
    let pr = require_pull(forge, number)?;
    if pr.merged {
        return Err(Failure::refused(format!(
            "pull request #{number} is merged: open an issue for what is left"
        )));
    }
    if pr.state == IssueState::Closed {
        return Err(Failure::refused(format!(
            "pull request #{number} is closed: there is nothing to review"
        )));
    }
    let head = pr.head_sha.ok_or_else(|| {
        Failure::refused(format!("pull request #{number} has no head: push its branch `{}` first", pr.head))
    })?;
    if seen.is_some_and(|seen| *seen != head) {
        return Err(Failure::refused(words::question::another_head(number)));
    }
    Ok(head)
}

fn list_checks(forge: &EmbeddedForge, sha: &Sha) -> Result<Reply, Failure> {
    let checks = forge.checks(sha)?.into_iter().map(view::Check::from).collect();
    Ok(Reply::done(view::Checks { sha: sha.clone(), checks }))
}

fn list_issues(forge: &EmbeddedForge, state: StateFilter) -> Result<Reply, Failure> {
    let issues = forge.forge_db().issues(state).map_err(database_error("list issues"))?;
    Ok(Reply::done(issues.iter().map(view::Issue::from).collect::<Vec<_>>()))
}

fn list_pulls(forge: &EmbeddedForge, state: StateFilter) -> Result<Reply, Failure> {
    // Those that landed by hand must be written down before they are sorted into open and closed.
    forge.open_pull_requests()?;
    let listed = forge.forge_db().prs(state).map_err(database_error("list pull requests"))?;
    let pulls = listed
        .into_iter()
        .map(|pr| forge.with_facts(pr).map_err(Failure::from))
        .map(|pr| pull(forge, &pr?))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Reply::done(pulls))
}

fn show_issue(forge: &EmbeddedForge, number: Number) -> Result<Reply, Failure> {
    match forge.issue(number)? {
        Some(issue) => Ok(Reply::done(view::Issue::from(&issue))),
        None => {
            let pr = forge.forge_db().pr(number).map_err(database_error("read a pull request"))?;
            let hint = pr.map(|_| format!("`pointsman forge pr show {number}`: it is a pull request"));
            Err(missing("issue", number, hint))
        }
    }
}

fn show_pull(forge: &EmbeddedForge, number: Number) -> Result<Reply, Failure> {
    Ok(Reply::done(pull(forge, &require_pull(forge, number)?)?))
}

fn show_either(forge: &EmbeddedForge, number: Number) -> Result<Reply, Failure> {
    Ok(Reply::done(match forge.issue(number)? {
        Some(issue) => view::Commented::Issue(view::Issue::from(&issue)),
        None => view::Commented::PullRequest(pull(forge, &require_pull(forge, number)?)?),
    }))
}

fn pull(forge: &EmbeddedForge, pr: &PullRequest) -> Result<view::PullRequest, Failure> {
    Ok(view::PullRequest::new(pr, &forge.comments_after(pr.number, 0)?))
}

fn require_pull(forge: &EmbeddedForge, number: Number) -> Result<PullRequest, Failure> {
    match forge.pull_request(number)? {
        Some(pr) => Ok(pr),
        None => {
            let hint = forge
                .issue(number)?
                .map(|_| format!("`pointsman forge issue show {number}`: it is an issue"));
            Err(missing("pull request", number, hint))
        }
    }
}

fn missing(what: &str, number: Number, hint: Option<String>) -> Failure {
    let message = match hint {
        Some(hint) => format!("there is no {what} #{number}; see {hint}"),
        None => format!("there is no {what} #{number}; `list --state all` shows those there are"),
    };
    Failure { kind: FailureKind::NotFound, message }
}
