use std::fs;
use std::os::unix::fs::PermissionsExt;

use pointsman_core::ids::Sha;

use super::{World, branch, lines, reference};
use crate::git::bare::{Existing, import_branch, init_bare};
use crate::git::mirror::{Mirror, RefUpdate};
use crate::git::push::{Change, Expect, PushOutcome, PushRef};
use crate::git::{Error, Git};
use crate::retry::Retry;

fn main_ref() -> crate::git::RefName {
    branch("main").full()
}

#[test]
fn branches_of_the_remote_come_and_go() {
    let world = World::new();
    assert_eq!(world.mirror.remote_head(&branch("main")).unwrap(), Some(world.base.clone()));
    let topic = world.commit_on("$(id)", &world.base, &[("b", "b")]);
    assert_eq!(world.mirror.remote_head(&branch("$(id)")).unwrap(), Some(topic));
    world.plain(&world.person, &["push", "-q", "origin", ":refs/heads/$(id)"]);
    world.mirror.fetch_remote().unwrap();
    assert_eq!(world.mirror.remote_head(&branch("$(id)")).unwrap(), None);
}

#[test]
fn a_packed_reference_is_read_too() {
    let world = World::new();
    world.plain(world.mirror.dir(), &["pack-refs", "--all"]);
    assert!(!world.mirror.dir().join("refs/remotes/origin/main").exists());
    assert_eq!(world.mirror.remote_head(&branch("main")).unwrap(), Some(world.base.clone()));
}

