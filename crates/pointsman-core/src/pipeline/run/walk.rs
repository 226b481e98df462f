//! Moving a run along: beginning nodes, following edges, ending.

use std::collections::BTreeSet;

use super::{
    Arrival, Choice, Hop, MAX_CONTEXT, MAX_CONTEXT_CHARS, MAX_HOPS, Next, NodeRun, NodeStatus, Order, Outcome,
};
use super::{PipelineRun, Rules, Stage, Status, Thread, VERSION};
use crate::pipeline::condition::Verdict;
use crate::pipeline::model::{GateKind, Handler, Node, Pipeline, accelerator};
use crate::pipeline::route::{self, Ending, Route};
use crate::pipeline::topology::Topology;
use crate::text::clean_line;
use crate::time::Timestamp;
use crate::words::pipeline::Sentence;

/// Begins a run. A status that stands in the file is somebody's claim and changes nothing.
pub fn begin(pipeline: Pipeline, rules: &Rules, now: Timestamp) -> Next {
    let nodes = pipeline.nodes.iter().map(|node| (node.id.clone(), NodeRun::default())).collect();
    let start = pipeline.start.clone();
    let mut run = PipelineRun {
        version: VERSION,
        status: Status::Running,
        reason: None,
        started_at: now,
        ended_at: None,
        nodes,
        context: std::collections::BTreeMap::new(),
        threads: std::collections::BTreeMap::new(),
        hops: Vec::new(),
        next_ticket: 1,
        pipeline,
    };
    if let Some(goal) = run.pipeline.goal.clone() {
        run.context.insert("goal".to_owned(), clean_line(&goal, MAX_CONTEXT_CHARS));
    }
    let mut walk = Walk::new(run, rules, now);
    walk.arrive(&start, arrival("", Verdict::Success));
    walk.advance();
    walk.finish()
}

fn arrival(from: &str, verdict: Verdict) -> Arrival {
    Arrival { from: from.to_owned(), verdict, preferred_label: None, thread_id: None, lost: false }
}

