//! Layers from top to bottom: ranks along the edges that lead on, an order with few crossings, places without overlaps.
//!
//! Between two ranks of nodes lies a rank of labels, so that labels take part in the same order and cannot overlap
//! either. Edges run straight down or along a track of their own between two ranks.

use crate::pipeline::topology::leading_on;
use crate::words::pipeline::Sentence;

/// The space between neighbours of a rank.
const GAP: usize = 3;

/// Sweeps over all ranks that look for a better order. More change little.
const SWEEPS: usize = 12;

/// How many things a drawing may have. An edge counts once for every rank that it passes, so a few long edges over many
/// ranks become very many.
const MAX_ITEMS: usize = 10_000;

/// How many character cells a drawing may have. Nobody can look at more.
const MAX_CELLS: usize = 4_000_000;

/// A plan that is too large to be drawn here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Sentence::TooLargeToDraw(MAX_ITEMS.to_string()).fmt(f)
    }
}

impl std::error::Error for TooLarge {}

/// Columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub width: usize,
    pub height: usize,
}

/// A place on the drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rect {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

impl Rect {
    /// Whether two places share a cell.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }
}

/// The way of an edge: corners from its tail to its head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgePath {
    pub points: Vec<(usize, usize)>,
    pub label: Option<Rect>,
    pub back: bool,
}

/// A drawing without ink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub width: usize,
    pub height: usize,
    /// In the order of the nodes given.
    pub nodes: Vec<Rect>,
    /// In the order of the edges given. An edge from a node to itself has no points.
    pub roads: Vec<EdgePath>,
}

/// Places nodes of these sizes and edges `(tail, head, width of the label)`.
pub fn lay_out(sizes: &[Size], edges: &[(usize, usize, usize)]) -> Result<Layout, TooLarge> {
    if sizes.is_empty() {
        return Ok(Layout { roads: vec![EdgePath::default(); edges.len()], ..Layout::default() });
    }
    let mut plan = Plan::new(sizes, edges)?;
    plan.order();
    plan.place();
    let layout = plan.draw(sizes.len(), edges);
    if layout.width.saturating_mul(layout.height) > MAX_CELLS {
        return Err(TooLarge);
    }
    Ok(layout)
}

/// A node, a label, or an edge that passes through a rank.
#[derive(Clone, Debug)]
struct Item {
    rank: usize,
    width: usize,
    height: usize,
    /// Neighbours in the rank above and below.
    above: Vec<usize>,
    below: Vec<usize>,
    x: usize,
}

struct Plan {
    items: Vec<Item>,
    ranks: Vec<Vec<usize>>,
    /// For each edge the items from its upper end to its lower one, and whether it was turned round.
    chains: Vec<Option<(Vec<usize>, bool)>>,
}

impl Plan {
    fn new(sizes: &[Size], edges: &[(usize, usize, usize)]) -> Result<Self, TooLarge> {
        let (back, rank) = ranks(sizes.len(), edges);
        let passed = edges.iter().map(|(tail, head, _)| rank[*tail].abs_diff(rank[*head]) * 2);
        if sizes.len() + passed.sum::<usize>() > MAX_ITEMS {
            return Err(TooLarge);
        }
        let item = |rank: usize, width: usize, height: usize| Item {
            rank,
            width,
            height,
            above: Vec::new(),
            below: Vec::new(),
            x: 0,
        };
        let mut items: Vec<Item> = sizes
            .iter()
            .zip(&rank)
            .map(|(size, rank)| item(rank * 2, size.width.max(1), size.height.max(1)))
            .collect();
        let mut chains = Vec::with_capacity(edges.len());
        for ((tail, head, label), back) in edges.iter().zip(&back) {
            if tail == head {
                chains.push(None);
                continue;
            }
            let (upper, lower) = if *back { (*head, *tail) } else { (*tail, *head) };
            let mut chain = vec![upper];
            for between in rank[upper] * 2 + 1..rank[lower] * 2 {
                let labelled = between == rank[upper] * 2 + 1 && *label > 0;
                items.push(item(between, if labelled { *label } else { 1 }, usize::from(labelled)));
                chain.push(items.len() - 1);
            }
            chain.push(lower);
            for pair in chain.windows(2) {
                items[pair[0]].below.push(pair[1]);
                items[pair[1]].above.push(pair[0]);
            }
            chains.push(Some((chain, *back)));
        }
        // Every edge needs a column of its own where it touches a node.
        for item in &mut items {
            item.width = item.width.max(item.above.len().max(item.below.len()) * 2 + 1);
        }
        let depth = items.iter().map(|item| item.rank).max().unwrap_or(0) + 1;
        let mut ranks = vec![Vec::new(); depth];
        items.iter().enumerate().for_each(|(place, item)| ranks[item.rank].push(place));
        Ok(Self { items, ranks, chains })
    }

