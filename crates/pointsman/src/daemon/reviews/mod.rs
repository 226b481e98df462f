//! Drives the review agent. The core decides the next step for a pull request; this module collects the facts and
//! carries the step out.
//!
//! It is level-triggered: every look lists the open pull requests and does what is missing. A request for a review is
//! a run, an answer is the result of that run, and posting it is a deed of that run, so nothing else has to survive a
//! crash. `change` examines a change, and `post` posts the review. [`super::runs`] runs the session.

mod change;
mod post;

use std::collections::BTreeSet;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_adapters::process::free_memory_mb;
use pointsman_core::deed::{Act, Ending};
use pointsman_core::forge::PullRequest;
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::part::contribution;
use pointsman_core::review::{
    Answer, Attempt, Ci, FORMULA, Next, ROLE, Required, ReviewFacts, is_code, plan,
};
use pointsman_core::run::{Event as RunEvent, Run, Status, Subject, review_key};
use pointsman_core::task::{CiVerdict, Event, State, Task};
use pointsman_core::verdict::of_checks;
use pointsman_core::words;
use pointsman_store::RunScope;

use change::inputs;
pub(super) use change::{examine, material};
pub(super) use post::post;

use super::effects::EffectPerformer;
use super::engine::Input;
use super::inbound::ThreadReport;
use super::served::Served;
use crate::control::protocol::Reply;

/// Who asks, in the list of runs.
const BY: &str = ROLE.as_str();

/// Looks after the pull requests of all projects.
pub(crate) struct Reviews {
    world: Arc<EffectPerformer>,
    /// Heads that nothing more is to be done about. All of it can be lost.
    settled: Mutex<BTreeSet<(ProjectName, Number, Sha)>>,
}

impl Reviews {
    /// Nothing was looked at yet.
    pub(crate) fn new(world: &Arc<EffectPerformer>) -> Arc<Self> {
        Arc::new(Self { world: Arc::clone(world), settled: Mutex::default() })
    }

    /// Looks at a project's open pull requests, on a thread of its own; once more if that is under way.
    pub(crate) fn look(self: &Arc<Self>, served: &Arc<Served>) {
        if !served.config.review_agent() {
            return;
        }
        let (reviews, jobs) = (Arc::clone(self), Arc::clone(&self.world.jobs));
        jobs.submit_anew(format!("reviews {}", served.config.name), served, move |_, served| {
            if let Err(error) = reviews.go_round(served) {
                tracing::warn!(error = format!("{error:#}"), "pull requests could not be looked at");
            }
        });
    }

