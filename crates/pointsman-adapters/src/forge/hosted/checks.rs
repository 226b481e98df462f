//! The checks of a commit, by whichever service wrote it.

use pointsman_core::forge::{Check, CheckState};
use pointsman_core::ids::Sha;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::errors::told;
use super::wire::{Counted, Status};
use super::{Dialect, Hosted};
use crate::forge::Error;
use crate::http::Method;

/// Pages of checks of one commit, at most: nobody has this many.
const PAGES: usize = 20;

impl Hosted {
    /// The newest status of each context; none if the server does not know the commit.
    pub(in crate::forge) fn statuses(&self, sha: &Sha) -> Result<Option<Vec<Check>>, Error> {
        let found: Option<Vec<Status>> = self.about(sha, "status")?;
        Ok(found.map(|statuses| statuses.into_iter().map(Status::plain).collect()))
    }

    /// Everything of a kind that is said about a commit; none if the server does not know the commit.
    pub(in crate::forge) fn about<T: DeserializeOwned>(
        &self,
        sha: &Sha,
        kind: &str,
    ) -> Result<Option<Vec<T>>, Error> {
        let mut all: Vec<T> = Vec::new();
        for page in 1..=PAGES {
            let request = self.get("read checks", &["commits", sha.as_str(), kind]).query("page", page);
            // One of the two names is the server's; the other is none of its business.
            let request = request.query("limit", self.manner.page).query("per_page", self.manner.page);
            let found: Option<Counted<T>> = self.dev.find(&request).map_err(told)?;
            let Some(Counted { total_count, items }) = found else { return Ok(None) };
            let got = items.len();
            all.extend(items);
            if got == 0 || all.len() >= total_count {
                break;
            }
        }
        Ok(Some(all))
    }
}

/// Writes a status of ours, unless it is so.
pub(super) fn write_status<D: Dialect + ?Sized>(
    forge: &D,
    sha: &Sha,
    name: &str,
    state: CheckState,
) -> Result<(), Error> {
    if forge.read_checks(sha)?.iter().any(|check| check.name == name && check.state == state) {
        return Ok(());
    }
    let word = match state {
        CheckState::Success => "success",
        CheckState::Failure => "failure",
        CheckState::Pending => "pending",
    };
    let hosted = forge.hosted();
    let body = json!({ "context": name, "state": word, "description": "Pointsman" });
    // The newest counts; a second one says the same.
    let order = hosted.request("write a check", Method::Post, &["statuses", sha.as_str()]).body(&body);
    hosted.dev.send(&order.repeatable()).map(drop).map_err(told)
}
