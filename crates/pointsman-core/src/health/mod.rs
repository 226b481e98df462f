//! How well the machine and a project are: facts in, findings from P0 to P4 out, with what can safely be done.
//!
//! `facts` is what was looked at, `log` how logs are read, `finding` what can be wrong and how bad that is, `assess` the rules, `remedy` what
//! may be done about it, `report` what people are told and when, `reply` what their answers mean. No model is needed
//! for any of it. Collecting and carrying out belong elsewhere; the sentences are in [`crate::words::health`].

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
pub use report::{Memory, Report, Told, judgement, report};
