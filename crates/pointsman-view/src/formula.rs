//! Formulas: `formula list`, `formula show`, `formula check`.

use pointsman_core::formula as core;
use pointsman_core::role::Role;
use serde::{Deserialize, Serialize};

/// A formula of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Formula {
    pub name: String,
    pub description: String,
    pub version: u32,
    pub model: Option<String>,
    pub role: Role,
    /// Its file, or `shipped`.
    pub origin: String,
    pub files: Vec<String>,
    pub steps: Vec<Step>,
}

impl Formula {
    /// The view of a formula under the name it is found by; `model` is the one that its sessions would use.
    pub fn new(name: String, formula: &core::Formula, model: Option<String>, origin: String) -> Self {
        Self {
            name,
            description: formula.description.clone(),
            version: formula.version,
            model,
            role: formula.role(),
            origin,
            files: formula.files.clone(),
            steps: formula.steps.iter().map(Step::from).collect(),
        }
    }
}

/// A step of a formula.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub id: String,
    pub title: String,
    pub description: String,
    pub needs: Vec<String>,
}

impl From<&core::Step> for Step {
    fn from(step: &core::Step) -> Self {
        let core::Step { id, title, description, needs } = step.clone();
        Self { id, title, description, needs }
    }
}

/// A formula in a list: one that can be used, or the reason why it cannot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Listed {
    Usable(Formula),
    Broken(Broken),
}

/// A formula whose file has a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    pub name: String,
    pub error: String,
}

/// `formula check` of a file without mistakes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub ok: bool,
    pub name: String,
    pub steps: usize,
}
