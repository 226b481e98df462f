//! What people say in a chat room, and what follows from it.
//!
//! `heard` has what came over the wire and who is listened to at all, `command` the words that are commands, `act` what
//! a person's words mean in the thread they were written in. A chat server authenticates its people; what they write
//! is outside text. Talking to servers and carrying anything out belong elsewhere.

mod act;
mod command;
mod heard;
#[cfg(test)]
mod tests;

pub use act::{Act, Refusal, Reply, Report, act};
pub use command::Command;
pub use heard::{Heard, Ignored, Place, Relation, Said, listen, mark_edited};
