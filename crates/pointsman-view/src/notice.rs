//! Notices to people: `notify list`, `notify test`, and notifiers that do not work.

use pointsman_core::config::NotifierKind;
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::notifier::{Health, Posting, Topic};
use serde::{Deserialize, Serialize};

use crate::Time;

/// A notice and who was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub key: String,
    pub at: Time,
    pub project: ProjectName,
    pub topic: Topic,
    pub issue: Option<Number>,
    pub title: String,
    pub body: String,
    pub urgent: bool,
    /// How often it was said.
    pub times: u32,
    pub told: Vec<Delivery>,
}

impl Notice {
    /// The view of a notice that was said so many times.
    pub fn new(posting: &Posting, at: Time, times: u32, told: Vec<Delivery>) -> Self {
        Self {
            key: posting.key.clone(),
            at,
            project: posting.project.clone(),
            topic: posting.topic.clone(),
            issue: posting.topic.issue(),
            title: posting.notice.title.clone(),
            body: posting.notice.body.clone(),
            urgent: posting.notice.urgent,
            times,
            told,
        }
    }
}

/// A notice on its way by one notifier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub notifier: NotifierKind,
    /// `pending`, `sent` or `dropped`.
    pub status: String,
    pub not_before: Time,
    pub settled_at: Option<Time>,
    pub error: Option<String>,
}

/// `notify test`: whether a notifier took the test notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    pub notifier: NotifierKind,
    /// `pending`, `sent` or `dropped`.
    pub status: String,
    pub error: Option<String>,
}

/// The daemon's answer to `notify test`: the key of the notice to wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Testing {
    pub key: String,
}

/// A part of telling people that does not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenNotifier {
    pub project: ProjectName,
    pub part: String,
    pub error: String,
    pub since: Time,
    pub failed: u32,
    /// When it is tried again.
    pub next: Time,
    /// Notices that wait for it.
    pub waiting: u64,
}

impl BrokenNotifier {
    /// The view of a notifier that fails, with how many notices wait for it.
    pub fn new(project: ProjectName, part: String, health: &Health, waiting: u64) -> Self {
        Self {
            project,
            part,
            error: health.error.clone(),
            since: health.since.into(),
            failed: health.failed,
            next: health.next.into(),
            waiting,
        }
    }
}
