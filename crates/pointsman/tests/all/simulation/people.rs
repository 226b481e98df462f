//! What people do, to the forge and to the daemon. First anything; at last, what helps.

use pointsman_core::ids::{Number, Sha};
use pointsman_core::labels::{BACKLOG, BLOCKED, IN_PROGRESS, UNDERSPECIFIED};
use pointsman_core::part::question::Cause;
use pointsman_core::run::Run;
use pointsman_core::task::{Event, Order, ReviewVerdict, State, Task};

use super::daemon::Daemon;
use super::reality::Quality;
use super::reality::forge::ME;

/// A person who lifted a label waits this many rounds before giving the order instead.
const PATIENCE: u32 = 4;

#[derive(Clone, Copy)]
enum Whim {
    Answer,
    Comment,
    Review,
    Close,
    Reopen,
    Lift,
    Block,
    Unlabel,
    Order(Order),
    Take,
    Give,
    ClosePullRequest,
    MergePullRequest,
}

impl Daemon {
    /// Somebody does something to some task.
    pub(super) fn somebody_acts(&mut self) {
        let helpful = 8 * self.reality().story.smoothness;
        let whim = self.reality().chance.weighted(&[
            (helpful, Whim::Answer),
            (helpful, Whim::Comment),
            (2 * helpful, Whim::Review),
            (helpful, Whim::Lift),
            (helpful, Whim::Order(Order::Resume)),
            (helpful, Whim::Order(Order::Start)),
            (4, Whim::Reopen),
            (1, Whim::Close),
            (1, Whim::Block),
            (1, Whim::Unlabel),
            (2, Whim::Order(Order::Pause)),
            (2, Whim::Order(Order::Stop)),
            (2, Whim::Take),
            (helpful, Whim::Give),
            (1, Whim::ClosePullRequest),
            (1, Whim::MergePullRequest),
        ]);
        let numbers: Vec<Number> = self.reality().issues.keys().copied().collect();
        let number = *self.reality().chance.pick(&numbers);
        match whim {
            Whim::Answer => drop(self.answer(number)),
            Whim::Comment => {
                let mut reality = self.reality();
                let (id, at) = (reality.fresh(), reality.now);
                reality.issue(number).answers.push((id, format!("once:answer-{id};"), at));
            }
            Whim::Review => self.review_something(),
            Whim::Close => self.reality().issue(number).open = false,
            Whim::Reopen => self.reopen(number),
            Whim::Lift => self.reality().issue(number).label(&[], &[BLOCKED, UNDERSPECIFIED]),
            Whim::Block => self.reality().issue(number).label(&[BLOCKED], &[]),
            Whim::Unlabel => self.reality().issue(number).label(&[], &[BACKLOG]),
            Whim::Order(order) => drop(self.order(number, order)),
            Whim::Take => drop(self.command(number, Event::Taken { by: "ann".to_owned() })),
            Whim::Give => self.give(number),
            Whim::ClosePullRequest => self.close_pull_request(number),
            Whim::MergePullRequest => self.merge_by_hand(number),
        }
    }

    /// A person has worked on it, and well.
    fn give(&mut self, number: Number) {
        let head = self.reality().commit(Quality::Good);
        drop(self.command(number, Event::Given { by: "ann".to_owned(), head }));
    }

    fn answer(&mut self, number: Number) -> Result<(), pointsman_core::task::Refused> {
        let id = self.reality().fresh();
        let by = "ann".to_owned();
        let refused = self.stored(number).is_some_and(|task| !task.contribution.refused_hosts().is_empty());
        if refused {
            return self.command(number, Event::HostsAllowed { by });
        }
        let cause = self.stored(number).and_then(|task| Some(task.escalation?.cause));
        if cause == Some(Cause::Setup) && id.is_multiple_of(2) {
            return self.command(number, Event::SetupRetried { by });
        }
        // A third of the plans is answered with words.
        if cause == Some(Cause::Plan) && !id.is_multiple_of(3) {
            let (accepted, reason) = (!id.is_multiple_of(7), "not like this".to_owned());
            return self.command(number, Event::PlanDecided { by, accepted, reason });
        }
        self.command(number, Event::Answered { by, text: format!("once:answer-{id};") })
    }

    /// A reviewer looks at what waits for one, and now and then at what does not.
    pub(super) fn review_something(&mut self) {
        let tasks = self.tasks();
        let open: Vec<(Number, Sha)> = tasks
            .iter()
            .filter(|t| t.state == State::AwaitingReview || t.key.issue == 1)
            .filter_map(|t| Some((t.contribution.pr()?, t.contribution.head()?.clone())))
            .collect();
        if open.is_empty() {
            return;
        }
        let (number, sha) = self.reality().chance.pick(&open).clone();
        let verdict = self.reality().chance.weighted(&[
            (6, ReviewVerdict::Approve),
            (3, ReviewVerdict::RequestChanges),
            (1, ReviewVerdict::Discuss),
        ]);
        self.say(format!("person: review of !{number} at {}: {verdict:?}", sha.short()));
        self.reality().review(number, sha, verdict);
    }

