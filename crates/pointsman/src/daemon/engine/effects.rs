//! Effects on their way through the engine: handed out once, and settled by their outcome.

use std::time::Duration;

use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::{self, Lane};
use pointsman_core::task::Exit;
use pointsman_core::time::Timestamp;
use pointsman_core::workflow::{Event, Workflow, WorkflowId};
use pointsman_store::{Change, Delivered, EffectId, Outgoing, SessionRow, SessionScope, Write};

use super::{Engine, Input};
use crate::daemon::notifier::planned;
use crate::daemon::outcome::{Note, Outcome};

/// The first retry of an effect comes after this long; doubles each time.
const RETRY_FIRST: Duration = Duration::from_millis(250);
/// But never later than this: an outage that is over should be noticed.
const RETRY_LAST: Duration = Duration::from_secs(60);
/// A notice may wait until the end of the quiet hours, on the longest day of the year too.
const NOTICE_WAITS: Duration = Duration::from_secs(25 * 3600);

impl Engine {
    /// Effects that can be performed now, at most one per workflow. Each is handed out once until
    /// [`absorb`](Self::absorb) says what became of it.
    pub fn due(&mut self, now: Timestamp) -> Result<Vec<(Outgoing, Workflow)>, pointsman_store::Error> {
        let mut due = Vec::new();
        let mut heads = self.store.due_effects(Timestamp(i64::MAX), |workflow| !self.is_free(workflow))?;
        // What a person has to act on does not wait behind what was left from an outage.
        heads.sort_by_key(|outgoing| lane(&outgoing.workflow) == Some(Lane::Ordinary));
        for outgoing in heads {
            let longest = lane(&outgoing.workflow).map_or(RETRY_LAST, |_| NOTICE_WAITS);
            // Nothing is put off for longer than the longest pause: if it seems so, the clock went back.
            let waits = outgoing.not_before > now && outgoing.not_before <= now.after(longest);
            if waits || !self.is_free(&outgoing.workflow) {
                continue;
            }
            let workflow = match self.workflow(&outgoing.workflow) {
                Some(workflow) => workflow,
                None => match self.stored(&outgoing.workflow)? {
                    Ok(Some(workflow)) => workflow,
                    Ok(None) | Err(_) => {
                        self.stuck.insert(outgoing.workflow);
                        continue;
                    }
                },
            };
            self.in_flight.insert(outgoing.workflow.clone(), outgoing.id);
            due.push((outgoing, workflow));
        }
        Ok(due)
    }

    /// Whether the next effect of this workflow can be handed out.
    pub(super) fn is_free(&self, id: &WorkflowId) -> bool {
        let ours = !self.only_concerns || matches!(id, WorkflowId::Concern(_));
        ours && self.rules.contains_key(id.project())
            && !self.in_flight.contains_key(id)
            && !self.stuck.contains(id)
            && !self.held.contains(id.project())
            && self.other_lane_is_free(id)
    }

    /// Performs nothing for a project until it is released.
    pub(in crate::daemon) fn hold(&mut self, project: &ProjectName) {
        self.held.insert(project.clone());
    }

    /// The forge of a project was looked at; answers whether it was the last one that was held.
    pub(in crate::daemon) fn release(&mut self, project: &ProjectName) -> bool {
        self.held.remove(project) && self.held.is_empty()
    }

    /// Whether any project is held. No deadline passes until then.
    pub(in crate::daemon) fn is_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether the notifier of this lane tells nothing of its other lane: two first messages would begin two threads.
    fn other_lane_is_free(&self, id: &WorkflowId) -> bool {
        match id {
            WorkflowId::Notifier(key) => !self.in_flight.contains_key(&key.other_lane().into()),
            WorkflowId::Task(_)
            | WorkflowId::Run(_)
            | WorkflowId::Vault(_)
            | WorkflowId::Concern(_)
            | WorkflowId::Role(_) => true,
        }
    }

    /// A worker is done with an effect.
    pub(super) fn returned(&mut self, workflow: &WorkflowId, id: EffectId) {
        if self.in_flight.get(workflow) == Some(&id) {
            self.in_flight.remove(workflow);
        }
    }

