//! The screen of the inbox: a list, and a pane with what a person decides by.
//!
//! `model` has the state and what keys mean; it is pure. `draw` draws it. Whoever reads the store and carries decisions out is
//! `cli/inbox_screen.rs`.

pub(crate) mod draw;
pub(crate) mod model;
