//! What the daemon is told of the world: forge polls, phase files, ended sessions, idle prompts,
//! CI. Level-triggered like the real sources: what still holds is told again.

use std::collections::{BTreeMap, BTreeSet};

use pointsman::daemon::engine::Input;
use pointsman_core::dependencies;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::labels::BACKLOG;
use pointsman_core::session::context::{self, Gauge};
use pointsman_core::task::{CiVerdict, Event, Exit, Phase, PrFact, Stage, State, Task};
use pointsman_store::SessionRow;

use super::daemon::{Daemon, Item, Source};
use super::reality::{Quality, Reality};

impl Daemon {
    /// Asks the forge about everything that matters.
    pub(super) fn poll_forge(&mut self) {
        let (tasks, runs) = (self.tasks(), self.runs());
        let inputs = {
            let reality = self.reality();
            let labelled = reality.issues.iter().filter(|(_, i)| i.open && i.has(BACKLOG)).map(|(n, _)| *n);
            let numbers: BTreeSet<Number> = tasks.iter().map(|t| t.key.issue).chain(labelled).collect();
            let graph: BTreeMap<Number, BTreeSet<Number>> = reality
                .issues
                .iter()
                .filter(|(_, issue)| issue.open)
                .map(|(number, issue)| (*number, issue.depends_on.clone()))
                .collect();
            let mut inputs: Vec<Input> = numbers
                .into_iter()
                .map(|number| {
                    let task = tasks.iter().find(|t| t.key.issue == number);
                    Input::new(reality.key(number), observed(&reality, number, task.map(|t| &**t), &graph))
                })
                .collect();
            inputs.extend(tasks.iter().flat_map(|task| about(&reality, task)));
            inputs.extend(runs.iter().flat_map(|run| reality.about_hand_in(run)));
            inputs
        };
        self.told(Source::Forge, Item::Inputs(inputs));
    }

    /// Reads the phase files of all sessions; what was told is not told again.
    pub(super) fn look_at_phases(&mut self) {
        let tasks = self.tasks();
        let present =
            |issue: &Number| tasks.iter().any(|t| t.key.issue == *issue && t.session.stage != Stage::None);
        self.memory.phases.retain(|issue, _| present(issue));
        for task in tasks.iter().filter(|t| t.session.stage != Stage::None) {
            self.look_at_phase(task);
        }
    }

    fn look_at_phase(&mut self, task: &Task) {
        let issue = task.key.issue;
        let name = format!("phase-{issue}");
        if !self.memory.phases.contains_key(&issue) {
            let project = task.key.project.clone();
            let remembered =
                self.engine().store().cursor(Some(&project), &name).expect("cursors can be read");
            self.memory.phases.insert(issue, remembered.and_then(|stamp| stamp.parse().ok()));
        }
        let Some(file) = self.reality().session_files(issue).phase.clone() else { return };
        if self.memory.phases.insert(issue, Some(file.stamp)) == Some(Some(file.stamp)) {
            return;
        }
        let generation = task.session.generation;
        let reason = Some("because".to_owned());
        let event = match file.phase {
            Some(phase) => {
                let refusal = file.refusal.filter(|_| phase == Phase::Failed);
                Event::PhaseClaimed { generation, phase, reason, refusal, plan: None }
            }
            None => Event::PhaseRejected { generation, why: "no phase".to_owned() },
        };
        let mut input = Input::new(task.key.clone(), event);
        input.cursor = Some((name, file.stamp.to_string()));
        self.told(Source::Phases, Item::Inputs(vec![input]));
    }

    /// Sessions that are thought alive and are not. What they wrote last is told before.
    pub(super) fn look_for_exits(&mut self) {
        for task in self.tasks().into_iter().filter(|t| t.session.stage == Stage::Alive) {
            let (issue, generation) = (task.key.issue, task.session.generation);
            let alive = self
                .reality()
                .session_files(issue)
                .pane
                .as_ref()
                .is_some_and(|pane| pane.alive && pane.generation == generation);
            if alive || !self.memory.exits.insert((issue, generation)) {
                continue;
            }
            self.look_at_phase(&task);
            let mut inputs = Vec::new();
            // The same thread tells both, so nothing comes in between them.
            if let Some(waiting) = self.memory.inbound.get_mut(&Source::Phases) {
                for item in waiting.drain(..) {
                    if let Item::Inputs(some) = item {
                        inputs.extend(some);
                    }
                }
            }
            let event = Event::SessionEnded { generation, exit: Exit::Crashed, tail: "gone".to_owned() };
            let mut input = Input::new(task.key.clone(), event);
            input.sessions = self.written_off(&task.key.session(generation));
            inputs.push(input);
            self.told(Source::Exits, Item::Inputs(inputs));
        }
    }

    /// The row of a session that was found dead, whether it was ever launched or not.
    pub(super) fn written_off(&mut self, session: &str) -> Vec<SessionRow> {
        let now = self.reality().now;
        let row = self.engine().store().session(session).expect("sessions can be read");
        let ended = |row| SessionRow { ended_at: Some(now), exit: Some(Exit::Crashed), ..row };
        row.map(ended).into_iter().collect()
    }

    /// Contexts fill up while anything may go wrong; when everyone is honest they have room.
    pub(super) fn measure_contexts(&mut self) {
        for task in self.tasks().into_iter().filter(|t| t.session.stage == Stage::Alive) {
            let used_permille = {
                let mut reality = self.reality();
                if reality.calm { 100 } else { *reality.chance.pick(&[100, 500, 760, 860, 930]) }
            };
            let gauge = Gauge { used_permille, source: context::Source::StatusLine };
            let event = Event::ContextMeasured { generation: task.session.generation, gauge };
            self.told(Source::Phases, Item::Inputs(vec![Input::new(task.key.clone(), event)]));
        }
    }

