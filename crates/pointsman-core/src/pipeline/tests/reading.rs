//! Reading: what Graphviz reads of odd files, places of mistakes, limits.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::graph::{Attributes, Graph};
use super::super::{MAX_BYTES, MAX_DEPTH, graph, text_of};

macro_rules! odd {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("odd/", $name, ".dot")))),*]
    };
}

/// Files that are hard to read. What Graphviz makes of them is in `odd/graphviz.json`; `scripts/graphviz-facts` writes it.
const ODD: [(&str, &str); 29] = odd![
    "attributes_first",
    "bare_dash",
    "comments",
    "dangling",
    "defaults",
    "empty",
    "empty_values",
    "garbage",
    "html",
    "keys",
    "keyword_node",
    "keywords",
    "lists",
    "missing_value",
    "no_body",
    "numerals",
    "one_line",
    "plus_bare",
    "ports",
    "quoted_ids",
    "separators",
    "strict",
    "subgraph_without_body",
    "subgraphs",
    "two_semicolons",
    "unclosed",
    "unclosed_string",
    "undirected_edge",
    "unicode",
];

#[test]
fn odd_files_are_read_as_graphviz_reads_them() {
    let recorded: BTreeMap<String, Value> =
        serde_json::from_str(include_str!("odd/graphviz.json")).expect("the script writes JSON");
    for (name, text) in ODD {
        let ours = graph(text).map_or_else(|_| json!({ "error": true }), |graph| facts(&graph));
        assert_eq!(ours, recorded[name], "{name}");
    }
    // Graphviz reads undirected graphs too; a pipeline is none.
    let undirected = graph(include_str!("odd/undirected.dot")).expect_err("undirected");
    assert_eq!((undirected.line, undirected.column, undirected.rule.as_str()), (1, 1, "undirected"));
    assert_eq!(recorded.len(), ODD.len() + 1, "a file without a test");
}

/// The same facts that the script keeps of Graphviz's reading.
fn facts(graph: &Graph) -> Value {
    let attributes = |attributes: &Attributes| -> BTreeMap<String, String> {
        let kept = attributes.iter().filter(|(key, value)| !value.text.is_empty() && *key != "key");
        kept.map(|(key, value)| (key.clone(), value.text.clone())).collect()
    };
    let name = |place: &usize| graph.nodes[*place].id.clone();
    let mut edges: Vec<Value> = graph
        .edges
        .iter()
        .map(|edge| {
            let port = |port: &Option<String>| port.clone().unwrap_or_default();
            json!([
                name(&edge.tail),
                name(&edge.head),
                port(&edge.tail_port),
                port(&edge.head_port),
                attributes(&edge.attributes)
            ])
        })
        .collect();
    edges.sort_by_key(python_json);
    let mut subgraphs: Vec<Vec<String>> = graph
        .subgraphs
        .iter()
        .map(|group| {
            let mut names: Vec<String> = group.nodes.iter().map(name).collect();
            names.sort();
            names
        })
        .collect();
    subgraphs.sort();
    json!({
        "name": graph.name.clone().unwrap_or_default(),
        "strict": graph.strict,
        "attributes": attributes(&graph.attributes),
        "nodes": graph.nodes.iter().map(|n| (n.id.clone(), attributes(&n.attributes))).collect::<BTreeMap<_, _>>(),
        "edges": edges,
        "subgraphs": subgraphs,
    })
}

/// The order in which the script sorts edges: as Python writes JSON.
fn python_json(value: &Value) -> String {
    let text = match value {
        Value::Array(items) => format!("[{}]", items.iter().map(python_json).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let items: Vec<String> =
                map.iter().map(|(k, v)| format!("{}: {}", json!(k), python_json(v))).collect();
            format!("{{{}}}", items.join(", "))
        }
        other => other.to_string(),
    };
    text.chars()
        .map(|c| if c.is_ascii() { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) })
        .collect()
}

#[test]
fn mistakes_have_their_place() {
    for (text, line, column, said) in [
        ("", 1, 1, "expected `digraph`, found end of file"),
        ("graph {}", 1, 1, "undirected"),
        ("digraph {\n  a -- b\n}", 2, 5, "`--` is an edge of an undirected graph"),
        ("digraph {\n  a ->\n}", 3, 1, "expected node or subgraph, found `}`"),
        ("digraph {\n  a [label]\n}", 2, 11, "expected `=`, found `]`"),
        ("digraph {\n  a [label=\n}", 3, 1, "expected a value"),
        ("digraph {\n  ä [x=\"y\n}", 2, 8, "this quoted text never ends"),
        ("digraph {\n  a [x=<y\n}", 2, 8, "this HTML text never ends"),
        ("digraph {\n  /* a\n}", 2, 3, "this comment never ends"),
        ("digraph {\n  subgraph {\n}", 1, 9, "this `{` is never closed"),
        ("digraph {\n  a [x=1\n}", 3, 1, "expected attribute or `]`, found `}`"),
        ("digraph { a } digraph { b }", 1, 15, "a second graph begins here"),
        ("digraph { a $ b }", 1, 13, "`$` has no meaning here"),
        ("digraph { a \u{7} }", 1, 13, "U+0007 has no meaning here"),
        ("digraph { a \0 }", 1, 13, "a NUL byte"),
        ("digraph { node -> b }", 1, 16, "expected `[`, found `->`"),
        ("digraph { a -> node }", 1, 16, "the keyword `node`"),
        ("digraph { \"a\" + b }", 1, 17, "expected quoted text"),
    ] {
        let found = graph(text).expect_err(text);
        assert_eq!((found.line, found.column), (line, column), "{text:?}: {found}");
        assert!(found.message.contains(said), "{text:?}: {found}");
    }
}

