//! Words of a DOT file, with the bytes they stand on.
//!
//! The rules are those of Graphviz's own scanner, also where they surprise: `#` starts a comment anywhere, `\"` is the only
//! escape that is undone here (`\n` keeps its backslash, because what it means depends on the attribute), and a number
//! that runs into a letter ends there. Nothing recurses, so no file can exhaust the stack.

use super::diagnostic::Problem;
use super::syntax::{Form, Span};
use crate::words::pipeline::Sentence;

/// One word or mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Text { text: String, form: Form },
    Keyword(Keyword),
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    Semicolon,
    Comma,
    Colon,
    Equals,
    Plus,
    Arrow,
    End,
}

/// The words that mean something in every position. They are keywords in any case, and never when quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    Strict,
    Graph,
    Digraph,
    Subgraph,
    Node,
    Edge,
}

impl Keyword {
    const ALL: [(&'static str, Self); 6] = [
        ("strict", Self::Strict),
        ("graph", Self::Graph),
        ("digraph", Self::Digraph),
        ("subgraph", Self::Subgraph),
        ("node", Self::Node),
        ("edge", Self::Edge),
    ];

    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, keyword)| *keyword)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Graph => "graph",
            Self::Digraph => "digraph",
            Self::Subgraph => "subgraph",
            Self::Node => "node",
            Self::Edge => "edge",
        }
    }
}

impl Token {
    /// The token in an error message.
    pub(super) fn described(&self) -> String {
        let mark = match self {
            Self::Text { text, form: Form::Html } => return format!("the HTML text <{}>", short(text)),
            Self::Text { text, .. } => return format!("`{}`", short(text)),
            Self::Keyword(keyword) => return format!("the keyword `{}`", keyword.name()),
            Self::End => return "end of file".to_owned(),
            Self::OpenBrace => "{",
            Self::CloseBrace => "}",
            Self::OpenBracket => "[",
            Self::CloseBracket => "]",
            Self::Semicolon => ";",
            Self::Comma => ",",
            Self::Colon => ":",
            Self::Equals => "=",
            Self::Plus => "+",
            Self::Arrow => "->",
        };
        format!("`{mark}`")
    }
}

/// As much of a text as an error message needs.
fn short(text: &str) -> String {
    crate::text::clean_line(text, 40)
}

