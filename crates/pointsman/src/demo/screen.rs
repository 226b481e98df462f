//! Live progress: a line per task and the latest news, redrawn in place on a terminal, appended elsewhere.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use pointsman_core::task::{Phase, State};

use super::ink::{self, Ink, Line, PLAIN, QUIET, STRONG};
use super::people::Part;
use super::recording::Recording;

/// At most ten redraws a second: nobody reads faster.
const FRAME: Duration = Duration::from_millis(100);
/// The width of lines that nobody measures.
const UNMEASURED: usize = 1000;
/// The latest news below the tasks.
const NEWS: usize = 6;
/// The fewest that make a live screen worthwhile.
const FEWEST_NEWS: usize = 2;

/// What one line tells.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) part: Part,
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
    shown: BTreeMap<Part, (Option<State>, Option<Phase>)>,
    news: VecDeque<(Duration, String)>,
    recording: Option<&'a mut Recording>,
}

enum Manner {
    Live {
        lines: usize,
        last: Option<Instant>,
        /// How many news fit below the tasks.
        news: usize,
    },
    /// Appends a line for each change.
    Plain,
}

impl<'a, W: Write + IsTerminal + AsFd> Screen<'a, W> {
    /// A screen for `tasks` lines; plain if it is no terminal, or one too small for them.
    pub(super) fn new(out: &'a mut W, ink: Ink, tasks: usize, recording: Option<&'a mut Recording>) -> Self {
        // The heading, a blank line before the news, and the line of the cursor.
        let taken = tasks + 3;
        let left = size(out).filter(|_| out.is_terminal()).map_or(0, |(_, rows)| rows.saturating_sub(taken));
        let manner = match left.min(NEWS) {
            news @ FEWEST_NEWS.. => Manner::Live { lines: 0, last: None, news },
            _ => Manner::Plain,
        };
        Self { out, ink, manner, shown: BTreeMap::new(), news: VecDeque::new(), recording }
    }

    /// Tells something that a line of a task does not show.
    pub(super) fn tell(&mut self, text: String, elapsed: Duration) -> io::Result<()> {
        if let Manner::Plain = self.manner {
            writeln!(self.out, "{}", news_line(&(elapsed, text.clone())).render(self.ink, UNMEASURED))?;
        }
        self.news.push_back((elapsed, text));
        if self.news.len() > NEWS {
            self.news.pop_front();
        }
        Ok(())
    }

    /// Shows how things are after `elapsed`. `last` is drawn in any case.
    pub(super) fn show(&mut self, rows: &[Row], elapsed: Duration, last: bool) -> io::Result<()> {
        if let Some(recording) = &mut self.recording {
            let tasks = rows.iter().map(|row| row.line(Line::new()));
            let blank = std::iter::once(Line::new());
            let lines = std::iter::once(heading(rows)).chain(tasks).chain(blank);
            recording.take(elapsed, lines.chain(self.news.iter().map(news_line)).collect());
        }
        match &mut self.manner {
            Manner::Plain => {
                for row in rows {
                    let now = (row.state, row.phase);
                    if self.shown.insert(row.part, now) != Some(now) {
                        let line = Line::new().column(QUIET, &seconds(elapsed), 7);
                        writeln!(self.out, "{}", row.line(line).render(self.ink, UNMEASURED))?;
                    }
                }
            }
            Manner::Live { lines, last: drawn, news } => {
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
                let mut picture = picture(rows, elapsed);
                picture.push(Line::new());
                let old = self.news.len().saturating_sub(*news);
                picture.extend(self.news.iter().skip(old).map(news_line));
                for line in &picture {
                    frame.push_str(&format!("\r{}\u{1b}[K\n", line.render(self.ink, width)));
                }
                *lines = picture.len();
                self.out.write_all(frame.as_bytes())?;
            }
        }
        self.out.flush()
    }
}

fn heading(rows: &[Row]) -> Line {
    let over = rows.iter().filter(|r| matches!(r.state, Some(State::Closed | State::Blocked))).count();
    Line::new().then(STRONG, "pointsman demo").then(QUIET, format!("  {over} of {} over", rows.len()))
}

fn news_line((at, text): &(Duration, String)) -> Line {
    Line::new().column(QUIET, &seconds(*at), 7).then(STRONG, text.clone())
}

/// A frame: a heading and a line per task.
fn picture(rows: &[Row], elapsed: Duration) -> Vec<Line> {
    let heading = heading(rows).then(QUIET, format!(", {}", seconds(elapsed)));
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
            .column(PLAIN, &self.part.label(), 9)
            .column(PLAIN, self.story, 17)
            .column(style, state, 20)
            .column(PLAIN, self.title, 33)
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

    use super::{Ink, Part, Row, Screen, picture};

    fn row(state: Option<State>, phase: Option<Phase>) -> Row {
        let elapsed = Duration::from_millis(1_234);
        let part = Part { project: "shop", issue: 3 };
        Row { part, story: "ci_fix", title: "Add the price of pears", state, phase, elapsed }
    }

    #[test]
    fn a_frame_has_a_line_per_task_and_fits_the_terminal() {
        let rows = [row(None, None), row(Some(State::AwaitingCi), Some(Phase::AwaitingCi))];
        let lines = picture(&rows, Duration::from_secs(2));
        let text: Vec<String> = lines.iter().map(|l| l.render(Ink::Black, 85)).collect();
        assert_eq!(
            text,
            [
                "pointsman demo  0 of 2 over,   2.0 s",
                "  1.2 s  shop #3    ci_fix             filed                 Add the price of pears",
                "  1.2 s  shop #3    ci_fix             awaiting_ci           Add the price of pears",
            ]
        );
    }

    #[test]
    fn without_a_terminal_each_change_is_one_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut out = File::options().append(true).open(file.path()).unwrap();
        let mut screen = Screen::new(&mut out, Ink::Black, 2, None);
        // Both projects have an issue of this number.
        let other = Row { part: Part { project: "market", issue: 3 }, ..row(Some(State::Working), None) };
        for state in [State::Backlog, State::Working, State::Working] {
            let rows = [row(Some(state), None), other.clone()];
            screen.show(&rows, Duration::from_secs(1), false).unwrap();
        }
        screen.tell("shop #3 asks a person".to_owned(), Duration::from_secs(2)).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.ends_with("  2.0 s  shop #3 asks a person\n"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}
