//! One line each: the policy, what is known, and what is planned.
//!
//! What is known is written `main | chain | beside the chain`, a letter for each candidate: `.` not tested, `i` one
//! outage, `r` red once, `R` red twice, `g` green, `x` no decision within the limit. The entries of the chain are 1, 2, …;
//! those beside it A, B, ….

use crate::queue::{CandidateRuns, EntryId, Fault, Plan, Policy, QueueFacts, Runs, Strategy, Subject, plan};

const FIRST_ASIDE: i64 = 100;

fn runs(message_status: char) -> Runs {
    let (green, red, infra) = match message_status {
        '.' => (0, 0, 0),
        'i' => (0, 0, 1),
        'r' => (0, 1, 0),
        'R' => (0, 2, 0),
        'g' => (1, 0, 0),
        'x' => (0, 0, 3),
        other => panic!("{other} is no letter for a candidate"),
    };
    Runs { green, red, infra }
}

fn chain(known: &str) -> QueueFacts {
    let mut parts = known.split('|').map(str::trim);
    let mut members = |first: i64| -> Vec<CandidateRuns> {
        let letters = parts.next().unwrap_or_default().chars();
        letters
            .zip(first..)
            .map(|(message_status, entry)| CandidateRuns {
                entry: EntryId(entry),
                runs: runs(message_status),
            })
            .collect()
    };
    let main = members(0)[0].runs;
    QueueFacts { main, members: members(1), aside: members(FIRST_ASIDE) }
}

fn name(entry: EntryId) -> String {
    match u8::try_from(entry.0 - FIRST_ASIDE) {
        Ok(place) => char::from(b'A' + place).to_string(),
        Err(_) => entry.to_string(),
    }
}

fn told(plan: &Plan) -> String {
    let names = |entries: &[EntryId]| entries.iter().map(|entry| name(*entry)).collect::<Vec<_>>().join(" ");
    let mut said = Vec::new();
    said.extend(plan.land.map(|place| format!("land {}", place + 1)));
    said.extend(plan.eject.iter().map(|(entry, fault)| match fault {
        Fault::Red => format!("{} is red", name(*entry)),
        Fault::Infra => format!("{} cannot be tested", name(*entry)),
    }));
    if !plan.set_aside.is_empty() {
        said.push(format!("set aside {}", names(&plan.set_aside)));
    }
    if !plan.bring_back.is_empty() {
        said.push(format!("bring back {}", names(&plan.bring_back)));
    }
    if !plan.test.is_empty() {
        let subjects = plan.test.iter().map(|subject| match subject {
            Subject::Main => "main".to_owned(),
            Subject::Member(place) => (place + 1).to_string(),
            Subject::Aside(entry) => name(*entry),
        });
        said.push(format!("test {}", subjects.collect::<Vec<_>>().join(" ")));
    }
    if plan.main_is_red {
        said.push("main is red".to_owned());
    }
    said.join(", ")
}

#[track_caller]
fn check(strategy: Strategy, runners: usize, examples: &[(&str, &str)]) {
    for (known, expected) in examples {
        assert_eq!(told(&plan(&Policy { strategy, runners }, &chain(known))), *expected, "for {known:?}");
    }
}

#[test]
fn sequential() {
    check(
        Strategy::Sequential,
        1,
        &[
            (". | |", ""),
            (". | . |", "test 1"),
            ("g | i |", "test 1"),
            (". | g |", "land 1"),
            // Red once is no verdict.
            ("g | r |", "test 1"),
            ("g | R |", "1 is red"),
            // Nobody is blamed before main was seen green.
            (". | R |", "test main"),
            ("r | R |", "test main"),
            ("i | R |", "test main"),
            ("x | R |", "1 cannot be tested"),
            ("g | x |", "1 cannot be tested"),
        ],
    );
    // A second runner looks at main while the red run is confirmed.
    check(
        Strategy::Sequential,
        2,
        &[(". | . |", "test 1"), (". | r |", "test main 1"), ("g | r |", "test 1")],
    );
}

