//! What a session is doing, by what its hooks have said: whether something may be typed into it.
//!
//! Claude waits for its hooks, so that a tool is told of before a dialog about it can come up. What is typed only while
//! the last word was that a turn has ended therefore never meets one.

use serde::{Deserialize, Serialize};

use super::Told;

/// The activity of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// A turn is under way. A dialog may come up at any moment.
    AtWork,
    /// The turn has ended: it waits for its next prompt.
    AtPrompt,
    /// A dialog waits for a person, whether it is on the screen yet or not.
    AtDialog { what: String },
}

impl Stance {
    /// The activity after a hook's report; none as long as it is not known.
    pub fn after(before: Option<Self>, told: &Told) -> Option<Self> {
        match told {
            Told::Stopped { .. } | Told::Failed { .. } | Told::Idle => Some(Self::AtPrompt),
            Told::Prompted { .. } | Told::Tool { done: true, .. } => Some(Self::AtWork),
            Told::Started { source, .. } => match source.as_str() {
                // The same conversation goes on as it was.
                "compact" => before,
                "clear" => Some(Self::AtPrompt),
                // Its first prompt comes with it.
                _ => Some(Self::AtWork),
            },
            // Several tools may be used at once; another one that begins does not answer the dialog.
            Told::Tool { done: false, .. } => match before {
                Some(dialog @ Self::AtDialog { .. }) => Some(dialog),
                Some(Self::AtWork | Self::AtPrompt) | None => Some(Self::AtWork),
            },
            Told::Asked { what } => Some(Self::AtDialog { what: what.clone() }),
            Told::Ended { .. } => None,
            // In the middle of a turn, or by a person at the prompt: it goes on as it was.
            Told::Compacting | Told::Compacted | Told::Measured { .. } | Told::Other { .. } => before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Stance;
    use crate::hook::{Told, Work};

    fn after(told: &[Told]) -> Option<Stance> {
        told.iter().fold(None, Stance::after)
    }

    fn tool(done: bool) -> Told {
        Told::Tool { work: Work::Other, done, used_tokens: None }
    }

    fn asked() -> Told {
        Told::Asked { what: "permission for Bash".to_owned() }
    }

    fn started(source: &str) -> Told {
        Told::Started { source: source.to_owned(), conversation: None, model: None }
    }

    fn prompted() -> Told {
        Told::Prompted { messages: Vec::new() }
    }

    fn stopped() -> Told {
        Told::read("Stop", &serde_json::json!({}))
    }

    #[test]
    fn something_may_be_typed_only_between_two_turns() {
        let dialog = Some(Stance::AtDialog { what: "permission for Bash".to_owned() });
        assert_eq!(after(&[]), None);
        for (told, stance) in [
            (vec![prompted()], Some(Stance::AtWork)),
            (vec![prompted(), tool(false)], Some(Stance::AtWork)),
            (vec![prompted(), tool(false), asked()], dialog.clone()),
            (vec![prompted(), tool(false), asked(), tool(false)], dialog.clone()),
            (vec![prompted(), tool(false), asked(), Told::Compacting], dialog),
            (vec![prompted(), tool(false), asked(), tool(true)], Some(Stance::AtWork)),
            (vec![prompted(), tool(false), asked(), stopped()], Some(Stance::AtPrompt)),
            (vec![prompted(), stopped()], Some(Stance::AtPrompt)),
            (vec![prompted(), stopped(), Told::Compacting, Told::Compacted], Some(Stance::AtPrompt)),
            (vec![prompted(), Told::Compacting, Told::Compacted], Some(Stance::AtWork)),
            (vec![prompted(), stopped(), Told::Compacting, started("compact")], Some(Stance::AtPrompt)),
            (vec![prompted(), Told::Compacting, started("compact")], Some(Stance::AtWork)),
            (vec![started("startup")], Some(Stance::AtWork)),
            (vec![started("clear")], Some(Stance::AtPrompt)),
            // Woken by something else than a prompt.
            (vec![prompted(), stopped(), tool(false)], Some(Stance::AtWork)),
            (vec![prompted(), Told::Idle], Some(Stance::AtPrompt)),
            (vec![stopped(), Told::Ended { reason: "exit".to_owned() }], None),
        ] {
            assert_eq!(after(&told), stance, "{told:?}");
        }
    }
}