#[test]
fn line_ends_marks_and_bytes_do_not_confuse() {
    let read =
        graph("\u{feff}digraph {\r\n  a -> b\r\n\u{feff}  c [x=\"1\\\r\n2\"]\r\n}\r\n").expect("reads");
    assert_eq!(read.nodes.iter().map(|n| n.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(read.nodes[2].attributes["x"].text, "12", "a line that goes on");
    let latin = b"digraph {\n  a [label=\"Stra\xdfe\"]\n}";
    let wrong = text_of(latin).expect_err("not UTF-8");
    assert_eq!((wrong.line, wrong.column, wrong.rule.as_str()), (2, 17, "encoding"));
    assert!(wrong.message.contains("0xDF"), "{wrong}");
}

#[test]
fn words_that_graphviz_splits_are_taken_with_a_warning() {
    let report = super::super::check(
        "digraph { s [shape=Mdiamond] e [shape=Msquare] a [timeout=900s, type=wait.human, human.default_choice=e] s->a->e }",
    );
    let warned: Vec<&str> =
        report.diagnostics.iter().filter(|d| d.rule == "graphviz").map(|d| d.message.as_str()).collect();
    assert_eq!(warned.len(), 3, "{:?}", report.diagnostics);
    assert!(report.pipeline.is_some(), "{:?}", report.diagnostics);
    // Where Graphviz reads two nodes, so do we.
    let two = graph("digraph { 1a -> b }").expect("reads");
    assert_eq!(two.nodes.iter().map(|n| n.id.as_str()).collect::<Vec<_>>(), ["1", "a", "b"]);
}

#[test]
fn limits_are_told_and_nothing_overflows() {
    let deep = |depth: usize| format!("digraph {}a{}", "{".repeat(depth + 1), "}".repeat(depth + 1));
    assert!(graph(&deep(MAX_DEPTH)).is_ok());
    assert_eq!(graph(&deep(MAX_DEPTH + 1)).expect_err("too deep").rule, "size");
    assert_eq!(graph(&deep(200_000)).expect_err("far too deep").rule, "size");
    assert_eq!(graph(&" ".repeat(MAX_BYTES + 1)).expect_err("too long").rule, "size");
    assert!(graph(&format!("digraph {{ a [x=<{}{}>] }}", "<".repeat(200_000), ">".repeat(200_000))).is_ok());
    let many: String = (0..3_000).map(|n| format!("n{n};")).collect();
    assert_eq!(graph(&format!("digraph {{ {many} }}")).expect_err("too many nodes").rule, "size");
    let some: String = (0..500).map(|n| format!("n{n};")).collect();
    let cross = format!("digraph {{ {{ {some} }} -> {{ {some} }} }}");
    assert_eq!(graph(&cross).expect_err("too many edges").rule, "size");
    // Every edge has a copy of its defaults, so 23 kB would become gigabytes.
    let (defaults, nodes): (String, String) =
        ((0..3_000).map(|n| format!("x{n}=1 ")).collect(), (0..90).map(|n| format!("n{n};")).collect());
    let copied = format!("digraph {{ edge [{defaults}] {{ {nodes} }} -> {{ {nodes} }} }}");
    assert_eq!(graph(&copied).expect_err("too many attributes").rule, "size");
    let long = format!("digraph {{ node [prompt=\"{}\"] {some} }}", "x".repeat(100_000));
    assert_eq!(graph(&long).expect_err("too long attributes").rule, "size");
    assert_eq!(
        graph(&format!("digraph {{ {} }}", "x".repeat(501))).expect_err("too long a name").rule,
        "size"
    );
    let goals =
        format!("digraph {{ goal=\"{}\"; a [prompt=\"{}\"] }}", "g".repeat(10_000), "$goal".repeat(10_000));
    let report = super::super::check(&goals);
    assert!(report.diagnostics.iter().any(|found| found.rule == "size"), "{:?}", report.diagnostics.len());
    let chain: Vec<String> = (0..1_900).map(|n| format!("n{n}")).collect();
    super::super::check(&format!("digraph {{ {} }}", chain.join(" ->\n")));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}") {
        super::super::check(&text);
        super::super::check(&format!("digraph {{ {text} }}"));
    }

    #[test]
    fn no_words_make_it_panic(words in proptest::collection::vec(prop_oneof![
        Just("digraph"), Just("{"), Just("}"), Just("["), Just("]"), Just("->"), Just("a"), Just("b"), Just("="), Just(";"),
        Just(","), Just(":"), Just("\"q\""), Just("<h>"), Just("+"), Just("node"), Just("subgraph"), Just("shape"),
        Just("diamond"), Just("condition"), Just("label"), Just("1"), Just("/*"), Just("*/"), Just("\n"), Just("é"),
    ], 0..40)) {
        super::super::check(&words.join(" "));
        super::super::check(&format!("digraph {{ {} }}", words.join(" ")));
    }
}
