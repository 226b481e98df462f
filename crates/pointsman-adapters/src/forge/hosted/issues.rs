//! Issues, their labels and comments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use pointsman_core::forge::{Comment, Issue};
use pointsman_core::ids::Number;
use pointsman_core::labels::{self, IN_PROGRESS};
use pointsman_core::words;
use serde_json::{Value, json};

use super::errors::{LONGEST_BODY, TITLE_CHARS, cut, told, unless_there};
use super::wire::{Label, WireComment, WireIssue};
use super::{Dialect, Hosted};
use crate::forge::Error;
use crate::http::Method;

const LABELS: &str = "set labels";
/// The mark of a comment that stands for an assignment.
const CLAIMED: &str = "claimed";
/// How often an assignment is made that is not there afterwards.
const ASSIGNMENTS: u32 = 2;

impl Hosted {
    /// All open issues, oldest first, as the server says them. Pull requests are listed with them: one question tells
    /// for all of them whether anything has changed.
    pub(super) fn open_issues(&self) -> Result<Vec<WireIssue>, Error> {
        let listed: Vec<WireIssue> =
            self.list(&self.get("list issues", &["issues"]).query("state", "open"))?;
        // By number: a list that changed between two pages may name one twice.
        let listed: BTreeMap<Number, WireIssue> = listed.into_iter().map(|i| (i.number, i)).collect();
        let mark = |issue: &WireIssue| format!("{} {}", issue.updated_at, issue.comments);
        let marks = listed.iter().map(|(number, issue)| (*number, mark(issue))).collect();
        *self.marks.lock().unwrap_or_else(PoisonError::into_inner) = Some(marks);
        Ok(listed.into_values().filter(|issue| issue.pull_request.is_none()).collect())
    }

    pub(super) fn plain(&self, issue: WireIssue) -> Issue {
        issue.plain(self.host(), self.me())
    }

    pub(super) fn read_issue(&self, number: Number) -> Result<Option<Issue>, Error> {
        let found: Option<WireIssue> =
            self.dev.find(&self.get("read an issue", &["issues", &number.to_string()])).map_err(told)?;
        let Some(wire) = found.filter(|issue| issue.pull_request.is_none()) else { return Ok(None) };
        let silent = wire.comments == 0;
        let mut issue = self.plain(wire);
        if !silent {
            issue.comments = self.read_comments(number)?;
        }
        // Nobody can assign a robot: a comment of ours says that we have it.
        let taken =
            self.robot.is_some() && issue.assignee.is_none() && labels::has(&issue.labels, IN_PROGRESS);
        if taken && unless_there(&issue.comments, self.me(), CLAIMED, "").is_none() {
            issue.assignee = Some(self.me().to_owned());
        }
        Ok(Some(issue))
    }

    /// All comments of an issue or a pull request, oldest first.
    pub(super) fn read_comments(&self, number: Number) -> Result<Vec<Comment>, Error> {
        let request = self.get("read comments", &["issues", &number.to_string(), "comments"]);
        let listed: Vec<WireComment> = self.belongings(&request)?;
        let mut comments: Vec<Comment> = listed.into_iter().map(|c| c.plain(self.host())).collect();
        comments.sort_by_key(|comment| comment.id);
        comments.dedup_by_key(|comment| comment.id);
        Ok(comments)
    }

    /// Changes an issue and answers what became of it.
    pub(super) fn change_issue(
        &self,
        operation: &'static str,
        number: Number,
        change: &Value,
    ) -> Result<Issue, Error> {
        let order = self.request(operation, Method::Patch, &["issues", &number.to_string()]).body(change);
        self.dev.read(&order).map(|changed| self.plain(changed)).map_err(told)
    }

    pub(super) fn assign_to(&self, number: Number, who: Option<&str>) -> Result<(), Error> {
        if self.robot.is_some() && who == Some(self.me()) {
            return self.write_comment_once(number, CLAIMED, words::comment::claimed());
        }
        let people: Vec<String> = who.into_iter().map(str::to_owned).collect();
        self.assign_all(number, &people, who)
    }

    /// Adds us to those who have the issue.
    pub(super) fn assign_beside(&self, number: Number) -> Result<(), Error> {
        let found: Option<WireIssue> =
            self.dev.find(&self.get("read an issue", &["issues", &number.to_string()])).map_err(told)?;
        let there = found.into_iter().flat_map(|issue| issue.assignees).map(|user| user.login);
        let me = self.me().to_owned();
        let people: Vec<String> = there.filter(|login| *login != me).chain([me.clone()]).collect();
        self.assign_all(number, &people, Some(&me))
    }