#[test]
fn opening_again_keeps_everything_and_a_foreign_directory_is_left_alone() {
    let world = World::new();
    let again = Mirror::open_or_create(&world.git, world.mirror.dir(), world.mirror.remote_url()).unwrap();
    assert_eq!(again.remote_head(&branch("main")).unwrap(), Some(world.base.clone()));
    let foreign = world.path("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("file"), "mine").unwrap();
    assert!(matches!(Mirror::open_or_create(&world.git, &foreign, "x"), Err(Error::NotOurs { .. })));
    assert_eq!(fs::read_to_string(foreign.join("file")).unwrap(), "mine");
}

#[test]
fn an_address_that_is_an_option_or_runs_a_command_is_refused() {
    let world = World::new();
    for bad in ["--upload-pack=touch x", "", "a\nb"] {
        let opened = Mirror::open_or_create(&world.git, &world.path("m2"), bad);
        assert!(matches!(opened, Err(Error::BadRemote { .. })), "{bad:?}");
    }
    let mark = world.path("ran");
    let mirror =
        Mirror::open_or_create(&world.git, &world.path("m3"), &format!("ext::touch {}", mark.display()))
            .unwrap();
    let error = mirror.fetch_remote().unwrap_err();
    assert!(!mark.exists() && error.to_string().contains("transport 'ext' not allowed"), "{error}");
}

#[test]
fn a_remote_that_is_away_is_worth_another_try() {
    let world = World::new();
    let mirror = Mirror::open_or_create(&world.git, &world.path("m2"), "/no/such/forge.git").unwrap();
    assert_eq!(mirror.fetch_remote().unwrap_err().retry(), Retry::Later);
}

#[test]
fn fetching_from_an_armed_repository_runs_nothing() {
    let world = World::new();
    let tree = world.tree();
    let trap = world.trap();
    fs::write(tree.join("new"), "new").unwrap();
    fs::write(tree.join(".gitattributes"), "* filter=trap diff=trap merge=trap\n").unwrap();
    let head = world.commit(&tree, "work");
    trap.arm(&world, &tree);
    world.try_plain(&tree, &["status"]);
    assert!(trap.sprung().is_some(), "the trap does not work");
    fs::remove_file(&trap.mark).unwrap();

    let to = reference("refs/pointsman/x/y");
    let fetched = world.mirror.fetch_path(&tree, &branch("task").full(), &to).unwrap();
    assert_eq!(fetched, Some(head.clone()));
    world.mirror.diff(&world.base, &head, 10_000).unwrap();
    world.mirror.log_oneline(&world.base, &head).unwrap();
    assert_eq!(trap.sprung(), None);
    assert_eq!(world.mirror.read_ref(&to).unwrap(), Some(head));
}

#[test]
fn a_reference_that_is_not_there_is_nothing_and_a_repository_that_is_not_there_an_error() {
    let world = World::new();
    let to = reference("refs/pointsman/x/y");
    let none = world.mirror.fetch_path(&world.person, &branch("none").full(), &to).unwrap();
    assert_eq!(none, None);
    assert!(world.mirror.fetch_path(&world.path("nowhere"), &branch("main").full(), &to).is_err());
    assert!(world.mirror.fetch_path(world.root.path(), &branch("main").full(), &to).is_err());
}

#[test]
fn a_push_lands_only_where_it_is_expected() {
    let world = World::new();
    let one = world.commit_on("one", &world.base, &[("b", "1")]);
    let two = world.commit_on("two", &world.base, &[("b", "2")]);
    let push = |sha: &Sha, expect: Expect| {
        world
            .mirror
            .push(&[PushRef { refname: main_ref(), change: Change::To(sha.clone()), expect }])
            .unwrap()
    };
    assert_eq!(push(&one, Expect::At(world.base.clone())), PushOutcome::Done);
    let stale = PushOutcome::Stale { refname: main_ref(), actual: Some(one.clone()) };
    assert_eq!(push(&two, Expect::At(world.base.clone())), stale);
    assert_eq!(push(&two, Expect::Absent), stale);
    assert_eq!(push(&one, Expect::At(world.base.clone())), PushOutcome::Done, "what has happened is done");
    assert_eq!(world.mirror.remote_refs([&main_ref()].into_iter()).unwrap(), [Some(one)]);
}

#[test]
fn several_references_are_pushed_together_or_not_at_all() {
    let world = World::new();
    let one = world.commit_on("one", &world.base, &[("b", "1")]);
    let new = branch("new/$(id)").full();
    let change = |expect_main: &Sha| {
        [
            PushRef { refname: new.clone(), change: Change::To(one.clone()), expect: Expect::Absent },
            PushRef {
                refname: main_ref(),
                change: Change::To(one.clone()),
                expect: Expect::At(expect_main.clone()),
            },
        ]
    };
    assert!(matches!(world.mirror.push(&change(&one)).unwrap(), PushOutcome::Stale { .. }));
    assert_eq!(world.mirror.remote_refs([&new].into_iter()).unwrap(), [None]);
    assert_eq!(world.mirror.push(&change(&world.base)).unwrap(), PushOutcome::Done);

    let delete = [PushRef { refname: new.clone(), change: Change::Delete, expect: Expect::At(one) }];
    assert_eq!(world.mirror.push(&delete).unwrap(), PushOutcome::Done);
    assert_eq!(world.mirror.push(&delete).unwrap(), PushOutcome::Done, "gone is gone");
}

#[test]
fn a_rule_of_the_remote_is_a_refusal_with_its_words() {
    let world = World::new();
    let forge = world.path("forge.git");
    world.plain(&forge, &["config", "receive.denyDeletes", "true"]);
    let one = world.commit_on("one", &world.base, &[("b", "1")]);
    let delete = [PushRef { refname: branch("one").full(), change: Change::Delete, expect: Expect::At(one) }];
    let outcome = world.mirror.push(&delete).unwrap();
    assert!(
        matches!(&outcome, PushOutcome::Refused { message } if message.contains("denying ref deletion")),
        "{outcome:?}"
    );
}

#[test]
fn branches_are_fetched_by_name_and_nothing_else_is() {
    let world = World::new();
    world.plain(&world.person, &["checkout", "-q", "-B", "wip", world.base.as_str()]);
    let push = |spec: &str| world.plain(&world.person, &["push", "-q", "origin", spec]);
    push("HEAD:refs/heads/one");
    push("HEAD:refs/heads/other");
    let known = |name: &str| world.mirror.remote_head(&branch(name)).unwrap();
    world.mirror.fetch_branches(&[&branch("one"), &branch("nowhere")]).unwrap();
    assert_eq!((known("one"), known("nowhere"), known("other")), (Some(world.base.clone()), None, None));
    // A name that gave way to others is forgotten, also if it stands in their way.
    push(":refs/heads/one");
    push("HEAD:refs/heads/one/more");
    world.mirror.fetch_branches(&[&branch("one/more")]).unwrap();
    assert_eq!((known("one"), known("one/more")), (None, Some(world.base.clone())));
    push(":refs/heads/one/more");
    world.mirror.fetch_branches(&[&branch("one/more"), &branch("one")]).unwrap();
    assert_eq!(known("one/more"), None);
}

#[test]
fn hooks_of_a_remote_on_this_machine_run_and_can_refuse() {
    let world = World::new();
    let forge = world.path("forge.git");
    let (hooks, mark) = (forge.join("hooks"), world.path("mark"));
    fs::create_dir_all(&hooks).unwrap();
    let hook = |name: &str, script: &str| {
        fs::write(hooks.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(hooks.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    // A hook that runs git finds the repository's own settings, not ours.
    hook("post-receive", &format!("env | grep ^GIT_CONFIG > {0}; cat >> {0}", mark.display()));
    let url = format!("file://{}", forge.display());
    let by_url = Mirror::open_or_create(&world.git, world.mirror.dir(), &url).unwrap();
    let mut at = world.base.clone();
    for (n, mirror) in [&world.mirror, &by_url].into_iter().enumerate() {
        let to = world.commit_on(&format!("branch-{n}"), &at, &[("b", &n.to_string())]);
        let change = Change::To(to.clone());
        let push = [PushRef { refname: main_ref(), change, expect: Expect::At(at.clone()) }];
        hook("pre-receive", "echo 'only on Tuesdays' >&2; exit 1");
        let outcome = mirror.push(&push).unwrap();
        assert!(
            matches!(&outcome, PushOutcome::Refused { message } if message.contains("only on Tuesdays")),
            "{outcome:?}"
        );
        hook("pre-receive", "exit 0");
        assert_eq!(mirror.push(&push).unwrap(), PushOutcome::Done);
        assert_eq!(fs::read_to_string(&mark).unwrap(), format!("{at} {to} refs/heads/main\n"));
        at = to;
    }
    // The embedded forge is ours: nothing that lies there is run.
    let to = world.commit_on("branch-9", &at, &[("b", "9")]);
    hook("pre-receive", "exit 1");
    let push = [PushRef { refname: main_ref(), change: Change::To(to), expect: Expect::At(at) }];
    assert_eq!(world.mirror.clone().of_our_own_remote().push(&push).unwrap(), PushOutcome::Done);
}

#[test]
fn a_lock_that_a_killed_git_left_stops_a_push_until_it_is_cleared() {
    let world = World::new();
    let one = world.commit_on("one", &world.base, &[("b", "1")]);
    let forge = world.path("forge.git");
    let lock = forge.join("refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let push =
        [PushRef { refname: main_ref(), change: Change::To(one), expect: Expect::At(world.base.clone()) }];
    assert!(matches!(world.mirror.push(&push).unwrap(), PushOutcome::Refused { .. }));
    assert_eq!(crate::git::clear_stale_locks(&forge).unwrap(), [lock]);
    assert_eq!(world.mirror.push(&push).unwrap(), PushOutcome::Done);

    fs::write(world.mirror.dir().join("packed-refs.lock"), "").unwrap();
    assert_eq!(world.mirror.clear_stale_locks().unwrap().len(), 1);
    assert!(world.mirror.clear_stale_locks().unwrap().is_empty());
}

#[test]
fn a_reference_of_the_mirror_moves_only_from_where_it_is_expected() {
    let world = World::new();
    let one = world.commit_on("one", &world.base, &[("b", "1")]);
    let name = reference("refs/pointsman/test/a");
    let update = |new: &Sha, expect: Expect| world.mirror.update_ref(&name, new, &expect).unwrap();
    assert_eq!(update(&world.base, Expect::Absent), RefUpdate::Done);
    assert_eq!(update(&one, Expect::Absent), RefUpdate::Stale { actual: Some(world.base.clone()) });
    assert_eq!(update(&one, Expect::At(world.base.clone())), RefUpdate::Done);
    assert_eq!(
        world.mirror.list_refs(&reference("refs/pointsman/test")).unwrap(),
        [(name.clone(), one.clone())]
    );
    assert_eq!(
        world.mirror.delete_ref(&name, &world.base).unwrap(),
        RefUpdate::Stale { actual: Some(one.clone()) }
    );
    assert_eq!(world.mirror.delete_ref(&name, &one).unwrap(), RefUpdate::Done);
    assert!(world.mirror.update_ref(&name, &Sha::new(&"1".repeat(40)).unwrap(), &Expect::Absent).is_err());
}

#[test]
fn questions_about_commits() {
    let world = World::new();
    let one = world.commit_on("one", &world.base, &[("b c", "1\n"), ("d", "2\n")]);
    let (mirror, base) = (&world.mirror, &world.base);
    let missing = Sha::new(&"1".repeat(40)).unwrap();
    assert!(mirror.commit_exists(&one).unwrap());
    assert!(!mirror.commit_exists(&missing).unwrap());
    assert!(!mirror.commit_exists(&mirror.tree_of(&one).unwrap()).unwrap(), "a tree is no commit");
    assert!(mirror.is_ancestor(base, &one).unwrap() && !mirror.is_ancestor(&one, base).unwrap());
    assert!(mirror.is_ancestor(&missing, base).is_err());
    assert_eq!(mirror.merge_base(base, &one).unwrap().as_ref(), Some(base));
    assert_eq!((mirror.ahead(base, &one).unwrap(), mirror.ahead(&one, base).unwrap()), (1, 0));
    assert_eq!(mirror.changed_paths(base, &one).unwrap(), ["b c", "d"]);
    assert!(mirror.diff_stat(base, &one).unwrap().contains("2 files changed"));
    assert!(mirror.diff(base, &one, 10_000).unwrap().contains("+++ b/d"));
    assert!(mirror.diff(base, &one, 100).unwrap().contains("bytes left out"));
    assert!(mirror.log_oneline(base, &one).unwrap().ends_with(" change on one\n"));
}

#[test]
fn a_file_of_a_commit_is_read_if_it_is_a_regular_file_of_its_size() {
    let world = World::new();
    fs::create_dir(world.person.join("dir")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", world.person.join("link")).unwrap();
    let one = world.commit_on("one", &world.base, &[("dir/b*", "text"), (":(top)x", "odd")]);
    let read = |path: &str| world.mirror.read_file_at(&one, path, 10).unwrap();
    assert_eq!(read("dir/b*").unwrap(), b"text");
    assert_eq!(read(":(top)x").unwrap(), b"odd");
    assert_eq!((read("dir"), read("link"), read("none"), read("dir/*")), (None, None, None, None));
    assert!(world.mirror.read_file_at(&one, "dir/b*", 3).is_err());
}

#[test]
fn a_patch_is_the_same_wherever_it_sits_and_another_if_anything_in_it_changes() {
    let world = World::new();
    let changed = lines(1..=20).replace("line 15\n", "changed\n");
    let topic = world.commit_on("topic", &world.base, &[("a.txt", &changed)]);
    let moved_base = world.commit_on("up", &world.base, &[("a.txt", &format!("top\n{}", lines(1..=20)))]);
    let moved = world.commit_on("moved", &moved_base, &[("a.txt", &format!("top\n{changed}"))]);
    let id = |base: &Sha, head: &Sha| world.mirror.patch_id(base, head).unwrap();
    assert_eq!(id(&world.base, &topic), id(&moved_base, &moved));

    let spaced =
        world.commit_on("spaced", &world.base, &[("a.txt", &changed.replace("changed", "changed "))]);
    assert_ne!(id(&world.base, &topic), id(&world.base, &spaced), "white space counts");
    let binary_1 = world.commit_on("binary1", &world.base, &[("bin", "\0one")]);
    let binary_2 = world.commit_on("binary2", &world.base, &[("bin", "\0two")]);
    assert_ne!(id(&world.base, &binary_1), id(&world.base, &binary_2), "binary content counts");
    world.plain(&world.person, &["checkout", "-q", "binary1"]);
    fs::set_permissions(world.person.join("bin"), fs::Permissions::from_mode(0o755)).unwrap();
    let executable = world.commit(&world.person, "mode");
    world.publish("mode");
    assert_ne!(id(&world.base, &binary_1), id(&world.base, &executable), "modes count");
}

#[test]
fn a_branch_of_a_checkout_is_imported_into_the_forge() {
    let world = World::new();
    let bare = world.path("other.git");
    let git: &Git = &world.git;
    init_bare(git, &bare, &branch("main")).unwrap();
    let import = |name: &str, existing| import_branch(git, &world.person, &branch(name), &bare, existing);
    world.plain(&world.person, &["checkout", "-q", "-B", "it's"]);
    let first = world.head(&world.person);
    assert_eq!(import("it's", Existing::FastForward).unwrap(), Some(first));
    assert_eq!(import("none", Existing::FastForward).unwrap(), None);

    world.plain(&world.person, &["commit", "-q", "--amend", "-m", "other"]);
    let other = world.head(&world.person);
    assert!(import("it's", Existing::FastForward).is_err());
    assert_eq!(import("it's", Existing::Replace).unwrap(), Some(other));
}
