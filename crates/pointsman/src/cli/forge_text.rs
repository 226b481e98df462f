//! Issues and pull requests for people. Scripts get the views as they are; here all of their texts are outside text.

use pointsman_core::forge::{CheckState, IssueState};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::review::ReceiptLine;
use pointsman_core::task::ReviewVerdict;
use pointsman_core::text::{clean_block, clean_line, show_html_comments};
use pointsman_core::words;
use pointsman_view::evidence::{Receipt, Risk};
use pointsman_view::forge::{BoardItem, Checks, Comment, Issue, PullRequest};
use serde::Serialize;

use super::context::Context;
use super::failure::Failure;
use super::style;
use super::table::{Cell, Table};

/// Longest title in a table.
const TITLE_CHARS: usize = 120;
/// How much of a text is shown.
const BODY_BYTES: usize = 64 * 1024;

/// Something was changed: the number on standard output, for scripts without jq, the rest is talk.
pub(crate) fn changed(
    context: &Context,
    what: &str,
    done: &str,
    number: Number,
    view: &impl Serialize,
) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(view);
    }
    context.out.say(format!("{}{} #{number} {done}.", what[..1].to_uppercase(), &what[1..]));
    context.out.line(number)
}

/// Prints a list of issues.
pub(crate) fn issues(context: &Context, issues: &[Issue]) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(&issues);
    }
    let mut table = Table::new(["ISSUE", "STATE", "LABELS", "ASSIGNEE", "TITLE"]);
    for issue in issues {
        table.row([
            format!("#{}", issue.number).into(),
            state(issue.state, false),
            labels(issue).into(),
            clean_line(issue.assignee.as_deref().unwrap_or_default(), 40).into(),
            clean_line(&issue.title, TITLE_CHARS).into(),
        ]);
    }
    context.out.table(
        &table,
        "No issues. To create one, run `pointsman forge issue create --title \"…\" --label backlog`.",
    )
}

/// Prints the rows of the board.
pub(crate) fn board(context: &Context, items: &[BoardItem]) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(&items);
    }
    let mut table = Table::new(["ISSUE", "STATUS", "AGENT", "TITLE"]);
    for item in items {
        table.row([
            format!("#{}", item.number).into(),
            item.status.name().into(),
            clean_line(&item.agent, 40).into(),
            clean_line(&item.title, TITLE_CHARS).into(),
        ]);
    }
    context.out.table(&table, "There are no open issues.")
}

/// Prints the results of all checks of a commit.
pub(crate) fn checks(context: &Context, checks: &Checks) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(checks);
    }
    let mut table = Table::new(["CHECK", "STATE"]);
    for check in &checks.checks {
        table.row([clean_line(&check.name, 80).into(), check_word(check.state).into()]);
    }
    context.out.table(&table, "This commit has no checks yet.")
}

/// Prints one issue with its comments.
pub(crate) fn issue(context: &Context, issue: &Issue) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(issue);
    }
    head(context, issue.number, &issue.title, issue.state.name(), &issue.author)?;
    let assignee = clean_line(issue.assignee.as_deref().unwrap_or_default(), 80);
    let facts = [("labels", labels(issue)), ("assignee", assignee)];
    for (name, text) in facts.into_iter().filter(|(_, text)| !text.is_empty()) {
        context.out.line(format!("{name:<9} {text}"))?;
    }
    body(context, &issue.body)?;
    comments(context, &issue.comments)
}

/// Prints a list of pull requests.
pub(crate) fn pulls(context: &Context, pulls: &[PullRequest]) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(&pulls);
    }
    let mut table = Table::new(["PR", "STATE", "HEAD", "BRANCH", "TITLE"]);
    for pull in pulls {
        table.row([
            format!("#{}", pull.number).into(),
            state(pull.state, pull.merged),
            pull.head_sha.as_ref().map_or("", Sha::short).into(),
            clean_line(&pull.head, 80).into(),
            clean_line(&pull.title, TITLE_CHARS).into(),
        ]);
    }
    context.out.table(&table, "No pull requests.")
}

