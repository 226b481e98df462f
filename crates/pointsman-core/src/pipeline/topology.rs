//! The shape of a pipeline: which edges lead on and which lead back, what can reach what, what lies inside a fan-out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::model::{BranchFailure, Handler, Pipeline};

/// How deep fan-outs may be nested before their ends are no longer told apart.
const MAX_NESTING: usize = 32;

/// A pipeline's graph by numbers: nodes and edges are named by their places in the model.
#[derive(Clone, Debug)]
pub struct Topology {
    index: BTreeMap<String, usize>,
    /// Ends of each edge.
    ends: Vec<(usize, usize)>,
    /// Whether an edge leads on. The others close a cycle and lead back.
    forward: Vec<bool>,
    /// For each node those that can be reached over edges that lead on, as bits.
    reach: Vec<Vec<u64>>,
    /// Edges and retry targets: every way by which a run can get from a node to another.
    ways: Vec<Vec<usize>>,
    /// For each node those that every way from the start to it passes, itself included, as bits.
    dominators: Vec<Vec<u64>>,
    regions: Vec<Region>,
}

/// The nodes between a fan-out and its fan-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub fan_out: usize,
    pub fan_in: Option<usize>,
    pub nodes: BTreeSet<usize>,
}

impl Topology {
    /// Looks at a pipeline. Edges to nodes that do not exist are left out.
    pub fn of(pipeline: &Pipeline) -> Self {
        let index: BTreeMap<String, usize> =
            pipeline.nodes.iter().enumerate().map(|(place, node)| (node.id.clone(), place)).collect();
        let place = |id: &str| index.get(id).copied().unwrap_or(usize::MAX);
        let ends: Vec<(usize, usize)> =
            pipeline.edges.iter().map(|e| (place(&e.from), place(&e.to))).collect();
        let count = pipeline.nodes.len();
        let start = index.get(&pipeline.start).copied();
        let (forward, order) = leading_on(count, &ends, start);
        let reach = reachable(count, &ends, &forward, &order);
        let mut ways: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (tail, head) in ends.iter().filter(|(tail, head)| *tail < count && *head < count) {
            ways[*tail].push(*head);
        }
        for (place, node) in pipeline.nodes.iter().enumerate() {
            let targets = [&node.retry_target, &node.fallback_retry_target].into_iter().flatten();
            ways[place].extend(targets.filter_map(|id| index.get(id)));
        }
        let dominators =
            start.map_or_else(|| vec![vec![0; count.div_ceil(64)]; count], |s| dominators(&ways, s));
        let mut topology = Self { index, ends, forward, reach, ways, dominators, regions: Vec::new() };
        topology.regions = topology.find_regions(pipeline);
        topology
    }

    /// The place of a node in the model.
    pub fn place(&self, id: &str) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// Whether an edge leads on rather than back.
    pub fn is_forward(&self, edge: usize) -> bool {
        self.forward[edge]
    }

    /// Whether work at `from` can still lead to `to` without going back.
    pub fn leads_to(&self, from: usize, to: usize) -> bool {
        bit(&self.reach[from], to)
    }

    /// Whether work at `from` may still arrive at `to` in this round, along `first` steps or any.
    ///
    /// A way that leads back through a node which both have behind them begins a new round: branches of a fan-out would
    /// otherwise wait for each other for the sake of a retry that starts the whole fan-out again.
    pub fn may_arrive(&self, from: usize, to: usize, first: Option<&[usize]>) -> bool {
        if bit(&self.dominators[from], to) {
            return false;
        }
        let common: Vec<u64> =
            self.dominators[from].iter().zip(&self.dominators[to]).map(|(a, b)| a & b).collect();
        let mut seen = BTreeSet::new();
        let mut waiting: Vec<usize> = first.unwrap_or(&self.ways[from]).to_vec();
        while let Some(node) = waiting.pop() {
            if node == to {
                return true;
            }
            if !bit(&common, node) && seen.insert(node) {
                waiting.extend(&self.ways[node]);
            }
        }
        false
    }

    /// The node that an edge leads to.
    pub fn head(&self, edge: usize) -> usize {
        self.ends[edge].1
    }

    /// The fan-outs that a node lies inside of, the innermost first.
    pub fn around(&self, node: usize) -> Vec<&Region> {
        let mut around: Vec<&Region> =
            self.regions.iter().filter(|region| region.nodes.contains(&node)).collect();
        around.sort_by_key(|region| (region.nodes.len(), region.fan_out));
        around
    }

    /// The fan-in at which a branch counts as failed, if the fan-out around a node lets the others go on.
    pub fn failing_branch(&self, pipeline: &Pipeline, node: usize) -> Option<usize> {
        let innermost = self.around(node).into_iter().next()?;
        match pipeline.nodes[innermost.fan_out].handler {
            Handler::Parallel { on_failure: BranchFailure::Continue, .. } => innermost.fan_in,
            _ => None,
        }
    }

    fn find_regions(&self, pipeline: &Pipeline) -> Vec<Region> {
        let out = |node: usize| self.ends.iter().filter(|(tail, _)| *tail == node).count();
        let into = |node: usize| {
            (0..self.ends.len()).filter(|edge| self.forward[*edge] && self.ends[*edge].1 == node).count()
        };
        let is_parallel = |node: usize| matches!(pipeline.nodes[node].handler, Handler::Parallel { .. });
        let opens: Vec<bool> =
            (0..pipeline.nodes.len()).map(|node| is_parallel(node) && out(node) > 1).collect();
        let closes: Vec<bool> = (0..pipeline.nodes.len())
            .map(|node| {
                pipeline.nodes[node].handler == Handler::FanIn || (is_parallel(node) && into(node) > 1)
            })
            .collect();
        let fan_outs = (0..pipeline.nodes.len()).filter(|node| opens[*node]);
        fan_outs.map(|fan_out| self.region(fan_out, &opens, &closes)).collect()
    }

