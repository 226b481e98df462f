//! The gardener grooms the backlog. Rules find what looks wrong, a model proposes what to do, and rules decide what
//! may be done.
//!
//! `similarity` compares texts without a network. `find` looks through the open issues. `answer` reads the model's
//! answer strictly. `decide` chooses the changes, and `deeds` orders them. `dust` collects what is too small for an issue of its own. Issues
//! and answers are outside text: neither can close, file or change more than the limits allow. The daemon talks to
//! the forge.

mod answer;
mod decide;
mod deeds;
mod dust;
mod find;
mod memory;
mod similarity;
#[cfg(test)]
mod tests;

pub use answer::{Action, Answer, AnswerLine, Unusable};
pub use decide::{ForgeChange, Plan, plan};
pub use dust::{BUNDLE, Dust, bundles};
pub use find::{Finding, findings};
pub use memory::{Blocker, Main, Memory, Question, RepositoryFacts, questions};
pub use similarity::{DUPLICATE, Texts};
