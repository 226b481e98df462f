//! Questions to people: numbered over all projects, found where an answer may come from, settled once.

use std::time::Duration;

use pointsman_core::log;
use pointsman_core::part::question::{
    self, Cause, Event, Kind, Owner, Policy, Question, QuestionId, Settlement, Source,
};
use pointsman_store::{Change, EventFilter, Store, Write};

use crate::world::{at, project};

const POLICY: Policy = Policy { remind: Duration::from_secs(10), timeout: Duration::from_secs(30) };

fn asks(store: &Store, shop: &str, owner: Owner, issue: u64) -> Question {
    let source = Source { project: project(shop), owner, issue: Some(issue), pr: None, session: None };
    let question = Question::ask(Kind::Question, Cause::Agent, source, "which?", &POLICY, at(1));
    Question { id: Some(store.next_question()), ..question }
}

fn write(store: &mut Store, change: &question::Change) -> pointsman_store::Result<()> {
    store.commit(&[Change::of_question(at(2), change).unwrap()]).map(drop)
}

fn answered(question: &Question, by: &str) -> Question {
    question.step(&Event::Answered { by, text: "blue" }, &POLICY, at(3)).unwrap()
}

pub(crate) fn questions_are_numbered_over_all_projects_and_found(store: &mut Store) {
    let first = asks(store, "shop", Owner::Task(3), 3);
    write(store, &question::Change::Asked(first.clone())).unwrap();
    let second = asks(store, "harbour", Owner::Task(3), 3);
    write(store, &question::Change::Asked(second.clone())).unwrap();
    let third = asks(store, "shop", Owner::Run(pointsman_core::run::RunId(7)), 3);
    write(store, &question::Change::Asked(third.clone())).unwrap();
    assert_eq!([&first, &second, &third].map(|q| q.id.unwrap().0), [1, 2, 3]);
    assert_eq!(store.open_questions().unwrap(), [first.clone(), second, third.clone()]);
    assert_eq!(store.question(QuestionId(3)).unwrap(), Some(third.clone()));
    assert_eq!(store.question(QuestionId(4)).unwrap(), None);
    assert_eq!(store.questions_about(&project("shop"), 3).unwrap(), [first.clone(), third]);
    assert_eq!(store.last_question(&project("shop"), &Owner::Task(3)).unwrap(), Some(first));
    assert_eq!(store.last_question(&project("shop"), &Owner::Task(4)).unwrap(), None);
    let logged = store.events(&EventFilter::default()).unwrap();
    assert_eq!(logged.len(), 3);
    assert!(logged.iter().all(|event| event.kind == "question_asked" && event.issue == Some(3)));
    let entry = log::Entry::read(&logged[2].kind, &logged[2].data).unwrap();
    let log::Entry::QuestionAsked(asked) = entry else { panic!("{entry:?}") };
    assert_eq!((asked.question, asked.owner.to_string()), (QuestionId(3), "run/7".to_owned()));
}

pub(crate) fn a_question_that_is_settled_stays_what_it_is(store: &mut Store) {
    let asked = asks(store, "shop", Owner::Task(3), 3);
    write(store, &question::Change::Asked(asked.clone())).unwrap();
    let by_ann = answered(&asked, "ann");
    write(store, &question::Change::Settled(by_ann.clone())).unwrap();
    assert!(store.open_questions().unwrap().is_empty());
    assert!(store.questions_about(&project("shop"), 3).unwrap().is_empty());
    write(store, &question::Change::Settled(answered(&asked, "bob"))).unwrap();
    write(store, &question::Change::Reminded(asked.clone())).unwrap();
    assert_eq!(store.question(asked.id.unwrap()).unwrap(), Some(by_ann.clone()));
    assert!(matches!(by_ann.settled.unwrap().how, Settlement::Answered { .. }));
    // The next one of the same task has a number of its own.
    let next = asks(store, "shop", Owner::Task(3), 3);
    write(store, &question::Change::Asked(next.clone())).unwrap();
    assert_eq!(next.id, Some(QuestionId(2)));
    assert_eq!(store.last_question(&project("shop"), &Owner::Task(3)).unwrap(), Some(next));
}

pub(crate) fn a_workflow_asks_one_question_of_a_kind_at_a_time(store: &mut Store) {
    let first = asks(store, "shop", Owner::Task(3), 3);
    write(store, &question::Change::Asked(first.clone())).unwrap();
    let second = asks(store, "shop", Owner::Task(3), 3);
    assert!(write(store, &question::Change::Asked(second.clone())).is_err());
    assert_eq!(store.open_questions().unwrap(), std::slice::from_ref(&first));
    // One that takes the place of another one is written together with its end.
    let gone = first.step(&Event::CauseGone { why: "another one" }, &POLICY, at(3)).unwrap();
    let both = [question::Change::Settled(gone), question::Change::Asked(second.clone())];
    let changes: Vec<Change> = both.iter().filter_map(|change| Change::of_question(at(3), change)).collect();
    store.commit(&changes).unwrap();
    assert_eq!(store.open_questions().unwrap(), [second]);
}

pub(crate) fn a_question_is_not_written_without_an_event_or_a_number(store: &mut Store) {
    let asked = asks(store, "shop", Owner::Task(3), 3);
    let row = Write::Question(Box::new(asked.clone()));
    assert!(store.commit(&[Change::quiet(at(1), vec![row])]).is_err());
    let unnumbered = Question { id: None, ..asked };
    assert_eq!(Change::of_question(at(1), &question::Change::Asked(unnumbered.clone())), None);
    let mut change = Change::new(at(1), "question_asked");
    change.writes = vec![Write::Question(Box::new(unnumbered))];
    assert!(store.commit(&[change]).is_err());
    assert!(store.open_questions().unwrap().is_empty());
}
