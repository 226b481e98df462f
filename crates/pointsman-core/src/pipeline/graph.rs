//! The graph that a file describes, as Graphviz builds it: defaults applied, subgraphs entered, edges spread over the
//! nodes of their ends, edges of a `strict` graph merged.

use std::collections::{BTreeMap, HashMap};

use super::diagnostic::Problem;
use super::syntax::{
    AttributeList, Body, Document, End, Form, Kind, Name, NodeRef, Span, Statement, Subgraph,
};
use crate::words::pipeline::Sentence;

/// How many nodes a pipeline may have.
pub const MAX_NODES: usize = 2_000;

/// How many edges a pipeline may have. `{a b} -> {c d}` makes four, so a short file can ask for very many.
pub const MAX_EDGES: usize = 10_000;

/// How many bytes a name may have. Findings name nodes, and there can be many findings.
pub const MAX_NAME_BYTES: usize = 500;

/// How many bytes the attributes of all nodes and edges may have together, inherited ones included: every thing has a
/// copy of its defaults, so a short file can ask for very much.
pub const MAX_ATTRIBUTE_BYTES: usize = 8 << 20;

/// The bytes that an attribute takes beside its name and its value.
const ATTRIBUTE_BYTES: usize = 100;

/// Attributes of one thing, by name.
pub type Attributes = BTreeMap<String, Value>;

/// The value of an attribute, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub text: String,
    pub form: Form,
    pub span: Span,
    /// Where the attribute's name stands.
    pub key_span: Span,
    /// Whether it was written for this very thing, and not inherited from a default.
    pub own: bool,
}

/// A directed graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    pub name: Option<String>,
    pub strict: bool,
    pub attributes: Attributes,
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
    pub subgraphs: Vec<Group>,
    /// The graph's name, or its first brace.
    pub span: Span,
}

/// A node with its own and its inherited attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    pub id: String,
    /// Where it is declared, else where it is first named.
    pub span: Span,
    /// Whether it has a statement of its own and is not only an end of edges.
    pub declared: bool,
    pub attributes: Attributes,
}

/// An edge between two nodes, with its own and its inherited attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEdge {
    /// Index of the node it leaves.
    pub tail: usize,
    /// Index of the node it enters.
    pub head: usize,
    pub tail_port: Option<String>,
    pub head_port: Option<String>,
    /// The two ends, as far as they stand together.
    pub span: Span,
    pub attributes: Attributes,
}

/// A subgraph: its own attributes and its nodes, those of subgraphs in it included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub name: Option<String>,
    pub parent: Option<usize>,
    pub attributes: Attributes,
    pub nodes: Vec<usize>,
}

impl Graph {
    /// The node with this id.
    pub fn node(&self, id: &str) -> Option<&GraphNode> {
        self.nodes.iter().find(|node| node.id == id)
    }
}

/// Builds the graph of a syntax tree.
pub(super) fn build(document: &Document) -> Result<Graph, Problem> {
    let name = document.name.as_ref();
    let graph = Graph {
        name: name.map(|name| name.text.clone()),
        strict: document.strict,
        span: name
            .map_or(Span::new(document.body.span.start, document.body.span.start + 1), |name| name.span),
        ..Graph::default()
    };
    if let Some(name) = name {
        check_name(name)?;
    }
    let mut builder = Builder {
        graph,
        attribute_bytes: 0,
        node_index: HashMap::new(),
        edge_index: HashMap::new(),
        group_index: HashMap::new(),
        defaults: vec![Defaults::default()],
        members: Vec::new(),
    };
    builder.body(&document.body, None)?;
    Ok(builder.finish())
}

/// Defaults of one subgraph, or of the whole graph at index 0. What is not set here is looked up in the parent.
#[derive(Default)]
struct Defaults {
    nodes: Attributes,
    edges: Attributes,
}

struct Builder {
    graph: Graph,
    /// The size of all attributes that nodes and edges were given so far.
    attribute_bytes: usize,
    node_index: HashMap<String, usize>,
    /// Edges that a later statement may name again: by their ends in a strict graph, else by their key.
    edge_index: HashMap<(usize, usize, Option<String>), usize>,
    group_index: HashMap<(Option<usize>, String), usize>,
    /// Index 0 is the graph, `group + 1` a subgraph.
    defaults: Vec<Defaults>,
    /// Which nodes are in a subgraph, for a look-up that stays fast.
    members: Vec<std::collections::HashSet<usize>>,
}

