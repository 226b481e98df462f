//! The testkit's integration tests.

#![allow(clippy::disallowed_methods, reason = "a test is outside the fences")]

mod fakes;
mod tidy;
