use std::fs;
use std::path::Path;

use super::{World, branch};
use crate::git::checkpoint::{CheckpointName, CheckpointOutcome, Keeper};
use crate::git::mirror::Mirror;
use crate::git::tree::{Tree, TreeSpec, rebuild_from};

#[test]
fn an_agent_finds_its_branch_main_and_an_identity() {
    let world = World::new();
    let tree = world.tree();
    assert_eq!(world.plain(&tree, &["symbolic-ref", "HEAD"]), "refs/heads/task");
    assert_eq!(world.head(&tree), world.base);
    assert_eq!(world.plain(&tree, &["status", "--porcelain"]), "");
    assert_eq!(world.plain(&tree, &["diff", "--stat", "origin/main..HEAD"]), "");
    assert_eq!(world.plain(&tree, &["rev-parse", "--abbrev-ref", "origin/HEAD"]), "origin/main");
    assert_eq!(world.plain(&tree, &["config", "user.name"]), "dev \"quoted\" \\ bot");
    assert_eq!(
        world.plain(&tree, &["config", "remote.origin.url"]),
        world.path("gateway.git").to_str().unwrap()
    );
    fs::write(tree.join(".agent-claim.json"), "{}").unwrap();
    assert_eq!(world.plain(&tree, &["status", "--porcelain"]), "", "our own files are excluded");
    assert!(!tree.join(".git/hooks").exists());
    assert_eq!(world.plain(&tree, &["count-objects"]), "0 objects, 0 kilobytes", "objects are borrowed");
}

#[test]
fn a_tree_that_is_there_is_reused_untouched() {
    let world = World::new();
    let gateway = world.gateway("task");
    let tree = Tree::create(&world.spec(&gateway)).unwrap();
    assert!(!tree.reused);
    fs::write(tree.dir.join("a.txt"), "half done").unwrap();
    world.plain(&tree.dir, &["checkout", "-q", "--detach"]);
    let again = Tree::create(&world.spec(&gateway)).unwrap();
    assert_eq!(again, Tree { dir: tree.dir.clone(), reused: true });
    assert_eq!(fs::read_to_string(tree.dir.join("a.txt")).unwrap(), "half done");
    assert!(!world.path("quarantine").exists());
}

#[test]
fn what_is_in_the_way_is_set_aside_and_never_deleted() {
    let world = World::new();
    let gateway = world.gateway("task");
    for half_made in ["tree", "tree.tmp-tree"] {
        fs::create_dir(world.path(half_made)).unwrap();
        fs::write(world.path(half_made).join("work"), half_made).unwrap();
    }
    let tree = Tree::create(&world.spec(&gateway)).unwrap();
    assert_eq!(world.head(&tree.dir), world.base);
    let kept = |name: &str| fs::read_to_string(world.path("quarantine").join(name).join("work")).unwrap();
    assert_eq!((kept("tree-1").as_str(), kept("tree.tmp-tree-1").as_str()), ("tree", "tree.tmp-tree"));

    let other = Tree::create(&TreeSpec { branch: branch("other"), ..world.spec(&gateway) }).unwrap();
    assert!(!other.reused);
    assert!(world.path("quarantine/tree-2/.git").is_dir(), "a tree of another branch is kept too");
}

#[test]
fn a_new_tree_goes_on_where_the_branch_was_left() {
    let world = World::new();
    let forge_head = world.commit_on("task", &world.base, &[("b", "on the forge")]);
    let gateway = world.gateway("task");
    let tree = Tree::create(&world.spec(&gateway)).unwrap().dir;
    assert_eq!(world.head(&tree), forge_head);

    fs::write(tree.join("c"), "pushed").unwrap();
    let pushed = world.commit(&tree, "pushed");
    world.plain(&tree, &["push", "-q", "origin", "HEAD"]);
    Tree::set_aside(&tree).unwrap();
    let tree = Tree::create(&world.spec(&gateway)).unwrap().dir;
    assert_eq!(world.head(&tree), pushed);
    assert_eq!(world.plain(&tree, &["rev-parse", "origin/task"]), pushed.as_str());
}

