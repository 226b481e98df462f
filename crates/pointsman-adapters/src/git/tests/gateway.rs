use std::fs;

use super::{World, branch, reference};
use crate::git::Error;
use crate::git::gateway::Gateway;
use crate::git::tree::{Tree, TreeSpec};

#[test]
fn an_agent_pushes_its_branch_and_nothing_else() {
    let world = World::new();
    let gateway = world.gateway("task");
    let tree = Tree::create(&world.spec(&gateway)).unwrap().dir;
    fs::write(tree.join("b"), "work").unwrap();
    let head = world.commit(&tree, "work");
    gateway.show_primary(&branch("main"), &world.base).unwrap();
    assert_eq!(gateway.head().unwrap(), None);
    world.plain(&tree, &["push", "-q", "origin", "HEAD"]);
    assert_eq!(gateway.head().unwrap(), Some(head.clone()));

    world.plain(&tree, &["tag", "v1"]);
    for refused in [
        "+HEAD:main",
        "HEAD:refs/heads/main",
        "HEAD:other",
        "v1",
        ":task",
        ":main",
        "HEAD:refs/pointsman/x/y",
    ] {
        let done = world.try_plain(&tree, &["push", "origin", refused]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.end.success(), "{refused}");
        assert!(said.contains("pointsman:") || said.contains("deletion prohibited"), "{refused}: {said}");
    }
    let both = world.try_plain(&tree, &["push", "origin", "HEAD~0:refs/heads/task", "HEAD:main"]);
    assert!(!both.end.success());
    let refs = world.plain(gateway.dir(), &["for-each-ref", "--format=%(refname) %(objectname)"]);
    assert_eq!(refs, format!("refs/heads/main {}\nrefs/heads/task {head}", world.base));
    let done = world.try_plain(&tree, &["push", "origin", "HEAD:main"]);
    assert!(String::from_utf8_lossy(&done.stderr).contains("use \"git push origin HEAD\""));
}

#[test]
fn an_agent_may_rewrite_its_own_branch_and_the_old_commits_stay() {
    let world = World::new();
    let gateway = world.gateway("task");
    let tree = Tree::create(&world.spec(&gateway)).unwrap().dir;
    let first = world.commit(&tree, "first try");
    world.plain(&tree, &["push", "-q", "origin", "HEAD"]);
    world.plain(&tree, &["commit", "-q", "--amend", "--allow-empty", "-m", "second try"]);
    let second = world.head(&tree);
    world.plain(&tree, &["push", "-q", "--force", "origin", "HEAD"]);
    assert_eq!(gateway.head().unwrap(), Some(second.clone()));
    let log = fs::read_to_string(gateway.dir().join("logs/refs/heads/task")).unwrap();
    assert!(log.contains(first.as_str()));
    let to = reference("refs/pointsman/gateway/task");
    assert_eq!(gateway.fetch_into(&world.mirror, &to).unwrap(), Some(second));
}

#[test]
fn hostile_branch_names_are_only_names() {
    for name in ["$(touch ran)", "`touch${IFS}ran`", "a';touch${IFS}ran;'", "a\"b", "$IFS", "%s%n", "é/$x"] {
        let Some(name) = crate::git::BranchName::new(name) else { continue };
        let world = World::new();
        let gateway = Gateway::create(&world.mirror, &world.path("gateway.git"), &name).unwrap();
        let tree = Tree::create(&world.spec(&gateway)).unwrap().dir;
        let head = world.commit(&tree, "work");
        world.plain(&tree, &["push", "-q", "origin", "HEAD"]);
        assert_eq!(gateway.head().unwrap(), Some(head), "{name}");
        assert!(!world.try_plain(&tree, &["push", "-q", "origin", "HEAD:main"]).end.success(), "{name}");
        assert!(!gateway.dir().join("ran").exists() && !tree.join("ran").exists());
    }
}

#[test]
fn a_hooks_path_in_the_home_directory_does_not_switch_the_gateway_off() {
    let world = World::new();
    let tree = world.tree();
    fs::write(world.path(".gitconfig"), "[core]\n\thooksPath = /dev/null\n").unwrap();
    world.commit(&tree, "work");
    assert!(!world.try_plain(&tree, &["push", "origin", "HEAD:main"]).end.success());
}

