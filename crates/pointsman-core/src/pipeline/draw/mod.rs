//! Drawing a pipeline: one layered layout, shown as SVG or in a terminal.
//!
//! The layout counts in character cells, so both pictures agree and text always fits. Graphviz draws better pictures;
//! this one needs no other program.

mod layout;
mod svg;
mod terminal;

use std::collections::BTreeMap;

use unicode_width::UnicodeWidthStr;

pub use layout::{EdgePath, Layout, Rect, Size, TooLarge, lay_out};
pub use svg::svg;
pub use terminal::terminal;

use super::condition::{Condition, Key};
use super::model::{Edge, Handler, Node, Pipeline};
use super::run::NodeStatus;
use crate::text::clean_line;

/// The longest line of a label; longer ones are cut.
const MAX_LINE: usize = 48;

/// How many lines of a label are shown.
const MAX_LINES: usize = 6;

/// How far a run is, by node. Empty for a file.
pub type Progress = BTreeMap<String, NodeStatus>;

/// The lines that stand in a node.
fn lines(node: &Node, progress: &Progress) -> Vec<String> {
    let mut lines: Vec<String> = node
        .label
        .lines()
        .map(|line| clean_line(line, MAX_LINE))
        .filter(|line| !line.is_empty())
        .take(MAX_LINES)
        .collect();
    if lines.is_empty() {
        lines.push(clean_line(&node.id, MAX_LINE));
    }
    let sign = sign(&node.handler);
    if !sign.is_empty() {
        lines[0] = format!("{sign} {}", lines[0]);
    }
    lines.extend(progress.get(&node.id).map(|status| status.as_str().to_owned()));
    lines
}

/// A sign for the kind of work, each one cell wide.
const fn sign(handler: &Handler) -> &'static str {
    match handler {
        Handler::Start => "▷",
        Handler::Exit => "□",
        Handler::Codergen(_) => "",
        Handler::Tool { .. } => "$",
        Handler::Gate { .. } | Handler::Human { .. } => "?",
        Handler::Conditional => "◇",
        Handler::Parallel { .. } | Handler::FanIn => "‖",
        Handler::Child { .. } => "⌂",
    }
}

/// What stands on an edge: its label, else its condition.
fn edge_label(edge: &Edge) -> String {
    let text = match (&edge.label, &edge.condition) {
        (Some(label), _) => label.clone(),
        (None, Some(condition)) => condition_text(condition),
        (None, None) => String::new(),
    };
    clean_line(&text, MAX_LINE)
}

fn condition_text(condition: &Condition) -> String {
    let clauses = condition.clauses.iter().map(|clause| {
        let key = match &clause.key {
            Key::Outcome if clause.equal => return clause.value.clone(),
            Key::Outcome => "outcome".to_owned(),
            Key::PreferredLabel => "preferred_label".to_owned(),
            Key::Context(name) => name.clone(),
        };
        format!("{key}{}{}", if clause.equal { "=" } else { "≠" }, clause.value)
    });
    clauses.collect::<Vec<_>>().join(" & ")
}

fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The layout of a pipeline, with room around text as `padding` says: columns and rows.
fn laid_out(
    pipeline: &Pipeline,
    progress: &Progress,
    padding: impl Fn(&Handler, usize) -> (usize, usize),
) -> Result<Layout, TooLarge> {
    let sizes: Vec<Size> = pipeline
        .nodes
        .iter()
        .map(|node| {
            let lines = lines(node, progress);
            let text = lines.iter().map(|line| width(line)).max().unwrap_or(0);
            let (columns, rows) = padding(&node.handler, text);
            Size { width: text + columns, height: lines.len() + rows }
        })
        .collect();
    let place: BTreeMap<&str, usize> =
        pipeline.nodes.iter().enumerate().map(|(place, node)| (node.id.as_str(), place)).collect();
    let ends: Vec<(usize, usize, usize)> = pipeline
        .edges
        .iter()
        .filter_map(|edge| {
            Some((*place.get(edge.from.as_str())?, *place.get(edge.to.as_str())?, width(&edge_label(edge))))
        })
        .collect();
    lay_out(&sizes, &ends)
}
