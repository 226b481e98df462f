//! The action agent at work: looks at issues labelled `action`, begins their runs, and sees to what came of them. What is
//! next is decided in the core; the session itself is in [`super::runs`].
//!
//! Level-triggered, like reviews: what was begun is a run, what came of it is its result, what was posted is on the forge.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use anyhow::Context;
use pointsman_adapters::git::RefName;
use pointsman_adapters::process::free_memory_mb;
use pointsman_core::action::{self, AT_ONCE, ActionFacts, Next, Report, formula, plan};
use pointsman_core::dependencies;
use pointsman_core::forge::{Issue, IssueState};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::labels::{ACTION, BACKLOG, BLOCKED, IN_PROGRESS, has};
use pointsman_core::part::question::Question;
use pointsman_core::run::{Run, Subject, action_key};
use pointsman_core::words;
use pointsman_store::RunScope;

use super::crash::crash_point;
use super::effects::EffectPerformer;
use super::inbound::{Inbound, ThreadReport};
use super::served::Served;
use super::sources::forge::answers;
use crate::control::protocol::{FailureKind, InboxCommand, Reply, Request};

/// Who asks, in the list of runs.
const BY: &str = action::ROLE.as_str();

/// Looks at a project's actions, on a thread of its own; once more if that is under way.
pub(crate) fn look(world: &Arc<EffectPerformer>, served: &Arc<Served>) {
    if !served.config.roles.action.enabled {
        return;
    }
    let (world, jobs) = (Arc::clone(world), Arc::clone(&world.jobs));
    jobs.submit_anew(format!("actions {}", served.config.name), served, move |_, served| {
        if let Err(error) = go_round(&world, served) {
            tracing::warn!(error = format!("{error:#}"), "actions could not be looked at");
        }
    });
}

fn go_round(world: &EffectPerformer, served: &Served) -> anyhow::Result<()> {
    // The forge was asked a moment ago, for everybody.
    let Some(seen) = served.seen() else { return Ok(()) };
    let open = &seen.issues;
    for issue in open.iter().filter(|issue| has(&issue.labels, ACTION)) {
        // The others need not wait for it.
        if let Err(error) = attend(world, served, issue, open) {
            tracing::warn!(issue = issue.number, error = format!("{error:#}"), "its action has to wait");
        }
    }
    Ok(())
}

fn attend(world: &EffectPerformer, served: &Served, issue: &Issue, open: &[Issue]) -> anyhow::Result<()> {
    let number = issue.number;
    let runs = world.read(|store| store.runs_about(&served.config.name, &action_key(number)))?;
    let waits =
        dependencies::parse(&issue.body).iter().any(|wanted| open.iter().any(|o| o.number == *wanted));
    if let Some(asked) = runs.last().and_then(|run| run.question.as_ref()) {
        ask(world, served, number, asked)?;
    }
    let look = |told| plan(&ActionFacts { labels: &issue.labels, waits, runs: &runs, told });
    // What was told is asked for only if it matters.
    let next = match (look(false), runs.last()) {
        (Next::Block, Some(last)) => look(is_told(served, number, last)?),
        (next, _) => next,
    };
    match (next, runs.last()) {
        (Next::Nothing, _) => Ok(()),
        (Next::Begin, last) => {
            // What was seen may be older than the label that we set since: nothing is run twice because of that.
            let now = served.forge.issue(number)?.filter(|issue| issue.state == IssueState::Open);
            let Some(now) = now else { return Ok(()) };
            let facts = ActionFacts { labels: &now.labels, waits, runs: &runs, told: last.is_some() };
            if plan(&facts) == Next::Begin { begin(world, served, &now) } else { Ok(()) }
        }
        (Next::Report, Some(run)) => report(world, served, number, run),
        (Next::Block, Some(run)) => {
            let why = run.reason.as_deref().unwrap_or(words::daemon::run::no_reason());
            block(served, number, &marker(run), &words::action::failed(run.id, why))
        }
        (Next::Report | Next::Block, None) => Ok(()),
    }
}

/// Asks on the issue, once, and passes on the answer.
fn ask(world: &EffectPerformer, served: &Served, issue: Number, asked: &Question) -> anyhow::Result<()> {
    let Some(id) = asked.id else { return Ok(()) };
    let marker = format!("question:{id}");
    served.forge.comment_once(issue, &marker, &words::comment::run_asks(asked))?;
    let asked = Question { comment: Some(marker), ..asked.clone() };
    for comment in answers(served, issue, &asked)? {
        let command = InboxCommand::Answer { text: comment.body, by: comment.author };
        let request = Request::Inbox { project: served.config.name.clone(), question: id, command };
        let (reply, answer) = sync_channel(1);
        world.jobs.inbox.send(Inbound::Ask { request, reply });
        match answer.recv() {
            Ok(Reply::Failed { message, .. }) => tracing::info!(issue, message, "a comment is no answer"),
            Ok(Reply::Done { .. }) | Err(_) => return Ok(()),
        }
    }
    Ok(())
}