#[test]
fn creating_again_repairs_the_files_and_keeps_what_was_pushed() {
    let world = World::new();
    let gateway = world.gateway("task");
    let tree = Tree::create(&world.spec(&gateway)).unwrap().dir;
    let head = world.commit(&tree, "work");
    world.plain(&tree, &["push", "-q", "origin", "HEAD"]);
    world.plain(gateway.dir(), &["pack-refs", "--all"]);
    fs::write(gateway.dir().join("hooks/pre-receive"), "#!/bin/sh\nexit 0\n").unwrap();

    let again = world.gateway("task");
    assert_eq!(again.head().unwrap(), Some(head));
    assert!(!world.try_plain(&tree, &["push", "origin", "HEAD:main"]).end.success());
    let other = Gateway::create(&world.mirror, gateway.dir(), &branch("other"));
    assert!(matches!(other, Err(Error::NotOurs { .. })));
}

#[test]
fn nothing_is_written_or_read_through_links_in_a_gateway() {
    let world = World::new();
    let gateway = world.gateway("task");
    let elsewhere = world.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::remove_dir_all(gateway.dir().join("refs/heads")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, gateway.dir().join("refs/heads")).unwrap();
    assert!(gateway.show_primary(&branch("main"), &world.base).is_err());
    assert!(Gateway::create(&world.mirror, gateway.dir(), &branch("task")).is_err());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

    fs::remove_file(gateway.dir().join("refs/heads")).unwrap();
    fs::create_dir(gateway.dir().join("refs/heads")).unwrap();
    for part in ["hooks", "objects/info", "objects", "info"] {
        let place = gateway.dir().join(part);
        fs::rename(&place, world.path("before")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &place).unwrap();
        let again = Gateway::create(&world.mirror, gateway.dir(), &branch("task"));
        assert!(matches!(again, Err(Error::NotOurs { .. })), "{part}: {again:?}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{part}");
        fs::remove_file(&place).unwrap();
        fs::rename(world.path("before"), &place).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", gateway.dir().join("refs/heads/task")).unwrap();
    assert!(gateway.head().is_err());
}

#[test]
fn the_agent_sees_main_move_when_it_is_shown() {
    let world = World::new();
    let gateway = world.gateway("task");
    let tree = Tree::create(&world.spec(&gateway)).unwrap().dir;
    let main = world.commit_on("main", &world.base, &[("b", "upstream")]);
    gateway.show_primary(&branch("main"), &main).unwrap();
    world.plain(&tree, &["fetch", "-q", "--prune", "origin"]);
    assert_eq!(world.plain(&tree, &["rev-parse", "origin/main"]), main.as_str());
    world.plain(&tree, &["rebase", "-q", "origin/main"]);
    assert!(tree.join("b").exists());
}

#[test]
fn files_of_git_lfs_are_refused_with_a_reason_unless_they_only_move() {
    let world = World::new();
    if !world.mirror.git().version().unwrap().merges_as_told() {
        return pointsman_testkit::not_run(
            "git 2.41",
            "an older git does not know the attributes of a commit",
        );
    }
    let files = [(".gitattributes", "*.bin filter=lfs diff=lfs\n"), ("old.bin", "version https://git-lfs\n")];
    let main = world.commit_on("main", &world.base, &files);
    let gateway = world.gateway("task");
    gateway.show_primary(&branch("main"), &main).unwrap();
    let tree = Tree::create(&TreeSpec { base: main, ..world.spec(&gateway) }).unwrap().dir;
    let push = || world.try_plain(&tree, &["push", "-q", "origin", "HEAD"]);
    world.plain(&tree, &["mv", "old.bin", "moved.bin"]);
    world.commit(&tree, "work");
    assert!(push().end.success(), "what is on the server already may move");
    fs::write(tree.join("new.bin"), "the content itself").unwrap();
    world.commit(&tree, "more");
    let pushed = push();
    let said = String::from_utf8_lossy(&pushed.stderr);
    assert!(!pushed.end.success() && said.contains("new.bin") && said.contains("Git LFS"), "{said}");
    assert!(!said.contains("moved.bin"), "{said}");
    world.plain(&tree, &["rm", "-q", "new.bin"]);
    world.commit(&tree, "less");
    assert!(!push().end.success(), "it is still in the history");
    world.plain(&tree, &["reset", "-q", "--soft", "HEAD~2"]);
    world.commit(&tree, "again");
    assert!(push().end.success());
}
