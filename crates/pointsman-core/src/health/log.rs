//! The ends of logs, made fit to be shown: bounded, without control characters, without what looks like a secret.

use std::collections::BTreeMap;

use super::{LogError, Tail};
use crate::review::blank_secrets;
use crate::text::{clean_block, clean_line};

/// The longest line that is shown, in characters.
const LINE_CHARS: usize = 240;
/// Characters by which an error is known again.
const SAME_CHARS: usize = 120;

/// The last lines of a text. `whole` says whether it begins where the log does; if not, its first line is half of one.
pub fn tail(of: &str, text: &str, whole: bool, lines: usize) -> Tail {
    let shown: Vec<String> = blanked(text)
        .lines()
        .skip(usize::from(!whole))
        .map(|line| clean_line(line, LINE_CHARS))
        .filter(|line| !line.is_empty())
        .collect();
    let from = shown.len().saturating_sub(lines);
    Tail { of: of.to_owned(), lines: shown[from..].to_vec() }
}

/// The errors among the lines of our own log, by their words, the most frequent first. `is_recent` judges the time with
/// which a line begins.
pub fn errors(text: &str, is_recent: impl Fn(&str) -> bool) -> Vec<LogError> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for line in blanked(text).lines() {
        let mut words = line.split_whitespace();
        let (Some(at), Some("ERROR")) = (words.next(), words.next()) else { continue };
        if is_recent(at) {
            *counts.entry(known_by(words)).or_default() += 1;
        }
    }
    let mut errors: Vec<LogError> =
        counts.into_iter().map(|(text, count)| LogError { text, count }).collect();
    errors.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.text.cmp(&b.text)));
    errors
}

/// Cleaned first: an escape inside a secret must not hide it.
fn blanked(text: &str) -> String {
    blank_secrets(&clean_block(text, usize::MAX))
}

/// An error without its numbers, which differ from time to time.
fn known_by<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let mut known = String::new();
    let text = words.collect::<Vec<_>>().join(" ");
    for c in text.chars() {
        match c.is_ascii_digit() {
            true if known.ends_with('#') => {}
            true => known.push('#'),
            false => known.push(c),
        }
    }
    clean_line(&known, SAME_CHARS)
}

#[cfg(test)]
mod tests {
    use super::{errors, tail};

    #[test]
    fn a_tail_is_bounded_and_shows_neither_controls_nor_secrets() {
        let token = format!("ghp_{}", "a1".repeat(20));
        let hidden = token.replacen("ghp", "g\u{1b}[0mhp", 1);
        let text = format!(
            "half a line\nfirst\n\u{1b}[31mred\u{1b}[0m\u{7}\r\n\nToken {hidden} ends\n\
             -----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----\n{}\n",
            "x".repeat(9999)
        );
        let shown = tail("daemon", &text, false, 5).lines;
        assert_eq!(shown[..4], ["first", "red", "Token [secret] ends", "[secret]"]);
        assert_eq!((shown.len(), shown[4].chars().count()), (5, 240));
        assert_eq!(tail("daemon", "whole\nend", true, 1).lines, ["end"]);
        assert_eq!(tail("daemon", "", true, 9).lines, [""; 0]);
    }

    #[test]
    fn errors_are_counted_by_their_words_and_only_recent_ones() {
        let text = "old ERROR disk full tries=1\n\
                    new ERROR disk full tries=2\n\
                    new ERROR disk full tries=31\n\
                    new  INFO disk full tries=4\n\
                    new ERROR other\n\
                    somebody prints ERROR disk full tries=5\n";
        let found = errors(text, |at| at == "new");
        let found: Vec<(&str, u64)> = found.iter().map(|error| (error.text.as_str(), error.count)).collect();
        assert_eq!(found, [("disk full tries=#", 2), ("other", 1)]);
    }
}
