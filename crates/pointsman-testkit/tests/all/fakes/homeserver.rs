//! A Matrix homeserver, as a Synapse answered.

use pointsman_testkit::fake_homeserver::FakeHomeserver;
use serde_json::{Value, json};

use super::Asker;

fn start() -> (FakeHomeserver, Asker<'static>, String, String) {
    let fake = FakeHomeserver::start(&["ann", "eve"]);
    let token = FakeHomeserver::token_of("ann");
    let asker = Asker { url: fake.url(), base: "/_matrix/client/v3", scheme: "Bearer", headers: "" };
    let (_, made) = asker.ask("POST", "/createRoom", &token, &json!({ "name": "lab" }));
    let room = made["room_id"].as_str().unwrap().replace('!', "%21").replace(':', "%3A");
    (fake, asker, token, room)
}

#[test]
fn matrix_token() {
    let (_fake, asker, ..) = start();
    let (status, said) = asker.get("/account/whoami", "wrong");
    assert_eq!((status, &said["errcode"]), (401, &"M_UNKNOWN_TOKEN".into()));
}

/// The same transaction is the same event.
#[test]
fn matrix_transaction() {
    let (_fake, asker, token, room) = start();
    let path = format!("/rooms/{room}/send/m.room.message/t1");
    let body = json!({ "msgtype": "m.text", "body": "hello" });
    let (_, first) = asker.ask("PUT", &path, &token, &body);
    let (_, second) = asker.ask("PUT", &path, &token, &body);
    assert_eq!(first["event_id"], second["event_id"]);
    assert!(first["event_id"].is_string(), "{first}");
}

#[test]
fn matrix_outsider() {
    let (_fake, asker, _, room) = start();
    let eve = FakeHomeserver::token_of("eve");
    let path = format!("/rooms/{room}/send/m.room.message/t1");
    let (status, _) = asker.ask("PUT", &path, &eve, &json!({ "msgtype": "m.text", "body": "hello" }));
    assert_eq!(status, 403);
}

#[test]
fn matrix_too_large() {
    let (_fake, asker, token, room) = start();
    let path = format!("/rooms/{room}/send/m.room.message/t1");
    let body = json!({ "msgtype": "m.text", "body": "x".repeat(70_000) });
    assert_eq!(asker.ask("PUT", &path, &token, &body).0, 413);
    assert_eq!(asker.ask("PUT", &path, &token, &Value::Null).0, 400, "no JSON");
}
