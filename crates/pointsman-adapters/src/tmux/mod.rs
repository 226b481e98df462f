//! A private tmux server: its own socket, its own configuration, a clean environment, exact targets.
//!
//! The server outlives the daemon, so sessions survive a restart and are adopted by name. Everything that
//! runs in it was started here; text that came from outside reaches a terminal only through
//! [`Server::send_message`], as a cleaned paste, never as an argument, a target or a format.
//!
//! * `server`: starting, finding, listing, killing, looking at panes
//! * `session`: starting one program in a session of its own
//! * `message`: typing a line into a pane exactly once
//! * `control`, `client`: the two ways to give tmux a command
//! * `script`: how words are quoted for tmux and for the shell it calls
//! * `config`: the configuration file
//!
//! What does not belong here: which program to run for a role, when to restart it, and what a message says.

mod client;
mod config;
mod control;
mod error;
mod message;
mod pane;
mod script;
mod server;
mod session;

pub use self::client::{Version, version};
pub use self::error::Error;
pub use self::message::{MESSAGE_LIMIT, Sent, clean_line};
pub use self::pane::{PaneExit, PaneId, PaneInfo};
pub use self::server::{SOCKET_PATH_LIMIT, Server, Target};
pub use self::session::{NewSession, Started};
