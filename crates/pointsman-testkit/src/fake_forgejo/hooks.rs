//! Webhooks, signed as the real server signs them: one for every change, whoever made it, and without waiting for the
//! answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use super::{FakeForgejo, Shared, State, json};
use crate::http::{Reply, Request};

/// For one delivery.
const LIMIT: Duration = Duration::from_secs(10);

/// Where webhooks go.
#[derive(Clone)]
pub(super) struct Hook {
    address: String,
    path: String,
    secret: String,
}

impl FakeForgejo {
    /// Tells everything that changes from now on to this address, `host:port` and path.
    pub fn hook(&self, address: &str, path: &str, secret: &str) {
        let [address, path, secret] = [address, path, secret].map(str::to_owned);
        self.state().hook = Some(Hook { address, path, secret });
    }

    /// How many webhooks were sent.
    pub fn hooks_sent(&self) -> u64 {
        self.state().hooked
    }
}

impl State {
    /// Tells of a change.
    pub(super) fn tell(&mut self, event: &'static str, who: &str) {
        self.tell_with(event, who, &serde_json::Value::Null);
    }

    /// Tells of a change, with the state that a status has.
    pub(super) fn tell_with(&mut self, event: &'static str, who: &str, word: &serde_json::Value) {
        let Some(hook) = self.hook.clone() else { return };
        self.hooked += 1;
        let delivery = format!("delivery-{}", self.hooked);
        let repository = json!({ "full_name": super::REPO });
        let body = json!({ "sender": json::user(who), "repository": repository, "state": word }).to_string();
        // Who does not listen does not hear it.
        std::thread::spawn(move || drop(hook.deliver(event, &delivery, &body)));
    }
}

impl Hook {
    fn deliver(&self, event: &str, delivery: &str, body: &str) -> std::io::Result<()> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.secret.as_bytes()).expect("a key may have any length");
        mac.update(body.as_bytes());
        let signature: String =
            mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Gitea-Event: {event}\r\n\
             X-Gitea-Delivery: {delivery}\r\nX-Gitea-Signature: {signature}\r\nContent-Length: {}\r\n\r\n",
            self.path,
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    }
}

/// Tells what a request has changed, if it has.
pub(super) fn tell_of(shared: &Shared, request: &Request, reply: &Reply) {
    if request.method == "GET" || !(200..300).contains(&reply.status) {
        return;
    }
    let event = match request.path.as_str() {
        path if path.ends_with("git-receive-pack") => "push",
        path if !path.starts_with("/api/") => return,
        path if path.contains("/statuses/") => "status",
        path if path.contains("/reviews") => "pull_request_approved",
        path if path.contains("/pulls") => "pull_request",
        path if path.ends_with("/comments") => "issue_comment",
        path if path.contains("/issues/") && path.contains("/labels") => "issue_label",
        path if path.contains("/issues") => "issues",
        _ => return,
    };
    let mut state = shared.state();
    if let Some(who) = state.who(request) {
        let word = if event == "status" { request.json()["state"].clone() } else { serde_json::Value::Null };
        state.tell_with(event, &who, &word);
    }
}
