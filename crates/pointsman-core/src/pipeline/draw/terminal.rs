//! A pipeline in a terminal, with lines and boxes of characters.

use unicode_width::UnicodeWidthChar;

use super::{Layout, Progress, TooLarge, edge_label, laid_out, lines};
use crate::pipeline::model::Pipeline;

/// The drawing as lines of text without colours.
pub fn terminal(pipeline: &Pipeline, progress: &Progress) -> Result<String, TooLarge> {
    let layout = laid_out(pipeline, progress, |_, _| (4, 2))?;
    let mut grid = Grid::new(&layout);
    for road in &layout.roads {
        grid.line(&road.points);
    }
    for (edge, road) in pipeline.edges.iter().zip(&layout.roads) {
        if let Some(place) = road.label {
            grid.text(place.x, place.y, &edge_label(edge));
        }
    }
    for (node, place) in pipeline.nodes.iter().zip(&layout.nodes) {
        let mut lines = lines(node, progress);
        if pipeline.edges.iter().any(|edge| edge.from == node.id && edge.to == node.id) {
            lines[0].push_str(" ↻");
        }
        let (right, bottom) = (place.x + place.width - 1, place.y + place.height - 1);
        for y in place.y..=bottom {
            (place.x..=right).for_each(|x| grid.clear(x, y));
        }
        let corners =
            [(place.x, place.y), (right, place.y), (right, bottom), (place.x, bottom), (place.x, place.y)];
        grid.line(&corners);
        for (row, line) in lines.iter().enumerate() {
            let free = place.width.saturating_sub(2).saturating_sub(super::width(line));
            grid.text(place.x + 1 + free / 2, place.y + 1 + row, line);
        }
    }
    grid.arrows(&layout);
    Ok(grid.to_text())
}

/// What a cell shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// Lines that leave it, as bits: up, right, down, left.
    Lines(u8),
    Char(char),
    /// The second half of a wide character.
    Rest,
}

struct Grid {
    width: usize,
    cells: Vec<Cell>,
}

impl Grid {
    fn new(layout: &Layout) -> Self {
        let width = layout.width + 4;
        Self { width, cells: vec![Cell::Lines(0); width * (layout.height + 1)] }
    }

    fn at(&mut self, x: usize, y: usize) -> Option<&mut Cell> {
        if x < self.width { self.cells.get_mut(y * self.width + x) } else { None }
    }

    fn clear(&mut self, x: usize, y: usize) {
        if let Some(cell) = self.at(x, y) {
            *cell = Cell::Lines(0);
        }
    }

    fn add(&mut self, x: usize, y: usize, bits: u8) {
        if let Some(Cell::Lines(lines)) = self.at(x, y) {
            *lines |= bits;
        }
    }

    fn line(&mut self, points: &[(usize, usize)]) {
        for pair in points.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            for x in x1.min(x2)..x1.max(x2) {
                self.add(x, y1, 2);
                self.add(x + 1, y1, 8);
            }
            for y in y1.min(y2)..y1.max(y2) {
                self.add(x1, y, 4);
                self.add(x1, y + 1, 1);
            }
        }
    }

    fn text(&mut self, x: usize, y: usize, text: &str) {
        let mut x = x;
        for c in text.chars() {
            let width = UnicodeWidthChar::width(c).unwrap_or(0);
            if width == 0 {
                continue;
            }
            if let Some(cell) = self.at(x, y) {
                *cell = Cell::Char(c);
            }
            for rest in 1..width {
                if let Some(cell) = self.at(x + rest, y) {
                    *cell = Cell::Rest;
                }
            }
            x += width;
        }
    }

    fn arrows(&mut self, layout: &Layout) {
        for road in &layout.roads {
            let [.., before, end] = road.points.as_slice() else { continue };
            let (y, arrow) =
                if before.1 <= end.1 { (end.1.saturating_sub(1), '▼') } else { (end.1, '▲') };
            if let Some(cell) = self.at(end.0, y) {
                *cell = Cell::Char(arrow);
            }
        }
    }

    fn to_text(&self) -> String {
        const LINES: [char; 16] =
            [' ', '│', '─', '└', '│', '│', '┌', '├', '─', '┘', '─', '┴', '┐', '┤', '┬', '┼'];
        let rows = self.cells.chunks(self.width).map(|row| {
            let row: String = row
                .iter()
                .filter_map(|cell| match cell {
                    Cell::Lines(bits) => Some(LINES[usize::from(*bits & 15)]),
                    Cell::Char(c) => Some(*c),
                    Cell::Rest => None,
                })
                .collect();
            row.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }
}
