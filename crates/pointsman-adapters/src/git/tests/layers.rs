use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::World;
use crate::git::checkout::{checkout_exact, remove_checkout};
use crate::git::layers::{Layers, WarmTree};
use crate::process::Run;

/// The layers as the kernel shows them, put together by hand: the tests of the daemon have the mount itself.
fn put_together(layers: &Layers, dir: &Path) {
    remove_checkout(dir).unwrap();
    let copy = |from: &Path| {
        let from = format!("{}/.", from.display());
        let words = ["-a", "--remove-destination", &from];
        let done = Run::new("cp").args(words).arg(dir).inherit(&["PATH"]).finish().unwrap();
        assert!(done.end.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    fs::create_dir_all(dir).unwrap();
    copy(&layers.lower);
    clear_the_way(&layers.upper, dir);
    copy(&layers.upper);
    layers.remove_gone(dir).unwrap();
}

/// What the upper layer has hides what is of another kind below.
fn clear_the_way(upper: &Path, dir: &Path) {
    for entry in fs::read_dir(upper).unwrap().flatten() {
        let below = dir.join(entry.file_name());
        let Ok(meta) = fs::symlink_metadata(&below) else { continue };
        match (entry.file_type().unwrap().is_dir(), meta.is_dir()) {
            (true, true) => clear_the_way(&entry.path(), &below),
            (false, true) => fs::remove_dir_all(&below).unwrap(),
            (_, false) => fs::remove_file(&below).unwrap(),
        }
    }
}

#[test]
fn a_warm_tree_becomes_any_commit_by_a_layer_with_the_difference() {
    let world = World::new();
    let many: Vec<(String, String)> =
        (0..30).map(|n| (format!("many/part-{}/file-{n}", n % 3), format!("{n}\n"))).collect();
    let mut files: Vec<(&str, &str)> =
        many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.extend([
        ("becomes-dir", "file"),
        ("becomes-file/inside", "x"),
        ("deep/er/gone", "x"),
        ("run.sh", "a"),
    ]);
    let main = world.commit_on("main", &world.base, &files);
    let warm = WarmTree::make(&world.mirror, &world.path("warm"), &main).unwrap();
    assert_eq!(WarmTree::find(&world.path("warm")).as_ref(), Some(&warm));

    let at = |path: &str| world.person.join(path);
    world.plain(&world.person, &["checkout", "-q", "-B", "task", main.as_str()]);
    fs::remove_file(at("becomes-dir")).unwrap();
    fs::create_dir(at("becomes-dir")).unwrap();
    fs::write(at("becomes-dir/inside"), "now a file in it").unwrap();
    fs::remove_dir_all(at("becomes-file")).unwrap();
    fs::write(at("becomes-file"), "now a file").unwrap();
    fs::remove_dir_all(at("deep")).unwrap();
    fs::write(at("many/part-0/file-0"), "changed\n").unwrap();
    fs::write(at("new file"), "new").unwrap();
    symlink("a.txt", at("link")).unwrap();
    fs::set_permissions(at("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let task = world.commit_on_current("task");

    let (place, dir, plain) = (world.path("layers"), world.path("together"), world.path("plain"));
    for sha in [&task, &main, &world.base] {
        let layers = warm.layers_for(&world.mirror, sha, &place).unwrap().unwrap();
        put_together(&layers, &dir);
        checkout_exact(&world.mirror, sha, &plain).unwrap();
        let diff = Run::new("diff").args(["-r", "--no-dereference", "--exclude=.git"]).arg(&dir).arg(&plain);
        let diff = diff.inherit(&["PATH"]).finish().unwrap();
        assert!(diff.end.success(), "{sha}: {}", String::from_utf8_lossy(&diff.stdout));
        assert_eq!(world.head(&dir), *sha);
        assert_eq!(world.plain(&dir, &["status", "--porcelain", "--ignored"]), "", "{sha}");
        let mode = |of: &Path| fs::metadata(of.join("run.sh")).map(|meta| meta.permissions().mode()).ok();
        assert_eq!(mode(&dir), mode(&plain));
    }
    assert_eq!(warm.layers_for(&world.mirror, &main, &place).unwrap().unwrap().changed, 0);
    assert_eq!(
        world.plain(&world.path("warm/tree"), &["status", "--porcelain", "--ignored"]),
        "",
        "untouched"
    );
}

#[test]
fn what_layers_cannot_show_is_left_to_a_checkout_of_its_own() {
    let world = World::new();
    let warm = WarmTree::make(&world.mirror, &world.path("warm"), &world.base).unwrap();
    let place = world.path("layers");
    let attributes = world.commit_on("one", &world.base, &[("src/.gitattributes", "* text eol=crlf\n")]);
    assert_eq!(warm.layers_for(&world.mirror, &attributes, &place).unwrap(), None);
    world.plain(&world.person, &["checkout", "-q", "-B", "two", world.base.as_str()]);
    let entry = format!("160000,{},library", world.base);
    world.plain(&world.person, &["update-index", "--add", "--cacheinfo", &entry]);
    world.plain(&world.person, &["commit", "-q", "-m", "with a library"]);
    world.publish("two");
    let submodule = world.head(&world.person);
    assert_eq!(warm.layers_for(&world.mirror, &submodule, &place).unwrap(), None);
}

#[test]
fn a_warm_tree_that_was_not_finished_or_is_from_before_a_reboot_is_none() {
    let world = World::new();
    let dir = world.path("warm");
    assert_eq!(WarmTree::find(&dir), None);
    WarmTree::make(&world.mirror, &dir, &world.base).unwrap();
    let marker = dir.join("at");
    fs::write(&marker, format!("{}\nanother-boot\n", world.base)).unwrap();
    assert_eq!(WarmTree::find(&dir), None);
    fs::remove_file(&marker).unwrap();
    assert_eq!(WarmTree::find(&dir), None);
}

#[test]
fn a_path_can_add_nothing_to_the_options_of_the_mount() {
    let layers = |lower: &str| Layers {
        lower: lower.into(),
        upper: "/u".into(),
        work: "/w".into(),
        gone: "/g".into(),
        changed: 0,
    };
    let options = layers("/state/a b").mount_options().unwrap();
    assert_eq!(String::from_utf8(options).unwrap(), "userxattr,lowerdir=/state/a b,upperdir=/u,workdir=/w");
    for odd in ["/a:b", "/a,upperdir=/etc", "/a\\b"] {
        assert_eq!(layers(odd).mount_options(), None, "{odd}");
    }
}
