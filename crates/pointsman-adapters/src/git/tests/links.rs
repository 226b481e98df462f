//! Links and borrowed objects in what an agent can write, which lead to a repository that is not its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use pointsman_core::ids::Sha;
use pointsman_testkit::not_run;

use super::{World, branch, reading, reference};
use crate::git::capture::capture;
use crate::git::gateway::Gateway;
use crate::git::mirror::Mirror;
use crate::git::{Git, RefName};
use crate::process::Run;

/// A repository of the operator with a commit that nobody else has.
fn secret(world: &World) -> (PathBuf, Sha) {
    let dir = world.path("secret");
    world.plain(world.root.path(), &["init", "-q", "secret"]);
    fs::write(dir.join("key"), "of the operator").unwrap();
    let commit = world.commit(&dir, "secret");
    (dir.join(".git"), commit)
}

/// The same mirror, whose git reads outside of any sandbox.
fn outside(world: &World) -> Mirror {
    let git = Git::open(&world.path("state")).unwrap();
    let remote = world.path("forge.git");
    Mirror::open_or_create(&git, &world.path("mirror.git"), remote.to_str().unwrap()).unwrap()
}

/// Makes a repository of an agent, its first argument, lead to the directory of the secret one.
type Lead = fn(&Path, &Path);

/// The ways in which a repository leads to another one.
const WAYS: [(&str, Lead); 3] = [
    ("objects are a link", |own, other| {
        fs::rename(own.join("objects"), own.join("objects-before")).unwrap();
        symlink(other.join("objects"), own.join("objects")).unwrap();
    }),
    ("objects are borrowed", |own, other| {
        let line = format!("{}\n", other.join("objects").display());
        fs::write(own.join("objects/info/alternates"), line).unwrap();
    }),
    ("packs are a link", |own, other| {
        for entry in fs::read_dir(other.join("objects")).unwrap().flatten() {
            let place = own.join("objects").join(entry.file_name());
            if entry.file_name().len() == 2 && !place.exists() {
                symlink(entry.path(), place).unwrap();
            }
        }
    }),
];

#[test]
fn a_gateway_that_leads_to_another_repository_serves_nothing_of_it() {
    if reading().is_none() {
        return not_run("bwrap", "nothing can be enclosed");
    }
    for (name, lead) in WAYS {
        let world = World::new();
        let gateway = world.gateway("task");
        let (other, commit) = secret(&world);
        lead(gateway.dir(), &other);
        fs::create_dir_all(gateway.dir().join("refs/heads")).unwrap();
        fs::write(gateway.dir().join("refs/heads/task"), format!("{commit}\n")).unwrap();
        let to = reference("refs/pointsman/gateway/task");
        let taken = gateway.fetch_into(&world.mirror, &to);
        assert!(!matches!(taken, Ok(Some(_))), "{name}: {taken:?}");
        assert!(!world.mirror.commit_exists(&commit).unwrap(), "{name}");
        // Without the sandbox git follows it.
        let taken = gateway.fetch_into(&outside(&world), &to).unwrap();
        assert_eq!(taken, Some(commit), "{name}");
    }
}

#[test]
fn a_tree_that_leads_to_another_repository_is_captured_without_it() {
    if reading().is_none() {
        return not_run("bwrap", "nothing can be enclosed");
    }
    let world = World::new();
    let tree = world.tree();
    let (other, commit) = secret(&world);
    fs::write(tree.join("new"), "new").unwrap();
    fs::rename(tree.join(".git"), world.path("git-before")).unwrap();
    fs::write(tree.join(".git"), format!("gitdir: {}\n", other.display())).unwrap();
    let rescue = |n| RefName::rescue("dev-shop-1", n).unwrap();
    let saved = capture(&world.captures, &tree, &rescue(1), "rescue").unwrap().unwrap();
    assert!(saved.incomplete.is_some());
    assert!(world.captures.read_file_at(&saved.commit, "new", 100).unwrap().is_some());
    assert!(!world.captures.commit_exists(&commit).unwrap());
    let captures = outside(&world).captures(&world.path("captures.git")).unwrap();
    capture(&captures, &tree, &rescue(2), "rescue").unwrap().unwrap();
    assert!(captures.commit_exists(&commit).unwrap(), "without the sandbox git follows it");
}

#[test]
fn git_sees_nothing_but_what_it_is_to_read() {
    let Some(reading) = reading() else { return not_run("bwrap", "nothing can be enclosed") };
    let world = World::new();
    let (tree, elsewhere) = (world.path("seen"), world.path("elsewhere"));
    for dir in [&tree, &elsewhere] {
        fs::create_dir(dir).unwrap();
        fs::write(dir.join("file"), "text").unwrap();
    }
    symlink(&elsewhere, tree.join("link")).unwrap();
    let cat = |file: &str, wrapper| {
        let run = Run::new("cat").arg(tree.join(file)).env("PATH", "/usr/bin:/bin").behind(wrapper);
        run.finish().unwrap().end.success()
    };
    let inside = reading.command(&[&tree], &[], &tree);
    assert!(cat("file", inside.clone()));
    assert!(!cat("link/file", inside));
    assert!(cat("link/file", Vec::new()), "the link leads there");
}

#[test]
fn where_the_history_ends_is_not_written_through_a_link() {
    let world = World::new();
    let gateway = world.gateway("task");
    fs::write(world.mirror.dir().join("shallow"), format!("{}\n", world.base)).unwrap();
    let victim = world.path("victim");
    fs::write(&victim, "of the operator").unwrap();
    symlink(&victim, gateway.dir().join("shallow")).unwrap();
    Gateway::create(&world.mirror, gateway.dir(), &branch("task")).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "of the operator");
    let lent = fs::read_to_string(gateway.dir().join("shallow")).unwrap();
    assert_eq!(lent, format!("{}\n", world.base));
}
