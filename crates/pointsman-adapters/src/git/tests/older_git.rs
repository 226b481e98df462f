//! Both ways to merge beside each other, with whatever git is installed: a newer one can go the older one's way too.
//! Random histories are compared in `differential`, attributes in `union`.

use std::fs;

use pointsman_core::ids::Sha;

use super::{World, build, lines};
use crate::git::Error;
use crate::git::candidate::{Candidate, Style, check_conflicts};

const STYLES: [Style; 3] = [Style::Rebase, Style::Merge, Style::Squash];

impl World {
    fn both_ways(&self, style: Style, main: &Sha, head: &Sha) -> Candidate {
        let newer = build(&self.mirror, style, main, head, "m").unwrap();
        let objects = || self.plain(self.mirror.dir(), &["count-objects"]);
        let before = objects();
        assert_eq!(build(&self.older_mirror(), style, main, head, "m").unwrap(), newer, "{style:?}");
        assert_eq!(objects(), before, "no stand-in is kept");
        newer
    }
}

#[test]
fn the_installed_git_is_asked_once_for_all_clones() {
    let world = World::new();
    let clone = world.git.clone();
    let version = world.git.version().unwrap();
    assert!(version.is_supported(), "{version:?}");
    assert!(std::ptr::eq(version, clone.version().unwrap()));
}

#[test]
fn renames_edits_and_conflicts_of_a_replay_are_the_same() {
    let world = World::new();
    let edited = lines(1..=20).replace("line 9\n", "edited\n");
    world.commit_on("task", &world.base, &[("a.txt", &edited)]);
    let second = world.commit_on("task", &world.head(&world.person), &[("b", "task")]);
    world.plain(&world.person, &["checkout", "-q", "-B", "main", world.base.as_str()]);
    world.plain(&world.person, &["mv", "a.txt", "moved.txt"]);
    let main = world.commit_on_current("main");
    for style in STYLES {
        let Candidate::Built(built) = world.both_ways(style, &main, &second) else { panic!("{style:?}") };
        let moved = world.mirror.read_file_at(&built.commit, "moved.txt", 1 << 10).unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&moved), edited);
    }
    // A file on one side, a directory on the other: git names it after the commit, which is no name for people.
    world.plain(&world.person, &["checkout", "-q", "-B", "main", main.as_str()]);
    fs::create_dir(world.person.join("b")).unwrap();
    fs::write(world.person.join("b/c"), "main").unwrap();
    let main = world.commit_on_current("main");
    for style in STYLES {
        let told = world.both_ways(style, &main, &second);
        assert_eq!(told, Candidate::Conflict { files: vec!["b".to_owned()] }, "{style:?}");
    }
}

#[test]
fn merges_within_a_branch_and_histories_of_their_own_are_the_same() {
    let world = World::new();
    let first = world.commit_on("task", &world.base, &[("b", "1")]);
    let main = world.commit_on("main", &world.base, &[("c", "main")]);
    // Each took the other in: there are two merge bases.
    for (name, start, other) in [("task", &first, &main), ("main", &main, &first)] {
        world.plain(&world.person, &["checkout", "-q", "-B", name, start.as_str()]);
        world.plain(&world.person, &["merge", "-q", "--no-ff", "--no-edit", other.as_str()]);
        world.publish(name);
    }
    let crossed = world.head(&world.person);
    let head = world.commit_on(
        "task",
        &Sha::new(&world.plain(&world.person, &["rev-parse", "task"])).unwrap(),
        &[("d", "task")],
    );
    let main = world.commit_on("main", &crossed, &[("e", "main")]);
    world.plain(&world.person, &["checkout", "-q", "--orphan", "alien"]);
    world.plain(&world.person, &["rm", "-rfq", "."]);
    fs::write(world.person.join("z"), "z").unwrap();
    let alien = world.commit_on_current("alien");
    world.plain(
        &world.person,
        &["merge", "-q", "--no-edit", "--allow-unrelated-histories", world.base.as_str()],
    );
    let joined = world.commit_on_current("joined");
    for style in STYLES {
        for head in [&head, &joined] {
            assert!(matches!(world.both_ways(style, &main, head), Candidate::Built(_)), "{style:?} {head}");
        }
        assert_eq!(world.both_ways(style, &main, &first), Candidate::Nothing, "{style:?}");
        for mirror in [&world.mirror, &world.older_mirror()] {
            let told = build(mirror, style, &main, &alien, "m");
            assert!(matches!(&told, Err(Error::Unrelated { head, .. }) if *head == alien), "{told:?}");
        }
    }
}

#[test]
fn a_branch_cannot_choose_the_base_by_holding_the_stand_in() {
    let world = World::new();
    let main = world.commit_on("main", &world.base, &[("a.txt", "main"), ("c", "main")]);
    // What stands in for main when a commit on `base` is replayed, and a merge of it that takes main's work back.
    let raw = format!(
        "tree {}\nparent {}\nauthor {who}\ncommitter {who}\n\nstand-in\n",
        world.mirror.tree_of(&main).unwrap(),
        world.base,
        who = "Pointsman <pointsman@localhost> 0 +0000",
    );
    fs::write(world.path("raw"), raw).unwrap();
    let raw = world.path("raw");
    let stand_in = world.plain(&world.person, &["hash-object", "-t", "commit", "-w", raw.to_str().unwrap()]);
    world.plain(&world.person, &["checkout", "-q", "-B", "task", world.base.as_str()]);
    world.plain(&world.person, &["merge", "-q", "--no-ff", "--no-edit", "-s", "ours", &stand_in]);
    let head = world.commit_on_current("task");
    assert_eq!(world.mirror.tree_of(&head).unwrap(), world.mirror.tree_of(&world.base).unwrap());
    let Candidate::Built(built) = world.both_ways(Style::Rebase, &main, &head) else {
        panic!("nothing built")
    };
    assert_eq!(built.tree, world.mirror.tree_of(&main).unwrap(), "main keeps its work");
}

#[test]
fn what_is_missing_is_named() {
    let world = World::new();
    let head = world.commit_on("task", &world.base, &[("b", "1")]);
    let main = world.commit_on("main", &world.base, &[("c", "main")]);
    let (older, missing) = (world.older_mirror(), Sha::new(&"1".repeat(40)).unwrap());
    for (main, head) in [(&main, &missing), (&missing, &head)] {
        for style in STYLES {
            let told = build(&older, style, main, head, "m");
            assert!(matches!(&told, Err(Error::NoCommit { sha, .. }) if *sha == missing), "{told:?}");
        }
        let told = check_conflicts(&older, main, std::slice::from_ref(head));
        assert!(matches!(&told, Err(Error::NoCommit { sha, .. }) if *sha == missing), "{told:?}");
    }
}
