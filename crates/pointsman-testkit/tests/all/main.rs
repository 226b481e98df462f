//! The testkit's integration tests.

mod tidy;
