//! Facts about a finished task: from the store, the forge's commands and git.

use anyhow::Context;
use serde_json::Value;

use super::people::{Filed, Part};
use super::stage::Stage;
use super::verdict::Facts;
use super::watch::Seen;

/// Collects what is true of one task.
pub(super) fn gather(stage: &Stage, remote: &Remote, filed: &Filed, seen: &Seen) -> anyhow::Result<Facts> {
    let Part { project, issue } = filed.part;
    let issue = stage.pointsman_in(project, &["forge", "issue", "show", &issue.to_string()])?;
    let mut facts = Facts {
        states: seen.states.clone(),
        sessions: seen.sessions.len(),
        exits: seen.sessions.iter().map(|s| s.exit).collect(),
        started: seen.started,
        closed: seen.closed,
        gave_up: seen.gave_up.clone(),
        leftovers: stage.state_files(filed.part)?,
        issue_open: issue.get("state").and_then(Value::as_str) == Some("open"),
        labels: texts(&issue, "labels", |label| label.as_str()),
        comments: texts(&issue, "comments", |comment| comment.get("body")?.as_str()),
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
    facts.ci_runs = task.ci_run;
    facts.pr = task.pr;
    facts.on_main = task.merged_as.as_ref().is_some_and(|sha| remote.has_commit(stage, sha.as_str()));
    if let Some(pr) = task.pr {
        let pr = stage.pointsman_in(project, &["forge", "pr", "show", &pr.to_string()])?;
        facts.reviewers = texts(&pr, "reviews", |review| review.get("author")?.as_str());
        facts.pr_merged = pr.get("merged").and_then(Value::as_bool) == Some(true);
    }
    Ok(facts)
}

fn texts(value: &Value, key: &str, text: impl Fn(&Value) -> Option<&str>) -> Vec<String> {
    let list = value.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(|entry| text(entry).map(str::to_owned)).collect()
}

/// The forge's repository.
pub(super) struct Remote {
    git_dir: String,
}

impl Remote {
    /// Asks where it is.
    pub(super) fn find(stage: &Stage, project: &str) -> anyhow::Result<Self> {
        let answer = stage.pointsman_in(project, &["forge", "url"])?;
        let url = answer.as_str().or_else(|| answer.get("url")?.as_str()).context("the forge has no url")?;
        let path = url.strip_prefix("file://").unwrap_or(url);
        Ok(Self { git_dir: format!("--git-dir={path}") })
    }

    fn has_commit(&self, stage: &Stage, sha: &str) -> bool {
        stage.git(&[&self.git_dir, "merge-base", "--is-ancestor", sha, "refs/heads/main"]).is_ok()
    }

    fn has_line(&self, stage: &Stage, path: &str, line: &str) -> bool {
        let file = stage.git(&[&self.git_dir, "cat-file", "blob", &format!("refs/heads/main:{path}")]);
        file.is_ok_and(|text| text.lines().any(|l| l == line))
    }
}
