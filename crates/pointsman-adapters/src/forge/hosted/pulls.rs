//! Pull requests and what became of them.

use std::collections::BTreeMap;

use pointsman_core::forge::{IssueState, PullRequest};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::words;
use serde_json::json;

use super::errors::{LONGEST_BODY, TITLE_CHARS, cut, landed_as, landed_mark, told};
use super::wire::{Branch, WirePull};
use super::{Dialect, Hosted, reviews};
use crate::forge::Error;
use crate::http::Method;

/// What telling a server of a landing is called.
pub(in crate::forge) const MERGE: &str = "record a merge";

/// The newest pull request between two branches of this very repository, in this state.
fn find<D: Dialect + ?Sized>(
    forge: &D,
    head: &str,
    base: &str,
    state: &str,
) -> Result<Option<WirePull>, Error> {
    let hosted = forge.hosted();
    let question = hosted.get("list pull requests", &["pulls"]).query("state", state);
    let listed: Vec<WirePull> = hosted.list(&forge.between(question, head, base))?;
    let ours = |pr: &WirePull| hosted.is_ours(pr) && pr.head.r#ref == head && pr.base.r#ref == base;
    Ok(listed.into_iter().filter(ours).max_by_key(|pr| pr.number))
}

/// The newest between two branches, open ones first.
pub(super) fn newest<D: Dialect + ?Sized>(
    forge: &D,
    head: &str,
    base: &str,
) -> Result<Option<PullRequest>, Error> {
    let found = match find(forge, head, base, "open")? {
        Some(open) => Some(open),
        None => find(forge, head, base, "closed")?,
    };
    found.map(|wire| complete(forge, wire)).transpose()
}

/// The open one between two branches: found, or opened.
pub(super) fn open<D: Dialect + ?Sized>(
    forge: &D,
    head: &str,
    base: &str,
    title: &str,
    body: &str,
) -> Result<Number, Error> {
    // Asked for at once: between the same two branches the server takes only one.
    let hosted = forge.hosted();
    let title: String = title.chars().take(TITLE_CHARS).collect();
    let body = json!({ "head": head, "base": base, "title": title, "body": cut(body, LONGEST_BODY) });
    let order = hosted.request("open a pull request", Method::Post, &["pulls"]).body(&body);
    match hosted.dev.read::<WirePull>(&order) {
        Ok(opened) => Ok(opened.number),
        // Somebody was faster, or an earlier answer got lost; or there is nothing to pull.
        Err(error) if error.status() == Some(hosted.manner.taken) => {
            find(forge, head, base, "open")?.map(|open| open.number).ok_or_else(|| told(error))
        }
        Err(error) => Err(told(error)),
    }
}

/// One as it stands.
pub(super) fn read<D: Dialect + ?Sized>(forge: &D, number: Number) -> Result<Option<PullRequest>, Error> {
    forge.hosted().read_pull(number)?.map(|wire| complete(forge, wire)).transpose()
}

/// With its reviews, unless it is merged: then nobody asks what they were.
fn complete<D: Dialect + ?Sized>(forge: &D, wire: WirePull) -> Result<PullRequest, Error> {
    let mut pr = settled(forge.hosted(), wire)?;
    if !pr.merged {
        pr.reviews = reviews::of(forge, &pr)?;
    }
    Ok(pr)
}

/// Without its reviews; with what we noted about it where the server shows no merge.
fn settled(hosted: &Hosted, wire: WirePull) -> Result<PullRequest, Error> {
    let mut pr = wire.plain();
    if pr.state == IssueState::Closed
        && !pr.merged
        && let Some(sha) = landed_as(&hosted.read_comments(pr.number)?, hosted.me())
    {
        pr.merged = true;
        pr.merge_sha = Some(sha);
    }
    Ok(pr)
}

/// Tells the server that the work is on the base branch: it shows that itself, or a comment of ours does, and the pull
/// request is closed.
pub(super) fn record<D: Dialect + ?Sized>(forge: &D, number: Number, sha: &Sha) -> Result<(), Error> {
    if forge.show_merge(number, sha)? {
        return Ok(());
    }
    let hosted = forge.hosted();
    let Some(wire) = hosted.read_pull(number)? else {
        return Err(Error::NotFound { what: format!("pull request #{number}") });
    };
    if settled(hosted, wire)?.merged {
        return Ok(());
    }
    hosted.write_comment_once(number, &landed_mark(sha), &words::comment::landed(sha))?;
    let path = ["pulls", &number.to_string()];
    let order = hosted.request(MERGE, Method::Patch, &path).body(&json!({ "state": "closed" }));
    hosted.dev.send(&order).map(drop).map_err(told)
}

impl Hosted {
    /// All open ones between branches of this repository, oldest first.
    pub(super) fn open_pulls(&self) -> Result<Vec<PullRequest>, Error> {
        let question = self.get("list pull requests", &["pulls"]).query("state", "open");
        let listed: Vec<WirePull> = self.list(&question)?;
        let ours = listed.into_iter().filter(|pr| self.is_ours(pr));
        // By number: a list that changed between two pages may name one twice.
        let ours: BTreeMap<Number, PullRequest> = ours.map(|pr| (pr.number, pr.plain())).collect();
        Ok(ours.into_values().filter(|pr| pr.state == IssueState::Open).collect())
    }

    /// Whether its head is a branch of this very repository: one of a fork may have the same name.
    pub(in crate::forge) fn is_ours(&self, pr: &WirePull) -> bool {
        pr.head.repo.as_ref().is_none_or(|repo| self.is_here(&repo.full_name))
    }

    /// As the server says it.
    pub(in crate::forge) fn read_pull(&self, number: Number) -> Result<Option<WirePull>, Error> {
        let request = self.get("read a pull request", &["pulls", &number.to_string()]);
        self.dev.find(&request).map_err(told)
    }

    pub(super) fn read_branch(&self, branch: &str) -> Result<Option<Sha>, Error> {
        let found: Option<Branch> =
            self.dev.find(&self.get("read a branch", &["branches", branch])).map_err(told)?;
        Ok(found.and_then(|branch| branch.commit.sha()))
    }
}
