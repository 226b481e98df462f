//! The board: open issues by label, and where each one's task stands.

use std::collections::BTreeMap;

use clap::Args;
use pointsman_core::board::{COLUMNS, column};
use pointsman_core::forge::StateFilter;
use pointsman_core::labels;
use pointsman_core::task::Task;
use pointsman_core::text::clean_line;
use pointsman_view::board::{Card, Column, Label};
use pointsman_view::forge::Issue;
use pointsman_view::task::usd;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::context::Context;
use super::failure::Failure;
use super::out::terminal_width;
use super::table::Table;
use super::{style, time};
use crate::control::protocol::{ForgeCommand, Request};

/// A column is not made narrower than this.
const LEAST: usize = 14;
/// Nor wider, where there is room.
const MOST: usize = 32;
/// For readers that are no terminal.
const ASSUMED: usize = 120;
/// Lines of a title.
const TITLE_LINES: usize = 3;

/// Show the open issues by label, and where their tasks stand, as columns
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pointsman board\n  pointsman board --labels")]
pub(crate) struct Arguments {
    /// Explain the labels instead
    #[arg(long)]
    labels: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        if self.labels {
            return meanings(context);
        }
        let mut columns: BTreeMap<&str, Vec<Card>> = BTreeMap::new();
        for card in cards(context)? {
            columns.entry(column(&card.labels)).or_default().push(card);
        }
        let filled: Vec<Column> = COLUMNS
            .into_iter()
            .filter_map(|name| Some(Column { column: name.to_owned(), issues: columns.remove(name)? }))
            .collect();
        if context.out.is_json() {
            return context.out.value(&filled);
        }
        if filled.is_empty() {
            context.out.say("There are no open issues.");
            return Ok(());
        }
        let width = terminal_width().unwrap_or(ASSUMED) / filled.len();
        let width = width.saturating_sub(2).clamp(LEAST, MOST);
        let blocks: Vec<Vec<String>> = filled.iter().map(|column| block(column, width)).collect();
        context.out.line(side_by_side(&blocks, width).join("\n"))
    }
}

/// The open issues, as the forge has them; of a forge elsewhere, those that are tasks.
fn cards(context: &Context) -> Result<Vec<Card>, Failure> {
    let project = context.project()?;
    let name = &project.config.name;
    let (mut tasks, mut costs) = (BTreeMap::<u64, Task>::new(), BTreeMap::new());
    if let Some(store) = context.store()? {
        for task in store.tasks(Some(name))? {
            // Without a session nothing was spent: most of a long backlog is not asked about.
            if task.session.generation > 0 {
                costs.insert(task.key.issue, usd(store.spent_on_issue(&task.key, time::now())?));
            }
            tasks.insert(task.key.issue, task);
        }
    }
    let of_task = |number: u64| tasks.get(&number);
    let card = |number: u64, title: &str, labels: Vec<String>| Card {
        number,
        title: title.to_owned(),
        labels,
        state: of_task(number).map(|task| task.state),
        phase: of_task(number).and_then(|task| task.phase),
        cost_usd: costs.get(&number).copied().unwrap_or(Some(0.0)),
    };
    if !project.config.forge.kind.is_embedded() {
        let open = tasks.values().filter(|task| task.state.name() != "closed");
        return Ok(open.map(|task| card(task.key.issue, &task.title, label_of(task))).collect());
    }
    let command = ForgeCommand::ListIssues { state: StateFilter::Open };
    let issues: Vec<Issue> = context.ask(&Request::Forge { project: name.clone(), command })?;
    Ok(issues.into_iter().map(|issue| card(issue.number, &issue.title, issue.labels)).collect())
}

/// The label that a task's state goes with.
fn label_of(task: &Task) -> Vec<String> {
    let label = match task.state.name() {
        "backlog" | "waiting_dependencies" | "paused" => labels::BACKLOG,
        "blocked" => labels::BLOCKED,
        "refused" => labels::UNDERSPECIFIED,
        _ => labels::IN_PROGRESS,
    };
    vec![label.to_owned()]
}

