//! The syntax tree of a DOT file: what was written, in order, with the bytes it stands on.
//!
//! Comments and blanks are not in the tree. They stay where they are, because [`super::edit`] changes the text at the
//! places that the tree names and copies everything else.

/// A range of bytes in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// From the beginning of this one to the end of the other.
    pub fn to(self, other: Self) -> Self {
        Self::new(self.start, other.end)
    }
}

/// The spelling of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Bare,
    Number,
    Quoted,
    Html,
}

/// An id of the grammar: a name, a key or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// As Graphviz reads it: quotes gone, `\"` undone, pieces joined, every other backslash kept.
    pub text: String,
    pub form: Form,
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub strict: bool,
    pub name: Option<Name>,
    pub body: Body,
}

/// The statements between two braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    pub statements: Vec<Statement>,
    /// The brackets included.
    pub span: Span,
}

/// A statement of the grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `node [...]`, `edge [...]`, `graph [...]`
    Defaults {
        of: Kind,
        lists: Vec<AttributeList>,
    },
    /// `key = value`, which is an attribute of the graph around it.
    Assignment(Attribute),
    /// `a [...]` and `a, b [...]`
    Nodes {
        nodes: Vec<NodeRef>,
        lists: Vec<AttributeList>,
    },
    /// `a -> b -> {c d} [...]`
    Edges {
        ends: Vec<End>,
        lists: Vec<AttributeList>,
    },
    Subgraph(Subgraph),
}

/// The kind of thing that a default is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Graph,
    Node,
    Edge,
}

/// Attributes between two brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeList {
    pub attributes: Vec<Attribute>,
    /// The brackets included.
    pub span: Span,
}

/// `key = value`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub key: Name,
    pub value: Name,
    /// The byte of a `,` or `;` behind it.
    pub separator: Option<usize>,
}

/// A node where it is named, with the port an edge ends at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRef {
    pub id: Name,
    pub port: Option<Name>,
    pub compass: Option<Name>,
}

/// One end of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Nodes(Vec<NodeRef>),
    Subgraph(Subgraph),
}

/// `subgraph name { ... }` or only `{ ... }`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subgraph {
    pub name: Option<Name>,
    pub body: Body,
    pub span: Span,
}
