//! A small HTTP server for tests, which answers as it is told and misbehaves on order.
//!
//! `message` reads requests and writes answers, `server` has the threads. What a forge or a CI says is not known here.

mod message;
mod server;

pub use message::{Fault, Reply, Request};
pub use server::Server;
