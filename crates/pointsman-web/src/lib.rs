//! Serves: pages for people and an API for programs, over HTTP.
//!
//! This crate is the one corner of the daemon that is asynchronous. It decides nothing and reads nothing by itself: whatever it
//! shows is a view, whatever it carries out is an order, and both go to the daemon through [`Backend`]. `guard` looks at every
//! request before anything else does, `login` knows who may come in, `pages` draws, `live` tells open pages that something
//! changed, `server` listens. `api` and `metrics` are for
//! programs.

mod api;
mod assets;
mod backend;
mod guard;
mod highlight;
mod live;
mod login;
mod metrics;
mod pages;
mod secret;
mod server;

pub use backend::{Answer, Backend, Desk, Failure, FailureKind, Order, Scopes, Visitor, Way};
pub use live::Bell;
pub use server::{Handle, Server};
