use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{World, branch, reference};
use crate::git::capture::{capture, next_rescue_ref};
use crate::git::mirror::Mirror;
use crate::git::snapshot::snapshot;
use crate::git::tree::{Tree, TreeSpec};
use crate::git::{Error, RefName};

fn rescue(n: u32) -> RefName {
    RefName::rescue("dev-shop-7.1", n).unwrap()
}

/// The paths in a working tree that differ from its HEAD, untracked files included.
fn files_in_progress(mirror: &Mirror, work_dir: &Path) -> Result<Vec<String>, Error> {
    let paths = snapshot(mirror, work_dir, None)?.changed_paths()?;
    Ok(paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}

#[test]
fn tracked_and_untracked_files_are_saved_and_the_tree_stays_as_it_is() {
    let world = World::new();
    let tree = world.tree();
    fs::write(tree.join("a.txt"), "changed").unwrap();
    fs::write(tree.join("staged"), "staged").unwrap();
    world.plain(&tree, &["add", "staged"]);
    fs::write(tree.join("odd \n\"name"), "untracked").unwrap();
    fs::write(tree.join("ignored"), "ignored").unwrap();
    fs::write(tree.join(".agent-claim.json"), "{}").unwrap();
    let before = world.plain(&tree, &["status", "--porcelain"]);
    let index = fs::read(tree.join(".git/index")).unwrap();

    let saved = capture(&world.captures, &tree, &rescue(1), "rescue").unwrap().unwrap();
    assert_eq!(saved.incomplete, None);
    assert_eq!(world.captures.read_ref(&rescue(1)).unwrap(), Some(saved.commit.clone()));
    let listed = world.plain(world.captures.dir(), &["ls-tree", "-z", "--name-only", saved.commit.as_str()]);
    assert_eq!(listed, ".gitignore\0a.txt\0odd \n\"name\0staged\0");
    let parent = world.plain(world.captures.dir(), &["rev-parse", &format!("{}^", saved.commit)]);
    assert_eq!(parent, world.base.as_str());
    assert_eq!(fs::read(tree.join(".git/index")).unwrap(), index);
    assert_eq!(world.plain(&tree, &["status", "--porcelain"]), before);
    assert_eq!(files_in_progress(&world.captures, &tree).unwrap(), ["a.txt", "odd \n\"name", "staged"]);
    let left: Vec<_> = world.captures.list_refs(&reference("refs/pointsman/incoming")).unwrap();
    assert!(left.is_empty());
}

#[test]
fn a_clean_tree_is_saved_only_if_its_commits_are_nowhere_else() {
    let world = World::new();
    let tree = world.tree();
    assert_eq!(capture(&world.captures, &tree, &rescue(1), "rescue").unwrap(), None);
    let unpushed = world.commit(&tree, "unpushed");
    let saved = capture(&world.captures, &tree, &rescue(1), "rescue").unwrap().unwrap();
    assert_eq!(saved.commit, unpushed);
    assert_eq!(capture(&world.captures, &tree, &rescue(2), "rescue").unwrap(), None, "it is kept by now");
}

#[test]
fn the_same_capture_again_is_done_and_another_one_does_not_replace_it() {
    let world = World::new();
    let tree = world.tree();
    fs::write(tree.join("new"), "1").unwrap();
    let first = capture(&world.captures, &tree, &rescue(1), "rescue").unwrap();
    assert_eq!(capture(&world.captures, &tree, &rescue(1), "rescue").unwrap(), first);
    fs::write(tree.join("new"), "2").unwrap();
    assert!(capture(&world.captures, &tree, &rescue(1), "rescue").is_err());
    assert_eq!(next_rescue_ref(&world.captures, "dev-shop-7.1").unwrap(), Some(rescue(2)));
    assert_eq!(next_rescue_ref(&world.captures, "dev-shop-7.9").unwrap(), RefName::rescue("dev-shop-7.9", 1));
    assert_eq!(next_rescue_ref(&world.captures, "a b").unwrap(), None);
}

#[test]
fn nothing_of_the_tree_is_run() {
    let world = World::new();
    let tree = world.tree();
    let trap = world.trap();
    fs::write(tree.join(".gitattributes"), "* filter=trap diff=trap\n").unwrap();
    fs::write(tree.join("new"), "as it is").unwrap();
    trap.arm(&world, &tree);
    world.try_plain(&tree, &["add", "--dry-run", "new"]);
    assert!(trap.sprung().is_some(), "the trap does not work");
    fs::remove_file(&trap.mark).unwrap();

    let saved = capture(&world.captures, &tree, &rescue(1), "rescue").unwrap().unwrap();
    files_in_progress(&world.captures, &tree).unwrap();
    assert_eq!(trap.sprung(), None);
    assert_eq!(world.captures.read_file_at(&saved.commit, "new", 100).unwrap().unwrap(), b"as it is");
}

#[test]
fn a_submodule_with_a_monitor_of_its_own_is_not_entered() {
    let world = World::new();
    let tree = world.tree();
    let trap = world.trap();
    let sub = tree.join("sub");
    fs::create_dir(&sub).unwrap();
    world.plain(&sub, &["init", "-q"]);
    let sub_head = world.commit(&sub, "in the submodule");
    world.commit(&tree, "with a submodule");
    trap.arm(&world, &sub);
    fs::write(sub.join("dirty"), "dirty").unwrap();
    fs::write(tree.join("new"), "new").unwrap();
    world.try_plain(&tree, &["add", "-A"]);
    assert!(trap.sprung().is_some(), "the trap does not work");
    world.plain(&tree, &["reset", "-q"]);
    let _ = fs::remove_file(&trap.mark);

    let saved = capture(&world.captures, &tree, &rescue(1), "rescue").unwrap().unwrap();
    assert_eq!(trap.sprung(), None);
    let listed = world.plain(world.captures.dir(), &["ls-tree", saved.commit.as_str(), "sub"]);
    assert!(listed.contains(sub_head.as_str()));

    // Not checked out, it is an empty directory and no change.
    fs::rename(&sub, world.path("moved")).unwrap();
    fs::create_dir(&sub).unwrap();
    assert_eq!(files_in_progress(&world.captures, &tree).unwrap(), ["new"]);
    fs::remove_dir(&sub).unwrap();
    assert_eq!(files_in_progress(&world.captures, &tree).unwrap(), ["new", "sub"]);
}

#[test]
fn what_cannot_be_saved_is_said_and_the_rest_is_saved() {
    let world = World::new();
    let tree = world.tree();
    fs::write(tree.join("new"), "new").unwrap();
    for (name, commits) in [("nested", true), ("unborn", false)] {
        let nested = tree.join(name);
        fs::create_dir(&nested).unwrap();
        world.plain(&nested, &["init", "-q"]);
        fs::write(nested.join("file"), "x").unwrap();
        if commits {
            world.commit(&nested, "x");
        }
    }
    let saved = capture(&world.captures, &tree, &rescue(1), "rescue").unwrap().unwrap();
    let incomplete = saved.incomplete.unwrap();
    assert!(incomplete.contains("nested") && incomplete.contains("unborn"), "{incomplete}");
    assert!(world.captures.read_file_at(&saved.commit, "new", 100).unwrap().is_some());
}

#[test]
fn a_tree_whose_repository_is_broken_is_still_saved() {
    let world = World::new();
    let tree = world.tree();
    fs::write(tree.join("new"), "new").unwrap();
    fs::write(tree.join(".git/HEAD"), "rubbish").unwrap();
    let saved = capture(&world.captures, &tree, &rescue(1), "rescue").unwrap().unwrap();
    assert!(saved.incomplete.is_some());
    assert!(world.captures.read_file_at(&saved.commit, "new", 100).unwrap().is_some());
    fs::remove_dir_all(tree.join(".git")).unwrap();
    assert!(capture(&world.captures, &tree, &rescue(2), "rescue").unwrap().is_some());
}

#[test]
fn a_file_that_is_tracked_and_ignored_is_not_lost() {
    let world = World::new();
    let tree = world.tree();
    fs::write(tree.join("ignored"), "tracked all the same").unwrap();
    world.plain(&tree, &["add", "-f", "ignored"]);
    world.commit(&tree, "tracked");
    fs::write(tree.join("ignored"), "and changed").unwrap();
    fs::set_permissions(tree.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    let saved = capture(&world.captures, &tree, &rescue(1), "rescue").unwrap().unwrap();
    assert_eq!(world.captures.read_file_at(&saved.commit, "ignored", 100).unwrap().unwrap(), b"and changed");
    assert_eq!(files_in_progress(&world.captures, &tree).unwrap(), ["a.txt", "ignored"]);
}

#[test]
fn a_linked_tree_is_captured_too() {
    let world = World::new();
    let gateway = world.gateway("task");
    let tree = Tree::create(&TreeSpec { linked: true, ..world.spec(&gateway) }).unwrap().dir;
    fs::write(tree.join("new"), "new").unwrap();
    fs::write(tree.join(".agent-claim.json"), "{}").unwrap();
    let saved = capture(&world.captures, &tree, &rescue(1), "rescue").unwrap().unwrap();
    assert_eq!(saved.incomplete, None);
    assert_eq!(world.captures.changed_paths(&world.base, &saved.commit).unwrap(), ["new"]);
    assert_eq!(world.mirror.remote_head(&branch("main")).unwrap(), Some(world.base.clone()));
}
