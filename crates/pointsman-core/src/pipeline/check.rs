//! Rules between the nodes and edges of a pipeline.

use std::collections::BTreeSet;

use super::condition::Verdict;
use super::diagnostic::Problem;
use super::graph::Graph;
use super::model::{Handler, Node, Pipeline, Vocabulary};
use super::route;
use super::syntax::Span;
use super::topology::Topology;
use super::vocabulary::nearest;
use crate::words::pipeline::Sentence;

/// Checks the plan as a whole; `graph` has the places to point at.
pub(super) fn check(pipeline: &Pipeline, graph: &Graph) -> Vec<Problem> {
    let topology = Topology::of(pipeline);
    let mut checker = Checker { pipeline, graph, topology, problems: Vec::new() };
    checker.ends();
    checker.undeclared();
    checker.reachable();
    checker.targets();
    for place in 0..pipeline.nodes.len() {
        checker.node(place);
    }
    checker.cycles();
    checker.problems
}

struct Checker<'a> {
    pipeline: &'a Pipeline,
    graph: &'a Graph,
    topology: Topology,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn error(&mut self, span: Span, rule: &'static str, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(Problem::new(span, rule, message).hint(hint));
    }

    fn warn(&mut self, span: Span, rule: &'static str, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(Problem::warning(span, rule, message).hint(hint));
    }

    fn span(&self, place: usize) -> Span {
        self.graph.nodes[place].span
    }

    fn places(&self, wanted: impl Fn(&Handler) -> bool) -> Vec<usize> {
        (0..self.pipeline.nodes.len()).filter(|place| wanted(&self.pipeline.nodes[*place].handler)).collect()
    }

    /// Exactly one start that nothing leads to, exactly one exit that leads nowhere.
    fn ends(&mut self) {
        for (name, shape, places) in [
            ("start", "Mdiamond", self.places(|handler| *handler == Handler::Start)),
            ("exit", "Msquare", self.places(|handler| *handler == Handler::Exit)),
        ] {
            if places.is_empty() {
                let message = Sentence::MissingEndNode(name.to_string());
                self.error(self.graph.span, name, message, Sentence::AddNodeWithShape(shape.to_string()));
            }
            for place in places.iter().skip(1) {
                let first = &self.pipeline.nodes[places[0]];
                let message =
                    Sentence::SecondEndNode(name.to_string(), first.id.to_string(), first.line.to_string());
                self.error(self.span(*place), name, message, Sentence::ExactlyOneEndNode(name.to_string()));
            }
        }
        for (edge, drawn) in self.pipeline.edges.iter().zip(&self.graph.edges) {
            if edge.to == self.pipeline.start {
                let message = Sentence::EdgeLeadsToStartNode(edge.to.to_string());
                self.problems
                    .push(Problem::new(drawn.span, "start", message).hint(Sentence::LeadToFirstNodeWork));
            }
            if edge.from == self.pipeline.exit {
                let message = Sentence::EdgeLeavesExitNode(edge.from.to_string());
                self.problems
                    .push(Problem::new(drawn.span, "exit", message).hint(Sentence::NothingComesAfterExit));
            }
        }
    }

    /// Nodes that only edges name. A name that is nearly a declared one is a slip; otherwise an Attractor file may leave
    /// declarations out.
    fn undeclared(&mut self) {
        for place in 0..self.graph.nodes.len() {
            let node = &self.graph.nodes[place];
            if node.declared {
                continue;
            }
            let declared =
                self.graph.nodes.iter().filter(|known| known.declared).map(|known| known.id.as_str());
            let message = Sentence::NoNodeDeclared(node.id.to_string());
            match (nearest(&node.id, declared), self.pipeline.vocabulary) {
                (Some(meant), _) => {
                    self.error(node.span, "unknown_node", message, Sentence::DidYouMean(meant.to_string()))
                }
                (None, Vocabulary::Harness) => {
                    self.error(node.span, "unknown_node", message, Sentence::DeclareWithItsHandler);
                }
                (None, Vocabulary::Attractor) => {
                    let hint = Sentence::UndeclaredBecomesTask.to_string();
                    self.warn(node.span, "unknown_node", message, hint);
                }
            }
        }
    }

    /// Everything can be reached from the start, and the exit from everything.
    fn reachable(&mut self) {
        let count = self.pipeline.nodes.len();
        let mut links: Vec<(usize, usize)> =
            self.graph.edges.iter().map(|edge| (edge.tail, edge.head)).collect();
        let edges = links.clone();
        for (place, node) in self.pipeline.nodes.iter().enumerate() {
            let targets = [&node.retry_target, &node.fallback_retry_target].into_iter().flatten();
            links.extend(targets.filter_map(|id| self.topology.place(id)).map(|target| (place, target)));
        }
        let general = [&self.pipeline.retry_target, &self.pipeline.fallback_retry_target];
        let (start, exit) =
            (self.topology.place(&self.pipeline.start), self.topology.place(&self.pipeline.exit));
        let jumps = general.into_iter().flatten().filter_map(|id| self.topology.place(id));
        links.extend(jumps.zip(exit).map(|(target, exit)| (exit, target)));
        let from_start = start.map(|start| spread(count, &links, start, Direction::Along));
        let to_exit = exit.map(|exit| spread(count, &links, exit, Direction::Against));
        for place in 0..count {
            let id = &self.pipeline.nodes[place].id;
            if count > 1 && edges.iter().all(|(tail, head)| *tail != place && *head != place) {
                self.error(
                    self.span(place),
                    "orphan",
                    Sentence::NoEdgeLeadsToOrFrom(id.to_string()).to_string(),
                    Sentence::ConnectOrRemove,
                );
                continue;
            }
            if from_start.as_ref().is_some_and(|seen| !seen.contains(&place)) {
                let message = Sentence::CannotBeReachedFromStart(id.to_string());
                self.error(self.span(place), "unreachable", message, Sentence::AddEdgeThatLeadsTo);
            } else if to_exit.as_ref().is_some_and(|seen| !seen.contains(&place)) {
                let message = Sentence::ExitCannotBeReachedFrom(id.to_string());
                self.error(self.span(place), "dead_end", message, Sentence::AddEdgeThatLeadsOn);
            }
        }
    }

    /// Retry targets exist.
    fn targets(&mut self) {
        let mut wanted: Vec<(&str, Span)> = Vec::new();
        let nodes = self.graph.nodes.iter().map(|node| &node.attributes);
        for attributes in nodes.chain([&self.graph.attributes]) {
            for key in ["retry_target", "fallback_retry_target"] {
                wanted.extend(attributes.get(key).map(|value| (value.text.as_str(), value.span)));
            }
        }
        for (id, span) in wanted.into_iter().filter(|(id, _)| !id.is_empty()) {
            match self.topology.place(id) {
                None => {
                    let known = nearest(id, self.graph.nodes.iter().map(|node| node.id.as_str()));
                    let hint = known.map_or_else(
                        || "name a node".to_owned(),
                        |known| Sentence::DidYouMean(known.to_string()).to_string(),
                    );
                    self.error(
                        span,
                        "retry_target",
                        Sentence::NoSuchRetryTarget(id.to_string()).to_string(),
                        &hint,
                    );
                }
                Some(place) if self.pipeline.nodes[place].handler == Handler::Exit => {
                    self.error(
                        span,
                        "retry_target",
                        Sentence::RetryTargetCannotBeExit,
                        Sentence::NameNodeWork,
                    );
                }
                Some(_) => {}
            }
        }
    }

    fn node(&mut self, place: usize) {
        let node = &self.pipeline.nodes[place];
        let span = self.span(place);
        if node.goal_gate && route::goal_target(self.pipeline, node).is_none() {
            let message = Sentence::GoalGateWithoutTarget(node.id.to_string());
            self.warn(span, "goal_gate", message, "add `retry_target`");
        }
        self.way_after_success(place);
        match &node.handler {
            Handler::Conditional => self.diamond(place),
            Handler::Codergen(_) => self.codergen(place),
            Handler::Gate { .. } => {
                let fails = self.pipeline.edges_from(&node.id).any(|(_, edge)| {
                    edge.condition.as_ref().is_some_and(|condition| condition.allows(Verdict::Fail))
                });
                let target = node.retry_target.is_some() || node.fallback_retry_target.is_some();
                if !fails && !target && route::judge(self.pipeline, &node.id).is_none() {
                    let message = Sentence::GateEndsRun(node.id.to_string());
                    self.warn(span, "gate", message, Sentence::AddFailureRoute);
                }
            }
            Handler::Start
            | Handler::Exit
            | Handler::Tool { .. }
            | Handler::Human { .. }
            | Handler::Parallel { .. }
            | Handler::FanIn
            | Handler::Child { .. } => {}
        }
    }

    /// A node that succeeds must lead on, and in an Attractor file it must be clear where to.
    fn way_after_success(&mut self, place: usize) {
        let node = &self.pipeline.nodes[place];
        let edges: Vec<_> = self.pipeline.edges_from(&node.id).map(|(_, edge)| edge).collect();
        if edges.is_empty() || node.handler == Handler::Exit || node.handler == Handler::Conditional {
            return;
        }
        let on =
            |edge: &&super::model::Edge| edge.condition.as_ref().is_none_or(|c| c.allows(Verdict::Success));
        if !edges.iter().any(on) {
            let message = Sentence::NoEdgeAfterSuccess(node.id.to_string());
            self.error(self.span(place), "dead_end", message, Sentence::AddEdgeWithoutCondition);
        }
        let free: Vec<_> =
            edges.iter().filter(|edge| edge.condition.is_none() && edge.label.is_none()).collect();
        let equal = free
            .iter()
            .any(|edge| free.iter().any(|other| other.to != edge.to && other.weight == edge.weight));
        if equal && !self.pipeline.follows_all(node) && !matches!(node.handler, Handler::Human { .. }) {
            let first = free.iter().map(|edge| edge.to.as_str()).min().unwrap_or_default();
            let message = Sentence::OnlyOneEdgeFollowed(node.id.to_string(), first.to_string());
            self.warn(self.span(place), "ambiguous", message, Sentence::PutFanOutBetween);
        }
    }

    /// A diamond knows what to do after success and after failure.
    fn diamond(&mut self, place: usize) {
        let node = &self.pipeline.nodes[place];
        let edges: Vec<_> = self.pipeline.edges_from(&node.id).collect();
        let harness = self.pipeline.vocabulary == Vocabulary::Harness;
        if harness {
            for (edge, _) in edges.iter().filter(|(_, edge)| edge.condition.is_none()) {
                let drawn = &self.graph.edges[*edge];
                // A condition that cannot be read has been told about already.
                if drawn.attributes.get("condition").is_none_or(|value| value.text.trim().is_empty()) {
                    let message = Sentence::DiamondEdgeWithoutCondition(node.id.to_string());
                    self.problems
                        .push(Problem::new(drawn.span, "diamond", message).hint(Sentence::AddCondition));
                }
            }
        }
        if edges.iter().any(|(edge, _)| self.unreadable(*edge)) {
            return;
        }
        for (verdict, word) in [(Verdict::Success, "pass"), (Verdict::Fail, "fail")] {
            if !edges.iter().any(|(_, edge)| edge.condition.as_ref().is_none_or(|c| c.allows(verdict))) {
                let message = Sentence::DiamondHasNoEdgeFor(node.id.to_string(), word.to_string());
                let hint = Sentence::AddEdgeWithCondition(word.to_string()).to_string();
                self.error(self.span(place), "diamond", message, &hint);
            }
        }
    }

    fn unreadable(&self, edge: usize) -> bool {
        let written = self.graph.edges[edge].attributes.get("condition");
        self.pipeline.edges[edge].condition.is_none()
            && written.is_some_and(|value| !value.text.trim().is_empty())
    }

    fn codergen(&mut self, place: usize) {
        let node = &self.pipeline.nodes[place];
        let span = self.span(place);
        if self.pipeline.vocabulary == Vocabulary::Harness && node.bead_id.is_none() {
            let has_issue = matches!(&node.handler, Handler::Codergen(work) if work.issue.is_some());
            if !has_issue {
                let message = Sentence::NoBeadId(node.id.to_string());
                self.warn(span, "bead_id", message, Sentence::AddBeadId);
            }
        }
        let is_gate = |node: &Node| match &node.handler {
            Handler::Gate { .. } | Handler::Human { .. } => true,
            Handler::Tool { .. } | Handler::Conditional => self.pipeline.vocabulary == Vocabulary::Attractor,
            Handler::Start
            | Handler::Exit
            | Handler::Codergen(_)
            | Handler::Parallel { .. }
            | Handler::FanIn
            | Handler::Child { .. } => false,
        };
        let gated = node.goal_gate
            || self.pipeline.nodes.iter().enumerate().any(|(other, behind)| {
                self.topology.leads_to(place, other) && (is_gate(behind) || behind.goal_gate)
            });
        if !gated {
            let message = Sentence::NoGateBehind(node.id.to_string());
            self.warn(span, "no_gate", message, Sentence::AddHexagonBehind);
        }
    }

    /// Every cycle has an edge that is not always followed.
    fn cycles(&mut self) {
        let conditional = |place: usize| {
            let edge = &self.pipeline.edges[place];
            let choice = self
                .pipeline
                .node(&edge.from)
                .is_some_and(|node| matches!(node.handler, Handler::Human { .. } | Handler::Conditional));
            choice || edge.condition.is_some() || self.unreadable(place)
        };
        let free: Vec<usize> = (0..self.pipeline.edges.len()).filter(|edge| !conditional(*edge)).collect();
        let Some(circle) = circle(self.pipeline.nodes.len(), &free, self.graph) else { return };
        let names: Vec<&str> = circle
            .iter()
            .chain(circle.first())
            .map(|edge| self.pipeline.edges[*edge].from.as_str())
            .collect();
        let last = circle.last().map_or(self.graph.span, |edge| self.graph.edges[*edge].span);
        let message = Sentence::EndlessCircle(names.join(" → ").to_string());
        self.error(last, "cycle", message, Sentence::GiveCircleCondition);
    }
}

