//! The meaning of a person's words in the thread where they were written.

use serde::{Deserialize, Serialize};

use super::{Command, PersonMessage};
use crate::notifier::Topic;
use crate::task::Order;

/// The order that a person's message amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatAction {
    /// The task's agent hears it: as the answer to its question, or by the way.
    Speak,
    /// An order to the task.
    Order(Order),
    Approve {
        /// Although it may have been fired before.
        again: bool,
    },
    Reject {
        reason: String,
    },
    Tell(Report),
    /// It is kept for the agent that reads it when it runs next.
    Keep(Reply),
    /// It cannot be what it looks like: why.
    Refuse(Refusal),
}

/// The reports that people can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// What does not go on.
    Stuck,
    Status,
    Help,
}

/// The reasons why a message leads to no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It was changed before it was read.
    Edited,
    /// A word that decides, quoted, changed, or dressed up.
    NotPlain,
    /// A thread about an action takes a yes or a no.
    YesOrNo,
    /// The approval names something else than the thread is about.
    AnotherAction,
    /// There is no such command.
    Unknown,
    /// The command means nothing here.
    NotHere,
}

/// A person's words for an agent, typed as far as they are a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    Command {
        #[serde(flatten)]
        command: Command,
    },
    Text,
}

/// Decides what words mean. `topic` is what the thread is about; none if they were said in the room, or in a thread that
/// is none of ours. `hash` is that of the action, if it is about one. Nothing if they are not for us.
pub fn act(said: &PersonMessage, topic: Option<&Topic>, hash: Option<&str>) -> Option<ChatAction> {
    let read = Command::read(&said.text);
    let command = read.clone().filter(|_| said.plain);
    let in_disguise = command.is_none() && read.is_some();
    if said.edited && topic.is_some() {
        return Some(ChatAction::Refuse(Refusal::Edited));
    }
    Some(match topic {
        Some(Topic::Vault(id)) => match command {
            Some(Command::Approve { which: Some(which), .. })
                if which != id.as_str() && !names(&which, hash) =>
            {
                ChatAction::Refuse(Refusal::AnotherAction)
            }
            Some(Command::Approve { again, .. }) => ChatAction::Approve { again },
            Some(Command::Reject { reason }) => ChatAction::Reject { reason },
            Some(Command::Stuck) => ChatAction::Tell(Report::Stuck),
            Some(Command::Status) => ChatAction::Tell(Report::Status),
            Some(
                Command::Help
                | Command::Kill
                | Command::Pause
                | Command::Resume
                | Command::Ignore { .. }
                | Command::Unknown { .. },
            )
            | None => ChatAction::Refuse(if in_disguise { Refusal::NotPlain } else { Refusal::YesOrNo }),
        },
        Some(Topic::Task(_)) => match command {
            Some(Command::Kill) => ChatAction::Order(Order::Stop),
            Some(Command::Pause) => ChatAction::Order(Order::Pause),
            Some(Command::Resume) => ChatAction::Order(Order::Resume),
            Some(Command::Stuck) => ChatAction::Tell(Report::Stuck),
            Some(Command::Status) => ChatAction::Tell(Report::Status),
            Some(Command::Help) => ChatAction::Tell(Report::Help),
            Some(Command::Unknown { .. }) => ChatAction::Refuse(Refusal::Unknown),
            // "Approve" may well be what the agent wants to hear; it decides nothing but what the agent reads.
            Some(Command::Approve { .. } | Command::Reject { .. } | Command::Ignore { .. }) | None => {
                ChatAction::Speak
            }
        },
        Some(Topic::Agent(_)) => match command {
            Some(Command::Stuck) => ChatAction::Tell(Report::Stuck),
            Some(Command::Status) => ChatAction::Tell(Report::Status),
            Some(Command::Help) => ChatAction::Tell(Report::Help),
            Some(Command::Unknown { .. }) => ChatAction::Refuse(Refusal::Unknown),
            Some(command) => ChatAction::Keep(Reply::Command { command }),
            None => ChatAction::Keep(Reply::Text),
        },
        Some(Topic::Room) | None => match command? {
            Command::Stuck => ChatAction::Tell(Report::Stuck),
            Command::Status => ChatAction::Tell(Report::Status),
            Command::Help => ChatAction::Tell(Report::Help),
            command @ Command::Ignore { .. } => ChatAction::Keep(Reply::Command { command }),
            // A word in the room is not about anything: who must end, what is approved?
            Command::Kill | Command::Pause | Command::Resume => ChatAction::Refuse(Refusal::NotHere),
            // People talk to each other there.
            Command::Approve { .. } | Command::Reject { .. } | Command::Unknown { .. } => return None,
        },
    })
}

/// Whether a word is the beginning of a hash, long enough to mean it.
fn names(word: &str, hash: Option<&str>) -> bool {
    const LEAST: usize = 8;
    word.len() >= LEAST && hash.is_some_and(|hash| hash.starts_with(word))
}
