//! The action agent at work: looks at issues labelled `action`, begins their runs, and wants their issues told what came of them.
//! What is next is decided in the core; the session is in [`super::runs`], and what happens on the forge is a deed of the run.
//!
//! Level-triggered, like reviews: what was begun is a run, what came of it is its result, and the run knows what its issue was
//! told.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use anyhow::Context;
use pointsman_adapters::git::RefName;
use pointsman_adapters::process::free_memory_mb;
use pointsman_core::action::{self, AT_ONCE, ActionFacts, Next, REPORT, formula, plan};
use pointsman_core::dependencies;
use pointsman_core::forge::{Issue, IssueState};
use pointsman_core::ids::{Number, RoleKey, Sha};
use pointsman_core::labels::{ACTION, has};
use pointsman_core::part::question::{Question, QuestionId};
use pointsman_core::role_memory::Event;
use pointsman_core::run::{Event as RunEvent, Run, Subject, action_key};
use pointsman_core::words;
use pointsman_store::RunScope;

use super::effects::EffectPerformer;
use super::engine::Input;
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
        pass_on_answers(world, served, number, asked)?;
    }
    let facts = ActionFacts { labels: &issue.labels, waits, runs: &runs };
    match (plan(&facts), runs.last()) {
        (Next::Nothing, _) => Ok(()),
        (Next::Begin, _) => {
            // What was seen may be older than the label that we set since: nothing is run twice because of that.
            let now = served.forge.issue(number)?.filter(|issue| issue.state == IssueState::Open);
            let Some(now) = now else { return Ok(()) };
            let facts = ActionFacts { labels: &now.labels, ..facts };
            if plan(&facts) == Next::Begin { begin(world, served, &now) } else { Ok(()) }
        }
        (Next::Report, Some(run)) => {
            let (name, act) = (REPORT.to_owned(), action::report(run, number));
            world.jobs.inbox.tell(Input::of_run(run.key(), RunEvent::DeedWanted { name, act }));
            Ok(())
        }
        (Next::Report, None) => Ok(()),
    }
}

/// The name of the comment that asks a question of a run.
pub(super) fn question_marker(id: QuestionId) -> String {
    format!("question:{id}")
}

/// Passes on what people answer to the question under its comment.
fn pass_on_answers(
    world: &EffectPerformer,
    served: &Served,
    issue: Number,
    asked: &Question,
) -> anyhow::Result<()> {
    let Some(id) = asked.id else { return Ok(()) };
    let asked = Question { comment: Some(question_marker(id)), ..asked.clone() };
    for comment in answers(served, issue, &asked)? {
        let by = served.person(&comment.author).unwrap_or(comment.author);
        let command = InboxCommand::Answer { text: comment.body, by };
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

fn begin(world: &EffectPerformer, served: &Served, issue: &Issue) -> anyhow::Result<()> {
    let config = &served.config;
    let under_way = {
        let open = world.read(|store| store.runs(&config.name, RunScope::Open))?;
        let works = |run: &&Run| !run.status.is_over() || run.cleaning;
        open.iter().filter(works).filter(|run| matches!(run.subject, Some(Subject::Action { .. }))).count()
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
            let key = RoleKey { project: config.name.clone(), role: action::ROLE };
            let refused = Event::ActionRefused { issue: issue.number, why: message };
            world.jobs.inbox.tell(Input::of_role(key, refused));
        }
        Ok(Reply::Failed { message, .. }) => {
            tracing::debug!(issue = issue.number, message, "its action begins later");
        }
        Ok(Reply::Done { .. }) | Err(_) => {}
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
