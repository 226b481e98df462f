//! A review by a program of the project.

use std::sync::Arc;

use anyhow::Context;
use pointsman_adapters::git::checkout::remove_checkout;
use pointsman_adapters::phase_file;
use pointsman_core::ids::{Number, ProjectName, Sha, TaskKey};
use pointsman_core::review::Answer;
use pointsman_core::run::{RESULT_BYTES, read_result};
use pointsman_core::words;

use super::program::Program;
use super::{Jobs, slug};
use crate::daemon::inbound::ThreadReport;
use crate::daemon::reviews;
use crate::daemon::served::Served;

/// An unusable answer is asked for once more.
const TRIES: u32 = 2;

/// A review of one commit.
pub(super) struct Review {
    pub(super) project: ProjectName,
    /// The issue it is for, if it is a task's.
    pub(super) issue: Option<Number>,
    pub(super) pr: Number,
    pub(super) sha: Sha,
    pub(super) command: Vec<String>,
}

impl Review {
    pub(super) fn name(&self) -> String {
        let (project, sha) = (&self.project, self.sha.short());
        match self.issue {
            Some(issue) => {
                slug(&TaskKey { project: project.clone(), issue }.into(), &format!("review-{sha}"))
            }
            None => format!("{project}-pr-{}-review-{sha}", self.pr),
        }
    }

    /// Asks until there is an answer that can be used, or says why there is none.
    pub(super) fn run(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) -> Result<(), String> {
        if self.is_reviewed(served) {
            return Ok(());
        }
        let Some(_runner) = jobs.runner(served) else { return Ok(()) };
        let mut last_error = String::new();
        for _ in 0..TRIES {
            match self.ask(jobs, served) {
                // Posted, or the daemon stops and it is asked again at the next start.
                Ok(_) => return Ok(()),
                Err(error) => last_error = format!("{error:#}"),
            }
        }
        Err(last_error)
    }

    fn is_reviewed(&self, served: &Served) -> bool {
        let pr = served.forge.pull_request(self.pr).ok().flatten();
        pr.is_some_and(|pr| pr.reviews.iter().any(|r| r.sha == self.sha && !r.dismissed))
    }

    fn ask(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) -> anyhow::Result<bool> {
        // A directory, so that the answer may also be moved into its place.
        let answer = served.paths.checkouts().join(format!("{}.answer", self.name()));
        remove_checkout(&answer)?;
        std::fs::create_dir(&answer)?;
        let result = answer.join("result.json");
        let mut env = vec![
            ("PROJECT_NAME", self.project.to_string()),
            ("POINTSMAN_PR", self.pr.to_string()),
            ("POINTSMAN_BASE", served.primary.to_string()),
            ("POINTSMAN_RESULT_FILE", result.to_string_lossy().into_owned()),
        ];
        env.extend(self.issue.map(|issue| ("ISSUE", issue.to_string())));
        let program = Program {
            name: self.name(),
            command: &self.command,
            sha: &self.sha,
            env,
            answer: Some(&answer),
            limit: served.config.timing.review_timeout.into(),
        };
        let ran = program.run(jobs, served)?;
        if ran.verdict("review").is_none() {
            return Ok(false);
        }
        let bytes = phase_file::read_result_file(&result, RESULT_BYTES as u64);
        if let Err(error) = remove_checkout(&answer) {
            tracing::warn!(dir = %answer.display(), %error, "left an answer");
        }
        let bytes = bytes?.with_context(|| words::daemon::review::no_result(ran.end))?;
        let unusable = |why: String| anyhow::anyhow!(words::daemon::review::unusable_result(&why));
        let result = read_result(Some(&bytes)).map_err(unusable)?;
        let answer = Answer::read(result.as_ref()).map_err(unusable)?;
        let pr = served.forge.pull_request(self.pr)?;
        let pr = pr.with_context(|| words::daemon::review::pull_request_is_gone(self.pr))?;
        let examined = reviews::examine(served, &pr, &self.sha, self.issue)?;
        reviews::post(served, self.pr, &self.sha, &answer, &examined)?;
        jobs.inbox.report(ThreadReport::AskForge { project: self.project.clone() });
        Ok(true)
    }
}
