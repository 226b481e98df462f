//! Answers to orders about vault actions, and reasons why an action is not fired or failed.

use std::fmt::Display;
use std::path::Path;

use crate::ids::ProjectName;
use crate::run::RunId;
use crate::vault::{ActionId, Address};

/// An id that no action of the vault has.
pub fn no_action(project: &ProjectName, action: &ActionId) -> String {
    format!("the vault of {project} has no action {action}")
}

/// An order that the action does not take now, and why.
pub fn refused(action: &ActionId, why: &str) -> String {
    format!("vault action {action}: {why}")
}

/// An id that was used before, for something else.
pub fn id_is_taken(action: &ActionId) -> String {
    format!("the id {action} belongs to another action; choose a new one")
}

/// A submitted file in an encoding that we do not read.
pub fn not_utf8() -> &'static str {
    "it is not UTF-8 text"
}

/// A type that was taken out of the configuration after the action was submitted.
pub fn no_handler(kind: &str) -> String {
    format!("the type {kind} no longer has a handler")
}

/// A handler with an empty command.
pub fn handler_without_program() -> &'static str {
    "its handler has no program"
}

/// A handler that may not be run, and why.
pub fn handler_not_run(why: &str) -> String {
    format!("its handler {why}")
}

/// An action that does not fit into JSON.
pub fn not_json() -> &'static str {
    "the action cannot be written as JSON"
}

/// A secret that the handler needs and nobody has set.
pub fn secret_not_set(name: &str) -> String {
    format!("its secret {name} is neither set in the daemon's environment nor in the .env")
}

/// A program that somebody else could have changed.
pub fn program_not_trusted(program: &Path) -> String {
    format!("{} must be a file of the operator's that nobody else can write", program.display())
}

/// A program that a session could have changed.
pub fn program_in_state(program: &Path) -> String {
    format!("{} is where sessions write", program.display())
}

/// A handler that said no, with the last line that it printed.
pub fn handler_failed(end: impl Display, last_line: &str) -> String {
    let last = if last_line.is_empty() { String::new() } else { format!(": {last_line}") };
    format!("its handler ended with {end}{last}")
}

/// A handler that may have done its work, or not.
pub fn handler_was_ended(end: impl Display) -> String {
    format!("its handler was stopped before it could report a result ({end})")
}

/// A handler's address that is none, and why.
pub fn not_callable(why: &str) -> String {
    format!("its address cannot be called: {why}")
}

/// A handler's address that the operator has not listed.
pub fn host_not_listed(address: &Address) -> String {
    format!("its host {address} is not listed in vault.hosts")
}

/// An action with a value that must not leave.
pub fn holds_secret() -> &'static str {
    "it holds a secret that Pointsman keeps: name the secret in the handler's settings instead"
}

/// A handler's address with characters that no address has.
pub fn no_address() -> &'static str {
    "its address is not usable"
}

/// An action that the vault's agent gave no opinion on, and why. A person is asked.
pub fn no_opinion(why: &str) -> String {
    format!("it could not give an opinion: {why}")
}

/// A vault agent that was switched off meanwhile.
pub fn look_is_off() -> &'static str {
    "roles.vault.enabled is no longer set"
}

/// An action that waits until another one was looked at.
pub fn another_look() -> &'static str {
    "the vault's agent is looking at another action"
}

/// A machine without the memory that the vault's agent needs.
pub fn too_little_memory() -> &'static str {
    "there is too little free memory for a session"
}

/// A secret whose file cannot be read, and why.
pub fn secret_unreadable(name: &str, why: &str) -> String {
    format!("its secret {name}: {why}")
}

/// A look that ended without an opinion and without a reason.
pub fn look_ended(run: RunId, status: &str) -> String {
    format!("run {run} is {status}")
}
