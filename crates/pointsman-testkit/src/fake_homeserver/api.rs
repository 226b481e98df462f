//! Who asks, for what, and may they?

use serde_json::{Value, json};

use super::{NAME, Shared, State, Trouble, rooms};
use crate::http::{Fault, Reply, Request};
use crate::mutation::broken;

/// The largest event, as the specification has it.
const EVENT_BYTES: usize = 64 << 10;

pub(super) fn refused(status: u16, code: &str, words: &str) -> Reply {
    Reply::json(status, &json!({ "errcode": code, "error": words }))
}

pub(super) fn answer(shared: &Shared, request: &Request) -> Reply {
    let reply = or_trouble(shared, request);
    let now = jiff::Timestamp::now().as_millisecond() + shared.state().ahead_ms;
    let now = jiff::Timestamp::from_millisecond(now).expect("a time of this century");
    reply.with("Date", now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

fn or_trouble(shared: &Shared, request: &Request) -> Reply {
    let trouble = {
        let mut state = shared.state();
        state.requests.push((request.method.clone(), request.path.clone()));
        let found =
            state.troubles.iter_mut().find(|(part, left)| request.path.contains(part) && !left.is_empty());
        found.and_then(|(_, left)| left.pop_front())
    };
    match trouble {
        Some(Trouble::Instead(reply)) => reply,
        Some(Trouble::Limited(ms)) => {
            let body =
                json!({ "errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": ms });
            Reply::json(429, &body)
        }
        Some(Trouble::Lost) => serve(shared, request).faulty(Fault::Drop),
        Some(Trouble::Cut) => {
            let reply = serve(shared, request);
            let half = reply.body.len() / 2;
            reply.faulty(Fault::CutAfter(half))
        }
        None => serve(shared, request),
    }
}

fn serve(shared: &Shared, request: &Request) -> Reply {
    let segments = request.segments();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let Some(rest) = segments.strip_prefix(&["_matrix", "client", "v3"]) else {
        return refused(404, "M_UNRECOGNIZED", "Unrecognized request");
    };
    let Some(token) = request.header("authorization").and_then(|text| text.strip_prefix("Bearer ")) else {
        return refused(401, "M_MISSING_TOKEN", "Missing access token");
    };
    let mut state = shared.state();
    let known =
        state.tokens.get(token).or_else(|| state.tokens.values().next().filter(|_| broken("matrix-token")));
    let Some(me) = known.cloned() else {
        let mut reply = json!({ "errcode": "M_UNKNOWN_TOKEN", "error": "Invalid access token passed." });
        reply["soft_logout"] = false.into();
        return Reply::json(401, &reply);
    };
    let body = match request.method.as_str() {
        "PUT" | "POST" => match serde_json::from_slice::<Value>(&request.body) {
            Ok(body) if body.is_object() => body,
            Ok(_) | Err(_) => return refused(400, "M_NOT_JSON", "Content not JSON."),
        },
        _ => Value::Null,
    };
    match (request.method.as_str(), rest) {
        ("GET", ["account", "whoami"]) => {
            Reply::json(200, &json!({ "user_id": me, "is_guest": false, "device_id": "LAB" }))
        }
        ("GET", ["directory", "room", alias]) => match state.aliases.get(*alias) {
            Some(room) => Reply::json(200, &json!({ "room_id": room, "servers": [NAME] })),
            None => refused(404, "M_NOT_FOUND", &format!("Room alias {alias} not found")),
        },
        ("POST", ["createRoom"]) => create(&mut state, &me, &body),
        ("POST", ["join", room]) => join(&mut state, &me, room),
        ("POST", ["rooms", room, "kick"]) => kick(shared, state, &me, room, &body),
        ("GET", ["rooms", room, "state", kind]) => inside(&state, &me, room).unwrap_or_else(|| {
            match *kind == "m.room.encryption" && state.rooms[*room].encrypted {
                true => Reply::json(200, &json!({ "algorithm": "m.megolm.v1.aes-sha2" })),
                false => refused(404, "M_NOT_FOUND", "Event not found."),
            }
        }),
        ("PUT", ["rooms", room, "state", "m.room.encryption"]) => {
            if let Some(no) = inside(&state, &me, room) {
                return no;
            }
            let event = json!({ "type": "m.room.encryption", "state_key": "", "content": body });
            if let Some(room) = state.rooms.get_mut(*room) {
                room.encrypted = true;
            }
            let sent = rooms::append(&mut state, room, &me, event);
            shared.changed.notify_all();
            Reply::json(200, &json!({ "event_id": sent }))
        }
        ("PUT", ["rooms", room, "send", kind, transaction]) => {
            if let Some(no) = inside(&state, &me, room) {
                return no;
            }
            let name = (token.to_owned(), format!("{room} {transaction}"));
            if let Some(sent) = state.transactions.get(&name).filter(|_| !broken("matrix-transaction")) {
                return Reply::json(200, &json!({ "event_id": sent }));
            }
            if request.body.len() > EVENT_BYTES && !broken("matrix-too-large") {
                return refused(413, "M_TOO_LARGE", "event too large");
            }
            if *kind == "m.room.message" && !(body["body"].is_string() && body["msgtype"].is_string()) {
                return refused(400, "M_BAD_JSON", "'body' or 'msgtype' not in content");
            }
            let event = json!({ "type": kind, "content": body });
            let sent = rooms::append(&mut state, room, &me, event);
            state.transactions.insert(name, sent.clone());
            shared.changed.notify_all();
            Reply::json(200, &json!({ "event_id": sent }))
        }
        ("GET", ["rooms", room, "messages"]) => {
            inside(&state, &me, room).unwrap_or_else(|| rooms::messages(&state, room, request))
        }
        ("GET", ["sync"]) => rooms::sync(shared, state, &me, request),
        _ => refused(404, "M_UNRECOGNIZED", "Unrecognized request"),
    }
}

/// The refusal for somebody who is not in a room.
fn inside(state: &State, me: &str, room: &str) -> Option<Reply> {
    let there = state.rooms.get(room).is_some_and(|room| room.joined.iter().any(|name| name == me));
    (!there && !broken("matrix-outsider"))
        .then(|| refused(403, "M_FORBIDDEN", &format!("User {me} not in room {room}")))
}

fn create(state: &mut State, me: &str, body: &Value) -> Reply {
    let id = format!("!room{}:{NAME}", state.rooms.len() + 1);
    let invited = body["invite"].as_array().into_iter().flatten().filter_map(|name| name.as_str());
    let room = super::Room {
        joined: vec![me.to_owned()],
        invited: invited.map(str::to_owned).collect(),
        ..super::Room::default()
    };
    state.rooms.insert(id.clone(), room);
    if let Some(alias) = body["room_alias_name"].as_str() {
        state.aliases.insert(format!("#{alias}:{NAME}"), id.clone());
    }
    Reply::json(200, &json!({ "room_id": id }))
}

fn join(state: &mut State, me: &str, id: &str) -> Reply {
    let Some(room) = state.rooms.get_mut(id) else {
        return refused(
            404,
            "M_UNKNOWN",
            "Can't join remote room because no servers that are in the room have been provided.",
        );
    };
    if !room.joined.iter().any(|name| name == me) {
        if !room.invited.iter().any(|name| name == me) {
            return refused(403, "M_FORBIDDEN", "You are not invited to this room.");
        }
        room.joined.push(me.to_owned());
        room.left.remove(me);
    }
    Reply::json(200, &json!({ "room_id": id }))
}

fn kick(
    shared: &Shared,
    mut state: std::sync::MutexGuard<'_, State>,
    me: &str,
    id: &str,
    body: &Value,
) -> Reply {
    if let Some(no) = inside(&state, me, id) {
        return no;
    }
    let whom = body["user_id"].as_str().unwrap_or_default().to_owned();
    state.position += 1;
    let position = state.position;
    if let Some(room) = state.rooms.get_mut(id) {
        room.joined.retain(|name| *name != whom);
        room.invited.retain(|name| *name != whom);
        room.left.insert(whom, position);
    }
    drop(state);
    shared.changed.notify_all();
    Reply::json(200, &json!({}))
}
