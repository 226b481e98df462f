//! Stories about the merge queue: what happens when several are ready.

use pointsman_core::task::State;

use super::{APPROVED, Act, Ends, HAND_IN, LAND, LANDS, Order, SHOP, Story};

/// Two tasks that want the same line: the second is told where it conflicts, takes both and lands.
pub(super) const CONFLICT: Story = Story {
    name: "conflict",
    project: SHOP,
    order: Order::InTurn,
    acts: &[
        Act {
            title: "Name the best fruit of the summer",
            wish: "Another task wants the same line.",
            script: &[
                "write src/best.txt summer: peaches\ncommit Name the best fruit of the summer",
                HAND_IN,
                LAND,
            ],
            ends: Ends { lines: &[("src/best.txt", "summer: peaches")], ..LANDS },
            ..APPROVED
        },
        Act {
            title: "Name the best fruit of the winter",
            wish: "It wants a line that another task has by then.",
            script: &[
                "write src/best.txt winter: oranges\ncommit Name the best fruit of the winter",
                HAND_IN,
                "expect CI passed\nphase awaiting_review\nexpect Approved\nexpect Merge conflict",
                "merge-main\nwrite src/best.txt summer: peaches\\nwinter: oranges\ncommit Keep both",
                HAND_IN,
                LAND,
            ],
            ends: Ends {
                ci_runs: 2,
                by_way_of: &[
                    State::AwaitingReview,
                    State::MergeQueue,
                    State::Working,
                    State::AwaitingCi,
                    State::AwaitingReview,
                    State::MergeQueue,
                    State::Merged,
                    State::Closed,
                ],
                lines: &[("src/best.txt", "summer: peaches"), ("src/best.txt", "winter: oranges")],
                ..LANDS
            },
            ..APPROVED
        },
    ],
};

/// Three tasks that finish at the same moment, and land one after the other.
pub(super) const TRIO: Story = Story {
    name: "trio",
    project: SHOP,
    order: Order::AtOnce,
    acts: &[
        one_of_three(
            "Add the price of limes",
            &["write src/limes.txt limes 5 crowns\ncommit Add the price of limes", HAND_IN, LAND],
            &[("src/limes.txt", "limes 5 crowns")],
        ),
        one_of_three(
            "Add the price of melons",
            &["write src/melons.txt melons 12 crowns\ncommit Add the price of melons", HAND_IN, LAND],
            &[("src/melons.txt", "melons 12 crowns")],
        ),
        one_of_three(
            "Add the price of kiwis",
            &["write src/kiwis.txt kiwis 6 crowns\ncommit Add the price of kiwis", HAND_IN, LAND],
            &[("src/kiwis.txt", "kiwis 6 crowns")],
        ),
    ],
};

const fn one_of_three(
    title: &'static str,
    script: &'static [&'static str],
    lines: &'static [(&'static str, &'static str)],
) -> Act {
    Act {
        title,
        wish: "One of three that are finished at the same moment.",
        script,
        ends: Ends { lines, ..LANDS },
        ..APPROVED
    }
}