/// Reads one token after the other.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and where it stands. At the end of the file this is [`Token::End`], again and again.
    pub(super) fn next(&mut self) -> Result<(Token, Span), Problem> {
        self.skip_blanks()?;
        let start = self.at;
        let Some(byte) = self.peek(0) else { return Ok((Token::End, Span::new(start, start))) };
        let mark = match byte {
            b'{' => Token::OpenBrace,
            b'}' => Token::CloseBrace,
            b'[' => Token::OpenBracket,
            b']' => Token::CloseBracket,
            b';' => Token::Semicolon,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'=' => Token::Equals,
            b'+' => Token::Plus,
            b'"' => return self.quoted(),
            b'<' => return self.html(),
            b'-' if self.peek(1) == Some(b'>') => {
                self.at += 2;
                return Ok((Token::Arrow, Span::new(start, self.at)));
            }
            b'-' if self.peek(1) == Some(b'-') => {
                return Err(Problem::new(Span::new(start, start + 2), "syntax", Sentence::UndirectedEdge)
                    .hint(Sentence::WriteDirectedEdge));
            }
            _ if self.number_follows() => return Ok(self.number()),
            _ if is_word_start(byte) => return Ok(self.word()),
            _ => return Err(self.stray()),
        };
        self.at += 1;
        Ok((mark, Span::new(start, self.at)))
    }

    /// Lengthens a word that ends at `end` by what follows without a blank: `wait` to `wait.human`, and a number to `900s`.
    /// Graphviz splits such words; Attractor's own grammar does not.
    pub(super) fn lengthen(&mut self, end: usize, form: Form) -> Option<&'a str> {
        let rest = &self.text[end..];
        let begins = match form {
            Form::Number => rest.starts_with(|c: char| c.is_ascii_alphabetic()),
            Form::Bare => {
                rest.strip_prefix('.').is_some_and(|r| r.starts_with(|c: char| c.is_ascii_alphabetic()))
            }
            Form::Quoted | Form::Html => false,
        };
        if end != self.at || !begins {
            return None;
        }
        let more =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
        self.at = end + more;
        Some(&rest[..more])
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn skip_blanks(&mut self) -> Result<(), Problem> {
        loop {
            let rest = &self.text[self.at..];
            match self.peek(0) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'#') => self.at += line_end(rest),
                Some(b'/') if rest.starts_with("//") => self.at += line_end(rest),
                Some(b'/') if rest.starts_with("/*") => match rest[2..].find("*/") {
                    Some(end) => self.at += 2 + end + 2,
                    None => {
                        let span = Span::new(self.at, self.at + 2);
                        return Err(Problem::new(span, "syntax", Sentence::CommentNeverEnds)
                            .hint("close it with `*/`"));
                    }
                },
                // Graphviz drops a byte order mark at the beginning of any line: files glued together have several.
                Some(0xef) if rest.starts_with('\u{feff}') && self.at_line_start() => {
                    self.at += '\u{feff}'.len_utf8()
                }
                Some(_) | None => return Ok(()),
            }
        }
    }

    fn at_line_start(&self) -> bool {
        self.at == 0 || self.text.as_bytes()[self.at - 1] == b'\n'
    }

    fn number_follows(&self) -> bool {
        let digit = |ahead: usize| self.peek(ahead).is_some_and(|b| b.is_ascii_digit());
        let sign = usize::from(self.peek(0) == Some(b'-'));
        digit(sign) || (self.peek(sign) == Some(b'.') && digit(sign + 1))
    }

    fn number(&mut self) -> (Token, Span) {
        let start = self.at;
        self.at += usize::from(self.peek(0) == Some(b'-'));
        self.skip_digits();
        if self.peek(0) == Some(b'.') {
            self.at += 1;
            self.skip_digits();
        }
        let text = self.text[start..self.at].to_owned();
        (Token::Text { text, form: Form::Number }, Span::new(start, self.at))
    }

    fn skip_digits(&mut self) {
        while self.peek(0).is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn word(&mut self) -> (Token, Span) {
        let start = self.at;
        while self.peek(0).is_some_and(|b| is_word_start(b) || b.is_ascii_digit()) {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        let token = match Keyword::of(word) {
            Some(keyword) => Token::Keyword(keyword),
            None => Token::Text { text: word.to_owned(), form: Form::Bare },
        };
        (token, Span::new(start, self.at))
    }

    fn quoted(&mut self) -> Result<(Token, Span), Problem> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(stop) = rest.find(['"', '\\']) else {
                return Err(Problem::new(
                    Span::new(start, start + 1),
                    "syntax",
                    Sentence::QuotedTextNeverEnds,
                )
                .hint("close it with `\"`"));
            };
            text.push_str(&rest[..stop]);
            self.at += stop;
            let after = &self.text[self.at..];
            if after.starts_with('"') {
                self.at += 1;
                return Ok((Token::Text { text, form: Form::Quoted }, Span::new(start, self.at)));
            }
            let taken = [("\\\"", "\""), ("\\\\", "\\\\"), ("\\\r\n", ""), ("\\\n", "")]
                .into_iter()
                .find(|(written, _)| after.starts_with(written));
            let (written, meant) = taken.unwrap_or(("\\", "\\"));
            text.push_str(meant);
            self.at += written.len();
        }
    }

    fn html(&mut self) -> Result<(Token, Span), Problem> {
        let start = self.at;
        let mut open = 0_usize;
        for (offset, byte) in self.text.bytes().enumerate().skip(start) {
            match byte {
                b'<' => open += 1,
                b'>' => open -= 1,
                _ => continue,
            }
            if open == 0 {
                self.at = offset + 1;
                let text = self.text[start + 1..offset].to_owned();
                return Ok((Token::Text { text, form: Form::Html }, Span::new(start, self.at)));
            }
        }
        Err(Problem::new(Span::new(start, start + 1), "syntax", Sentence::HtmlTextNeverEnds)
            .hint(Sentence::CloseEveryTag))
    }

    fn stray(&self) -> Problem {
        let c = self.text[self.at..].chars().next().unwrap_or_default();
        let span = Span::new(self.at, self.at + c.len_utf8());
        let shown = if c.is_control() { format!("U+{:04X}", u32::from(c)) } else { format!("`{c}`") };
        let problem = Problem::new(span, "syntax", Sentence::StrayCharacter(shown).to_string());
        match c {
            '-' | '.' | '/' | '@' | '$' | '%' | '*' | '&' | '?' | '!' | '\'' | '(' | ')' | '|' | '~'
            | '^' | '\\' | '`' => problem.hint(Sentence::QuoteOddNames),
            _ => problem,
        }
    }
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn line_end(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}
