use std::fs;
use std::path::Path;
use std::time::Duration;

use pointsman_core::ids::Sha;
use pointsman_core::time::Timestamp;

use super::{World, reference};
use crate::git::RefName;
use crate::git::checkpoint::{CheckpointName, CheckpointOutcome, Keeper, list, newest, prune};
use crate::git::push::Expect;

const TASK: u64 = 7;

fn name(n: u32) -> CheckpointName {
    CheckpointName { task: TASK, n }
}

fn keeper(world: &World) -> Keeper<'_> {
    Keeper::new(&world.captures, &world.path("indexes"))
}

/// Takes the next checkpoint, as the daemon does.
fn take(world: &World, tree: &Path) -> CheckpointOutcome {
    let last = newest(&world.captures, TASK).unwrap();
    let n = last.as_ref().map_or(1, |c| c.name.n + 1);
    keeper(world).take(tree, &name(n), "checkpoint", last.map(|c| c.tree).as_ref()).unwrap()
}

fn saved(taken: CheckpointOutcome) -> (Sha, u32, Option<String>) {
    match taken {
        CheckpointOutcome::Saved { commit, files, incomplete, .. } => (commit, files, incomplete),
        CheckpointOutcome::Unchanged => panic!("nothing was saved"),
    }
}

#[test]
fn a_checkpoint_is_taken_when_something_changed_and_the_tree_stays_as_it_is() {
    let world = World::new();
    let tree = world.tree();
    fs::write(tree.join("a.txt"), "changed").unwrap();
    fs::write(tree.join("odd \n\"name"), "untracked").unwrap();
    fs::write(tree.join("ignored"), "ignored").unwrap();
    let status = world.plain(&tree, &["status", "--porcelain"]);
    let index = fs::read(tree.join(".git/index")).unwrap();

    let first = take(&world, &tree);
    let (commit, files, incomplete) = saved(first.clone());
    assert_eq!((files, incomplete), (2, None));
    assert_eq!(
        world.captures.read_ref(&reference("refs/pointsman/checkpoints/7/1")).unwrap(),
        Some(commit.clone())
    );
    let listed = world.plain(world.captures.dir(), &["ls-tree", "-z", "--name-only", commit.as_str()]);
    assert_eq!(listed, ".gitignore\0a.txt\0odd \n\"name\0");
    assert_eq!(world.captures.parent_of(&commit).unwrap(), Some(world.base.clone()));
    for _ in 0..2 {
        assert_eq!(take(&world, &tree), CheckpointOutcome::Unchanged);
    }
    assert_eq!(keeper(&world).take(&tree, &name(1), "again", None).unwrap(), first, "it is done already");

    fs::remove_file(tree.join("a.txt")).unwrap();
    let (second, files, _) = saved(take(&world, &tree));
    assert_eq!(files, 2);
    assert_eq!(world.captures.changed_paths(&commit, &second).unwrap().len(), 2);
    assert!(keeper(&world).take(&tree, &name(1), "another", None).is_err(), "the name is taken");
    fs::write(tree.join("a.txt"), "changed").unwrap();
    assert_eq!(world.plain(&tree, &["status", "--porcelain"]), status);
    assert_eq!(fs::read(tree.join(".git/index")).unwrap(), index);
    let scratch = |name: &str| name.starts_with("pointsman-capture-") || name.starts_with("take-");
    for dir in [world.captures.dir(), &world.path("indexes")] {
        let left =
            fs::read_dir(dir).unwrap().filter(|e| scratch(e.as_ref().unwrap().file_name().to_str().unwrap()));
        assert_eq!(left.count(), 0, "{}", dir.display());
    }
}

#[test]
fn what_was_committed_since_is_a_change_even_if_no_file_is() {
    let world = World::new();
    let tree = world.tree();
    fs::write(tree.join("new"), "new").unwrap();
    let (first, ..) = saved(take(&world, &tree));
    let unpushed = world.commit(&tree, "unpushed");
    // Also if what we knew is lost.
    for lose in [false, true] {
        if lose {
            fs::remove_dir_all(world.path("indexes")).unwrap();
            world.plain(&tree, &["commit", "-q", "--allow-empty", "-m", "another"]);
        }
        let (commit, files, _) = saved(take(&world, &tree));
        assert_eq!(files, 0);
        assert_eq!(world.captures.parent_of(&commit).unwrap(), Some(world.head(&tree)));
        assert_eq!(world.captures.tree_of(&commit).unwrap(), world.captures.tree_of(&first).unwrap());
        assert_eq!(take(&world, &tree), CheckpointOutcome::Unchanged);
    }
    assert!(
        world
            .captures
            .is_ancestor(&unpushed, &newest(&world.captures, TASK).unwrap().unwrap().commit)
            .unwrap()
    );
    fs::remove_dir_all(world.path("indexes")).unwrap();
    assert_eq!(take(&world, &tree), CheckpointOutcome::Unchanged, "told by the last checkpoint itself");

    // A rescue in between is no checkpoint.
    world.plain(&tree, &["commit", "-q", "--allow-empty", "-m", "rescued"]);
    let rescue = RefName::rescue("dev-shop-7.1", 1).unwrap();
    let kept = keeper(&world).rescue(&tree, TASK, &rescue, "rescue").unwrap().unwrap();
    assert_eq!(kept.commit, world.head(&tree));
    let (commit, ..) = saved(take(&world, &tree));
    assert_eq!(world.captures.parent_of(&commit).unwrap(), Some(kept.commit));
    assert_eq!(keeper(&world).rescue(&tree, TASK, &rescue, "rescue").unwrap(), None, "a checkpoint keeps it");
}

