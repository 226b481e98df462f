//! Listening: what was said since the last time, without a gap.

use std::time::Duration;

use pointsman_core::chat::{ChatMessage, mark_edited};
use serde_json::{Value, json};

use super::wire::Own;
use super::{Matrix, path, wire};
use crate::http::Request;
use crate::notify::Error;

/// Events of one answer; more of them come with a gap that is filled.
const TIMELINE: u32 = 50;
/// Events of one page of older ones.
const PAGE: u32 = 100;
/// Pages that are read to fill a gap: who was away for longer than so much talk has missed something, and says so.
const PAGES: u32 = 20;

/// The news of a room since the last look.
#[derive(Debug)]
pub struct Batch {
    /// Messages, oldest first. After trouble the same one may come again.
    pub heard: Vec<ChatMessage>,
    /// Notices of ours that are there.
    pub own: Vec<Own>,
    /// From where to ask the next time.
    pub next: String,
    /// There was more before it than is read.
    pub missed: bool,
}

impl Matrix {
    /// The news since `since`. The call waits for some if `wait` is not zero. Without `since` no message is returned:
    /// those from before we listened are not for us.
    pub fn sync(&self, since: Option<&str>, wait: Duration) -> Result<Batch, Error> {
        let standing = self.look()?;
        let room = standing.room.as_str();
        let limit = if since.is_some() { TIMELINE } else { 1 };
        let mut request = Request::get("listen to the room", &path(&["sync"]))
            .query("filter", filter(room, limit))
            .query("timeout", wait.as_millis());
        if let Some(since) = since {
            request = request.query("since", since);
        }
        let answer: Result<wire::Sync, _> = self.listening.read(&request);
        if answer.as_ref().is_err_and(|error| matches!(error.status(), Some(401 | 403))) {
            self.forget();
        }
        let mut answer = answer?;
        if answer.rooms.leave.contains_key(room) {
            self.forget();
            return Err(Error::NotInvited { me: standing.me.clone(), room: room.to_owned() });
        }
        let (Some(since), Some(joined)) = (since, answer.rooms.join.remove(room)) else {
            return Ok(Batch { heard: Vec::new(), own: Vec::new(), next: answer.next_batch, missed: false });
        };
        let timeline = joined.timeline;
        let (older, missed) = match (timeline.limited, &timeline.prev_batch) {
            (true, Some(from)) => self.gap(room, from, since)?,
            (true, None) => (Vec::new(), true),
            (false, _) => (Vec::new(), false),
        };
        let (mut heard, mut own) = (Vec::new(), Vec::new());
        for value in older.iter().rev().chain(&timeline.events) {
            match wire::event(value, &standing.me, |at| self.listening.host().our_time(at)) {
                wire::Event::Message(message) => heard.push(*message),
                wire::Event::Own(ours) => own.push(ours),
                wire::Event::Encryption => {
                    self.forget();
                    return Err(Error::Encrypted { room: room.to_owned() });
                }
                wire::Event::Other => {}
            }
        }
        mark_edited(&mut heard);
        Ok(Batch { heard, own, next: answer.next_batch, missed })
    }

    /// What lies between two places, newest first, and whether there was more.
    fn gap(&self, room: &str, from: &str, to: &str) -> Result<(Vec<Value>, bool), Error> {
        let (mut found, mut from) = (Vec::new(), from.to_owned());
        for _ in 0..PAGES {
            let request = Request::get("read older messages", &path(&["rooms", room, "messages"]))
                .query("dir", "b")
                .query("from", &from)
                .query("to", to)
                .query("limit", PAGE)
                .query("filter", json!({ "types": TYPES }));
            let page: wire::Page = self.listening.read(&request)?;
            found.extend(page.chunk);
            match page.end {
                Some(end) if end != from => from = end,
                Some(_) | None => return Ok((found, false)),
            }
        }
        Ok((found, true))
    }
}

const TYPES: [&str; 2] = ["m.room.message", "m.room.encryption"];

/// Only what we use: this room, its messages, nothing of presence, typing or receipts.
fn filter(room: &str, limit: u32) -> Value {
    let nothing = json!({ "types": [] });
    json!({
        "room": {
            "rooms": [room],
            "timeline": { "limit": limit, "types": TYPES },
            "state": nothing,
            "ephemeral": nothing,
            "account_data": nothing,
        },
        "presence": nothing,
        "account_data": nothing,
    })
}
