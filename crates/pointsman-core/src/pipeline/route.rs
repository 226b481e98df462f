//! The next node of a run. The same outcomes choose the same edges.

use std::collections::{BTreeMap, BTreeSet};

use super::condition::{Facts, Verdict};
use super::model::{Edge, Handler, Node, Pipeline, normalized};

/// The end of a node, as far as it matters for the way on.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    pub verdict: Verdict,
    pub preferred_label: Option<&'a str>,
    pub suggested: &'a [String],
    pub context: &'a BTreeMap<String, String>,
}

/// The way on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Along these edges, by their places in the model.
    Edges(Vec<usize>),
    /// A failure goes past gates, which have nothing to judge any more, to the diamond behind them.
    Past {
        gates: Vec<String>,
        to: String,
    },
    /// To a retry target.
    Jump(String),
    Stuck,
}

/// Chooses the way on from a node that is not the exit.
pub fn way(pipeline: &Pipeline, node: &Node, ending: Ending<'_>) -> Route {
    let edges: Vec<(usize, &Edge)> = pipeline.edges_from(&node.id).collect();
    let chosen = match ending.verdict {
        Verdict::Success => choose(pipeline, node, &edges, ending),
        Verdict::PartialSuccess => {
            // Where nobody thought of a partial success, it is a success.
            let holding = conditional(&edges, ending);
            let ending =
                if holding.is_empty() { Ending { verdict: Verdict::Success, ..ending } } else { ending };
            choose(pipeline, node, &edges, ending)
        }
        Verdict::Retry | Verdict::Fail => return failure(pipeline, node, &edges, ending),
    };
    if chosen.is_empty() { Route::Stuck } else { Route::Edges(chosen) }
}

fn choose(pipeline: &Pipeline, node: &Node, edges: &[(usize, &Edge)], ending: Ending<'_>) -> Vec<usize> {
    let holding = conditional(edges, ending);
    if pipeline.follows_all(node) {
        let free = edges.iter().filter(|(_, edge)| edge.condition.is_none()).map(|(place, _)| *place);
        let mut all: Vec<usize> = free.chain(holding.iter().map(|(place, _)| *place)).collect();
        all.sort_unstable();
        return all;
    }
    best(&holding)
        .or_else(|| by_label(edges, ending.preferred_label?))
        .or_else(|| by_suggestion(edges, ending.suggested))
        .or_else(|| {
            best(&edges.iter().copied().filter(|(_, edge)| edge.condition.is_none()).collect::<Vec<_>>())
        })
        .into_iter()
        .collect()
}

/// Edges whose condition holds.
fn conditional<'a>(edges: &[(usize, &'a Edge)], ending: Ending<'_>) -> Vec<(usize, &'a Edge)> {
    let facts =
        Facts { verdict: ending.verdict, preferred_label: ending.preferred_label, context: ending.context };
    let holds = |edge: &Edge| edge.condition.as_ref().is_some_and(|condition| condition.holds(&facts));
    edges.iter().copied().filter(|(_, edge)| holds(edge)).collect()
}

/// The highest weight, then the first target by name, then the first in the file.
fn best(edges: &[(usize, &Edge)]) -> Option<usize> {
    let key = |(place, edge): &&(usize, &Edge)| (std::cmp::Reverse(edge.weight), edge.to.clone(), *place);
    edges.iter().min_by_key(key).map(|(place, _)| *place)
}

/// A label names an edge only if that edge can be followed at all: one whose condition fails is not chosen by name.
fn by_label(edges: &[(usize, &Edge)], label: &str) -> Option<usize> {
    let wanted = normalized(label);
    let named = |edge: &Edge| edge.label.as_deref().is_some_and(|label| normalized(label) == wanted);
    edges.iter().find(|(_, edge)| edge.condition.is_none() && named(edge)).map(|(place, _)| *place)
}

fn by_suggestion(edges: &[(usize, &Edge)], suggested: &[String]) -> Option<usize> {
    let leads = |id: &String| edges.iter().find(|(_, edge)| edge.condition.is_none() && edge.to == *id);
    suggested.iter().find_map(leads).map(|(place, _)| *place)
}

/// A failure follows an edge whose condition holds, else it goes to the diamond that judges it, else to the node's retry
/// target. An edge without a condition is for success.
fn failure(pipeline: &Pipeline, node: &Node, edges: &[(usize, &Edge)], ending: Ending<'_>) -> Route {
    let ending = Ending { verdict: Verdict::Fail, ..ending };
    let holding = conditional(edges, ending);
    if pipeline.follows_all(node) && !holding.is_empty() {
        return Route::Edges(holding.iter().map(|(place, _)| *place).collect());
    }
    if let Some(place) = best(&holding) {
        return Route::Edges(vec![place]);
    }
    // A diamond's free edge is its "else": the diamond itself is where failures are told apart.
    if node.handler == Handler::Conditional
        && let Some(place) =
            best(&edges.iter().copied().filter(|(_, edge)| edge.condition.is_none()).collect::<Vec<_>>())
    {
        return Route::Edges(vec![place]);
    }
    if let Some((gates, to)) = judge(pipeline, &node.id) {
        return Route::Past { gates, to };
    }
    let target = [&node.retry_target, &node.fallback_retry_target].into_iter().flatten();
    match target.into_iter().find(|id| pipeline.node(id).is_some()) {
        Some(id) => Route::Jump(id.clone()),
        None => Route::Stuck,
    }
}

/// The diamond that a node's failure is for: the next one along free edges, past nothing but gates.
pub fn judge(pipeline: &Pipeline, id: &str) -> Option<(Vec<String>, String)> {
    let (mut gates, mut seen) = (Vec::new(), BTreeSet::from([id.to_owned()]));
    let mut current = id.to_owned();
    loop {
        let free: Vec<&Edge> = pipeline
            .edges_from(&current)
            .map(|(_, edge)| edge)
            .filter(|edge| edge.condition.is_none())
            .collect();
        let handler = |edge: &&&Edge| pipeline.node(&edge.to).map(|node| &node.handler);
        if let Some(edge) = free.iter().find(|edge| handler(edge) == Some(&Handler::Conditional)) {
            return Some((gates, edge.to.clone()));
        }
        let gate = free.iter().find(|edge| matches!(handler(edge), Some(Handler::Gate { .. })))?;
        if !seen.insert(gate.to.clone()) {
            return None;
        }
        gates.push(gate.to.clone());
        current.clone_from(&gate.to);
    }
}

/// Gates that judge a node's work before it lands: those behind it with nothing but such gates between.
pub fn judges(pipeline: &Pipeline, id: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![id.to_owned()];
    while let Some(current) = waiting.pop() {
        for (_, edge) in pipeline.edges_from(&current) {
            let before_landing = pipeline.node(&edge.to).is_some_and(
                |node| matches!(node.handler, Handler::Gate { kind, .. } if kind.is_before_landing()),
            );
            if before_landing && edge.condition.is_none() && found.insert(edge.to.clone()) {
                waiting.push(edge.to.clone());
            }
        }
    }
    found
}

/// The node to which a goal gate that did not succeed sends the run.
pub fn goal_target(pipeline: &Pipeline, node: &Node) -> Option<String> {
    let targets = [
        &node.retry_target,
        &node.fallback_retry_target,
        &pipeline.retry_target,
        &pipeline.fallback_retry_target,
    ];
    targets.into_iter().flatten().find(|id| pipeline.node(id).is_some()).cloned()
}
