//! The health of the machine and of a project: facts come in, and findings from P0 to P4 go out, with safe remedies.
//!
//! `facts` has the inputs, `log` reads logs, `finding` lists what can be wrong and how serious it is, `assess` has
//! the rules, `remedy` says what may be done, `report` decides what people are told and when, `reply` interprets
//! their answers. Nothing here needs a model. The daemon collects the facts and carries remedies out. The sentences
//! are in [`crate::words::health`].

mod assess;
mod facts;
mod finding;
mod log;
mod remedy;
mod reply;
mod report;
#[cfg(test)]
mod tests;

pub use assess::{Assessment, assess};
pub use facts::{Disk, Facts, Leftovers, LogError, Machine, OpenIssue, SessionFact, Tail};
pub use finding::{Finding, Kind, Priority};
pub use log::{errors, tail};
pub use remedy::{Remedy, remedies};
pub use reply::{Verdict, hear};
pub use report::{HealthSummary, Memory, Report, judgement, report};