fn marker(run: &Run) -> String {
    format!("action:{}", run.id)
}

fn is_told(served: &Served, issue: Number, run: &Run) -> anyhow::Result<bool> {
    let mark = words::comment::marker(&marker(run));
    let comments = served.forge.comments_after(issue, 0)?;
    Ok(comments.iter().any(|c| c.author == served.forge.me() && c.body.trim_end().ends_with(&mark)))
}

fn begin(world: &EffectPerformer, served: &Served, issue: &Issue) -> anyhow::Result<()> {
    let config = &served.config;
    let under_way = {
        let open = world.read(|store| store.runs(&config.name, RunScope::Open))?;
        open.iter().filter(|run| matches!(run.subject, Some(Subject::Action { .. }))).count()
    };
    let short = free_memory_mb().is_some_and(|free| free < config.limits.min_free_memory_mb);
    if under_way >= AT_ONCE || short {
        tracing::debug!(issue = issue.number, under_way, short, "its action begins later");
        return Ok(());
    }
    let (written, answer) = sync_channel(1);
    world.jobs.inbox.report(ThreadReport::RunWanted {
        project: config.name.clone(),
        formula: formula(&issue.body).to_owned(),
        subject: Subject::Action { issue: issue.number },
        by: BY.to_owned(),
        written,
    });
    match answer.recv() {
        // The formula it names is wrong or not there: that does not pass by itself.
        Ok(Reply::Failed { kind: FailureKind::NotFound | FailureKind::Configuration, message }) => {
            block(served, issue.number, "action:refused", &words::action::refused(&message))
        }
        Ok(Reply::Failed { message, .. }) => {
            tracing::debug!(issue = issue.number, message, "its action begins later");
            Ok(())
        }
        Ok(Reply::Done { .. }) => {
            served.forge.set_labels(issue.number, &[IN_PROGRESS.to_owned()], &[])?;
            Ok(())
        }
        Err(_) => Ok(()),
    }
}

/// With commits the issue becomes the dev agent's, which begins from them; without, it is closed.
fn report(world: &EffectPerformer, served: &Served, issue: Number, run: &Run) -> anyhow::Result<()> {
    let report = Report::read(run.result.as_ref()).map_err(anyhow::Error::msg)?;
    let main = served.mirror.remote_head(&served.primary)?;
    let main = main.with_context(|| words::daemon::git::no_branch(&served.primary))?;
    let kept = handed_on(served, issue, &main)?;
    let body = match &kept {
        Some(head) => words::action::handed_on(run.id, &report, served.mirror.ahead(&main, head)?),
        None => words::action::done(run.id, &report),
    };
    served.forge.comment_once(issue, &marker(run), &body)?;
    crash_point("action-told");
    let gone = [ACTION.to_owned(), IN_PROGRESS.to_owned()];
    match kept {
        Some(_) => drop(served.forge.set_labels(issue, &[BACKLOG.to_owned()], &gone)?),
        None => {
            // Closed first: while it carries the label and is open, all of this is done again.
            served.forge.close_issue(issue)?;
            served.forge.set_labels(issue, &[], &gone)?;
        }
    }
    world.jobs.inbox.report(ThreadReport::AskForge { project: served.config.name.clone() });
    Ok(())
}

fn block(served: &Served, issue: Number, marker: &str, body: &str) -> anyhow::Result<()> {
    let still_open = served.forge.issue(issue)?.is_some_and(|issue| issue.state == IssueState::Open);
    if still_open {
        // The label first: what is told counts as seen to.
        served.forge.set_labels(issue, &[BLOCKED.to_owned()], &[IN_PROGRESS.to_owned()])?;
        served.forge.comment_once(issue, marker, body)?;
    }
    Ok(())
}

/// Where the commits of an issue's action are kept.
pub(super) fn kept_at(issue: Number) -> anyhow::Result<RefName> {
    let name = format!("refs/pointsman/action/{issue}");
    RefName::new(&name).with_context(|| words::daemon::git::not_a_ref_name(&name))
}

/// The commits of an issue's action, if there are any that main has not.
pub(super) fn handed_on(served: &Served, issue: Number, main: &Sha) -> anyhow::Result<Option<Sha>> {
    let Some(kept) = served.mirror.read_ref(&kept_at(issue)?)? else { return Ok(None) };
    Ok((!served.mirror.is_ancestor(&kept, main)?).then_some(kept))
}
