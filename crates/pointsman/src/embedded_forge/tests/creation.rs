use std::os::unix::fs::PermissionsExt;

use pointsman_adapters::forge::Forge;

use super::{World, git_in};

#[test]
fn the_repository_has_the_primary_branch_and_is_nobody_elses() {
    let world = World::without_forge();
    let main = world.git(&["rev-parse", "main"]);
    let repository = world.create().unwrap();
    assert_eq!(repository, world.repository());
    assert_eq!(world.stands("main").as_str(), main);
    assert_eq!(git_in(&repository, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(git_in(&repository, &["rev-parse", "--is-bare-repository"]), "true");
    let mode = world.paths.project(&world.config.name).root().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(world.forge().remote(), repository.to_str().unwrap());
}

#[test]
fn a_second_time_changes_nothing() {
    let world = World::new();
    let number = super::issue(&world.forge(), "kept");
    let main = world.stands("main");
    world.commit("the checkout went on");
    world.create().unwrap();
    assert_eq!(world.stands("main"), main);
    assert!(world.forge().issue(number).unwrap().is_some());
}

#[test]
fn main_is_never_moved_backwards_or_sideways() {
    let world = World::new();
    let first = world.git(&["rev-parse", "main"]);
    let landed = world.commit("landed");
    world.push(&landed, "main");
    world.git(&["reset", "--quiet", "--hard", &first]);
    world.create().unwrap();
    assert_eq!(world.stands("main"), landed, "backwards");
    world.commit("another history");
    world.create().unwrap();
    assert_eq!(world.stands("main"), landed, "sideways");
}

#[test]
fn a_primary_branch_that_is_missing_is_imported_again() {
    let world = World::new();
    let main = world.stands("main");
    git_in(&world.repository(), &["update-ref", "-d", "refs/heads/main"]);
    world.create().unwrap();
    assert_eq!(world.stands("main"), main);
}

#[test]
fn nothing_of_the_checkouts_configuration_runs() {
    let world = World::without_forge();
    let witness = world.dir.path().join("ran");
    let program = world.dir.path().join("program");
    std::fs::write(&program, format!("#!/bin/sh\ntouch '{}'\nexec \"$@\"\n", witness.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    for key in
        ["uploadpack.packObjectsHook", "core.fsmonitor", "core.sshCommand", "core.alternateRefsCommand"]
    {
        world.git(&["config", key, program]);
    }
    for hook in ["post-checkout", "reference-transaction", "pre-push", "post-update"] {
        std::fs::create_dir_all(world.checkout().join(".git/hooks")).unwrap();
        std::fs::copy(program, world.checkout().join(".git/hooks").join(hook)).unwrap();
    }
    world.create().unwrap();
    world.create().unwrap();
    assert!(!witness.exists());
}

#[test]
fn a_checkout_that_cannot_be_used_says_what_to_do() {
    let world = World::without_forge();
    let mut other = world.config.clone();
    other.primary_branch = "trunk".to_owned();
    let message = super::create(&world.paths, &other, &world.checkout()).unwrap_err().to_string();
    assert!(message.contains("no branch `trunk`") && message.contains("primary_branch"), "{message}");
    for odd in ["--upload-pack=touch x", "a..b", ""] {
        other.primary_branch = odd.to_owned();
        assert!(super::create(&world.paths, &other, &world.checkout()).is_err(), "{odd}");
    }
    let file = world.dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let message = super::create(&world.paths, &world.config, &file).unwrap_err().to_string();
    assert!(message.contains("not a directory"), "{message}");
}
