//! Grooming the backlog: what looks wrong is found by rules, what is to be done about it is proposed by a model, and what
//! may be done is decided by rules again.
//!
//! `similarity` compares texts without a network, `find` looks through the open issues, `answer` reads what the model
//! says, strictly, `decide` says which of it is done, `dust` collects what is too small for an issue of its own. Issues
//! are outside text and so is a model's answer: neither can close, file or change more than the limits allow. Asking
//! the forge belongs elsewhere.

mod answer;
mod decide;
mod dust;
mod find;
mod memory;
mod similarity;
#[cfg(test)]
mod tests;

pub use answer::{Action, Answer, Line, Unusable};
pub use decide::{Deed, Plan, plan};
pub use dust::{BUNDLE, Dust, bundles};
pub use find::{Finding, findings};
pub use memory::{Blocker, Ground, Main, Memory, Question, questions};
pub use similarity::{DUPLICATE, Texts};
