//! What attributes mean for a candidate: the project's globs, main's `.gitattributes`, and nothing of the branch's.

use std::fs;

use pointsman_core::ids::Sha;

use super::{World, build_with};
use crate::git::UnionGlobs;
use crate::git::candidate::{Candidate, Style, check_conflicts_with};

const STYLES: [Style; 3] = [Style::Rebase, Style::Merge, Style::Squash];

struct Clash {
    world: World,
    main: Sha,
    head: Sha,
}

/// Main and a branch that both added a line to the end of each of the files. Main has the files of `before` as well,
/// the branch also those of `on_branch`.
fn clash(files: &[&str], before: &[(&str, &str)], on_branch: &[(&str, &str)]) -> Clash {
    let world = World::new();
    let commit = |name: &str, start: &Sha, text: &str, more: &[(&str, &str)]| {
        fs::create_dir_all(world.person.join("docs")).unwrap();
        let mut all: Vec<(&str, &str)> = files.iter().map(|file| (*file, text)).collect();
        all.extend(more);
        world.commit_on(name, start, &all)
    };
    let base = commit("base", &world.base, "first\n", before);
    let head = commit("task", &base, "first\ntask\n", on_branch);
    let main = commit("main", &base, "first\nmain\n", &[]);
    Clash { main, head, world }
}

impl Clash {
    /// The conflicts with these globs, in every style and for a whole queue; nothing if there are none. An older git
    /// comes to the same.
    fn conflicts(&self, globs: &[&str]) -> Vec<String> {
        let union = UnionGlobs::new(globs).unwrap();
        let heads = [self.head.clone()];
        let told = check_conflicts_with(&self.world.mirror, &union, &self.main, &heads).unwrap();
        let older = self.world.older_mirror();
        assert_eq!(check_conflicts_with(&older, &union, &self.main, &heads).unwrap(), told);
        let files = told[0].clone().unwrap_or_default();
        for style in STYLES {
            let candidate =
                build_with(&self.world.mirror, &union, style, &self.main, &self.head, "m").unwrap();
            let by_older = build_with(&older, &union, style, &self.main, &self.head, "m").unwrap();
            assert_eq!(by_older, candidate, "{style:?}");
            match candidate {
                Candidate::Conflict { files: told } => assert_eq!(told, files, "{style:?}"),
                Candidate::Built(built) => {
                    assert!(files.is_empty(), "{style:?}: {files:?}");
                    let changed = self.world.mirror.changed_paths(&self.main, &built.commit).unwrap();
                    for file in changed.iter().filter(|file| !file.starts_with(".git")) {
                        let text = self.world.mirror.read_file_at(&built.commit, file, 100).unwrap().unwrap();
                        assert_eq!(String::from_utf8_lossy(&text), "first\nmain\ntask\n", "{file}");
                    }
                }
                Candidate::Nothing => panic!("{style:?}: nothing"),
            }
        }
        files
    }
}

#[test]
fn both_sides_are_taken_where_the_project_says_so_and_nowhere_else() {
    let clash = clash(&["CHANGELOG.md", "docs/x.log", "docs/y.md"], &[], &[]);
    assert_eq!(clash.conflicts(&[]), ["CHANGELOG.md", "docs/x.log", "docs/y.md"]);
    assert_eq!(clash.conflicts(&["CHANGELOG.md", "docs/*.log"]), ["docs/y.md"]);
    assert_eq!(clash.conflicts(&["CHANGELOG.md", "docs/*"]), [""; 0]);
    assert_eq!(clash.conflicts(&["*.md", "/x.log"]), ["docs/x.log"]);
}

#[test]
fn an_odd_glob_means_that_file_only() {
    let odd = "odd \"é' * x";
    let clash = clash(&["#hash", odd, "plain"], &[], &[]);
    assert_eq!(clash.conflicts(&["#hash", odd]), ["plain"]);
    assert_eq!(
        clash.conflicts(&["\" merge=union\" x", "nothing merge=union plain"]),
        ["#hash", odd, "plain"]
    );
}

#[test]
fn the_attributes_of_main_count_and_are_stronger_than_the_globs() {
    let attributes = "a merge=union\nb merge=binary\nc -merge\nd merge=ours\n";
    let clash = clash(&["a", "b", "c", "d"], &[(".gitattributes", attributes)], &[]);
    assert_eq!(clash.conflicts(&[]), ["b", "c", "d"], "`ours` is no driver, so no side is chosen");
    assert_eq!(clash.conflicts(&["b", "c", "d"]), ["b", "c", "d"]);
}

#[test]
fn a_branch_does_not_say_how_it_is_merged() {
    let clash = clash(&["a"], &[], &[(".gitattributes", "* merge=union\n")]);
    assert_eq!(clash.conflicts(&[]), ["a"]);
    // Not in its second commit either, when the first one has brought the file.
    let first = clash.world.commit_on("late", &clash.world.base, &[(".gitattributes", "* merge=union\n")]);
    let head = clash.world.commit_on("late", &first, &[("a", "other\n")]);
    for style in STYLES {
        let built =
            build_with(&clash.world.mirror, &UnionGlobs::none(), style, &clash.main, &head, "m").unwrap();
        assert!(matches!(&built, Candidate::Conflict { files } if files == &["a"]), "{style:?}: {built:?}");
    }
}

#[test]
fn a_driver_is_never_run() {
    let clash = clash(&["a"], &[(".gitattributes", "a merge=trap diff=trap filter=trap\n")], &[]);
    let trap = clash.world.trap();
    trap.arm(&clash.world, &clash.world.person);
    trap.arm(&clash.world, &clash.world.path("forge.git"));
    assert_eq!(clash.conflicts(&[]), ["a"]);
    assert_eq!(trap.sprung(), None);
}

#[test]
fn union_is_about_lines_only() {
    let world = World::new();
    let base = world.commit_on("base", &world.base, &[("bin", "\0first"), ("gone", "first\n")]);
    let head = world.commit_on("task", &base, &[("bin", "\0task"), ("gone", "task\n")]);
    world.plain(&world.person, &["checkout", "-q", "-B", "main", base.as_str()]);
    fs::remove_file(world.person.join("gone")).unwrap();
    fs::write(world.person.join("bin"), "\0main").unwrap();
    let main = world.commit_on_current("main");
    let union = UnionGlobs::new(&["*"]).unwrap();
    let told = check_conflicts_with(&world.mirror, &union, &main, &[head]).unwrap();
    assert_eq!(told, [Some(vec!["bin".to_owned(), "gone".to_owned()])]);
}
