//! The checks of a commit by pipelines and others, with the logs of failed jobs.

use pointsman_core::forge::{Check, CheckState};
use pointsman_core::ids::Sha;
use serde_json::json;

use super::Gitlab;
use super::wire::Status;
use crate::forge::Error;
use crate::forge::hosted::errors::told;
use crate::http::Method;

/// How much of the end of a job's log is told.
const LOG_CHARS: usize = 8_000;
/// Logs that are read for one commit: more than this nobody reads.
const LOGS: usize = 5;

impl Gitlab {
    /// The newest of each name: jobs of pipelines, and what other services reported.
    fn statuses(&self, sha: &Sha) -> Result<Vec<Status>, Error> {
        let request = self.get("read checks", &["repository", "commits", sha.as_str(), "statuses"]);
        match self.dev.list(&request, super::PAGE) {
            // Nobody has pushed it yet.
            Err(error) if error.status() == Some(404) => Ok(Vec::new()),
            listed => {
                let mut listed: Vec<Status> = listed.map_err(told)?;
                listed.sort_by(|a, b| a.name.cmp(&b.name).then(b.id.cmp(&a.id)));
                listed.dedup_by(|later, first| later.name == first.name);
                Ok(listed)
            }
        }
    }

    /// What is said about exactly this commit.
    pub(super) fn read_checks(&self, sha: &Sha) -> Result<Vec<Check>, Error> {
        let mut logs = 0;
        let mut checks = Vec::new();
        for status in self.statuses(sha)? {
            let is_red = status.state() == CheckState::Failure;
            logs += usize::from(is_red);
            let log = if is_red && logs <= LOGS { self.log_of(status.id) } else { String::new() };
            checks.push(status.plain(&log));
        }
        Ok(checks)
    }

    /// The end of a job's log. What another service reported has none, and its number may be nobody's.
    fn log_of(&self, job: u64) -> String {
        let request = self.get("read a log", &["jobs", &job.to_string(), "trace"]).text();
        let Ok(answer) = self.dev.send(&request) else { return String::new() };
        let text = answer.text();
        let skipped = text.chars().count().saturating_sub(LOG_CHARS);
        text.chars().skip(skipped).collect()
    }

    /// Writes a status of ours, unless it is so.
    pub(super) fn write_status(&self, sha: &Sha, name: &str, state: CheckState) -> Result<(), Error> {
        if self.statuses(sha)?.iter().any(|status| status.name == name && status.state() == state) {
            return Ok(());
        }
        let word = match state {
            CheckState::Success => "success",
            CheckState::Failure => "failed",
            CheckState::Pending => "pending",
        };
        let body = json!({ "name": name, "state": word, "description": "Pointsman" });
        let order = self.request("write a check", Method::Post, &["statuses", sha.as_str()]).body(&body);
        self.dev.send(&order.repeatable()).map(drop).map_err(told)
    }
}
