//! Lanes of effects, and messages to agents.

use std::path::Path;

use pointsman_core::task::Effect;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::{Change, EffectId, MessageStatus, Store};

use crate::world::WriteOne as _;
use crate::world::{at, change, commit, lane, message, nobody, settle, start};

fn due(store: &Store, now: i64) -> Vec<EffectId> {
    store.due_effects(at(now), nobody).unwrap().iter().map(|out| out.id).collect()
}

fn pending(store: &Store, issue: u64) -> Vec<EffectId> {
    store.pending_effects(&lane(issue)).unwrap().iter().map(|out| out.id).collect()
}

fn statuses(store: &Store, issue: u64) -> Vec<MessageStatus> {
    store.messages(&lane(issue)).unwrap().iter().map(|message| message.status).collect()
}

pub(crate) fn only_the_first_effect_of_each_task_is_due(store: &mut Store) {
    let (_, one) = commit(store, change(1, &[Effect::SyncBranch, Effect::OpenPullRequest]));
    let (_, two) = commit(store, change(2, &[Effect::ClaimIssue]));
    let (_, later) = commit(store, change(1, &[Effect::CleanUp]));
    assert_eq!(due(store, 1000), [one[0], two[0]]);
    settle(store, 1, one[0]);
    assert_eq!(due(store, 1000), [one[1], two[0]]);
    settle(store, 1, one[1]);
    settle(store, 2, two[0]);
    assert_eq!(due(store, 1000), [later[0]]);
    assert_eq!(due(store, 1), [later[0]], "a new effect is due even if the clock went backwards");
    settle(store, 1, later[0]);
    assert_eq!(due(store, i64::MAX), []);
}

pub(crate) fn a_postponed_effect_holds_its_lane_and_no_other(store: &mut Store) {
    let (_, one) = commit(store, change(1, &[Effect::SyncBranch, Effect::OpenPullRequest]));
    let (_, two) = commit(store, change(2, &[Effect::ClaimIssue]));
    store.effect_postponed(one[0], "forge is down", at(5000)).unwrap();
    assert_eq!(due(store, 4999), [two[0]]);
    store.effect_postponed(two[0], "forge is down", at(6000)).unwrap();
    assert_eq!(due(store, 4999), []);
    assert_eq!(store.next_effect_time(nobody).unwrap(), Some(at(5000)));
    assert_eq!(due(store, 5000), [one[0]]);
    store.effect_postponed(one[0], "still down", at(7000)).unwrap();
    assert_eq!(store.next_effect_time(nobody).unwrap(), Some(at(6000)));
    let head = store.pending_effects(&lane(1)).unwrap().remove(0);
    assert_eq!((head.attempts, head.not_before), (2, at(7000)));
}

pub(crate) fn a_lane_that_somebody_works_on_is_passed_over(store: &mut Store) {
    let (_, one) = commit(store, change(1, &[Effect::SyncBranch]));
    let (_, two) = commit(store, change(2, &[Effect::ClaimIssue]));
    store.effect_postponed(two[0], "forge is down", at(5000)).unwrap();
    assert_eq!(store.next_effect_time(nobody).unwrap(), Some(at(0)));
    let busy = |workflow: &WorkflowId| *workflow == lane(1);
    assert_eq!(store.next_effect_time(busy).unwrap(), Some(at(5000)), "a held effect is no reason to wake");
    let free: Vec<EffectId> = store.due_effects(at(6000), busy).unwrap().iter().map(|out| out.id).collect();
    assert_eq!(free, two);
    assert_eq!(due(store, 6000), [one[0], two[0]]);
}

pub(crate) fn a_new_generation_supersedes_messages_to_older_ones_only(store: &mut Store) {
    let (_, old) = commit(store, change(1, &[message(1), Effect::SyncBranch, message(1), message(2)]));
    let (_, other) = commit(store, change(2, &[message(1)]));
    store.message_sent(old[0], Path::new("/inbox/0001.md"), at(1)).unwrap();
    settle(store, 1, old[0]);
    let (_, new) = commit(store, change(1, &[start(2), message(2)]));

    assert_eq!(pending(store, 1), [old[1], old[3], new[0], new[1]], "other effects are left alone");
    let gone = MessageStatus::Superseded;
    assert_eq!(statuses(store, 1), [gone, gone, MessageStatus::Queued, MessageStatus::Queued]);
    assert_eq!(pending(store, 2), other);
    assert_eq!(statuses(store, 2), [MessageStatus::Queued]);
    assert!(!store.message_acknowledged(old[0], at(9)).unwrap(), "too late");
}

