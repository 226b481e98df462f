//! A pipeline as an SVG picture that needs no font, script or style from elsewhere.

use super::{Progress, Rect, TooLarge, edge_label, laid_out, lines};
use crate::pipeline::edit::fill_colour;
use crate::pipeline::model::{Handler, Pipeline};
use crate::text::clean_line;

/// The size of a character cell in pixels, and of the margin.
const COLUMN: usize = 8;
const ROW: usize = 18;
const MARGIN: usize = 16;

/// The picture. Text is in a fixed-width font, so that its size is known without measuring.
pub fn svg(pipeline: &Pipeline, progress: &Progress) -> Result<String, TooLarge> {
    let layout = laid_out(pipeline, progress, |handler, text| match handler {
        // A diamond has room for text only around its middle.
        Handler::Conditional => ((text / 2).max(8), 3),
        Handler::Gate { .. } | Handler::Human { .. } | Handler::Parallel { .. } => (8, 1),
        Handler::Child { .. } => (4, 2),
        Handler::Start | Handler::Exit | Handler::Codergen(_) | Handler::Tool { .. } | Handler::FanIn => {
            (4, 1)
        }
    })?;
    let (width, height) = (layout.width * COLUMN + 2 * MARGIN, (layout.height + 1) * ROW + 2 * MARGIN);
    let (w, h) = (width.to_string(), height.to_string());
    let mut inner =
        format!("\n{}", element("title", &[], &escaped(pipeline.label.as_deref().unwrap_or(&pipeline.name))));
    let head = element("polygon", &[("points", "0,0 8,4 0,8")], "");
    let marker = [
        ("id", "arrow"),
        ("viewBox", "0 0 8 8"),
        ("refX", "8"),
        ("refY", "4"),
        ("markerWidth", "8"),
        ("markerHeight", "8"),
        ("orient", "auto"),
    ];
    inner += &element("defs", &[], &element("marker", &marker, &head));
    inner += &element("rect", &[("width", &w), ("height", &h), ("fill", "white")], "");
    for (edge, road) in pipeline.edges.iter().zip(&layout.roads).filter(|(_, road)| !road.points.is_empty()) {
        let points: Vec<String> =
            road.points.iter().map(|(x, y)| format!("{},{}", middle(*x), down(*y))).collect();
        let points = points.join(" ");
        let attributes = [
            ("points", points.as_str()),
            ("fill", "none"),
            ("stroke", "#444"),
            ("stroke-dasharray", if road.back { "5 3" } else { "none" }),
            ("marker-end", "url(#arrow)"),
        ];
        let title = element("title", &[], &escaped(&format!("{} → {}", edge.from, edge.to)));
        inner += &element("polyline", &attributes, &title);
        if let Some(place) = road.label {
            inner += &label(place, &edge_label(edge));
        }
    }
    for (node, place) in pipeline.nodes.iter().zip(&layout.nodes) {
        let fill = progress.get(&node.id).map_or("white", |status| fill_colour(*status));
        let mut parts = element("title", &[], &escaped(&node.id)) + &shape(&node.handler, *place, fill);
        let lines = lines(node, progress);
        let x = left(place.x) + place.width * COLUMN / 2;
        let first = down(place.y) + (place.height * ROW).saturating_sub(lines.len() * ROW) / 2 + ROW - 5;
        for (row, line) in lines.iter().enumerate() {
            parts += &text(x, first + row * ROW, line, "black");
        }
        inner += &element("g", &[], &parts);
    }
    let view = format!("0 0 {w} {h}");
    let attributes = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("width", w.as_str()),
        ("height", h.as_str()),
        ("viewBox", view.as_str()),
        ("font-family", "monospace"),
        ("font-size", "13"),
    ];
    Ok(element("svg", &attributes, &inner))
}

/// An element on a line of its own. Values of attributes are ours, never outside text.
fn element(name: &str, attributes: &[(&str, &str)], inner: &str) -> String {
    let attributes: String = attributes.iter().map(|(key, value)| format!(" {key}=\"{value}\"")).collect();
    match inner {
        "" => format!("<{name}{attributes}/>\n"),
        inner => format!("<{name}{attributes}>{inner}</{name}>\n"),
    }
}

fn text(x: usize, y: usize, words: &str, fill: &str) -> String {
    let (x, y) = (x.to_string(), y.to_string());
    let attributes = [("x", x.as_str()), ("y", y.as_str()), ("text-anchor", "middle"), ("fill", fill)];
    element("text", &attributes, &escaped(words))
}

fn rect(x: usize, y: usize, size: (usize, usize), more: &[(&str, &str)]) -> String {
    let numbers =
        [("x", x), ("y", y), ("width", size.0), ("height", size.1)].map(|(name, n)| (name, n.to_string()));
    let mut attributes: Vec<(&str, &str)> =
        numbers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    attributes.extend(more);
    element("rect", &attributes, "")
}

fn left(x: usize) -> usize {
    MARGIN + x * COLUMN
}

fn middle(x: usize) -> usize {
    left(x) + COLUMN / 2
}

fn down(y: usize) -> usize {
    MARGIN + y * ROW
}

/// A label on white ground, so that the line of its own edge does not run through it.
fn label(place: Rect, words: &str) -> String {
    let (x, y, width) = (left(place.x), down(place.y), place.width * COLUMN);
    let ground = rect(x, y, (width, place.height * ROW), &[("fill", "white")]);
    ground + &text(x + width / 2, y + ROW - 5, words, "#444")
}

/// The outline by which Graphviz users know a kind of node.
fn shape(handler: &Handler, place: Rect, fill: &str) -> String {
    let (x, y) = (left(place.x), down(place.y));
    let (w, h) = (place.width * COLUMN, place.height * ROW);
    let polygon = |points: &[(usize, usize)]| {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
        element("polygon", &[("points", &points.join(" ")), ("fill", fill), ("stroke", "black")], "")
    };
    let slant = 2 * COLUMN;
    match handler {
        Handler::Conditional => {
            polygon(&[(x + w / 2, y), (x + w, y + h / 2), (x + w / 2, y + h), (x, y + h / 2)])
        }
        Handler::Gate { .. } | Handler::Human { .. } => polygon(&[
            (x + slant, y),
            (x + w - slant, y),
            (x + w, y + h / 2),
            (x + w - slant, y + h),
            (x + slant, y + h),
            (x, y + h / 2),
        ]),
        Handler::Parallel { .. } => {
            polygon(&[(x + slant, y), (x + w, y), (x + w - slant, y + h), (x, y + h)])
        }
        Handler::Child { .. } => {
            polygon(&[(x + w / 2, y), (x + w, y + ROW), (x + w, y + h), (x, y + h), (x, y + ROW)])
        }
        Handler::Start | Handler::Exit => {
            rect(x, y, (w, h), &[("rx", "12"), ("fill", fill), ("stroke", "black"), ("stroke-width", "2")])
        }
        Handler::Tool { .. } => {
            rect(x, y, (w, h), &[("fill", fill), ("stroke", "black"), ("stroke-dasharray", "2 2")])
        }
        Handler::Codergen(_) | Handler::FanIn => rect(x, y, (w, h), &[("fill", fill), ("stroke", "black")]),
    }
}

/// Outside text for a picture: cleaned, on one line, with nothing left that XML takes for its own.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in clean_line(text, 400).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
