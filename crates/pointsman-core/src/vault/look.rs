//! The opinion of the vault's agent on an action that would be fired without a person. It can only make us more
//! careful.

use serde::Deserialize;
use serde_json::Value;

use super::action::Risk;
use super::entry::{Entry, Event, Policy, Status, refused, way};
use super::estimate::{Estimate, Route};
use crate::role::Role;
use crate::run::{self, Run, Subject};
use crate::time::Timestamp;
use crate::words;
use crate::workflow::Refused;

/// The role whose sessions look at actions.
pub const ROLE: Role = Role::Vault;
/// The formula of its sessions.
pub const FORMULA: &str = ROLE.formula();
/// Longest reason that an answer may give.
const REASON_BYTES: usize = 4096;

/// The result of its session. Every field must be given, and no other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opinion {
    /// How much harm it could do.
    pub risk: Risk,
    /// Whether it can be undone.
    pub reversible: bool,
    /// Whether a person must be asked whatever else holds.
    pub requires_human: bool,
    pub reason: String,
}

impl Opinion {
    /// Reads a result; a sentence about what is wrong if it cannot be used.
    pub fn read(result: Option<&Value>) -> Result<Self, String> {
        let Some(result) = result else { return Err(words::vault::NO_OPINION.to_owned()) };
        let opinion: Self = serde_json::from_value(result.clone())
            .map_err(|error| words::vault::not_an_opinion(&error.to_string()))?;
        match opinion.reason.trim().is_empty() || opinion.reason.len() > REASON_BYTES {
            true => Err(words::vault::reason_length(REASON_BYTES)),
            false => Ok(opinion),
        }
    }

    /// Without the reason.
    pub fn estimate(&self) -> Estimate {
        let Self { risk, reversible, requires_human, .. } = *self;
        Estimate { risk, reversible, requires_human }
    }
}

/// The opinion that a run about an action came to, as the action hears it. Nothing while the run goes on, or if it is about
/// something else.
pub fn heard(run: &Run) -> Option<Event> {
    let Some(Subject::Vault { hash, .. }) = &run.subject else { return None };
    let status = run.status.as_str();
    let opinion = match run.status {
        run::Status::Starting | run::Status::Running => return None,
        run::Status::Done => Opinion::read(run.result.as_ref()),
        run::Status::Failed | run::Status::Stopped => {
            let why = run.reason.clone();
            Err(why.unwrap_or_else(|| words::daemon::vault::look_ended(run.id, status)))
        }
    };
    Some(match opinion {
        Ok(opinion) => {
            Event::LookEnded { hash: hash.clone(), opinion: Some(opinion.estimate()), reason: opinion.reason }
        }
        Err(why) => Event::no_opinion(hash, &why),
    })
}

impl Event {
    /// Nobody could say what to think of an action.
    pub fn no_opinion(hash: &str, why: &str) -> Self {
        Self::LookEnded {
            hash: hash.to_owned(),
            opinion: None,
            reason: words::daemon::vault::no_opinion(why),
        }
    }
}

/// The look is over: what was thought before is raised, or a person is asked.
pub(super) fn ended(
    entry: Entry,
    hash: &str,
    opinion: Option<Estimate>,
    reason: &str,
    policy: &Policy,
    now: Timestamp,
) -> Result<Entry, Refused> {
    if entry.status != Status::Pending || !entry.awaits_look {
        return refused(words::vault::NO_LOOK_AWAITED);
    }
    if hash != entry.hash || entry.action.hash(&entry.project) != entry.hash {
        return refused(words::vault::ANOTHER_LOOKED_AT);
    }
    let unknown = Estimate { requires_human: true, ..entry.estimate };
    let estimate = entry.estimate.raised_by(opinion.unwrap_or(unknown));
    let route = way(estimate, policy).max(entry.route);
    let entry = Entry { estimate, route, ..entry };
    let why = words::vault::look_ended(reason);
    Ok(match route {
        Route::Ask => entry.asks(policy, Some(why)),
        Route::Fire | Route::FireAndTell => entry.goes(policy, Some(why), now),
    })
}
