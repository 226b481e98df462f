//! A homeserver's messages, as far as they are used. Everything else is passed over: a room has events of many kinds.

use std::collections::BTreeMap;

use pointsman_core::chat::{ChatMessage, Relation};
use pointsman_core::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::content::NOTICE;

/// A notice of ours in the room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    pub event: String,
    /// When it came there, by our clock.
    pub at: Timestamp,
    pub project: String,
    pub key: String,
}

#[derive(Deserialize)]
pub(super) struct WhoAmI {
    pub user_id: String,
}

#[derive(Deserialize)]
pub(super) struct Room {
    pub room_id: String,
}

#[derive(Deserialize)]
pub(super) struct Sent {
    pub event_id: String,
}

#[derive(Deserialize)]
pub(super) struct Sync {
    pub next_batch: String,
    #[serde(default)]
    pub rooms: Rooms,
}

#[derive(Default, Deserialize)]
pub(super) struct Rooms {
    #[serde(default)]
    pub join: BTreeMap<String, Joined>,
    #[serde(default)]
    pub leave: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
pub(super) struct Joined {
    #[serde(default)]
    pub timeline: Timeline,
}

#[derive(Default, Deserialize)]
pub(super) struct Timeline {
    #[serde(default)]
    pub events: Vec<Value>,
    #[serde(default)]
    pub limited: bool,
    pub prev_batch: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    pub chunk: Vec<Value>,
    pub end: Option<String>,
}

/// What a room's event is to us.
pub(super) enum Event {
    Own(Own),
    Message(Box<ChatMessage>),
    /// The room is encrypted from now on.
    Encryption,
    Other,
}

/// Reads an event. What is malformed is nothing: anybody in the room can send whatever they like.
pub(super) fn event(value: &Value, me: &str, our_time: impl Fn(Timestamp) -> Timestamp) -> Event {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match value["type"].as_str() {
        Some("m.room.encryption") if value["state_key"] == "" => return Event::Encryption,
        Some("m.room.message") if value["state_key"].is_null() => {}
        Some(_) | None => return Event::Other,
    }
    let content = &value["content"];
    let heard = || {
        Some(ChatMessage {
            event: text(&value["event_id"])?,
            sender: text(&value["sender"])?,
            at: our_time(Timestamp(value["origin_server_ts"].as_i64()?)),
            typed: content["msgtype"] == "m.text",
            body: text(&content["body"])?,
            formatted: text(&content["formatted_body"]),
            relation: relation(&content["m.relates_to"]),
            edited: !value["unsigned"]["m.relations"]["m.replace"].is_null(),
        })
    };
    let own = || {
        let notice = &content[NOTICE];
        Some(Own {
            event: text(&value["event_id"])?,
            at: our_time(Timestamp(value["origin_server_ts"].as_i64()?)),
            project: text(&notice["project"])?,
            key: text(&notice["key"])?,
        })
    };
    if value["sender"] == me {
        return own().map_or(Event::Other, Event::Own);
    }
    heard().map_or(Event::Other, |heard| Event::Message(Box::new(heard)))
}

fn relation(related: &Value) -> Relation {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let reply = text(&related["m.in_reply_to"]["event_id"]);
    match (related["rel_type"].as_str(), text(&related["event_id"])) {
        (Some("m.thread"), Some(root)) => {
            // A client without threads is told what to show; only then it is no quotation.
            let quotes = reply.is_some() && related["is_falling_back"] != true;
            Relation::Thread { root, quotes }
        }
        (Some("m.replace"), of) => Relation::Replacement { of },
        (Some(_), _) => Relation::Other,
        (None, _) => match reply {
            Some(to) => Relation::Reply { to },
            None if related.is_null() => Relation::None,
            None => Relation::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::chat::{ChatMessage, Relation};
    use pointsman_core::time::Timestamp;
    use serde_json::{Value, json};

    use super::{Event, event};

    fn read(value: &Value) -> Option<ChatMessage> {
        match event(value, "@bot:lab.invalid", |at| at) {
            Event::Message(heard) => Some(*heard),
            Event::Own(_) | Event::Encryption | Event::Other => None,
        }
    }

    /// As Synapse sent it when a person replied in a thread.
    fn recorded() -> Value {
        json!({
            "content": {
                "body": "APPROVE",
                "m.relates_to": {
                    "event_id": "$basDEF2EGSpAg9g2D11_zET_Z8VP_WYTtW7nIzFkI6Y",
                    "is_falling_back": true,
                    "m.in_reply_to": { "event_id": "$basDEF2EGSpAg9g2D11_zET_Z8VP_WYTtW7nIzFkI6Y" },
                    "rel_type": "m.thread"
                },
                "msgtype": "m.text"
            },
            "event_id": "$tcohrv-L27oKBrFgibMpSpFGLo73dy8uniROXlT01zc",
            "origin_server_ts": 1_794_769_543_674_i64,
            "sender": "@human69540:lab.invalid",
            "type": "m.room.message",
            "unsigned": { "age": 46, "membership": "join" }
        })
    }

    #[test]
    fn a_recorded_reply_is_understood() {
        let heard = read(&recorded()).unwrap();
        assert_eq!((heard.sender.as_str(), heard.body.as_str()), ("@human69540:lab.invalid", "APPROVE"));
        assert_eq!(heard.at, Timestamp(1_794_769_543_674));
        let root = "$basDEF2EGSpAg9g2D11_zET_Z8VP_WYTtW7nIzFkI6Y".to_owned();
        assert_eq!(heard.relation, Relation::Thread { root, quotes: false });
        assert!(heard.typed && !heard.edited && heard.formatted.is_none());
    }

    #[test]
    fn relations_are_told_apart() {
        let related = |related: Value| {
            let mut value = recorded();
            value["content"]["m.relates_to"] = related;
            read(&value).unwrap().relation
        };
        let root = || "$r".to_owned();
        assert_eq!(
            related(
                json!({ "rel_type": "m.thread", "event_id": "$r", "m.in_reply_to": { "event_id": "$x" } })
            ),
            Relation::Thread { root: root(), quotes: true }
        );
        assert_eq!(
            related(json!({ "rel_type": "m.thread", "event_id": "$r" })),
            Relation::Thread { root: root(), quotes: false }
        );
        assert_eq!(related(json!({ "m.in_reply_to": { "event_id": "$r" } })), Relation::Reply { to: root() });
        assert_eq!(
            related(json!({ "rel_type": "m.replace", "event_id": "$r" })),
            Relation::Replacement { of: Some(root()) }
        );
        assert_eq!(related(json!({ "rel_type": "m.replace" })), Relation::Replacement { of: None });
        for odd in [
            json!({}),
            json!("x"),
            json!({ "rel_type": "m.thread" }),
            json!({ "rel_type": "m.annotation", "event_id": "$r" }),
        ] {
            assert_eq!(related(odd.clone()), Relation::Other, "{odd}");
        }
        assert_eq!(related(Value::Null), Relation::None);
    }

    #[test]
    fn what_is_no_message_is_nothing() {
        let mut redacted = recorded();
        redacted["content"] = json!({});
        let mut state = recorded();
        state["state_key"] = "".into();
        let mut nobody = recorded();
        nobody["sender"] = json!({ "toString": "@ann" });
        for value in [redacted, state, nobody, json!(null), json!([1]), json!({ "type": 7 })] {
            assert!(read(&value).is_none(), "{value}");
        }
        let mut edited = recorded();
        edited["unsigned"]["m.relations"] = json!({ "m.replace": { "event_id": "$later" } });
        assert!(read(&edited).unwrap().edited);
        let mut bot = recorded();
        bot["content"]["msgtype"] = "m.notice".into();
        assert!(!read(&bot).unwrap().typed);
        let encryption = json!({ "type": "m.room.encryption", "state_key": "", "content": {} });
        assert!(matches!(event(&encryption, "@bot:lab.invalid", |at| at), Event::Encryption));
    }

    #[test]
    fn our_own_notices_are_known_again_and_only_ours() {
        let mut value = recorded();
        value["content"]["org.pointsman.notice"] = json!({ "project": "shop", "key": "7.0" });
        assert!(read(&value).is_some(), "somebody else's word about a notice is a word");
        value["sender"] = "@bot:lab.invalid".into();
        let Event::Own(own) = event(&value, "@bot:lab.invalid", |at| at) else { panic!("not known") };
        assert_eq!((own.project.as_str(), own.key.as_str()), ("shop", "7.0"));
        value["content"]["org.pointsman.notice"] = json!("7.0");
        assert!(matches!(event(&value, "@bot:lab.invalid", |at| at), Event::Other));
    }
}
