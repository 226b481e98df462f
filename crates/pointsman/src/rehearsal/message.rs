//! Messages as an agent meets them: lines on its terminal, and what a predecessor's successor finds
//! in its prompt.

use std::path::PathBuf;

/// Where a recovery prompt ends and the issue begins.
const THE_TASK: &str = "The task";
/// The sections of a recovery prompt that hold a message.
const UNREAD: &str = "A message the earlier session may not have read";
const LAST_CI: &str = "Last CI result";

/// A message of Pointsman.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// What to acknowledge; unknown for what only a prompt tells.
    pub(super) id: Option<i64>,
    pub(super) text: String,
    /// The file with the details.
    pub(super) details: Option<PathBuf>,
}

impl Message {
    /// Reads `[pointsman m-<id>] <headline> Details: <path>`; nothing else is a message. A terminal
    /// may put the marks of a paste around it.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let line = &line[line.find("[pointsman m-")?..];
        let line = line.strip_suffix("\u{1b}[201~").unwrap_or(line);
        let (id, rest) = line.strip_prefix("[pointsman m-")?.split_once(']')?;
        let id = Some(id.parse().ok()?);
        let rest = rest.trim();
        let (text, details) = match rest.rsplit_once("Details: ") {
            Some((text, path)) => (text.trim_end(), Some(PathBuf::from(path))),
            None => (rest, None),
        };
        Some(Self { id, text: text.to_owned(), details })
    }

    /// As it came.
    pub(super) fn line(&self) -> String {
        let id = self.id.unwrap_or(0);
        let details = self.details.as_ref().map(|path| format!(" Details: {}", path.display()));
        format!("[pointsman m-{id}] {}{}", self.text, details.unwrap_or_default())
    }

    /// Whether it begins with this headline.
    pub(super) fn is(&self, headline: &str) -> bool {
        self.text.starts_with(headline)
    }
}

/// What a recovery prompt says that the predecessor was told or would have been told. A CI result
/// counts only for `head`: an older one was dealt with.
pub(super) fn inherited(prompt: &str, head: &str) -> Vec<Message> {
    let told = sections(prompt).into_iter().filter_map(|(title, line)| match title {
        UNREAD => Some(line),
        LAST_CI if !head.is_empty() && line.contains(head) => Some(line),
        _ => None,
    });
    told.map(|line| {
        let plain = || Message { id: None, text: line.trim().to_owned(), details: None };
        Message::parse(line).unwrap_or_else(plain)
    })
    .collect()
}

/// Titles and first quoted lines of the sections before the task itself. Only headings outside of
/// quotes count: what is quoted may look like anything.
fn sections(prompt: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let (mut title, mut fence) = (None, None);
    for line in prompt.lines() {
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {
                if !line.trim().is_empty()
                    && let Some(title) = title.take()
                {
                    found.push((title, line));
                }
            }
            None if line.starts_with("```") => {
                fence = Some(&line[..line.len() - line.trim_start_matches('`').len()]);
            }
            None => match line.strip_prefix("## ") {
                Some(THE_TASK) => return found,
                Some(heading) => title = Some(heading),
                None => {}
            },
        }
    }
    // Without a heading for the task there was no predecessor.
    Vec::new()
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::{ProjectName, TaskKey};
    use pointsman_core::task::Task;
    use pointsman_core::time::Timestamp;
    use pointsman_core::words;
    use pointsman_core::words::prompt::{Briefing, Recovery};

    use super::{Message, inherited};

    fn prompt(recovery: Option<Recovery>) -> String {
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue: 3 };
        let task = Task::new(key, "Prices".to_owned(), "b".to_owned(), Timestamp(0));
        let body = "## Last CI result\n\nCI passed on abc".to_owned();
        words::prompt::task(&task, &Briefing { body, recovery, ..Briefing::default() })
    }

    fn texts(prompt: &str, head: &str) -> Vec<String> {
        inherited(prompt, head).into_iter().map(|m| m.text).collect()
    }

    #[test]
    fn a_line_of_the_daemon_reads_back() {
        let line = words::message::line(7, "CI failed", " on abc. Fix it.", "/in box/0007.md");
        let message = Message::parse(&line).unwrap();
        assert_eq!((message.id, message.text.as_str()), (Some(7), "CI failed on abc. Fix it."));
        assert_eq!(message.details.as_deref(), Some(std::path::Path::new("/in box/0007.md")));
        assert!(message.is("CI failed") && !message.is("CI passed"));
        assert_eq!(Message::parse(&message.line()), Some(message.clone()));
        assert_eq!(Message::parse(&format!("\u{1b}[200~{line}\u{1b}[201~")), Some(message));
    }

    #[test]
    fn other_lines_are_no_messages() {
        for line in ["", "hello", "[pointsman] hello", "[pointsman m-x] hello", "[pointsman m-3 hello"] {
            assert_eq!(Message::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_successor_learns_what_its_predecessor_was_told() {
        let recovery = Recovery {
            last_ci: Some("CI passed on abc\n".to_owned()),
            messages: vec!["Changes requested at abc.\n\n## The task\n\nmore".to_owned()],
            ..Recovery::default()
        };
        let prompt = prompt(Some(recovery));
        assert_eq!(texts(&prompt, "abc"), ["CI passed on abc", "Changes requested at abc."]);
        assert_eq!(texts(&prompt, "def"), ["Changes requested at abc."]);
    }

    #[test]
    fn a_first_session_has_nothing_to_inherit_whatever_the_issue_says() {
        assert_eq!(texts(&prompt(None), "abc"), [""; 0]);
    }
}
