//! Names, states and leftovers that nobody wishes for.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pointsman_core::ids::Sha;

use super::{World, branch, build, lines, to_main};
use crate::git::candidate::{Candidate, Style, check_conflicts};
use crate::git::changes::stray_paths;
use crate::git::history::first_parents;
use crate::git::push::{Change, Expect, PushOutcome, PushRef};
use crate::git::{BranchName, Error, Locks, clear_dead_locks, clear_stale_locks, list_locks};
use crate::process::Run;
use crate::retry::Retry;

const STYLES: [Style; 3] = [Style::Rebase, Style::Merge, Style::Squash];

/// Cuts a loose object in half.
fn truncate(repository: &Path, object: &Sha) -> PathBuf {
    let (dir, file) = object.as_str().split_at(2);
    let path = repository.join("objects").join(dir).join(file);
    let content = fs::read(&path).expect("the object is loose");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&path, &content[..content.len() / 2]).unwrap();
    path
}

fn object(world: &World, revision: &str) -> Sha {
    Sha::new(&world.plain(world.mirror.dir(), &["rev-parse", revision])).unwrap()
}

#[test]
fn a_broken_object_is_an_error_of_its_own_branch_and_never_a_conflict() {
    for broken in ["", "^{tree}", ":a.txt"] {
        let world = World::new();
        let text = |n: u32| lines(1..=20).replace(&format!("line {n}\n"), "changed\n");
        let head = world.commit_on("task", &world.base, &[("a.txt", &text(3))]);
        let good = world.commit_on("good", &world.base, &[("b", "1")]);
        let main = world.commit_on("main", &world.base, &[("a.txt", &text(15))]);
        truncate(world.mirror.dir(), &object(&world, &format!("{head}{broken}")));

        for style in STYLES {
            let told = build(&world.mirror, style, &main, &head, "m");
            assert!(told.is_err(), "{style:?} with a broken {head}{broken}: {told:?}");
            let error = told.unwrap_err().to_string();
            assert!(error.contains(head.as_str()) || error.contains("corrupt"), "{error}");
            let built = build(&world.mirror, style, &main, &good, "m").unwrap();
            assert!(matches!(built, Candidate::Built(_)), "others go on: {built:?}");
        }
        assert!(check_conflicts(&world.mirror, &main, &[good.clone(), head.clone()]).is_err());
        assert_eq!(check_conflicts(&world.mirror, &main, &[good]).unwrap(), [None]);
        if broken != ":a.txt" {
            assert!(stray_paths(&world.mirror, &main, &main, &[]).unwrap().is_empty());
            assert!(stray_paths(&world.mirror, &main, &head, &[]).is_err());
        }
        assert!(clear_stale_locks(world.mirror.dir()).unwrap().is_empty(), "nothing is left behind");
    }
}

#[test]
fn a_broken_object_in_the_remote_stops_the_fetch_until_it_is_repaired() {
    let world = World::new();
    let forge = world.path("forge.git");
    world.plain(&world.person, &["checkout", "-q", "-B", "task"]);
    fs::write(world.person.join("b"), "text\n".repeat(100)).unwrap();
    let head = world.commit(&world.person, "work");
    world.plain(&world.person, &["push", "-q", "origin", "task"]);
    let blob = Sha::new(&world.plain(&forge, &["rev-parse", &format!("{head}:b")])).unwrap();
    let whole = {
        let (dir, file) = blob.as_str().split_at(2);
        fs::read(forge.join("objects").join(dir).join(file)).unwrap()
    };
    let file = truncate(&forge, &blob);
    let error = world.mirror.fetch_remote().unwrap_err();
    assert!(matches!(error, Error::Failed { operation: "fetch", .. }), "{error}");
    assert_eq!(world.mirror.remote_head(&branch("task")).unwrap(), None);
    assert_eq!(world.mirror.remote_head(&branch("main")).unwrap(), Some(world.base.clone()));

    fs::write(file, whole).unwrap();
    world.mirror.fetch_remote().unwrap();
    assert_eq!(world.mirror.remote_head(&branch("task")).unwrap(), Some(head));
}

