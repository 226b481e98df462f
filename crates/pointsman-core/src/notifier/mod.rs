//! Notices to people: who gets which notice, when, and how often.
//!
//! `topic` says what a notice is about; each topic has its own thread where threads exist. `plan` chooses the
//! notifier and the time, `quiet` has the hours without notices, and `backlog` decides about notices that cannot be
//! sent. `way` is a notifier as the recipient of notices, with its lanes in the outbox; `digest` says when the digest of the day is due. The sentences are in [`crate::words`]. The daemon sends and the store remembers.

mod backlog;
mod digest;
mod plan;
mod quiet;
mod topic;
mod way;

use serde::{Deserialize, Serialize};

use crate::ids::ProjectName;
use crate::task::Notice;

pub use backlog::{BACKLOG, Health, KEPT, overflow};
pub use digest::DigestTime;
pub use plan::{Plan, Rules, plan};
pub use quiet::QuietHours;
pub use topic::Topic;
pub use way::{Event, Lane, Notifier, NotifierKey, step};

/// Something to tell people, once for each key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posting {
    /// Whoever says it again under the same key has said it already.
    pub key: String,
    pub project: ProjectName,
    pub topic: Topic,
    pub link: Option<String>,
    /// The question that it asks, if an answer counts for exactly this one only.
    pub question: Option<String>,
    pub notice: Notice,
}

impl Posting {
    /// Tells apart what says something else: the same words about the same thing are the same.
    pub fn words(&self) -> String {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        for part in [&self.topic.to_string(), &self.notice.title, &self.notice.body] {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}
