//! Planning: predictions are judged and gaps are named by a model; whether it is asked at all, and what is done of what
//! it says, is decided by rules.
//!
//! `look` collects what is known of a project and whether anything of it is new, `answer` reads what the model says,
//! strictly, `decide` says which of it is done. Issues, files and answers are outside text: none of them can file, close
//! or change more than the limits allow. Asking the forge belongs elsewhere; journal and memory are files of the session.

mod answer;
mod decide;
mod look;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Proposal, Triage, Unusable, Verdict};
pub use decide::{Deed, NewIssue, Plan, plan};
pub use look::{DOCUMENTS, Document, Known, MEMORY, Memory, OWN, Question, Sight, has_goal, question};