    fn go_round(&self, served: &Served) -> anyhow::Result<()> {
        let tasks = self.world.read(|store| store.tasks(Some(&served.config.name)))?;
        let open = served.forge.open_pull_requests()?;
        self.call_off(served, &open)?;
        for listed in open {
            let Some(head) = listed.head_sha.clone() else { continue };
            let key = (served.config.name.clone(), listed.number, head);
            if self.settled().contains(&key) || self.world.jobs.is_stopping() {
                continue;
            }
            let task = tasks
                .iter()
                .find(|task| task.contribution.branch == listed.head && task.state != State::Closed);
            match self.attend(served, &listed, task) {
                Ok(true) => drop(self.settled().insert(key)),
                Ok(false) => {}
                // The others need not wait for it.
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(pr = listed.number, error, "its review has to wait");
                }
            }
        }
        Ok(())
    }

    /// Ends reviews of what is not the head of an open pull request any more.
    fn call_off(&self, served: &Served, open: &[PullRequest]) -> anyhow::Result<()> {
        let project = &served.config.name;
        let runs = self.world.read(|store| store.runs(project, RunScope::Open))?;
        for run in runs {
            let Some(Subject::Review { pr, sha, .. }) = &run.subject else { continue };
            let wanted =
                open.iter().any(|listed| listed.number == *pr && listed.head_sha.as_ref() == Some(sha));
            if !wanted && !run.status.is_over() {
                let event = RunEvent::Stopped { by: BY.to_owned() };
                self.world.jobs.inbox.tell(Input::of_run(run.key(), event));
            }
        }
        Ok(())
    }

    /// Does what is next for one; true if nothing more will ever be.
    fn attend(&self, served: &Served, listed: &PullRequest, task: Option<&Task>) -> anyhow::Result<bool> {
        let (Some(reviewer), Some(pr)) = (served.forge.reviewer(), served.forge.pull_request(listed.number)?)
        else {
            anyhow::bail!(words::daemon::review::no_account());
        };
        let Some(head) = pr.head_sha.clone() else { return Ok(false) };
        if !is_for_the_agent(served, &head, task)? {
            return Ok(false);
        }
        let about = self.world.read(|store| store.runs_about(&served.config.name, &review_key(pr.number)))?;
        let runs: Vec<&Run> = about.iter().filter(|run| is_of(run, &head)).collect();
        let attempts: Vec<Attempt> = runs.iter().map(|run| attempt(run, &head)).collect();
        let look = |ci| {
            let primary = served.primary.as_str();
            plan(&ReviewFacts { pr: &pr, primary, reviewer, ci, attempts: &attempts })
        };
        // What CI says is asked for only if it matters.
        let next = match look(Ci::NotGreen) {
            Next::Nothing if matches!(look(Ci::Green), Next::Ask { .. }) => {
                look(ci(served, &pr, &head, task)?)
            }
            next => next,
        };
        match next {
            Next::Nothing => {
                Ok(pr.reviews.iter().any(|review| review.author == reviewer && review.sha == head))
            }
            Next::Post { attempt } => {
                self.post(&pr, &head, runs[attempt]);
                Ok(false)
            }
            Next::Ask { unusable } => {
                let failed: Vec<&Run> = failed(&runs, &head);
                self.tell_unusable(&pr, &head, &failed[..unusable.min(failed.len())]);
                self.ask(served, &pr, &head, task, &about)
            }
            Next::GiveUp => {
                self.tell_unusable(&pr, &head, &failed(&runs, &head));
                let why = runs
                    .last()
                    .and_then(|run| run.reason.as_deref())
                    .unwrap_or(words::daemon::review::no_review_written());
                self.give_up(served, &pr, &head, task, why)?;
                Ok(true)
            }
        }
    }

    /// Asks, unless the very same was asked and answered before.
    fn ask(
        &self,
        served: &Served,
        pr: &PullRequest,
        head: &Sha,
        task: Option<&Task>,
        about: &[Run],
    ) -> anyhow::Result<bool> {
        let config = &served.config;
        let working = {
            let open = self.world.read(|store| store.runs(&config.name, RunScope::Open))?;
            open.iter().filter(|run| run.formula.name == FORMULA && !run.status.is_over()).count()
        };
        let short = free_memory_mb().is_some_and(|free| free < config.limits.min_free_memory_mb);
        if working >= config.review.concurrency as usize || short {
            tracing::debug!(pr = pr.number, working, short, "its review begins later");
            return Ok(false);
        }
        let examined = examine(served, pr, head, task.map(|task| task.key.issue))?;
        let formula = self.world.accepted_formula(served, FORMULA)?;
        let inputs = inputs(served, pr, head, &examined, &formula)?;
        let same = |run: &&Run| matches!(&run.subject, Some(Subject::Review { inputs: known, .. }) if *known == inputs);
        if let Some(run) = about.iter().filter(same).find(|run| attempt(run, head) == Attempt::Answered) {
            self.post(pr, head, run);
            return Ok(false);
        }
        let subject = Subject::Review { pr: pr.number, sha: head.clone(), inputs };
        let (written, answer) = sync_channel(1);
        self.world.jobs.inbox.report(ThreadReport::RunWanted {
            project: config.name.clone(),
            formula: FORMULA.to_owned(),
            subject,
            by: BY.to_owned(),
            written,
        });
        match answer.recv() {
            Ok(Reply::Failed { message, .. }) => {
                tracing::debug!(pr = pr.number, message, "its review begins later");
                Ok(false)
            }
            Ok(Reply::Done { .. }) | Err(_) => Ok(false),
        }
    }

    /// Wants the answer of a run posted. The run knows whether it was wanted before.
    fn post(&self, pr: &PullRequest, head: &Sha, run: &Run) {
        let act = Act::PostReview { pr: pr.number, head: head.clone() };
        self.want(run, posting(head), act);
    }

    /// An answer that could not be used is told on the pull request, once each.
    fn tell_unusable(&self, pr: &PullRequest, head: &Sha, runs: &[&Run]) {
        for (place, run) in runs.iter().enumerate() {
            let why = run.reason.as_deref().unwrap_or(words::daemon::review::no_review_written());
            let body = words::review::unusable(head, why, place + 1);
            let marker = format!("review-error:{head}:{}", place + 1);
            self.want(run, "unusable".to_owned(), Act::Remark { pr: pr.number, marker, body });
        }
    }

    fn want(&self, run: &Run, name: String, act: Act) {
        if matches!(run.deeds.get(&name), None | Some(Some(Ending::Gone))) {
            let event = RunEvent::DeedWanted { name, act };
            self.world.jobs.inbox.tell(Input::of_run(run.key(), event));
        }
    }

    /// A person has to review it: asked by the task, or by a notice if it is nobody's task.
    fn give_up(
        &self,
        served: &Served,
        pr: &PullRequest,
        head: &Sha,
        task: Option<&Task>,
        why: &str,
    ) -> anyhow::Result<()> {
        let project = &served.config.name;
        let Some(task) = task else {
            let link = served.forge.pull_request_link(pr.number);
            let posting = Posting {
                key: format!("review/{project}/{}/{head}", pr.number),
                project: project.clone(),
                topic: Topic::of_formula(FORMULA),
                link: Some(link.clone()),
                question: None,
                notice: words::review::nobody(project.as_str(), pr.number, why, &link),
            };
            return Ok(self.world.put_up(&posting)?);
        };
        let error = words::review::given_up(why);
        let event = Event::EffectGaveUp { effect: "request_review".to_owned(), error };
        let mut input = Input::new(task.key.clone(), event);
        input.dedup = Some(format!("review-given-up:{project}:{}:{head}:{}", pr.number, task.claims));
        self.world.jobs.inbox.tell(input);
        Ok(())
    }

    fn settled(&self) -> std::sync::MutexGuard<'_, BTreeSet<(ProjectName, Number, Sha)>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the review agent decides about this head. Where the risk says who looks, that is not so for every one.
