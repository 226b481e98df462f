//! One way to talk to services over HTTP: forges, CI and chat are thin layers on this.
//!
//! * [`Host`]: a server as we know it: its connections, breaker, limits, clock and counts, shared by all accounts
//! * [`Client`]: a server with one account; performs [`Request`]s and answers [`Answer`]s
//! * [`Error`]: what went wrong, and by [`Error::retry`] whether it may be repeated, must be looked at first, or never
//! * `breaker`, `backoff`: when not to ask at all, and how long to wait between tries
//! * `etags`: answers that are asked for again with "only if it changed"
//! * `counts`: every call and byte
//!
//! Blocking, on the caller's thread, with a limit on everything: docs/design/0003-http.md says why it is built like
//! this. What an answer means is not known here.

mod answer;
mod backoff;
mod breaker;
mod client;
mod counts;
mod date;
mod error;
mod etags;
mod host;
mod limits;
mod request;
mod tls;
mod wait;

pub use answer::Answer;
pub use client::{Client, Scheme};
pub use counts::{Count, Counts};
pub use date::timestamp;
pub use error::{Error, ErrorKind};
pub use host::{Host, RateLimit};
pub use limits::Limits;
pub use request::{Method, Request};
pub use wait::RetryWait;
