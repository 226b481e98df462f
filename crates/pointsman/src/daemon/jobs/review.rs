//! A review by a program of the project.

use std::sync::Arc;

use pointsman_adapters::phase_file;
use pointsman_core::ids::{Number, Sha, TaskKey};
use pointsman_core::task::{Event, ReviewVerdict};
use serde::Deserialize;

use super::program::Program;
use super::{Jobs, slug};
use crate::daemon::engine::Input;
use crate::daemon::inbound::Inbound;
use crate::daemon::served::Served;

/// An unusable answer is asked for once more.
const TRIES: u32 = 2;
/// How much a reviewer may write.
const RESULT_BYTES: u64 = 1 << 20;

/// A review of one commit.
pub(super) struct Review {
    pub(super) key: TaskKey,
    pub(super) pr: Number,
    pub(super) sha: Sha,
    pub(super) command: Vec<String>,
}

/// What a reviewer writes into its result file.
#[derive(Deserialize)]
struct Answer {
    verdict: Verdict,
    #[serde(default)]
    verdict_reason: String,
    #[serde(default)]
    review_markdown: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Verdict {
    Approve,
    RequestChanges,
    Discuss,
}

impl Review {
    pub(super) fn name(&self) -> String {
        slug(&self.key, &format!("review-{}", self.sha.short()))
    }

    pub(super) fn run(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) {
        if self.is_reviewed(served) {
            return;
        }
        let Some(_runner) = jobs.runner(served) else { return };
        let mut last_error = String::new();
        for _ in 0..TRIES {
            match self.ask(jobs, served) {
                // Posted, or the daemon stops and it is asked again at the next start.
                Ok(_) => return,
                Err(error) => last_error = format!("{error:#}"),
            }
        }
        let event = Event::EffectGaveUp { effect: "request_review".to_owned(), error: last_error };
        jobs.inbox.tell(Input::new(self.key.clone(), event));
    }

    fn is_reviewed(&self, served: &Served) -> bool {
        let pr = served.forge.pull_request(self.pr).ok().flatten();
        pr.is_some_and(|pr| pr.reviews.iter().any(|r| r.sha == self.sha && !r.dismissed))
    }

    fn ask(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) -> anyhow::Result<bool> {
        let result = served.paths.checkouts().join(format!("{}.json", self.name()));
        let _ = std::fs::remove_file(&result);
        let program = Program {
            name: self.name(),
            command: &self.command,
            sha: &self.sha,
            env: vec![
                ("PROJECT_NAME", self.key.project.to_string()),
                ("ISSUE", self.key.issue.to_string()),
                ("POINTSMAN_PR", self.pr.to_string()),
                ("POINTSMAN_BASE", served.primary.to_string()),
                ("POINTSMAN_RESULT_FILE", result.to_string_lossy().into_owned()),
            ],
            limit: served.config.timing.review_timeout.into(),
        };
        let ran = program.run(jobs, served)?;
        if ran.verdict("review").is_none() {
            return Ok(false);
        }
        let bytes = phase_file::read_result_file(&result, RESULT_BYTES);
        let _ = std::fs::remove_file(&result);
        let bytes =
            bytes?.ok_or_else(|| anyhow::anyhow!("the review program wrote no result ({})", ran.end))?;
        let answer: Answer = serde_json::from_slice(&bytes)
            .map_err(|e| anyhow::anyhow!("the review program's result is unusable: {e}"))?;
        let verdict = match answer.verdict {
            Verdict::Approve => ReviewVerdict::Approve,
            Verdict::RequestChanges => ReviewVerdict::RequestChanges,
            Verdict::Discuss => ReviewVerdict::Discuss,
        };
        let body = format!("{}\n\n{}", answer.verdict_reason, answer.review_markdown);
        served.forge.review_once(self.pr, &self.sha, verdict, body.trim())?;
        jobs.inbox.send(Inbound::AskForge { project: self.key.project.clone() });
        Ok(true)
    }
}
