//! Tables and properties for `dependencies`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{cycle_through, cycles, parse};

#[track_caller]
fn check(body: &str, expected: &[u64]) {
    assert_eq!(parse(body), expected.iter().copied().collect::<BTreeSet<_>>(), "{body:?}");
    let crlf = body.replace('\n', "\r\n");
    assert_eq!(parse(&crlf), expected.iter().copied().collect::<BTreeSet<_>>(), "{crlf:?}");
}

#[test]
fn sections_list_dependencies() {
    check("## Dependencies\n- #42\n- #55\n", &[42, 55]);
    check("## Depends on\n#3 #4, (#5) [#6](http://x)\n", &[3, 4, 5, 6]);
    check("## Blocked by\n- [ ] #7\n- [x] #8\n", &[7, 8]);
    check("# DEPENDENCIES:\n#1\n", &[1]);
    check("###### depends ON ##\n#1\n", &[1]);
    check("## **Blocked by:**\n\ntext\n\n* #9.\n", &[9]);
    check("Intro\n\n## Dependencies\n\n#1\n\n### Details\n#2\n", &[1]);
    check("## Dependencies\n#1\n## Related\n#2\n## Dependencies\n#3", &[1, 3]);
    check("   ## Dependencies\n#1", &[1]);
}

#[test]
fn other_sections_only_mention() {
    check("## Related\n- #2\n", &[]);
    check("See #3 and #4.\n", &[]);
    check("## Dependencies of others\n#1\n", &[]);
    check("##Dependencies\n#1\n", &[]);
    check("####### Dependencies\n#1\n", &[]);
    check("    ## Dependencies\n#1\n", &[]);
    check("Dependencies\n#1\n", &[]);
    check("", &[]);
}

#[test]
fn phrases_count_anywhere_but_in_code() {
    check("This depends on #12.", &[12]);
    check("Blocked by #3", &[3]);
    check("DEPENDS ON: #4", &[4]);
    check("**Depends on:** #5", &[5]);
    check("**Blocked by**: #5", &[5]);
    check("depends on #1, #2 and #3, not on #4", &[1, 2, 3]);
    check("depends on #1, #2, and #3; see #4", &[1, 2, 3]);
    check("blocked by #1 & #2", &[1, 2]);
    check("blocked by #1 #2", &[1, 2]);
    check("depends on\n#6", &[6]);
    check("depends on #1,\n#2\nand #3", &[1, 2, 3]);
    check("depends on (#6)", &[6]);
    check("depends on [#6](http://x/6)", &[6]);
    check("## Related\n#2, which is blocked by #1\n", &[1]);
    check("## Blocked by #5\n#6\n", &[5]);
    check("depends on #1 and blocked by #2", &[1, 2]);
}

#[test]
fn what_looks_like_a_phrase_is_none() {
    check("depends on\n\n#6 is another matter", &[]);
    check("depends on the weather, see #6", &[]);
    check("undepends on #6", &[]);
    check("depends upon #6", &[]);
    check("depends on owner/repo#5", &[]);
    check("depends on #12abc", &[]);
    check("depends on #12_3", &[]);
    check("depends on #1, #2x", &[1]);
    check("depends on #", &[]);
    check("depends on `x` #5", &[]);
}

#[test]
fn references_are_local_and_sane() {
    check("## Dependencies\nowner/repo#5 repo#6 http://x/y#7 &#123; \\#8 ##9 #12abc #1é #10-rc", &[10]);
    check(
        "## Dependencies\n#0 #00 #4294967295 #4294967296 #99999999999999999999999 #007",
        &[7, 4_294_967_295],
    );
}

#[test]
fn code_is_not_read() {
    check("```\n## Dependencies\n#1\n```\n#2", &[]);
    check("~~~ text\ndepends on #1\n~~~\ndepends on #2", &[2]);
    check("````\n```\ndepends on #1\n```\n````\ndepends on #2", &[2]);
    check("```\ndepends on #1\n~~~\ndepends on #2\n``` \ndepends on #3", &[3]);
    check("```\ndepends on #1\n``` no end\ndepends on #2", &[]);
    check("- item\n\n      ```sh\n      depends on #1\n      ```\n", &[]);
    check("``` `not a fence\ndepends on #1", &[1]);
    check("write `depends on #1` in the body", &[]);
    check("``depends ` on #1`` and depends on #2", &[2]);
    check("a stray ` and depends on #1", &[1]);
    check("\\`depends on #1\\`", &[1]);
    check("## Dependencies\n- #1 (not `#2`)\n```\n#3\n```\n- #4\n", &[1, 4]);
}

#[test]
fn a_megabyte_is_read_in_linear_time() {
    let growing: String = (1..1400).map(|n| "`".repeat(n) + " ").collect();
    let bodies = [
        "depends on #1, ".repeat(70_000),
        "depends on ".repeat(95_000),
        "depends on #1".to_owned() + &", #2".repeat(250_000),
        "`".repeat(1 << 20),
        "` ``".repeat(1 << 18),
        growing,
        "#".repeat(1 << 20),
        "## Dependencies\n".repeat(1 << 16),
        "## Dependencies\n".to_owned() + &"#1 ".repeat(350_000),
        " \n".repeat(1 << 19),
        "depends on".to_owned() + &" ".repeat(1 << 20),
        "\u{1b}\u{0}é".repeat(1 << 18),
    ];
    for body in bodies {
        let start = Instant::now();
        parse(&body);
        // A quadratic reading would take minutes; the bound is generous for a busy machine.
        assert!(start.elapsed() < Duration::from_secs(20), "{:.40}", body);
    }
}

