//! Dangerous actions: written with their event, found while something is left to do, never exchanged.

use std::time::Duration;

use pointsman_core::vault::{Action, ActionId, Entry, Estimate, Event, Policy, Status, step};
use pointsman_store::{Change, EventFilter, Store, VaultScope};

use crate::world::{at, project};

fn policy() -> Policy {
    let day = Duration::from_secs(24 * 3600);
    Policy {
        auto_approve: true,
        high_risk_approvals: 1,
        look: false,
        people: Vec::new(),
        timeout: day,
        approval: day,
        renotify: day,
    }
}

fn entry(shop: &str, id: &str, payload: &str, when: i64) -> Entry {
    let text = format!(
        r#"{{"id": "{id}", "type": "deploy", "source": "planner", "risk": "high", "reversible": false,
            "requires_human": false, "payload": "{payload}"}}"#
    );
    let action = Action::parse(text.as_bytes()).unwrap();
    let submitted = Event::Submitted { rule: Some(Estimate::of(&action)) };
    step(&Entry::new(project(shop), action, at(when)), &submitted, &policy(), at(when)).unwrap().entry
}

fn write(store: &mut Store, entry: &Entry) -> pointsman_store::Result<()> {
    let mut change = Change::new(entry.submitted_at, "vault_changed");
    change.project = Some(entry.project.clone());
    change.vault = Some(entry.clone());
    store.commit(&[change]).map(drop)
}

fn names(store: &Store, scope: VaultScope) -> Vec<String> {
    let entries = store.vault_entries(&project("shop"), scope).unwrap();
    entries.iter().map(|entry| entry.id().to_string()).collect()
}

pub(crate) fn an_action_is_written_with_its_event_and_found_while_it_is_open(store: &mut Store) {
    let (first, second) = (entry("shop", "d1", "a", 1), entry("shop", "d2", "b", 2));
    let foreign = entry("harbour", "d1", "c", 3);
    for entry in [&second, &first, &foreign] {
        write(store, entry).unwrap();
    }
    assert_eq!(store.events(&EventFilter::default()).unwrap().len(), 3);
    let id = ActionId::new("d1").unwrap();
    assert_eq!(store.vault_entry(&project("shop"), &id).unwrap(), Some(first.clone()));
    assert_eq!(store.vault_entry(&project("harbour"), &id).unwrap(), Some(foreign));
    assert_eq!(names(store, VaultScope::Open), ["d1", "d2"]);
    let no = Event::Rejected { by: "ann".to_owned(), reason: "no".to_owned() };
    let rejected = step(&first, &no, &policy(), at(4)).unwrap().entry;
    write(store, &rejected).unwrap();
    assert_eq!(names(store, VaultScope::Open), ["d2"]);
    assert_eq!(names(store, VaultScope::All), ["d1", "d2"]);
    assert_eq!(store.vault_entry(&project("shop"), &id).unwrap().unwrap().status, Status::Rejected);
}

pub(crate) fn a_name_in_the_vault_stays_with_its_action(store: &mut Store) {
    let first = entry("shop", "d1", "a", 1);
    write(store, &first).unwrap();
    assert!(write(store, &entry("shop", "d1", "other", 2)).is_err());
    assert_eq!(store.vault_entry(&project("shop"), first.id()).unwrap(), Some(first));
    assert_eq!(store.events(&EventFilter::default()).unwrap().len(), 1, "nothing of it was written");
}
