//! The calls that GitHub does in its own way.

use std::time::{Duration, Instant};

use pointsman_core::config::MergeStyle;
use pointsman_core::forge::{BoardItem, Check, CheckState, PullRequest};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::labels;
use pointsman_core::task::ReviewVerdict;
use pointsman_core::text::clean_line;
use serde_json::{Value, json};

use super::board::Board;
use super::{Github, MANNER};
use crate::forge::hosted::errors::told;
use crate::forge::hosted::wire::{Label, User, WirePull, WireReview, wire};
use crate::forge::hosted::{Dialect, Hosted, MERGE};
use crate::forge::{BoardChange, Error, ForgeMerge, MergeTies};
use crate::http::{Count, Method, Request};

/// Failed check runs whose annotations are read, for one commit.
const ANNOTATED_RUNS: usize = 5;
/// Annotations of one run that are told.
const ANNOTATIONS: usize = 30;
/// How much of a path is repeated to an agent.
const PATH_CHARS: usize = 200;
/// How long it is remembered who has a say.
const PEOPLE_FOR: Duration = Duration::from_secs(300);

wire! { Permission { permission: String, } }
wire! { CheckRun { id: u64, name: String, status: String, conclusion: String, details_url: String, output: RunOutput, } }
wire! { RunOutput { title: String, summary: String, annotations_count: u64, } }
wire! { Annotation { path: String, start_line: u64, annotation_level: String, message: String, } }
wire! { Comparison { status: String, } }
wire! { Activity { after: String, actor: User, } }

impl Dialect for Github {
    fn hosted(&self) -> &Hosted {
        &self.hosted
    }

    fn look(&self) -> Result<(), Error> {
        self.hosted.look()
    }

    /// Made with its colour, unless it is there: GitHub would make a grey one.
    fn label_to_add(&self, name: &str) -> Result<Value, Error> {
        if self.cache().labels.contains(name) {
            return Ok(Value::from(name));
        }
        let hosted = &self.hosted;
        let found: Option<Label> =
            hosted.dev.find(&hosted.get("list labels", &["labels", name])).map_err(told)?;
        if found.is_none() {
            let (colour, description) = labels::look(name);
            let body =
                json!({ "name": name, "color": colour.trim_start_matches('#'), "description": description });
            match hosted.dev.send(&hosted.request("make a label", Method::Post, &["labels"]).body(&body)) {
                // 422: somebody was faster.
                Err(error) if error.status() != Some(422) => return Err(told(error)),
                Ok(_) | Err(_) => {}
            }
        }
        self.cache().labels.insert(name.to_owned());
        Ok(Value::from(name))
    }

    fn label_to_remove(&self, label: &Label) -> String {
        label.name.clone()
    }

    fn forget_labels(&self) {
        self.cache().labels.clear();
    }

    fn has_a_say(&self, who: &str) -> Result<bool, Error> {
        if let Some((read, has)) = self.cache().people.get(who)
            && read.elapsed() < PEOPLE_FOR
        {
            return Ok(*has);
        }
        let request = self.hosted.get("read who may write", &["collaborators", who, "permission"]);
        let found: Option<Permission> = self.hosted.dev.find(&request).map_err(told)?;
        let has =
            found.is_some_and(|found| matches!(found.permission.as_str(), "admin" | "maintain" | "write"));
        self.cache().people.insert(who.to_owned(), (Instant::now(), has));
        Ok(has)
    }

    fn between(&self, question: Request, head: &str, base: &str) -> Request {
        question.query("base", base).query("head", format!("{}:{head}", self.hosted.owner()))
    }

    fn counts(&self, review: &WireReview, _verdict: ReviewVerdict) -> Result<bool, Error> {
        let ours = self.hosted.reviewer() == Some(review.user.login.as_str());
        Ok(ours || self.has_a_say(&review.user.login)?)
    }

    /// GitHub shows a merge itself when the head is part of the base.
    fn show_merge(&self, pr: Number, sha: &Sha) -> Result<bool, Error> {
        let Some(pr) = self.hosted.read_pull(pr)? else { return Ok(false) };
        let head = &pr.head.sha;
        if pr.is_merged() || *head == sha.as_str() {
            return Ok(true);
        }
        if Sha::new(head).is_none() {
            return Ok(false);
        }
        let request = self.hosted.get(MERGE, &["compare", &format!("{sha}...{head}")]);
        let compared: Comparison = self.hosted.dev.read(&request).map_err(told)?;
        Ok(matches!(compared.status.as_str(), "identical" | "behind"))
    }

    fn explain(&self, sha: &Sha, _parents: &[Sha]) -> Result<Option<Number>, Error> {
        let request = self.hosted.get("find a pull request", &["commits", sha.as_str(), "pulls"]);
        let listed: Option<Vec<WirePull>> = self.hosted.dev.find(&request).map_err(told)?;
        Ok(listed.unwrap_or_default().iter().find(|pr| pr.is_merged()).map(|pr| pr.number))
    }

