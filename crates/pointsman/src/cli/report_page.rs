//! The report as one HTML file: plots as SVG, nothing from elsewhere, no script.

use std::fmt::Write;

use pointsman_core::words::report as words;

use super::report::{Plot, Row, Shown};

/// The width of a plot, in its own units.
const WIDTH: f64 = 720.0;
/// The height of one bar with its gap.
const STEP: f64 = 26.0;
/// The room for the names of bars.
const NAMES: f64 = 190.0;
/// The room for their values.
const VALUES: f64 = 110.0;
/// The height of the plot by day.
const DAYS: f64 = 120.0;

/// Nothing is loaded from anywhere, whatever a name contains.
const HEAD: &str = "<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
<style>\n\
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}\n\
h1{font-size:1.4rem}h2{font-size:1.05rem;margin:2rem 0 .5rem}\n\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1.5rem}dt{color:#57606a}dd{margin:0}\n\
svg{width:100%;height:auto}svg text{font:13px system-ui,sans-serif;fill:currentColor}.bar{fill:#2f6fde}\n\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}dt{color:#8b949e}.bar{fill:#58a6ff}}\n\
</style>\n";

/// The page.
pub(super) fn html(shown: &Shown) -> String {
    let title = escaped(&shown.title);
    let mut page =
        format!("<!doctype html>\n<html lang=\"en\">\n<head>\n{HEAD}<title>{title}</title>\n</head>\n");
    let _ = write!(page, "<body>\n<h1>{title}</h1>\n<dl>\n");
    for (name, told) in shown.figures() {
        let _ = writeln!(page, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(&told));
    }
    page += "</dl>\n";
    let _ = write!(page, "<h2>{}</h2>\n{}", escaped(words::LANDED_BY_DAY), days(&shown.by_day));
    for plot in shown.plots() {
        let _ = write!(page, "<h2>{}</h2>\n{}", escaped(plot.title), bars(&plot));
    }
    page += "</body>\n</html>\n";
    page
}

/// A bar for each row, from left to right.
fn bars(plot: &Plot) -> String {
    let most = plot.rows.iter().map(|row| row.value).fold(0.0, f64::max);
    let height = size(plot.rows.len()) * STEP;
    let mut svg = open(height, plot.title);
    for (at, Row { name, value, told }) in plot.rows.iter().enumerate() {
        let top = size(at) * STEP;
        let length = if most > 0.0 { value / most * (WIDTH - NAMES - VALUES) } else { 0.0 };
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.0}\" text-anchor=\"end\">{}</text><rect class=\"bar\" x=\"{NAMES}\" y=\"{:.0}\" \
             width=\"{length:.1}\" height=\"16\" rx=\"2\"/><text x=\"{:.1}\" y=\"{:.0}\">{}</text>",
            NAMES - 8.0,
            top + 17.0,
            escaped(name),
            top + 5.0,
            NAMES + length + 8.0,
            top + 17.0,
            escaped(told),
        );
    }
    svg += "</svg>\n";
    svg
}

/// A column for each day.
fn days(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let width = WIDTH / size(counts.len().max(1));
    let mut svg = open(DAYS + 20.0, words::LANDED_BY_DAY);
    for (at, count) in counts.iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "counts of issues are small")]
        let height = *count as f64 / most as f64 * (DAYS - 16.0);
        let _ = writeln!(
            svg,
            "<rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{count}</title></rect>",
            size(at) * width + width * 0.1,
            DAYS - height,
            width * 0.8,
        );
        if *count > 0 && width > 14.0 {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{count}</text>",
                (size(at) + 0.5) * width,
                DAYS - height - 4.0,
            );
        }
    }
    let _ = writeln!(
        svg,
        "<rect x=\"0\" y=\"{DAYS}\" width=\"{WIDTH}\" height=\"1\" fill=\"currentColor\"/>\n</svg>"
    );
    svg
}

fn open(height: f64, title: &str) -> String {
    format!("<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">\n", escaped(title))
}

#[allow(clippy::cast_precision_loss, reason = "as many bars as fit a page")]
fn size(count: usize) -> f64 {
    count as f64
}

/// Text that is no markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_name_is_no_markup() {
        assert_eq!(escaped("<b a=\"'\">&\u{1b}"), "&lt;b a=&quot;&#39;&quot;&gt;&amp; ");
    }
}
