//! Issues, their labels and comments.

use std::collections::BTreeMap;
use std::time::Instant;

use pointsman_core::forge::{Comment, Issue};
use pointsman_core::ids::Number;
use pointsman_core::labels;
use serde_json::json;

use super::wire::{Label, Permission, WireComment, WireIssue};
use super::{Github, PAGE, PEOPLE_FOR, told, unless_there};
use crate::forge::Error;
use crate::http::Method;

const LABELS: &str = "set labels";

impl Github {
    pub(super) fn list_open_issues(&self) -> Result<Vec<Issue>, Error> {
        let request = self.get("list issues", &["issues"]).query("state", "open");
        let listed: Vec<WireIssue> = self.dev.list(&request, PAGE).map_err(told)?;
        // By number: a list that changed between two pages may name one twice. Pull requests are issues here.
        let issues: BTreeMap<Number, WireIssue> =
            listed.into_iter().filter(|i| i.pull_request.is_none()).map(|i| (i.number, i)).collect();
        Ok(issues.into_values().map(|issue| issue.plain(self.host(), self.me())).collect())
    }

    pub(super) fn read_issue(&self, number: Number) -> Result<Option<Issue>, Error> {
        let found: Option<WireIssue> =
            self.dev.find(&self.get("read an issue", &["issues", &number.to_string()])).map_err(told)?;
        let Some(wire) = found.filter(|issue| issue.pull_request.is_none()) else { return Ok(None) };
        let silent = wire.comments == 0;
        let mut issue = wire.plain(self.host(), self.me());
        if !silent {
            issue.comments = self.read_comments(number)?;
        }
        Ok(Some(issue))
    }

    /// All comments of an issue or a pull request, oldest first.
    pub(super) fn read_comments(&self, number: Number) -> Result<Vec<Comment>, Error> {
        let request = self.get("read comments", &["issues", &number.to_string(), "comments"]);
        let listed: Vec<WireComment> = self.dev.list(&request, PAGE).map_err(told)?;
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
        change: &serde_json::Value,
    ) -> Result<Issue, Error> {
        let order = self.request(operation, Method::Patch, &["issues", &number.to_string()]).body(change);
        let changed: WireIssue = self.dev.read(&order).map_err(told)?;
        Ok(changed.plain(self.host(), self.me()))
    }

    pub(super) fn assign_to(&self, number: Number, who: Option<&str>) -> Result<(), Error> {
        const OPERATION: &str = "assign an issue";
        let people: Vec<&str> = who.into_iter().collect();
        let issue = self.change_issue(OPERATION, number, &json!({ "assignees": people }))?;
        if issue.assignee.as_deref() == who {
            return Ok(());
        }
        // GitHub leaves out whom it does not take, without a word.
        let reason =
            format!("it is assigned to {} afterwards", issue.assignee.as_deref().unwrap_or("nobody"));
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

    /// Adds and removes what is not so yet, and answers the names that are there afterwards, sorted.
    pub(super) fn change_labels(
        &self,
        number: Number,
        add: &[String],
        remove: &[String],
    ) -> Result<Vec<String>, Error> {
        let path = ["issues", &number.to_string(), "labels"];
        let read =
            || -> Result<Vec<Label>, Error> { self.dev.list(&self.get(LABELS, &path), PAGE).map_err(told) };
        let mut there = read()?;
        let missing: Vec<&String> = add.iter().filter(|n| !there.iter().any(|l| l.name == **n)).collect();
        if !missing.is_empty() {
            for name in &missing {
                self.ensure_label(name)?;
            }
            // Adding twice is adding once.
            let order =
                self.request(LABELS, Method::Post, &path).body(&json!({ "labels": missing })).repeatable();
            there = self.dev.read(&order).map_err(told)?;
        }
        let unwanted: Vec<String> = there
            .iter()
            .filter(|label| remove.contains(&label.name))
            .map(|label| label.name.clone())
            .collect();
        for name in &unwanted {
            let path = ["issues", &number.to_string(), "labels", name];
            match self.dev.send(&self.request(LABELS, Method::Delete, &path)) {
                Err(error) if error.status() != Some(404) => return Err(told(error)),
                Ok(_) | Err(_) => {}
            }
        }
        if !unwanted.is_empty() {
            there = read()?;
        }
        let mut names: Vec<String> = there.into_iter().map(|label| label.name).collect();
        names.sort();
        Ok(names)
    }

    /// Makes a label with its colour, unless it is there: GitHub would make a grey one.
    fn ensure_label(&self, name: &str) -> Result<(), Error> {
        if self.known().labels.contains(name) {
            return Ok(());
        }
        let found: Option<Label> =
            self.dev.find(&self.get("list labels", &["labels", name])).map_err(told)?;
        if found.is_none() {
            let (colour, description) = labels::look(name);
            let body =
                json!({ "name": name, "color": colour.trim_start_matches('#'), "description": description });
            match self.dev.send(&self.request("make a label", Method::Post, &["labels"]).body(&body)) {
                // 422: somebody was faster.
                Err(error) if error.status() != Some(422) => return Err(told(error)),
                Ok(_) | Err(_) => {}
            }
        }
        self.known().labels.insert(name.to_owned());
        Ok(())
    }

    /// Whether somebody may write to the repository.
    pub(super) fn has_a_say(&self, who: &str) -> Result<bool, Error> {
        if let Some((read, has)) = self.known().people.get(who)
            && read.elapsed() < PEOPLE_FOR
        {
            return Ok(*has);
        }
        let request = self.get("read who may write", &["collaborators", who, "permission"]);
        let found: Option<Permission> = self.dev.find(&request).map_err(told)?;
        let has =
            found.is_some_and(|found| matches!(found.permission.as_str(), "admin" | "maintain" | "write"));
        self.known().people.insert(who.to_owned(), (Instant::now(), has));
        Ok(has)
    }
}