#[test]
fn a_template_or_hook_of_the_machine_is_not_copied_and_a_filter_of_the_tree_not_run() {
    let world = World::new();
    let trap = world.trap();
    fs::write(
        world.path(".gitconfig"),
        format!("[filter \"trap\"]\n\tsmudge = {0}\n\tclean = {0}\n", trap.script),
    )
    .unwrap();
    let base = world.commit_on("main", &world.base, &[(".gitattributes", "a.txt filter=trap\n")]);
    let _ = fs::remove_file(&trap.mark);
    let gateway = world.gateway("task");
    Tree::create(&TreeSpec { base, ..world.spec(&gateway) }).unwrap();
    assert_eq!(trap.sprung(), None);
}

#[test]
fn a_linked_tree_pushes_to_the_gateway_too() {
    let world = World::new();
    let gateway = world.gateway("task");
    let spec = TreeSpec { linked: true, ..world.spec(&gateway) };
    let tree = Tree::create(&spec).unwrap();
    assert!(tree.dir.join(".git").is_file());
    fs::write(tree.dir.join("b"), "work").unwrap();
    fs::write(tree.dir.join(".agent-claim.json"), "{}").unwrap();
    let head = world.commit(&tree.dir, "work");
    assert_eq!(world.plain(&tree.dir, &["status", "--porcelain"]), "");
    world.plain(&tree.dir, &["push", "-q", "origin", "HEAD"]);
    assert_eq!(gateway.head().unwrap(), Some(head.clone()));
    assert!(!world.try_plain(&tree.dir, &["push", "origin", "HEAD:main"]).end.success());
    assert!(Tree::create(&spec).unwrap().reused);
    assert!(world.mirror.commit_exists(&head).unwrap());
    world.mirror.fetch_remote().unwrap();

    let place = Tree::set_aside(&tree.dir).unwrap();
    let again = Tree::create(&spec).unwrap();
    assert_eq!(world.head(&again.dir), head);
    assert!(place.join("b").exists());
}

fn checkpoint(world: &World, tree: &std::path::Path) -> pointsman_core::ids::Sha {
    let name = CheckpointName { task: 7, n: 1 };
    let keeper = Keeper::new(&world.captures, &world.path("indexes"));
    match keeper.take(tree, &name, "checkpoint", None).unwrap() {
        CheckpointOutcome::Saved { commit, .. } => commit,
        CheckpointOutcome::Unchanged => panic!("there was none before"),
    }
}

#[test]
fn a_tree_that_is_gone_is_rebuilt_with_its_commits_and_its_unfinished_work() {
    let world = World::new();
    let gateway = world.gateway("task");
    let tree = Tree::create(&world.spec(&gateway)).unwrap().dir;
    fs::write(tree.join("pushed"), "1").unwrap();
    let pushed = world.commit(&tree, "pushed");
    world.plain(&tree, &["push", "-q", "origin", "HEAD"]);
    fs::write(tree.join("unpushed"), "1").unwrap();
    let unpushed = world.commit(&tree, "unpushed");
    fs::write(tree.join("a.txt"), "half done").unwrap();
    fs::remove_file(tree.join("pushed")).unwrap();
    fs::create_dir(tree.join("dir")).unwrap();
    fs::write(tree.join("dir/new"), "untracked").unwrap();
    fs::write(tree.join("staged"), "staged").unwrap();
    world.plain(&tree, &["add", "staged"]);
    let saved = checkpoint(&world, &tree);
    fs::remove_dir_all(&tree).unwrap();

    let rebuilt = rebuild_from(&world.spec(&gateway), &world.captures, &saved).unwrap();
    assert_eq!(rebuilt, Tree { dir: tree.clone(), reused: false });
    assert_eq!(world.plain(&tree, &["symbolic-ref", "HEAD"]), "refs/heads/task");
    assert_eq!(world.head(&tree), unpushed);
    assert_eq!(world.plain(&tree, &["rev-parse", "origin/task"]), pushed.as_str());
    let status = world.plain(&tree, &["status", "--porcelain", "-uall"]);
    assert_eq!(status, " M a.txt\n D pushed\n?? dir/new\n?? staged");
    assert_eq!(fs::read_to_string(tree.join("a.txt")).unwrap(), "half done");
    assert!(
        rebuild_from(&world.spec(&gateway), &world.captures, &saved).unwrap().reused,
        "a tree that is there is left alone"
    );
}

