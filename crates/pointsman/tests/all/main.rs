//! The built program, as people and scripts use it.

mod cli;
