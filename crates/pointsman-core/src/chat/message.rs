//! Messages from a chat room, and the rule whom to listen to.

use crate::text::clean_block;
use crate::time::Timestamp;

/// The longest text that is passed on, in bytes.
const TEXT_BYTES: usize = 16 << 10;

/// A message of a room, as its server tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatMessage {
    /// Its name on the server.
    pub event: String,
    pub sender: String,
    /// When, by our clock.
    pub at: Timestamp,
    /// Whether it is a text that a person typed, and no notice, picture or gesture.
    pub typed: bool,
    pub body: String,
    /// The same with markup, which is what most people see.
    pub formatted: Option<String>,
    pub relation: Relation,
    /// Whether its writer changed it afterwards.
    pub edited: bool,
}

/// The link from a message to an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    None,
    Thread {
        /// The message that the thread is about.
        root: String,
        /// Whether it answers one message of the thread and repeats it.
        quotes: bool,
    },
    /// One other message, which it repeats.
    Reply {
        to: String,
    },
    /// It takes the place of another one.
    Replacement {
        of: Option<String>,
    },
    /// Something that we do not know.
    Other,
}

/// The reasons why a message is not listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    Own,
    /// Its writer is not listed.
    Stranger,
    /// It is not a text that somebody typed.
    NotTyped,
    /// It changes something that was said before.
    Edit,
    /// It belongs to something that we do not know.
    Elsewhere,
    Empty,
}

/// The part of a room in which something was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageContext {
    /// In the thread of this message.
    Thread(String),
    /// As an answer to this message, outside of any thread.
    Answer(String),
    Room,
}

/// A message of a person who is listed in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonMessage {
    /// Its name on the server.
    pub event: String,
    pub by: String,
    /// When, by our clock.
    pub at: Timestamp,
    pub place: MessageContext,
    /// What, without what it repeats.
    pub text: String,
    /// Whether the words are exactly what was typed and seen: nothing quoted, changed, or dressed up. Only then they
    /// can be a command.
    pub plain: bool,
    /// Whether its writer changed it before we read it: nobody knows what is meant.
    pub edited: bool,
}

/// Marks messages that were changed by their own writer later in the same list.
pub fn mark_edited(heard: &mut [ChatMessage]) {
    let changes: Vec<(String, String)> = heard
        .iter()
        .filter_map(|heard| match &heard.relation {
            Relation::Replacement { of: Some(of) } => Some((heard.sender.clone(), of.clone())),
            Relation::Replacement { of: None }
            | Relation::None
            | Relation::Thread { .. }
            | Relation::Reply { .. }
            | Relation::Other => None,
        })
        .collect();
    for heard in heard {
        heard.edited |= changes.iter().any(|(sender, of)| *sender == heard.sender && *of == heard.event);
    }
}

/// Reads a message if its author is listened to.
pub fn listen(heard: &ChatMessage, me: &str, people: &[String]) -> Result<PersonMessage, Ignored> {
    if heard.sender == me {
        return Err(Ignored::Own);
    }
    if !people.contains(&heard.sender) {
        return Err(Ignored::Stranger);
    }
    if !heard.typed {
        return Err(Ignored::NotTyped);
    }
    let (place, quotes) = match &heard.relation {
        Relation::None => (MessageContext::Room, false),
        Relation::Thread { root, quotes } => (MessageContext::Thread(root.clone()), *quotes),
        Relation::Reply { to } => (MessageContext::Answer(to.clone()), true),
        Relation::Replacement { .. } => return Err(Ignored::Edit),
        Relation::Other => return Err(Ignored::Elsewhere),
    };
    let clean = clean_block(&heard.body, TEXT_BYTES);
    let text = if quotes { without_quote(&clean) } else { clean.trim() };
    if text.is_empty() {
        return Err(Ignored::Empty);
    }
    let repeats = text.lines().any(|line| line.trim_start().starts_with('>'));
    // What cannot be seen was not typed to be read.
    let seen = clean == heard.body;
    let plain = !quotes && !repeats && !heard.edited && seen && looks_plain(heard);
    Ok(PersonMessage {
        event: heard.event.clone(),
        by: heard.sender.clone(),
        at: heard.at,
        place,
        text: text.to_owned(),
        plain,
        edited: heard.edited,
    })
}

/// Without the lines that a client puts before an answer to show what it answers.
fn without_quote(body: &str) -> &str {
    let mut rest = body;
    while rest.starts_with('>') {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    rest.trim()
}

/// Whether the markup shows the plain text and nothing else: no quotation, no code, nothing struck out.
fn looks_plain(heard: &ChatMessage) -> bool {
    let Some(formatted) = &heard.formatted else { return true };
    let shown = formatted.trim();
    let inside = shown.strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>")).unwrap_or(shown);
    inside.trim() == heard.body.trim() && !inside.contains(['<', '>', '&'])
}
