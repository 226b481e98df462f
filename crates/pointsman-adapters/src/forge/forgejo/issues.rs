//! Issues and their comments.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use pointsman_core::forge::{Comment, Issue};
use pointsman_core::ids::Number;
use pointsman_core::words;
use serde_json::json;

use super::wire::{User, WireComment, WireIssue};
use super::{DEPENDENCIES_FOR, Forgejo, LONGEST_BODY, PAGE, PEOPLE_FOR, Version, cut, told};
use crate::forge::Error;
use crate::http::Method;

impl Forgejo {
    pub(super) fn list_open_issues(&self) -> Result<Vec<Issue>, Error> {
        let request = self.get("list issues", &["issues"]).query("state", "open").query("type", "issues");
        let listed: Vec<WireIssue> = self.dev.list(&request, PAGE).map_err(told)?;
        // By number: a list that changed between two pages may name one twice.
        let issues: BTreeMap<Number, WireIssue> =
            listed.into_iter().filter(|i| i.pull_request.is_none()).map(|i| (i.number, i)).collect();
        let mut known = self.known();
        known.updated = issues.iter().map(|(number, issue)| (*number, issue.updated_at.clone())).collect();
        known.dependencies.retain(|number, _| issues.contains_key(number));
        drop(known);
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

    /// All comments of an issue or a pull request, oldest first. The server gives them all at once.
    pub(super) fn read_comments(&self, number: Number) -> Result<Vec<Comment>, Error> {
        let request = self.get("read comments", &["issues", &number.to_string(), "comments"]);
        let listed: Option<Vec<WireComment>> = self.dev.read(&request).map_err(told)?;
        let plain = listed.unwrap_or_default().into_iter().map(|comment| comment.plain(self.host()));
        let mut comments: Vec<Comment> = plain.collect();
        comments.sort_by_key(|comment| comment.id);
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
        let reason =
            format!("it is assigned to {} afterwards", issue.assignee.as_deref().unwrap_or("nobody"));
        Err(Error::Refused { operation: OPERATION, reason })
    }

    /// Writes a comment that ends with our mark, unless one is there.
    pub(super) fn write_comment_once(&self, number: Number, marker: &str, body: &str) -> Result<(), Error> {
        let mark = words::comment::marker(marker);
        // Only the end counts: before it our comments quote what agents wrote, which may look like a mark.
        let ours = |c: &Comment| c.author == self.me() && c.body.trim_end().ends_with(&mark);
        if self.read_comments(number)?.iter().any(ours) {
            return Ok(());
        }
        let body = format!("{}\n\n{mark}", cut(body, LONGEST_BODY));
        let path = ["issues", &number.to_string(), "comments"];
        let order = self.request("comment", Method::Post, &path).body(&json!({ "body": body }));
        self.dev.send(&order).map(drop).map_err(told)
    }

    /// Native dependencies of an open issue, read again when the issue has changed.
    pub(super) fn read_dependencies(&self, number: Number) -> Result<Vec<Number>, Error> {
        if !self.version().is_some_and(Version::has_dependencies) {
            return Ok(Vec::new());
        }
        let updated = self.known().updated.get(&number).cloned().unwrap_or_default();
        if let Some((at, read, known)) = self.known().dependencies.get(&number)
            && *at == updated
            && read.elapsed() < DEPENDENCIES_FOR
        {
            return Ok(known.clone());
        }
        let request = self.get("read dependencies", &["issues", &number.to_string(), "dependencies"]);
        let listed = match self.dev.list::<WireIssue>(&request, PAGE) {
            Ok(listed) => listed,
            // They are switched off for this repository.
            Err(error) if error.status() == Some(404) => Vec::new(),
            Err(error) => return Err(told(error)),
        };
        let numbers: Vec<Number> = listed.into_iter().map(|issue| issue.number).collect();
        self.known().dependencies.insert(number, (updated, Instant::now(), numbers.clone()));
        Ok(numbers)
    }

    /// Whether somebody's word counts: those who may be assigned are those who may write.
    pub(super) fn has_a_say(&self, who: &str) -> Result<bool, Error> {
        if let Some((read, people)) = &self.known().people
            && read.elapsed() < PEOPLE_FOR
        {
            return Ok(people.contains(who));
        }
        let listed: Option<Vec<User>> =
            self.dev.read(&self.get("read who may write", &["assignees"])).map_err(told)?;
        let people: BTreeSet<String> =
            listed.unwrap_or_default().into_iter().map(|user| user.login).collect();
        let has = people.contains(who);
        self.known().people = Some((Instant::now(), people));
        Ok(has)
    }
}
