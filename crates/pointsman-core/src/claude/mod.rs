//! The files and flags of Claude Code: how a session starts, and what we put into a person's settings.
//!
//! Everything here is pure. The meaning of hook events is in [`crate::hook`].

pub mod launch;
pub mod ordered;
pub mod settings;
pub mod status;
pub mod stream;
pub mod usage;

/// A word for the shell that Claude Code runs hooks with.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':' | '@' | '%' | '=')
    };
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        assert_eq!(shell_word("/usr/bin/pointsman"), "/usr/bin/pointsman");
        assert_eq!(shell_word("/a b/$(id)"), "'/a b/$(id)'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
