//! The state of the screen, and what keys mean.

use std::collections::BTreeSet;

use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::part::question::{Act, Kind, Urgency};
use pointsman_core::words::screen as words;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Lines that one page is scrolled by.
const PAGE: usize = 10;

/// A question in the list. Its texts are clean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) project: ProjectName,
    pub(crate) kind: Kind,
    pub(crate) about: String,
    pub(crate) subject: String,
    /// Its age, its size and the tasks that it holds up.
    pub(crate) facts: String,
    pub(crate) issue: Option<Number>,
    pub(crate) pr: Option<Number>,
}

impl Entry {
    /// The reason why it should not wait.
    pub(crate) fn urgency(&self) -> Urgency {
        self.kind.traits().urgency
    }
}

/// The view in the pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tab {
    Question,
    Diff,
    Ci,
    Findings,
    Session,
}

impl Tab {
    pub(crate) const ALL: [Self; 5] = [Self::Question, Self::Diff, Self::Ci, Self::Findings, Self::Session];

    /// The name in the title of the pane.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Question => "Question",
            Self::Diff => "Diff",
            Self::Ci => "CI",
            Self::Findings => "Reviews",
            Self::Session => "Session",
        }
    }

    fn moved(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or_default();
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

/// A person's order about the selected question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Approve,
    RequestChanges,
    Answer,
    Dismiss,
    StartAfresh,
    Attach,
    /// Let sessions or CI reach the hosts that the question names.
    AllowHosts,
    /// Show the pull request or the issue in a browser.
    Browse,
    Quit,
}

impl Order {
    fn name(self) -> &'static str {
        match self {
            Self::Approve => "Approve",
            Self::RequestChanges => "Reject",
            Self::Answer => "Answer",
            Self::Dismiss => "Dismiss",
            Self::StartAfresh => "Start afresh the task of",
            Self::Attach => "Attach to the session of",
            Self::AllowHosts => "Allow the hosts of",
            Self::Browse => "Open",
            Self::Quit => "Quit",
        }
    }

    /// The way in which it settles a question, if it does.
    fn act(self) -> Option<Act> {
        match self {
            Self::Approve | Self::AllowHosts => Some(Act::Approve),
            Self::RequestChanges => Some(Act::Reject),
            Self::Answer => Some(Act::Answer),
            Self::Dismiss => Some(Act::Dismiss),
            Self::StartAfresh | Self::Attach | Self::Browse | Self::Quit => None,
        }
    }

    /// Whether one key must not be enough. What is written in an editor was meant.
    fn needs_a_yes(self) -> bool {
        match self {
            Self::Approve | Self::AllowHosts | Self::Dismiss | Self::StartAfresh => true,
            Self::RequestChanges | Self::Answer | Self::Attach | Self::Browse | Self::Quit => false,
        }
    }
}

/// Everything that is on the screen.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) entries: Vec<Entry>,
    pub(crate) selected: usize,
    pub(crate) tab: Tab,
    pub(crate) scroll: usize,
    /// The lines of the pane.
    pub(crate) pane: Vec<String>,
    /// What was done last, or is asked.
    pub(crate) message: String,
    skipped: BTreeSet<u64>,
    confirming: Option<Order>,
    /// The diff shows only what changed since the person last looked.
    pub(crate) since: bool,
}

