//! Answers to people in a chat, and reasons why a notice is dropped.

use crate::task::Order;

/// The reason of a rejection without words.
pub fn rejected_in_chat() -> &'static str {
    "rejected in the chat"
}

/// An order that was carried out, as the first words of the answer.
pub fn carried_out(order: Order) -> &'static str {
    match order {
        Order::Stop => "Ended, its work is kept",
        Order::Pause => "Paused, its work is kept",
        Order::Resume | Order::Start | Order::Begin => "Goes on",
        Order::Restart | Order::RestartFresh => "Restarted",
    }
}

/// A yes from somebody who may not approve actions.
pub fn not_listed_for_vault(person: &str) -> String {
    format!("{person} is not listed in vault.people")
}

/// A decision about an action that nobody has heard of.
pub fn no_such_action() -> &'static str {
    "there is no such action"
}

/// A notice for a way of telling that is not configured any more.
pub fn not_told_this_way() -> &'static str {
    "this notifier is no longer used for it"
}

/// A notice that waits until its room is read: whoever answers at once must be heard.
pub fn room_is_unread() -> &'static str {
    "the room is not read yet"
}

/// A notice that is too old to be of use.
pub fn told_too_late() -> &'static str {
    "it could not be delivered for three days"
}

/// A notice that gave way to more urgent or newer ones.
pub fn too_many_waited() -> &'static str {
    "too many notices were waiting"
}
