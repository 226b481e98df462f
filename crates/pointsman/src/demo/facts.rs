//! Facts about a finished task: from the store, the forge's commands and git.

use pointsman_core::forge::IssueState;
use pointsman_view::forge::{Issue, PullRequest, Url};

use super::people::{Filed, Part};
use super::stage::Stage;
use super::verdict::Facts;
use super::watch::Seen;

/// Collects what is true of one task.
pub(super) fn gather(stage: &Stage, remote: &Remote, filed: &Filed, seen: &Seen) -> anyhow::Result<Facts> {
    let Part { project, issue } = filed.part;
    let issue: Issue = stage.pointsman_in(project, &["forge", "issue", "show", &issue.to_string()])?;
    let mut facts = Facts {
        states: seen.states.clone(),
        sessions: seen.sessions.len(),
        exits: seen.sessions.iter().map(|s| s.exit).collect(),
        started: seen.started,
        closed: seen.closed,
        gave_up: seen.gave_up.clone(),
        leftovers: stage.state_files(filed.part)?,
        issue_open: issue.state == IssueState::Open,
        labels: issue.labels,
        comments: issue.comments.into_iter().map(|comment| comment.body).collect(),
        action: seen.action,
        rung: stage.rung(),
        ..Facts::default()
    };
    for (path, line) in filed.act.ends.lines {
        facts.lines_on_main.push(remote.has_line(stage, path, line));
    }
    let Some(task) = &seen.task else { return Ok(facts) };
    facts.state = Some(task.state);
    facts.reason.clone_from(&task.reason);
    facts.ci_runs = task.contribution.ci_run;
    facts.pr = task.contribution.pr();
    facts.on_main = task.contribution.merged_as().is_some_and(|sha| remote.has_commit(stage, sha.as_str()));
    if let Some(pr) = task.contribution.pr() {
        let pr: PullRequest = stage.pointsman_in(project, &["forge", "pr", "show", &pr.to_string()])?;
        facts.reviewers = pr.reviews.into_iter().map(|review| review.author).collect();
        facts.pr_merged = pr.merged;
    }
    Ok(facts)
}

/// The forge's repository.
pub(super) struct Remote {
    git_dir: String,
}

impl Remote {
    /// Asks where it is.
    pub(super) fn find(stage: &Stage, project: &str) -> anyhow::Result<Self> {
        let Url { url } = stage.pointsman_in(project, &["forge", "url"])?;
        Ok(Self { git_dir: format!("--git-dir={}", url.display()) })
    }

    fn has_commit(&self, stage: &Stage, sha: &str) -> bool {
        stage.git(&[&self.git_dir, "merge-base", "--is-ancestor", sha, "refs/heads/main"]).is_ok()
    }

    fn has_line(&self, stage: &Stage, path: &str, line: &str) -> bool {
        let file = stage.git(&[&self.git_dir, "cat-file", "blob", &format!("refs/heads/main:{path}")]);
        file.is_ok_and(|text| text.lines().any(|l| l == line))
    }
}
