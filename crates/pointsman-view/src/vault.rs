//! The vault: `vault …`.

use pointsman_core::ids::ProjectName;
use pointsman_core::vault::{ActionId, Entry, Risk, Route, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;

/// A vault action. Its risk is the one that counts; `submitted` has the submitter's own estimate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    pub id: ActionId,
    pub project: ProjectName,
    #[serde(rename = "type")]
    pub kind: String,
    pub source: String,
    pub risk: Risk,
    pub reversible: bool,
    pub requires_human: bool,
    pub route: Route,
    pub status: Status,
    pub awaits_look: bool,
    pub reason: Option<String>,
    pub hash: String,
    pub submitted_at: Time,
    pub expires_at: Option<Time>,
    pub decided_by: Option<String>,
    pub decided_at: Option<Time>,
    pub firings: u32,
    pub payload: Value,
    pub submitted: Submitted,
}

/// The submitter's own estimate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    pub risk: Risk,
    pub reversible: bool,
    pub requires_human: bool,
}

impl From<&Entry> for Action {
    fn from(entry: &Entry) -> Self {
        let Entry { action, estimate, .. } = entry;
        Self {
            id: action.id.clone(),
            project: entry.project.clone(),
            kind: action.kind.clone(),
            source: action.source.clone(),
            risk: estimate.risk,
            reversible: estimate.reversible,
            requires_human: estimate.requires_human,
            route: entry.route,
            status: entry.status,
            awaits_look: entry.awaits_look,
            reason: entry.reason.clone(),
            hash: entry.hash.clone(),
            submitted_at: entry.submitted_at.into(),
            expires_at: entry.expires_at.map(Time),
            decided_by: entry.decided_by.clone(),
            decided_at: entry.decided_at.map(Time),
            firings: entry.firings,
            payload: action.payload.clone(),
            submitted: Submitted {
                risk: action.risk,
                reversible: action.reversible,
                requires_human: action.requires_human,
            },
        }
    }
}