/// Ends of an edge statement: nodes with their ports.
type Ends = Vec<(usize, Option<String>, Span)>;

impl Builder {
    fn body(&mut self, body: &Body, within: Option<usize>) -> Result<(), Problem> {
        for statement in &body.statements {
            match statement {
                Statement::Defaults { of, lists } => self.set_defaults(*of, lists, within),
                Statement::Assignment(attribute) => {
                    let value = value(&attribute.key, &attribute.value);
                    self.graph_attributes(within).insert(attribute.key.text.clone(), value);
                }
                Statement::Nodes { nodes, lists } => {
                    for node in nodes {
                        let index = self.enter(&node.id, within)?;
                        self.count(size_of(lists), node.id.span)?;
                        let known = &mut self.graph.nodes[index];
                        if !known.declared {
                            (known.declared, known.span) = (true, node.id.span);
                        }
                        assign(&mut known.attributes, lists);
                    }
                }
                Statement::Edges { ends, lists } => self.edges(ends, lists, within)?,
                Statement::Subgraph(subgraph) => {
                    self.subgraph(subgraph, within)?;
                }
            }
        }
        Ok(())
    }

    fn set_defaults(&mut self, of: Kind, lists: &[AttributeList], within: Option<usize>) {
        let scope = &mut self.defaults[within.map_or(0, |group| group + 1)];
        match of {
            Kind::Graph => assign(self.graph_attributes(within), lists),
            Kind::Node => assign(&mut scope.nodes, lists),
            Kind::Edge => assign(&mut scope.edges, lists),
        }
    }

    fn graph_attributes(&mut self, within: Option<usize>) -> &mut Attributes {
        match within {
            None => &mut self.graph.attributes,
            Some(group) => &mut self.graph.subgraphs[group].attributes,
        }
    }

    /// What a new node or edge inherits here: the nearest default wins.
    fn inherited(&self, within: Option<usize>, of: impl Fn(&Defaults) -> &Attributes) -> Attributes {
        let mut inherited = Attributes::new();
        let mut scope = within;
        loop {
            for (key, value) in of(&self.defaults[scope.map_or(0, |group| group + 1)]) {
                inherited.entry(key.clone()).or_insert_with(|| Value { own: false, ..value.clone() });
            }
            match scope {
                Some(group) => scope = self.graph.subgraphs[group].parent,
                None => return inherited,
            }
        }
    }

    /// Counts attributes before they are copied.
    fn count(&mut self, bytes: usize, span: Span) -> Result<(), Problem> {
        self.attribute_bytes = self.attribute_bytes.saturating_add(bytes);
        if self.attribute_bytes > MAX_ATTRIBUTE_BYTES {
            let message = Sentence::TooManyAttributes(MAX_ATTRIBUTE_BYTES.to_string());
            return Err(Problem::new(span, "size", message));
        }
        Ok(())
    }

    /// The node of this name, made if it is new, and now in this subgraph and those around it.
    fn enter(&mut self, name: &Name, within: Option<usize>) -> Result<usize, Problem> {
        let index = match self.node_index.get(&name.text) {
            Some(index) => *index,
            None => {
                let index = self.graph.nodes.len();
                if index == MAX_NODES {
                    let message = Sentence::TooManyNodes(MAX_NODES.to_string());
                    return Err(Problem::new(name.span, "size", message));
                }
                check_name(name)?;
                let attributes = self.inherited(within, |defaults| &defaults.nodes);
                self.count(attributes.iter().map(|(key, value)| bytes(key, &value.text)).sum(), name.span)?;
                let id = name.text.clone();
                self.graph.nodes.push(GraphNode { id, span: name.span, declared: false, attributes });
                self.node_index.insert(name.text.clone(), index);
                index
            }
        };
        let mut scope = within;
        while let Some(group) = scope {
            if self.members[group].insert(index) {
                self.graph.subgraphs[group].nodes.push(index);
            }
            scope = self.graph.subgraphs[group].parent;
        }
        Ok(index)
    }

