use std::fs;

use super::World;
use crate::git::RefName;
use crate::git::capture::capture;
use crate::git::checkpoint::{CheckpointName, Keeper};
use crate::git::rescue::{Kind, list, patch, restore, stat};

#[test]
fn captures_and_checkpoints_are_listed_with_their_files() {
    let world = World::new();
    assert_eq!(list(&world.captures).unwrap(), []);
    let tree = world.tree();
    let keeper = Keeper::new(&world.captures, &world.path("indexes"));
    let message = "checkpoint\n\nPointsman-Session: dev-shop-3.2\n";
    for n in [9, 10] {
        fs::write(tree.join("new"), n.to_string()).unwrap();
        keeper.take(&tree, &CheckpointName { task: 3, n }, message, None).unwrap();
    }
    fs::write(tree.join("a.txt"), "changed").unwrap();
    let name = RefName::rescue("dev-shop-3.1", 1).unwrap();
    capture(&world.captures, &tree, &name, "captured").unwrap().unwrap();
    let merged = RefName::rescue("dev-shop-3.1", 2).unwrap();
    fs::remove_file(tree.join("new")).unwrap();
    world.plain(&tree, &["checkout", "-q", "a.txt"]);
    world.plain(&tree, &["commit", "-q", "--allow-empty", "-m", "nothing"]);
    capture(&world.captures, &tree, &merged, "captured").unwrap().unwrap();

    let found = list(&world.captures).unwrap();
    let seen: Vec<_> = found
        .iter()
        .map(|r| (r.kind, r.refname.as_str(), r.session.as_deref().unwrap(), r.task, r.files.join(" ")))
        .collect();
    let session = ("dev-shop-3.1", "dev-shop-3.2");
    assert_eq!(
        seen,
        [
            (Kind::Checkpoint, "refs/pointsman/checkpoints/3/9", session.1, Some(3), "new".to_owned()),
            (Kind::Checkpoint, "refs/pointsman/checkpoints/3/10", session.1, Some(3), "new".to_owned()),
            (Kind::Rescue, name.as_str(), session.0, Some(3), "a.txt new".to_owned()),
            (Kind::Rescue, merged.as_str(), session.0, Some(3), String::new()),
        ]
    );
    assert!(found.iter().all(|r| r.at_secs > 0));
    assert!(stat(&world.captures, &found[2].commit).unwrap().contains("2 files changed"));
    assert!(patch(&world.captures, &found[2].commit, 10_000).unwrap().contains("+changed"));
}

#[test]
fn files_are_restored_into_an_empty_directory_only() {
    let world = World::new();
    let tree = world.tree();
    let trap = world.trap();
    fs::write(tree.join(".gitattributes"), "* filter=trap diff=trap\n").unwrap();
    fs::write(tree.join("new"), "as it is").unwrap();
    std::os::unix::fs::symlink("/etc", tree.join("link")).unwrap();
    trap.arm(&world, &tree);
    let name = RefName::rescue("dev-shop-3.1", 1).unwrap();
    let saved = capture(&world.captures, &tree, &name, "captured").unwrap().unwrap().commit;

    let full = world.path("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("mine"), "mine").unwrap();
    assert!(restore(&world.captures, &saved, &full).is_err());
    assert_eq!(fs::read_dir(&full).unwrap().count(), 1);

    let empty = world.path("deep/empty");
    restore(&world.captures, &saved, &empty).unwrap();
    patch(&world.captures, &saved, 10_000).unwrap();
    assert_eq!(trap.sprung(), None);
    assert_eq!(fs::read_to_string(empty.join("new")).unwrap(), "as it is");
    assert_eq!(fs::read_link(empty.join("link")).unwrap().to_str(), Some("/etc"));
    assert!(!empty.join(".git").exists());
    assert!(restore(&world.captures, &saved, &empty).is_err(), "it is not empty any more");
}

#[test]
fn what_was_captured_is_no_object_of_the_mirror_and_comes_back_into_a_tree_of_its_own() {
    let world = World::new();
    let tree = world.tree();
    fs::write(tree.join("notes"), "of one session").unwrap();
    let head = world.commit(&tree, "never pushed");
    fs::write(tree.join("more"), "left lying").unwrap();
    let name = RefName::rescue("dev-shop-3.1", 1).unwrap();
    let saved = capture(&world.captures, &tree, &name, "captured").unwrap().unwrap().commit;
    for commit in [&head, &saved] {
        assert!(world.captures.commit_exists(commit).unwrap());
        assert!(!world.mirror.commit_exists(commit).unwrap(), "who borrows the mirror's objects sees it");
    }
    let kept = RefName::new("refs/pointsman/taken").unwrap();
    world.mirror.take(&world.captures, &head, &kept).unwrap();
    assert_eq!(world.mirror.read_ref(&kept).unwrap().as_ref(), Some(&head));
    assert!(!world.mirror.commit_exists(&saved).unwrap(), "only what was asked for");
}

#[test]
fn captures_of_an_earlier_release_move_out_of_the_mirror() {
    let world = World::new();
    let tree = world.tree();
    fs::write(tree.join("new"), "new").unwrap();
    let name = RefName::rescue("dev-shop-3.1", 1).unwrap();
    let saved = capture(&world.mirror, &tree, &name, "captured").unwrap().unwrap().commit;
    let captures = world.mirror.captures(&world.path("captures.git")).unwrap();
    assert_eq!(world.mirror.read_ref(&name).unwrap(), None);
    assert_eq!(captures.read_ref(&name).unwrap().as_ref(), Some(&saved));
    assert_eq!(list(&captures).unwrap().len(), 1);
    assert!(
        capture(&captures, &tree, &RefName::rescue("dev-shop-3.1", 2).unwrap(), "again").unwrap().is_some()
    );
}
