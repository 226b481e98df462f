//! Every cell of the reaction matrix, by name; then properties over random event sequences.

mod handoff;
mod handover;
mod hook;
mod lifecycle;
mod matrix;
mod plan;
mod properties;
mod recovery;
mod tree;
mod trouble;

use std::time::Duration;

use super::{Transition, step};
use crate::ids::{Number, ProjectName, Sha, TaskKey};
use crate::labels;
use crate::task::{
    Attempts, Ci, CiVerdict, Contribution, Effect, Event, Exit, Headline, Order, Phase, Policy, ReviewMode,
    ReviewVerdict, State, Task,
};
use crate::time::Timestamp;

const HOUR: Duration = Duration::from_secs(3600);

fn policy() -> Policy {
    Policy {
        has_ci: true,
        review: ReviewMode::Human,
        approvals: crate::part::contribution::Approvals::default(),
        ci_timeout: Duration::from_secs(1800),
        review_timeout: 3 * HOUR,
        escalation_renotify: 6 * HOUR,
        escalation_timeout: 24 * HOUR,
        queue_timeout: 48 * HOUR,
        session_timeout: 2 * HOUR,
        done_grace: Duration::from_secs(300),
        ci_fixes: 3,
        review_rounds: 5,
        infra_retries: 1,
        merge_conflicts: 5,
        premature_done: 5,
        plan: false,
        session: crate::part::session::Policy {
            restarts: 5,
            restart_backoff: Duration::from_secs(5),
            restart_backoff_max: Duration::from_secs(600),
            idle_looks: 3,
            handoffs: 2,
            handoff_timeout: Duration::from_secs(60),
            park: Duration::from_secs(900),
            marks: crate::session::context::Marks { low: 750, medium: 850, high: 920 },
        },
    }
}

fn sha(digit: char) -> Sha {
    Sha::new(&digit.to_string().repeat(40)).expect("hex")
}

/// A task as the tests read it: with the facts of its contribution beside its own, so that the matrix says what a person
/// sees of a task and not how it is put together.
#[derive(Clone, Debug)]
struct Seen {
    task: Task,
    pr: Option<Number>,
    head: Option<Sha>,
    ci: Ci,
    attempts: Attempts,
}

impl Seen {
    fn of(task: Task) -> Self {
        let Contribution { attempts, .. } = task.contribution;
        let contribution = &task.contribution;
        let (pr, head, ci) = (contribution.pr(), contribution.head().cloned(), contribution.ci().clone());
        Self { pr, head, ci, attempts, task }
    }
}

impl std::ops::Deref for Seen {
    type Target = Task;

    fn deref(&self) -> &Task {
        &self.task
    }
}

impl std::ops::DerefMut for Seen {
    fn deref_mut(&mut self) -> &mut Task {
        &mut self.task
    }
}

/// A task on its way, with a clock of its own.
struct Play {
    task: Seen,
    policy: Policy,
    now: Timestamp,
    /// What the last event ordered.
    ordered: Vec<Effect>,
}

impl Play {
    fn new() -> Self {
        let key = TaskKey { project: ProjectName::new("harb").expect("name"), issue: 42 };
        let task = Task::new(key, "Add a door".into(), "pointsman/issue-42".into(), Timestamp(0));
        Self { task: Seen::of(task), policy: policy(), now: Timestamp(1_000), ordered: Vec::new() }
    }

    fn try_event(&mut self, event: Event) -> Result<(), super::Refused> {
        let Transition { task, effects } = step(&self.task, &event, &self.policy, self.now)?;
        self.task = Seen::of(task);
        self.ordered = effects;
        Ok(())
    }

    fn event(mut self, event: Event) -> Self {
        let shown = format!("{event:?}");
        self.try_event(event).unwrap_or_else(|r| panic!("{shown} refused in {}: {r}", self.task.state));
        self
    }

    fn refuses(&mut self, event: Event) {
        let shown = format!("{event:?}");
        assert!(self.try_event(event).is_err(), "{shown} was taken in {}", self.task.state);
    }

    fn later(mut self, span: Duration) -> Self {
        self.now = self.now.after(span);
        self.event(Event::TimePassed)
    }

