//! Typing one line into a pane, exactly once.

use std::io::Write;
use std::path::Path;

use super::Error;
use super::pane::PaneId;
use super::script::Script;
use super::server::{Server, check_token};

/// Characters of a message that are typed; more belongs into a file that the message names. A terminal in line mode
/// takes 4095 bytes per line, so every character of the longest message may need four of them.
pub const MESSAGE_LIMIT: usize = 1000;

/// The result of typing a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Sent,
    /// This operation had typed it before; nothing was typed now.
    Duplicate,
    /// The pane is gone or belongs to another run; nothing was typed.
    StaleEpoch,
    /// The program has ended; nothing was typed.
    Dead,
    /// The pane shows what it must not show; nothing was typed.
    Refused,
}

/// How a typed text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Enter,
    /// Not at all: Enter comes by itself.
    Open,
}

impl Server {
    /// Types a line and Enter into a pane, if the pane still has this epoch and has not had this operation before.
    ///
    /// The server checks, types and remembers in one step that no client's death can divide, so after any error the
    /// same call can be made again: the line arrives once. `Sent` means it was typed, not that it was read.
    pub fn send_message(&self, pane: &PaneId, epoch: &str, op_id: &str, text: &str) -> Result<Sent, Error> {
        self.type_text(pane, epoch, op_id, text, Ending::Enter)
    }

    /// The same without Enter, for a program whose screen has to be looked at in between.
    pub fn paste_message(&self, pane: &PaneId, epoch: &str, op_id: &str, text: &str) -> Result<Sent, Error> {
        self.type_text(pane, epoch, op_id, text, Ending::Open)
    }