fn graph(edges: &[(u64, &[u64])]) -> BTreeMap<u64, BTreeSet<u64>> {
    edges.iter().map(|(from, to)| (*from, to.iter().copied().collect())).collect()
}

#[test]
fn cycles_are_found_and_named() {
    let g =
        graph(&[(1, &[2]), (2, &[3]), (3, &[1, 4]), (4, &[]), (5, &[5]), (6, &[1]), (8, &[7]), (7, &[8])]);
    assert_eq!(cycle_through(&g, 1), Some(vec![1, 2, 3]));
    assert_eq!(cycle_through(&g, 3), Some(vec![3, 1, 2]));
    assert_eq!(cycle_through(&g, 5), Some(vec![5]));
    for outside in [4, 6, 99] {
        assert_eq!(cycle_through(&g, outside), None);
    }
    assert_eq!(cycles(&g), vec![vec![1, 2, 3], vec![5], vec![7, 8]]);
    assert_eq!(cycles(&graph(&[(1, &[2, 3]), (2, &[3])])), Vec::<Vec<u64>>::new());
}

#[test]
fn a_very_long_chain_does_not_exhaust_the_stack() {
    let long: u64 = 200_000;
    let ring: BTreeMap<u64, BTreeSet<u64>> =
        (0..long).map(|n| (n, BTreeSet::from([(n + 1) % long]))).collect();
    assert_eq!(cycles(&ring).len(), 1);
    assert_eq!(cycle_through(&ring, 7).map(|c| c.len()), Some(200_000));
}

fn graphs() -> impl Strategy<Value = BTreeMap<u64, BTreeSet<u64>>> {
    prop::collection::btree_map(0u64..9, prop::collection::btree_set(0u64..9, 0..4), 0..9)
}

/// Everything that `from` waits for, directly or not.
fn reachable(graph: &BTreeMap<u64, BTreeSet<u64>>, from: u64) -> BTreeSet<u64> {
    let mut seen = BTreeSet::new();
    let mut todo = vec![from];
    while let Some(node) = todo.pop() {
        todo.extend(graph.get(&node).into_iter().flatten().filter(|next| seen.insert(**next)));
    }
    seen
}

fn is_cycle(graph: &BTreeMap<u64, BTreeSet<u64>>, cycle: &[u64]) -> bool {
    let distinct = cycle.iter().collect::<BTreeSet<_>>().len() == cycle.len();
    let next = cycle.iter().cycle().skip(1);
    distinct && cycle.iter().zip(next).all(|(a, b)| graph.get(a).is_some_and(|to| to.contains(b)))
}

#[test]
fn a_trailer_names_dependencies_too() {
    let numbers = |body: &str| parse(body).into_iter().collect::<Vec<u64>>();
    assert_eq!(numbers("Depends-on: #1\nBlocked-By: #2, #3\n"), [1, 2, 3]);
    assert_eq!(numbers("## Depends-On\n\n- #4\n"), [4]);
    assert!(numbers("depends-upon #5, independs-on #6").is_empty());
}

proptest! {
    #[test]
    fn a_cycle_is_found_exactly_where_there_is_one(g in graphs()) {
        let all = cycles(&g);
        for cycle in &all {
            prop_assert!(is_cycle(&g, cycle));
        }
        for node in 0..9 {
            let through = cycle_through(&g, node);
            prop_assert_eq!(through.is_some(), reachable(&g, node).contains(&node));
            let Some(cycle) = through else { continue };
            prop_assert!(is_cycle(&g, &cycle) && cycle[0] == node);
            let same_knot = all.iter().filter(|c| {
                (c[0] == node) || (reachable(&g, node).contains(&c[0]) && reachable(&g, c[0]).contains(&node))
            });
            prop_assert_eq!(same_knot.count(), 1);
        }
    }

    #[test]
    fn what_is_written_in_a_section_is_read_back(numbers in prop::collection::btree_set(1u64..=u64::from(u32::MAX), 0..20)) {
        let list: String = numbers.iter().map(|n| format!("- #{n}\n")).collect();
        prop_assert_eq!(&parse(&format!("Text\n\n## Dependencies\n\n{list}")), &numbers);
        prop_assert_eq!(parse(&format!("## Related\n\n{list}")), BTreeSet::new());
        prop_assert_eq!(parse(&format!("```\n## Dependencies\n{list}```\n")), BTreeSet::new());
    }

    #[test]
    fn any_body_is_read_without_panic(body in "(?s)(depends on|blocked by|## Dependencies|#[0-9]{1,12}|`{1,4}|~~~|\n|\r| |,|and|.){0,80}") {
        for number in parse(&body) {
            let written = format!("#{number}");
            let padded = body.contains(&written) || body.contains("#0");
            prop_assert!(padded, "{} is not in the body", written);
        }
    }
}

#[test]
fn a_pull_request_names_the_issues_that_it_closes() {
    for (text, numbers) in [
        ("Closes #3", &[3][..]),
        ("This fixes: #4 and resolved #5.", &[4, 5]),
        ("FIX #6", &[6]),
        ("See #7; for issue #8", &[]),
        ("prefix #9, closest #10", &[]),
        ("closes shop/till#11 and closes #12abc", &[]),
        ("`closes #13`", &[]),
    ] {
        assert_eq!(super::closes(text), numbers.iter().copied().collect(), "{text}");
    }
}
