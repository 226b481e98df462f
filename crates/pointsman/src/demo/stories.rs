//! The stories, as data: what is asked, what the agent does, what people say, how it must end.

mod line;
mod market;

use pointsman_core::task::{Exit, State};
use pointsman_core::vault::Status;

use super::project::NAME as SHOP;
use super::watch::Seen;

/// A story of one task, or of several.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) name: &'static str,
    /// In which project it is played.
    pub(super) project: &'static str,
    /// How its tasks follow each other.
    pub(super) order: Order,
    pub(super) acts: &'static [Act],
}

/// How the tasks of a story follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Each depends on the one before.
    Chain,
    /// They are worked on at the same time, and reviewed when all of them are ready.
    AtOnce,
    /// The same, but each is reviewed when the one before has landed.
    InTurn,
}

/// One issue and all that belongs to it.
#[derive(Debug)]
pub(super) struct Act {
    pub(super) title: &'static str,
    /// What the issue asks for.
    pub(super) wish: &'static str,
    /// What the agent does, in the language of the rehearsal agent.
    pub(super) script: &'static [&'static str],
    /// What the reviewer says to one head after the other; the last word is repeated.
    pub(super) reviews: &'static [Opinion],
    /// What the review agent answers to one head after the other, where it reviews.
    pub(super) answers: &'static [&'static str],
    /// What a person answers if the agent asks.
    pub(super) answer: Option<&'static str>,
    pub(super) ends: Ends,
}

/// What a reviewer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opinion {
    Approve,
    /// It must change first, in these words.
    RequestChanges(&'static str),
}

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// On the main branch, the issue closed.
    Merged,
    /// Given up, for a person to look at.
    Blocked,
}

/// How a task must end, and by which way.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) outcome: Outcome,
    /// How many sessions it took.
    pub(super) sessions: usize,
    /// How the first of them ended, where the story is about that.
    pub(super) exits: &'static [Exit],
    /// How often CI looked at it.
    pub(super) ci_runs: u32,
    /// States it came through, in this order; there may be others between.
    pub(super) by_way_of: &'static [State],
    /// The vault action that must have been fired.
    pub(super) fires: Option<&'static str>,
    /// Lines that must be in files of the main branch (or, if it is blocked, must not).
    pub(super) lines: &'static [(&'static str, &'static str)],
}

/// The story in which the daemon itself is killed.
pub(super) const DAEMON_KILLED: &str = "daemon_killed";

/// Failed CI runs that the demo's project hands back to an agent.
pub(super) const CI_FIXES: u32 = 2;

const HAND_IN: &str = "push\nphase awaiting_ci";
const LAND: &str = "expect CI passed\nphase awaiting_review\nexpect Approved\nexpect Merged\nphase done";
const STRAIGHT: &[State] = &[
    State::Backlog,
    State::Working,
    State::AwaitingCi,
    State::AwaitingReview,
    State::MergeQueue,
    State::Merged,
    State::Closed,
];

/// An act as most are: approved at first sight, and nobody is asked.
const APPROVED: Act = Act {
    title: "",
    wish: "",
    script: &[],
    reviews: &[Opinion::Approve],
    answers: &[],
    answer: None,
    ends: LANDS,
};
/// The end of most: one session, one run of CI, and merged.
const LANDS: Ends = Ends {
    outcome: Outcome::Merged,
    sessions: 1,
    exits: &[],
    ci_runs: 1,
    by_way_of: STRAIGHT,
    fires: None,
    lines: &[],
};

