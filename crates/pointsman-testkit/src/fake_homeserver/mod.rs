//! A Matrix homeserver for tests: stateful, and as strict as the real one. Built from exchanges recorded from a Synapse.
//!
//! It refuses what that refuses: a token it does not know, whoever is not in the room, a body that is no JSON, an event
//! that is too large, a second use of a transaction for something new. It asks for a pause on order
//! ([`Trouble::Limited`]), and can fail, stall, cut its answers or lose them after the deed. What people do there goes
//! over HTTP, so that the same test can talk to a real server.
//!
//! `api` routes and checks rights, `rooms` has the events and how they are read.

mod api;
mod rooms;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::http::{Reply, Server};

/// The server's own name.
pub const NAME: &str = "lab.invalid";

/// What goes wrong with one request.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// It has had enough for so many milliseconds.
    Limited(u64),
    /// It answers this instead, before anything is done.
    Instead(Reply),
    /// It does what is asked, and the answer is lost.
    Lost,
    /// It does what is asked, and the answer is cut short.
    Cut,
}

/// A running server.
pub struct FakeHomeserver {
    // Dropped before the state, so that nobody asks it any more.
    server: Option<Server>,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Whose a token is.
    tokens: BTreeMap<String, String>,
    rooms: BTreeMap<String, Room>,
    aliases: BTreeMap<String, String>,
    /// What a transaction of a token made.
    transactions: BTreeMap<(String, String), String>,
    /// What goes wrong with requests whose path holds this, one after the other.
    troubles: Vec<(String, VecDeque<Trouble>)>,
    requests: Vec<(String, String)>,
    /// The newest position of the stream.
    position: u64,
    ahead_ms: i64,
    ended: bool,
}

#[derive(Default)]
struct Room {
    joined: Vec<String>,
    invited: Vec<String>,
    encrypted: bool,
    events: Vec<(u64, Value)>,
    /// Who was removed, and when.
    left: BTreeMap<String, u64>,
}

impl FakeHomeserver {
    /// Starts one with these accounts; `@name:lab.invalid` has the token `token-of-name-3c1d`.
    pub fn start(names: &[&str]) -> Self {
        let tokens = names.iter().map(|name| (Self::token_of(name), format!("@{name}:{NAME}"))).collect();
        let state = Mutex::new(State { tokens, ..State::default() });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let answering = Arc::clone(&shared);
        let server = Server::start(move |request| api::answer(&answering, request));
        Self { server: Some(server), shared }
    }

    /// The token of an account.
    pub fn token_of(name: &str) -> String {
        format!("token-of-{name}-3c1d")
    }

    /// Its address.
    pub fn url(&self) -> String {
        self.server.as_ref().expect("it runs").url()
    }

    /// What goes wrong with the next requests whose path holds `part`.
    pub fn trouble(&self, part: &str, troubles: impl IntoIterator<Item = Trouble>) {
        self.state().troubles.push((part.to_owned(), troubles.into_iter().collect()));
    }

    /// What was ordered with [`Self::trouble`] and has not happened yet is forgotten.
    pub fn recover(&self) {
        self.state().troubles.clear();
    }

    /// How far its clock is ahead of ours.
    pub fn set_ahead(&self, ms: i64) {
        self.state().ahead_ms = ms;
    }

    /// A token that is worth nothing any more.
    pub fn revoke(&self, name: &str) {
        self.state().tokens.remove(&Self::token_of(name));
        self.shared.changed.notify_all();
    }

    /// What was asked so far: verb and path of each request.
    pub fn requests(&self) -> Vec<(String, String)> {
        self.state().requests.clone()
    }

    /// All texts that were ever written, and what they relate to.
    pub fn all_text(&self) -> String {
        let state = self.state();
        let events = state.rooms.values().flat_map(|room| &room.events);
        events.map(|(_, event)| event.to_string()).collect::<Vec<_>>().join("\n")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Drop for FakeHomeserver {
    fn drop(&mut self) {
        // Whoever waits for news waits for the server's end otherwise.
        self.state().ended = true;
        self.shared.changed.notify_all();
        drop(self.server.take());
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
