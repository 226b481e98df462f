use std::fs;
use std::os::unix::fs::PermissionsExt;

use pointsman_core::ids::Sha;

use super::{World, branch};
use crate::git::Error;
use crate::git::checkout::{checkout_exact, give_origin, remove_checkout, restore_from};
use crate::git::mirror::Mirror;

#[test]
fn ci_gets_exactly_the_commit_and_nothing_else() {
    let world = World::new();
    let dir = world.path("ci");
    let head = world.commit_on("task", &world.base, &[("b", "b")]);
    checkout_exact(&world.mirror, &head, &dir).unwrap();
    assert_eq!(world.head(&dir), head);
    assert!(!world.try_plain(&dir, &["symbolic-ref", "-q", "HEAD"]).end.success(), "HEAD is detached");
    assert_eq!(world.plain(&dir, &["status", "--porcelain", "--ignored"]), "");
    assert_eq!(world.plain(&dir, &["remote"]), "");
    assert!(!dir.join(".git/hooks").exists());

    // What an earlier run left is gone.
    fs::write(dir.join("left"), "over").unwrap();
    checkout_exact(&world.mirror, &world.base, &dir).unwrap();
    assert!(!dir.join("left").exists() && !dir.join("b").exists());
}

/// CI may look at where the commit comes from, fetch its submodules from beside it, and not push.
#[test]
fn origin_is_there_to_be_read() {
    let world = World::new();
    world.plain(world.root.path(), &["init", "-q", "--bare", "-b", "main", "library.git"]);
    world.plain(&world.person, &["push", "-q", "../library.git", "HEAD:main"]);
    let modules = "[submodule \"library\"]\n\tpath = library\n\turl = ../library.git\n";
    fs::write(world.person.join(".gitmodules"), modules).unwrap();
    let entry = format!("160000,{},library", world.base);
    world.plain(&world.person, &["update-index", "--add", "--cacheinfo", &entry]);
    world.plain(&world.person, &["add", ".gitmodules"]);
    world.plain(&world.person, &["commit", "-q", "-m", "with a library"]);
    world.publish("task");
    let head = world.head(&world.person);
    let dir = world.path("ci");
    checkout_exact(&world.mirror, &head, &dir).unwrap();
    give_origin(&world.mirror, &dir, &branch("main")).unwrap();
    assert_eq!(world.plain(&dir, &["diff", "--name-only", "origin/main...HEAD"]), ".gitmodules\nlibrary");
    world.plain(&dir, &["fetch", "-q", "origin"]);
    world.plain(&dir, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"]);
    assert!(dir.join("library/a.txt").exists());
    assert!(!world.try_plain(&dir, &["push", "-q", "origin", "HEAD:main"]).end.success());

    // Of our own forge it is the mirror.
    let mirror = world.mirror.clone().of_our_own_remote();
    checkout_exact(&mirror, &head, &dir).unwrap();
    give_origin(&mirror, &dir, &branch("main")).unwrap();
    world.plain(&dir, &["fetch", "-q", "origin"]);
    assert_eq!(world.plain(&dir, &["rev-parse", "origin/task"]), head.as_str());
}

#[test]
fn an_origin_has_no_credentials_however_its_scheme_is_written() {
    let world = World::new();
    let dir = world.path("ci");
    for (place, url) in
        [("one", "https://ann:token@forge.invalid/shop.git"), ("two", "HTTPS://token@forge.invalid/shop.git")]
    {
        checkout_exact(&world.mirror, &world.base, &dir).unwrap();
        let mirror = Mirror::open_or_create(world.mirror.git(), &world.path(place), url).unwrap();
        give_origin(&mirror, &dir, &branch("main")).unwrap();
        let config = fs::read_to_string(dir.join(".git/config")).unwrap();
        assert!(config.contains("://forge.invalid/shop.git") && !config.contains("token"), "{config}");
    }
}

#[test]
fn a_commit_that_is_not_there_is_an_error_and_makes_no_directory() {
    let world = World::new();
    let dir = world.path("ci");
    let missing = Sha::new(&"1".repeat(40)).unwrap();
    assert!(matches!(checkout_exact(&world.mirror, &missing, &dir), Err(Error::NoCommit { .. })));
    assert!(!dir.exists());
}

#[test]
fn removing_does_not_follow_links_and_copes_with_write_protection() {
    let world = World::new();
    let dir = world.path("ci");
    checkout_exact(&world.mirror, &world.base, &dir).unwrap();
    let precious = world.path("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "mine").unwrap();
    std::os::unix::fs::symlink(&precious, dir.join("link")).unwrap();
    fs::create_dir(dir.join("locked")).unwrap();
    fs::write(dir.join("locked/file"), "x").unwrap();
    fs::set_permissions(dir.join("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    remove_checkout(&dir).unwrap();
    assert!(!dir.exists());
    assert_eq!(fs::read_to_string(precious.join("file")).unwrap(), "mine");
    remove_checkout(&dir).unwrap();
}

#[test]
fn picked_files_are_as_they_are_in_the_base() {
    let world = World::new();
    let dir = world.path("review");
    let base =
        world.commit_on("base", &world.base, &[(".claude/settings.json", "{}"), ("CLAUDE.md", "be strict")]);
    let steering = |path: &str| path.starts_with(".claude") || path.ends_with("CLAUDE.md");
    let head = world.commit_on(
        "task",
        &base,
        &[
            (".claude/settings.json", "evil"),
            (".claude/agents/x.md", "evil"),
            ("sub/CLAUDE.md", "approve"),
            ("b", "b"),
        ],
    );
    checkout_exact(&world.mirror, &head, &dir).unwrap();
    restore_from(&world.mirror, &dir, &head, &base, steering).unwrap();
    let read = |path: &str| fs::read_to_string(dir.join(path)).ok();
    assert_eq!(read(".claude/settings.json").as_deref(), Some("{}"));
    assert_eq!(read("CLAUDE.md").as_deref(), Some("be strict"));
    assert_eq!(
        (read(".claude/agents/x.md"), read("sub/CLAUDE.md"), read("b").as_deref()),
        (None, None, Some("b"))
    );
    assert_eq!(world.head(&dir), head, "it is still the head");

    // A directory that the head made a link to somewhere else is a directory again, and nothing went through the link.
    let outside = world.path("outside");
    fs::create_dir(&outside).unwrap();
    world.plain(&world.person, &["checkout", "-q", "-B", "linked", base.as_str()]);
    fs::remove_dir_all(world.person.join(".claude")).unwrap();
    std::os::unix::fs::symlink(&outside, world.person.join(".claude")).unwrap();
    let linked = world.commit_on_current("linked");
    checkout_exact(&world.mirror, &linked, &dir).unwrap();
    assert!(dir.join(".claude").is_symlink());
    restore_from(&world.mirror, &dir, &linked, &base, steering).unwrap();
    assert!(!dir.join(".claude").is_symlink());
    assert_eq!(read(".claude/settings.json").as_deref(), Some("{}"));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}
