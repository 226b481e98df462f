//! Colours for code: comments, strings, numbers and keywords, line by line. It knows no grammar; a wrong colour does no harm.

/// A piece of a line with its class; empty for plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) class: &'static str,
    pub(crate) text: String,
}

const COMMENT: &str = "tok-c";
const STRING: &str = "tok-s";
const NUMBER: &str = "tok-n";
const KEYWORD: &str = "tok-k";

/// Words that mean something in one of the usual languages.
const KEYWORDS: [&str; 86] = [
    "abstract",
    "and",
    "as",
    "async",
    "await",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "def",
    "default",
    "defer",
    "do",
    "dyn",
    "elif",
    "else",
    "end",
    "enum",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "final",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "int",
    "interface",
    "is",
    "lambda",
    "let",
    "loop",
    "match",
    "mod",
    "module",
    "move",
    "mut",
    "new",
    "nil",
    "None",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "ref",
    "return",
    "select",
    "self",
    "Self",
    "static",
    "struct",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "use",
    "var",
    "void",
    "where",
    "while",
    "yield",
];

/// Endings of names of files whose comments begin with two slashes, a hash or two dashes.
const SLASHES: &str =
    "rs c h cc cpp hpp go java js jsx ts tsx mjs kt swift scala cs php css scss proto zig dart";
const HASHES: &str = "py rb sh bash zsh pl toml yml yaml nix ex exs r cfg Dockerfile Makefile mk";
const DASHES: &str = "sql lua hs";

/// The marks that begin a comment, by the ending of a file's name. None for text that is no code.
fn comment_marks(path: &str) -> Option<&'static [&'static str]> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map_or(name, |(_, ending)| ending);
    let is_one_of = |endings: &str| endings.split(' ').any(|one| one == ending);
    if is_one_of(SLASHES) {
        Some(&["//", "/*"])
    } else if is_one_of(HASHES) {
        Some(&["#"])
    } else if is_one_of(DASHES) {
        Some(&["--"])
    } else if ending == "json" {
        Some(&[])
    } else {
        None
    }
}

/// A line of a file in pieces.
pub(crate) fn line(path: &str, text: &str) -> Vec<Piece> {
    let Some(marks) = comment_marks(path) else {
        return vec![Piece { class: "", text: text.to_owned() }];
    };
    let mut pieces: Vec<Piece> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (class, length) = if marks.iter().any(|mark| rest.starts_with(mark))
            || is_middle_of_comment(text, rest, marks)
        {
            (COMMENT, rest.len())
        } else if first == '"' || first == '\'' || first == '`' {
            match end_of_string(rest, first) {
                // An apostrophe, or a lifetime.
                None => ("", first.len_utf8()),
                Some(end) => (STRING, end),
            }
        } else if first.is_ascii_digit() {
            (
                NUMBER,
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len()),
            )
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (if KEYWORDS.contains(&&rest[..end]) { KEYWORD } else { "" }, end)
        } else {
            ("", first.len_utf8())
        };
        let (piece, after) = rest.split_at(length);
        match pieces.last_mut() {
            Some(last) if last.class == class => last.text.push_str(piece),
            _ => pieces.push(Piece { class, text: piece.to_owned() }),
        }
        rest = after;
    }
    pieces
}

/// A line such as ` * text`, inside of a comment that began above.
fn is_middle_of_comment(text: &str, rest: &str, marks: &[&str]) -> bool {
    marks.contains(&"/*")
        && text.trim_start().len() == rest.len()
        && (rest.starts_with("* ") || rest == "*" || rest.starts_with("*/"))
}

/// The length of a string with its quotes, if it ends on this line.
fn end_of_string(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::line;

    fn shown(path: &str, text: &str) -> Vec<(&'static str, String)> {
        line(path, text).into_iter().map(|piece| (piece.class, piece.text)).collect()
    }

    #[test]
    fn code_has_colours_and_no_character_is_lost() {
        let colours = shown("src/a.rs", "let a = \"x \\\" // y\"; // 2 é");
        let classes: Vec<_> = colours.iter().map(|(class, _)| *class).collect();
        assert_eq!(classes, ["tok-k", "", "tok-s", "", "tok-c"]);
        for text in
            ["fn é<'a>(x: &'a str) -> u8 { 0x1f }", " * in the middle", "\"open", "", "x'", "`a` 1.5e3"]
        {
            for path in ["a.rs", "a.py", "Makefile", "notes.txt", "a.json"] {
                let joined: String = line(path, text).into_iter().map(|piece| piece.text).collect();
                assert_eq!(joined, text, "{path}");
            }
        }
        assert_eq!(shown("notes.txt", "if // 1"), [("", "if // 1".to_owned())]);
        assert_eq!(shown("a.py", "# 1"), [("tok-c", "# 1".to_owned())]);
    }
}