    /// Looks whether sessions without any phase sit at their prompt.
    pub(super) fn look_for_idle(&mut self) {
        let watched =
            |t: &Task| t.state == State::Working && t.session.stage == Stage::Alive && t.phase.is_none();
        for task in self.tasks().into_iter().filter(|t| watched(t)) {
            let generation = task.session.generation;
            let at_prompt =
                self.reality().session_files(task.key.issue).pane.as_ref().is_some_and(|pane| pane.idle);
            let event = Event::IdleLooked { generation, at_prompt };
            self.told(Source::Phases, Item::Inputs(vec![Input::new(task.key.clone(), event)]));
        }
    }

    /// Starts CI that is owed by the look of the tasks, then lets one of those at work finish.
    pub(super) fn run_checks(&mut self) {
        for task in self.tasks() {
            if let (State::AwaitingCi, Some((sha, run))) = (task.state, task.contribution.pending()) {
                self.reality().checks.insert((task.key.issue, sha.clone(), run));
            }
        }
        let running: Vec<(Number, Sha, u32)> = self.reality().checks.iter().cloned().collect();
        if running.is_empty() {
            return;
        }
        let check = self.reality().chance.pick(&running).clone();
        self.reality().checks.remove(&check);
        let (issue, sha, run) = check;
        let verdict = self.reality().verdict(issue, &sha, run);
        // A green run that another one repeated after a red one.
        let flaky = verdict == CiVerdict::Passed && self.reality().chance.one_in(4);
        let key = self.reality().key(issue);
        let inputs =
            [Event::ChecksStarted { sha: sha.clone() }, Event::ChecksFinished { sha, run, verdict, flaky }]
                .map(|event| Input::new(key.clone(), event));
        self.told(Source::Checks, Item::Inputs(inputs.into()));
    }
}

impl Reality {
    pub(super) fn verdict(&mut self, issue: Number, sha: &Sha, run: u32) -> CiVerdict {
        let log = format!("once:ci-{issue}-{run};");
        if self.fault(12) {
            return CiVerdict::Infra { reason: "exit 137".to_owned(), log };
        }
        if self.fault(8) {
            return CiVerdict::Unreached {
                hosts: vec!["registry.example.org:443".to_owned()],
                programs: Vec::new(),
                log,
            };
        }
        if self.fault(30) {
            return CiVerdict::TimedOut { log };
        }
        match self.quality[sha] {
            Quality::Good => {
                self.green.insert(sha.clone());
                CiVerdict::Passed
            }
            Quality::Red => CiVerdict::Failed { summary: "exit 1".to_owned(), log },
        }
    }
}

fn observed(
    reality: &Reality,
    number: Number,
    task: Option<&Task>,
    graph: &BTreeMap<Number, BTreeSet<Number>>,
) -> Event {
    let issue = &reality.issues[&number];
    let mut dependencies: Vec<Number> = graph.get(&number).into_iter().flatten().copied().collect();
    let mut open_dependencies = reality.open_dependencies(number);
    if let Some(refusal) = task.and_then(|t| t.refusal.as_ref()) {
        let others = refusal.blocked_by.iter().filter(|n| reality.issues.get(n).is_none_or(|i| i.open));
        open_dependencies.extend(others);
        dependencies.extend(&refusal.blocked_by);
    }
    Event::IssueObserved {
        title: format!("issue {number}"),
        open: issue.open,
        labels: issue.labels.iter().cloned().collect(),
        dependencies,
        open_dependencies,
        cycle: dependencies::cycle_through(graph, number),
        asked_at: None,
    }
}

/// Pull request, reviews, answers and pushes of one task.
fn about(reality: &Reality, task: &Task) -> Vec<Input> {
    if !task.state.has_session() && task.state != State::Blocked {
        return Vec::new();
    }
    let mut inputs = Vec::new();
    let input = |event| Input::new(task.key.clone(), event);
    if let Some(pr) = task.contribution.pr().map(|number| &reality.pull_requests[&number]) {
        if let Some(sha) = pr.merged_as.clone() {
            inputs.push(input(Event::PullRequestObserved { fact: PrFact::Merged { sha } }));
        } else if !pr.open {
            inputs.push(input(Event::PullRequestObserved { fact: PrFact::Closed }));
        }
        for review in pr.reviews.iter().filter(|r| task.contribution.head() == Some(&r.sha)) {
            let body = format!("once:review-{};", review.id);
            let (sha, verdict, by) = (review.sha.clone(), review.verdict, "ann".to_owned());
            let posted = input(Event::ReviewPosted { sha, verdict, by, by_agent: false, body });
            inputs.push(Input { dedup: Some(format!("review:{}", review.id)), ..posted });
        }
    }
    if let Some(escalation) = &task.escalation {
        for (id, text, at) in &reality.issues[&task.key.issue].answers {
            if *at >= escalation.asked_at {
                let answered = input(Event::Answered { by: "ann".to_owned(), text: text.clone() });
                inputs.push(Input { dedup: Some(format!("comment:{id}")), ..answered });
            }
        }
    }
    let pushed = &reality.desks[&task.key.issue].gateway;
    let follows = matches!(task.state, State::AwaitingCi | State::AwaitingReview | State::MergeQueue);
    if follows
        && pushed.is_some()
        && task.contribution.head().is_some()
        && pushed.as_ref() != task.contribution.head()
    {
        inputs.push(input(Event::HeadMoved));
    }
    inputs
}
