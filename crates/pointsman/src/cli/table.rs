//! Columns of text, aligned by what a terminal shows, without lines and boxes.

use std::borrow::Cow;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::style;

/// Between two columns.
const GAP: &str = "  ";
/// Other columns are not cut below this.
const LEAST: usize = 8;
/// A last column is not cut below this, however narrow the terminal.
const LEAST_LAST: usize = 16;

/// A table in the making. Cells hold text that is clean already.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    header: Vec<&'static str>,
    cells: Vec<Cell<'a>>,
}

/// One cell: its text and colour. Widths are counted without the colour.
#[derive(Debug)]
pub(crate) struct Cell<'a> {
    text: Cow<'a, str>,
    style: Style,
}

impl<'a> Cell<'a> {
    /// A cell in a style.
    pub(crate) fn styled(text: impl Into<Cow<'a, str>>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Cell<'a> {
    fn from(text: T) -> Self {
        Self::styled(text, style::PLAIN)
    }
}

impl<'a> Table<'a> {
    /// An empty table with these columns.
    pub(crate) fn new<const N: usize>(header: [&'static str; N]) -> Self {
        Self { header: header.into(), cells: Vec::new() }
    }

    /// Appends a row with a cell for each column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell<'a>; N]) {
        debug_assert_eq!(N, self.header.len(), "a cell for each column");
        self.cells.extend(cells);
    }

    /// Whether the table has no rows. An empty table is not printed.
    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The lines, cut to `width` columns if there is a width to keep to, with or without colours.
    pub(crate) fn text(&self, width: Option<usize>, colours: Colours) -> String {
        let columns = self.header.len();
        let last = columns.saturating_sub(1);
        let mut widths: Vec<usize> = self.header.iter().map(|text| shown(text)).collect();
        for row in self.cells.chunks(columns.max(1)) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = shown(&cell.text).max(*width);
            }
        }
        if let Some(width) = width {
            narrow(&mut widths[..last], width.saturating_sub(LEAST_LAST));
        }
        let before: usize = widths[..last].iter().map(|w| w + GAP.len()).sum();
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(before).max(LEAST_LAST));
        let mut lines = String::new();
        let mut line = |cells: &mut dyn Iterator<Item = (&str, Style)>| {
            for (column, (text, style)) in cells.enumerate() {
                let text = cut(text, if column == last { room } else { widths[column] });
                match colours {
                    Colours::Shown if style != style::PLAIN => lines += &format!("{style}{text}{style:#}"),
                    Colours::Shown | Colours::Hidden => lines += &text,
                }
                if column < last {
                    lines.extend(std::iter::repeat_n(' ', widths[column] - shown(&text) + GAP.len()));
                }
            }
            lines.truncate(lines.trim_end_matches(' ').len());
            lines.push('\n');
        };
        line(&mut self.header.iter().map(|text| (*text, style::QUIET)));
        for row in self.cells.chunks(columns.max(1)) {
            line(&mut row.iter().map(|cell| (&*cell.text, cell.style)));
        }
        lines.pop();
        lines
    }
}

/// Takes room from the widest columns until all of them fit, or none can give any more.
fn narrow(widths: &mut [usize], room: usize) {
    while widths.iter().map(|width| width + GAP.len()).sum::<usize>() > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > LEAST => *widest -= 1,
            Some(_) | None => return,
        }
    }
}

/// Whether whoever reads a table sees its colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colours {
    Shown,
    Hidden,
}

/// At most so many columns of a text, the last one a mark if something is missing.
pub(super) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if shown(text) <= columns {
        return Cow::Borrowed(text);
    }
    let (mut kept, mut used) = (String::new(), 0);
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used >= columns {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    Cow::Owned(kept)
}

/// How many columns a text takes. Cells are clean: what is ASCII is a column each.
fn shown(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

#[cfg(test)]
mod tests {
    use super::{Colours, Table};
    use crate::cli::style;

    fn plain(table: &Table<'_>, width: Option<usize>) -> Vec<String> {
        let text = table.text(width, Colours::Hidden);
        let coloured = table.text(width, Colours::Shown);
        assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), text, "colours take no room");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn columns_line_up_by_what_is_shown() {
        let mut table = Table::new(["N", "TITLE", "STATE"]);
        table.row(["1".into(), "日本".into(), super::Cell::styled("working", style::BUSY)]);
        table.row(["20".into(), "plain".into(), "closed".into()]);
        assert_eq!(plain(&table, None), ["N   TITLE  STATE", "1   日本   working", "20  plain  closed"]);
    }

    #[test]
    fn the_last_column_is_cut_to_the_terminal() {
        let mut table = Table::new(["N", "TITLE"]);
        table.row(["1".into(), "x".repeat(50).into()]);
        table.row(["2".into(), "日".repeat(50).into()]);
        for line in &plain(&table, Some(30))[1..] {
            assert!(unicode_width::UnicodeWidthStr::width(line.as_str()) <= 30, "{line}");
            assert!(line.ends_with('…'), "{line}");
        }
        assert!(plain(&table, None)[1].ends_with("xxx"));
    }

    #[test]
    fn wide_columns_give_room_to_the_others() {
        let mut table = Table::new(["N", "WAITING FOR", "TITLE"]);
        table.row(["1".into(), "w".repeat(90).into(), "t".repeat(90).into()]);
        let lines = plain(&table, Some(80));
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
        assert!(lines[1].contains("www…") && lines[1].ends_with("ttt…"), "{lines:?}");
        assert!(plain(&table, None)[1].chars().count() > 180);
    }
}