    /// Statuses and check runs: two APIs, one list.
    fn pusher(&self, branch: &str, sha: &Sha) -> Result<Option<String>, Error> {
        let newest = self.hosted.get("read who pushed", &["activity"]);
        let newest = newest.query("ref", format!("refs/heads/{branch}")).query("per_page", MANNER.page);
        let moves: Option<Vec<Activity>> = self.hosted.dev.find(&newest).map_err(told)?;
        let found = moves.unwrap_or_default().into_iter().find(|one| one.after == sha.as_str());
        Ok(found.map(|found| found.actor.login).filter(|login| !login.is_empty()))
    }

    fn read_checks(&self, sha: &Sha) -> Result<Vec<Check>, Error> {
        // Nobody has pushed it yet.
        let Some(mut checks) = self.hosted.statuses(sha)? else { return Ok(Vec::new()) };
        let runs: Vec<CheckRun> = self.hosted.about(sha, "check-runs")?.unwrap_or_default();
        let mut asked = 0;
        for run in runs {
            let (id, annotated) = (run.id, run.output.annotations_count > 0);
            let mut check = run.plain();
            if check.state == CheckState::Failure && annotated && asked < ANNOTATED_RUNS {
                asked += 1;
                check.details = format!("{}{}", check.details, self.annotations(id)?).trim().to_owned();
            }
            checks.push(check);
        }
        Ok(checks)
    }

    fn merge(&self, pr: Number, head: &Sha, style: MergeStyle) -> Option<Result<ForgeMerge, Error>> {
        Some(self.merge_by_order(pr, head, style))
    }

    fn ties(&self, pr: Number) -> Result<MergeTies, Error> {
        self.read_ties(pr)
    }

    fn wishes(&self, label: &str) -> Result<Vec<PullRequest>, Error> {
        self.read_wishes(label)
    }

    fn forbids_push(&self, branch: &str, me: &str) -> Result<Option<String>, Error> {
        self.read_forbidding(branch, me)
    }

    fn read_board(&self) -> Option<Result<Vec<(BoardItem, bool)>, Error>> {
        self.board.as_ref().map(Board::all)
    }

    fn read_board_item(&self, number: Number) -> Option<Result<BoardItem, Error>> {
        self.board.as_ref().map(|board| board.item(number))
    }

    fn change_board(&self, number: Number, change: &BoardChange<'_>) -> Option<Result<(), Error>> {
        self.board.as_ref().map(|board| board.change(number, change))
    }

    fn further_costs(&self) -> Vec<(&'static str, Count)> {
        self.board.as_ref().map(|board| board.client().host().counts().all()).unwrap_or_default()
    }
}

impl Github {
    /// What a check run says about single lines.
    fn annotations(&self, run: u64) -> Result<String, Error> {
        let request = self.hosted.get("read annotations", &["check-runs", &run.to_string(), "annotations"]);
        let listed: Option<Vec<Annotation>> = self.hosted.dev.find(&request).map_err(told)?;
        let shown = listed.unwrap_or_default().into_iter().take(ANNOTATIONS);
        let line = |a: Annotation| {
            let path = clean_line(&a.path, PATH_CHARS);
            format!("\n{path}:{}: {}: {}", a.start_line, a.annotation_level, a.message)
        };
        Ok(shown.map(line).collect())
    }
}

impl CheckRun {
    fn plain(self) -> Check {
        let state = match (self.status.as_str(), self.conclusion.as_str()) {
            ("completed", "success" | "neutral" | "skipped") => CheckState::Success,
            // What we do not know is not green.
            ("completed", _) => CheckState::Failure,
            _ => CheckState::Pending,
        };
        let RunOutput { title, summary, .. } = self.output;
        let details = format!("{title}\n{summary}\n{}", self.details_url).trim().to_owned();
        Check { name: self.name, state, details }
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::forge::CheckState;

    use super::{CheckRun, RunOutput};

    #[test]
    fn a_check_run_is_green_red_or_open() {
        let run = |status: &str, conclusion: &str| {
            let (status, conclusion) = (status.to_owned(), conclusion.to_owned());
            let (details_url, output) = (String::new(), RunOutput::default());
            CheckRun { id: 1, name: "x".to_owned(), status, conclusion, details_url, output }.plain().state
        };
        for green in ["success", "neutral", "skipped"] {
            assert_eq!(run("completed", green), CheckState::Success);
        }
        for red in ["failure", "cancelled", "timed_out", "action_required", "stale", "startup_failure", ""] {
            assert_eq!(run("completed", red), CheckState::Failure, "{red}");
        }
        for open in ["queued", "in_progress", "waiting", "requested", "pending"] {
            assert_eq!(run(open, ""), CheckState::Pending, "{open}");
        }
    }
}