/// All stories, played at the same time.
pub(super) const STORIES: &[Story] = &[
    Story {
        name: "clean",
        project: SHOP,
        order: Order::Chain,
        acts: &[Act {
            title: "Add the price of apples",
            wish: "We sell apples now: 3 crowns a kilo.",
            script: &[
                "write src/apples.txt apples 3 crowns\ncommit Add the price of apples",
                "summary Apples cost 3 crowns a kilo.",
                HAND_IN,
                LAND,
            ],
            ends: Ends { lines: &[("src/apples.txt", "apples 3 crowns")], ..LANDS },
            ..APPROVED
        }],
    },
    Story {
        name: "ci_fix",
        project: SHOP,
        order: Order::Chain,
        acts: &[Act {
            title: "Add the price of pears",
            wish: "Pears are 4 crowns a kilo. CI takes no list with the word BUG in it.",
            script: &[
                "write src/pears.txt pears 4 crowns BUG\ncommit Add the price of pears",
                HAND_IN,
                "expect CI failed\nsay reading the log: a BUG is left\nwrite src/pears.txt pears 4 crowns",
                "commit Remove the bug from the price of pears",
                HAND_IN,
                LAND,
            ],
            ends: Ends {
                ci_runs: 2,
                by_way_of: &[
                    State::Working,
                    State::AwaitingCi,
                    State::Working,
                    State::AwaitingCi,
                    State::AwaitingReview,
                    State::MergeQueue,
                    State::Merged,
                    State::Closed,
                ],
                lines: &[("src/pears.txt", "pears 4 crowns")],
                ..LANDS
            },
            ..APPROVED
        }],
    },
    Story {
        name: "changes_requested",
        project: SHOP,
        order: Order::Chain,
        acts: &[Act {
            title: "Add the price of cherries",
            wish: "Cherries are in season.",
            script: &[
                "write src/cherries.txt cherries 90\ncommit Add the price of cherries",
                HAND_IN,
                "expect CI passed\nphase awaiting_review\nexpect Changes requested",
                "write src/cherries.txt cherries 9 crowns\ncommit Say the price of cherries in crowns",
                "push\nphase awaiting_review",
                "expect CI passed\nexpect Approved\nexpect Merged\nphase done",
            ],
            reviews: &[
                Opinion::RequestChanges("Ninety of what? Say it in crowns, please."),
                Opinion::Approve,
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
                lines: &[("src/cherries.txt", "cherries 9 crowns")],
                ..LANDS
            },
            ..APPROVED
        }],
    },
    Story {
        name: "killed",
        project: SHOP,
        order: Order::Chain,
        acts: &[Act {
            title: "Add the price of plums",
            wish: "Two kinds of plums. The session is killed between them.",
            script: &[
                "write src/plums.txt blue plums 5 crowns\ncommit Add the price of blue plums",
                "append src/plums.txt yellow plums 6 crowns",
                "crash",
                "commit Add the price of yellow plums",
                HAND_IN,
                LAND,
            ],
            ends: Ends {
                sessions: 2,
                exits: &[Exit::Crashed],
                lines: &[
                    ("src/plums.txt", "blue plums 5 crowns"),
                    ("src/plums.txt", "yellow plums 6 crowns"),
                ],
                ..LANDS
            },
            ..APPROVED
        }],
    },
    Story {
        name: "dependency",
        project: SHOP,
        order: Order::Chain,
        acts: &[
            Act {
                title: "Add a list of weights",
                wish: "One line for each fruit, apples first.",
                script: &[
                    "write src/weights.txt apples 180 grams\ncommit Add a list of weights",
                    HAND_IN,
                    LAND,
                ],
                ends: Ends { lines: &[("src/weights.txt", "apples 180 grams")], ..LANDS },
                ..APPROVED
            },
            Act {
                title: "Add pears to the list of weights",
                wish: "The list must be there first.",
                script: &[
                    "append src/weights.txt pears 170 grams\ncommit Add pears to the list of weights",
                    HAND_IN,
                    LAND,
                ],
                ends: Ends {
                    by_way_of: &[
                        State::WaitingDependencies,
                        State::Working,
                        State::AwaitingCi,
                        State::AwaitingReview,
                        State::MergeQueue,
                        State::Merged,
                        State::Closed,
                    ],
                    lines: &[("src/weights.txt", "apples 180 grams"), ("src/weights.txt", "pears 170 grams")],
                    ..LANDS
                },
                ..APPROVED
            },
        ],
    },
    Story {
        name: "escalation",
        project: SHOP,
        order: Order::Chain,
        acts: &[Act {
            title: "Add the price of bananas",
            wish: "Ask Anna for the price.",
            script: &[
                "say the issue does not tell the price",
                "phase escalate What do bananas cost?\nexpect Answer",
                "write src/bananas.txt bananas 2 crowns\ncommit Add the price of bananas",
                HAND_IN,
                LAND,
            ],
            answer: Some("Two crowns a kilo."),
            ends: Ends {
                by_way_of: &[
                    State::Working,
                    State::Escalated,
                    State::Working,
                    State::AwaitingCi,
                    State::AwaitingReview,
                    State::MergeQueue,
                    State::Merged,
                    State::Closed,
                ],
                lines: &[("src/bananas.txt", "bananas 2 crowns")],
                ..LANDS
            },
            ..APPROVED
        }],
    },
    Story {
        name: "hopeless",
        project: SHOP,
        order: Order::Chain,
        acts: &[Act {
            title: "Add the price of durians",
            wish: "Nobody has ever got this past CI.",
            script: &[
                "write src/durians.txt durians BUG\ncommit Add the price of durians",
                HAND_IN,
                "expect CI failed\nappend src/durians.txt still a BUG\ncommit Try to fix it",
                HAND_IN,
                "expect CI failed\nappend src/durians.txt and another BUG\ncommit Try to fix it once more",
                HAND_IN,
            ],
            ends: Ends {
                outcome: Outcome::Blocked,
                ci_runs: CI_FIXES + 1,
                by_way_of: &[
                    State::Working,
                    State::AwaitingCi,
                    State::Working,
                    State::AwaitingCi,
                    State::Working,
                    State::AwaitingCi,
                    State::Blocked,
                ],
                lines: &[("src/durians.txt", "durians")],
                ..LANDS
            },
            ..APPROVED
        }],
    },
    Story {
        name: "handoff",
        project: SHOP,
        order: Order::Chain,
        acts: &[Act {
            title: "Add the price of grapes",
            wish: "Grapes, fresh and dried. The first session's context is full before it comes to the raisins.",
            script: &[
                "write src/grapes.txt grapes 7 crowns\ncommit Add the price of grapes",
                "append src/grapes.txt raisins 8 crowns\ncheckpoint implementation the price of raisins",
                "context 93\nexit-clean",
                "commit Add the price of raisins",
                HAND_IN,
                LAND,
            ],
            ends: Ends {
                sessions: 2,
                exits: &[Exit::Handoff],
                lines: &[("src/grapes.txt", "grapes 7 crowns"), ("src/grapes.txt", "raisins 8 crowns")],
                ..LANDS
            },
            ..APPROVED
        }],
    },
    Story {
        name: DAEMON_KILLED,
        project: SHOP,
        order: Order::Chain,
        acts: &[Act {
            title: "Add the price of figs",
            wish: "The daemon itself is killed while this is worked on, and started again.",
            script: &[
                "write src/figs.txt figs 9 crowns\ncommit Add the price of figs",
                "checkpoint testing the price of figs",
                "phase escalate Are dried figs sold as well?\nexpect Answer",
                "append src/figs.txt dried figs 11 crowns\ncommit Add the price of dried figs",
                HAND_IN,
                LAND,
            ],
            answer: Some("Yes, for eleven crowns."),
            ends: Ends {
                by_way_of: &[
                    State::Working,
                    State::Escalated,
                    State::Working,
                    State::AwaitingCi,
                    State::AwaitingReview,
                    State::MergeQueue,
                    State::Merged,
                    State::Closed,
                ],
                lines: &[("src/figs.txt", "figs 9 crowns"), ("src/figs.txt", "dried figs 11 crowns")],
                ..LANDS
            },
            ..APPROVED
        }],
    },
    line::CONFLICT,
    line::TRIO,
    market::REVIEW,
    market::VAULT,
];

