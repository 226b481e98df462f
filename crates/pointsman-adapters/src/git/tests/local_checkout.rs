//! Looking at a person's repository before a project is made of it.

use std::fs;

use super::{World, branch};
use crate::git::local_checkout::{Found, LocalCheckout};

fn checkout(world: &World) -> LocalCheckout {
    match LocalCheckout::find(&world.git, &world.person).unwrap() {
        Found::Checkout(checkout) => checkout,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_checkout_is_told_from_a_bare_repository_and_from_nothing() {
    let world = World::new();
    fs::create_dir(world.person.join("deep")).unwrap();
    let found = LocalCheckout::find(&world.git, &world.person.join("deep")).unwrap();
    assert!(matches!(found, Found::Checkout(c) if c.root() == world.person.canonicalize().unwrap()));
    assert!(matches!(LocalCheckout::find(&world.git, &world.path("forge.git")).unwrap(), Found::Bare));
    fs::create_dir(world.path("empty")).unwrap();
    assert!(matches!(LocalCheckout::find(&world.git, &world.path("empty")).unwrap(), Found::Nothing));
}

#[test]
fn it_tells_its_head_its_branches_and_what_is_not_committed() {
    let world = World::new();
    let checkout = checkout(&world);
    assert_eq!(checkout.head().unwrap().as_ref(), Some(&world.base));
    let current = checkout.current_branch().unwrap().unwrap();
    assert_eq!(checkout.branch(&branch(&current)).unwrap().as_ref(), Some(&world.base));
    assert_eq!(checkout.branch(&branch("nowhere")).unwrap(), None);
    assert_eq!(checkout.changed_files().unwrap(), 0);
    fs::write(world.person.join("a.txt"), "changed").unwrap();
    fs::write(world.person.join("new"), "").unwrap();
    fs::write(world.person.join("ignored"), "").unwrap();
    assert_eq!(checkout.changed_files().unwrap(), 2);
    let names: Vec<String> =
        checkout.files(&branch(&current)).unwrap().into_iter().map(|file| file.path).collect();
    assert_eq!(names, [".gitignore", "a.txt"]);
    assert!(checkout.file(&branch(&current), "a.txt").unwrap().contains("20\n"));
}

#[test]
fn a_repository_without_a_commit_has_no_head() {
    let world = World::new();
    world.plain(world.root.path(), &["init", "-q", "fresh"]);
    let Found::Checkout(fresh) = LocalCheckout::find(&world.git, &world.path("fresh")).unwrap() else {
        panic!("there is one");
    };
    assert_eq!(fresh.head().unwrap(), None);
}

#[test]
fn a_remote_and_an_exclude_line_are_added_once() {
    let world = World::new();
    let checkout = checkout(&world);
    assert_eq!(checkout.remote("pointsman").unwrap(), None);
    checkout.add_remote("pointsman", &world.path("forge.git")).unwrap();
    assert_eq!(checkout.remote("pointsman").unwrap().as_deref(), world.path("forge.git").to_str());
    for _ in 0..2 {
        checkout.exclude(".claude/state/").unwrap();
    }
    let text = fs::read_to_string(world.person.join(".git/info/exclude")).unwrap();
    assert_eq!(text.lines().filter(|line| *line == ".claude/state/").count(), 1);
    fs::create_dir_all(world.person.join(".claude/state")).unwrap();
    fs::write(world.person.join(".claude/state/x"), "").unwrap();
    assert_eq!(checkout.changed_files().unwrap(), 0);
}
