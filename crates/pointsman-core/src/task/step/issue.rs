//! Reactions to news of the issue.

use std::time::Duration;

use super::{Draft, Refused};
use crate::ids::Number;
use crate::labels::{BACKLOG, BLOCKED, IN_PROGRESS, UNDERSPECIFIED, has};
use crate::part::session::Stage;
use crate::task::effect::{Effect, Exit};
use crate::task::phase::RefusalStatus;
use crate::task::plan::PlanStage;
use crate::task::state::State;
use crate::time::Timestamp;
use crate::words;

/// The longest time that a question to a forge is under way. An answer that seems older than that was asked by a clock
/// that has been set back since.
const UNDER_WAY: Duration = Duration::from_secs(600);

/// What one look at an open issue found.
#[derive(Clone, Copy)]
pub(super) struct IssueFacts<'a> {
    pub(super) labels: &'a [String],
    /// The issues that were looked up, open or not.
    pub(super) dependencies: &'a [Number],
    /// The cycle of dependencies it is part of.
    pub(super) cycle: Option<&'a [Number]>,
    pub(super) asked_at: Option<Timestamp>,
}

/// Whether an answer was asked for before another one that came first.
fn was_overtaken(asked_at: Option<Timestamp>, other: Option<Timestamp>) -> bool {
    match (asked_at, other) {
        (Some(asked), Some(other)) => asked < other && other.since(asked) < UNDER_WAY,
        (None, _) | (_, None) => false,
    }
}

impl Draft<'_> {
    pub(super) fn issue_observed(&mut self, open: bool, look: IssueFacts<'_>) {
        if !open {
            self.closed_by_someone();
            return;
        }
        match self.task.state {
            State::Backlog | State::WaitingDependencies => self.queue_up(look.labels, look.cycle),
            State::Blocked | State::Refused | State::Closed => self.look_for_lifting(look),
            State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Escalated
            | State::Paused
            | State::Merged => {}
        }
    }

    /// Open, labelled, not blocked, dependencies closed: ready.
    fn queue_up(&mut self, labels: &[String], cycle: Option<&[Number]>) {
        let queued = has(labels, BACKLOG) && !has(labels, IN_PROGRESS);
        if has(labels, BLOCKED) {
            self.task.ready = false;
            self.enter(State::Blocked);
            self.task.block_seen = true;
            self.task.reason = Some(words::reason::LABELLED_BLOCKED.to_owned());
            return;
        }
        let waits = cycle.is_some() || !self.task.open_dependencies.is_empty();
        let state = if queued && waits { State::WaitingDependencies } else { State::Backlog };
        if self.task.state != state {
            self.enter(state);
        }
        self.task.reason = cycle.map(words::reason::cycle);
        self.task.ready = queued && !waits;
    }

    /// A task that was stopped by a label (or by being closed) goes on when that is gone. The label
    /// must have been there first, which is seen when we set it and read it back: an answer from before
    /// it was set says nothing.
    fn look_for_lifting(&mut self, look: IssueFacts<'_>) {
        let IssueFacts { labels, dependencies, cycle, asked_at } = look;
        let stopped = match self.task.state {
            State::Refused => match self.task.refusal.as_ref().map(|r| r.status) {
                Some(RefusalStatus::TooLarge) => has(labels, UNDERSPECIFIED) || !has(labels, BACKLOG),
                Some(RefusalStatus::AlreadyDone) => !has(labels, BACKLOG),
                Some(RefusalStatus::UnmetDependency) | None => has(labels, BLOCKED),
            },
            State::Closed => false,
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Escalated
            | State::Blocked
            | State::Paused
            | State::Merged => has(labels, BLOCKED),
        };
        if stopped {
            if !self.task.block_seen {
                self.task.block_seen = true;
                self.task.block_seen_at = asked_at;
            }
            let refusal = self.task.refusal.as_ref();
            let unmet = refusal.filter(|r| r.status == RefusalStatus::UnmetDependency);
            // Nothing is known of an issue that was not looked up: it may well be open.
            let looked_up = |n: &Number| *n == self.task.key.issue || dependencies.contains(n);
            let all_looked_up = unmet.is_some_and(|r| r.blocked_by.iter().all(looked_up));
            if unmet.is_some() && !self.task.open_dependencies.is_empty() {
                self.task.dependencies_seen = true;
            } else if all_looked_up && self.task.dependencies_seen {
                // We set this label because of them, and they are closed now. An agent that named none,
                // or none that is open, would only refuse again: then a person decides.
                self.set_labels(&[], &[BLOCKED]);
            }
        } else if self.task.block_seen
            && !was_overtaken(asked_at, self.task.block_seen_at)
            && (self.task.state != State::Closed || has(labels, BACKLOG))
        {
            self.forget_work();
            self.enter(State::Backlog);
            self.queue_up(labels, cycle);
        }
    }

    fn closed_by_someone(&mut self) {
        match self.task.state {
            State::Closed => self.task.block_seen = true,
            State::Merged => self.finish(),
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Escalated
            | State::Blocked
            | State::Refused
            | State::Paused => {
                let worked_on = self.task.session.stage != Stage::None;
                self.leave_queue();
                self.end_session(Exit::Stopped);
                if self.task.session.generation > 0 {
                    self.set_labels(&[], &[IN_PROGRESS]);
                    self.order(Effect::CleanUp);
                }
                self.enter(State::Closed);
                self.task.ready = false;
                self.task.block_seen = true;
                self.task.reason = Some(words::reason::CLOSED_BY_SOMEONE.to_owned());
                if worked_on {
                    self.notify(words::notice::closed_by_someone(&self.task));
                }
            }
        }
    }

    pub(super) fn claimed(&mut self) -> Result<(), Refused> {
        if self.task.state != State::Working || self.task.session.stage != Stage::None {
            return Err(Refused::NotNow(words::task::refused::waits_for_no_claim(self.task.state)));
        }
        self.start_session();
        if std::mem::take(&mut self.task.handed_in) && !self.wants_plan() {
            self.await_push(self.policy.ci_timeout);
            self.order(Effect::SyncBranch);
        }
        Ok(())
    }

    pub(super) fn claim_lost(&mut self, reason: &str) -> Result<(), Refused> {
        if self.task.state != State::Working || self.task.session.stage != Stage::None {
            return Err(Refused::NotNow(words::task::refused::waits_for_no_claim(self.task.state)));
        }
        self.enter(State::Backlog);
        self.task.ready = false;
        self.task.claimed = false;
        self.task.reason = Some(words::reason::claim_lost(reason));
        Ok(())
    }

    /// A new start: what an earlier claim of the issue used up does not count. The generation goes
    /// on, and so does the working tree.
    pub(super) fn forget_work(&mut self) {
        self.task.claimed = false;
        self.task.phase = None;
        self.task.contribution.begin_anew();
        self.task.premature_done = 0;
        self.task.refusal = None;
        self.task.handed_in = false;
        self.task.plan = PlanStage::Due;
        self.task.dependencies_seen = false;
        self.task.block_seen = false;
        self.task.block_seen_at = None;
        self.task.diagnosis_due = false;
        self.task.session.begin_anew();
    }
}