    /// Nobody undoes what is being done: only an issue that we are through with is reopened.
    fn reopen(&mut self, number: Number) {
        let seen = self.stored(number).is_some_and(|t| t.state == State::Closed);
        let key = self.reality().key(number);
        let idle = self
            .engine()
            .store()
            .pending_effects(&key.clone().into())
            .is_ok_and(|pending| pending.is_empty());
        if seen && idle && !self.reality().issue(number).open {
            self.say(format!("person: reopens #{number}"));
            let mut reality = self.reality();
            let issue = reality.issue(number);
            issue.open = true;
            issue.label(&[BACKLOG], &[IN_PROGRESS, BLOCKED]);
        }
    }

    fn close_pull_request(&mut self, number: Number) {
        let mut reality = self.reality();
        if let Some(pr) = reality.open_pull_request(number) {
            reality.pull_requests.get_mut(&pr).expect("it was found").open = false;
        }
    }

    fn merge_by_hand(&mut self, number: Number) {
        let mut reality = self.reality();
        let (Some(pr), Some(head)) =
            (reality.open_pull_request(number), reality.desks[&number].remote.clone())
        else {
            return;
        };
        if reality.landed_as(&head).is_none() {
            reality.trace.say(format!("person: merges !{pr} at {}", head.short()));
            reality.land(head.clone(), head.clone());
            reality.record_merge(Some(pr), &head);
        }
    }

    /// Everybody does what the daemon waits for, round after round, until nothing does.
    pub(super) fn everybody_helps(&mut self, round: u32) {
        let numbers: Vec<Number> = self.reality().issues.keys().copied().collect();
        for number in numbers {
            match self.stored(number) {
                Some(task) => self.help(&task, round),
                None => self.queue_again(number),
            }
        }
        self.help_runs();
    }

    /// Somebody answers the runs whose questions wait for ever.
    fn help_runs(&mut self) {
        let asks = |run: &Run| run.question.as_ref().is_some_and(|asked| asked.cause == Cause::Setup);
        for run in self.runs().into_iter().filter(asks) {
            self.answer_run(&run);
        }
    }

    fn help(&mut self, task: &Task, round: u32) {
        let number = task.key.issue;
        let impatient = round % PATIENCE == PATIENCE - 1;
        match task.state {
            State::Escalated => drop(self.answer(number)),
            State::Paused if task.taken_by.is_some() => self.give(number),
            State::Paused => drop(self.order(number, Order::Resume)),
            State::Blocked | State::Refused if impatient => drop(self.order(number, Order::Start)),
            State::Blocked | State::Refused => {
                self.reality().issue(number).label(&[BACKLOG], &[BLOCKED, UNDERSPECIFIED, IN_PROGRESS]);
            }
            State::AwaitingReview => self.approve(task, impatient),
            State::WaitingDependencies => {
                // In a circle one has to go first.
                let first = task.open_dependencies.iter().all(|other| *other > number);
                if first {
                    self.reality().issue(number).depends_on.clear();
                }
            }
            State::Backlog => self.queue_again(number),
            State::Closed if impatient => self.close_what_is_over(task),
            State::Closed | State::Working | State::AwaitingCi | State::MergeQueue | State::Merged => {}
        }
    }

    fn approve(&mut self, task: &Task, again: bool) {
        let (Some(pr), Some(head)) = (task.contribution.pr(), task.contribution.head().cloned()) else {
            return;
        };
        if again || !self.reality().is_approved(task.key.issue, &head) {
            self.reality().review(pr, head, ReviewVerdict::Approve);
        }
    }

    /// Somebody took the label away; it comes back. An issue that carries our claim is ours to mend.
    fn queue_again(&mut self, number: Number) {
        let mut reality = self.reality();
        let issue = reality.issue(number);
        let ours = issue.has(IN_PROGRESS) && issue.assignee.as_deref() == Some(ME);
        if !ours {
            issue.label(&[BACKLOG], &[]);
        }
    }

    /// Work that is merged whose issue could not be closed: the notice says so.
    fn close_what_is_over(&mut self, task: &Task) {
        let mut reality = self.reality();
        let issue = reality.issue(task.key.issue);
        if issue.open && !issue.has(BACKLOG) {
            issue.open = false;
        }
    }
}
