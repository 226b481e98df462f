//! The activity of a session, by what its hooks have said: whether something may be typed into it.
//!
//! Claude waits for its hooks, so that a tool is told of before a dialog about it can come up. What is typed only while
//! the last word was that a turn has ended therefore never meets one.

use serde::{Deserialize, Serialize};

use super::HookEvent;

/// The activity of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// A turn is under way. A dialog may come up at any moment.
    AtWork,
    /// The turn has ended: it waits for its next prompt.
    AtPrompt,
    /// A dialog waits for a person, whether it is on the screen yet or not.
    AtDialog { what: String },
}

impl Activity {
    /// The activity after a hook's report; none as long as it is not known.
    pub fn after(before: Option<Self>, told: &HookEvent) -> Option<Self> {
        match told {
            HookEvent::Stopped { .. } | HookEvent::Failed { .. } | HookEvent::Idle => Some(Self::AtPrompt),
            HookEvent::Prompted { .. } | HookEvent::Tool { done: true, .. } => Some(Self::AtWork),
            HookEvent::Started { source, .. } => match source.as_str() {
                // The same conversation goes on as it was.
                "compact" => before,
                "clear" => Some(Self::AtPrompt),
                // Its first prompt comes with it.
                _ => Some(Self::AtWork),
            },
            // Several tools may be used at once; another one that begins does not answer the dialog.
            HookEvent::Tool { done: false, .. } => match before {
                Some(dialog @ Self::AtDialog { .. }) => Some(dialog),
                Some(Self::AtWork | Self::AtPrompt) | None => Some(Self::AtWork),
            },
            HookEvent::Asked { what } => Some(Self::AtDialog { what: what.clone() }),
            HookEvent::Ended { .. } => None,
            // In the middle of a turn, or by a person at the prompt: it goes on as it was.
            HookEvent::Compacting
            | HookEvent::Compacted
            | HookEvent::Measured { .. }
            | HookEvent::Other { .. } => before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Activity;
    use crate::hook::{HookEvent, ToolUse};

    fn after(told: &[HookEvent]) -> Option<Activity> {
        told.iter().fold(None, Activity::after)
    }

    fn tool(done: bool) -> HookEvent {
        HookEvent::Tool { work: ToolUse::Other, done, used_tokens: None }
    }

    fn asked() -> HookEvent {
        HookEvent::Asked { what: "permission for Bash".to_owned() }
    }

    fn started(source: &str) -> HookEvent {
        HookEvent::Started { source: source.to_owned(), conversation: None, model: None }
    }

    fn prompted() -> HookEvent {
        HookEvent::Prompted { messages: Vec::new() }
    }

    fn stopped() -> HookEvent {
        HookEvent::read("Stop", &serde_json::json!({}))
    }

    #[test]
    fn something_may_be_typed_only_between_two_turns() {
        let dialog = Some(Activity::AtDialog { what: "permission for Bash".to_owned() });
        assert_eq!(after(&[]), None);
        for (told, stance) in [
            (vec![prompted()], Some(Activity::AtWork)),
            (vec![prompted(), tool(false)], Some(Activity::AtWork)),
            (vec![prompted(), tool(false), asked()], dialog.clone()),
            (vec![prompted(), tool(false), asked(), tool(false)], dialog.clone()),
            (vec![prompted(), tool(false), asked(), HookEvent::Compacting], dialog),
            (vec![prompted(), tool(false), asked(), tool(true)], Some(Activity::AtWork)),
            (vec![prompted(), tool(false), asked(), stopped()], Some(Activity::AtPrompt)),
            (vec![prompted(), stopped()], Some(Activity::AtPrompt)),
            (
                vec![prompted(), stopped(), HookEvent::Compacting, HookEvent::Compacted],
                Some(Activity::AtPrompt),
            ),
            (vec![prompted(), HookEvent::Compacting, HookEvent::Compacted], Some(Activity::AtWork)),
            (
                vec![prompted(), stopped(), HookEvent::Compacting, started("compact")],
                Some(Activity::AtPrompt),
            ),
            (vec![prompted(), HookEvent::Compacting, started("compact")], Some(Activity::AtWork)),
            (vec![started("startup")], Some(Activity::AtWork)),
            (vec![started("clear")], Some(Activity::AtPrompt)),
            // Woken by something else than a prompt.
            (vec![prompted(), stopped(), tool(false)], Some(Activity::AtWork)),
            (vec![prompted(), HookEvent::Idle], Some(Activity::AtPrompt)),
            (vec![stopped(), HookEvent::Ended { reason: "exit".to_owned() }], None),
        ] {
            assert_eq!(after(&told), stance, "{told:?}");
        }
    }
}
