//! Deeds of roles and runs on the forge. Each first looks at what is there: after a crash every deed may have been done.

use anyhow::Context;
use pointsman_adapters::forge;
use pointsman_core::action::{self, Report};
use pointsman_core::deed::{Act, Ending, Tend};
use pointsman_core::forge::IssueState;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::labels::{ACTION, BACKLOG, IN_PROGRESS, has};
use pointsman_core::notifier::Posting;
use pointsman_core::review::Answer;
use pointsman_core::run::Run;
use pointsman_core::task::State;
use pointsman_core::words;
use pointsman_core::workflow::{Event, Workflow};

use super::{EffectError, EffectPerformer, Outcome, notify};
use crate::daemon::crash::crash_point;
use crate::daemon::inbound::ThreadReport;
use crate::daemon::served::Served;
use crate::daemon::{actions, reviews};

const DONE: Ending = Ending::Done { filed: None };

impl EffectPerformer {
    /// Does a deed, or finds that it was done. What is gone needs none; what the forge refuses ends.
    pub(super) fn deed(
        &self,
        served: &Served,
        owner: &Workflow,
        key: &str,
        name: &str,
        act: &Act,
    ) -> Result<Outcome, EffectError> {
        let ending = match self.act(served, owner, key, act) {
            Ok(ending) => ending,
            Err(error) => judge(act, &error)?,
        };
        Ok(Outcome::learned(Event::deed_ended(&owner.id(), name, ending)))
    }

    fn act(&self, served: &Served, owner: &Workflow, key: &str, act: &Act) -> anyhow::Result<Ending> {
        let forge = &served.forge;
        match act {
            Act::Tend(tend) => tend_to(served, tend),
            Act::File { marker, title, body, labels } => {
                let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
                let filed = forge.file_issue_once(marker, title, body, &labels)?;
                Ok(Ending::Done { filed: Some(filed) })
            }
            Act::Tell { issue, notice } => {
                self.put_up(&Posting {
                    key: key.to_owned(),
                    project: served.config.name.clone(),
                    topic: notify::topic(owner),
                    link: Some(forge.issue_link(*issue)),
                    question: None,
                    notice: notice.clone(),
                })?;
                Ok(DONE)
            }
            Act::Remark { pr, marker, body } => {
                forge.comment_on_pull_request_once(*pr, marker, body)?;
                Ok(DONE)
            }
            Act::AskOnIssue { issue } => {
                // One that is settled meanwhile is not asked.
                let Some((asked, id)) = owner.question().and_then(|asked| Some((asked, asked.id?))) else {
                    return Ok(Ending::Gone);
                };
                forge.comment_once(
                    *issue,
                    &actions::question_marker(id),
                    &words::comment::run_asks(asked),
                )?;
                Ok(DONE)
            }
            Act::PostReview { pr, head } => self.post_review(served, run_of(owner)?, *pr, head),
            Act::ReportAction { issue } => self.report_action(served, run_of(owner)?, *issue),
        }
    }

    /// Posts what a run has written about the head of a pull request, unless that has moved on.
    fn post_review(&self, served: &Served, run: &Run, pr: Number, head: &Sha) -> anyhow::Result<Ending> {
        let Some(pr) = served.forge.pull_request(pr)? else { return Ok(Ending::Gone) };
        if pr.head_sha.as_ref() != Some(head) || pr.state == IssueState::Closed || pr.merged {
            return Ok(Ending::Gone);
        }
        let answer = Answer::read(run.result.as_ref()).map_err(anyhow::Error::msg)?;
        let tasks = self.read(|store| store.tasks(Some(&served.config.name)))?;
        let is_of = |task: &&pointsman_core::task::Task| {
            task.contribution.branch == pr.head && task.state != State::Closed
        };
        let issue = tasks.iter().find(is_of).map(|task| task.key.issue);
        let examined = reviews::examine(served, &pr, head, issue)?;
        reviews::post(served, pr.number, head, &answer, &examined)?;
        self.ask_forge(served);
        Ok(DONE)
    }

    /// With commits the issue becomes the dev agent's, which begins from them; without, it is closed.
    fn report_action(&self, served: &Served, run: &Run, issue: Number) -> anyhow::Result<Ending> {
        let report = Report::read(run.result.as_ref()).map_err(anyhow::Error::msg)?;
        let main = served.mirror.remote_head(&served.primary)?;
        let main = main.with_context(|| words::daemon::git::no_branch(&served.primary))?;
        let kept = actions::handed_on(served, issue, &main)?;
        let comment = match &kept {
            Some(head) => words::action::handed_on(run.id, &report, served.mirror.ahead(&main, head)?),
            None => words::action::done(run.id, &report),
        };
        let add = kept.iter().map(|_| BACKLOG.to_owned()).collect();
        let remove = vec![ACTION.to_owned(), IN_PROGRESS.to_owned()];
        let marker = action::report_marker(run);
        let close = kept.is_none();
        let ended = tend_to(served, &Tend { issue, marker, comment: Some(comment), add, remove, close })?;
        self.ask_forge(served);
        Ok(ended)
    }

    fn ask_forge(&self, served: &Served) {
        self.jobs.inbox.report(ThreadReport::AskForge { project: served.config.name.clone() });
    }
}

/// An issue that is closed is left alone. If our comment is there, it was closed by this very deed.
fn tend_to(served: &Served, tend: &Tend) -> anyhow::Result<Ending> {
    let forge = &served.forge;
    let Some(issue) = forge.issue(tend.issue)? else { return Ok(Ending::Gone) };
    if issue.state == IssueState::Closed {
        let mark = words::comment::marker(&tend.marker);
        let ours = |author: &str, body: &str| author == forge.me() && body.trim_end().ends_with(&mark);
        let done = tend.close && issue.comments.iter().any(|comment| ours(&comment.author, &comment.body));
        return Ok(if done { DONE } else { Ending::Gone });
    }
    if let Some(comment) = &tend.comment {
        forge.comment_once(tend.issue, &tend.marker, comment)?;
    }
    crash_point("deed-begun");
    if !tend.add.is_empty() || !tend.remove.is_empty() {
        let labels = forge.set_labels(tend.issue, &tend.add, &tend.remove)?;
        let as_ordered = tend.add.iter().all(|label| has(&labels, label))
            && !tend.remove.iter().any(|label| has(&labels, label));
        anyhow::ensure!(as_ordered, words::daemon::issue::labels_read_back(&labels));
    }
    if tend.close {
        forge.close_issue(tend.issue)?;
    }
    Ok(DONE)
}

/// What a failed deed means. Only the forge's own word ends it: whatever else stands in the way may pass.
fn judge(act: &Act, error: &anyhow::Error) -> Result<Ending, EffectError> {
    match error.chain().find_map(|cause| cause.downcast_ref::<forge::Error>()) {
        Some(forge::Error::NotFound { .. }) if !matches!(act, Act::File { .. }) => Ok(Ending::Gone),
        Some(refused @ (forge::Error::NotFound { .. } | forge::Error::Refused { .. })) => {
            Err(EffectError::never(refused))
        }
        Some(_) | None => Err(EffectError::later(format!("{error:#}"))),
    }
}

fn run_of(owner: &Workflow) -> anyhow::Result<&Run> {
    match owner {
        Workflow::Run(run) => Ok(run),
        Workflow::Task(_)
        | Workflow::Vault(_)
        | Workflow::Concern(_)
        | Workflow::Role(_)
        | Workflow::Notifier(_) => {
            anyhow::bail!(words::daemon::process::not_its_effect(&owner.id().identity(), "deed"))
        }
    }
}
