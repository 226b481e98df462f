//! A vault action as scripts see it.

use pointsman_core::vault::Entry;
use serde_json::{Value, json};

use crate::daemon::clock::rfc3339;

/// Its fields. The estimate is the one that counts; what the submitter said is in `submitted`.
pub fn to_json(entry: &Entry) -> Value {
    let Entry { action, estimate, .. } = entry;
    json!({
        "id": action.id,
        "project": entry.project,
        "type": action.kind,
        "source": action.source,
        "risk": estimate.risk,
        "reversible": estimate.reversible,
        "requires_human": estimate.requires_human,
        "route": entry.route,
        "status": entry.status,
        "awaits_look": entry.awaits_look,
        "reason": entry.reason,
        "hash": entry.hash,
        "submitted_at": rfc3339(entry.submitted_at),
        "expires_at": entry.expires_at.map(rfc3339),
        "decided_by": entry.decided_by,
        "decided_at": entry.decided_at.map(rfc3339),
        "firings": entry.firings,
        "payload": action.payload,
        "submitted": {
            "risk": action.risk,
            "reversible": action.reversible,
            "requires_human": action.requires_human,
        },
    })
}