enum Direction {
    Along,
    Against,
}

fn spread(count: usize, links: &[(usize, usize)], from: usize, direction: Direction) -> BTreeSet<usize> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (tail, head) in links {
        match direction {
            Direction::Along => next[*tail].push(*head),
            Direction::Against => next[*head].push(*tail),
        }
    }
    let mut seen = BTreeSet::from([from]);
    let mut waiting = vec![from];
    while let Some(node) = waiting.pop() {
        waiting.extend(next[node].iter().copied().filter(|node| seen.insert(*node)));
    }
    seen
}

/// The edges of one circle, the one that closes it last; a walk in depth with a stack of its own.
fn circle(count: usize, edges: &[usize], graph: &Graph) -> Option<Vec<usize>> {
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); count];
    edges.iter().for_each(|edge| outgoing[graph.edges[*edge].tail].push(*edge));
    let (mut seen, mut on_path) = (vec![false; count], vec![false; count]);
    for root in 0..count {
        if seen[root] {
            continue;
        }
        (seen[root], on_path[root]) = (true, true);
        let mut path: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(edge) = outgoing[*node].get(*next).copied() else {
                on_path[*node] = false;
                path.pop();
                continue;
            };
            *next += 1;
            let head = graph.edges[edge].head;
            if on_path[head] {
                let from = path.iter().position(|(node, _)| *node == head)?;
                return Some(path[from..].iter().map(|(node, next)| outgoing[*node][next - 1]).collect());
            }
            if !seen[head] {
                (seen[head], on_path[head]) = (true, true);
                path.push((head, 0));
            }
        }
    }
    None
}
