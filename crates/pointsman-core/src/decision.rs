//! Decisions of people that were made while no daemon ran.
//!
//! A running daemon tells from the kernel who asks, and it knows the sessions it started. A command without a daemon can
//! only look at itself, and an agent may have ended the daemon for that very reason. So such a decision is kept and has no
//! effect. It counts once the same decision is made again while a daemon runs.

use serde::{Deserialize, Serialize};

use crate::ids::{Number, Sha};
use crate::time::Timestamp;
use crate::vault::ActionId;

/// The name under which a project remembers its unconfirmed decisions.
pub const MEMORY: &str = "unconfirmed";

/// A project keeps at most this many unconfirmed decisions. Nobody would read more of them.
pub const MOST: usize = 100;

/// A decision that only a person may make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// A pull request of the embedded forge may land as it is at this head.
    Approval {
        pr: Number,
        head: Sha,
        body: String,
    },
    /// `task answer`
    Answer {
        issue: Number,
        text: String,
    },
    /// A comment on an issue whose task has asked a question: it counts as an answer.
    Comment {
        issue: Number,
        body: String,
    },
    VaultApproval {
        id: ActionId,
        hash: String,
        again: bool,
    },
    VaultRejection {
        id: ActionId,
        reason: String,
    },
}

/// The question that a decision settles. A later decision about the same question takes the place of an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    PullRequest(Number),
    Issue(Number),
    VaultAction(ActionId),
}

impl Decision {
    /// The question that it settles.
    pub fn question(&self) -> Question {
        match self {
            Self::Approval { pr, .. } => Question::PullRequest(*pr),
            Self::Answer { issue, .. } | Self::Comment { issue, .. } => Question::Issue(*issue),
            Self::VaultApproval { id, .. } | Self::VaultRejection { id, .. } => {
                Question::VaultAction(id.clone())
            }
        }
    }
}

/// A decision that waits until it is made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unconfirmed {
    pub at: Timestamp,
    /// The login of whoever seemed to make it.
    pub by: String,
    #[serde(flatten)]
    pub decision: Decision,
}

/// The end of a kept decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A person made the same decision while a daemon ran.
    Confirmed,
    Overruled,
    /// The question was settled in another way, or does not arise any more.
    Lapsed,
}

/// The unconfirmed decisions of a project, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub decisions: Vec<Unconfirmed>,
}

impl Memory {
    /// Keeps a decision in place of an earlier one about the same question; answers whether there was room.
    #[must_use]
    pub fn keep(&mut self, unconfirmed: Unconfirmed) -> bool {
        let question = unconfirmed.decision.question();
        self.decisions.retain(|kept| kept.decision.question() != question);
        let room = self.decisions.len() < MOST;
        if room {
            self.decisions.push(unconfirmed);
        }
        room
    }

    /// A question was decided while a daemon ran: the kept decision about it is over. Without `made` it was decided in a
    /// way that no decision here has a form for, such as a request for changes.
    pub fn settle(&mut self, question: &Question, made: Option<&Decision>) -> Option<(Unconfirmed, Outcome)> {
        let place = self.decisions.iter().position(|kept| kept.decision.question() == *question)?;
        let kept = self.decisions.remove(place);
        let same = made.is_some_and(|made| says_the_same(&kept.decision, made));
        Some((kept, if same { Outcome::Confirmed } else { Outcome::Overruled }))
    }
}

/// Whether two decisions about one question come to the same. The words of an approval or of a rejection make no
/// difference to what happens, those of an answer do.
fn says_the_same(kept: &Decision, made: &Decision) -> bool {
    match (kept, made) {
        (Decision::Approval { head, .. }, Decision::Approval { head: now, .. }) => head == now,
        (
            Decision::Answer { text, .. } | Decision::Comment { body: text, .. },
            Decision::Answer { text: now, .. } | Decision::Comment { body: now, .. },
        ) => text == now,
        (Decision::VaultApproval { hash, .. }, Decision::VaultApproval { hash: now, .. }) => hash == now,
        (Decision::VaultRejection { .. }, Decision::VaultRejection { .. }) => true,
        (
            Decision::Approval { .. }
            | Decision::Answer { .. }
            | Decision::Comment { .. }
            | Decision::VaultApproval { .. }
            | Decision::VaultRejection { .. },
            _,
        ) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Decision, MOST, Memory, Outcome, Question, Unconfirmed};
    use crate::time::Timestamp;
    use crate::vault::ActionId;

    fn kept(decision: Decision) -> Unconfirmed {
        Unconfirmed { at: Timestamp(1), by: "ada".to_owned(), decision }
    }

    fn answer(issue: u64, text: &str) -> Decision {
        Decision::Answer { issue, text: text.to_owned() }
    }

    fn approval(hash: &str) -> Decision {
        let id = ActionId::try_from("deploy-1".to_owned()).unwrap();
        Decision::VaultApproval { id, hash: hash.to_owned(), again: false }
    }

    #[test]
    fn the_last_decision_about_a_question_is_kept_once() {
        let mut memory = Memory::default();
        for text in ["blue", "red"] {
            assert!(memory.keep(kept(answer(3, text))));
        }
        assert!(memory.keep(kept(approval("h"))));
        assert_eq!(memory.decisions, [kept(answer(3, "red")), kept(approval("h"))]);
        let stored = serde_json::to_string(&memory).unwrap();
        assert_eq!(serde_json::from_str::<Memory>(&stored).unwrap(), memory);
    }

    #[test]
    fn only_the_same_decision_confirms() {
        let id = ActionId::try_from("deploy-1".to_owned()).unwrap();
        let rejection = Decision::VaultRejection { id: id.clone(), reason: "no".to_owned() };
        let cases = [
            (answer(3, "blue"), Some(answer(3, "blue")), Outcome::Confirmed),
            (
                answer(3, "blue"),
                Some(Decision::Comment { issue: 3, body: "blue".to_owned() }),
                Outcome::Confirmed,
            ),
            (answer(3, "blue"), Some(answer(3, "red")), Outcome::Overruled),
            (approval("h"), Some(approval("h")), Outcome::Confirmed),
            (approval("h"), Some(approval("other")), Outcome::Overruled),
            (approval("h"), Some(rejection), Outcome::Overruled),
            (approval("h"), None, Outcome::Overruled),
        ];
        for (before, made, outcome) in cases {
            let mut memory = Memory::default();
            assert!(memory.keep(kept(before.clone())));
            assert_eq!(memory.settle(&Question::Issue(4), made.as_ref()), None);
            let settled = memory.settle(&before.question(), made.as_ref());
            assert_eq!(settled, Some((kept(before), outcome)), "{made:?}");
            assert_eq!(memory, Memory::default());
        }
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut memory = Memory::default();
        let many = u64::try_from(MOST).unwrap();
        for issue in 0..many {
            assert!(memory.keep(kept(answer(issue, "yes"))));
        }
        assert!(!memory.keep(kept(answer(many, "yes"))));
        assert!(memory.keep(kept(answer(0, "no"))), "in place of the earlier one");
    }
}
