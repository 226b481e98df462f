//! Messages from people in a chat room, and the actions that follow from them.
//!
//! `message` has the message as the server sent it and decides who may write. `command` recognises commands. `act`
//! decides what a text means in the thread in which it was written. The chat server authenticates its users, but
//! their texts are outside text. The daemon talks to servers and carries the actions out.

mod act;
mod command;
mod message;
#[cfg(test)]
mod tests;

pub use act::{ChatAction, Refusal, Reply, Report, act};
pub use command::Command;
pub use message::{ChatMessage, Ignored, MessageContext, PersonMessage, Relation, listen, mark_edited};
