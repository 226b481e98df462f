//! A room with people in it, on a fake homeserver or on a real one. What people do goes over HTTP in both cases.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pointsman_adapters::http::{Client, Host, Limits, Method, Request, RetryWait, Scheme};
use pointsman_adapters::secret::Secret;
use pointsman_core::time::Timestamp;
use pointsman_testkit::fake_homeserver::FakeHomeserver;
use pointsman_testkit::{PATIENCE, eventually};
use serde_json::{Value, json};

/// The room.
pub(crate) struct Lab {
    pub(crate) url: String,
    pub(crate) room: String,
    pub(crate) bot_token: String,
    pub(crate) bot: String,
    /// Made the room, and is listened to.
    pub(crate) ann: Person,
    /// Is in the room, and nobody listens to her.
    pub(crate) eve: Person,
    /// None if the server is a real one.
    pub(crate) fake: Option<FakeHomeserver>,
}

/// Somebody with an account.
pub(crate) struct Person {
    client: Client,
    pub(crate) id: String,
    room: String,
}

impl Lab {
    /// On a fake homeserver.
    pub(crate) fn fake() -> Self {
        let fake = FakeHomeserver::start(&["bot", "ann", "eve"]);
        let tokens = ["bot", "ann", "eve"].map(FakeHomeserver::token_of);
        Self::on(fake.url(), tokens, Some(fake))
    }

    /// On the server that the environment names; none if it names none.
    pub(crate) fn real() -> Option<Self> {
        let variable = |name: &str| std::env::var(format!("POINTSMAN_TEST_MATRIX_{name}")).ok();
        let url = variable("URL")?;
        let need =
            |name: &str| variable(name).unwrap_or_else(|| panic!("POINTSMAN_TEST_MATRIX_{name} is not set"));
        let tokens = [need("BOT_TOKEN"), need("ANN_TOKEN"), need("EVE_TOKEN")];
        Some(Self::on(url, tokens, None))
    }

    fn on(url: String, [bot_token, ann, eve]: [String; 3], fake: Option<FakeHomeserver>) -> Self {
        let open = |token: &str| {
            let clock = || Timestamp(jiff::Timestamp::now().as_millisecond());
            // People are patient: a server's limit on requests is waited for.
            let limits = Limits { tries: 20, longest_pause: Duration::from_secs(20), ..Limits::default() };
            let host = Host::new(&url, clock, limits, RetryWait::default());
            host.client(Some((Scheme::Bearer, Secret::new(token).unwrap())))
        };
        let who = |client: &Client| {
            let answer: Value = client.read(&Request::get("who", &api(&["account", "whoami"]))).unwrap();
            answer["user_id"].as_str().unwrap().to_owned()
        };
        let (bot, ann, eve) = (open(&bot_token), open(&ann), open(&eve));
        let bot = who(&bot);
        let wanted = json!({ "preset": "private_chat", "name": "lab", "invite": [bot, who(&eve)] });
        let made: Value =
            ann.read(&Request::post("make a room", &api(&["createRoom"])).body(&wanted)).unwrap();
        let room = made["room_id"].as_str().unwrap().to_owned();
        let join = Request::post("join", &api(&["join", &room])).body(&json!({})).repeatable();
        eve.read::<Value>(&join).unwrap();
        let person = |client: Client| Person { id: who(&client), client, room: room.clone() };
        let (ann, eve) = (person(ann), person(eve));
        Self { url, room, bot_token, bot, ann, eve, fake }
    }

    /// What the bot wrote, oldest first.
    pub(crate) fn told(&self) -> Vec<Value> {
        let mut events = self.ann.events();
        events.retain(|event| event["sender"] == self.bot.as_str());
        events
    }

    /// Waits for a message of the bot's that holds this; answers it.
    pub(crate) fn wait_told(&self, text: &str) -> Value {
        self.wait(text, |event| is(event, text) && !edits(event))
    }

    /// Waits for an edit by the bot that says this.
    pub(crate) fn wait_edited(&self, text: &str) -> Value {
        self.wait(text, |event| is(&event["content"]["m.new_content"], text) && edits(event))
    }

