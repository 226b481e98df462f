//! The reaction of a run to an event.

use super::walk::{Walk, choices};
use super::{Choice, Event, Next, NodeStatus, Outcome, PipelineRun, Refused, Rules, Stage, Status};
use crate::pipeline::condition::Verdict;
use crate::pipeline::model::{Handler, Node, normalized};
use crate::time::Timestamp;
use crate::words::pipeline::Sentence;

/// Takes a run one event further.
pub fn step(run: &PipelineRun, event: &Event, rules: &Rules, now: Timestamp) -> Result<Next, Refused> {
    if run.status != Status::Running {
        return after_the_end(run, event);
    }
    let mut walk = Walk::new(run.clone(), rules, now);
    match event {
        Event::IssueFiled { node, ticket, issue } => {
            let node = waiting(&walk, node, *ticket)?;
            walk.state(&node.id).issue = Some(*issue);
        }
        Event::SessionStarted { node, ticket, session } => {
            let node = waiting(&walk, node, *ticket)?;
            walk.state(&node.id).session = Some(session.clone());
        }
        Event::Finished { node, ticket, outcome } => {
            let node = waiting(&walk, node, *ticket)?;
            finished(&mut walk, &node, outcome.clone());
        }
        Event::Answered { node, ticket, answer } => {
            let node = waiting(&walk, node, *ticket)?;
            answered(&mut walk, &node, answer)?;
        }
        Event::Landed { node } => landed(&mut walk, node)?,
        Event::LandingFailed { node, reason } => {
            let task = known(&walk, node)?;
            if !walk.state(node).landing {
                return Err(Refused::Stale(node.clone()));
            }
            walk.state(node).landing = false;
            walk.leave(&task, &Outcome::failed(reason.clone()));
        }
        Event::Woke => woke(&mut walk),
        Event::Stopped { by } => walk.end(Status::Stopped, Some(format!("stopped by {by}"))),
    }
    walk.advance();
    Ok(walk.finish())
}

/// A run that is over changes in one way only: the merge queue tells what became of work that it had.
fn after_the_end(run: &PipelineRun, event: &Event) -> Result<Next, Refused> {
    let (id, status, reason) = match event {
        Event::Landed { node } => (node, NodeStatus::Merged, None),
        Event::LandingFailed { node, reason } => (node, NodeStatus::Failed, Some(reason.clone())),
        Event::IssueFiled { .. }
        | Event::SessionStarted { .. }
        | Event::Finished { .. }
        | Event::Answered { .. }
        | Event::Woke
        | Event::Stopped { .. } => return Err(Refused::Ended),
    };
    let mut run = run.clone();
    let node = run.nodes.get_mut(id).filter(|node| node.landing).ok_or(Refused::Ended)?;
    (node.status, node.landing) = (status, false);
    node.reason = reason.or(node.reason.take());
    Ok(Next { run, orders: Vec::new() })
}

fn known(walk: &Walk<'_>, id: &str) -> Result<Node, Refused> {
    walk.node(id).ok_or_else(|| Refused::NoNode(id.to_owned()))
}

/// The node, if it waits for the result of exactly this order.
fn waiting(walk: &Walk<'_>, id: &str, ticket: u64) -> Result<Node, Refused> {
    let node = known(walk, id)?;
    match walk.run.nodes.get(id).map(|state| &state.stage) {
        Some(Stage::Working { ticket: wanted }) if *wanted == ticket => Ok(node),
        Some(Stage::Working { .. } | Stage::Resting { .. } | Stage::Owing { .. } | Stage::Idle) | None => {
            Err(Refused::Stale(id.to_owned()))
        }
    }
}

/// A try ended: it counts, or there is another one.
fn finished(walk: &mut Walk<'_>, node: &Node, outcome: Option<Outcome>) {
    let outcome = match outcome {
        Some(outcome) => outcome,
        None if node.auto_status => Outcome::of(Verdict::Success),
        None => Outcome::failed(Sentence::EndedWithoutResult.to_string()),
    };
    match outcome.verdict {
        Verdict::Success | Verdict::PartialSuccess => walk.leave(node, &outcome),
        Verdict::Retry | Verdict::Fail => {
            let attempts = walk.state(&node.id).attempts;
            if attempts <= node.max_retries {
                let until = walk.rest(attempts);
                let state = walk.state(&node.id);
                (state.stage, state.deadline) = (Stage::Resting { until }, None);
                state.reason = outcome.reason;
                return;
            }
            // Asking for another try means that something was reached. That is enough where the file says so.
            let verdict = match outcome.verdict {
                Verdict::Retry if node.allow_partial => Verdict::PartialSuccess,
                Verdict::Retry | Verdict::Fail | Verdict::Success | Verdict::PartialSuccess => Verdict::Fail,
            };
            let reason = outcome.reason.clone().or_else(|| Some(Sentence::NoTriesAreLeft.to_string()));
            walk.leave(node, &Outcome { verdict, reason, ..outcome });
        }
    }
}