impl Outcome {
    /// The name scripts see.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Merged => "merged",
            Self::Blocked => "blocked",
        }
    }
}

impl Act {
    /// The issue's text: the wish, what it waits for, and the script in a block of code, where
    /// nobody takes it for prose.
    pub(super) fn body(&self, after: Option<u64>) -> String {
        let depends = after.map(|issue| format!("Depends on #{issue}.\n\n")).unwrap_or_default();
        let script = self.script.join("\n");
        let review =
            |answer: &&str| format!("rehearsal-review:begin\nanswer {answer}\nrehearsal-review:end\n");
        let reviews: String = self.answers.iter().map(review).collect();
        format!("{}\n\n{depends}```text\nrehearsal:begin\n{script}\nrehearsal:end\n{reviews}```\n", self.wish)
    }

    /// Whether nothing more will happen by itself: to the task, and to the action it submitted.
    pub(super) fn is_over(&self, seen: &Seen) -> bool {
        seen.is_over() && (self.ends.fires.is_none() || seen.action == Some(Status::Fired))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pointsman_core::dependencies;

    use super::STORIES;
    use crate::rehearsal::script;

    #[test]
    fn the_stories_are_those_that_scripts_rely_on() {
        let names: Vec<&str> = STORIES.iter().map(|s| s.name).collect();
        let promised = [
            "clean",
            "ci_fix",
            "changes_requested",
            "killed",
            "dependency",
            "escalation",
            "hopeless",
            "handoff",
            "daemon_killed",
            "conflict",
            "trio",
            "review",
            "vault",
        ];
        assert_eq!(names, promised);
    }

    #[test]
    fn every_script_can_be_played_and_only_an_act_that_follows_depends() {
        for act in STORIES.iter().flat_map(|s| s.acts) {
            script::parse(&act.body(None)).unwrap();
            assert_eq!(dependencies::parse(&act.body(None)), BTreeSet::new(), "{}", act.title);
            assert_eq!(dependencies::parse(&act.body(Some(7))), BTreeSet::from([7]), "{}", act.title);
            assert_eq!(act.reviews.is_empty(), !act.answers.is_empty(), "people review, or the agent does");
            for answer in act.answers {
                let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
                pointsman_core::review::Answer::read(Some(&answer)).unwrap();
            }
        }
    }
}