    fn wait(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("the bot to say {what:?}"), PATIENCE, || {
            self.told().into_iter().find(|event| wanted(event))
        })
    }

    /// How many messages of the bot's, no edits, hold this.
    pub(crate) fn count_told(&self, text: &str) -> usize {
        self.told().iter().filter(|event| is(event, text) && !edits(event)).count()
    }
}

impl Person {
    /// Sends any event of a message.
    pub(crate) fn send(&self, content: &Value) -> String {
        static SENT: AtomicUsize = AtomicUsize::new(0);
        let transaction = format!("person-{}-{}", std::process::id(), SENT.fetch_add(1, Ordering::Relaxed));
        let place = api(&["rooms", &self.room, "send", "m.room.message", &transaction]);
        let sent: Value =
            self.client.read(&Request::new("speak", Method::Put, &place).body(content)).unwrap();
        sent["event_id"].as_str().unwrap().to_owned()
    }

    /// Writes in a thread, as a client does.
    pub(crate) fn reply(&self, root: &str, text: &str) -> String {
        self.send(&in_thread(root, text))
    }

    /// Writes in the room.
    pub(crate) fn say(&self, text: &str) -> String {
        self.send(&json!({ "msgtype": "m.text", "body": text }))
    }

    /// Answers one message, quoting it.
    pub(crate) fn quote(&self, to: &str, text: &str) -> String {
        let body = format!("> <@bot> something was said\n\n{text}");
        self.send(&json!({ "msgtype": "m.text", "body": body, "m.relates_to": { "m.in_reply_to": { "event_id": to } } }))
    }

    /// Changes an earlier message.
    pub(crate) fn edit(&self, event: &str, text: &str) -> String {
        self.send(&json!({
            "msgtype": "m.text", "body": format!("* {text}"),
            "m.new_content": { "msgtype": "m.text", "body": text },
            "m.relates_to": { "rel_type": "m.replace", "event_id": event },
        }))
    }

    /// Encrypts the room.
    pub(crate) fn encrypt(&self) {
        let place = api(&["rooms", &self.room, "state", "m.room.encryption"]);
        let content = json!({ "algorithm": "m.megolm.v1.aes-sha2" });
        self.client.read::<Value>(&Request::new("encrypt", Method::Put, &place).body(&content)).unwrap();
    }

    /// All messages of the room, oldest first.
    pub(crate) fn events(&self) -> Vec<Value> {
        let place = api(&["rooms", &self.room, "messages"]);
        let request = Request::get("read", &place).query("dir", "b").query("limit", 200);
        let page: Value = self.client.read(&request).unwrap();
        let mut events = page["chunk"].as_array().cloned().unwrap_or_default();
        events.retain(|event| event["type"] == "m.room.message");
        events.reverse();
        events
    }
}

/// A message in a thread.
pub(crate) fn in_thread(root: &str, text: &str) -> Value {
    json!({
        "msgtype": "m.text", "body": text,
        "m.relates_to": {
            "rel_type": "m.thread", "event_id": root, "is_falling_back": true,
            "m.in_reply_to": { "event_id": root },
        },
    })
}

/// The thread that a message is in.
pub(crate) fn thread_of(event: &Value) -> &str {
    let related = &event["content"]["m.relates_to"];
    assert_eq!(related["rel_type"], "m.thread", "{event}");
    related["event_id"].as_str().unwrap()
}

pub(crate) fn id(event: &Value) -> &str {
    event["event_id"].as_str().unwrap()
}

fn is(event: &Value, text: &str) -> bool {
    let content = if event["content"].is_null() { event } else { &event["content"] };
    content["body"].as_str().is_some_and(|body| body.contains(text))
}

fn edits(event: &Value) -> bool {
    event["content"]["m.relates_to"]["rel_type"] == "m.replace"
}

fn api<'p>(rest: &[&'p str]) -> Vec<&'p str> {
    ["_matrix", "client", "v3"].iter().chain(rest).copied().collect()
}
