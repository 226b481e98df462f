//! Drawing: nothing overlaps, everything is there.

use proptest::prelude::*;

use super::super::draw::{Progress, Size, TooLarge, lay_out, svg, terminal};
use super::super::run::NodeStatus;
use super::{ATTRACTOR, HARNESS, pipeline};

#[test]
fn a_small_plan_in_a_terminal() {
    let plan = pipeline(
        "digraph { s [shape=Mdiamond label=Start] e [shape=Msquare label=End] a [label=\"日本\\nwork\" prompt=x] \
         q [shape=hexagon label=Good] s -> a -> q q -> e [label=Yes] q -> a [label=No] }",
    );
    let drawn = terminal(&plan, &Progress::from([("a".to_owned(), NodeStatus::Active)])).expect("small");
    insta::assert_snapshot!(drawn);
}

#[test]
fn every_label_is_in_both_pictures() {
    for text in [ATTRACTOR, HARNESS] {
        let plan = pipeline(text);
        let progress = Progress::from([(plan.nodes[2].id.clone(), NodeStatus::Failed)]);
        let (drawn, picture) =
            (terminal(&plan, &progress).expect("small"), svg(&plan, &progress).expect("small"));
        for line in plan.nodes.iter().flat_map(|node| node.label.lines()) {
            assert!(drawn.contains(line), "{line} in\n{drawn}");
            assert!(picture.contains(&line.replace('"', "&quot;")), "{line}");
        }
        assert!(drawn.contains("failed") && picture.contains("lightcoral"));
        assert_eq!(drawn.matches('▼').count() + drawn.matches('▲').count(), plan.edges.len(), "\n{drawn}");
        assert_eq!(picture.matches("<polyline").count(), plan.edges.len());
    }
}

#[test]
fn outside_text_cannot_leave_the_picture() {
    let plan = pipeline(
        "digraph { s [shape=Mdiamond] e [shape=Msquare] a [label=\"<script>alert(1)</script>&\u{1b}[31m\"] \
         s -> a; a -> e [label=\"</text>\"] }",
    );
    let picture = svg(&plan, &Progress::new()).expect("small");
    assert!(
        !picture.contains("<script") && !picture.contains('\u{1b}') && !picture.contains("</text></text>"),
        "{picture}"
    );
    assert!(!terminal(&plan, &Progress::new()).expect("small").contains('\u{1b}'));
}

/// 600 ranks and edges from the first to the last of them: a file of 50 kB would become a grid of hundreds of megabytes.
#[test]
fn a_plan_with_very_many_long_edges_is_not_drawn() {
    let sizes = vec![Size { width: 4, height: 3 }; 600];
    let chain = (1..600).map(|node| (node - 1, node, 0));
    assert!(lay_out(&sizes, &chain.clone().collect::<Vec<_>>()).is_ok());
    let edges: Vec<_> = chain.chain((0..2_000).map(|n| (n % 100, 599 - n % 50, 0))).collect();
    assert_eq!(lay_out(&sizes, &edges), Err(TooLarge));
    // Few ranks, but wider and higher than anybody can look at.
    let wide = vec![Size { width: 48, height: 8 }; 400];
    let crossing: Vec<_> =
        (0..200).flat_map(|n| (0..15).map(move |m| (n, 200 + (n * 7 + m * 31) % 200, 0))).collect();
    assert_eq!(lay_out(&wide, &crossing), Err(TooLarge));
}

fn graphs() -> impl Strategy<Value = (Vec<Size>, Vec<(usize, usize, usize)>)> {
    (1_usize..14).prop_flat_map(|count| {
        let sizes = proptest::collection::vec((1_usize..20, 1_usize..5), count)
            .prop_map(|sizes| sizes.into_iter().map(|(width, height)| Size { width, height }).collect());
        let edges = proptest::collection::vec((0..count, 0..count, 0_usize..9), 0..24);
        (sizes, edges)
    })
}

proptest! {
    #[test]
    fn nothing_overlaps((sizes, edges) in graphs()) {
        let layout = lay_out(&sizes, &edges).expect("small");
        let labels: Vec<_> = layout.roads.iter().filter_map(|road| road.label).collect();
        let places: Vec<_> = layout.nodes.iter().copied().chain(labels.iter().copied()).collect();
        for (at, place) in places.iter().enumerate() {
            prop_assert!(place.x + place.width <= layout.width && place.y + place.height <= layout.height);
            for other in &places[at + 1..] {
                prop_assert!(!place.overlaps(other), "{:?} and {:?}", place, other);
            }
        }
        for (place, size) in layout.nodes.iter().zip(&sizes) {
            prop_assert!(place.width >= size.width && place.height == size.height);
        }
        for ((tail, head, _), road) in edges.iter().zip(&layout.roads) {
            prop_assert_eq!(road.points.is_empty(), tail == head);
            // Roads are made of straight pieces, begin at their tail and end at their head.
            for pair in road.points.windows(2) {
                prop_assert!(pair[0].0 == pair[1].0 || pair[0].1 == pair[1].1);
            }
            if let (Some(first), Some(last)) = (road.points.first(), road.points.last()) {
                for (point, node) in [(first, tail), (last, head)] {
                    let place = layout.nodes[*node];
                    prop_assert!(point.0 >= place.x && point.0 < place.x + place.width);
                    prop_assert!(point.1 == place.y || point.1 == place.y + place.height);
                }
            }
            // No edge runs through a node.
            for pair in road.points.windows(2) {
                for place in &layout.nodes {
                    let (left, right) = (pair[0].0.min(pair[1].0), pair[0].0.max(pair[1].0));
                    let (top, bottom) = (pair[0].1.min(pair[1].1), pair[0].1.max(pair[1].1));
                    let inside = left < place.x + place.width && right >= place.x && top < place.y + place.height && bottom > place.y;
                    prop_assert!(!inside, "{:?} runs through {:?}", pair, place);
                }
            }
        }
    }
}
