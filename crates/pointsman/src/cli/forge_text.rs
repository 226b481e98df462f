//! Issues and pull requests for people. What the forge answers is what scripts get, word for word; here all of it is
//! outside text.

use pointsman_core::text::{clean_block, clean_line};
use serde_json::Value;

use super::context::Context;
use super::failure::Failure;
use super::style;
use super::table::{Cell, Table};

/// Longest title in a table.
const TITLE_CHARS: usize = 120;
/// How much of a text is shown.
const BODY_BYTES: usize = 64 * 1024;

/// Something was changed: the number on standard output, for scripts without jq, the rest is talk.
pub(crate) fn changed(context: &Context, what: &str, done: &str, value: &Value) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(value);
    }
    let number = &value["number"];
    context.out.say(format!("{}{} #{number} {done}.", what[..1].to_uppercase(), &what[1..]));
    context.out.line(number)
}

pub(crate) fn issues(context: &Context, value: &Value) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(value);
    }
    let mut table = Table::new(["ISSUE", "STATE", "LABELS", "ASSIGNEE", "TITLE"]);
    for issue in value.as_array().into_iter().flatten() {
        table.row([
            format!("#{}", issue["number"]).into(),
            state(issue),
            words(&issue["labels"]).into(),
            line(&issue["assignee"], 40).into(),
            line(&issue["title"], TITLE_CHARS).into(),
        ]);
    }
    context
        .out
        .table(&table, "No issues. pointsman forge issue create --title \"…\" --label backlog writes one.")
}

pub(crate) fn board(context: &Context, value: &Value) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(value);
    }
    let mut table = Table::new(["ISSUE", "STATUS", "AGENT", "TITLE"]);
    for item in value.as_array().into_iter().flatten() {
        table.row([
            format!("#{}", item["number"]).into(),
            line(&item["status"], 40).into(),
            line(&item["agent"], 40).into(),
            line(&item["title"], TITLE_CHARS).into(),
        ]);
    }
    context.out.table(&table, "Nothing is open.")
}

pub(crate) fn checks(context: &Context, value: &Value) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(value);
    }
    let mut table = Table::new(["CHECK", "STATE"]);
    for check in value["checks"].as_array().into_iter().flatten() {
        table.row([line(&check["name"], 80).into(), line(&check["state"], 20).into()]);
    }
    context.out.table(&table, "No check has said anything about this commit.")
}

pub(crate) fn issue(context: &Context, value: &Value) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(value);
    }
    head(context, value)?;
    let facts = [("labels", words(&value["labels"])), ("assignee", line(&value["assignee"], 80))];
    for (name, text) in facts.into_iter().filter(|(_, text)| !text.is_empty()) {
        context.out.line(format!("{name:<9} {text}"))?;
    }
    body(context, &value["body"])?;
    comments(context, value)
}

pub(crate) fn pulls(context: &Context, value: &Value) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(value);
    }
    let mut table = Table::new(["PR", "STATE", "HEAD", "BRANCH", "TITLE"]);
    for pull in value.as_array().into_iter().flatten() {
        let sha = line(&pull["head_sha"], 64);
        table.row([
            format!("#{}", pull["number"]).into(),
            state(pull),
            sha.get(..10).unwrap_or(&sha).to_owned().into(),
            line(&pull["head"], 80).into(),
            line(&pull["title"], TITLE_CHARS).into(),
        ]);
    }
    context.out.table(&table, "No pull requests.")
}

pub(crate) fn pull(context: &Context, value: &Value) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(value);
    }
    head(context, value)?;
    let (from, to) = (line(&value["head"], 200), line(&value["base"], 200));
    context.out.line(format!("{from} → {to} at {}", line(&value["head_sha"], 64)))?;
    body(context, &value["body"])?;
    let strong = style::STRONG;
    for review in value["reviews"].as_array().into_iter().flatten() {
        let verdict = line(&review["verdict"], 40).replace('_', " ");
        let dismissed = if review["dismissed"] == Value::Bool(true) { " (taken back)" } else { "" };
        context.out.line(format!(
            "\n{strong}{}{strong:#}: {verdict}{dismissed}, at {}",
            line(&review["author"], 80),
            line(&review["sha"], 64)
        ))?;
        body(context, &review["body"])?;
    }
    comments(context, value)
}

fn head(context: &Context, value: &Value) -> Result<(), Failure> {
    let strong = style::STRONG;
    context.out.line(format!(
        "{strong}#{} {}{strong:#}",
        value["number"],
        line(&value["title"], TITLE_CHARS)
    ))?;
    context.out.line(format!("{}, by {}", state_word(value), line(&value["author"], 80)))
}

fn body(context: &Context, value: &Value) -> Result<(), Failure> {
    let text = clean_block(value.as_str().unwrap_or_default(), BODY_BYTES);
    if text.trim().is_empty() { Ok(()) } else { context.out.line(format!("\n{}", text.trim_end())) }
}

fn comments(context: &Context, value: &Value) -> Result<(), Failure> {
    let strong = style::STRONG;
    for comment in value["comments"].as_array().into_iter().flatten() {
        let (author, at) = (line(&comment["author"], 80), line(&comment["at"], 40));
        context.out.line(format!("\n{strong}{author}{strong:#}, {at}:"))?;
        body(context, &comment["body"])?;
    }
    Ok(())
}

fn state_word(value: &Value) -> String {
    if value["merged"] == Value::Bool(true) { "merged".to_owned() } else { line(&value["state"], 20) }
}

fn state(value: &Value) -> Cell<'_> {
    let word = state_word(value);
    let colour = match word.as_str() {
        "open" => style::BUSY,
        "merged" => style::GOOD,
        _ => style::QUIET,
    };
    Cell::styled(word, colour)
}

fn line(value: &Value, chars: usize) -> String {
    clean_line(value.as_str().unwrap_or_default(), chars)
}

fn words(value: &Value) -> String {
    let words: Vec<String> = value.as_array().into_iter().flatten().map(|word| line(word, 40)).collect();
    words.join(",")
}
