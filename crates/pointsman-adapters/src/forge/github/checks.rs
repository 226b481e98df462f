//! Commit statuses and check runs: two APIs, one list.

use pointsman_core::forge::{Check, CheckState};
use pointsman_core::ids::Sha;
use serde_json::json;

use super::wire::{CheckRun, CheckRuns, Combined, Status};
use super::{Github, PAGE, told};
use crate::forge::Error;
use crate::http::Method;

const READ: &str = "read checks";
/// Pages of checks of one commit, at most.
const PAGES: usize = 20;

impl Github {
    /// The newest of each status and each check run of exactly this commit.
    pub(super) fn read_checks(&self, sha: &Sha) -> Result<Vec<Check>, Error> {
        let mut checks = Vec::new();
        for page in 1..=PAGES {
            let request = self.get(READ, &["commits", sha.as_str(), "status"]);
            let found: Option<Combined> =
                self.dev.find(&request.query("page", page).query("per_page", PAGE)).map_err(told)?;
            // Nobody has pushed it yet.
            let Some(Combined { total_count, statuses }) = found else { return Ok(Vec::new()) };
            let got = statuses.len();
            checks.extend(statuses.into_iter().map(Status::plain));
            if got == 0 || page * PAGE >= total_count {
                break;
            }
        }
        for page in 1..=PAGES {
            let request = self.get(READ, &["commits", sha.as_str(), "check-runs"]);
            let found: Option<CheckRuns> =
                self.dev.find(&request.query("page", page).query("per_page", PAGE)).map_err(told)?;
            let CheckRuns { total_count, check_runs } = found.unwrap_or_default();
            let got = check_runs.len();
            checks.extend(check_runs.into_iter().map(CheckRun::plain));
            if got == 0 || page * PAGE >= total_count {
                break;
            }
        }
        checks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(checks)
    }

    /// Writes a status of ours, unless it is so.
    pub(super) fn write_status(&self, sha: &Sha, name: &str, state: CheckState) -> Result<(), Error> {
        if self.read_checks(sha)?.iter().any(|check| check.name == name && check.state == state) {
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