impl Screen {
    /// A screen with these questions, the first one selected.
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            selected: 0,
            tab: Tab::Question,
            scroll: 0,
            pane: Vec::new(),
            message: String::new(),
            skipped: BTreeSet::new(),
            confirming: None,
            since: false,
        }
    }

    /// The selected question.
    pub(crate) fn current(&self) -> Option<&Entry> {
        self.entries.get(self.selected)
    }

    /// Takes the inbox as it is now. The selected question stays selected; if it is gone, the next one is. What was skipped
    /// is at the end.
    pub(crate) fn refresh(&mut self, mut entries: Vec<Entry>) {
        entries.sort_by_key(|entry| self.skipped.contains(&entry.id));
        let selected = self.current().map(|entry| entry.id);
        let found = selected.and_then(|id| entries.iter().position(|entry| entry.id == id));
        if found.is_none() {
            self.scroll = 0;
            self.confirming = None;
        }
        self.selected = found.unwrap_or(self.selected).min(entries.len().saturating_sub(1));
        self.entries = entries;
    }

    /// Handles a key. Answers an order that somebody has to carry out.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Order> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(Order::Quit);
        }
        if let Some(order) = self.confirming.take() {
            self.message.clear();
            return (key.code == KeyCode::Char('y')).then_some(order);
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Some(Order::Quit),
            KeyCode::Down | KeyCode::Char('j') => self.select(self.selected.saturating_add(1)),
            KeyCode::Up | KeyCode::Char('k') => self.select(self.selected.saturating_sub(1)),
            KeyCode::Tab | KeyCode::Right => self.show(self.tab.moved(1)),
            KeyCode::BackTab | KeyCode::Left => self.show(self.tab.moved(Tab::ALL.len() - 1)),
            KeyCode::Char(digit @ '1'..='5') => {
                let at = usize::try_from(u32::from(digit) - u32::from('1')).unwrap_or_default();
                self.show(Tab::ALL[at]);
            }
            KeyCode::PageDown | KeyCode::Char(' ') => {
                let most = self.pane.len().saturating_sub(1);
                self.scroll = self.scroll.saturating_add(PAGE).min(most);
            }
            KeyCode::PageUp | KeyCode::Char('b') => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::Char('a') => return self.order(Order::Approve),
            KeyCode::Char('h') => return self.order(Order::AllowHosts),
            KeyCode::Char('o') => return self.order(Order::Browse),
            KeyCode::Char('r') => return self.order(Order::RequestChanges),
            KeyCode::Char('e') => return self.order(Order::Answer),
            KeyCode::Char('d') => return self.order(Order::Dismiss),
            KeyCode::Char('f') => return self.order(Order::StartAfresh),
            KeyCode::Char('t') => return self.order(Order::Attach),
            KeyCode::Char('n') => {
                self.since = !self.since;
                self.show(Tab::Diff);
            }
            KeyCode::Char('s') => self.skip(),
            _ => {}
        }
        None
    }

    fn select(&mut self, at: usize) {
        self.selected = at.min(self.entries.len().saturating_sub(1));
        self.scroll = 0;
        self.message.clear();
    }

    fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.scroll = 0;
    }

    fn skip(&mut self) {
        let Some(id) = self.current().map(|entry| entry.id) else { return };
        self.skipped.insert(id);
        let entries = std::mem::take(&mut self.entries);
        // Whatever comes up in its place is next.
        self.refresh(entries);
        self.scroll = 0;
        self.tab = Tab::Question;
    }

    fn order(&mut self, order: Order) -> Option<Order> {
        let entry = self.current()?;
        let refusal = match order.act() {
            Some(_) if order == Order::AllowHosts && entry.kind != Kind::HostAccess => {
                Some(words::no_hosts(entry.id))
            }
            Some(act) if !entry.kind.takes(act) => Some(words::not_this_way(order.name(), entry.id)),
            None if order == Order::Browse && entry.pr.is_some() => None,
            None if entry.issue.is_none() => Some(words::no_issue(entry.id)),
            Some(_) | None => None,
        };
        if let Some(refusal) = refusal {
            self.message = refusal;
            return None;
        }
        if !order.needs_a_yes() {
            return Some(order);
        }
        self.message = words::confirm(order.name(), entry.id);
        self.confirming = Some(order);
        None
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::ProjectName;
    use pointsman_core::part::question::Kind;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::{Entry, Order, Screen, Tab};

    fn entry(id: u64, kind: Kind, issue: Option<u64>) -> Entry {
        Entry {
            id,
            project: ProjectName::new("shop").unwrap(),
            kind,
            about: String::new(),
            subject: "which?".to_owned(),
            facts: String::new(),
            issue,
            pr: None,
        }
    }

    fn press(screen: &mut Screen, key: char) -> Option<Order> {
        screen.key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE))
    }

    fn ids(screen: &Screen) -> Vec<u64> {
        screen.entries.iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn a_decision_takes_two_keys_and_only_where_it_settles() {
        let mut screen =
            Screen::new(vec![entry(1, Kind::Review, Some(3)), entry(2, Kind::Question, Some(4))]);
        assert_eq!(press(&mut screen, 'a'), None, "one key is not enough");
        assert!(screen.message.contains("Approve question 1?"), "{}", screen.message);
        assert_eq!(press(&mut screen, 'x'), None, "any other key leaves it");
        assert_eq!(press(&mut screen, 'y'), None, "too late");
        press(&mut screen, 'a');
        assert_eq!(press(&mut screen, 'y'), Some(Order::Approve));
        assert_eq!(press(&mut screen, 'e'), None, "a review takes no answer");
        assert!(screen.message.contains("does not apply to it"), "{}", screen.message);
        press(&mut screen, 'j');
        assert_eq!(press(&mut screen, 'e'), Some(Order::Answer), "the editor asks");
        assert_eq!(press(&mut screen, 'a'), None);
        assert!(screen.message.contains("does not apply to it"), "{}", screen.message);
        assert_eq!(press(&mut screen, 'q'), Some(Order::Quit));
    }

    #[test]
    fn an_act_on_a_task_needs_an_issue() {
        let mut screen = Screen::new(vec![entry(1, Kind::Alarm, None)]);
        assert_eq!(press(&mut screen, 't'), None);
        assert!(screen.message.contains("does not belong to an issue"), "{}", screen.message);
        assert_eq!(press(&mut Screen::new(Vec::new()), 'a'), None, "nothing is selected");
    }

    #[test]
    fn hosts_are_allowed_only_where_somebody_asks_for_them() {
        let mut screen =
            Screen::new(vec![entry(1, Kind::Review, Some(3)), entry(2, Kind::HostAccess, Some(4))]);
        assert_eq!(press(&mut screen, 'h'), None);
        assert!(screen.message.contains("asks for no host"), "{}", screen.message);
        assert_eq!(press(&mut screen, 'y'), None, "a review is not approved by the key for hosts");
        press(&mut screen, 'j');
        assert_eq!(press(&mut screen, 'h'), None, "one key is not enough");
        assert_eq!(press(&mut screen, 'y'), Some(Order::AllowHosts));
    }

    #[test]
    fn a_page_needs_an_issue_or_a_pull_request() {
        let pull = Entry { pr: Some(5), ..entry(3, Kind::HandIn, None) };
        let mut screen =
            Screen::new(vec![entry(1, Kind::Review, Some(3)), entry(2, Kind::Alarm, None), pull]);
        assert_eq!(press(&mut screen, 'o'), Some(Order::Browse), "nothing is decided by it");
        press(&mut screen, 'j');
        assert_eq!(press(&mut screen, 'o'), None);
        assert!(screen.message.contains("does not belong to an issue"), "{}", screen.message);
        press(&mut screen, 'j');
        assert_eq!(press(&mut screen, 'o'), Some(Order::Browse));
    }

    #[test]
    fn the_selection_follows_the_question_and_not_its_place() {
        let all =
            |ids: &[u64]| -> Vec<Entry> { ids.iter().map(|id| entry(*id, Kind::Review, Some(1))).collect() };
        let mut screen = Screen::new(all(&[1, 2, 3]));
        press(&mut screen, 'j');
        screen.refresh(all(&[9, 1, 2, 3]));
        assert_eq!(screen.current().unwrap().id, 2);
        press(&mut screen, 'a');
        screen.refresh(all(&[9, 1, 3]));
        assert_eq!(screen.current().unwrap().id, 3, "somebody else settled it");
        assert_eq!(press(&mut screen, 'y'), None, "a yes to one is none to another");
        screen.refresh(all(&[9]));
        assert_eq!(screen.current().unwrap().id, 9);
        screen.refresh(Vec::new());
        assert_eq!(screen.current(), None);
    }

    #[test]
    fn what_is_skipped_goes_to_the_end() {
        let all = || vec![entry(1, Kind::Review, None), entry(2, Kind::Review, None)];
        let mut screen = Screen::new(all());
        press(&mut screen, '2');
        assert_eq!(screen.tab, Tab::Diff);
        press(&mut screen, 's');
        assert_eq!(ids(&screen), [2, 1]);
        screen.refresh(all());
        assert_eq!(ids(&screen), [2, 1], "and stays there");
    }
}
