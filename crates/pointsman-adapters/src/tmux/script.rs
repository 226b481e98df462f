//! Commands as lists of words, and the only three places where a word is quoted.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// A sequence of tmux commands that the server runs without anything in between.
///
/// The server is single-threaded and drains a client's queue before it returns to its event loop, so a script
/// is atomic towards other clients, pane output and the death of the client that sent it. If one command fails
/// the rest is not run.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    commands: Vec<Vec<OsString>>,
}

impl Script {
    /// A script of one command.
    pub(super) fn new<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Script {
        Script::default().then(words)
    }

    /// Adds one command to the end.
    pub(super) fn then<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Script {
        self.commands.push(words.into_iter().map(|word| word.as_ref().to_owned()).collect());
        self
    }

    /// Adds one word to the last command.
    pub(super) fn word(mut self, word: impl AsRef<OsStr>) -> Script {
        if let Some(last) = self.commands.last_mut() {
            last.push(word.as_ref().to_owned());
        }
        self
    }

    /// Adds all commands of another script to the end.
    pub(super) fn append(mut self, other: &Script) -> Script {
        self.commands.extend_from_slice(&other.commands);
        self
    }

    /// The first word, for messages.
    pub(super) fn name(&self) -> String {
        self.commands
            .first()
            .and_then(|words| words.first())
            .map(|word| word.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// One line for tmux's command parser: a control client's input, or the argument of `if-shell`.
    pub(super) fn line(&self) -> OsString {
        let mut line = Vec::new();
        for (nth, words) in self.commands.iter().enumerate() {
            if nth > 0 {
                line.extend_from_slice(b" ; ");
            }
            for (nth, word) in words.iter().enumerate() {
                if nth > 0 {
                    line.push(b' ');
                }
                quote_into(&mut line, word);
            }
        }
        OsString::from_vec(line)
    }

    /// The same as arguments of the tmux program, where only a trailing `;` is special.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut arguments = Vec::new();
        for (nth, words) in self.commands.iter().enumerate() {
            if nth > 0 {
                arguments.push(OsString::from(";"));
            }
            arguments.extend(words.iter().map(|word| match word.as_bytes().strip_suffix(b";") {
                Some(rest) => OsString::from_vec([rest, b"\\;"].concat()),
                None => word.clone(),
            }));
        }
        arguments
    }
}

/// Quotes a word for tmux's parser. Single quotes switch every special character off; a quote itself and control
/// characters (a newline would end the line) stand outside of them, escaped.
fn quote_into(line: &mut Vec<u8>, word: &OsStr) {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:@".contains(byte);
    let bytes = word.as_bytes();
    if !bytes.is_empty() && bytes.iter().all(plain) {
        line.extend_from_slice(bytes);
        return;
    }
    line.push(b'\'');
    for &byte in bytes {
        if byte == b'\'' || byte.is_ascii_control() {
            line.extend_from_slice(format!("'\\{byte:03o}'").as_bytes());
        } else {
            line.push(byte);
        }
    }
    line.push(b'\'');
}

/// The shell command for `pipe-pane` that appends to a file.
///
/// tmux expands formats and dates in it before the shell sees it. Doubling `#` is not reliable (`##[` and `##{` stay
/// as they are), so the shell itself is made to produce that character.
pub(super) fn append_command(path: &Path) -> OsString {
    let mut command = b"exec cat >>'".to_vec();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'\'' => command.extend_from_slice(b"'\\''"),
            b'#' => command.extend_from_slice(b"'\"$(printf '\\043')\"'"),
            b'%' => command.extend_from_slice(b"%%"),
            other => command.push(other),
        }
    }
    command.push(b'\'');
    OsString::from_vec(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(word: &str) -> String {
        Script::new([word]).line().into_string().expect("the tests use text")
    }

    #[test]
    fn plain_words_stay_readable() {
        assert_eq!(quoted("new-session"), "new-session");
        assert_eq!(quoted("=dev-a-4:"), "'=dev-a-4:'");
    }

    #[test]
    fn special_characters_lose_their_meaning() {
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a b;c"), "'a b;c'");
        assert_eq!(quoted("#{pid} $HOME ~ \\ \""), "'#{pid} $HOME ~ \\ \"'");
        assert_eq!(quoted("it's"), "'it'\\047's'");
        assert_eq!(quoted("a\nb\u{7f}"), "'a'\\012'b'\\177''");
    }

    #[test]
    fn a_script_joins_its_commands() {
        let script = Script::new(["a", ";"]).then(["b", "x y"]);
        assert_eq!(script.line(), "a ';' ; b 'x y'");
        assert_eq!(script.arguments(), ["a", "\\;", ";", "b", "x y"]);
    }

    #[test]
    fn only_the_last_semicolon_of_an_argument_is_escaped() {
        assert_eq!(Script::new(["a;b;"]).arguments(), ["a;b\\;"]);
    }
}