#[test]
fn a_checkpoint_of_a_broken_repository_is_put_on_top_of_the_branch() {
    let world = World::new();
    let gateway = world.gateway("task");
    let tree = Tree::create(&world.spec(&gateway)).unwrap().dir;
    fs::write(tree.join("new"), "new").unwrap();
    fs::remove_dir_all(tree.join(".git")).unwrap();
    let saved = checkpoint(&world, &tree);
    // What is left of it is in the way, and is kept.
    rebuild_from(&world.spec(&gateway), &world.captures, &saved).unwrap();
    assert_eq!(world.head(&tree), world.base);
    assert_eq!(world.plain(&tree, &["status", "--porcelain"]), "?? new");
    assert!(world.path("quarantine/tree-1/new").exists());
    let unknown = pointsman_core::ids::Sha::new(&"1".repeat(40)).unwrap();
    assert!(rebuild_from(&world.spec(&gateway), &world.captures, &unknown).is_err());
}

#[test]
fn a_linked_tree_is_rebuilt_unless_its_branch_has_moved_on() {
    let world = World::new();
    let gateway = world.gateway("task");
    let spec = TreeSpec { linked: true, ..world.spec(&gateway) };
    let tree = Tree::create(&spec).unwrap().dir;
    fs::write(tree.join("new"), "new").unwrap();
    let saved = checkpoint(&world, &tree);
    fs::remove_dir_all(&tree).unwrap();
    rebuild_from(&spec, &world.captures, &saved).unwrap();
    assert_eq!(world.plain(&tree, &["status", "--porcelain"]), "?? new");

    fs::write(tree.join("new"), "newer").unwrap();
    let later = world.commit(&tree, "later");
    fs::remove_dir_all(&tree).unwrap();
    rebuild_from(&spec, &world.captures, &saved).unwrap();
    assert_eq!(world.head(&tree), later);
    assert_eq!(world.plain(&tree, &["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(tree.join("new")).unwrap(), "newer");
}

#[test]
fn a_tree_finds_submodules_and_large_files_on_the_server_of_its_repository() {
    let world = World::new();
    let modules = "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib.git\n\
                   [submodule \"other\"]\n\tpath = other\n\turl = https://other.example.org/o.git\n";
    let main = world.commit_on("main", &world.base, &[(".gitmodules", modules)]);
    let gateway = world.gateway("task");
    let url = "https://ann:hunter22@forge.example.org/ann/shop.git";
    let mirror = Mirror::open_or_create(world.mirror.git(), &world.path("mirror.git"), url).unwrap();
    let spec = TreeSpec { base: main, mirror: &mirror, ..world.spec(&gateway) };
    let config = |spec: &TreeSpec<'_>| {
        let tree = Tree::create(spec).unwrap().dir;
        std::fs::read_to_string(tree.join(".git/config")).unwrap()
    };
    let said = config(&spec);
    for wanted in ["https://forge.example.org/ann/lib.git", "https://forge.example.org/ann/shop.git/info/lfs"]
    {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!said.contains("hunter22") && !said.contains("other.example.org"), "{said}");
    // There is nothing beside a path.
    let second = TreeSpec { mirror: &world.mirror, dir: world.path("second"), ..spec };
    let said = config(&second);
    assert!(!said.contains("lfs") && !said.contains("submodule"), "{said}");
}

#[test]
fn a_tree_is_made_of_a_spare_one_and_is_the_same_as_without() {
    use crate::git::layers::WarmTree;
    let world = World::new();
    let spare = WarmTree::make(&world.mirror, &world.path("spare"), &world.base).unwrap();
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let before = inode(&world.path("spare/tree/.gitignore"));
    let main = world.commit_on("main", &world.base, &[("a.txt", "changed\n"), ("new/file", "new\n")]);
    let gateway = world.gateway("task");
    let spec = TreeSpec { base: main.clone(), spare: Some(spare.clone()), ..world.spec(&gateway) };
    let tree = Tree::create(&spec).unwrap();
    assert_eq!(inode(&tree.dir.join(".gitignore")), before, "what did not change was not written again");
    assert_eq!(fs::read_to_string(tree.dir.join("a.txt")).unwrap(), "changed\n");
    assert_eq!(world.head(&tree.dir), main);
    assert_eq!(world.plain(&tree.dir, &["status", "--porcelain", "--ignored"]), "");
    assert!(!world.path("spare").exists(), "it is used up");
    // One that is gone is no obstacle.
    let other = TreeSpec { dir: world.path("other"), spare: Some(spare), ..world.spec(&gateway) };
    assert_eq!(world.plain(&Tree::create(&other).unwrap().dir, &["status", "--porcelain"]), "");
}
