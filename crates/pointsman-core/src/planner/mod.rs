//! The planner has a model judge predictions and name gaps. Rules decide whether the model is asked and which of its
//! proposals are carried out.
//!
//! `inputs` collects the inputs and decides whether any of them is new. `answer` reads the model's answer strictly.
//! `decide` chooses the changes, and `deeds` orders them. Issues, files and answers are outside text: none of them can file, close or change
//! more than the limits allow. The daemon talks to the forge. The session keeps its journal and its memory in files
//! of its own.

mod answer;
mod decide;
mod deeds;
mod inputs;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Proposal, Triage, Unusable, Verdict};
pub use decide::{ForgeChange, NewIssue, Plan, plan};
pub use inputs::{
    DOCUMENTS, Document, MEMORY, Memory, OWN, PlanInputs, Question, SeenInputs, has_goal, question,
};
