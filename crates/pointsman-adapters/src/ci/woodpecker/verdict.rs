//! The verdict of a commit's pipelines.

use pointsman_core::ids::Sha;
use pointsman_core::task::CiVerdict;
use pointsman_core::verdict::{FailedStep, of_steps};

use super::{Error, Pipeline, Status, Step, Woodpecker};

/// The server's word on a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitVerdict {
    /// None as long as it is open.
    pub verdict: Option<CiVerdict>,
    /// A step failed and has printed nothing. Woodpecker stores a log a moment after the status, so it is worth another
    /// look; some steps print nothing at all.
    pub lacks_log: bool,
}

impl Woodpecker {
    /// The verdict on exactly this commit; nothing as long as it is open. Of several runs for one event the newest
    /// counts.
    pub fn verdict(&self, sha: &Sha) -> Result<Option<CiVerdict>, Error> {
        Ok(self.look(sha)?.verdict)
    }

    /// The verdict on exactly this commit, and whether its logs are there.
    pub fn look(&self, sha: &Sha) -> Result<CommitVerdict, Error> {
        let newest = newest_by_event(self.pipelines_of(sha)?);
        if newest.is_empty() || newest.iter().any(|pipeline| !is_over(pipeline.status)) {
            return Ok(CommitVerdict { verdict: None, lacks_log: false });
        }
        let mut failed = Vec::new();
        for pipeline in newest.iter().filter(|pipeline| pipeline.status.is_red()) {
            failed.extend(self.failures(pipeline.number)?);
        }
        let ran = newest.iter().any(|pipeline| pipeline.status != Status::Skipped);
        let lacks_log = failed.iter().any(|step| !step.ended && step.log.trim().is_empty());
        Ok(CommitVerdict { verdict: ran.then(|| of_steps(&failed)), lacks_log })
    }

    /// Runs what failed for this commit once more; answers the numbers of the new runs.
    pub fn restart_red(&self, sha: &Sha) -> Result<Vec<u64>, Error> {
        let newest = newest_by_event(self.pipelines_of(sha)?);
        newest
            .iter()
            .filter(|pipeline| pipeline.status.is_red())
            .map(|red| self.restart(red.number))
            .collect()
    }

    /// The steps of a pipeline that failed, with their logs.
    pub fn failures(&self, number: u64) -> Result<Vec<FailedStep>, Error> {
        let Some(pipeline) = self.pipeline(number)? else { return Ok(Vec::new()) };
        let mut failed = Vec::new();
        for workflow in &pipeline.workflows {
            let steps: Vec<&Step> = workflow.children.iter().filter(|step| step.state.is_red()).collect();
            for step in &steps {
                let name = format!("{}/{}", workflow.name, step.name);
                let mut log = self.log(number, step.id)?;
                if !step.error.is_empty() {
                    log.push_str(&format!("\n{}", step.error));
                }
                failed.push(failed_step(name, step.state, step.exit_code, log));
            }
            if steps.is_empty() && workflow.state.is_red() {
                failed.push(failed_step(workflow.name.clone(), workflow.state, 1, workflow.error.clone()));
            }
        }
        if failed.is_empty() {
            let wrong =
                pipeline.errors.iter().filter(|error| !error.is_warning).map(|error| error.message.as_str());
            let log = wrong.collect::<Vec<_>>().join("\n");
            failed.push(failed_step(format!("pipeline {number}"), pipeline.status, 1, log));
        }
        Ok(failed)
    }
}

fn failed_step(name: String, state: Status, exit: i32, log: String) -> FailedStep {
    // Ended by somebody, not by itself: it says nothing about the code.
    let ended = matches!(state, Status::Killed | Status::Canceled);
    FailedStep { name, exit: Some(exit), ended, log }
}

fn is_over(status: Status) -> bool {
    status.is_red() || matches!(status, Status::Success | Status::Skipped)
}

fn newest_by_event(pipelines: Vec<Pipeline>) -> Vec<Pipeline> {
    let mut newest: Vec<Pipeline> = Vec::new();
    for pipeline in pipelines {
        match newest.iter_mut().find(|known| known.event == pipeline.event) {
            Some(known) if known.number < pipeline.number => *known = pipeline,
            Some(_) => {}
            None => newest.push(pipeline),
        }
    }
    newest
}
