//! The testkit's integration tests.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may panic and are outside the fences"
)]

mod fakes;
mod tidy;