fn is_for_the_agent(served: &Served, head: &Sha, task: Option<&Task>) -> anyhow::Result<bool> {
    let mode = contribution::ReviewMode::new(&served.config);
    if !matches!(mode, contribution::ReviewMode::Risk(_)) {
        return Ok(true);
    }
    if let Some(task) = task {
        let part = &task.contribution;
        return Ok(part.head() == Some(head) && part.judge(mode) == contribution::ReviewMode::Command);
    }
    if !served.mirror.commit_exists(head)? {
        served.mirror.fetch_remote()?;
    }
    let Some(main) = served.mirror.remote_head(&served.primary)? else { return Ok(false) };
    Ok(served.mirror.commit_exists(head)? && served.required_approval(&main, head)? == Required::Anybody)
}

fn is_of(run: &Run, head: &Sha) -> bool {
    matches!(&run.subject, Some(Subject::Review { sha, .. }) if sha == head)
}

fn failed<'r>(runs: &[&'r Run], head: &Sha) -> Vec<&'r Run> {
    runs.iter().copied().filter(|run| attempt(run, head) == Attempt::Unusable).collect()
}

/// The name of the deed that posts the answer of a run about a head.
fn posting(head: &Sha) -> String {
    format!("review/{head}")
}

fn attempt(run: &Run, head: &Sha) -> Attempt {
    match run.status {
        // The forge does not take its review: a person has to write one.
        Status::Done if matches!(run.deeds.get(&posting(head)), Some(Some(Ending::Refused { .. }))) => {
            Attempt::Stopped
        }
        Status::Starting | Status::Running => Attempt::UnderWay,
        Status::Done if Answer::read(run.result.as_ref()).is_ok() => Attempt::Answered,
        Status::Done | Status::Failed => Attempt::Unusable,
        Status::Stopped => Attempt::Stopped,
    }
}

/// What CI says about a head: the task knows, or the checks on the forge do. A change without code needs none.
fn ci(served: &Served, pr: &PullRequest, head: &Sha, task: Option<&Task>) -> anyhow::Result<Ci> {
    if !served.config.ci.kind.tests_commits() || task.is_some_and(|task| task.contribution.passed(head)) {
        return Ok(Ci::Green);
    }
    let checks = match task {
        Some(_) => None,
        None => of_checks(&served.forge.checks(head)?, &served.config.ci.required),
    };
    if checks == Some(CiVerdict::Passed) || !has_code(served, pr, head)? {
        return Ok(Ci::Green);
    }
    Ok(Ci::NotGreen)
}

fn has_code(served: &Served, pr: &PullRequest, head: &Sha) -> anyhow::Result<bool> {
    let Some(base) = change::base(served, pr, head)? else { return Ok(true) };
    Ok(served.mirror.changed_paths(&base, head)?.iter().any(|path| is_code(path)))
}
