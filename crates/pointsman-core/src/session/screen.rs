//! The screen of Claude Code, as far as it decides whether something may be typed into it.
//!
//! Nothing here says that a session is idle: the prompt is shown while it works as well. A dialog is recognised by its
//! shape (a list to choose from above a line that tells the keys), so that one that nobody has seen yet is one too.

use crate::text;

/// A dialog stands at the bottom of the screen.
const LINES: usize = 30;
/// How far a list without numbers is from the line that tells its keys.
const POINTED_LINES: usize = 8;
/// What lines say that tell which keys a dialog takes.
pub const KEYS: [&str; 4] = ["Esc to cancel", "Enter to confirm", "Enter to select", "Esc to exit"];

/// The question on a screen, if it is a dialog: one line for people.
pub fn dialog(pane: &str) -> Option<String> {
    let lines: Vec<&str> = text::tail_lines(pane, LINES).lines().collect();
    let keys = lines.iter().rposition(|line| KEYS.iter().any(|key| line.contains(key)))?;
    let lines = &lines[..keys];
    // Below the keys of a dialog there is nothing; below old ones in the scrollback there is a prompt.
    let numbered = lines.iter().rposition(|line| choice(line) == Some(1));
    let numbered = numbered.filter(|first| lines[*first..].iter().any(|line| choice(line) == Some(2)));
    // Some lists have no numbers; then there is no box to type into, and one line is pointed at.
    let pointed = || {
        let at = lines.iter().rposition(|line| line.trim_start().starts_with(['❯', '›']))?;
        (typed(pane).is_none() && keys - at <= POINTED_LINES).then_some(at)
    };
    numbered.or_else(pointed).map(|first| {
        let question = lines[..first]
            .iter()
            .rev()
            .take_while(|line| !line.contains("───"))
            .find(|line| line.contains('?') || line.contains("WARNING"));
        let question = question.or_else(|| lines[..first].iter().rev().find(|line| !line.trim().is_empty()));
        text::clean_line(question.map_or("a choice", |line| line.trim()), 200)
    })
}

/// The text in the box for the next prompt, without its mark; none if there is no box, as in a dialog. The box is what
/// is between the last two lines drawn across the screen.
pub fn typed(pane: &str) -> Option<String> {
    let lines: Vec<&str> = text::tail_lines(pane, LINES).lines().collect();
    let is_rule = |line: &&str| line.trim_start().starts_with("────");
    let below = lines.iter().rposition(&is_rule)?;
    let above = lines[..below].iter().rposition(is_rule)?;
    let (first, rest) = lines[above + 1..below].split_first()?;
    let first = first.trim_start().strip_prefix('❯')?;
    let joined: String =
        std::iter::once(&first).chain(rest).map(|line| line.trim_matches([' ', '\u{a0}'])).collect();
    Some(joined)
}

/// The kind of a screen, by what may be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Screen {
    /// There is a box for the next prompt, with this in it.
    Prompt(String),
    Dialog(String),
    Unknown,
}

/// Sorts a screen by what may be done with it.
pub fn look(pane: &str) -> Screen {
    match (dialog(pane), typed(pane)) {
        (Some(what), _) => Screen::Dialog(what),
        (None, Some(text)) => Screen::Prompt(text),
        (None, None) => Screen::Unknown,
    }
}

/// How Claude shows a long text that was pasted.
const PASTED: &str = "[Pasted text";

/// Whether a message of this mark stands in the box.
pub fn holds(text: &str, mark: &str) -> bool {
    text.contains(mark) || text.contains(PASTED)
}

/// `❯ 1. Yes` → 1
fn choice(line: &str) -> Option<u32> {
    let line = line.trim_start_matches(['│', ' ', '❯', '>', '\u{a0}']);
    let (number, rest) = line.split_once(". ")?;
    (!rest.trim().is_empty()).then_some(())?;
    number.parse().ok().filter(|number| (1..=9).contains(number))
}

#[cfg(test)]
mod tests {
    use super::{dialog, typed};

    #[test]
    fn the_box_is_told_from_what_was_sent_before() {
        let rule = "─".repeat(40);
        let pane = format!(
            "❯ [pointsman m-1] old\n● ok\n{rule}\n❯\u{a0}[pointsman m-2] CI\n  passed\n{rule}\n  ctx 3%\n"
        );
        assert_eq!(typed(&pane).as_deref(), Some("[pointsman m-2] CIpassed"));
        assert_eq!(typed(&format!("❯ sent\n{rule}\n❯\u{a0}\n{rule}\n")).as_deref(), Some(""));
        assert_eq!(typed("❯ sent\n"), None);
        assert_eq!(typed(&format!("{rule}\n Do you?\n ❯ 1. Yes\n{rule}")), None, "a dialog");
    }

    #[test]
    fn a_list_without_keys_or_keys_without_a_list_are_no_dialog() {
        assert_eq!(dialog("1. one\n2. two\n"), None);
        assert_eq!(dialog("Esc to cancel\n"), None);
        assert_eq!(dialog(""), None);
        let asked = "Sure?\n ❯ 1. Yes\n   2. No\n Esc to cancel";
        assert_eq!(dialog(asked).as_deref(), Some("Sure?"));
        let without_numbers =
            "Is this one you trust?\n\n❯ No, exit\n  Yes\n\n Enter to confirm · Esc to cancel\n";
        assert_eq!(dialog(without_numbers).as_deref(), Some("Is this one you trust?"));
    }
}
