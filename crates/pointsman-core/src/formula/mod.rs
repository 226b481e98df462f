//! Formulas are TOML files of steps for an agent.
//!
//! [`Formula::parse`] reads and checks a formula and reports every mistake with its line. `template` fills in a
//! project's variables. `shipped` has the formulas that come with the program. The program finds files and runs
//! sessions.

mod check;
mod shipped;
mod template;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use crate::config::Error;
use crate::role::Role;
pub use check::check_files;
pub use shipped::{SHIPPED, shipped};
pub(crate) use template::is_variable;
pub use template::{Variables, variables};

/// Steps for an agent, checked and in an order in which they can be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Formula {
    pub name: String,
    pub description: String,
    pub version: u32,
    /// The model it asks for; a project's own word wins.
    pub model: Option<String>,
    /// Files of the repository that belong to the prompt.
    pub files: Vec<String>,
    /// What is to be done, each step after those it needs.
    pub steps: Vec<Step>,
}

/// A step of a formula.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub id: String,
    pub title: String,
    pub description: String,
    /// Steps that come before it.
    pub needs: Vec<String>,
}

impl Formula {
    /// Reads a formula; `origin` is the file's name as it stands in messages. Variables must be written as such, but
    /// which there are is not known here: see [`Formula::render`].
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        check::parse(text, origin)
    }

    /// The same, with every variable filled in. One that the project does not have is an error, with its line.
    pub fn render(text: &str, origin: &str, variables: &Variables) -> Result<Self, Error> {
        template::render(text, origin, variables)
    }

    /// The role whose sessions follow it.
    pub fn role(&self) -> Role {
        Role::of_formula(&self.name)
    }

    /// A step and its place from 1.
    pub fn step(&self, id: &str) -> Option<(usize, &Step)> {
        self.steps.iter().enumerate().find(|(_, step)| step.id == id).map(|(at, step)| (at + 1, step))
    }
}
