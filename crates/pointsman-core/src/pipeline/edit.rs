//! Attributes written back into a user's own file; every other byte stays as it is.
//!
//! The rule that decides where a value goes: the last assignment wins in Graphviz, so an existing value is replaced only
//! where it is the last one and speaks of this node alone. Otherwise the attribute is added, to the node's own statement
//! or, if it has none, as a new statement at the end of the graph.

use super::diagnostic::{Diagnostic, Problem};
use super::parser;
use super::run::NodeStatus;
use super::syntax::{Attribute, AttributeList, Body, Document, End, Form, NodeRef, Span, Statement};

/// A node's progress, as far as a file shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub status: Option<NodeStatus>,
    pub session: Option<String>,
    pub issue: Option<u64>,
}

/// A reason for leaving a file as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the file is not a directed graph any more: {0}")]
    Syntax(Box<Diagnostic>),
    #[error("there is no node `{0}`")]
    NoNode(String),
    /// DOT has no way to write a text that ends in a backslash, and a line break would change how the file looks.
    #[error("the value of `{0}` cannot be written into a DOT file")]
    Value(String),
}

/// The fill colour by which `dot` draws progress.
pub const fn fill_colour(status: NodeStatus) -> &'static str {
    match status {
        NodeStatus::Pending => "lightyellow",
        NodeStatus::Active => "lightblue",
        NodeStatus::ImplComplete => "lightsalmon",
        NodeStatus::Validated => "lightgreen",
        NodeStatus::Merged => "mediumaquamarine",
        NodeStatus::Failed => "lightcoral",
        NodeStatus::Skipped => "lightgray",
    }
}

/// The same file with a node's progress in it: `status`, `session`, `issue` and the fill colour.
pub fn mark(text: &str, node: &str, mark: &Mark) -> Result<String, Error> {
    let mut changes: Vec<(&str, String)> = Vec::new();
    if let Some(status) = mark.status {
        changes.push(("status", status.as_str().to_owned()));
        changes.push(("fillcolor", fill_colour(status).to_owned()));
        if let Some(style) = filled_style(text, node)? {
            changes.push(("style", style));
        }
    }
    changes.extend(mark.session.iter().map(|session| ("session", session.clone())));
    changes.extend(mark.issue.iter().map(|issue| ("issue", issue.to_string())));
    set_attributes(text, node, &changes)
}

/// The node's style with `filled` in it, or nothing if it is filled already. Graphviz shows no fill colour without.
fn filled_style(text: &str, node: &str) -> Result<Option<String>, Error> {
    let (document, _) = parsed(text)?;
    let graph = super::graph::build(&document).map_err(|problem| syntax(text, problem))?;
    let known = graph.node(node).ok_or_else(|| Error::NoNode(node.to_owned()))?;
    let style = known.attributes.get("style").map_or("", |style| style.text.as_str());
    if style.split(',').any(|part| part.trim() == "filled") {
        return Ok(None);
    }
    Ok(Some(if style.trim().is_empty() { "filled".to_owned() } else { format!("{style},filled") }))
}

/// The same file with these attributes of a node set.
pub fn set_attributes(text: &str, node: &str, changes: &[(&str, String)]) -> Result<String, Error> {
    let (document, _) = parsed(text)?;
    let mut places = NodeStatements::default();
    places.collect(&document.body, node);
    if !places.known {
        return Err(Error::NoNode(node.to_owned()));
    }
    let mut edits: Vec<(Span, String)> = Vec::new();
    let (mut inside, mut behind) = (Vec::new(), Vec::new());
    for (key, value) in changes {
        let written = quoted(value).ok_or_else(|| Error::Value((*key).to_owned()))?;
        match places.place_of(key) {
            AttributeTarget::Replace(span, form) => {
                let bare = form == Form::Bare && is_bare(value);
                edits.push((span, if bare { value.clone() } else { written }));
            }
            AttributeTarget::Inside => inside.push((*key, written)),
            AttributeTarget::Behind => behind.push((*key, written)),
        }
    }
    edits.extend(places.inside_edits(text, &inside));
    if !behind.is_empty() {
        edits.push(statement_behind(text, &document, node, &behind)?);
    }
    Ok(apply(text, edits))
}

/// Where an attribute of the node goes.
enum AttributeTarget {
    Replace(Span, Form),
    /// Into the node's own statement.
    Inside,
    /// Into a new statement at the end.
    Behind,
}

/// Every place of a file that says something about one node.
#[derive(Default)]
struct NodeStatements<'a> {
    known: bool,
    /// Statements of this node alone, and of several nodes together, in the order of the file.
    assignments: Vec<(&'a Attribute, Owner)>,
    /// The last statement of this node alone: its name and its lists.
    own: Option<(&'a NodeRef, &'a [AttributeList])>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Alone,
    Shared,
}

impl<'a> NodeStatements<'a> {
    fn collect(&mut self, body: &'a Body, node: &str) {
        for statement in &body.statements {
            match statement {
                Statement::Nodes { nodes, lists } if nodes.iter().any(|n| n.id.text == node) => {
                    self.known = true;
                    let owner = if nodes.len() == 1 { Owner::Alone } else { Owner::Shared };
                    let attributes = lists.iter().flat_map(|list| &list.attributes);
                    self.assignments.extend(attributes.map(|attribute| (attribute, owner)));
                    if let [only] = nodes.as_slice() {
                        self.own = Some((only, lists));
                    }
                }
                Statement::Edges { ends, .. } => {
                    for end in ends {
                        match end {
                            End::Nodes(nodes) => self.known |= nodes.iter().any(|n| n.id.text == node),
                            End::Subgraph(subgraph) => self.collect(&subgraph.body, node),
                        }
                    }
                }
                Statement::Subgraph(subgraph) => self.collect(&subgraph.body, node),
                Statement::Nodes { .. } | Statement::Defaults { .. } | Statement::Assignment(_) => {}
            }
        }
    }

