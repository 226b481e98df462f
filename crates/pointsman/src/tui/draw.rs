//! Draws the screen of the inbox.

use pointsman_core::part::question::Urgency;
use pointsman_core::words::screen as words;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, List, ListItem, ListState, Paragraph, Wrap};

use super::model::{Entry, Screen, Tab};

/// From this width on the pane is beside the list.
const WIDE: u16 = 120;

/// Draws the list, the pane, the last message and the keys.
pub(crate) fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let [body, message, keys] =
        Layout::vertical([Constraint::Min(3), Constraint::Length(1), Constraint::Length(1)])
            .areas(frame.area());
    let [list, pane] = if body.width >= WIDE {
        Layout::horizontal([Constraint::Percentage(38), Constraint::Percentage(62)]).areas(body)
    } else {
        Layout::vertical([Constraint::Percentage(38), Constraint::Percentage(62)]).areas(body)
    };
    draw_list(frame, list, screen);
    draw_pane(frame, pane, screen);
    frame.render_widget(Paragraph::new(screen.message.as_str()), message);
    let quiet = Style::new().add_modifier(Modifier::DIM);
    frame.render_widget(Paragraph::new(words::KEYS).style(quiet), keys);
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let title = format!("{} ({})", words::LIST, screen.entries.len());
    let block = Block::new().borders(Borders::ALL).title(title);
    let items = screen.entries.iter().map(|entry| {
        let first = Line::from(vec![
            Span::styled(entry.kind.as_str(), colour(entry)),
            Span::raw(format!(" {} {} {}", entry.project, entry.about, entry.subject)),
        ]);
        let facts = Span::styled(format!("  {}", entry.facts), Style::new().add_modifier(Modifier::DIM));
        ListItem::new(vec![first, Line::from(facts)])
    });
    let list = List::new(items)
        .block(block)
        .highlight_symbol("> ")
        .highlight_style(Style::new().add_modifier(Modifier::BOLD));
    let selected = screen.current().map(|_| screen.selected);
    let mut state = ListState::default().with_selected(selected);
    frame.render_stateful_widget(list, area, &mut state);
}

fn draw_pane(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let mut title = vec![Span::raw(" ")];
    for (number, tab) in (1..).zip(Tab::ALL) {
        let style = match tab == screen.tab {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        title.extend([Span::styled(format!("{number} {}", tab.name()), style), Span::raw("  ")]);
    }
    let block = Block::new().borders(Borders::ALL).title(Line::from(title));
    let shown = screen.pane.iter().skip(screen.scroll).take(usize::from(area.height));
    let lines: Vec<Line<'_>> = match screen.tab {
        Tab::Diff => shown.map(|line| Line::styled(line.as_str(), of_diff(line))).collect(),
        Tab::Question | Tab::Ci | Tab::Findings | Tab::Session => {
            shown.map(|line| Line::raw(line.as_str())).collect()
        }
    };
    let pane = Paragraph::new(lines).block(block);
    // A line of a change keeps its columns; prose is wrapped.
    let pane = match screen.tab {
        Tab::Diff | Tab::Ci => pane,
        Tab::Question | Tab::Findings | Tab::Session => pane.wrap(Wrap { trim: false }),
    };
    frame.render_widget(pane, area);
}

fn of_diff(line: &str) -> Style {
    let heading = ["diff ", "+++ ", "--- ", "index ", "new file", "deleted file", "rename "];
    if heading.iter().any(|start| line.starts_with(start)) {
        return Style::new().add_modifier(Modifier::BOLD);
    }
    match line.chars().next() {
        Some('+') => Style::new().fg(Color::Green),
        Some('-') => Style::new().fg(Color::Red),
        Some('@') => Style::new().fg(Color::Cyan),
        Some(_) | None => Style::new(),
    }
}

fn colour(entry: &Entry) -> Style {
    match entry.urgency() {
        Urgency::Endangers => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        Urgency::HoldsUp | Urgency::Costs => Style::new().fg(Color::Cyan),
        Urgency::CanWait => Style::new().add_modifier(Modifier::DIM),
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::ProjectName;
    use pointsman_core::part::question::Kind;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::model::{Entry, Screen, Tab};
    use super::draw;

    fn shown(width: u16, screen: &Screen) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, 20)).unwrap();
        terminal.draw(|frame| draw(frame, screen)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_list_and_the_pane_are_shown_at_every_width() {
        let mut screen = Screen::new(vec![Entry {
            id: 7,
            project: ProjectName::new("shop").unwrap(),
            kind: Kind::Review,
            about: "#3".to_owned(),
            subject: "Apples wait for your review".to_owned(),
            facts: "5m ago, 12 lines".to_owned(),
            issue: Some(3),
            pr: Some(4),
        }]);
        screen.tab = Tab::Diff;
        screen.pane = vec!["+apples".to_owned(), "-pears".to_owned()];
        for width in [20, 40, 80, 200] {
            let text = shown(width, &screen);
            assert!(text.contains("> review shop"), "{width}: {text}");
            assert!(text.contains("+apples") && text.contains("Needs you (1)"), "{width}: {text}");
            assert!(text.contains("a approve"), "{width}: {text}");
        }
        let beside = shown(200, &screen);
        assert!(beside.lines().any(|line| line.contains("> review") && line.contains("+apples")), "{beside}");
        screen.scroll = 1;
        assert!(!shown(80, &screen).contains("+apples"));
        screen.refresh(Vec::new());
        assert!(shown(80, &screen).contains("Needs you (0)"));
    }
}