    /// The outcome of an effect as inputs for [`take`](Self::take): they settle it, and write what it leaves in the store.
    pub fn absorb(
        &self,
        outgoing: &Outgoing,
        outcome: &Outcome,
        now: Timestamp,
    ) -> Result<Vec<Input>, pointsman_store::Error> {
        let performed = match outcome {
            Outcome::Done(performed) => performed,
            Outcome::Later { error } => {
                let doubled = 1u32.checked_shl(outgoing.attempts.min(16)).unwrap_or(u32::MAX);
                let pause = RETRY_FIRST.saturating_mul(doubled).min(RETRY_LAST);
                tracing::warn!(workflow = %outgoing.workflow, effect = outgoing.effect.kind(), %error, ?pause, "later");
                return Ok(vec![Input::postponed_effect(outgoing, error.clone(), now.after(pause))]);
            }
            Outcome::Down { error, asked } => {
                let event = notifier::Event::Failed { error: error.clone(), asked: *asked };
                let Ok(Some(Workflow::Notifier(before))) = self.stored(&outgoing.workflow)? else {
                    return Ok(Vec::new());
                };
                let after = notifier::step(&before, &event, now).health;
                let until = after.map_or(now, |health| health.next);
                let failed = Input::of(outgoing.workflow.clone(), Event::Notifier(event));
                return Ok(vec![Input::postponed_effect(outgoing, error.clone(), until), failed]);
            }
            Outcome::Never { error } => {
                tracing::error!(workflow = %outgoing.workflow, effect = outgoing.effect.kind(), %error, "gave up");
                let event = Event::effect_gave_up(&outgoing.workflow, &outgoing.effect, error.clone());
                let input = Input::of(outgoing.workflow.clone(), event);
                return Ok(vec![Input { settles: Some(outgoing.id), failure: Some(error.clone()), ..input }]);
            }
        };
        let mut inputs: Vec<Input> =
            performed.events.iter().map(|e| Input::of(outgoing.workflow.clone(), e.clone())).collect();
        if inputs.is_empty() {
            inputs.push(Input::effect_done(outgoing.workflow.clone(), outgoing.effect.kind()));
        }
        inputs[0].settles = Some(outgoing.id);
        inputs[0].sessions.clone_from(&performed.sessions);
        for posting in &performed.notices {
            let notice = planned(self, posting, now)?;
            inputs[0].first.extend(notice.map(|notice| Change::quiet(now, vec![notice])));
        }
        match &performed.note {
            None => {}
            Some(Note::MessageSent { path }) => inputs[0].sent = Some(path.clone()),
            Some(Note::MessageHeld { path }) => {
                let held = Write::MessageHeld { id: outgoing.id, path: path.clone() };
                inputs[0].first.push(Change::quiet(now, vec![held]));
            }
            // Before it is settled: what is superseded is not done.
            Some(Note::MessageSuperseded) => {
                inputs[0].first.push(Change::quiet(now, vec![Write::EffectSuperseded(outgoing.id)]));
            }
            Some(Note::Told { id, delivered, at }) => {
                let settled = Write::Delivered { id: *id, delivered: Delivered::clone(delivered), at: *at };
                inputs[0].first.push(Change::quiet(now, vec![settled]));
            }
            Some(Note::Enqueue(entry)) => inputs[0].enters = Some(entry.clone()),
            Some(Note::Dequeue { branch }) => inputs[0].leaves = Some(branch.clone()),
        }
        for started in performed.sessions.iter().filter(|row| row.ended_at.is_none()) {
            inputs[0].sessions.extend(self.left_behind(started, now)?);
        }
        Ok(inputs)
    }

    /// Older sessions that nobody saw end. One terminal has one session: the start of the next is
    /// their end.
    fn left_behind(
        &self,
        started: &SessionRow,
        now: Timestamp,
    ) -> Result<Vec<SessionRow>, pointsman_store::Error> {
        let mut rows = self.store.sessions(Some(&started.project), SessionScope::Live)?;
        rows.retain(|row| row.identity == started.identity && row.generation < started.generation);
        for row in &mut rows {
            row.ended_at = Some(now);
            row.exit = Some(Exit::Stopped);
        }
        Ok(rows)
    }
}

/// The lane of a notifier, if it is one.
fn lane(id: &WorkflowId) -> Option<Lane> {
    match id {
        WorkflowId::Notifier(key) => Some(key.lane),
        WorkflowId::Task(_)
        | WorkflowId::Run(_)
        | WorkflowId::Vault(_)
        | WorkflowId::Concern(_)
        | WorkflowId::Role(_) => None,
    }
}
