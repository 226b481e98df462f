//! Columns of text, aligned by what a terminal shows, without lines and boxes.

use std::borrow::Cow;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::style;

/// Between two columns.
const GAP: &str = "  ";
/// A last column is not cut below this, however narrow the terminal.
const LEAST_LAST: usize = 16;

/// A table in the making. Cells hold text that is clean already.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// One cell.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, style::PLAIN)
    }
}

impl Table {
    pub(crate) fn new<const N: usize>(header: [&'static str; N]) -> Self {
        Self { header: header.into(), rows: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.header.len(), "a cell for each column");
        self.rows.push(cells.into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines, cut to `width` columns if there is a width to keep to.
    pub(crate) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let last = self.header.len().saturating_sub(1);
        let widths: Vec<usize> = (0..self.header.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| shown(&row[column].text));
                cells.chain([shown(self.header[column])]).max().unwrap_or(0)
            })
            .collect();
        let before: usize = widths[..last].iter().map(|w| w + GAP.len()).sum();
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(before).max(LEAST_LAST));
        let line = |cells: &mut dyn Iterator<Item = (&str, Style)>| {
            let mut line = String::new();
            for (column, (text, style)) in cells.enumerate() {
                let text = if column == last { cut(text, room) } else { Cow::Borrowed(text) };
                if style == style::PLAIN {
                    line += &text;
                } else {
                    line += &format!("{style}{text}{style:#}");
                }
                if column < last {
                    line.extend(std::iter::repeat_n(' ', widths[column] - shown(&text) + GAP.len()));
                }
            }
            line.truncate(line.trim_end().len());
            line
        };
        let header = line(&mut self.header.iter().map(|text| (*text, style::QUIET)));
        let rows = self.rows.iter().map(|row| line(&mut row.iter().map(|c| (c.text.as_str(), c.style))));
        std::iter::once(header).chain(rows).collect()
    }
}

/// At most so many columns of a text, the last one a mark if something is missing.
fn cut(text: &str, columns: usize) -> Cow<'_, str> {
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
    use super::Table;
    use crate::cli::style;

    fn plain(table: &Table, width: Option<usize>) -> Vec<String> {
        table.lines(width).iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
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
}