pub(crate) fn an_effect_can_be_superseded_by_hand(store: &mut Store) {
    let (_, ids) = commit(store, change(1, &[message(1), Effect::SyncBranch]));
    store.supersede_effect(ids[0], at(5)).unwrap();
    assert_eq!(due(store, 1000), [ids[1]]);
    assert_eq!(statuses(store, 1), [MessageStatus::Superseded]);
}

pub(crate) fn a_settled_effect_stays_what_it_is(store: &mut Store) {
    let (_, ids) = commit(store, change(1, &[message(1)]));
    store.message_sent(ids[0], Path::new("/inbox/0001.md"), at(1)).unwrap();
    settle(store, 1, ids[0]);
    store.supersede_effect(ids[0], at(5)).unwrap();
    store.effect_postponed(ids[0], "late", at(9)).unwrap();
    assert_eq!(statuses(store, 1), [MessageStatus::Sent], "its message is with the agent");
    assert_eq!(due(store, i64::MAX), []);
}

pub(crate) fn a_message_goes_from_queued_to_acknowledged(store: &mut Store) {
    let (_, ids) = commit(store, change(1, &[message(3)]));
    let id = ids[0];
    store.message_sent(id, Path::new("/inbox/0001.md"), at(100)).unwrap();
    store.message_sent(id, Path::new("/inbox/0001.md"), at(200)).unwrap();
    let sent = store.message(id).unwrap().unwrap();
    assert_eq!((sent.status, sent.tries, sent.sent_at), (MessageStatus::Sent, 2, Some(at(200))));
    assert_eq!((sent.generation, sent.path.as_deref()), (3, Some(Path::new("/inbox/0001.md"))));
    assert!(store.message_acknowledged(id, at(300)).unwrap());
    assert!(!store.message_acknowledged(id, at(400)).unwrap(), "no news");
    let message = store.message(id).unwrap().unwrap();
    assert_eq!((message.status, message.acknowledged_at), (MessageStatus::Acknowledged, Some(at(300))));
    assert!(!store.message_acknowledged(EffectId(999), at(1)).unwrap());
}

pub(crate) fn a_message_is_sent_and_settled_in_one_go(store: &mut Store) {
    let (_, ids) = commit(store, change(1, &[message(1), Effect::CleanUp]));
    let path = Path::new("/inbox/0001.md");
    let sent = Change { settles: Some(ids[0]), sent: Some(path.to_owned()), ..change(1, &[]) };
    commit(store, sent);
    assert_eq!(due(store, i64::MAX), [ids[1]]);
    let message = store.message(ids[0]).unwrap().unwrap();
    assert_eq!((message.status, message.tries), (MessageStatus::Sent, 1));
    assert_eq!(message.path.as_deref(), Some(path));
}

pub(crate) fn an_acknowledgement_that_overtakes_the_record_of_sending_stays(store: &mut Store) {
    let (_, ids) = commit(store, change(1, &[message(1)]));
    assert!(store.message_acknowledged(ids[0], at(90)).unwrap());
    store.message_sent(ids[0], Path::new("/inbox/0001.md"), at(100)).unwrap();
    assert_eq!(statuses(store, 1), [MessageStatus::Acknowledged]);
}

pub(crate) fn a_message_nobody_acknowledges_is_shown_as_such(store: &mut Store) {
    let (_, ids) = commit(store, change(1, &[message(1), message(1)]));
    for (id, when) in [(ids[0], 100), (ids[1], 200)] {
        store.message_sent(id, Path::new("/inbox/m.md"), at(when)).unwrap();
    }
    let waiting = |store: &Store, before| {
        store.unacknowledged(at(before)).unwrap().iter().map(|message| message.id).collect::<Vec<_>>()
    };
    assert_eq!(waiting(store, 99), []);
    assert_eq!(waiting(store, 100), [ids[0]]);
    assert_eq!(waiting(store, 200), ids);
    assert!(store.message_unacknowledged(ids[0]).unwrap());
    assert!(!store.message_unacknowledged(ids[0]).unwrap());
    assert_eq!(statuses(store, 1), [MessageStatus::Unacknowledged, MessageStatus::Sent]);
    assert_eq!(waiting(store, 200), [ids[1]]);
    assert!(store.message_acknowledged(ids[0], at(300)).unwrap(), "better late than never");
}
