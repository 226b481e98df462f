//! Live progress: a line per task, redrawn in place on a terminal, appended elsewhere.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use pointsman_core::ids::Number;
use pointsman_core::task::{Phase, State};

use super::ink::{self, Ink, Line, PLAIN, QUIET, STRONG};

/// At most ten redraws a second: nobody reads faster.
const FRAME: Duration = Duration::from_millis(100);
/// The width of lines that nobody measures.
const UNMEASURED: usize = 1000;

/// What one line tells.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) issue: Number,
    pub(super) story: &'static str,
    pub(super) title: &'static str,
    /// Where it stands; none before the daemon found it.
    pub(super) state: Option<State>,
    /// What its agent last claimed.
    pub(super) phase: Option<Phase>,
    /// How long it took, or takes.
    pub(super) elapsed: Duration,
}

/// Where progress is shown.
pub(super) struct Screen<'a, W> {
    out: &'a mut W,
    ink: Ink,
    manner: Manner,
    shown: BTreeMap<Number, (Option<State>, Option<Phase>)>,
}

enum Manner {
    Live {
        lines: usize,
        last: Option<Instant>,
    },
    /// Appends a line for each change.
    Plain,
}

impl<'a, W: Write + IsTerminal + AsFd> Screen<'a, W> {
    /// A screen for `tasks` lines; plain if it is no terminal, or one too small for them.
    pub(super) fn new(out: &'a mut W, ink: Ink, tasks: usize) -> Self {
        let fits = out.is_terminal() && size(out).is_some_and(|(_, rows)| rows > tasks + 2);
        let manner = if fits { Manner::Live { lines: 0, last: None } } else { Manner::Plain };
        Self { out, ink, manner, shown: BTreeMap::new() }
    }

    /// Shows how things are after `elapsed`. `last` is drawn in any case.
    pub(super) fn show(&mut self, rows: &[Row], elapsed: Duration, last: bool) -> io::Result<()> {
        match &mut self.manner {
            Manner::Plain => {
                for row in rows {
                    let now = (row.state, row.phase);
                    if self.shown.insert(row.issue, now) != Some(now) {
                        let line = Line::new().column(QUIET, &seconds(elapsed), 7);
                        writeln!(self.out, "{}", row.line(line).render(self.ink, UNMEASURED))?;
                    }
                }
            }
            Manner::Live { lines, last: drawn } => {
                if !last && drawn.is_some_and(|at| at.elapsed() < FRAME) {
                    return Ok(());
                }
                *drawn = Some(Instant::now());
                // One column stays free, so that no terminal breaks the line.
                let width = size(self.out).map_or(UNMEASURED, |(columns, _)| columns.saturating_sub(1));
                let mut frame = String::new();
                if *lines > 0 {
                    frame.push_str(&format!("\u{1b}[{lines}A"));
                }
                for line in picture(rows, elapsed) {
                    frame.push_str(&format!("\r{}\u{1b}[K\n", line.render(self.ink, width)));
                }
                *lines = rows.len() + 1;
                self.out.write_all(frame.as_bytes())?;
            }
        }
        self.out.flush()
    }
}

/// A frame: a heading and a line per task.
fn picture(rows: &[Row], elapsed: Duration) -> Vec<Line> {
    let over = rows.iter().filter(|r| matches!(r.state, Some(State::Closed | State::Blocked))).count();
    let heading =
        Line::new().then(STRONG, "pointsman demo").then(QUIET, format!("  {over} of {} over, ", rows.len()));
    let heading = heading.then(QUIET, seconds(elapsed));
    let line = |row: &Row| row.line(Line::new().column(QUIET, &seconds(row.elapsed), 7));
    std::iter::once(heading).chain(rows.iter().map(line)).collect()
}

impl Row {
    fn line(&self, start: Line) -> Line {
        let (style, state) = match self.state {
            Some(state) => (ink::of(state), state.name()),
            None => (QUIET, "filed"),
        };
        let phase = self.phase.map_or(String::new(), |p| format!("PHASE:{p}"));
        start
            .column(PLAIN, &format!("#{}", self.issue), 3)
            .column(PLAIN, self.story, 17)
            .column(style, state, 20)
            .column(PLAIN, self.title, 32)
            .then(QUIET, phase)
    }
}

/// A duration as the demo counts: tenths of seconds.
pub(super) fn seconds(span: Duration) -> String {
    format!("{:5.1} s", span.as_secs_f64())
}

/// Columns and rows of a terminal.
fn size(terminal: &impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then_some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use pointsman_core::task::{Phase, State};

    use super::{Ink, Row, Screen, picture};

    fn row(state: Option<State>, phase: Option<Phase>) -> Row {
        let elapsed = Duration::from_millis(1_234);
        Row { issue: 3, story: "ci_fix", title: "Add the price of pears", state, phase, elapsed }
    }

    #[test]
    fn a_frame_has_a_line_per_task_and_fits_the_terminal() {
        let rows = [row(None, None), row(Some(State::AwaitingCi), Some(Phase::AwaitingCi))];
        let lines = picture(&rows, Duration::from_secs(2));
        let text: Vec<String> = lines.iter().map(|l| l.render(Ink::Black, 79)).collect();
        assert_eq!(
            text,
            [
                "pointsman demo  0 of 2 over,   2.0 s",
                "  1.2 s  #3   ci_fix             filed                 Add the price of pears",
                "  1.2 s  #3   ci_fix             awaiting_ci           Add the price of pears",
            ]
        );
    }

    #[test]
    fn without_a_terminal_each_change_is_one_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut out = File::options().append(true).open(file.path()).unwrap();
        let mut screen = Screen::new(&mut out, Ink::Black, 1);
        for state in [State::Backlog, State::Working, State::Working] {
            screen.show(&[row(Some(state), None)], Duration::from_secs(1), false).unwrap();
        }
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.ends_with("working               Add the price of pears\n"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}