fn meanings(context: &Context) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(&labels::ALL.map(|(name, colour, meaning)| Label {
            name: name.to_owned(),
            colour: colour.to_owned(),
            meaning: meaning.to_owned(),
        }));
    }
    let mut table = Table::new(["LABEL", "MEANING"]);
    for (name, _, meaning) in labels::ALL {
        table.row([name.into(), meaning.into()]);
    }
    context.out.table(&table, "There are no labels.")
}

/// A column's lines, each at most `width` wide.
fn block(column: &Column, width: usize) -> Vec<String> {
    let Column { column: name, issues: cards } = column;
    let mut lines = vec![format!("{} ({})", name.to_uppercase(), cards.len()), "─".repeat(width)];
    for card in cards {
        lines.extend(wrap(&format!("#{} {}", card.number, clean_line(&card.title, 200)), width));
        let standing = match (card.state, card.phase) {
            (Some(state), Some(phase)) if state.name() != phase.name() => Some(format!("{state}, {phase}")),
            (Some(state), _) => Some(state.to_string()).filter(|state| state != name),
            (None, _) => None,
        };
        let cost = card.cost_usd.filter(|usd| *usd > 0.0).map(|usd| format!("{usd:.2} USD"));
        let standing = standing.into_iter().chain(cost).reduce(|all, next| format!("{all}, {next}"));
        lines.extend(standing.into_iter().flat_map(|words| wrap(&format!("  {words}"), width)).take(1));
        lines.push(String::new());
    }
    lines
}

/// Words over lines; the last one that is shown is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let indent: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut lines = vec![indent];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is one from the start");
        let gap = usize::from(!last.trim().is_empty());
        if last.width() + gap + word.width() > width && !last.trim().is_empty() {
            lines.push(cut(word, width));
        } else {
            last.push_str(if gap == 1 { " " } else { "" });
            let room = width.saturating_sub(last.width());
            last.push_str(&cut(word, room));
        }
    }
    if lines.len() > TITLE_LINES {
        lines.truncate(TITLE_LINES);
        let last = lines.pop().unwrap_or_default();
        lines.push(cut(&format!("{last} …"), width));
    }
    lines
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if short.width() + c.width().unwrap_or(0) + 1 > width {
            break;
        }
        short.push(c);
    }
    short + "…"
}

fn side_by_side(blocks: &[Vec<String>], width: usize) -> Vec<String> {
    let height = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let quiet = style::QUIET;
    (0..height)
        .map(|row| {
            let cells = blocks.iter().map(|block| {
                let text = block.get(row).map_or("", String::as_str);
                let blanks = " ".repeat(width.saturating_sub(text.width()));
                // The blanks are outside the colour, so that those at the end of a line can go.
                if row < 2 { format!("{quiet}{text}{quiet:#}{blanks}") } else { format!("{text}{blanks}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_wrapped_and_cut() {
        assert_eq!(wrap("#1 Add a login page", 14), ["#1 Add a login", "page"]);
        assert_eq!(wrap("#2 Donaudampfschifffahrtsgesellschaft", 14), ["#2", "Donaudampfsch…"]);
        let long = wrap("#3 one two three four five six seven eight nine ten", 14);
        assert_eq!(long.len(), TITLE_LINES);
        assert!(long.iter().all(|line| line.width() <= 14), "{long:?}");
        assert!(long[2].ends_with('…'));
    }

    #[test]
    fn columns_stand_side_by_side() {
        let block = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let lines = side_by_side(&[block(&["A", "──", "x"]), block(&["B", "──", "y", "z"])], 4);
        let shown = |line: &str| anstream::adapter::strip_str(line).to_string();
        assert_eq!(shown(&lines[0]), "A     B", "no blanks at the end, whatever the colours");
        assert_eq!(lines[2], "x     y");
        assert_eq!(lines[3], "      z");
    }
}