    fn place_of(&self, key: &str) -> AttributeTarget {
        let last = self.assignments.iter().rev().find(|(attribute, _)| attribute.key.text == key);
        match (last, self.own) {
            (Some((attribute, Owner::Alone)), _) => {
                AttributeTarget::Replace(attribute.value.span, attribute.value.form)
            }
            (None, Some(_)) => AttributeTarget::Inside,
            (Some((_, Owner::Shared)), _) | (None, None) => AttributeTarget::Behind,
        }
    }

    /// New attributes at the end of the node's own last list, in the way that list is written.
    fn inside_edits(&self, text: &str, added: &[(&str, String)]) -> Option<(Span, String)> {
        if added.is_empty() {
            return None;
        }
        let (node, lists) = self.own?;
        let written: Vec<String> = added.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let Some(list) = lists.last() else {
            let end = [&node.compass, &node.port]
                .into_iter()
                .flatten()
                .next()
                .map_or(node.id.span.end, |n| n.span.end);
            return Some((Span::new(end, end), format!(" [{}]", written.join(", "))));
        };
        let Some(last) = list.attributes.last() else {
            let open = list.span.start + 1;
            return Some((Span::new(open, open), written.join(", ")));
        };
        let commas = list.attributes.len() == 1 || list.attributes.iter().any(|a| a.separator.is_some());
        let one_per_line = text[list.span.start..last.key.span.start].contains('\n');
        let between = match (one_per_line, line_indent(text, last.key.span.start)) {
            (true, indent) => format!("{}{indent}", newline(text)),
            (false, _) => " ".to_owned(),
        };
        let comma = if commas { "," } else { "" };
        let end = last.separator.map_or(last.value.span.end, |at| at + 1);
        let first = if last.separator.is_some() { "" } else { comma };
        let joined = written.join(&format!("{comma}{between}"));
        Some((Span::new(end, end), format!("{first}{between}{joined}")))
    }
}

fn statement_behind(
    text: &str,
    document: &Document,
    node: &str,
    added: &[(&str, String)],
) -> Result<(Span, String), Error> {
    let close = document.body.span.end - 1;
    let id = quoted_id(node).ok_or_else(|| Error::Value(node.to_owned()))?;
    let written: Vec<String> = added.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let statement = format!("{id} [{}];", written.join(", "));
    let line_start = text[..close].rfind('\n').map_or(0, |newline| newline + 1);
    // In front of a brace on a line of its own the statement gets a line too, indented like the last one.
    if line_start > 0 && text[line_start..close].trim().is_empty() {
        let indent = document.body.statements.last().map_or_else(
            || "    ".to_owned(),
            |_| {
                let above = text[..line_start].trim_end();
                let start = above.rfind('\n').map_or(0, |newline| newline + 1);
                let indent = leading_blanks(&above[start..]);
                if start == 0 || indent.is_empty() { "    ".to_owned() } else { indent.to_owned() }
            },
        );
        return Ok((Span::new(line_start, line_start), format!("{indent}{statement}{}", newline(text))));
    }
    // A comment that runs to the end of the line cannot swallow it: the brace stands behind it on the same line.
    Ok((Span::new(close, close), format!(" {statement} ")))
}

fn apply(text: &str, mut edits: Vec<(Span, String)>) -> String {
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let mut changed = String::with_capacity(text.len() + 128);
    let mut at = 0;
    for (span, written) in edits {
        changed.push_str(&text[at..span.start]);
        changed.push_str(&written);
        at = span.end;
    }
    changed.push_str(&text[at..]);
    changed
}

fn parsed(text: &str) -> Result<(Document, Vec<Problem>), Error> {
    parser::parse(text).map_err(|problem| syntax(text, problem))
}

fn syntax(text: &str, problem: Problem) -> Error {
    Error::Syntax(Box::new(Diagnostic::new(text, problem)))
}

/// A value in quotes. Graphviz keeps backslashes as they are and undoes only `\"`, so a text that has a backslash in
/// front of a quote or at its end cannot be written.
fn quoted(value: &str) -> Option<String> {
    if value.chars().any(char::is_control) || value.contains('\\') {
        return None;
    }
    Some(format!("\"{}\"", value.replace('"', "\\\"")))
}

/// A node's id as it was read, written so that it is read the same again. Its backslashes come from a file, in which
/// they were followed by something; an escaped pair stays a pair.
fn quoted_id(id: &str) -> Option<String> {
    if is_bare(id) {
        return Some(id.to_owned());
    }
    let written = format!("\"{}\"", id.replace('"', "\\\""));
    let probe = format!("digraph {{ {written} }}");
    let (document, _) = parser::parse(&probe).ok()?;
    match document.body.statements.as_slice() {
        [Statement::Nodes { nodes, .. }] if nodes.len() == 1 && nodes[0].id.text == id => Some(written),
        _ => None,
    }
}

fn is_bare(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && super::lexer::Keyword::of(text).is_none()
}

fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        Some(_) | None => "\n",
    }
}

/// The blanks at the beginning of the line in which a byte stands.
fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    leading_blanks(&text[start..at])
}

fn leading_blanks(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}