    /// Walks on from a fan-out, counting fan-outs opened and closed, until its own fan-in.
    fn region(&self, fan_out: usize, opens: &[bool], closes: &[bool]) -> Region {
        let mut region = Region { fan_out, fan_in: None, nodes: BTreeSet::new() };
        let mut seen = BTreeSet::new();
        let mut waiting: VecDeque<(usize, usize)> = self.successors(fan_out).map(|next| (next, 1)).collect();
        while let Some((node, depth)) = waiting.pop_front() {
            if !seen.insert((node, depth)) {
                continue;
            }
            let inner = depth - usize::from(closes[node]);
            if inner == 0 {
                region.fan_in = region.fan_in.or(Some(node));
                continue;
            }
            region.nodes.insert(node);
            let depth = (inner + usize::from(opens[node])).min(MAX_NESTING);
            waiting.extend(self.successors(node).map(|next| (next, depth)));
        }
        region
    }

    fn successors(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.ends
            .iter()
            .zip(&self.forward)
            .filter(move |((tail, head), forward)| *tail == node && *head != usize::MAX && **forward)
            .map(|((_, head), _)| *head)
    }
}

/// Tells edges that lead on from those that lead back, by a walk in depth from the start; and the order in which the walk
/// leaves nodes. The walk keeps its own stack, so a long chain cannot exhaust the program's.
pub(super) fn leading_on(
    count: usize,
    ends: &[(usize, usize)],
    roots: impl IntoIterator<Item = usize>,
) -> (Vec<bool>, Vec<usize>) {
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (edge, (tail, head)) in ends.iter().enumerate() {
        if *tail < count && *head < count {
            outgoing[*tail].push(edge);
        }
    }
    let mut forward = vec![true; ends.len()];
    let (mut seen, mut on_path, mut left) =
        (vec![false; count], vec![false; count], Vec::with_capacity(count));
    for root in roots.into_iter().chain(0..count) {
        if seen[root] {
            continue;
        }
        (seen[root], on_path[root]) = (true, true);
        let mut path = vec![(root, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(edge) = outgoing[*node].get(*next).copied() else {
                on_path[*node] = false;
                left.push(*node);
                path.pop();
                continue;
            };
            *next += 1;
            let head = ends[edge].1;
            if on_path[head] {
                forward[edge] = false;
            } else if !seen[head] {
                (seen[head], on_path[head]) = (true, true);
                path.push((head, 0));
            }
        }
    }
    (forward, left)
}

/// For each node the bits of those it can reach. `order` has every node after all that it leads to.
fn reachable(count: usize, ends: &[(usize, usize)], forward: &[bool], order: &[usize]) -> Vec<Vec<u64>> {
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); count];
    for ((tail, head), forward) in ends.iter().zip(forward) {
        if *tail < count && *head < count && *forward {
            outgoing[*tail].push(*head);
        }
    }
    let mut reach = vec![vec![0_u64; count.div_ceil(64)]; count];
    for node in order {
        let mut bits = std::mem::take(&mut reach[*node]);
        for head in &outgoing[*node] {
            bits[head / 64] |= 1 << (head % 64);
            bits.iter_mut().zip(&reach[*head]).for_each(|(mine, theirs)| *mine |= theirs);
        }
        reach[*node] = bits;
    }
    reach
}

fn bit(bits: &[u64], place: usize) -> bool {
    bits[place / 64] & (1 << (place % 64)) != 0
}

/// Dominators by the textbook's iteration: a node's are itself and what all its predecessors share.
fn dominators(ways: &[Vec<usize>], start: usize) -> Vec<Vec<u64>> {
    let (count, words) = (ways.len(), ways.len().div_ceil(64));
    let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (tail, heads) in ways.iter().enumerate() {
        heads.iter().for_each(|head| predecessors[*head].push(tail));
    }
    let own = |place: usize| {
        let mut bits = vec![0_u64; words];
        bits[place / 64] |= 1 << (place % 64);
        bits
    };
    let mut found = vec![vec![u64::MAX; words]; count];
    found[start] = own(start);
    // A walk in breadth meets most nodes after their predecessors, so few rounds are needed.
    let (mut order, mut seen) = (vec![start], BTreeSet::from([start]));
    let mut at = 0;
    while let Some(node) = order.get(at).copied() {
        at += 1;
        order.extend(ways[node].iter().copied().filter(|head| seen.insert(*head)));
    }
    loop {
        let mut changed = false;
        for node in order.iter().skip(1) {
            let mut bits = vec![u64::MAX; words];
            for predecessor in &predecessors[*node] {
                bits.iter_mut().zip(&found[*predecessor]).for_each(|(mine, theirs)| *mine &= theirs);
            }
            bits[node / 64] |= 1 << (node % 64);
            changed |= bits != found[*node];
            found[*node] = bits;
        }
        if !changed {
            break;
        }
    }
    // What the start cannot reach has nothing behind it.
    (0..count).filter(|place| !seen.contains(place)).for_each(|place| found[place] = own(place));
    found
}
