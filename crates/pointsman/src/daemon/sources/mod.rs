//! Sources of facts: phase files, ended processes, idle terminals, heartbeats, hooks, the forge and submitted actions.
//!
//! A source reports facts and never decides. It may report a fact again: the engine refuses what is stale or known,
//! and a source may remember what it reported to save work.

pub(crate) mod exits;
pub(crate) mod forge;
pub(crate) mod heartbeat;
pub(crate) mod hooks;
pub(crate) mod idle;
pub(crate) mod outages;
pub(crate) mod pending_actions;
pub(crate) mod phase;
pub(crate) mod work;