#[test]
fn old_checkpoints_go_and_the_newest_stay() {
    let world = World::new();
    let day = 24 * 3600;
    let now = 100 * day;
    let root = world.captures.tree_of(&world.base).unwrap();
    for n in 1..=12_u32 {
        // One a day; the last one is of today.
        let date = format!("@{} +0000", now - (12 - i64::from(n)) * day);
        let call = world.captures.call("commit-tree").env("GIT_COMMITTER_DATE", date);
        let commit = call.args([root.as_str(), "-m", "old"]).sha().unwrap();
        world.captures.update_ref(&name(n).refname(), &commit, &Expect::Absent).unwrap();
    }
    let numbers = || list(&world.captures, TASK).unwrap().iter().map(|c| c.name.n).collect::<Vec<_>>();
    let go = |keep, days: u64| {
        let age = Duration::from_secs(days * day.cast_unsigned());
        let gone = prune(&world.captures, TASK, keep, age, Timestamp(now * 1000)).unwrap();
        gone.iter().map(|r| r.as_str().rsplit('/').next().unwrap().parse().unwrap()).collect::<Vec<u32>>()
    };
    assert_eq!(numbers(), (1..=12).collect::<Vec<_>>(), "by number, not by name");
    assert!(go(20, 0).is_empty(), "not too many");
    assert!(go(2, 30).is_empty(), "not too old");
    assert_eq!(go(10, 5), [1, 2]);
    assert_eq!(go(2, 5), [3, 4, 5, 6]);
    assert_eq!(go(0, 0), [7, 8, 9, 10, 11]);
    assert_eq!(numbers(), [12], "the newest stays, whatever is asked");
    assert!(prune(&world.captures, 8, 0, Duration::ZERO, Timestamp(now)).unwrap().is_empty());
}

#[test]
fn nothing_of_the_tree_is_run() {
    let world = World::new();
    let tree = world.tree();
    let trap = world.trap();
    fs::write(tree.join(".gitattributes"), "* filter=trap diff=trap\n").unwrap();
    fs::write(tree.join("new"), "as it is").unwrap();
    trap.arm(&world, &tree);
    saved(take(&world, &tree));
    fs::write(tree.join("new"), "and changed").unwrap();
    fs::write(tree.join("newer"), "new").unwrap();
    let (commit, ..) = saved(take(&world, &tree));
    assert_eq!(take(&world, &tree), CheckpointOutcome::Unchanged);
    assert_eq!(trap.sprung(), None);
    assert_eq!(world.captures.read_file_at(&commit, "new", 100).unwrap().unwrap(), b"and changed");
    world.try_plain(&tree, &["add", "--dry-run", "new"]);
    assert!(trap.sprung().is_some(), "the trap does not work");
}

#[test]
fn a_submodule_with_a_monitor_of_its_own_is_not_entered() {
    let world = World::new();
    let tree = world.tree();
    let trap = world.trap();
    let sub = tree.join("sub");
    fs::create_dir(&sub).unwrap();
    fs::write(sub.join("file"), "1").unwrap();
    saved(take(&world, &tree));
    // The directory was taken as files; now it becomes a repository, then a submodule.
    world.plain(&sub, &["init", "-q"]);
    let sub_head = world.commit(&sub, "in the submodule");
    trap.arm(&world, &sub);
    for round in 0..3 {
        fs::write(sub.join("dirty"), round.to_string()).unwrap();
        fs::write(tree.join("new"), round.to_string()).unwrap();
        saved(take(&world, &tree));
        if round == 0 {
            assert_eq!(trap.sprung(), None);
            world.plain(&tree, &["-c", "core.fsmonitor=false", "add", "new"]);
            world.plain(&tree, &["update-index", "--add", "--cacheinfo", "160000", sub_head.as_str(), "sub"]);
            world.plain(&tree, &["commit", "-q", "--no-verify", "-m", "with a submodule"]);
            let _ = fs::remove_file(&trap.mark);
        }
    }
    let (commit, _, incomplete) = saved({
        fs::write(tree.join("new"), "last").unwrap();
        take(&world, &tree)
    });
    assert_eq!((trap.sprung(), incomplete), (None, None));
    let listed = world.plain(world.captures.dir(), &["ls-tree", commit.as_str(), "sub"]);
    assert!(listed.contains(sub_head.as_str()), "{listed}");
    assert_eq!(take(&world, &tree), CheckpointOutcome::Unchanged);
}

#[test]
fn a_name_reads_back() {
    assert_eq!(CheckpointName::parse(name(3).refname().as_str()), Some(name(3)));
    for bad in
        ["refs/pointsman/checkpoints/7", "refs/pointsman/checkpoints/7/03", "refs/pointsman/rescue/7/3"]
    {
        assert_eq!(CheckpointName::parse(bad), None, "{bad}");
    }
}
