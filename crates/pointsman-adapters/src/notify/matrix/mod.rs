//! A room of Matrix, by the client-server API alone. Rooms without encryption.
//!
//! `content` builds what is sent, `wire` reads what the server says, `sync` listens. Sending is idempotent by a
//! transaction id that the caller chooses: the same one, after whatever happened in between, is the same message.

mod content;
mod sync;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pointsman_core::time::Timestamp;

use super::Error;
use crate::http::{Client, Host, Limits, Method, Request, RetryWait, Scheme};
use crate::secret::Secret;

pub use content::Message;
pub use sync::Batch;
pub use wire::Own;

/// How long one question for news may stay open at the server.
pub const LONG_POLL: Duration = Duration::from_secs(30);
/// What is added to that for the way there and back.
const WAY: Duration = Duration::from_secs(20);
const API: [&str; 3] = ["_matrix", "client", "v3"];

/// The settings for a room that is opened.
pub struct Opening<'a> {
    pub homeserver: &'a str,
    /// The room's id or alias.
    pub room: &'a str,
    pub token: Secret,
    pub clock: fn() -> Timestamp,
    pub limits: Limits,
    /// Ends the pauses between tries.
    pub patience: RetryWait,
}

/// A room, with our account.
pub struct Matrix {
    client: Client,
    /// A second client of the same server, for questions that take long: a pause asked for when we talk too much must not
    /// keep us from listening.
    listening: Client,
    wanted: String,
    known: Mutex<Option<Arc<RoomMembership>>>,
}

/// Our own user id, and the id of the room that we have joined.
#[derive(Debug, PartialEq, Eq)]
pub struct RoomMembership {
    pub me: String,
    pub room: String,
}

impl Opening<'_> {
    /// The room. Nothing is asked of the server yet.
    pub fn prepare(self) -> Matrix {
        let patient = Limits { call: LONG_POLL + WAY, ..self.limits };
        let host = Host::new(self.homeserver, self.clock, self.limits, self.patience.clone());
        let listening = Host::new(self.homeserver, self.clock, patient, self.patience);
        Matrix {
            client: host.client(Some((Scheme::Bearer, self.token.clone()))),
            listening: listening.client(Some((Scheme::Bearer, self.token))),
            wanted: self.room.to_owned(),
            known: Mutex::default(),
        }
    }
}

impl Matrix {
    /// The server, for its counts.
    pub fn host(&self) -> &Host {
        self.client.host()
    }

    /// Finds out who we are and which room is meant, joins it if we are invited, and refuses one that is encrypted.
    /// Asked of the server once, and again after trouble.
    pub fn look(&self) -> Result<Arc<RoomMembership>, Error> {
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let who: wire::WhoAmI =
            self.client.read(&Request::get("ask who we are", &path(&["account", "whoami"])))?;
        let room = self.find()?;
        let standing = Arc::new(RoomMembership { me: who.user_id, room });
        match self.refuse_encrypted(&standing.room) {
            Err(Error::Call(error)) if error.status() == Some(403) => {
                self.join(&standing)?;
                self.refuse_encrypted(&standing.room)?;
            }
            other => other?,
        }
        *self.lock() = Some(Arc::clone(&standing));
        Ok(standing)
    }

    /// Our membership, if it was looked up and still holds.
    pub fn known(&self) -> Option<Arc<RoomMembership>> {
        self.lock().clone()
    }

    /// Whatever is known is asked again at the next look.
    pub fn forget(&self) {
        *self.lock() = None;
    }

    /// Writes a message; answers its name on the server. The same transaction is the same message.
    pub fn send(&self, message: &Message<'_>, transaction: &str) -> Result<String, Error> {
        let standing = self.look()?;
        let place = ["rooms", &standing.room, "send", "m.room.message", transaction];
        let request = Request::new("write to the room", Method::Put, &path(&place)).body(&message.content());
        let sent: Result<wire::Sent, _> = self.client.read(&request);
        if let Err(error) = &sent
            && matches!(error.status(), Some(401 | 403 | 404))
        {
            self.forget();
        }
        Ok(sent?.event_id)
    }

    fn find(&self) -> Result<String, Error> {
        if self.wanted.starts_with('!') {
            return Ok(self.wanted.clone());
        }
        let request = Request::get("find the room", &path(&["directory", "room", &self.wanted]));
        match self.client.find::<wire::Room>(&request)? {
            Some(room) => Ok(room.room_id),
            None => Err(Error::NoRoom { room: self.wanted.clone() }),
        }
    }

    fn join(&self, standing: &RoomMembership) -> Result<(), Error> {
        let RoomMembership { me, room } = standing;
        let request =
            Request::post("join the room", &path(&["join", room])).body(&serde_json::json!({})).repeatable();
        match self.client.read::<wire::Room>(&request) {
            Ok(_) => Ok(()),
            Err(error) if error.status() == Some(403) => {
                Err(Error::NotInvited { me: me.clone(), room: room.clone() })
            }
            Err(error) if error.status() == Some(404) => Err(Error::NoRoom { room: room.clone() }),
            Err(error) => Err(error.into()),
        }
    }

    fn refuse_encrypted(&self, room: &str) -> Result<(), Error> {
        let place = ["rooms", room, "state", "m.room.encryption"];
        let request = Request::get("ask whether the room is encrypted", &path(&place));
        match self.client.find::<serde::de::IgnoredAny>(&request)? {
            Some(_) => Err(Error::Encrypted { room: room.to_owned() }),
            None => Ok(()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<RoomMembership>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn path<'p>(rest: &[&'p str]) -> Vec<&'p str> {
    API.iter().chain(rest).copied().collect()
}
