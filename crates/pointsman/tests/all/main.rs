//! The built program, as people and scripts use it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod cli;
mod demo;
