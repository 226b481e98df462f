//! Events of rooms, and how they are read: from a position on, or back from one.

use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::api::refused;
use super::{Shared, State};
use crate::http::{Reply, Request};

/// Appends an event; answers its name.
pub(super) fn append(state: &mut State, room: &str, sender: &str, mut event: Value) -> String {
    state.position += 1;
    let (position, name) = (state.position, format!("$event{}", state.position));
    event["event_id"] = name.clone().into();
    event["sender"] = sender.into();
    event["origin_server_ts"] = (jiff::Timestamp::now().as_millisecond() + state.ahead_ms).into();
    let related = &event["content"]["m.relates_to"];
    let replaced = (related["rel_type"] == "m.replace").then(|| related["event_id"].clone());
    if let Some(room) = state.rooms.get_mut(room) {
        // As the real one shows it to whoever reads the changed event later.
        let changed = room.events.iter_mut().find(|(_, known)| Some(&known["event_id"]) == replaced.as_ref());
        if let Some((_, changed)) = changed.filter(|(_, known)| known["sender"] == sender) {
            changed["unsigned"] = json!({ "m.relations": { "m.replace": event.clone() } });
        }
        room.events.push((position, event));
    }
    name
}

/// A position in a token: `s12`.
fn position(token: &str) -> Option<u64> {
    token.strip_prefix('s')?.parse().ok()
}

pub(super) fn sync(shared: &Shared, mut state: MutexGuard<'_, State>, me: &str, request: &Request) -> Reply {
    let filter: Value =
        request.query("filter").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let wait = request.query("timeout").and_then(|text| text.parse().ok()).unwrap_or(0);
    let since = match request.query("since").map(|token| position(&token)) {
        None => None,
        Some(Some(since)) => Some(since),
        Some(None) => return refused(400, "M_UNKNOWN", "Invalid stream token"),
    };
    let deadline = Instant::now() + Duration::from_millis(wait);
    let from = since.unwrap_or(0);
    while since.is_some() && !state.ended && !has_news(&state, me, &filter, from) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        state = shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    let limit = filter["room"]["timeline"]["limit"].as_u64().unwrap_or(10) as usize;
    let (mut joined, mut left) = (json!({}), json!({}));
    for (id, room) in &state.rooms {
        if room.left.get(me).is_some_and(|at| *at > from) {
            left[id] = json!({});
        }
        if !room.joined.iter().any(|name| name == me) {
            continue;
        }
        let news: Vec<(u64, Value)> = news(&state, id, &filter, from);
        let shown = &news[news.len().saturating_sub(limit)..];
        if let Some((first, _)) = shown.first() {
            joined[id] = json!({ "timeline": {
                "events": shown.iter().map(|(_, event)| event).collect::<Vec<_>>(),
                "limited": news.len() > shown.len(),
                "prev_batch": format!("s{}", first - 1),
            } });
        }
    }
    let mut answer = json!({ "next_batch": format!("s{}", state.position) });
    answer["rooms"] = json!({ "join": joined, "leave": left });
    Reply::json(200, &answer)
}

fn has_news(state: &State, me: &str, filter: &Value, from: u64) -> bool {
    state.rooms.iter().any(|(id, room)| {
        room.left.get(me).is_some_and(|at| *at > from)
            || (room.joined.iter().any(|name| name == me) && !news(state, id, filter, from).is_empty())
    })
}

/// Events of a room after a position, as far as they are wanted.
fn news(state: &State, id: &str, filter: &Value, from: u64) -> Vec<(u64, Value)> {
    let listed = |list: &Value, value: &Value| list.as_array().is_none_or(|list| list.contains(value));
    let (rooms, types) = (&filter["room"]["rooms"], &filter["room"]["timeline"]["types"]);
    let events = state.rooms[id].events.iter();
    let wanted = events.filter(|(at, event)| *at > from && listed(types, &event["type"]));
    match listed(rooms, &id.into()) {
        true => wanted.cloned().collect(),
        false => Vec::new(),
    }
}

/// Older events, newest first.
pub(super) fn messages(state: &State, id: &str, request: &Request) -> Reply {
    let token = |name: &str| request.query(name).and_then(|token| position(&token));
    let limit = request.query("limit").and_then(|text| text.parse().ok()).unwrap_or(10);
    let (from, to) = (token("from").unwrap_or(state.position), token("to").unwrap_or(0));
    if request.query("dir").as_deref() != Some("b") {
        return refused(400, "M_INVALID_PARAM", "Missing or invalid dir");
    }
    let events = state.rooms[id].events.iter().rev();
    let between: Vec<_> = events.filter(|(at, _)| *at <= from && *at > to).collect();
    let page: Vec<&Value> = between.iter().take(limit).map(|(_, event)| event).collect();
    let mut answer = json!({ "chunk": page, "start": format!("s{from}") });
    if let Some((last, _)) = between.get(limit.saturating_sub(1)) {
        answer["end"] = format!("s{}", last - 1).into();
    }
    Reply::json(200, &answer)
}
