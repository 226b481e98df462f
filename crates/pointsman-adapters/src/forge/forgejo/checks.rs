//! Commit statuses, by whichever CI wrote them.

use pointsman_core::forge::{Check, CheckState};
use pointsman_core::ids::Sha;
use serde_json::json;

use super::wire::{Combined, Status};
use super::{Forgejo, PAGE, told};
use crate::forge::Error;
use crate::http::Method;

/// Pages of statuses of one commit, at most: nobody has this many checks.
const PAGES: usize = 20;

impl Forgejo {
    /// The newest status of each context.
    pub(super) fn read_statuses(&self, sha: &Sha) -> Result<Vec<Check>, Error> {
        let mut all: Vec<Status> = Vec::new();
        for page in 1..=PAGES {
            let request = self.get("read checks", &["commits", sha.as_str(), "status"]);
            let found: Option<Combined> =
                self.dev.find(&request.query("page", page).query("limit", PAGE)).map_err(told)?;
            let Some(combined) = found else { break };
            let got = combined.statuses.len();
            all.extend(combined.statuses);
            if got == 0 || all.len() >= combined.total_count {
                break;
            }
        }
        let mut checks: Vec<Check> = all.into_iter().map(Status::plain).collect();
        checks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(checks)
    }

    /// Writes a status of ours, unless it is so.
    pub(super) fn write_status(&self, sha: &Sha, name: &str, state: CheckState) -> Result<(), Error> {
        if self.read_statuses(sha)?.iter().any(|check| check.name == name && check.state == state) {
            return Ok(());
        }
        let word = match state {
            CheckState::Success => "success",
            CheckState::Failure => "failure",
            CheckState::Pending => "pending",
        };
        let body = json!({ "context": name, "state": word, "description": "Pointsman" });
        // The newest counts; a second one says the same.
        let order = self.request("write a check", Method::Post, &["statuses", sha.as_str()]).body(&body);
        self.dev.send(&order.repeatable()).map(drop).map_err(told)
    }
}
