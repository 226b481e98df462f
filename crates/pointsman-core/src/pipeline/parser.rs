//! The grammar: from words to a syntax tree, by recursive descent with a bounded depth.

use super::diagnostic::Problem;
use super::lexer::{Keyword, Lexer, Token};
use super::syntax::{
    Attribute, AttributeList, Body, Document, End, Form, Kind, Name, NodeRef, Span, Statement, Subgraph,
};
use crate::words::pipeline::Sentence;

/// The largest file that is read, in bytes. A plan of a thousand nodes has a tenth of this.
pub const MAX_BYTES: usize = 1 << 20;

/// How deep subgraphs may stand in each other. The parser recurses once per level.
pub const MAX_DEPTH: usize = 64;

/// Reads a whole file, which must be one directed graph. Warnings are about what Graphviz reads differently.
pub(super) fn parse(text: &str) -> Result<(Document, Vec<Problem>), Problem> {
    if text.len() > MAX_BYTES {
        let message = Sentence::FileTooLarge(text.len().to_string(), MAX_BYTES.to_string());
        return Err(Problem::new(Span::default(), "size", message));
    }
    if let Some(at) = text.find('\0') {
        return Err(Problem::new(Span::new(at, at + 1), "syntax", Sentence::NulByte));
    }
    let mut lexer = Lexer::new(text);
    let (token, span) = lexer.next()?;
    let mut parser = Parser { lexer, token, span, depth: 0, warnings: Vec::new() };
    let document = parser.document()?;
    Ok((document, parser.warnings))
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    span: Span,
    depth: usize,
    warnings: Vec<Problem>,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Document, Problem> {
        let strict = self.take_keyword(Keyword::Strict)?;
        match self.token {
            Token::Keyword(Keyword::Digraph) => {}
            Token::Keyword(Keyword::Graph) => {
                return Err(Problem::new(self.span, "undirected", Sentence::UndirectedGraph)
                    .hint(Sentence::WriteDigraph));
            }
            _ => return Err(self.unexpected("`digraph`")),
        }
        self.advance()?;
        let name = match self.token {
            Token::Text { .. } => Some(self.name()?),
            _ => None,
        };
        let body = self.body()?;
        match self.token {
            Token::End => Ok(Document { strict, name, body }),
            Token::Keyword(Keyword::Strict | Keyword::Digraph | Keyword::Graph) => {
                Err(Problem::new(self.span, "syntax", Sentence::SecondGraphBeginsHere)
                    .hint(Sentence::OneGraphPerFile))
            }
            _ => Err(self.unexpected("end of file")),
        }
    }

    /// `{ ... }`
    fn body(&mut self) -> Result<Body, Problem> {
        let open = self.span;
        self.expect(&Token::OpenBrace, "`{`")?;
        let mut statements = Vec::new();
        loop {
            match self.token {
                Token::CloseBrace => break,
                Token::End => {
                    return Err(
                        Problem::new(open, "syntax", Sentence::BraceNeverClosed).hint("add the missing `}`")
                    );
                }
                _ => {}
            }
            statements.push(self.statement()?);
            if self.token == Token::Semicolon {
                self.advance()?;
            }
        }
        let close = self.span;
        self.advance()?;
        Ok(Body { statements, span: open.to(close) })
    }

    fn statement(&mut self) -> Result<Statement, Problem> {
        let of = match self.token {
            Token::Keyword(Keyword::Graph) => Kind::Graph,
            Token::Keyword(Keyword::Node) => Kind::Node,
            Token::Keyword(Keyword::Edge) => Kind::Edge,
            Token::Keyword(Keyword::Subgraph) | Token::OpenBrace => {
                let end = End::Subgraph(self.subgraph()?);
                return self.edges_or(end);
            }
            Token::Text { .. } => return self.named(),
            _ => return Err(self.unexpected("node, edge or `}`")),
        };
        self.advance()?;
        if self.token != Token::OpenBracket {
            return Err(self.unexpected("`[`").hint(Sentence::QuoteKeyword));
        }
        Ok(Statement::Defaults { of, lists: self.lists()? })
    }

    /// A statement that begins with a name: an assignment, nodes, or edges.
    fn named(&mut self) -> Result<Statement, Problem> {
        let name = self.key()?;
        if self.token == Token::Equals {
            self.advance()?;
            let value = self.value()?;
            return Ok(Statement::Assignment(Attribute { key: name, value, separator: None }));
        }
        let nodes = self.nodes(name)?;
        self.edges_or(End::Nodes(nodes))
    }

    /// Node names up to the next mark that is no comma; the first is read already.
    fn nodes(&mut self, first: Name) -> Result<Vec<NodeRef>, Problem> {
        let mut nodes = vec![self.with_port(first)?];
        while self.token == Token::Comma {
            self.advance()?;
            let name = self.expected_name("a node")?;
            nodes.push(self.with_port(name)?);
        }
        Ok(nodes)
    }

    fn with_port(&mut self, id: Name) -> Result<NodeRef, Problem> {
        let mut parts = [None, None];
        for part in &mut parts {
            if self.token == Token::Colon {
                self.advance()?;
                *part = Some(self.expected_name("a port")?);
            }
        }
        let [port, compass] = parts;
        Ok(NodeRef { id, port, compass })
    }

    /// The rest of a statement behind its first end.
    fn edges_or(&mut self, first: End) -> Result<Statement, Problem> {
        let mut ends = vec![first];
        while self.token == Token::Arrow {
            self.advance()?;
            ends.push(match self.token {
                Token::Keyword(Keyword::Subgraph) | Token::OpenBrace => End::Subgraph(self.subgraph()?),
                _ => {
                    let name = self.expected_name("node or subgraph")?;
                    End::Nodes(self.nodes(name)?)
                }
            });
        }
        let lists = self.lists()?;
        if ends.len() > 1 {
            return Ok(Statement::Edges { ends, lists });
        }
        Ok(match ends.remove(0) {
            End::Nodes(nodes) => Statement::Nodes { nodes, lists },
            End::Subgraph(subgraph) => {
                self.warnings.extend(lists.iter().map(|list| {
                    Problem::warning(list.span, "ignored", Sentence::AttributesWithoutEffect)
                        .hint(Sentence::WriteIntoSubgraph)
                }));
                Statement::Subgraph(subgraph)
            }
        })
    }

    fn subgraph(&mut self) -> Result<Subgraph, Problem> {
        let start = self.span;
        let mut name = None;
        if self.take_keyword(Keyword::Subgraph)? && matches!(self.token, Token::Text { .. }) {
            name = Some(self.name()?);
        }
        if self.depth == MAX_DEPTH {
            let message = Sentence::SubgraphsTooDeep(MAX_DEPTH.to_string());
            return Err(Problem::new(self.span, "size", message));
        }
        self.depth += 1;
        let body = self.body()?;
        self.depth -= 1;
        let span = start.to(body.span);
        Ok(Subgraph { name, body, span })
    }

    fn lists(&mut self) -> Result<Vec<AttributeList>, Problem> {
        let mut lists = Vec::new();
        while self.token == Token::OpenBracket {
            lists.push(self.list()?);
        }
        Ok(lists)
    }

    fn list(&mut self) -> Result<AttributeList, Problem> {
        let open = self.span;
        self.advance()?;
        let mut attributes = Vec::new();
        loop {
            match self.token {
                Token::CloseBracket => break,
                Token::End => {
                    return Err(Problem::new(open, "syntax", Sentence::BracketNeverClosed)
                        .hint("add the missing `]`"));
                }
                Token::Text { .. } => {}
                _ => return Err(self.unexpected("attribute or `]`")),
            }
            let key = self.key()?;
            if self.token != Token::Equals {
                return Err(self
                    .unexpected("`=`")
                    .hint(Sentence::EveryAttributeHasValue(key.text.to_string())));
            }
            self.advance()?;
            let value = self.value()?;
            let mut separator = None;
            if matches!(self.token, Token::Comma | Token::Semicolon) {
                separator = Some(self.span.start);
                self.advance()?;
            }
            attributes.push(Attribute { key, value, separator });
        }
        let close = self.span;
        self.advance()?;
        Ok(AttributeList { attributes, span: open.to(close) })
    }

    /// A name in front of `=`, or the first one of a statement.
    fn key(&mut self) -> Result<Name, Problem> {
        if matches!(self.token, Token::Text { form: Form::Bare, .. }) {
            self.lengthen();
        }
        self.expected_name("a name")
    }

    fn value(&mut self) -> Result<Name, Problem> {
        self.lengthen();
        self.expected_name("a value")
    }

    /// Takes what follows the current word without a blank as a part of it. Attractor writes `human.default_choice` and
    /// `timeout=900s` without quotes; Graphviz cannot draw such a file, so its author is told.
    fn lengthen(&mut self) {
        let Token::Text { text, form } = &mut self.token else { return };
        let Some(more) = self.lexer.lengthen(self.span.end, *form) else { return };
        text.push_str(more);
        *form = Form::Bare;
        self.span.end += more.len();
        let message = Sentence::GraphvizReadsAsTwoWords(text.to_string());
        let hint = format!("write \"{text}\"");
        self.warnings.push(Problem::warning(self.span, "graphviz", message).hint(hint));
    }

    fn expected_name(&mut self, wanted: &str) -> Result<Name, Problem> {
        match self.token {
            Token::Text { .. } => self.name(),
            Token::Keyword(keyword) => {
                let hint = Sentence::WriteQuotedName(keyword.name().to_string()).to_string();
                Err(self.unexpected(wanted).hint(hint))
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// The name that is next, with its further pieces: `"a" + "b"`.
    fn name(&mut self) -> Result<Name, Problem> {
        let mut name = self.piece("a name")?;
        while matches!(name.form, Form::Quoted | Form::Html) && self.token == Token::Plus {
            self.advance()?;
            if !matches!(self.token, Token::Text { form: Form::Quoted | Form::Html, .. }) {
                return Err(self.unexpected("quoted text"));
            }
            let piece = self.piece("quoted text")?;
            name.text.push_str(&piece.text);
            name.span = name.span.to(piece.span);
            name.form = Form::Quoted;
        }
        Ok(name)
    }

    fn piece(&mut self, wanted: &str) -> Result<Name, Problem> {
        let Token::Text { text, form } = &mut self.token else { return Err(self.unexpected(wanted)) };
        let name = Name { text: std::mem::take(text), form: *form, span: self.span };
        self.advance()?;
        Ok(name)
    }

    fn advance(&mut self) -> Result<(), Problem> {
        (self.token, self.span) = self.lexer.next()?;
        Ok(())
    }

    fn take_keyword(&mut self, wanted: Keyword) -> Result<bool, Problem> {
        let found = self.token == Token::Keyword(wanted);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, wanted: &Token, described: &str) -> Result<(), Problem> {
        if self.token != *wanted {
            return Err(self.unexpected(described));
        }
        self.advance()
    }

    fn unexpected(&self, wanted: &str) -> Problem {
        Problem::new(self.span, "syntax", format!("expected {wanted}, found {}", self.token.described()))
    }
}
