//! Stories of the second project: the review agent decides there, and a bell may be rung only if a person says so.

use pointsman_core::task::State;

use super::super::project::MARKET;
use super::{APPROVED, Act, Ends, HAND_IN, LAND, LANDS, Order, Story};

/// The review agent asks for a change, gets it, and approves. Nobody else looks at it.
pub(super) const REVIEW: Story = Story {
    name: "review",
    project: MARKET,
    order: Order::Chain,
    acts: &[Act {
        title: "Add the price of quinces",
        wish: "Quinces are sold by the piece. The review agent reads the change.",
        script: &[
            "write src/quinces.txt quinces 2\ncommit Add the price of quinces",
            HAND_IN,
            "expect CI passed\nphase awaiting_review\nexpect Changes requested",
            "write src/quinces.txt quinces 2 crowns\ncommit Say the price of quinces in crowns",
            "push\nphase awaiting_review",
            "expect CI passed\nexpect Approved\nexpect Merged\nphase done",
        ],
        reviews: &[],
        answers: &[
            r#"{"verdict": "REQUEST_CHANGES", "verdict_reason": "Two of what?", "findings": [{"file": "src/quinces.txt", "line": 1, "text": "Say it in crowns."}]}"#,
            r#"{"verdict": "APPROVE", "verdict_reason": "Now it says so."}"#,
        ],
        ends: Ends {
            ci_runs: 2,
            by_way_of: &[
                State::AwaitingReview,
                State::Working,
                State::AwaitingCi,
                State::AwaitingReview,
                State::MergeQueue,
                State::Merged,
                State::Closed,
            ],
            lines: &[("src/quinces.txt", "quinces 2 crowns")],
            ..LANDS
        },
        ..APPROVED
    }],
};

/// An agent that wants something dangerous done: it waits in the vault until a person lets it go, and is done once.
pub(super) const VAULT: Story = Story {
    name: "vault",
    project: MARKET,
    order: Order::Chain,
    acts: &[Act {
        title: "Ring the bell for medlars",
        wish: "Add medlars, and have the bell rung. Agents do not ring bells themselves.",
        script: &[
            "write src/medlars.txt medlars 4 crowns\ncommit Add the price of medlars",
            r#"submit {"id": "ring-the-bell", "type": "ring", "source": "dev", "risk": "low", "reversible": true, "requires_human": false, "payload": {"for": "medlars"}}"#,
            HAND_IN,
            LAND,
        ],
        reviews: &[],
        answers: &[r#"{"verdict": "APPROVE", "verdict_reason": "Medlars have a price."}"#],
        ends: Ends {
            fires: Some("ring-the-bell"),
            lines: &[("src/medlars.txt", "medlars 4 crowns")],
            ..LANDS
        },
        ..APPROVED
    }],
};
