//! The views as scripts see them: their fields are those of `docs/commands.md`, and what is written is read back.

mod examples;
mod fields;
mod schema;
