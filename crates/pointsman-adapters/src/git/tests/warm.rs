//! What is saved with a warm index is what would be saved without one. Only if nothing changed but what is ignored, a
//! file that is ignored by now may stay; these tests change something beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::World;
use crate::git::checkpoint::{CheckpointName, CheckpointOutcome, Keeper};
use crate::git::snapshot::snapshot;

/// Takes a checkpoint and compares it with a snapshot that knows nothing.
#[track_caller]
fn same_as_cold(world: &World, tree: &Path, n: u32, step: &str) {
    let keeper = Keeper::new(&world.captures, &world.path("indexes"));
    let taken = keeper.take(tree, &CheckpointName { task: 7, n }, step, None).unwrap();
    let cold = snapshot(&world.captures, tree, None).unwrap();
    match taken {
        CheckpointOutcome::Saved { tree, commit, .. } => {
            let listed =
                world.plain(world.captures.dir(), &["ls-tree", "-r", "--name-only", commit.as_str()]);
            assert_eq!(tree, cold.tree, "{step}: {listed}");
        }
        CheckpointOutcome::Unchanged => panic!("{step}: the caller knows no last tree"),
    }
}

#[test]
fn every_kind_of_change_is_seen() {
    let world = World::new();
    let tree = world.tree();
    type Step<'a> = (&'a str, Box<dyn Fn() + 'a>);
    let file = |name: &str| tree.join(name);
    let write = |name: &str, text: &str| fs::write(file(name), text).unwrap();
    let git = |args: &[&str]| drop(world.plain(&tree, args));
    let steps: Vec<Step<'_>> = vec![
        ("nothing", Box::new(|| {})),
        ("a new file", Box::new(|| write("new", "1"))),
        ("another text of the same size", Box::new(|| write("new", "2"))),
        ("a mode", Box::new(|| fs::set_permissions(file("new"), fs::Permissions::from_mode(0o755)).unwrap())),
        ("a symlink", Box::new(|| std::os::unix::fs::symlink("new", file("link")).unwrap())),
        ("now ignored", Box::new(|| write(".gitignore", "ignored\nnew\n"))),
        ("not ignored any more", Box::new(|| write(".gitignore", "ignored\n"))),
        (
            "excluded",
            Box::new(|| {
                write(".git/info/exclude", "link\n");
                write("beside", "it");
            }),
        ),
        (
            "a directory",
            Box::new(|| {
                fs::create_dir(file("venv")).unwrap();
                write("venv/a", "a");
            }),
        ),
        (
            "that ignores itself",
            Box::new(|| {
                write("venv/.gitignore", "*\n");
                write("beside", "itself");
            }),
        ),
        (
            "an ignored file that is committed",
            Box::new(|| {
                write("ignored", "tracked all the same");
                git(&["add", "-f", "ignored"]);
                git(&["commit", "-q", "-m", "tracked"]);
            }),
        ),
        ("is deleted", Box::new(|| fs::remove_file(file("ignored")).unwrap())),
        ("and comes back", Box::new(|| write("ignored", "is here again"))),
        (
            "a commit that takes it out again",
            Box::new(|| {
                git(&["rm", "-q", "--cached", "ignored"]);
                git(&["commit", "-q", "-m", "untracked"]);
            }),
        ),
        (
            "a file becomes a directory",
            Box::new(|| {
                fs::remove_file(file("a.txt")).unwrap();
                fs::create_dir(file("a.txt")).unwrap();
                write("a.txt/b", "b");
            }),
        ),
        (
            "and a file again",
            Box::new(|| {
                fs::remove_dir_all(file("a.txt")).unwrap();
                write("a.txt", "a");
            }),
        ),
        ("another branch", Box::new(|| git(&["checkout", "-q", "-f", "-b", "other", "origin/main"]))),
        (
            "a first commit of all",
            Box::new(|| {
                git(&["checkout", "-q", "--orphan", "orphan"]);
                write("orphan", "1");
            }),
        ),
        ("is committed", Box::new(|| git(&["commit", "-q", "-m", "orphan"]))),
        ("a broken repository", Box::new(|| write(".git/HEAD", "rubbish"))),
        ("that works again", Box::new(|| write(".git/HEAD", "ref: refs/heads/orphan\n"))),
    ];
    for (n, (step, change)) in (1..).zip(&steps) {
        change();
        same_as_cold(&world, &tree, n, step);
    }
}

#[test]
fn a_change_right_after_a_checkpoint_is_seen_even_if_size_and_time_do_not_tell() {
    let world = World::new();
    let tree = world.tree();
    for n in 1..=15 {
        fs::write(tree.join("new"), format!("{n:03}")).unwrap();
        same_as_cold(&world, &tree, n, "written at once");
    }
    let before = fs::metadata(tree.join("new")).unwrap().modified().unwrap();
    fs::write(tree.join("new"), "999").unwrap();
    fs::File::options().write(true).open(tree.join("new")).unwrap().set_modified(before).unwrap();
    same_as_cold(&world, &tree, 16, "with its old time");
}

#[test]
fn a_damaged_index_is_made_anew() {
    let world = World::new();
    let tree = world.tree();
    fs::write(tree.join("new"), "new").unwrap();
    same_as_cold(&world, &tree, 1, "whole");
    let index = world.path("indexes/7/index");
    let whole = fs::read(&index).unwrap();
    let mut zeros = whole.clone();
    zeros[40..120].fill(0);
    let damages: [(&str, &[u8]); 5] = [
        ("truncated", &whole[..whole.len() / 2]),
        ("empty", b""),
        ("zeros", &zeros),
        ("rubbish", b"rubbish"),
        ("half a header", b"DIRC\0\0\0\x02"),
    ];
    for (n, (what, bytes)) in (2..).zip(damages) {
        fs::write(&index, bytes).unwrap();
        fs::write(tree.join("new"), what).unwrap();
        same_as_cold(&world, &tree, n, what);
        assert!(index.is_file(), "{what}: there is a new one");
    }
    for (n, known) in (10..).zip(["", "pointsman warm index 1\nanother boot\n-\n"]) {
        fs::write(world.path("indexes/7/known"), known).unwrap();
        fs::write(tree.join("new"), n.to_string()).unwrap();
        same_as_cold(&world, &tree, n, "unknown");
    }
    // A lock that a killed git left.
    fs::write(world.path("indexes/7/index.lock"), "").unwrap();
    fs::write(tree.join("new"), "locked").unwrap();
    same_as_cold(&world, &tree, 20, "locked");
    fs::remove_dir_all(world.path("indexes")).unwrap();
    same_as_cold(&world, &tree, 21, "missing");
}

#[test]
fn attributes_that_make_a_file_impossible_do_not_cost_the_rest() {
    let world = World::new();
    let tree = world.tree();
    same_as_cold(&world, &tree, 1, "before");
    fs::write(tree.join(".gitattributes"), "* working-tree-encoding=UTF-16\n").unwrap();
    fs::write(tree.join("new"), "not UTF-16").unwrap();
    world.try_plain(&tree, &["add", "-A"]).end.success().then(|| panic!("git takes it"));
    let keeper = Keeper::new(&world.captures, &world.path("indexes"));
    for n in [2, 3] {
        let taken = keeper.take(&tree, &CheckpointName { task: 7, n }, "x", None).unwrap();
        let CheckpointOutcome::Saved { commit, incomplete, .. } = taken else { panic!("nothing was saved") };
        assert!(incomplete.unwrap().contains("UTF-16"));
        assert_eq!(world.captures.read_file_at(&commit, "new", 100).unwrap().unwrap(), b"not UTF-16");
    }
}
