//! What a checkpoint waits for, told by the system calls of our own process and of every git it starts.

use std::fs;
use std::path::Path;

use pointsman_core::ids::Sha;
use pointsman_testkit::not_run;

use super::World;
use crate::git::Git;
use crate::git::checkpoint::{CheckpointName, Keeper, newest};
use crate::git::mirror::Mirror;
use crate::process::Run;

const TASK: u64 = 7;
/// Directories and number for [`traced_take`], which does nothing without them.
const ROOT: &str = "POINTSMAN_TEST_TRACED_ROOT";
const NUMBER: &str = "POINTSMAN_TEST_TRACED_NUMBER";

/// Runs in a process of its own below strace; as a test of its own it has nothing to do.
#[test]
#[allow(clippy::disallowed_methods, reason = "this is where the traced process begins")]
fn traced_take() {
    let (Ok(root), Ok(n)) = (std::env::var(ROOT), std::env::var(NUMBER)) else { return };
    let root = Path::new(&root);
    let git = Git::open(&root.join("state")).unwrap();
    let remote = root.join("forge.git");
    let mirror = Mirror::open_or_create(&git, &root.join("mirror.git"), remote.to_str().unwrap()).unwrap();
    let last: Option<Sha> = newest(&mirror, TASK).unwrap().map(|c| c.tree);
    let name = CheckpointName { task: TASK, n: n.parse().unwrap() };
    fs::metadata(root.join("begin")).ok();
    Keeper::new(&mirror, &root.join("indexes"))
        .take(&root.join("tree"), &name, "checkpoint", last.as_ref())
        .unwrap();
}

/// The lines of strace about a run of `program`, or nothing if nothing can be traced here.
fn trace(world: &World, program: &Path, args: &[&str], n: u32) -> Option<Vec<String>> {
    let log = world.path("trace");
    let traced = Run::new("strace")
        .args(["-f", "-y", "-qq", "-e", "trace=fsync,fdatasync,execve,statx", "-e", "signal=none", "-o"])
        .arg(&log)
        .arg("--")
        .arg(program)
        .args(args.iter().copied())
        .inherit(&["PATH"])
        .env(ROOT, world.root.path())
        .env(NUMBER, n.to_string())
        .cwd(world.mirror.dir())
        .finish();
    match traced {
        Ok(done) if done.end.success() => {
            Some(fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect())
        }
        Ok(done) if log.is_file() && fs::metadata(&log).unwrap().len() > 0 => {
            panic!("the traced program failed: {}", String::from_utf8_lossy(&done.stdout))
        }
        untraced => {
            not_run("strace", &format!("the calls of fsync cannot be counted: {untraced:?}"));
            None
        }
    }
}

/// What a take did after it began.
fn take(world: &World, n: u32) -> Option<Vec<String>> {
    let test = concat!(module_path!(), "::traced_take").split_once("::").unwrap().1;
    let program = std::env::current_exe().unwrap();
    let lines = trace(world, &program, &["--exact", test, "--nocapture"], n)?;
    let begin = lines.iter().position(|line| line.contains("/begin\"")).expect("the take began");
    let told = |line: &&String| line.contains("fsync(") || line.ends_with(" = 0") && line.contains("execve(");
    Some(lines[begin..].iter().filter(told).cloned().collect())
}

/// The line in which the first file with this end of its name was synced.
#[track_caller]
fn synced(lines: &[String], name: &str) -> usize {
    let found = lines.iter().position(|line| line.contains("fsync(") && line.contains(&format!("{name}>")));
    found.unwrap_or_else(|| panic!("{name} was not synced: {lines:#?}"))
}

fn count(lines: &[String], what: &str) -> usize {
    lines.iter().filter(|line| line.contains(what)).count()
}

#[test]
fn every_object_is_on_the_disk_before_the_reference_is() {
    let world = World::new();
    let tree = world.tree();
    for n in 0..10 {
        fs::write(tree.join(format!("committed-{n}")), n.to_string()).unwrap();
    }
    world.commit(&tree, "unpushed");
    let Some(first) = take(&world, 1) else { return };
    // What git itself brings over: ten files, a tree, a commit.
    let fetched = first.iter().filter(|l| l.contains("fsync(") && l.contains("mirror.git/objects/")).count();
    assert!(fetched >= 12, "{first:#?}");

    for n in 0..10 {
        fs::write(tree.join(format!("new-{n}")), format!("new {n}")).unwrap();
    }
    // Long ago: files of the present second are looked at twice, because their times say too little.
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    for file in fs::read_dir(&tree).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
    {
        fs::File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
    }
    let second = take(&world, 2).unwrap();
    let listed = world.plain(
        world.mirror.dir(),
        &[
            "rev-list",
            "--objects",
            "--no-object-names",
            "refs/pointsman/checkpoints/7/2",
            "^refs/pointsman/checkpoints/7/1",
        ],
    );
    let objects: Vec<&str> = listed.lines().collect();
    assert_eq!(objects.len(), 12);
    let reference = synced(&second, "refs/pointsman/checkpoints/7/2.lock");
    for object in objects {
        let (dir, file) = object.split_at(2);
        assert!(synced(&second, &format!("objects/{dir}/{file}")) < reference, "{object}");
        assert!(synced(&second, &format!("mirror.git/objects/{dir}")) < reference, "{object}");
    }
    assert!(synced(&second, "mirror.git/refs/pointsman/checkpoints/7") > reference);

    // The first look afterwards may find times too close to call, and remember better ones.
    take(&world, 3).unwrap();
    let unchanged = take(&world, 4).unwrap();
    assert_eq!(count(&unchanged, "fsync("), 0, "nothing changed: {unchanged:#?}");
    assert_eq!(count(&unchanged, "execve("), 1, "git looks once: {unchanged:#?}");
}

#[test]
fn a_git_that_does_not_sync_is_found_out() {
    let world = World::new();
    for (setting, expected) in [("core.fsync=none", 0), ("core.fsync=all", 1)] {
        let name = format!("refs/heads/{setting}").replace('=', "-");
        let args = ["-c", setting, "update-ref", &name, world.base.as_str()];
        let Some(lines) = trace(&world, Path::new("git"), &args, 0) else { return };
        assert_eq!(count(&lines, "fsync("), expected, "{setting}: {lines:#?}");
    }
}
