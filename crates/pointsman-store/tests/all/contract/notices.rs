//! Notices: told once for each key, by each notifier for itself; threads, and what people said.

use pointsman_core::chat::{Command, Reply};
use pointsman_core::config::NotifierKind::{Matrix, Webhook};
use pointsman_core::notifier::{Lane, NotifierKey, Posting, Topic};
use pointsman_core::task::{Effect, Notice};
use pointsman_core::workflow::WorkflowId;
use pointsman_store::{Change, Committed, Delivered, DeliveryId, NewNotice, NewReply, Store, Thread, Write};

use crate::world::WriteOne as _;
use crate::world::{at, project};

fn posting(key: &str, topic: &Topic, title: &str) -> Posting {
    let notice = Notice { title: title.into(), body: "b".into(), urgent: title == "urgent", repeat: 0 };
    Posting {
        key: key.into(),
        project: project("shop"),
        topic: topic.clone(),
        link: None,
        question: (title == "question").then(|| "q1".into()),
        notice,
    }
}

fn add(store: &mut Store, key: &str, title: &str, when: i64) -> bool {
    let posting = posting(key, &Topic::Task(3), title);
    let to = vec![(Matrix, at(when)), (Webhook, at(when + 100))];
    let lane = if posting.notice.urgent { Lane::Prompt } else { Lane::Ordinary };
    store.add_notice(&NewNotice { posting, lane, to }, at(when)).unwrap()
}

fn lane(lane: Lane) -> WorkflowId {
    NotifierKey { project: project("shop"), kind: Matrix, lane }.into()
}

/// The keys of what Matrix has to tell now: the first of each lane.
fn due(store: &Store, now: i64) -> Vec<String> {
    let matrix = [lane(Lane::Prompt), lane(Lane::Ordinary)];
    let due = store.due_effects(at(now), |workflow| !matrix.contains(workflow)).unwrap();
    due.into_iter().map(|outgoing| told(store, &outgoing.effect)).collect()
}

/// The same, with everything that waits behind them.
fn waiting(store: &Store) -> Vec<String> {
    let pending = Lane::ALL.into_iter().flat_map(|of| store.pending_effects(&lane(of)).unwrap());
    pending.map(|outgoing| told(store, &outgoing.effect)).collect()
}

fn told(store: &Store, effect: &Effect) -> String {
    let Effect::Tell { delivery } = effect else { panic!("{effect:?}") };
    store.delivery(DeliveryId(*delivery)).unwrap().unwrap().posting.key
}

fn thread(topic: &Topic, root: &str) -> Thread {
    Thread {
        project: project("shop"),
        place: "!room".into(),
        topic: topic.clone(),
        root: root.into(),
        first: "first".into(),
        shown: "shown".into(),
        edits: 0,
        edited_at: at(1),
        open: true,
    }
}

