//! Editing: attributes into a user's file, everything else as it was.

use proptest::prelude::*;

use super::super::edit::{Error, Mark, fill_colour, mark, set_attributes};
use super::super::graph;
use super::super::run::NodeStatus;

fn set(text: &str, node: &str, key: &str, value: &str) -> String {
    set_attributes(text, node, &[(key, value.to_owned())]).expect("can be written")
}

#[test]
fn a_value_goes_where_it_belongs() {
    for (name, before, after) in [
        ("replaced", "digraph { a [status=\"pending\"] }", "digraph { a [status=\"active\"] }"),
        ("replaced, bare", "digraph { a [status=pending x=1] }", "digraph { a [status=active x=1] }"),
        (
            "replaced, the last one",
            "digraph { a [status=x]; a [status=y] }",
            "digraph { a [status=x]; a [status=active] }",
        ),
        ("added to a list", "digraph { a [x=1, y=2] }", "digraph { a [x=1, y=2, status=\"active\"] }"),
        ("added without commas", "digraph { a [x=1 y=2] }", "digraph { a [x=1 y=2 status=\"active\"] }"),
        ("behind a last comma", "digraph { a [x=1,] }", "digraph { a [x=1, status=\"active\"] }"),
        ("into an empty list", "digraph { a [] }", "digraph { a [status=\"active\"] }"),
        ("a new list", "digraph { a; }", "digraph { a [status=\"active\"]; }"),
        ("behind a port", "digraph { a:p:n }", "digraph { a:p:n [status=\"active\"] }"),
        ("a new statement", "digraph { a -> b }", "digraph { a -> b  a [status=\"active\"]; }"),
        (
            "a new line",
            "digraph {\n\t// first\n\ta -> b;\n}\n",
            "digraph {\n\t// first\n\ta -> b;\n\ta [status=\"active\"];\n}\n",
        ),
        (
            "one attribute to a line",
            "digraph {\n  a [\n    x=1  // why\n    y=2  // because\n  ];\n}",
            "digraph {\n  a [\n    x=1  // why\n    y=2\n    status=\"active\"  // because\n  ];\n}",
        ),
        (
            "with the file's line ends",
            "digraph {\r\n  a [\r\n    x=1,\r\n    y=2\r\n  ]\r\n}\r\n",
            "digraph {\r\n  a [\r\n    x=1,\r\n    y=2,\r\n    status=\"active\"\r\n  ]\r\n}\r\n",
        ),
        (
            "not for others",
            "digraph { a, b [status=x] }",
            "digraph { a, b [status=x]  a [status=\"active\"]; }",
        ),
        (
            "a default is left alone",
            "digraph { node [status=x] a [y=1] }",
            "digraph { node [status=x] a [y=1, status=\"active\"] }",
        ),
        (
            "in a subgraph",
            "digraph { subgraph cluster_x { a [status=x] } }",
            "digraph { subgraph cluster_x { a [status=active] } }",
        ),
        ("an end of an edge", "digraph { {a [status=x]} -> b }", "digraph { {a [status=active]} -> b }"),
    ] {
        assert_eq!(set(before, "a", "status", "active"), after, "{name}");
    }
}

#[test]
fn progress_is_drawn() {
    let text = "digraph {\n  node [style=rounded]\n  a [label=\"x\"] // a comment\n  b\n  a -> b\n}\n";
    let shown = Mark { status: Some(NodeStatus::Active), session: Some("dev-shop-3".into()), issue: Some(3) };
    assert_eq!(
        mark(text, "a", &shown).expect("can be written"),
        "digraph {\n  node [style=rounded]\n  a [label=\"x\", status=\"active\", fillcolor=\"lightblue\", \
         style=\"rounded,filled\", session=\"dev-shop-3\", issue=\"3\"] // a comment\n  b\n  a -> b\n}\n"
    );
    let again = Mark { status: Some(NodeStatus::Merged), ..Mark::default() };
    let twice = mark(&mark(text, "a", &shown).expect("once"), "a", &again).expect("twice");
    assert!(
        twice.contains("status=\"merged\", fillcolor=\"mediumaquamarine\", style=\"rounded,filled\""),
        "{twice}"
    );
    let colours: std::collections::BTreeSet<&str> = NodeStatus::ALL.map(fill_colour).into();
    assert_eq!(colours.len(), NodeStatus::ALL.len(), "states look different");
}

#[test]
fn what_cannot_be_written_is_refused() {
    assert_eq!(set_attributes("digraph { a }", "b", &[]), Err(Error::NoNode("b".into())));
    for value in ["back\\", "two\nlines", "\u{1b}[31m"] {
        let refused = set_attributes("digraph { a }", "a", &[("session", value.to_owned())]);
        assert_eq!(refused, Err(Error::Value("session".into())), "{value:?}");
    }
    assert!(matches!(set_attributes("digraph { a", "a", &[]), Err(Error::Syntax(_))));
    assert_eq!(
        set("digraph { a }", "a", "session", "say \"hi\""),
        "digraph { a [session=\"say \\\"hi\\\"\"] }"
    );
}

/// Pieces of files in every style, put together at random.
fn file() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("a"),
        Just("a [x=1]"),
        Just("a [status=old, x=\"[\"]"),
        Just("a [\n  x=1\n  y=2 // end\n]"),
        Just("a -> b -> {c a} [status=other]"),
        Just("a, c [status=shared]"),
        Just("node [status=default, style=bold]"),
        Just("subgraph s { a [z=1]; node [status=inner] d }"),
        Just("/* a [status=no] */"),
        Just("// a [status=no]\n"),
        Just("\"a\" [label=<x <b>y</b>>]"),
        Just("a [x=1] [status=\"two\"]"),
        Just("status=whole"),
        Just("\r\n"),
        Just("a:p"),
    ];
    proptest::collection::vec(piece, 0..8)
        .prop_map(|pieces| format!("digraph {{\n{}\na\n}}\n", pieces.join("\n")))
}

proptest! {
    #[test]
    fn an_edit_changes_one_value_and_keeps_every_byte(text in file()) {
        let before = graph(&text).expect("the pieces are good");
        let changed = set(&text, "a", "status", "active");
        let mut after = graph(&changed).expect("still good");
        let node = after.nodes.iter_mut().find(|n| n.id == "a").expect("still there");
        prop_assert_eq!(&node.attributes["status"].text, "active");
        let plain = |graph: &graph::Graph| -> Vec<(String, Vec<(String, String)>)> {
            graph.nodes.iter().map(|n| {
                let kept = n.attributes.iter().filter(|(k, _)| n.id != "a" || *k != "status");
                (n.id.clone(), kept.map(|(k, v)| (k.clone(), v.text.clone())).collect())
            }).collect()
        };
        prop_assert_eq!(plain(&before), plain(&after));
        prop_assert_eq!(before.edges.len(), after.edges.len());
        // Outside the one place that changed the file is the same, byte for byte.
        let same_start = text.bytes().zip(changed.bytes()).take_while(|(a, b)| a == b).count();
        let same_end = text.bytes().rev().zip(changed.bytes().rev()).take_while(|(a, b)| a == b).count();
        prop_assert!(same_start + same_end + 16 >= text.len(), "{} → {}", text, changed);
        prop_assert_eq!(set(&changed, "a", "status", "active"), changed, "twice is once");
    }
}
