//! A lexer for Rust that knows enough for rules about our own code: comments, strings, names and brackets.
//!
//! A regular expression cannot tell a brace in a string from one in the code. This can, and it needs no compiler.

/// The kinds of tokens that rules tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword, a name or a number.
    Word,
    /// A string of any kind; the text is what stands between the quotes, with its escapes.
    Text,
    /// `///` or `//!`, without the slashes.
    Doc,
    /// One character of punctuation. A character literal and a lifetime are punctuation too: no rule looks at them.
    Mark,
}

/// A token and the line it begins in, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
    pub line: usize,
}

impl Token {
    /// Whether it is this keyword, name or punctuation.
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Mark) && self.text == text
    }
}

/// Reads Rust code. Plain comments are left out.
pub fn tokens(code: &str) -> Vec<Token> {
    let mut lexer = Lexer { rest: code, line: 1, found: Vec::new() };
    while !lexer.rest.is_empty() {
        lexer.next();
    }
    lexer.found
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    found: Vec<Token>,
}

impl Lexer<'_> {
    fn next(&mut self) {
        let rest = self.rest;
        let first = rest.chars().next().unwrap_or_default();
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            let is_doc = rest.starts_with("//!") || rest.starts_with("///") && !rest.starts_with("////");
            if is_doc {
                self.push(Kind::Doc, rest[3..end].trim());
            }
            self.skip(end);
        } else if rest.starts_with("/*") {
            self.skip(block_comment(rest));
        } else if let Some((begin, length, end)) = string(rest) {
            self.push(Kind::Text, &rest[begin..begin + length]);
            self.skip(end);
        } else if first == '\'' {
            self.push(Kind::Mark, "'");
            self.skip(character(rest));
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            self.push(Kind::Word, &rest[..end]);
            self.skip(end);
        } else if first.is_whitespace() {
            self.skip(first.len_utf8());
        } else {
            self.push(Kind::Mark, &rest[..first.len_utf8()]);
            self.skip(first.len_utf8());
        }
    }

    fn push(&mut self, kind: Kind, text: &str) {
        self.found.push(Token { kind, text: text.to_owned(), line: self.line });
    }

    fn skip(&mut self, bytes: usize) {
        self.line += self.rest[..bytes].matches('\n').count();
        self.rest = &self.rest[bytes..];
    }
}

/// How long a comment is; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// A string at the beginning: where its content begins, how long that is, and where the string ends.
fn string(text: &str) -> Option<(usize, usize, usize)> {
    let after = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - after.len();
    if prefix > 1 {
        return None;
    }
    if let Some(raw) = after.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if !raw[hashes..].starts_with('"') {
            return None;
        }
        let begin = prefix + 1 + hashes + 1;
        let end_mark = format!("\"{}", "#".repeat(hashes));
        let length = text[begin..].find(&end_mark).unwrap_or(text.len() - begin);
        return Some((begin, length, (begin + length + end_mark.len()).min(text.len())));
    }
    if !after.starts_with('"') {
        return None;
    }
    let begin = prefix + 1;
    let mut escaped = false;
    for (at, c) in text[begin..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some((begin, at, begin + at + 1)),
            _ => {}
        }
    }
    Some((begin, text.len() - begin, text.len()))
}

/// How long a character literal or a lifetime is.
fn character(text: &str) -> usize {
    let inner = &text[1..];
    if let Some(escape) = inner.strip_prefix('\\') {
        let first = escape.chars().next().map_or(0, char::len_utf8);
        return escape[first..].find('\'').map_or(text.len(), |at| 2 + first + at + 1);
    }
    let length = inner.chars().next().map_or(0, char::len_utf8);
    if inner[length..].starts_with('\'') { 1 + length + 1 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::{Kind, tokens};

    fn words(code: &str) -> Vec<(Kind, String)> {
        tokens(code).into_iter().map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn strings_comments_and_characters_are_told_apart() {
        let code = "/// Says.\nfn a<'x>() { // no \"text\"\n  b(\"{ \\\" }\", r#\"raw \" }\"#, '{', '\\'', b\"y\"); /* { /* } */ */ }";
        let found = words(code);
        let texts: Vec<&str> =
            found.iter().filter(|(kind, _)| *kind == Kind::Text).map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["{ \\\" }", "raw \" }", "y"]);
        assert_eq!(found[0], (Kind::Doc, "Says.".to_owned()));
        let open = found.iter().filter(|(kind, text)| *kind == Kind::Mark && text == "{").count();
        let close = found.iter().filter(|(kind, text)| *kind == Kind::Mark && text == "}").count();
        assert_eq!((open, close), (1, 1));
    }

    #[test]
    fn lines_are_counted_through_strings() {
        let found = tokens("a \"one\ntwo\" b");
        assert_eq!(found.iter().map(|token| token.line).collect::<Vec<_>>(), [1, 1, 2]);
    }
}