/// A run while it is being changed.
pub(super) struct Walk<'a> {
    pub(super) run: PipelineRun,
    topology: Topology,
    rules: &'a Rules,
    pub(super) now: Timestamp,
    orders: Vec<Order>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(run: PipelineRun, rules: &'a Rules, now: Timestamp) -> Self {
        let topology = Topology::of(&run.pipeline);
        Self { run, topology, rules, now, orders: Vec::new() }
    }

    pub(super) fn finish(self) -> Next {
        Next { run: self.run, orders: self.orders }
    }

    /// The state of a node that exists.
    pub(super) fn state(&mut self, id: &str) -> &mut NodeRun {
        self.run.nodes.entry(id.to_owned()).or_default()
    }

    pub(super) fn node(&self, id: &str) -> Option<Node> {
        self.run.pipeline.node(id).cloned()
    }

    fn arrive(&mut self, id: &str, arrival: Arrival) {
        if self.state(id).rejected {
            self.void(id);
        }
        self.state(id).arrivals.push(arrival);
    }

    /// Begins every node that can begin, until only the world can say more.
    pub(super) fn advance(&mut self) {
        while self.run.status == Status::Running {
            let ids: Vec<String> = self.run.pipeline.nodes.iter().map(|node| node.id.clone()).collect();
            let waits = |walk: &Self, id: &String| {
                walk.run.nodes.get(id).is_some_and(|node| {
                    !node.arrivals.is_empty() && node.stage == Stage::Idle && !node.landing
                })
            };
            let ready = ids.iter().find(|id| waits(self, id) && self.can_begin(id));
            if let Some(id) = ready.cloned() {
                self.enter(&id);
                continue;
            }
            // Work that is owed and that the queue does not have waits for a gate, and so for this walk.
            let is_under_way = |node: &NodeRun| {
                node.landing || matches!(node.stage, Stage::Working { .. } | Stage::Resting { .. })
            };
            if self.run.nodes.values().any(is_under_way) {
                return;
            }
            // Nothing is under way. Two nodes that wait for each other would wait for ever: the first one begins.
            match ids.iter().find(|id| waits(self, id)).cloned() {
                Some(id) => self.enter(&id),
                None => return self.fail(Sentence::EndedBeforeExit.to_string()),
            }
        }
    }

    /// Whether nothing under way can still arrive at a node, and the fan-outs around it have room.
    fn can_begin(&self, id: &str) -> bool {
        let Some(place) = self.topology.place(id) else { return false };
        self.has_room(place)
            && self.run.pipeline.nodes.iter().enumerate().all(|(other, node)| {
                let Some(state) = self.run.nodes.get(&node.id).filter(|_| other != place) else {
                    return true;
                };
                let through = match &state.stage {
                    Stage::Owing { edges } => {
                        let heads: Vec<usize> = edges.iter().map(|edge| self.topology.head(*edge)).collect();
                        self.topology.may_arrive(other, place, Some(&heads))
                    }
                    Stage::Working { .. } | Stage::Resting { .. } => {
                        self.topology.may_arrive(other, place, None)
                    }
                    Stage::Idle => false,
                };
                !through && (state.arrivals.is_empty() || !self.topology.may_arrive(other, place, None))
            })
    }

    fn has_room(&self, place: usize) -> bool {
        if is_instant(&self.run.pipeline.nodes[place].handler) {
            return true;
        }
        self.topology.around(place).into_iter().all(|region| {
            let Handler::Parallel { max_active: Some(most), .. } =
                self.run.pipeline.nodes[region.fan_out].handler
            else {
                return true;
            };
            let busy = |place: &&usize| {
                let state = self.run.nodes.get(&self.run.pipeline.nodes[**place].id);
                state
                    .is_some_and(|state| matches!(state.stage, Stage::Working { .. } | Stage::Resting { .. }))
            };
            region.nodes.iter().filter(busy).count() < most as usize
        })
    }

    /// Takes a node's arrivals and begins it.
    fn enter(&mut self, id: &str) {
        let Some(node) = self.node(id) else { return };
        let most = self.rules.max_visits;
        let state = self.state(id);
        let arrivals = std::mem::take(&mut state.arrivals);
        state.visits += 1;
        (state.attempts, state.outcome, state.passed) = (0, None, BTreeSet::new());
        if state.visits > most {
            let last = state
                .reason
                .clone()
                .map(|reason| Sentence::LastTime(reason.to_string()).to_string())
                .unwrap_or_default();
            state.status = NodeStatus::Failed;
            return self.fail(
                Sentence::EnteredTooOften(id.to_string(), most.to_string(), last.to_string()).to_string(),
            );
        }
        let verdict = arrivals.iter().map(|arrival| arrival.verdict).max().unwrap_or(Verdict::Success);
        let lost = arrivals.iter().filter(|arrival| arrival.lost).count();
        let joined = match lost {
            0 => Verdict::Success,
            all if all == arrivals.len() => Verdict::Fail,
            _ => Verdict::PartialSuccess,
        };
        match node.handler {
            Handler::Start => self.leave(&node, &Outcome::of(Verdict::Success)),
            Handler::Parallel { .. } | Handler::FanIn => {
                let outcome = if joined == Verdict::Fail {
                    Outcome::failed("every branch failed")
                } else {
                    Outcome::of(joined)
                };
                self.leave(&node, &outcome);
            }
            Handler::Conditional => {
                let preferred_label = arrivals.into_iter().find_map(|arrival| arrival.preferred_label);
                self.leave(&node, &Outcome { preferred_label, ..Outcome::of(verdict) });
            }
            Handler::Exit => self.exit(&node),
            Handler::Codergen(_)
            | Handler::Tool { .. }
            | Handler::Gate { .. }
            | Handler::Human { .. }
            | Handler::Child { .. } => {
                let over_edge = arrivals.into_iter().find_map(|arrival| arrival.thread_id);
                self.attempt(&node, over_edge);
            }
        }
    }

    /// Orders one try of a node's work.
    pub(super) fn attempt(&mut self, node: &Node, over_edge: Option<String>) {
        let ticket = self.run.next_ticket;
        self.run.next_ticket += 1;
        let id = node.id.clone();
        let timeout = node.timeout_secs.map(std::time::Duration::from_secs);
        let order = match &node.handler {
            Handler::Codergen(work) => {
                let thread = self.thread(node, over_edge);
                let model = work.model.clone();
                // The last failure, its own or that of a gate which rejected its work.
                let feedback = self.state(&id).reason.clone();
                match self.state(&id).issue {
                    Some(issue) => {
                        Order::ResumeIssue { node: id.clone(), ticket, issue, feedback, thread, model }
                    }
                    None => {
                        let depends_on = self.depends_on(&id);
                        Order::FileIssue {
                            node: id.clone(),
                            ticket,
                            issue: work.issue,
                            depends_on,
                            thread,
                            model,
                        }
                    }
                }
            }
            Handler::Tool { command } => {
                let timeout_secs = timeout.unwrap_or(self.rules.tool_timeout).as_secs();
                Order::RunTool { node: id.clone(), ticket, command: command.clone(), timeout_secs }
            }
            Handler::Gate { kind: GateKind::Manual, .. } | Handler::Human { .. } => {
                let choices = choices(&self.run.pipeline, &id);
                Order::AskPerson { node: id.clone(), ticket, question: node.label.clone(), choices }
            }
            Handler::Gate { kind, instructions } => {
                let judges = self.subjects(&id);
                Order::StartGate {
                    node: id.clone(),
                    ticket,
                    kind: *kind,
                    judges,
                    instructions: instructions.clone(),
                }
            }
            Handler::Child { file } => Order::StartChild { node: id.clone(), ticket, file: file.clone() },
            Handler::Start
            | Handler::Exit
            | Handler::Conditional
            | Handler::Parallel { .. }
            | Handler::FanIn => return,
        };
        let limit = match node.handler {
            Handler::Tool { .. } => Some(timeout.unwrap_or(self.rules.tool_timeout)),
            _ => timeout,
        };
        let deadline = limit.map(|limit| self.now.after(limit));
        let state = self.state(&id);
        state.attempts += 1;
        (state.status, state.stage, state.deadline) =
            (NodeStatus::Active, Stage::Working { ticket }, deadline);
        self.orders.push(order);
    }

    fn thread(&mut self, node: &Node, over_edge: Option<String>) -> Option<Thread> {
        let id = node.thread_id.clone().or(over_edge)?;
        let predecessor = self.run.threads.insert(id.clone(), node.id.clone());
        Some(Thread { id, predecessor })
    }

    /// Tasks whose issues come before this one: the nearest in front of it, past nodes that are no tasks.
    fn depends_on(&self, id: &str) -> Vec<String> {
        let (mut found, mut seen, mut waiting) = (BTreeSet::new(), BTreeSet::new(), vec![id.to_owned()]);
        while let Some(current) = waiting.pop() {
            for (place, edge) in self.run.pipeline.edges.iter().enumerate() {
                if edge.to != current || !self.topology.is_forward(place) || !seen.insert(edge.from.clone()) {
                    continue;
                }
                let task = self
                    .run
                    .pipeline
                    .node(&edge.from)
                    .is_some_and(|n| matches!(n.handler, Handler::Codergen(_)));
                if task {
                    found.insert(edge.from.clone())
                } else {
                    waiting.push(edge.from.clone());
                    true
                };
            }
        }
        found
            .into_iter()
            .filter(|id| self.run.nodes.get(id).is_some_and(|node| node.issue.is_some()))
            .collect()
    }

    /// The tasks whose work a gate judges right now.
    pub(super) fn subjects(&self, gate: &str) -> Vec<String> {
        let judged = |node: &&Node| {
            matches!(node.handler, Handler::Codergen(_))
                && self.run.nodes.get(&node.id).is_some_and(|state| {
                    matches!(state.status, NodeStatus::ImplComplete | NodeStatus::Validated)
                })
                && route::judges(&self.run.pipeline, &node.id).contains(gate)
        };
        self.run.pipeline.nodes.iter().filter(judged).map(|node| node.id.clone()).collect()
    }

    /// Ends a node with its final outcome and follows the way on.
    pub(super) fn leave(&mut self, node: &Node, outcome: &Outcome) {
        self.remember(node, outcome);
        let way = route::way(
            &self.run.pipeline,
            node,
            Ending {
                verdict: outcome.verdict,
                preferred_label: outcome.preferred_label.as_deref(),
                suggested: &outcome.suggested,
                context: &self.run.context,
            },
        );
        if !outcome.verdict.is_success() {
            match node.handler {
                Handler::Codergen(_) => self.void(&node.id),
                Handler::Gate { .. } => self.reject(&node.id),
                Handler::Start
                | Handler::Exit
                | Handler::Tool { .. }
                | Handler::Human { .. }
                | Handler::Conditional
                | Handler::Parallel { .. }
                | Handler::FanIn
                | Handler::Child { .. } => {}
            }
        }
        match way {
            Route::Edges(edges) => self.follow(node, outcome, edges),
            Route::Past { gates, to } => {
                for gate in gates {
                    let state = self.state(&gate);
                    if state.stage == Stage::Idle && state.arrivals.is_empty() {
                        state.status = NodeStatus::Skipped;
                    }
                }
                self.hop(node, &to, arrival_of(node, outcome, None));
            }
            Route::Jump(to) => self.hop(node, &to, arrival_of(node, outcome, None)),
            Route::Stuck => self.stuck(node, outcome),
        }
    }

    fn remember(&mut self, node: &Node, outcome: &Outcome) {
        for (key, value) in &outcome.context {
            if self.run.context.len() < MAX_CONTEXT || self.run.context.contains_key(key) {
                self.run.context.insert(clean_line(key, 100), clean_line(value, MAX_CONTEXT_CHARS));
            }
        }
        let done = match node.handler {
            Handler::Codergen(_) => NodeStatus::ImplComplete,
            _ => NodeStatus::Validated,
        };
        let state = self.state(&node.id);
        (state.stage, state.deadline) = (Stage::Idle, None);
        state.outcome = Some(outcome.verdict);
        state.reason = outcome.reason.as_deref().map(|reason| clean_line(reason, MAX_CONTEXT_CHARS));
        // A diamond hands a failure on; it has not failed itself.
        let failed = !outcome.verdict.is_success() && node.handler != Handler::Conditional;
        state.status = if failed { NodeStatus::Failed } else { done };
    }

    /// Follows edges, but those that need landed work only when it has landed.
    fn follow(&mut self, node: &Node, outcome: &Outcome, edges: Vec<usize>) {
        let landing = if outcome.verdict.is_success() { self.landing(node) } else { Vec::new() };
        if landing.is_empty() {
            return self.hop_all(node, outcome, &edges);
        }
        let judging = |edge: &usize| {
            let to = &self.run.pipeline.edges[*edge].to;
            landing.iter().any(|task| route::judges(&self.run.pipeline, task).contains(to))
        };
        let (at_once, owed): (Vec<usize>, Vec<usize>) = edges.into_iter().partition(judging);
        self.state(&node.id).stage = if owed.is_empty() { Stage::Idle } else { Stage::Owing { edges: owed } };
        self.hop_all(node, outcome, &at_once);
        for task in landing {
            if task != node.id {
                let state = self.state(&task);
                state.passed.insert(node.id.clone());
                state.rejected = false;
            }
            self.land_if_judged(&task);
        }
    }

    /// The tasks whose landing what follows a node must wait for.
    fn landing(&self, node: &Node) -> Vec<String> {
        match &node.handler {
            Handler::Codergen(_) => vec![node.id.clone()],
            Handler::Gate { kind, .. } if kind.is_before_landing() => self.subjects(&node.id),
            _ => Vec::new(),
        }
    }

    fn land_if_judged(&mut self, task: &str) {
        let judges = route::judges(&self.run.pipeline, task);
        let state = self.state(task);
        if state.status == NodeStatus::ImplComplete && judges.is_subset(&state.passed) && !state.landing {
            (state.status, state.landing) = (NodeStatus::Validated, true);
            self.orders.push(Order::Land { node: task.to_owned() });
        }
    }

    /// The work of a task is on main: what waited for it goes on.
    pub(super) fn landed(&mut self, task: &Node) {
        let state = self.state(&task.id);
        (state.status, state.landing, state.rejected) = (NodeStatus::Merged, false, false);
        let mut released = vec![task.id.clone()];
        released.extend(route::judges(&self.run.pipeline, &task.id));
        for id in released {
            let Some(node) = self.node(&id) else { continue };
            // Rejected work is not going to land unless it is judged again.
            let waits = |task: &String| {
                let state = self.run.nodes.get(task);
                state.is_some_and(|state| state.status != NodeStatus::Merged && !state.rejected)
            };
            if self.landing(&node).iter().any(waits) {
                continue;
            }
            // A gate that is still judging goes on: its word is asked for, although the work is on main.
            if let Stage::Owing { edges } = self.state(&id).stage.clone() {
                self.state(&id).stage = Stage::Idle;
                let verdict = self.state(&id).outcome.unwrap_or(Verdict::Success);
                self.hop_all(&node, &Outcome::of(verdict), &edges);
            }
        }
    }

    /// A gate said no to the work of tasks. Those that the failure leads back to are done anew, see [`Self::arrive`]; the
    /// work of the others stays as it is and is judged again together with what is mended. What the merge queue has
    /// already is not called back.
    fn reject(&mut self, gate: &str) {
        let reason = self.state(gate).reason.clone();
        for task in self.subjects(gate) {
            let state = self.state(&task);
            if !state.landing {
                state.passed.remove(gate);
                (state.rejected, state.reason) = (true, reason.clone());
            }
        }
    }

    /// A task failed or is done anew: what else was under way about its work counts for nothing.
    fn void(&mut self, task: &str) {
        let gates = route::judges(&self.run.pipeline, task);
        let state = self.state(task);
        (state.status, state.landing, state.passed) = (NodeStatus::Failed, false, BTreeSet::new());
        (state.stage, state.rejected) = (Stage::Idle, false);
        for gate in &gates {
            self.cancel(gate);
            let about = |from: &String| *from == task || gates.contains(from);
            self.state(gate).arrivals.retain(|arrival| !about(&arrival.from));
        }
    }

    /// Takes back what was ordered for a node.
    pub(super) fn cancel(&mut self, id: &str) {
        let state = self.state(id);
        let stage = std::mem::take(&mut state.stage);
        state.deadline = None;
        match stage {
            Stage::Working { ticket } => {
                state.status = NodeStatus::Pending;
                self.orders.push(Order::StopNode { node: id.to_owned(), ticket });
            }
            Stage::Resting { .. } | Stage::Owing { .. } => state.status = NodeStatus::Pending,
            Stage::Idle => {}
        }
    }

    pub(super) fn hop_all(&mut self, node: &Node, outcome: &Outcome, edges: &[usize]) {
        let mut reached = BTreeSet::new();
        for edge in edges {
            let edge = self.run.pipeline.edges[*edge].clone();
            if reached.insert(edge.to.clone()) {
                self.hop(node, &edge.to, arrival_of(node, outcome, edge.thread_id));
            }
        }
    }

    fn hop(&mut self, node: &Node, to: &str, arrival: Arrival) {
        let visit = self.state(&node.id).visits;
        if self.run.hops.len() < MAX_HOPS {
            self.run.hops.push(Hop { from: node.id.clone(), to: to.to_owned(), visit });
        }
        self.arrive(to, arrival);
    }

    /// No way on: inside a fan-out that lets the others go on the branch is lost, elsewhere the run is.
    fn stuck(&mut self, node: &Node, outcome: &Outcome) {
        let place = self.topology.place(&node.id);
        if let Some(fan_in) = place.and_then(|place| self.topology.failing_branch(&self.run.pipeline, place))
        {
            let to = self.run.pipeline.nodes[fan_in].id.clone();
            let arrival = Arrival { lost: true, ..arrival_of(node, outcome, None) };
            return self.hop(node, &to, arrival);
        }
        let why = outcome.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        if outcome.verdict.is_success() {
            self.state(&node.id).status = NodeStatus::Failed;
            return self
                .fail(Sentence::NoEdgeCanBeFollowed(node.id.to_string(), why.to_string()).to_string());
        }
        self.fail(Sentence::FailedWithoutRoute(node.id.to_string(), why.to_string()).to_string());
    }

    /// The exit: every goal gate that was entered must have succeeded.
    fn exit(&mut self, exit: &Node) {
        let missed = self.run.pipeline.nodes.iter().find(|node| {
            let state = self.run.nodes.get(&node.id);
            node.goal_gate
                && state.is_some_and(|s| s.visits > 0 && !s.outcome.is_some_and(Verdict::is_success))
        });
        if let Some(gate) = missed.cloned() {
            return match route::goal_target(&self.run.pipeline, &gate) {
                Some(target) => self.hop(exit, &target, arrival(&exit.id, Verdict::Fail)),
                None => self.fail(Sentence::GoalGateMissed(gate.id.to_string()).to_string()),
            };
        }
        self.state(&exit.id).outcome = Some(Verdict::Success);
        self.state(&exit.id).status = NodeStatus::Validated;
        self.end(Status::Done, None);
    }

    pub(super) fn fail(&mut self, reason: String) {
        self.end(Status::Failed, Some(reason));
    }

    /// Ends the run: nothing is left under way, and what was never entered is skipped. Work that is done stays done: the
    /// merge queue may have it, and whether it lands is told even then.
    pub(super) fn end(&mut self, status: Status, reason: Option<String>) {
        (self.run.status, self.run.reason, self.run.ended_at) = (status, reason, Some(self.now));
        let ids: Vec<String> = self.run.nodes.keys().cloned().collect();
        for id in ids {
            let state = self.state(&id);
            state.arrivals.clear();
            if matches!(state.stage, Stage::Owing { .. }) {
                state.stage = Stage::Idle;
            }
            if std::mem::take(&mut state.rejected) {
                state.status = NodeStatus::Failed;
            }
            self.cancel(&id);
            let state = self.state(&id);
            if state.status == NodeStatus::Pending {
                state.status = NodeStatus::Skipped;
            }
        }
    }

    /// The wait before a node's next try.
    pub(super) fn rest(&self, attempts: u32) -> Timestamp {
        let doubled = self.rules.first_rest.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        self.now.after(doubled.min(self.rules.longest_rest))
    }
}

