//! A recording of the screen as an animated SVG, for the README.
//!
//! Every line of the screen has its variants, each with the time in which it is shown. A browser plays them without a
//! script, and an image viewer that cannot shows the last one.

use std::time::Duration;

use anstyle::{AnsiColor, Color, Effects, Style};
use unicode_width::UnicodeWidthStr;

use super::ink::Line;

/// The size of a character cell, in the font below.
const COLUMN: f64 = 7.8;
const ROW: f64 = 18.0;
const MARGIN: f64 = 16.0;
const COLUMNS: usize = 104;
/// The last frame stands so long before it begins again.
const HOLD: Duration = Duration::from_secs(5);

/// The screen over time.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// For each line of the screen what it showed, and since when.
    lines: Vec<Vec<(Duration, Line)>>,
    end: Duration,
}

impl Recording {
    /// Adds the screen as it is after `elapsed`.
    pub(super) fn take(&mut self, elapsed: Duration, screen: Vec<Line>) {
        self.end = elapsed;
        let count = screen.len().max(self.lines.len());
        self.lines.resize_with(count, Vec::new);
        let shown = screen.into_iter().chain(std::iter::repeat_with(Line::new));
        for (variants, line) in self.lines.iter_mut().zip(shown) {
            if variants.last().is_none_or(|(_, last)| *last != line) {
                variants.push((elapsed, line));
            }
        }
    }

    /// The recording as one self-contained file.
    pub(super) fn svg(&self) -> String {
        let total = self.end + HOLD;
        let width = COLUMN * COLUMNS as f64 + 2.0 * MARGIN;
        let height = ROW * self.lines.len() as f64 + 2.0 * MARGIN;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
             aria-label=\"The demo of Pointsman: seventeen tasks on their way to the main branch\">\n{STYLE}\
             <rect width=\"100%\" height=\"100%\" rx=\"8\"/>\n"
        );
        for (row, variants) in self.lines.iter().enumerate() {
            let y = MARGIN + ROW * (row as f64 + 0.75);
            for (index, (from, line)) in variants.iter().enumerate() {
                let until = variants.get(index + 1).map(|(until, _)| *until);
                out.push_str(&text(
                    line,
                    y,
                    share(*from, total),
                    until.map(|until| share(until, total)),
                    total,
                ));
            }
        }
        out.push_str("</svg>\n");
        out
    }
}

fn share(of: Duration, total: Duration) -> f64 {
    of.as_secs_f64() / total.as_secs_f64()
}

/// A line that is shown from one share of the time to another.
fn text(line: &Line, y: f64, from: f64, until: Option<f64>, total: Duration) -> String {
    let mut spans = String::new();
    let mut column = 0;
    for (style, piece) in line.pieces() {
        let left = COLUMNS.saturating_sub(column);
        let shown: String = piece.chars().take(left).collect();
        if !shown.trim().is_empty() {
            // Viewers swallow blanks at the beginning.
            let blanks = shown.len() - shown.trim_start().len();
            let x = MARGIN + COLUMN * (column + blanks) as f64;
            spans.push_str(&format!(
                "<tspan x=\"{x:.1}\"{}>{}</tspan>",
                class(*style),
                escaped(shown.trim())
            ));
        }
        column += piece.width();
    }
    if spans.is_empty() {
        return String::new();
    }
    let (values, times) = match (from > 0.0, until) {
        (true, Some(until)) => ("hidden;visible;hidden", format!("0;{from:.4};{until:.4}")),
        (true, None) => ("hidden;visible", format!("0;{from:.4}")),
        (false, Some(until)) => ("visible;hidden", format!("0;{until:.4}")),
        (false, None) => ("visible", "0".to_owned()),
    };
    // Without animation the last variant is the picture.
    let still = if until.is_some() { " visibility=\"hidden\"" } else { "" };
    format!(
        "<text y=\"{y:.1}\"{still}>{spans}<animate attributeName=\"visibility\" calcMode=\"discrete\" \
         values=\"{values}\" keyTimes=\"{times}\" dur=\"{:.1}s\" repeatCount=\"indefinite\"/></text>\n",
        total.as_secs_f64()
    )
}

const STYLE: &str = "<style>rect{fill:#16181d}text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;\
                     fill:#d7dae0;white-space:pre}.q{fill:#8b919c}.b{font-weight:600}.g{fill:#7fc98a}.r{fill:#f07f78}\
                     .y{fill:#e5c06f}.c{fill:#6cc7d6}.m{fill:#d59bea}</style>\n";

fn class(style: Style) -> String {
    let colour = match style.get_fg_color() {
        Some(Color::Ansi(AnsiColor::Green)) => "g",
        Some(Color::Ansi(AnsiColor::Red)) => "r",
        Some(Color::Ansi(AnsiColor::Yellow)) => "y",
        Some(Color::Ansi(AnsiColor::Cyan)) => "c",
        Some(Color::Ansi(AnsiColor::Magenta)) => "m",
        Some(_) | None if style.get_effects().contains(Effects::DIMMED) => "q",
        Some(_) | None => "",
    };
    let bold = if style.get_effects().contains(Effects::BOLD) { "b" } else { "" };
    let classes = format!("{colour} {bold}");
    match classes.trim() {
        "" => String::new(),
        classes => format!(" class=\"{classes}\""),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Recording;
    use crate::demo::ink::{GOOD, Line, PLAIN};

    #[test]
    fn each_variant_of_a_line_is_shown_in_its_time() {
        let line = |text: &str| Line::new().then(GOOD, text);
        let mut recording = Recording::default();
        let at = Duration::from_secs;
        recording.take(at(0), vec![line("working"), Line::new().then(PLAIN, "a < b")]);
        recording.take(at(1), vec![line("working"), Line::new().then(PLAIN, "a < b")]);
        recording.take(at(5), vec![line("merged"), Line::new().then(PLAIN, "a < b")]);
        let svg = recording.svg();
        assert_eq!(svg.matches("<text").count(), 3, "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("class=\"g\""), "{svg}");
        assert!(svg.contains("values=\"visible;hidden\" keyTimes=\"0;0.5000\" dur=\"10.0s\""), "{svg}");
        assert!(svg.contains("values=\"hidden;visible\" keyTimes=\"0;0.5000\""), "{svg}");
    }
}
