//! Issues, their labels and comments.

use std::collections::BTreeMap;

use pointsman_core::forge::{Comment, Issue};
use pointsman_core::ids::Number;
use pointsman_core::{labels, words};
use serde_json::{Value, json};

use super::Gitlab;
use super::wire::{Label, Note, User, WireIssue};
use crate::forge::Error;
use crate::forge::hosted::errors::{LONGEST_BODY, TITLE_CHARS, cut, told, unless_there};
use crate::http::{Method, Request};

/// Where comments are written.
#[derive(Clone, Copy)]
pub(super) enum Noteable {
    Issue(Number),
    MergeRequest(Number),
}

impl Noteable {
    fn path(self) -> [String; 3] {
        let (kind, number) = match self {
            Self::Issue(number) => ("issues", number),
            Self::MergeRequest(number) => ("merge_requests", number),
        };
        [kind.to_owned(), number.to_string(), "notes".to_owned()]
    }
}

impl Gitlab {
    /// All open issues, oldest first.
    pub(super) fn list_open_issues(&self) -> Result<Vec<WireIssue>, Error> {
        let question = self.get("list issues", &["issues"]).query("state", "opened").query("scope", "all");
        let listed: Vec<WireIssue> =
            self.list(&question.query("order_by", "created_at").query("sort", "asc"))?;
        // By number: a list that changed between two pages may name one twice.
        let listed: BTreeMap<Number, WireIssue> = listed.into_iter().map(|i| (i.iid, i)).collect();
        Ok(listed.into_values().collect())
    }

    pub(super) fn read_issue(&self, number: Number) -> Result<Option<Issue>, Error> {
        let request = self.get("read an issue", &["issues", &number.to_string()]);
        let found: Option<WireIssue> = self.dev.find(&request).map_err(told)?;
        let Some(wire) = found else { return Ok(None) };
        let silent = wire.user_notes_count == 0;
        let mut issue = wire.plain(self.host(), self.me());
        if !silent {
            issue.comments = self.read_comments(Noteable::Issue(number))?;
        }
        Ok(Some(issue))
    }

    /// All notes, also those of the server itself, oldest first.
    pub(super) fn read_notes(&self, of: Noteable) -> Result<Vec<Note>, Error> {
        let path = of.path();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let request = self.get("read comments", &path).query("order_by", "created_at").query("sort", "asc");
        let mut notes: Vec<Note> = self.list(&request)?;
        notes.sort_by_key(|note| note.id);
        notes.dedup_by_key(|note| note.id);
        Ok(notes)
    }

    /// What people and we wrote, oldest first.
    pub(super) fn read_comments(&self, of: Noteable) -> Result<Vec<Comment>, Error> {
        let notes = self.read_notes(of)?.into_iter().filter(|note| !note.system);
        Ok(notes.map(|note| note.plain(self.host())).collect())
    }

    /// Writes a comment that ends with our mark, unless one is there.
    pub(super) fn write_comment_once(&self, of: Noteable, marker: &str, body: &str) -> Result<(), Error> {
        let there = self.read_comments(of)?;
        let Some(body) = unless_there(&there, self.me(), marker, body) else { return Ok(()) };
        let path = of.path();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let order = self.request("comment", Method::Post, &path).body(&json!({ "body": body }));
        self.dev.send(&order).map(drop).map_err(told)
    }

    pub(super) fn change_issue(
        &self,
        operation: &'static str,
        number: Number,
        change: &Value,
    ) -> Result<Issue, Error> {
        let order = self.request(operation, Method::Put, &["issues", &number.to_string()]).body(change);
        let changed: WireIssue = self.dev.read(&order).map_err(told)?;
        Ok(changed.plain(self.host(), self.me()))
    }

    pub(super) fn assign_to(&self, number: Number, who: Option<&str>) -> Result<(), Error> {
        const OPERATION: &str = "assign an issue";
        let ids: Vec<u64> = match who {
            None => Vec::new(),
            Some(name) => vec![self.id_of(name)?],
        };
        // An empty list takes everybody away, and so does a zero on older servers.
        let wanted = if ids.is_empty() { vec![0] } else { ids };
        let issue = self.change_issue(OPERATION, number, &json!({ "assignee_ids": wanted }))?;
        match issue.assignee.as_deref() == who {
            true => Ok(()),
            // GitLab leaves out whom it does not take, without a word.
            false => {
                let reason =
                    format!("it is assigned to {} afterwards", issue.assignee.as_deref().unwrap_or("nobody"));
                Err(Error::Refused { operation: OPERATION, reason })
            }
        }
    }

    fn id_of(&self, name: &str) -> Result<u64, Error> {
        if let Some(names) = self.names.get()
            && names.me.username == name
        {
            return Ok(names.me.id);
        }
        let question = Request::get("find an account", &["users"]).query("username", name);
        let found: Vec<User> = self.dev.read(&question).map_err(told)?;
        let user = found.into_iter().find(|user| user.username.eq_ignore_ascii_case(name));
        user.map(|user| user.id).ok_or_else(|| Error::NotFound { what: format!("account `{name}`") })
    }

    /// Makes a label with its colour, unless it is there: GitLab would make one in a colour of its own.
    pub(super) fn ensure_label(&self, name: &str) -> Result<(), Error> {
        if self.known().labels.contains(name) {
            return Ok(());
        }
        let found: Option<Label> =
            self.dev.find(&self.get("list labels", &["labels", name])).map_err(told)?;
        if found.is_none_or(|label| label.name != name) {
            let (colour, description) = labels::look(name);
            let body = json!({ "name": name, "color": colour, "description": description });
            match self.dev.send(&self.request("make a label", Method::Post, &["labels"]).body(&body)) {
                // 409: somebody was faster.
                Err(error) if error.status() != Some(409) => return Err(told(error)),
                Ok(_) | Err(_) => {}
            }
        }
        self.known().labels.insert(name.to_owned());
        Ok(())
    }

    /// Adds and removes labels, and answers the names that are there afterwards, sorted.
    pub(super) fn change_labels(
        &self,
        number: Number,
        add: &[String],
        remove: &[String],
    ) -> Result<Vec<String>, Error> {
        add.iter().try_for_each(|name| self.ensure_label(name))?;
        let change = json!({ "add_labels": add.join(","), "remove_labels": remove.join(",") });
        Ok(self.change_issue("set labels", number, &change)?.labels)
    }

    /// Files an issue that ends with our mark, unless an open one of ours does.
    pub(super) fn file_once(
        &self,
        marker: &str,
        title: &str,
        body: &str,
        labels: &[&str],
    ) -> Result<Number, Error> {
        let mark = words::comment::marker(marker);
        let is_ours = |issue: &WireIssue| {
            issue.author.username == self.me() && issue.description.trim_end().ends_with(&mark)
        };
        if let Some(known) = self.list_open_issues()?.iter().find(|issue| is_ours(issue)) {
            return Ok(known.iid);
        }
        labels.iter().try_for_each(|name| self.ensure_label(name))?;
        let title: String = title.chars().take(TITLE_CHARS).collect();
        let body = format!("{}\n\n{mark}", cut(body, LONGEST_BODY));
        let order = json!({ "title": title, "description": body, "labels": labels.join(",") });
        let request = self.request("file an issue", Method::Post, &["issues"]).body(&order);
        self.dev.read::<WireIssue>(&request).map(|issue| issue.iid).map_err(told)
    }
}
