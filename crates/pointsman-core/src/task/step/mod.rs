//! The reaction matrix: what follows from a task and an event.
//!
//! One file per kind of event; [`Draft`] is the next task under construction together with the
//! effects it asks for. Wording comes from [`crate::words`].

mod claim;
mod contribution;
mod escalate;
mod finish;
mod issue;
mod order;
mod plan;
mod session;
mod time;

#[cfg(test)]
mod tests;

use claim::Said;

use super::effect::{Effect, Headline, Notice};
use super::event::Event;
use super::policy::Policy;
use super::state::{State, Task};
use crate::part::contribution::{self as part, Awaited};
use crate::part::session::Fact;
use crate::time::Timestamp;
use crate::workflow::Refused;

/// The next task and what is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The task after the event.
    pub task: Task,
    /// Orders to the world, in this order.
    pub effects: Vec<Effect>,
}

/// The reaction of `task` to `event` at `now`.
pub fn step(task: &Task, event: &Event, policy: &Policy, now: Timestamp) -> Result<Transition, Refused> {
    let mut draft = Draft { task: task.clone(), effects: Vec::new(), policy, now };
    match event {
        Event::IssueObserved { title, open, labels, dependencies, open_dependencies, cycle, asked_at } => {
            title.clone_into(&mut draft.task.title);
            draft.task.open_dependencies.clone_from(open_dependencies);
            let look =
                issue::IssueFacts { labels, dependencies, cycle: cycle.as_deref(), asked_at: *asked_at };
            draft.issue_observed(*open, look);
        }
        Event::Claimed => draft.claimed()?,
        Event::ClaimLost { reason } => draft.claim_lost(reason)?,
        Event::SessionStarted { generation } => draft.session_fact(*generation, &Fact::Started)?,
        Event::SessionNotStarted { generation, error } => {
            draft.session_fact(*generation, &Fact::NotStarted { error })?;
        }
        Event::SessionEnded { generation, tail, .. } => {
            draft.session_fact(*generation, &Fact::Ended { tail })?;
        }
        Event::IdleLooked { generation, at_prompt } => {
            draft.session_fact(*generation, &Fact::IdleLooked { at_prompt: *at_prompt })?;
        }
        Event::PhaseClaimed { generation, phase, reason, refusal, plan } => {
            let said = Said { reason: reason.as_deref(), refusal: refusal.as_ref(), plan: plan.as_deref() };
            draft.phase_claimed(*generation, *phase, said)?;
        }
        Event::PhaseRejected { generation, why } => draft.phase_rejected(*generation, why)?,
        Event::BranchSynced { head, protected, risk, secret } => {
            draft.branch_synced(&part::Fact::Pushed {
                head: head.as_ref(),
                protected,
                risk: risk.as_ref(),
                secret: secret.as_ref(),
            })?;
        }
        Event::PullRequestOpened { number } => draft.contributed(&part::Fact::Opened { number: *number })?,
        Event::PullRequestObserved { fact } => draft.pull_request_observed(fact)?,
        Event::HeadMoved => draft.contributed(&part::Fact::HeadMoved)?,
        Event::ChecksStarted { sha } => draft.contributed(&part::Fact::ChecksStarted { sha })?,
        Event::ChecksFinished { sha, run, verdict, flaky } => {
            draft.contributed(&part::Fact::ChecksFinished { sha, run: *run, verdict })?;
            if *flaky {
                draft.notify(crate::words::notice::flaky(&draft.task, sha));
            }
        }
        Event::ReviewPosted { sha, verdict, by, by_agent, body } => {
            draft.review_posted(&part::Fact::Reviewed {
                sha,
                verdict: *verdict,
                by,
                by_agent: *by_agent,
                body,
            })?;
        }
        Event::HostsAllowed { .. } => draft.contributed(&part::Fact::HostsAllowed)?,
        Event::SetupFailed { generation, opening, error, log } => {
            draft.setup_failed(*generation, *opening, error, log)?;
        }
        Event::SetupRetried { .. } => draft.setup_retried()?,
        Event::PlanDecided { by, accepted, reason } => draft.plan_decided(by, *accepted, reason)?,
        Event::PortsAssigned { ports } => draft.task.ports.clone_from(ports),
        Event::QueueReported { head, outcome } => draft.queue_reported(head, outcome)?,
        Event::MergeLooked { merged_as } => draft.merge_looked(merged_as.as_ref())?,
        Event::ContextMeasured { generation, gauge } => {
            draft.session_fact(*generation, &Fact::ContextMeasured(*gauge))?;
        }
        Event::SymptomSeen { generation, symptom } => {
            draft.session_fact(*generation, &Fact::SymptomSeen(*symptom))?;
        }
        Event::ContextCompacted { generation } => {
            draft.session_fact(*generation, &Fact::ContextCompacted)?;
        }
        Event::TurnEnded { generation } => draft.session_fact(*generation, &Fact::TurnEnded)?,
        Event::TurnFailed { generation, error, details, until } => {
            draft.session_fact(*generation, &Fact::TurnFailed { error, details, until: *until })?;
        }
        Event::DialogSeen { generation, what, picture } => draft.dialog_seen(*generation, what, picture)?,
        Event::ResponseGiven { generation, text } => draft.response_given(*generation, text)?,
        Event::HooksSilent { generation, required, picture } => {
            draft.hooks_silent(*generation, *required, picture)?;
        }
        Event::BudgetReached { level, what, until } => draft.budget_reached(*level, what, *until)?,
        Event::BudgetGranted => draft.task.session.budget_granted(now)?,
        Event::TimeSkipped { by_ms } => draft.time_skipped(*by_ms),
        Event::Answered { by, text } => draft.answered(by, text)?,
        Event::Taken { by } => draft.taken(by)?,
        Event::Given { by, head } => draft.given(by, head)?,
        Event::Ordered { order } => draft.ordered(*order)?,
        Event::TimePassed => draft.time_passed(),
        Event::EffectGaveUp { effect, error } => draft.effect_gave_up(effect, error),
        Event::MessageUnacknowledged { message, headline } => draft.unacknowledged(*message, headline)?,
    }
    Ok(Transition { task: draft.task, effects: draft.effects })
}