    /// Sorts each rank by where its neighbours stand, down and up again.
    fn order(&mut self) {
        let mut position = vec![0_usize; self.items.len()];
        for rank in &self.ranks {
            rank.iter().enumerate().for_each(|(at, item)| position[*item] = at);
        }
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let depth = self.ranks.len();
            for step in 0..depth {
                let rank = if down { step } else { depth - 1 - step };
                let items = &self.items;
                let weight = |item: usize| {
                    let near = if down { &items[item].above } else { &items[item].below };
                    match near.len() {
                        0 => position[item] * 1000,
                        many => near.iter().map(|other| position[*other] * 1000).sum::<usize>() / many,
                    }
                };
                let mut sorted: Vec<(usize, usize, usize)> =
                    self.ranks[rank].iter().map(|item| (weight(*item), position[*item], *item)).collect();
                sorted.sort_unstable();
                self.ranks[rank] = sorted.into_iter().map(|(_, _, item)| item).collect();
                self.ranks[rank].iter().enumerate().for_each(|(at, item)| position[*item] = at);
            }
        }
    }

    /// Moves items towards their neighbours as far as their rank has room.
    fn place(&mut self) {
        for rank in &self.ranks {
            let mut x = 0;
            for item in rank {
                self.items[*item].x = x;
                x += self.items[*item].width + GAP;
            }
        }
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let depth = self.ranks.len();
            for step in 0..depth {
                let rank = self.ranks[if down { step } else { depth - 1 - step }].clone();
                let wanted: Vec<usize> = rank.iter().map(|item| self.wanted(*item, down)).collect();
                let widths: Vec<usize> = rank.iter().map(|item| self.items[*item].width).collect();
                for (item, x) in rank.iter().zip(spread(&wanted, &widths)) {
                    self.items[*item].x = x;
                }
            }
        }
        let left = self.items.iter().map(|item| item.x).min().unwrap_or(0);
        self.items.iter_mut().for_each(|item| item.x -= left);
    }

    /// Where an item would like to begin: its middle over the mean of its neighbours' middles.
    fn wanted(&self, item: usize, down: bool) -> usize {
        let own = &self.items[item];
        let near = if down { &own.above } else { &own.below };
        if near.is_empty() {
            return own.x;
        }
        let middles: usize =
            near.iter().map(|other| self.items[*other].x + self.items[*other].width / 2).sum();
        (middles / near.len()).saturating_sub(own.width / 2)
    }

    fn draw(&self, nodes: usize, edges: &[(usize, usize, usize)]) -> Layout {
        let ports = self.ports();
        let (tracks, channel) = self.tracks(&ports);
        let (mut top, mut y) = (Vec::new(), 0);
        let height = |rank: &Vec<usize>| rank.iter().map(|item| self.items[*item].height).max().unwrap_or(0);
        let heights: Vec<usize> = self.ranks.iter().map(height).collect();
        for (rank, height) in heights.iter().enumerate() {
            top.push(y);
            y += height;
            // Below nodes there is a row to leave by, above them one to arrive by, and tracks where they are needed.
            y += if rank + 1 < self.ranks.len() { channel[rank] + 1 } else { 0 };
        }
        let rect = |item: usize| {
            let Item { rank, width, height, x, .. } = self.items[item];
            Rect { x, y: top[rank], width, height }
        };
        let roads = self.chains.iter().enumerate().map(|(edge, chain)| {
            let Some((chain, back)) = chain else { return EdgePath::default() };
            let mut points: Vec<(usize, usize)> = Vec::new();
            for (part, pair) in chain.windows(2).enumerate() {
                let (from, to) = ports[edge][part];
                let (upper, rank) = (rect(pair[0]), self.items[pair[0]].rank);
                let start = upper.y + heights[rank].min(if part == 0 { upper.height } else { usize::MAX });
                let below = top[rank] + heights[rank] + usize::from(rank % 2 == 0);
                let track = below + tracks[edge][part];
                let end = rect(pair[1]).y;
                points.extend([(from, start), (from, track), (to, track), (to, end)]);
            }
            let label = (edges[edge].2 > 0 && chain.len() > 2).then(|| rect(chain[1]));
            let mut points = corners(points);
            if *back {
                points.reverse();
            }
            EdgePath { points, label, back: *back }
        });
        let right = self.items.iter().map(|item| item.x + item.width).max().unwrap_or(0);
        Layout { width: right, height: y, nodes: (0..nodes).map(rect).collect(), roads: roads.collect() }
    }

    /// The columns at which the parts of each edge leave one item and enter the next.
    fn ports(&self) -> Vec<Vec<(usize, usize)>> {
        let mut ports: Vec<Vec<(usize, usize)>> = self
            .chains
            .iter()
            .map(|chain| vec![(0, 0); chain.as_ref().map_or(0, |(chain, _)| chain.len() - 1)])
            .collect();
        // Parts that touch an item, by the place of their other end.
        let (mut leaving, mut entering) =
            (vec![Vec::new(); self.items.len()], vec![Vec::new(); self.items.len()]);
        for (edge, chain) in self.chains.iter().enumerate() {
            let Some((chain, _)) = chain else { continue };
            for (part, pair) in chain.windows(2).enumerate() {
                let middle = |item: usize| self.items[item].x * 2 + self.items[item].width;
                leaving[pair[0]].push((middle(pair[1]), edge, part));
                entering[pair[1]].push((middle(pair[0]), edge, part));
            }
        }
        for (item, (leaving, entering)) in leaving.iter_mut().zip(&mut entering).enumerate() {
            let Item { x, width, .. } = self.items[item];
            for (list, leaves) in [(leaving, true), (entering, false)] {
                list.sort_unstable();
                let count = list.len();
                for (at, (_, edge, part)) in list.iter().enumerate() {
                    let column = x + width * (at * 2 + 1) / (count * 2);
                    let port = &mut ports[*edge][*part];
                    if leaves { port.0 = column } else { port.1 = column }
                }
            }
        }
        ports
    }

    /// A row between two ranks for each part that goes sideways, so that no two of them run over each other; and how many
    /// rows each space needs.
    fn tracks(&self, ports: &[Vec<(usize, usize)>]) -> (Vec<Vec<usize>>, Vec<usize>) {
        let mut tracks: Vec<Vec<usize>> = ports.iter().map(|parts| vec![0; parts.len()]).collect();
        let mut parts: Vec<Vec<(usize, usize, usize, usize)>> = vec![Vec::new(); self.ranks.len()];
        for (edge, chain) in self.chains.iter().enumerate() {
            let Some((chain, _)) = chain else { continue };
            for (part, pair) in chain.windows(2).enumerate() {
                let (from, to) = ports[edge][part];
                if from != to {
                    parts[self.items[pair[0]].rank].push((from.min(to), from.max(to), edge, part));
                }
            }
        }
        let mut rows = vec![0; self.ranks.len()];
        for (rank, mut parts) in parts.into_iter().enumerate() {
            parts.sort_unstable();
            let mut ends: Vec<usize> = Vec::new();
            for (left, right, edge, part) in parts {
                let free = ends.iter().position(|end| *end < left);
                let track = free.unwrap_or(ends.len());
                if track == ends.len() {
                    ends.push(right);
                } else {
                    ends[track] = right;
                }
                tracks[edge][part] = track;
            }
            rows[rank] = ends.len();
        }
        (tracks, rows)
    }
}