/// Prints one pull request with its receipt and its reviews.
pub(crate) fn shown_pull(context: &Context, pr: PullRequest, receipt: &[ReceiptLine]) -> Result<(), Failure> {
    let shown = PullRequest { receipt: receipt.iter().map(Receipt::from).collect(), ..pr };
    pull(context, &shown)?;
    if context.out.is_json() {
        return Ok(());
    }
    let risk = shown.risk.iter().flat_map(Risk::lines);
    risk.into_iter().try_for_each(|line| context.out.line(format!("risk     {line}")))?;
    receipt
        .iter()
        .try_for_each(|line| context.out.line(format!("receipt  {}", words::receipt::line(line))))?;
    shown.artifacts.lines().iter().try_for_each(|line| context.out.line(format!("artifact {line}")))
}

/// Prints one pull request with its reviews.
pub(crate) fn pull(context: &Context, pull: &PullRequest) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(pull);
    }
    head(context, pull.number, &pull.title, state_word(pull.state, pull.merged), &pull.author)?;
    let (from, to) = (clean_line(&pull.head, 200), clean_line(&pull.base, 200));
    let sha = pull.head_sha.as_ref().map_or("", Sha::as_str);
    context.out.line(format!("{from} → {to} at {sha}"))?;
    body(context, &pull.body)?;
    let strong = style::STRONG;
    for review in &pull.reviews {
        let verdict = verdict(review.verdict);
        let dismissed = if review.dismissed { " (taken back)" } else { "" };
        let (author, sha) = (clean_line(&review.author, 80), &review.sha);
        context.out.line(format!("\n{strong}{author}{strong:#}: {verdict}{dismissed}, at {sha}"))?;
        body(context, &review.body)?;
        for line in &review.lines {
            let told = words::screen::line_comment(line.handled, &line.file, line.line, &line.text);
            context.out.line(format!("  {told}"))?;
        }
    }
    comments(context, &pull.comments)
}

fn head(context: &Context, number: Number, title: &str, state: &str, author: &str) -> Result<(), Failure> {
    let strong = style::STRONG;
    context.out.line(format!("{strong}#{number} {}{strong:#}", clean_line(title, TITLE_CHARS)))?;
    context.out.line(format!("{state}, by {}", clean_line(author, 80)))
}

fn body(context: &Context, text: &str) -> Result<(), Failure> {
    let text = show_html_comments(&clean_block(text, BODY_BYTES));
    if text.trim().is_empty() { Ok(()) } else { context.out.line(format!("\n{}", text.trim_end())) }
}

fn comments(context: &Context, comments: &[Comment]) -> Result<(), Failure> {
    let strong = style::STRONG;
    for comment in comments {
        let author = clean_line(&comment.author, 80);
        context.out.line(format!("\n{strong}{author}{strong:#}, {}:", comment.at))?;
        body(context, &comment.body)?;
    }
    Ok(())
}

fn verdict(verdict: ReviewVerdict) -> &'static str {
    match verdict {
        ReviewVerdict::Approve => "approve",
        ReviewVerdict::RequestChanges => "request changes",
        ReviewVerdict::Discuss => "discuss",
    }
}

fn check_word(state: CheckState) -> &'static str {
    match state {
        CheckState::Success => "success",
        CheckState::Failure => "failure",
        CheckState::Pending => "pending",
    }
}

fn state_word(state: IssueState, merged: bool) -> &'static str {
    if merged { "merged" } else { state.name() }
}

fn state(state: IssueState, merged: bool) -> Cell<'static> {
    let colour = match (state, merged) {
        (_, true) => style::GOOD,
        (IssueState::Open, false) => style::BUSY,
        (IssueState::Closed, false) => style::QUIET,
    };
    Cell::styled(state_word(state, merged), colour)
}

fn labels(issue: &Issue) -> String {
    let labels: Vec<String> = issue.labels.iter().map(|label| clean_line(label, 40)).collect();
    labels.join(",")
}