/// The state in which a task waits for something.
fn state_of(awaited: Awaited) -> State {
    match awaited {
        Awaited::Push | Awaited::Checks => State::AwaitingCi,
        Awaited::Review => State::AwaitingReview,
        Awaited::Queue => State::MergeQueue,
    }
}

/// The next task under construction.
struct Draft<'a> {
    task: Task,
    effects: Vec<Effect>,
    policy: &'a Policy,
    now: Timestamp,
}

impl Draft<'_> {
    fn order(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Goes to `state`, with the deadline that belongs to it. Reason and question of the old state
    /// end with it.
    fn enter(&mut self, state: State) {
        self.task.session.parked_until = None;
        if self.task.state != state {
            self.task.since = self.now;
        }
        self.task.state = state;
        self.task.reason = None;
        self.task.escalation = None;
        self.task.taken_by = None;
        if self.task.contribution.awaited().map(state_of) != Some(state) {
            self.task.contribution.rest();
        }
        self.task.deadline = match state {
            State::Working => Some(self.now.after(self.policy.session_timeout)),
            State::Merged => Some(self.now.after(self.policy.done_grace)),
            // The contribution has a clock of its own.
            State::AwaitingCi | State::AwaitingReview | State::MergeQueue
            // So has the question.
            | State::Escalated
            // These wait for a person or for the forge; nothing runs and nothing is spent.
            | State::Backlog
            | State::WaitingDependencies
            | State::Blocked
            | State::Refused
            | State::Paused
            | State::Closed => None,
        };
    }

    /// Says something to the agent, in a new session if there is none.
    fn tell(&mut self, headline: Headline, words: (String, String)) {
        let mut reactions = Vec::new();
        self.task.session.tell(headline, words, &mut reactions);
        self.follow(reactions, "");
    }

    fn notify(&mut self, notice: Notice) {
        self.order(Effect::Notify(notice));
    }

    /// Comments on the issue. The marker is this comment's alone: with an earlier one's it would be
    /// taken for posted.
    fn comment(&mut self, kind: &str, body: String) -> String {
        self.task.comments += 1;
        let marker = format!("{kind}-{}-{}", self.task.comments, self.now.0);
        self.order(Effect::Comment { marker: marker.clone(), body });
        marker
    }

    fn set_labels(&mut self, add: &[&str], remove: &[&str]) {
        let owned = |labels: &[&str]| labels.iter().map(|&l| l.to_owned()).collect();
        self.order(Effect::SetLabels { add: owned(add), remove: owned(remove) });
    }
}