/// Which edges lead back, and the rank of each node: one more than the highest that leads to it.
fn ranks(count: usize, edges: &[(usize, usize, usize)]) -> (Vec<bool>, Vec<usize>) {
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); count];
    edges.iter().enumerate().for_each(|(edge, (tail, _, _))| outgoing[*tail].push(edge));
    let mut has_entry = vec![false; count];
    edges.iter().for_each(|(tail, head, _)| has_entry[*head] |= tail != head);
    let roots = (0..count).filter(|node| !has_entry[*node]);
    let ends: Vec<(usize, usize)> = edges.iter().map(|(tail, head, _)| (*tail, *head)).collect();
    let (forward, left) = leading_on(count, &ends, roots);
    let back: Vec<bool> = forward.iter().map(|forward| !forward).collect();
    let mut rank = vec![0; count];
    for node in left.iter().rev() {
        for edge in &outgoing[*node] {
            let head = edges[*edge].1;
            if !back[*edge] {
                rank[head] = rank[head].max(rank[*node] + 1);
            }
        }
    }
    (back, rank)
}

/// Places in a row near the wanted ones, without overlaps. The mean of two rows that fit, one pushed right and one
/// pushed left, fits as well.
fn spread(wanted: &[usize], widths: &[usize]) -> Vec<usize> {
    let mut right: Vec<usize> = wanted.to_vec();
    for at in 1..right.len() {
        right[at] = right[at].max(right[at - 1] + widths[at - 1] + GAP);
    }
    let total: usize = widths.iter().map(|width| width + GAP).sum();
    // Shifted by the whole width, so that pushing left never meets the edge.
    let mut left: Vec<usize> = wanted.iter().map(|x| x + total).collect();
    for at in (0..left.len().saturating_sub(1)).rev() {
        left[at] = left[at].min(left[at + 1] - widths[at] - GAP);
    }
    let shifted = right.iter().zip(&left).map(|(right, left)| (right + total + left) / 2);
    let least = wanted.iter().min().copied().unwrap_or(0);
    let first = shifted.clone().min().unwrap_or(0);
    // Back by the shift where there is room; a row that would begin left of the edge begins at its wanted place.
    let back = if first >= total { total } else { first - least.min(first) };
    shifted.map(|x| x - back).collect()
}

/// The same way without points that change nothing.
fn corners(points: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    let mut corners: Vec<(usize, usize)> = Vec::new();
    for point in points {
        if corners.last() == Some(&point) {
            continue;
        }
        if let [.., a, b] = corners.as_slice()
            && ((a.0 == b.0 && b.0 == point.0) || (a.1 == b.1 && b.1 == point.1))
        {
            corners.pop();
        }
        corners.push(point);
    }
    corners
}