fn arrival_of(node: &Node, outcome: &Outcome, thread_id: Option<String>) -> Arrival {
    let preferred_label = outcome.preferred_label.clone();
    Arrival { from: node.id.clone(), verdict: outcome.verdict, preferred_label, thread_id, lost: false }
}

/// Nodes that end in the moment they begin.
fn is_instant(handler: &Handler) -> bool {
    match handler {
        Handler::Start | Handler::Exit | Handler::Conditional | Handler::Parallel { .. } | Handler::FanIn => {
            true
        }
        Handler::Codergen(_)
        | Handler::Tool { .. }
        | Handler::Gate { .. }
        | Handler::Human { .. }
        | Handler::Child { .. } => false,
    }
}

/// What a person can answer at a node: its outgoing edges, or yes and no.
pub(super) fn choices(pipeline: &Pipeline, id: &str) -> Vec<Choice> {
    let human = pipeline.node(id).is_some_and(|node| matches!(node.handler, Handler::Human { .. }));
    let edges = if human { pipeline.choices(id) } else { Vec::new() };
    if edges.is_empty() {
        return ["pass", "fail"]
            .map(|word| Choice { value: word.to_owned(), label: word.to_owned(), key: accelerator(word) })
            .into();
    }
    edges
        .into_iter()
        .map(|(_, edge)| Choice {
            value: edge.to.clone(),
            label: edge.choice().to_owned(),
            key: accelerator(edge.choice()),
        })
        .collect()
}
