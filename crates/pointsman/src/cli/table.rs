//! Columns of text, aligned by what a terminal shows, without lines and boxes.

use std::borrow::Cow;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::style;

/// Between two columns.
const GAP: &str = "  ";
/// Between two columns of a table that is too wide otherwise.
const NARROW_GAP: &str = " ";
/// Other columns are not cut below this while columns without content can be left out.
const LEAST: usize = 8;
/// The same once nothing is left to leave out: a few letters of each column say more than lines that wrap.
const LEAST_OF_ALL: usize = 3;
/// A last column that needs it keeps this much, however narrow the terminal.
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
        let Layout { columns, widths, gap } = self.layout(width);
        let last = columns.len().saturating_sub(1);
        let mut lines = String::new();
        let mut line = |cells: &[(&str, Style)]| {
            for (position, column) in columns.iter().enumerate() {
                let (text, style) = cells[*column];
                let text = cut(text, widths[position]);
                match colours {
                    Colours::Shown if style != style::PLAIN => lines += &format!("{style}{text}{style:#}"),
                    Colours::Shown | Colours::Hidden => lines += &text,
                }
                if position < last {
                    lines.extend(std::iter::repeat_n(' ', widths[position] - shown(&text) + gap.len()));
                }
            }
            lines.truncate(lines.trim_end_matches(' ').len());
            lines.push('\n');
        };
        line(&self.header.iter().map(|text| (*text, style::QUIET)).collect::<Vec<_>>());
        for row in self.cells.chunks(self.header.len().max(1)) {
            line(&row.iter().map(|cell| (&*cell.text, cell.style)).collect::<Vec<_>>());
        }
        lines.pop();
        lines
    }

    /// The columns that are shown, and their widths. A table that is too wide gives up, in this order: the ends of its
    /// wide columns, the columns without content, half of its gaps, and the ends of the other columns.
    fn layout(&self, width: Option<usize>) -> Layout {
        let mut columns: Vec<usize> = (0..self.header.len()).collect();
        let mut widths: Vec<usize> = columns.iter().map(|column| self.natural_width(*column)).collect();
        let mut gap = GAP;
        let Some(width) = width else { return Layout { columns, widths, gap } };
        narrow(&mut widths, gap, width, LEAST);
        if taken(&widths, gap) > width {
            columns.retain(|column| self.column(*column).any(|text| !matches!(text, "" | "-" | "—")));
            widths = columns.iter().map(|column| self.natural_width(*column)).collect();
            narrow(&mut widths, gap, width, LEAST);
        }
        if taken(&widths, gap) > width {
            gap = NARROW_GAP;
            narrow(&mut widths, gap, width, LEAST_OF_ALL);
        }
        Layout { columns, widths, gap }
    }

    fn natural_width(&self, column: usize) -> usize {
        self.column(column).map(shown).fold(shown(self.header[column]), usize::max)
    }

    /// The texts of a column, without its heading.
    fn column(&self, column: usize) -> impl Iterator<Item = &str> {
        self.cells.chunks(self.header.len().max(1)).map(move |row| &*row[column].text)
    }
}

/// The columns of a table that are shown, with a width for each, and what is between them.
struct Layout {
    columns: Vec<usize>,
    widths: Vec<usize>,
    gap: &'static str,
}

/// The width of a whole line.
fn taken(widths: &[usize], gap: &str) -> usize {
    widths.iter().sum::<usize>() + gap.len() * widths.len().saturating_sub(1)
}

/// Takes room from the last column down to its least, then from the widest of the others until the line fits or none of
/// them has more than `least`.
fn narrow(widths: &mut [usize], gap: &str, room: usize, least: usize) {
    let Some((_, others)) = widths.split_last() else { return };
    // Others are cut only as far as the last column needs the room.
    let kept = widths[others.len()].min(LEAST_LAST);
    let before = others.iter().sum::<usize>() + gap.len() * others.len();
    let fits = room.saturating_sub(before).max(kept);
    let last = widths.len() - 1;
    widths[last] = widths[last].min(fits);
    while taken(widths, gap) > room {
        match widths[..last].iter_mut().max() {
            Some(widest) if *widest > least => *widest -= 1,
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

/// The same of a text with colours, which take no room and are all kept.
pub(super) fn cut_coloured(text: &str, columns: usize) -> String {
    let bare = anstream::adapter::strip_str(text).to_string();
    if shown(&bare) <= columns {
        return text.to_owned();
    }
    let mut room = columns.saturating_sub(1);
    let mut kept = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '\u{1b}' {
            let end = rest.find('m').map_or(rest.len(), |end| end + 1);
            kept.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        let width = c.width().unwrap_or(0);
        if width > room {
            // Whatever follows is cut, but not the end of a colour.
            kept.push('…');
            kept.extend(rest.rfind('\u{1b}').map(|at| &rest[at..]).filter(|end| end.ends_with('m')));
            return kept;
        }
        room -= width;
        kept.push(c);
    }
    kept
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
    fn a_coloured_line_is_cut_by_what_is_shown() {
        let quiet = style::QUIET;
        let line = format!("{quiet}2026-11-18{quiet:#}  日本語 and more words");
        let cut = super::cut_coloured(&line, 20);
        assert_eq!(anstream::adapter::strip_str(&cut).to_string(), "2026-11-18  日本語 …");
        assert!(cut.starts_with(&format!("{quiet}2026-11-18{quiet:#}")), "{cut:?}");
        assert_eq!(super::cut_coloured(&line, 200), line);
        let all = format!("{quiet}{}{quiet:#}", "x".repeat(50));
        assert!(super::cut_coloured(&all, 10).ends_with(&format!("…{quiet:#}")), "the colour ends");
    }

    #[test]
    fn a_table_of_many_columns_fits_a_terminal_of_80_columns() {
        let header = [
            "ROLE", "ON", "RUNS", "FAILED", "TOKENS", "USD", "USED", "NOISE", "MERGED", "REVERTED", "PAUSED",
        ];
        let mut table = Table::new(header);
        let row = ["supervisor", "yes", "120", "3", "1234567", "12.50", "8", "2", "", "—", "until tomorrow"];
        table.row(row.map(super::Cell::from));
        for width in [80, 60] {
            let lines = plain(&table, Some(width));
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
            assert!(
                !lines[0].contains("MERGED") && !lines[0].contains("REV"),
                "empty columns go first: {lines:#?}"
            );
        }
        assert!(plain(&table, Some(80))[1].starts_with("supervi"), "{:#?}", plain(&table, Some(80)));
        assert!(plain(&table, None)[0].contains("REVERTED"), "a pipe gets all of it");
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