    fn type_text(
        &self,
        pane: &PaneId,
        epoch: &str,
        op_id: &str,
        text: &str,
        ending: Ending,
    ) -> Result<Sent, Error> {
        check_token("epoch", epoch)?;
        check_token("operation", op_id)?;
        let text = clean_line(text);
        if text.is_empty() {
            return Err(Error::EmptyMessage);
        }
        let directory = self.socket().parent().unwrap_or(Path::new("/"));
        let mut file = tempfile::Builder::new()
            .prefix("message-")
            .tempfile_in(directory)
            .map_err(Error::io("create a message file"))?;
        file.write_all(text.as_bytes()).map_err(Error::io("write a message file"))?;

        // Each attempt has a buffer of its own, so that two attempts at the same time cannot take each other's.
        let unique =
            file.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let deliver = fenced(pane, epoch, op_id, &unique, ending);
        let load = Script::new(["load-buffer", "-b", &unique]);
        // tmux expands formats in the file's name and has no dependable way to write a `#` there; standard input
        // needs no name. The same way serves if the control client is lost on the way.
        let answer = if file.path().as_os_str().to_string_lossy().contains('#') {
            self.run_program(&load.word("-").append(&deliver), text.as_bytes())
        } else {
            match self.run(&load.clone().word(file.path()).append(&deliver)) {
                Err(Error::Interrupted { .. }) => {
                    self.run_program(&load.word("-").append(&deliver), text.as_bytes())
                }
                other => other,
            }
        }?;
        match answer.first().map(String::as_str) {
            Some("sent") => Ok(Sent::Sent),
            Some("duplicate") => Ok(Sent::Duplicate),
            Some("stale") => Ok(Sent::StaleEpoch),
            Some("dead") => Ok(Sent::Dead),
            other => Err(Error::Unexpected {
                command: "if-shell".to_owned(),
                answer: other.unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Presses Enter in a pane, if it still has this epoch and shows none of these texts at that very moment: what a
    /// dialog would say that came up since the caller has looked. [`Sent::Refused`] if it shows one.
    ///
    /// A text is compared as it is; it may have letters, digits and spaces.
    pub fn press_enter_unless(&self, pane: &PaneId, epoch: &str, shown: &[&str]) -> Result<Sent, Error> {
        let mut condition = "1".to_owned();
        for text in shown {
            check_words(text)?;
            condition = format!("#{{&&:{condition},#{{==:#{{C:{text}}},0}}}}");
        }
        self.press_if(pane, epoch, "0d", &condition)
    }

    fn press_if(&self, pane: &PaneId, epoch: &str, key: &str, condition: &str) -> Result<Sent, Error> {
        check_token("epoch", epoch)?;
        let target = pane.to_string();
        let press = Script::new(["copy-mode", "-q", "-t", &target])
            .then(["send-keys", "-t", &target, "-H", key])
            .then(["display-message", "-p", "sent"]);
        let stale = Script::new(["display-message", "-p", "stale"]);
        let refused = Script::new(["display-message", "-p", "refused"]);
        let allowed = when(&target, condition, &press, &refused);
        let script = when(&target, &has_epoch(epoch), &allowed, &stale);
        match self.run_again(&script)?.first().map(String::as_str) {
            Some("sent") => Ok(Sent::Sent),
            Some("refused") => Ok(Sent::Refused),
            _ => Ok(Sent::StaleEpoch),
        }
    }
}

/// One command that decides and acts inside the server.
///
/// The mark `@op-…` is set after the paste: if the buffer is missing, the paste fails and nothing is remembered.
/// Every operation keeps its mark for the pane's life, so a late repetition of an early message is caught too.
fn fenced(pane: &PaneId, epoch: &str, op_id: &str, buffer: &str, ending: Ending) -> Script {
    let target = pane.to_string();
    let mark = format!("@op-{op_id}");
    let refuse =
        |why: &str| Script::new(["display-message", "-p", why]).then(["delete-buffer", "-b", buffer]);
    // A person may be scrolling: in copy mode, Enter would go to the mode. Enter is a literal CR because the key's
    // name may be sent in an extended encoding that does not submit.
    let paste = Script::new(["copy-mode", "-q", "-t", &target]).then([
        "paste-buffer",
        "-p",
        "-r",
        "-d",
        "-b",
        buffer,
        "-t",
        &target,
    ]);
    let typed = match ending {
        Ending::Enter => paste.then(["send-keys", "-t", &target, "-H", "0d"]),
        Ending::Open => paste,
    };
    let act =
        typed.then(["set-option", "-p", "-t", &target, &mark, "1"]).then(["display-message", "-p", "sent"]);
    let unless_dead = when(&target, "#{pane_dead}", &refuse("dead"), &act);
    let unless_done = when(&target, &format!("#{{{mark}}}"), &refuse("duplicate"), &unless_dead);
    when(&target, &has_epoch(epoch), &unless_done, &refuse("stale"))
}

/// Words that can stand in a format and in a pattern as they are.
fn check_words(text: &str) -> Result<(), Error> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ') {
        return Ok(());
    }
    Err(Error::Malformed { what: "text", value: text.to_owned(), allowed: "letters, digits and spaces" })
}

fn has_epoch(epoch: &str) -> String {
    format!("#{{==:#{{@epoch}},{epoch}}}")
}

fn when(target: &str, condition: &str, then: &Script, otherwise: &Script) -> Script {
    Script::new(["if-shell", "-F", "-t", target, condition]).word(then.line()).word(otherwise.line())
}

/// A text as one harmless line: control characters (C0, DEL, C1 and so every escape sequence) become spaces, runs of
/// white space become one, and the end is cut at [`MESSAGE_LIMIT`] characters.
pub fn clean_line(text: &str) -> String {
    let words: Vec<String> = strip_control(text).split_whitespace().map(str::to_owned).collect();
    let line: String = words.join(" ").chars().take(MESSAGE_LIMIT).collect();
    line.trim_end().to_owned()
}

/// Replaces every control character, and those that end a line or turn its direction, by a space.
pub(super) fn strip_control(text: &str) -> String {
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if harmful(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_line_has_no_control_characters() {
        assert_eq!(clean_line("a\x1b[201~b\u{9b}31mc\r\nd\te\u{7f}"), "a [201~b 31mc d e");
        assert_eq!(clean_line("\n\x1b\u{85}\u{2028}"), "");
        assert_eq!(clean_line("  -x; #(id) $(id)  "), "-x; #(id) $(id)");
    }

    #[test]
    fn a_clean_line_is_bounded_in_characters() {
        assert_eq!(clean_line(&"ü".repeat(10_000)).chars().count(), MESSAGE_LIMIT);
        assert_eq!(clean_line(&"a ".repeat(10_000)).chars().count(), MESSAGE_LIMIT - 1);
    }
}
