use std::fs;
use std::os::unix::fs::symlink;

use pointsman_core::hand_in::choose;
use pointsman_core::role::Role;

use super::World;
use crate::git::selection::{Changed, commit, contents, differences};

/// Everything that changed, the picked paths, and the commit of them.
fn take(world: &World, tree: &std::path::Path) -> (Vec<Changed>, Vec<String>, pointsman_core::ids::Sha) {
    let found = differences(&world.mirror, tree, &world.base).unwrap();
    let changes: Vec<_> = found.iter().map(|one| one.change.clone()).collect();
    let choice = choose(Role::Gardener, &changes);
    let picked: Vec<&Changed> = found.iter().filter(|one| choice.taken.contains(&one.change.path)).collect();
    let made = commit(&world.mirror, &world.base, &picked, "gardener: update", 1_700_000_000).unwrap();
    (found.clone(), choice.taken, made)
}

#[test]
fn picked_files_become_one_commit_whatever_else_was_done() {
    let world = World::new();
    let tree = world.tree();
    fs::create_dir(tree.join("sub")).unwrap();
    fs::write(tree.join("sub/AGENTS.md"), "committed\n").unwrap();
    fs::write(tree.join("evil.sh"), "evil\n").unwrap();
    world.plain(&tree, &["add", "--all"]);
    world.plain(&tree, &["-c", "user.name=root", "commit", "--quiet", "-m", "merge: all of it"]);
    fs::write(tree.join("AGENTS.md"), "not committed\n").unwrap();
    fs::write(tree.join("a.txt"), "changed\n").unwrap();
    fs::write(tree.join("odd \n\"name"), "x").unwrap();

    let (found, picked, made) = take(&world, &tree);
    assert_eq!(picked, ["AGENTS.md", "sub/AGENTS.md"]);
    assert_eq!(found.len(), 5, "{found:?}");
    let size = |path: &str| found.iter().find(|one| one.change.path == path).unwrap().change.size;
    assert_eq!((size("AGENTS.md"), size("odd \n\"name")), (14, 1));
    let named: Vec<&Changed> = found.iter().filter(|one| picked.contains(&one.change.path)).collect();
    assert_eq!(
        contents(&world.mirror, &named).unwrap(),
        [b"not committed\n".to_vec(), b"committed\n".to_vec()]
    );
    let said = |args: &[&str]| world.plain(world.mirror.dir(), args);
    let paths = said(&["diff", "--name-only", world.base.as_str(), made.as_str()]);
    assert_eq!(paths, "AGENTS.md\nsub/AGENTS.md");
    let about = said(&["log", "-1", "--format=%P|%an <%ae>|%cn|%at|%s", made.as_str()]);
    let us = "Pointsman <pointsman@localhost>|Pointsman|1700000000|gardener: update";
    assert_eq!(about, format!("{}|{us}", world.base));
    assert_eq!(take(&world, &tree).2, made, "the same again is the same commit");
}

#[test]
fn links_repositories_and_a_broken_repository_bring_nothing() {
    let world = World::new();
    let tree = world.tree();
    symlink("/etc/passwd", tree.join("AGENTS.md")).unwrap();
    fs::create_dir(tree.join("sub")).unwrap();
    symlink("/etc", tree.join("sub/dir")).unwrap();
    let (_, picked, made) = take(&world, &tree);
    assert_eq!(picked, [""; 0]);
    assert_eq!(world.mirror.tree_of(&made).unwrap(), world.mirror.tree_of(&world.base).unwrap());
    // Its own repository is gone: its files still count.
    fs::remove_dir_all(tree.join(".git")).unwrap();
    fs::remove_file(tree.join("AGENTS.md")).unwrap();
    fs::write(tree.join("AGENTS.md"), "plain\n").unwrap();
    assert_eq!(take(&world, &tree).1, ["AGENTS.md"]);
}