#[test]
fn odd_names_in_the_remote_neither_break_a_fetch_nor_become_branches() {
    let world = World::new();
    let forge = world.path("forge.git");
    let one = world.commit_on("one", &world.base, &[("b", "1")]);
    // Git takes these for references; as arguments some of them would be something else.
    for odd in ["-x", "$(id)", "é", "HEAD", "--upload-pack=x"] {
        world.plain(&forge, &["update-ref", &format!("refs/heads/{odd}"), one.as_str()]);
        let takes = matches!(odd, "$(id)" | "é");
        assert_eq!(BranchName::new(odd).is_some(), takes, "{odd:?}");
    }
    let main = world.commit_on("main", &world.base, &[("c", "2")]);
    assert_eq!(world.mirror.remote_head(&branch("main")).unwrap(), Some(main.clone()));
    assert_eq!(world.mirror.remote_head(&branch("$(id)")).unwrap(), Some(one.clone()));
    // These it does not; somebody put them there.
    let moved = world.commit_on("two", &main, &[("d", "3")]);
    world.plain(&forge, &["update-ref", "refs/heads/main", moved.as_str()]);
    for odd in ["@{u}", "a\nb", "x~1"] {
        fs::write(forge.join("refs/heads").join(odd), format!("{one}\n")).unwrap();
        assert!(BranchName::new(odd).is_none(), "{odd:?}");
    }
    world.mirror.fetch_remote().unwrap();
    assert_eq!(world.mirror.remote_head(&branch("main")).unwrap(), Some(moved.clone()));
    // Git itself refuses every push to such a repository, and says why.
    let onward = world.mirror.push(&to_main(&main, &moved)).unwrap();
    assert!(
        matches!(&onward, PushOutcome::Refused { message } if message.contains("bad object refs/heads/")),
        "{onward:?}"
    );
    // A blank in a name stops its fetches too, until somebody takes it away.
    let blank = forge.join("refs/heads/with space");
    fs::write(&blank, format!("{one}\n")).unwrap();
    assert_eq!(world.mirror.fetch_remote().unwrap_err().retry(), Retry::Later);
    fs::remove_file(blank).unwrap();
    world.mirror.fetch_remote().unwrap();
}

#[test]
fn a_branch_that_becomes_a_directory_of_branches_is_followed() {
    let world = World::new();
    world.commit_on("a", &world.base, &[("b", "1")]);
    world.plain(&world.person, &["push", "-q", "origin", ":refs/heads/a"]);
    world.plain(&world.person, &["push", "-q", "origin", "HEAD:refs/heads/a/b"]);
    world.mirror.fetch_remote().unwrap();
    assert_eq!(world.mirror.remote_head(&branch("a")).unwrap(), None);
    assert_eq!(world.mirror.remote_head(&branch("a/b")).unwrap(), Some(world.head(&world.person)));
    world.plain(&world.person, &["push", "-q", "origin", ":refs/heads/a/b"]);
    world.plain(&world.person, &["push", "-q", "origin", "HEAD:refs/heads/a"]);
    world.mirror.fetch_remote().unwrap();
    assert_eq!(world.mirror.remote_head(&branch("a")).unwrap(), Some(world.head(&world.person)));
    assert_eq!(world.mirror.remote_head(&branch("a/b")).unwrap(), None);
}

#[test]
fn a_branch_that_is_deleted_while_it_waits_can_still_be_built_and_is_gone_twice() {
    let world = World::new();
    let head = world.commit_on("task", &world.base, &[("b", "1")]);
    let main = world.commit_on("main", &world.base, &[("c", "2")]);
    world.plain(&world.person, &["push", "-q", "origin", ":refs/heads/task"]);
    world.mirror.fetch_remote().unwrap();
    assert_eq!(world.mirror.remote_head(&branch("task")).unwrap(), None);
    assert!(matches!(build(&world.mirror, Style::Rebase, &main, &head, "m").unwrap(), Candidate::Built(_)));
    let delete =
        PushRef { refname: branch("task").full(), change: Change::Delete, expect: Expect::At(head.clone()) };
    assert_eq!(world.mirror.push(&[delete]).unwrap(), PushOutcome::Done);
}