    fn seen(self, labels: &[&str]) -> Self {
        let labels = labels.iter().map(|&l| l.to_owned()).collect();
        self.event(Event::IssueObserved {
            title: "Add a door".into(),
            open: true,
            labels,
            dependencies: vec![],
            open_dependencies: vec![],
            cycle: None,
            asked_at: None,
        })
    }

    fn seen_closed(self) -> Self {
        self.event(Event::IssueObserved {
            title: "Add a door".into(),
            open: false,
            labels: vec![],
            dependencies: vec![],
            open_dependencies: vec![],
            cycle: None,
            asked_at: None,
        })
    }

    fn working() -> Self {
        let play = Self::new()
            .seen(&[labels::BACKLOG])
            .event(Event::Ordered { order: Order::Begin })
            .event(Event::Claimed);
        let generation = play.task.session.generation;
        play.event(Event::SessionStarted { generation })
    }

    fn says(self, phase: Phase) -> Self {
        let generation = self.task.session.generation;
        self.event(Event::PhaseClaimed {
            generation,
            phase,
            reason: Some("because".into()),
            refusal: None,
            plan: None,
        })
    }

    fn synced(self, head: Sha) -> Self {
        self.event(Event::BranchSynced { head: Some(head), protected: vec![], secret: None, risk: None })
    }

    fn awaiting_ci() -> Self {
        Self::working().says(Phase::AwaitingCi).synced(sha('a')).event(Event::PullRequestOpened { number: 7 })
    }

    fn ci(self, verdict: CiVerdict) -> Self {
        let sha = self.task.head.clone().expect("a head");
        let run = self.task.contribution.ci_run;
        self.event(Event::ChecksFinished { sha, run, verdict, flaky: false })
    }

    fn awaiting_review() -> Self {
        Self::awaiting_ci().ci(CiVerdict::Passed)
    }

    fn review(self, verdict: ReviewVerdict) -> Self {
        let sha = self.task.head.clone().expect("a head");
        self.event(Event::ReviewPosted {
            sha,
            verdict,
            by: "ann".into(),
            by_agent: false,
            body: "please".into(),
        })
    }

    fn in_queue() -> Self {
        Self::awaiting_review().review(ReviewVerdict::Approve)
    }

    fn merged() -> Self {
        let play = Self::in_queue();
        let head = play.task.head.clone().expect("a head");
        play.event(Event::QueueReported {
            head,
            outcome: crate::task::QueueOutcome::Landed { sha: sha('f') },
        })
    }

    fn escalated() -> Self {
        Self::working().says(Phase::Escalate)
    }

    fn ended(self, exit: Exit) -> Self {
        let generation = self.task.session.generation;
        self.event(Event::SessionEnded { generation, exit, tail: "last words".into() })
    }

    fn is(self, state: State) -> Self {
        assert_eq!(self.task.state, state);
        self
    }

    fn told(&self) -> Vec<Headline> {
        self.ordered
            .iter()
            .filter_map(|e| match e {
                Effect::Deliver { headline, .. } => Some(*headline),
                _ => None,
            })
            .collect()
    }

    /// What was ordered, but for the checkpoints that go with every phase.
    fn kinds(&self) -> Vec<&'static str> {
        self.ordered.iter().map(Effect::kind).filter(|kind| *kind != "checkpoint").collect()
    }

    fn labels(&self) -> (Vec<String>, Vec<String>) {
        self.ordered
            .iter()
            .find_map(|e| match e {
                Effect::SetLabels { add, remove } => Some((add.clone(), remove.clone())),
                _ => None,
            })
            .unwrap_or_default()
    }

    fn notices(&self) -> usize {
        self.ordered.iter().filter(|e| matches!(e, Effect::Notify(_))).count()
    }
}

fn red() -> CiVerdict {
    CiVerdict::Failed { summary: "exit 1".into(), log: "boom\n".into() }
}

fn infra() -> CiVerdict {
    CiVerdict::Infra { reason: "exit 137".into(), log: "Killed\n".into() }
}

fn alive(play: &Play) -> bool {
    play.task.session.is_listening()
}