pub(crate) fn a_notice_is_written_once_and_told_by_each_for_itself(store: &mut Store) {
    assert!(add(store, "1.0", "urgent", 10));
    assert!(!add(store, "1.0", "urgent", 11), "the same key is the same notice");
    assert!(add(store, "2.0", "other", 20));
    assert!(store.has_notice("1.0").unwrap() && !store.has_notice("9.9").unwrap());
    assert_eq!(due(store, 9), [""; 0]);
    assert_eq!(due(store, 20), ["1.0", "2.0"]);
    assert_eq!(waiting(store), ["1.0", "2.0"]);
    let first = store.pending_delivery(&project("shop"), Matrix, "1.0").unwrap().unwrap();
    let topic = Topic::Task(3);
    let sent = Delivered::Sent { sent_as: Some("$e1".into()), thread: Some(thread(&topic, "$e1")) };
    store.settle_delivery(first.id, &sent, at(30)).unwrap();
    assert_eq!(due(store, 99), ["2.0"]);
    assert!(store.pending_delivery(&project("shop"), Matrix, "1.0").unwrap().is_none());
    assert_eq!(store.topic_of_message(&project("shop"), "$e1").unwrap(), Some(topic.clone()));
    // Who hears of it a second time changes nothing.
    let again = Delivered::Sent { sent_as: Some("$e9".into()), thread: Some(thread(&topic, "$e9")) };
    store.settle_delivery(first.id, &again, at(40)).unwrap();
    assert_eq!(store.topic_of_message(&project("shop"), "$e9").unwrap(), None);
    assert_eq!(store.thread(&project("shop"), "!room", &topic).unwrap().unwrap().root, "$e1");
    let waiting = store.waiting(&project("shop"), Webhook).unwrap();
    assert_eq!((waiting.pending, waiting.oldest, waiting.dropped), (2, Some(at(10)), 0));
    let line = store.waiting_deliveries(&project("shop"), Webhook).unwrap();
    assert_eq!(
        line.iter().map(|(_, at, urgent)| (at.0, *urgent)).collect::<Vec<_>>(),
        [(10, true), (20, false)]
    );
    let dropped = Delivered::Dropped { why: "too old".into() };
    store.settle_delivery(line[0].0, &dropped, at(50)).unwrap();
    let waiting = store.waiting(&project("shop"), Webhook).unwrap();
    assert_eq!((waiting.pending, waiting.dropped), (1, 1));
    let notices = store.notices(Some(&project("shop")), 10).unwrap();
    assert_eq!(notices.iter().map(|row| row.posting.key.as_str()).collect::<Vec<_>>(), ["2.0", "1.0"]);
    let told = store.deliveries_of(notices[1].id).unwrap();
    let told: Vec<_> =
        told.iter().map(|one| (one.notifier, one.status.as_str(), one.error.as_deref())).collect();
    assert_eq!(told, [(Matrix, "sent", None), (Webhook, "dropped", Some("too old"))]);
}

pub(crate) fn a_lane_is_told_in_its_order_and_the_other_does_not_wait_for_it(store: &mut Store) {
    add(store, "1.0", "held until the morning", 500);
    add(store, "2.0", "urgent", 10);
    assert_eq!(due(store, 99), ["2.0"], "nothing urgent waits behind what quiet hours hold back");
    add(store, "3.0", "said in the night", 20);
    assert_eq!(due(store, 99), ["2.0"], "a lane has an order");
    let retried = |until| Write::EffectsRetried { workflow: lane(Lane::Ordinary), until: at(until) };
    store.write(retried(499), at(99)).unwrap();
    assert_eq!(due(store, 99), ["2.0"], "what is held for longer stays held");
    store.write(retried(500), at(99)).unwrap();
    assert_eq!(due(store, 99), ["1.0", "2.0"]);
    // What can never be told is dropped, and the next comes.
    let first = store.pending_effects(&lane(Lane::Ordinary)).unwrap().remove(0);
    let mut change = Change::quiet(at(100), Vec::new());
    (change.settles, change.failure) = (Some(first.id), Some("too long".into()));
    store.commit(&[change]).unwrap();
    assert_eq!(due(store, 999), ["2.0", "3.0"]);
    let waiting = store.waiting(&project("shop"), Matrix).unwrap();
    assert_eq!((waiting.pending, waiting.dropped), (2, 1));
    // Whoever finds it told settles its effect as well.
    let urgent = store.pending_delivery(&project("shop"), Matrix, "2.0").unwrap().unwrap();
    store.settle_delivery(urgent.id, &Delivered::Sent { sent_as: None, thread: None }, at(101)).unwrap();
    assert_eq!(due(store, 999), ["3.0"]);
}

pub(crate) fn the_same_words_and_the_same_question_are_found(store: &mut Store) {
    let words = posting("x", &Topic::Task(3), "urgent").words();
    assert_eq!(store.told_last(&project("shop"), &words).unwrap(), None);
    add(store, "1.0", "urgent", 10);
    add(store, "2.0", "urgent", 20);
    let (id, when) = store.told_last(&project("shop"), &words).unwrap().unwrap();
    assert_eq!(when, at(20));
    store.count_notice(id).unwrap();
    assert_eq!(store.notices(None, 1).unwrap()[0].times, 2);

    let (shop, topic) = (project("shop"), Topic::Task(3));
    let asked = |store: &Store| store.asked_at(&shop, &topic, "q1", Matrix).unwrap();
    add(store, "3.0", "question", 30);
    assert_eq!(asked(store), None, "it is not told yet");
    for (key, when) in [("3.0", 33), ("4.0", 44)] {
        add(store, key, "question", 40);
        let pending = store.pending_delivery(&shop, Matrix, key).unwrap().unwrap();
        let sent = Delivered::Sent { sent_as: None, thread: None };
        store.settle_delivery(pending.id, &sent, at(when)).unwrap();
    }
    assert_eq!(asked(store), Some(at(33)), "the first time counts");
    assert_eq!(store.asked_at(&shop, &topic, "q2", Matrix).unwrap(), None);
}

