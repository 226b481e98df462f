//! The daemon and a command may have the database open at the same time.

use std::collections::BTreeSet;
use std::sync::Barrier;

use pointsman_adapters::forge::Forge;

use super::super::EmbeddedForge;
use super::{World, create_issue, done, issue};
use crate::control::protocol::ForgeCommand;

const WRITERS: usize = 4;
const ROUNDS: usize = 10;

/// Does it at the same moment with a handle of each writer's own.
fn at_once<T: Send>(world: &World, work: impl Fn(usize, &EmbeddedForge) -> T + Sync) -> Vec<T> {
    // Opened beforehand: who fails to open would leave the others waiting at the barrier.
    let forges: Vec<EmbeddedForge> = (0..WRITERS).map(|_| world.forge()).collect();
    let start = Barrier::new(WRITERS);
    let (start, work) = (&start, &work);
    std::thread::scope(|scope| {
        let one = |(writer, forge)| {
            scope.spawn(move || {
                start.wait();
                work(writer, forge)
            })
        };
        let writers: Vec<_> = forges.iter().enumerate().map(one).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    })
}

#[test]
fn no_update_is_lost_and_no_number_given_twice() {
    let world = World::new();
    let number = issue(&world.forge(), "shared");
    let given = at_once(&world, |writer, forge| {
        let write = |round: usize| {
            let name = format!("{writer}-{round}");
            done(forge, &ForgeCommand::Label { number, add: vec![name.clone()], remove: Vec::new() });
            done(forge, &ForgeCommand::Comment { number, body: name.clone(), author: name.clone() });
            done(forge, &create_issue(&name, ""))["number"].as_u64().unwrap()
        };
        (0..ROUNDS).map(write).collect::<Vec<_>>()
    });
    let numbers: BTreeSet<u64> = given.into_iter().flatten().collect();
    assert_eq!(numbers.len(), WRITERS * ROUNDS);
    let issue = world.forge().issue(number).unwrap().unwrap();
    assert_eq!(issue.labels.len(), WRITERS * ROUNDS + 1);
    assert_eq!(issue.comments.len(), WRITERS * ROUNDS);
    assert!(issue.comments.iter().all(|comment| comment.author == comment.body));
}

#[test]
fn all_that_open_the_same_pull_request_get_the_same_number() {
    let world = World::new();
    let head = world.commit("work");
    world.push(&head, "work");
    let numbers = at_once(&world, |_, forge| forge.ensure_pull_request("work", "main", "T", "B").unwrap());
    assert_eq!(numbers.into_iter().collect::<BTreeSet<_>>().len(), 1);
}

#[test]
fn all_that_see_a_push_agree_on_the_head() {
    let world = World::new();
    let (number, _) = world.pull_request(&world.forge(), "work");
    let head = world.commit("more");
    world.push(&head, "work");
    let seen = at_once(&world, |_, forge| super::read(forge, number).head_sha.unwrap());
    assert_eq!(seen, vec![head; WRITERS]);
}

#[test]
fn one_forge_shared_by_threads_comments_once() {
    let world = World::new();
    let forge = world.forge();
    let number = issue(&forge, "shared");
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| forge.comment_once(number, "m", "Hello").unwrap());
        }
    });
    assert_eq!(forge.comments_after(number, 0).unwrap().len(), 1);
}
