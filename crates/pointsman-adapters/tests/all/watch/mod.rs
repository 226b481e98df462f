//! Watches against real files, processes and terminals.

mod exits;
mod files;
mod terminal;