pub(crate) fn threads_are_found_by_what_they_are_about_and_by_their_first_message(store: &mut Store) {
    let (shop, task) = (project("shop"), Topic::Task(3));
    store.put_thread(&thread(&task, "$r1")).unwrap();
    store.put_thread(&Thread { open: false, ..thread(&Topic::Task(4), "$r2") }).unwrap();
    assert_eq!(store.topic_of_thread(&shop, "!room", "$r1").unwrap(), Some(task.clone()));
    assert_eq!(store.topic_of_thread(&shop, "!other", "$r1").unwrap(), None);
    assert_eq!(store.topic_of_thread(&project("harbour"), "!room", "$r1").unwrap(), None);
    assert_eq!(store.open_threads(&shop, "!room").unwrap(), [thread(&task, "$r1")]);
    let changed = Thread { shown: "closed".into(), edits: 1, open: false, ..thread(&task, "$r1") };
    store.put_thread(&changed).unwrap();
    assert_eq!(store.thread(&shop, "!room", &task).unwrap(), Some(changed));
    assert_eq!(store.open_threads(&shop, "!room").unwrap(), []);
}

pub(crate) fn what_people_said_is_written_once_and_taken_once(store: &mut Store) {
    let supervisor = Topic::Agent("supervisor".into());
    let reply = |words: &str, reply| NewReply {
        project: project("shop"),
        topic: supervisor.clone(),
        by: "@ann:example.org".into(),
        words: words.into(),
        reply,
    };
    let ignore = Reply::Command { command: Command::Ignore { what: "disk".into() } };
    for (event, said) in
        [("$e1", reply("ignore disk warning", ignore.clone())), ("$e2", reply("hm", Reply::Text))]
    {
        let mut change = Change::new(at(10), "person_spoke");
        change.dedup = Some(event.into());
        change.notices = vec![NewNotice {
            posting: posting(event, &supervisor, "kept"),
            lane: Lane::Prompt,
            to: vec![(Matrix, at(10))],
        }];
        change.reply = Some(said);
        assert!(!store.knows_input(event).unwrap());
        assert!(matches!(store.commit(&[change.clone()]).unwrap()[0], Committed::Done { .. }));
        assert!(store.knows_input(event).unwrap());
        assert_eq!(store.commit(&[change]).unwrap(), [Committed::Duplicate]);
    }
    assert_eq!(waiting(store), ["$e1", "$e2"], "answered with it, once");
    let waiting = store.replies(&project("shop"), &supervisor).unwrap();
    assert_eq!(waiting.iter().map(|row| &row.said.reply).collect::<Vec<_>>(), [&ignore, &Reply::Text]);
    store.take_reply(waiting[0].id, at(20)).unwrap();
    // It is taken once: the first time counts.
    store.take_reply(waiting[0].id, at(21)).unwrap();
    let left = store.replies(&waiting[0].said.project, &waiting[0].said.topic).unwrap().len();
    for (taken_at, waits) in [(19, left), (20, left + 1), (20, left + 1)] {
        let (project, topic) = (waiting[0].said.project.clone(), waiting[0].said.topic.clone());
        store.write(Write::RepliesGivenBack { project, topic, taken_at: at(taken_at) }, at(30)).unwrap();
        assert_eq!(store.replies(&waiting[0].said.project, &waiting[0].said.topic).unwrap().len(), waits);
    }
    store.take_reply(waiting[0].id, at(22)).unwrap();
    assert_eq!(store.replies(&project("shop"), &supervisor).unwrap().len(), 1);
    assert!(store.replies(&project("shop"), &Topic::Agent("gardener".into())).unwrap().is_empty());
}