fn answered(walk: &mut Walk<'_>, node: &Node, answer: &str) -> Result<(), Refused> {
    let offered = choices(&walk.run.pipeline, &node.id);
    let chosen = pick(&offered, answer)
        .ok_or_else(|| Refused::NoChoice { node: node.id.clone(), answer: answer.to_owned() })?
        .clone();
    choose(walk, node, &chosen);
    Ok(())
}

/// The choice that an answer means: by its label, its value, or its key. A person sees the labels, so they come first
/// where a label is the name of another choice's target.
fn pick<'a>(offered: &'a [Choice], answer: &str) -> Option<&'a Choice> {
    let answer = answer.trim();
    let by_label = offered.iter().find(|choice| normalized(&choice.label) == normalized(answer));
    let by_value = || offered.iter().find(|choice| choice.value == answer);
    let mut letters = answer.chars();
    let key = letters.next().filter(|_| letters.next().is_none()).map(|key| key.to_ascii_uppercase());
    let by_key = || {
        let mut same = offered.iter().filter(|choice| key.is_some() && choice.key == key);
        same.next().filter(|_| same.next().is_none())
    };
    by_label.or_else(by_value).or_else(by_key)
}

fn choose(walk: &mut Walk<'_>, node: &Node, chosen: &Choice) {
    let edge = match node.handler {
        Handler::Human { .. } => walk
            .run
            .pipeline
            .choices(&node.id)
            .into_iter()
            .find(|(_, edge)| edge.to == chosen.value && edge.choice() == chosen.label)
            .map(|(place, _)| place),
        _ => None,
    };
    let Some(edge) = edge else {
        let outcome = match chosen.value.as_str() {
            "pass" => Outcome::of(Verdict::Success),
            _ => Outcome::failed(Sentence::PersonSaidNo.to_string()),
        };
        // A person's no is an answer, not a failure to try again.
        return walk.leave(node, &outcome);
    };
    let key = chosen.key.map(String::from).unwrap_or_default();
    walk.run.context.insert("human.gate.selected".to_owned(), key);
    walk.run.context.insert("human.gate.label".to_owned(), chosen.label.clone());
    let state = walk.state(&node.id);
    (state.stage, state.deadline) = (Stage::Idle, None);
    (state.status, state.outcome) = (NodeStatus::Validated, Some(Verdict::Success));
    walk.hop_all(node, &Outcome::of(Verdict::Success), &[edge]);
}

/// Work reached the main branch: as ordered, or because a person merged it first.
fn landed(walk: &mut Walk<'_>, id: &str) -> Result<(), Refused> {
    let node = known(walk, id)?;
    if !matches!(node.handler, Handler::Codergen(_)) {
        return Err(Refused::Stale(id.to_owned()));
    }
    let (status, stage) = {
        let state = walk.state(id);
        (state.status, state.stage.clone())
    };
    match (status, stage) {
        (NodeStatus::ImplComplete | NodeStatus::Validated, _) => walk.landed(&node),
        (NodeStatus::Active, Stage::Working { .. } | Stage::Resting { .. }) => {
            // Nobody works on it any more, and nothing is left for the queue to land.
            walk.cancel(id);
            walk.state(id).landing = true;
            walk.leave(&node, &Outcome::of(Verdict::Success));
            walk.landed(&node);
        }
        (
            NodeStatus::Pending
            | NodeStatus::Active
            | NodeStatus::Merged
            | NodeStatus::Failed
            | NodeStatus::Skipped,
            _,
        ) => return Err(Refused::Stale(id.to_owned())),
    }
    Ok(())
}

/// Deadlines that passed, and rests that are over.
fn woke(walk: &mut Walk<'_>) {
    let ids: Vec<String> = walk.run.nodes.keys().cloned().collect();
    for id in ids {
        let Some(node) = walk.node(&id) else { continue };
        if walk.run.status != Status::Running {
            return;
        }
        let now = walk.now;
        let state = walk.state(&id);
        match state.stage {
            Stage::Resting { until } if until <= now => walk.attempt(&node, None),
            Stage::Working { .. } if state.deadline.is_some_and(|deadline| deadline <= now) => {
                timed_out(walk, &node)
            }
            Stage::Resting { .. } | Stage::Working { .. } | Stage::Idle | Stage::Owing { .. } => {}
        }
    }
}

fn timed_out(walk: &mut Walk<'_>, node: &Node) {
    walk.cancel(&node.id);
    if let Handler::Human { default_choice: Some(default) } = &node.handler {
        let offered = choices(&walk.run.pipeline, &node.id);
        // A file names the node that is meant.
        let by_value = offered.iter().find(|choice| choice.value == default.trim());
        if let Some(chosen) = by_value.or_else(|| pick(&offered, default)).cloned() {
            return choose(walk, node, &chosen);
        }
    }
    let seconds = node.timeout_secs.map(|seconds| format!(" after {seconds} s")).unwrap_or_default();
    finished(walk, node, Some(Outcome::failed(format!("it timed out{seconds}"))));
}