#[test]
fn a_main_that_moved_between_fetch_and_push_is_left_alone() {
    let world = World::new();
    let head = world.commit_on("task", &world.base, &[("b", "1")]);
    let one = world.commit_on("main", &world.base, &[("c", "1")]);
    let Candidate::Built(built) = build(&world.mirror, Style::Rebase, &one, &head, "m").unwrap() else {
        panic!("nothing was built")
    };
    let forge = world.path("forge.git");
    let other = world.commit_on("other", &world.base, &[("d", "1")]);
    // Rewound, replaced, and moved on by somebody else.
    let onward = world.commit_on("onward", &one, &[("e", "1")]);
    for there in [&world.base, &other, &onward] {
        world.plain(&forge, &["update-ref", "refs/heads/main", there.as_str()]);
        let stale = PushOutcome::Stale { refname: branch("main").full(), actual: Some(there.clone()) };
        assert_eq!(world.mirror.push(&to_main(&built.commit, &one)).unwrap(), stale);
        assert_eq!(world.plain(&forge, &["rev-parse", "main"]), there.as_str());
        world.mirror.fetch_remote().unwrap();
        assert_eq!(world.mirror.remote_head(&branch("main")).unwrap().as_ref(), Some(there));
        first_parents(&world.mirror, &one, there).unwrap();
    }
    world.plain(&forge, &["update-ref", "-d", "refs/heads/main"]);
    let stale = PushOutcome::Stale { refname: branch("main").full(), actual: None };
    assert_eq!(world.mirror.push(&to_main(&built.commit, &one)).unwrap(), stale);
}

#[test]
fn a_lock_is_cleared_only_when_nobody_can_hold_it() {
    let world = World::new();
    let one = world.commit_on("one", &world.base, &[("b", "1")]);
    let forge = world.path("forge.git").canonicalize().unwrap();
    assert_eq!(clear_dead_locks(&forge).unwrap(), Locks::None);
    let locks = [forge.join("packed-refs.lock"), forge.join("refs/heads/main.lock")];
    for lock in &locks {
        fs::write(lock, "").unwrap();
    }
    // Somebody receives a push there.
    let pusher = Run::new("sleep").arg("60").cwd(&forge).inherit(&["PATH"]);
    let pusher = pusher.start_job(&world.path("log")).unwrap();
    let held = Locks::InUse { locks: locks.to_vec(), by: vec![pusher.pid()] };
    assert_eq!(clear_dead_locks(&forge).unwrap(), held);
    drop(pusher);
    assert_eq!(clear_dead_locks(&forge).unwrap(), Locks::Cleared(locks.to_vec()));
    assert_eq!(world.mirror.push(&to_main(&one, &world.base)).unwrap(), PushOutcome::Done);
}

#[test]
fn a_lock_in_a_repository_of_somebody_else_is_moved_aside_only_if_its_owner_is_dead() {
    let world = World::new();
    let one = world.commit_on("one", &world.base, &[("b", "1")]);
    assert_eq!(world.mirror.move_dead_remote_locks().unwrap(), Locks::None);
    let forge = world.path("forge.git").canonicalize().unwrap();
    let lock = forge.join("refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let told = world.mirror.push(&to_main(&one, &world.base)).unwrap();
    assert!(
        matches!(&told, PushOutcome::Refused { message } if message.contains("main.lock': File exists")),
        "{told:?}"
    );
    world.mirror.fetch_remote().unwrap();
    assert_eq!(list_locks(&forge).unwrap(), std::slice::from_ref(&lock));
    // A moment old: whoever made it may be at work.
    let held = |by| Locks::InUse { locks: vec![lock.clone()], by };
    assert_eq!(world.mirror.move_dead_remote_locks().unwrap(), held(vec![]));
    let made_at = fs::metadata(&lock).unwrap().modified().unwrap();
    let hour_ago = made_at - std::time::Duration::from_secs(3600);
    fs::File::open(&lock).unwrap().set_modified(hour_ago).unwrap();
    let pusher = Run::new("sleep").arg("60").cwd(&forge).inherit(&["PATH"]);
    let pusher = pusher.start_job(&world.path("log")).unwrap();
    assert_eq!(world.mirror.move_dead_remote_locks().unwrap(), held(vec![pusher.pid()]));
    drop(pusher);
    let moved = world.mirror.move_dead_remote_locks().unwrap();
    assert!(matches!(&moved, Locks::Cleared(paths) if paths.len() == 1 && paths[0].exists()), "{moved:?}");
    assert!(!lock.exists());
    assert_eq!(world.mirror.push(&to_main(&one, &world.base)).unwrap(), PushOutcome::Done);
}

#[test]
fn what_killed_processes_left_is_gone_after_the_next_start() {
    let world = World::new();
    let dirs = ["pointsman-capture-abc", "objects/tmp_objdir-incoming-xyz"];
    for dir in dirs {
        fs::create_dir_all(world.mirror.dir().join(dir).join("objects")).unwrap();
    }
    let cleared = world.mirror.clear_stale_locks().unwrap();
    assert_eq!(cleared, dirs.map(|dir| world.mirror.dir().join(dir)));
    assert!(world.mirror.commit_exists(&world.base).unwrap());
}