#[test]
fn a_red_main_is_nobodys_fault_and_can_be_repaired() {
    check(
        Strategy::Sequential,
        1,
        &[
            ("R | . |", "test 1, main is red"),
            ("R | r |", "test 1, main is red"),
            ("R | R |", "set aside 1, main is red"),
            ("R | . | R", "test 1, main is red"),
            ("R | g | R", "land 1, main is red"),
            ("R | | RR", "main is red"),
            ("R | | Rg", "bring back B, main is red"),
        ],
    );
    check(
        Strategy::Batch { size: 4 },
        2,
        &[
            ("R | .... |", "test 4, main is red"),
            ("R | ...g |", "land 4, main is red"),
            // Halving would look for the first red branch, and that is main.
            ("R | ...r |", "test 1, main is red"),
            ("R | r..r |", "set aside 1, main is red"),
            ("R | ... | r", "test A 3, main is red"),
            ("R | ... | R", "test 3, main is red"),
        ],
    );
}

#[test]
fn batch() {
    check(
        Strategy::Batch { size: 8 },
        2,
        &[
            ("g | . |", "test 1"),
            ("g | ........ |", "test 8"),
            ("g | .......i |", "test 8"),
            ("g | .......g |", "land 8"),
            // A red batch is halved; red once is enough to steer by.
            ("g | .......r |", "test 4"),
            ("g | ...r...r |", "test 2"),
            ("g | .r.r...r |", "test 1"),
            // The green half lands at once, and the search goes on behind it.
            ("g | ...g...r |", "land 4"),
            ("g | ...r.... |", "test 2"),
            // Nobody is put out because a batch cannot be tested: it is halved like a red one.
            ("g | .......x |", "test 4"),
            ("g | x......x |", "1 cannot be tested"),
            // The suspect gets its second run beside the next batch.
            ("g | rr.r...r |", "set aside 1"),
            ("g | ........ | r", "test A 8"),
            ("g | ........ | R", "A is red"),
            ("g | ........ | x", "A cannot be tested"),
            ("g | ........ | g", "bring back A"),
            ("g | .......g | R", "land 8"),
            ("g | .......r | r", "test A 4"),
            // After a restart a suspect stands in the chain again, with all its runs.
            ("g | R.r |", "1 is red"),
            // Alone, it is confirmed where it stands.
            ("g | r |", "test 1"),
            // An idle runner looks at main as soon as somebody will be blamed.
            (". | ........ |", "test 8"),
            (". | .......r |", "test main 4"),
            (". | ........ | r", "test A 8"),
            (". | ........ | R", "test main 8"),
            (". | R....... |", "test main"),
        ],
    );
    check(
        Strategy::Batch { size: 8 },
        1,
        &[
            (". | .......r |", "test 4"),
            // With one runner nothing could go on meanwhile.
            (". | rr.r...r |", "test 1"),
            ("g | ........ | r", "test A"),
        ],
    );
}

#[test]
fn speculative() {
    check(
        Strategy::Speculative { depth: 4 },
        4,
        &[
            ("g | .... |", "test 1 2 3 4"),
            ("g | ...... |", "test 1 2 3 4"),
            ("g | .i.. |", "test 1 2 3 4"),
            // The last green one proves all before it innocent.
            ("g | g... |", "land 1"),
            ("g | r.g. |", "land 3"),
            // Nothing is tested behind a entry that may have to leave.
            ("g | ..r. |", "test 1 2"),
            ("g | .R.. |", "test 1"),
            ("g | .x.. |", "test 1"),
            ("g | r... |", "set aside 1"),
            ("g | R... |", "1 is red"),
            ("g | x... |", "1 cannot be tested"),
            ("g | r |", "test 1"),
            ("g | .... | r", "test A 1 2 3"),
            ("g | .... | rr", "test A B 1 2"),
            ("g | .... | R", "A is red"),
            // Main is known before the first suspect is.
            (". | .... |", "test main 1 2 3"),
            (". | . |", "test 1"),
            ("r | .... | R", "test main 1 2 3"),
        ],
    );
    check(Strategy::Speculative { depth: 4 }, 1, &[(". | .... |", "test 1"), (". | r... |", "test 1")]);
}

#[test]
fn impossible_numbers_are_taken_as_one() {
    check(Strategy::Batch { size: 0 }, 0, &[("g | .. |", "test 1")]);
    check(Strategy::Speculative { depth: 0 }, 0, &[("g | .. |", "test 1")]);
}