    fn subgraph(&mut self, subgraph: &Subgraph, within: Option<usize>) -> Result<usize, Problem> {
        let name = subgraph.name.as_ref().map(|name| name.text.clone());
        // A name that was used before in the same place means the same subgraph, which goes on.
        let known = name.as_ref().and_then(|name| self.group_index.get(&(within, name.clone())).copied());
        let group = known.unwrap_or_else(|| {
            let group = self.graph.subgraphs.len();
            self.graph.subgraphs.push(Group { name: name.clone(), parent: within, ..Group::default() });
            self.defaults.push(Defaults::default());
            self.members.push(std::collections::HashSet::new());
            if let Some(name) = name {
                self.group_index.insert((within, name), group);
            }
            group
        });
        self.body(&subgraph.body, Some(group))?;
        Ok(group)
    }

    fn edges(&mut self, ends: &[End], lists: &[AttributeList], within: Option<usize>) -> Result<(), Problem> {
        let mut entered: Vec<Ends> = Vec::with_capacity(ends.len());
        for end in ends {
            entered.push(match end {
                End::Nodes(nodes) => {
                    let mut list = Ends::new();
                    for node in nodes {
                        list.push((self.enter(&node.id, within)?, port(node), node.id.span));
                    }
                    list
                }
                End::Subgraph(subgraph) => {
                    let group = self.subgraph(subgraph, within)?;
                    let nodes = &self.graph.subgraphs[group].nodes;
                    nodes.iter().map(|node| (*node, None, subgraph.span)).collect()
                }
            });
        }
        for pair in entered.windows(2) {
            for tail in &pair[0] {
                for head in &pair[1] {
                    self.edge(tail, head, lists, within)?;
                }
            }
        }
        Ok(())
    }

    fn edge(
        &mut self,
        tail: &(usize, Option<String>, Span),
        head: &(usize, Option<String>, Span),
        lists: &[AttributeList],
        within: Option<usize>,
    ) -> Result<(), Problem> {
        let key = lists.iter().flat_map(|list| &list.attributes).rev().find(|a| a.key.text == "key");
        let key = key.map(|attribute| attribute.value.text.clone());
        let named = if self.graph.strict { Some(None) } else { key.map(Some) };
        let known = named.clone().and_then(|key| self.edge_index.get(&(tail.0, head.0, key)).copied());
        let span = tail.2.to(head.2);
        self.count(size_of(lists), span)?;
        if let Some(index) = known {
            assign(&mut self.graph.edges[index].attributes, lists);
            return Ok(());
        }
        let index = self.graph.edges.len();
        if index == MAX_EDGES {
            return Err(Problem::new(
                span,
                "size",
                Sentence::TooManyEdges(MAX_EDGES.to_string()).to_string(),
            ));
        }
        let mut attributes = self.inherited(within, |defaults| &defaults.edges);
        self.count(attributes.iter().map(|(key, value)| bytes(key, &value.text)).sum(), span)?;
        assign(&mut attributes, lists);
        if let Some(key) = named {
            self.edge_index.insert((tail.0, head.0, key), index);
        }
        let (tail_port, head_port) = (tail.1.clone(), head.1.clone());
        self.graph.edges.push(GraphEdge {
            tail: tail.0,
            head: head.0,
            tail_port,
            head_port,
            span,
            attributes,
        });
        Ok(())
    }

    fn finish(self) -> Graph {
        self.graph
    }
}

fn check_name(name: &Name) -> Result<(), Problem> {
    if name.text.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    Err(Problem::new(name.span, "size", Sentence::NameTooLong(MAX_NAME_BYTES.to_string())))
}

fn size_of(lists: &[AttributeList]) -> usize {
    let attributes = lists.iter().flat_map(|list| &list.attributes);
    attributes.map(|attribute| bytes(&attribute.key.text, &attribute.value.text)).sum()
}

fn bytes(key: &str, value: &str) -> usize {
    key.len() + value.len() + ATTRIBUTE_BYTES
}

fn assign(attributes: &mut Attributes, lists: &[AttributeList]) {
    for attribute in lists.iter().flat_map(|list| &list.attributes) {
        attributes.insert(attribute.key.text.clone(), value(&attribute.key, &attribute.value));
    }
}

fn value(key: &Name, value: &Name) -> Value {
    Value { text: value.text.clone(), form: value.form, span: value.span, key_span: key.span, own: true }
}

fn port(node: &NodeRef) -> Option<String> {
    let port = &node.port.as_ref()?.text;
    Some(match &node.compass {
        Some(compass) => format!("{port}:{}", compass.text),
        None => port.clone(),
    })
}