    /// Makes these people the assignees; `who` is to be read as the assignee afterwards.
    fn assign_all(&self, number: Number, people: &[String], who: Option<&str>) -> Result<(), Error> {
        const OPERATION: &str = "assign an issue";
        let mut there = None;
        for _ in 0..ASSIGNMENTS {
            let issue = self.change_issue(OPERATION, number, &json!({ "assignees": people }))?;
            if issue.assignee.as_deref() == who {
                return Ok(());
            }
            // An answer may show the issue as it was a moment ago: what counts is what is there afterwards.
            there = self.read_issue(number)?.and_then(|issue| issue.assignee);
            if there.as_deref() == who {
                return Ok(());
            }
        }
        // GitHub leaves out whom it does not take, without a word.
        let reason = format!("it is assigned to {} afterwards", there.as_deref().unwrap_or("nobody"));
        Err(Error::Refused { operation: OPERATION, reason })
    }

    /// Writes a comment that ends with our mark, unless one is there.
    pub(super) fn write_comment_once(&self, number: Number, marker: &str, body: &str) -> Result<(), Error> {
        let there = self.read_comments(number)?;
        let Some(body) = unless_there(&there, self.me(), marker, body) else { return Ok(()) };
        let path = ["issues", &number.to_string(), "comments"];
        let order = self.request("comment", Method::Post, &path).body(&json!({ "body": body }));
        self.dev.send(&order).map(drop).map_err(told)
    }
}

/// Files an issue that ends with our mark, unless an open one of ours does.
pub(super) fn file_once<D: Dialect + ?Sized>(
    forge: &D,
    marker: &str,
    title: &str,
    body: &str,
    labels: &[&str],
) -> Result<Number, Error> {
    const OPERATION: &str = "file an issue";
    let (hosted, mark) = (forge.hosted(), words::comment::marker(marker));
    let ours = |i: &WireIssue| i.user.login == hosted.me() && i.body.trim_end().ends_with(&mark);
    if let Some(known) = hosted.open_issues()?.iter().find(|issue| ours(issue)) {
        return Ok(known.number);
    }
    let labels = labels.iter().map(|name| forge.label_to_add(name)).collect::<Result<Vec<_>, _>>()?;
    let title: String = title.chars().take(TITLE_CHARS).collect();
    let body = format!("{}\n\n{mark}", cut(body, LONGEST_BODY));
    let order = json!({ "title": title, "body": body, "labels": labels });
    let filed: Result<WireIssue, _> =
        hosted.dev.read(&hosted.request(OPERATION, Method::Post, &["issues"]).body(&order));
    filed.map(|issue| issue.number).map_err(|error| {
        forge.forget_labels();
        told(error)
    })
}

/// Adds and removes what is not so yet, and answers the names that are there afterwards, sorted.
pub(super) fn change_labels<D: Dialect + ?Sized>(
    forge: &D,
    number: Number,
    add: &[String],
    remove: &[String],
) -> Result<Vec<String>, Error> {
    let (hosted, issue) = (forge.hosted(), number.to_string());
    let path = ["issues", &issue, "labels"];
    let there: Vec<Label> = if add.is_empty() {
        hosted.belongings(&hosted.get(LABELS, &path))?
    } else {
        let named = add.iter().map(|name| forge.label_to_add(name)).collect::<Result<Vec<_>, _>>()?;
        // Adding twice is adding once. The answer has all of them.
        let order =
            hosted.request(LABELS, Method::Post, &path).body(&json!({ "labels": named })).repeatable();
        hosted.dev.read(&order).map_err(|error| {
            forge.forget_labels();
            told(error)
        })?
    };
    let (unwanted, left): (Vec<Label>, Vec<Label>) =
        there.into_iter().partition(|label| remove.contains(&label.name));
    for label in &unwanted {
        let path = ["issues", &issue, "labels", &forge.label_to_remove(label)];
        match hosted.dev.send(&hosted.request(LABELS, Method::Delete, &path)) {
            Err(error) if error.status() != Some(404) => return Err(told(error)),
            Ok(_) | Err(_) => {}
        }
    }
    let names: BTreeSet<String> = left.into_iter().map(|label| label.name).collect();
    Ok(names.into_iter().collect())
}
