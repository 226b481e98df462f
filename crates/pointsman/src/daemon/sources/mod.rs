//! Where events come from: phase files, ended processes, idle terminals, the forge.
//!
//! Each source tells facts, again and again if need be; none decides. What was told already is
//! recognised by the engine (stale, duplicate) or remembered by the source as a shortcut.

pub(crate) mod exits;
pub(crate) mod forge;
pub(crate) mod hooks;
pub(crate) mod idle;
pub(crate) mod phase;
pub(crate) mod pulse;
pub(crate) mod work;
