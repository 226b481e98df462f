//! Events and log entries without secrets that the daemon knows. Agents write into many of them, and everybody who may look at
//! a task reads them.

use std::borrow::Cow;

use pointsman_adapters::secret::known;
use pointsman_core::known_secrets::KnownSecrets;
use pointsman_core::workflow::Event;
use pointsman_store::{Change, Write};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The event with its secrets masked.
pub(super) fn event(event: &Event) -> Cow<'_, Event> {
    let known = known();
    if known.is_empty() {
        return Cow::Borrowed(event);
    }
    let masked = match event {
        Event::Task(event) => masked(&known, event).map(Event::Task),
        Event::Run(event) => masked(&known, event).map(Event::Run),
        Event::Vault(event) => masked(&known, event).map(Event::Vault),
        Event::Concern(event) => masked(&known, event).map(Event::Concern),
        // Its texts come from the results of runs, which were masked, and from the forge.
        Event::Role(_) | Event::Notifier(_) => None,
    };
    masked.map_or(Cow::Borrowed(event), Cow::Owned)
}

/// The same for something that is written as JSON; none if there is nothing to mask.
fn masked<T: Serialize + DeserializeOwned>(known: &KnownSecrets, event: &T) -> Option<T> {
    let mut value = serde_json::to_value(event).ok()?;
    // A value that stands for a commit or a name cannot be masked, and none of these is a secret.
    known.mask_json(&mut value).then(|| serde_json::from_value(value).ok()).flatten()
}

/// Changes whose texts for the log are masked.
pub(super) fn changes(changes: &[Change]) -> Cow<'_, [Change]> {
    let known = known();
    if known.is_empty() || !changes.iter().any(|change| holds_secret(&known, change)) {
        return Cow::Borrowed(changes);
    }
    let mut changes = changes.to_vec();
    for change in &mut changes {
        known.mask_json(&mut change.data);
        for (_, data) in &mut change.signals {
            known.mask_json(data);
        }
        if let Some(failure) = &mut change.failure {
            *failure = known.mask(failure).into_owned();
        }
        for write in &mut change.writes {
            if let Write::EffectPostponed { error, .. } = write {
                *error = known.mask(error).into_owned();
            }
        }
    }
    Cow::Owned(changes)
}

fn holds_secret(known: &KnownSecrets, change: &Change) -> bool {
    let mut data = change.data.clone();
    let postponed = |write: &Write| match write {
        Write::EffectPostponed { error, .. } => known.is_in(error.as_bytes()),
        _ => false,
    };
    known.mask_json(&mut data)
        || change.signals.iter().any(|(_, data)| known.mask_json(&mut data.clone()))
        || change.failure.as_ref().is_some_and(|failure| known.is_in(failure.as_bytes()))
        || change.writes.iter().any(postponed)
}
