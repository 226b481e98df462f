//! Our candidates beside what git makes in a checkout, on random histories: the same tree, or conflicts in the same
//! files. `POINTSMAN_DIFFERENTIAL=500` takes more histories, `POINTSMAN_DIFFERENTIAL=37..38` exactly these.
//!
//! These differences are meant, or not ours, and kept out of the comparison:
//!
//! * `git rebase` leaves out commits whose patch main had at some time, also if main has taken it back since. Ours
//!   brings what the branch holds, so git is asked for `--reapply-cherry-picks`.
//! * `git rebase` flattens merges in a branch, and resolutions are lost. Ours replays a merge as what it changed, or
//!   lands the branch as one commit: there the comparison is with `git merge`.
//! * Where a file of one side is a directory or a link on the other, git lists it under a second name, `<path>~<side>`.
//!   Nobody has such a file: only the real names are told and compared.
//! * Where a file is in the way of a renamed directory, git has a conflict but no file that is not merged. Ours takes
//!   the files from its message.
//! * In rare tangles of renamed directories git 2.47 ends with `BUG: merge-ort.c` in a checkout, after it has found the
//!   conflicts. Ours tells the conflicts; it must not have merged.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use pointsman_core::ids::Sha;

use super::{World, build, reference};
use crate::git::candidate::{Candidate, Style, check_conflicts};
use crate::git::changes::stray_paths;
use crate::git::inspect::nul_list;

mod generate;
pub(super) mod random;

use generate::{History, Odd};

/// How many histories are tried if nobody says otherwise; about 20 seconds on one core.
const HISTORIES: u64 = 50;

/// What a merge came to, in either world.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Tree(String),
    Conflict(Vec<String>),
    /// Git stopped at a bug of its own.
    GaveUp,
    /// A conflict that leaves every file merged, in git's words.
    Unlisted(String),
}

#[allow(clippy::disallowed_methods, reason = "how much is tested is said from outside")]
fn wanted() -> Range<u64> {
    let Ok(text) = std::env::var("POINTSMAN_DIFFERENTIAL") else { return 0..HISTORIES };
    match text.split_once("..") {
        Some((from, to)) => from.parse().unwrap()..to.parse().unwrap(),
        None => 0..text.parse().unwrap(),
    }
}

/// A repository with a working tree and a configuration that says nothing, with the mirror's objects.
struct Checkout<'a> {
    world: &'a World,
    dir: PathBuf,
}

impl<'a> Checkout<'a> {
    fn new(world: &'a World) -> Self {
        let dir = world.path("checkout");
        world.plain(world.root.path(), &["init", "-q", "checkout"]);
        let objects = world.mirror.objects();
        fs::write(dir.join(".git/objects/info/alternates"), format!("{}\n", objects.display())).unwrap();
        for setting in ["core.autocrlf=false", "gc.auto=0", "maintenance.auto=false"] {
            let (key, value) = setting.split_once('=').unwrap();
            world.plain(&dir, &["config", key, value]);
        }
        Self { world, dir }
    }

    /// The commit in the working tree, and nothing else.
    fn start_at(&self, commit: &Sha) {
        fs::remove_dir_all(self.dir.join(".git/rebase-merge")).ok();
        fs::remove_file(self.dir.join(".git/MERGE_HEAD")).ok();
        fs::remove_file(self.dir.join(".git/index")).ok();
        for entry in fs::read_dir(&self.dir).unwrap().map(Result::unwrap) {
            if entry.file_name() != ".git" {
                let path = entry.path();
                if entry.file_type().unwrap().is_dir() {
                    fs::remove_dir_all(path)
                } else {
                    fs::remove_file(path)
                }
                .unwrap();
            }
        }
        fs::write(self.dir.join(".git/HEAD"), format!("{commit}\n")).unwrap();
        self.world.plain(&self.dir, &["reset", "-q", "--hard"]);
    }

    /// What git made of it: the tree that `tree` answers, or the files that are not merged.
    fn outcome(&self, args: &[&str], tree: &[&str]) -> Outcome {
        let done = self.world.try_plain(&self.dir, args);
        if done.end.success() {
            return Outcome::Tree(self.world.plain(&self.dir, tree));
        }
        let unmerged = self.world.try_plain(&self.dir, &["ls-files", "-z", "--unmerged", "--format=%(path)"]);
        // `<path>~<side>` is a name of git's own making; nobody has such a file. No generated name holds a `~`.
        let real = |path: String| path.split_once('~').map_or(path.clone(), |(real, _)| real.to_owned());
        let mut files: Vec<String> = nul_list(&unmerged.stdout).into_iter().map(real).collect();
        files.sort();
        files.dedup();
        let stderr = String::from_utf8_lossy(&done.stderr);
        if stderr.contains("BUG: merge-ort.c") {
            return Outcome::GaveUp;
        }
        if files.is_empty() {
            let said = String::from_utf8_lossy(&done.stdout).into_owned();
            assert!(said.contains("CONFLICT ("), "git {args:?}: {said}{stderr}");
            return Outcome::Unlisted(said);
        }
        Outcome::Conflict(files)
    }

    fn merge(&self, how: &str, main: &Sha, head: &Sha) -> Outcome {
        self.start_at(main);
        self.outcome(&["merge", how, "--no-commit", head.as_str()], &["write-tree"])
    }

    fn rebase(&self, main: &Sha, head: &Sha) -> Outcome {
        self.start_at(head);
        let args =
            ["rebase", "-q", "--no-fork-point", "--reapply-cherry-picks", "--empty=drop", main.as_str()];
        self.outcome(&args, &["rev-parse", "HEAD^{tree}"])
    }
}

fn ours(world: &World, style: Style, main: &Sha, head: &Sha) -> Outcome {
    match build(&world.mirror, style, main, head, "message").unwrap() {
        Candidate::Built(built) => {
            assert_eq!(world.mirror.tree_of(&built.commit).unwrap(), built.tree);
            Outcome::Tree(built.tree.as_str().to_owned())
        }
        Candidate::Conflict { files } => Outcome::Conflict(files),
        Candidate::Nothing => Outcome::Tree(world.mirror.tree_of(main).unwrap().as_str().to_owned()),
    }
}

/// Random histories, in the mirror.
fn imported(world: &World, wanted: Range<u64>) -> Vec<History> {
    let histories: Vec<History> = wanted.map(History::random).collect();
    let stream: Vec<u8> = histories.iter().flat_map(History::fast_import).collect();
    let import = world.mirror.call("fast-import").config("fastimport.unpackLimit", "1");
    import.args(["--quiet"]).stdin(stream).ok().unwrap();
    histories
}

/// Main and the head of the branch.
fn ends(world: &World, history: &History) -> (Sha, Sha) {
    (end(world, history, "main"), end(world, history, "task"))
}

fn end(world: &World, history: &History, name: &str) -> Sha {
    world.mirror.read_ref(&reference(&history.refname(name))).unwrap().expect("it was imported")
}

#[test]
fn our_candidates_are_what_git_makes_in_a_checkout() {
    let world = World::new();
    let wanted = wanted();
    let histories = imported(&world, wanted.clone());
    let checkout = Checkout::new(&world);
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let mut odds: BTreeMap<Odd, u32> = BTreeMap::new();
    for history in &histories {
        let (main, head) = ends(&world, history);
        let number = history.number;
        let merged = checkout.merge("--no-ff", &main, &head);
        let same_on = |style: Style, onto: &Sha, theirs: &Outcome| {
            let ours = ours(&world, style, onto, &head);
            match theirs {
                Outcome::GaveUp => {
                    assert!(!matches!(ours, Outcome::Tree(_)), "history {number}, {style:?}: {ours:?}")
                }
                // Ours names the files all the same.
                Outcome::Unlisted(said) => assert!(
                    matches!(&ours, Outcome::Conflict(files) if files.iter().any(|file| said.contains(file))),
                    "history {number}, {style:?}: {ours:?}, {said}"
                ),
                theirs => assert_eq!(ours, *theirs, "history {number}, {style:?} on {onto}"),
            }
            ours
        };
        let same = |style: Style, theirs: &Outcome| same_on(style, &main, theirs);
        same(Style::Merge, &merged);
        same(Style::Squash, &checkout.merge("--squash", &main, &head));
        if history.is_linear() {
            same(Style::Rebase, &checkout.rebase(&main, &head));
        } else if let rebased @ Outcome::Conflict(_) = ours(&world, Style::Rebase, &main, &head) {
            same(Style::Merge, &rebased);
        }
        // In batches and speculation a branch stands on the candidate of another one.
        if number % 3 == 0 {
            let other = end(&world, history, "other");
            for style in [Style::Rebase, Style::Merge, Style::Squash] {
                let Candidate::Built(first) = build(&world.mirror, style, &main, &other, "message").unwrap()
                else {
                    continue;
                };
                let theirs = match style {
                    Style::Rebase if history.is_linear() => checkout.rebase(&first.commit, &head),
                    Style::Rebase => continue,
                    Style::Merge => checkout.merge("--no-ff", &first.commit, &head),
                    Style::Squash => checkout.merge("--squash", &first.commit, &head),
                };
                same_on(style, &first.commit, &theirs);
                *seen.entry("on another candidate").or_default() += 1;
            }
        }
        let told = check_conflicts(&world.mirror, &main, std::slice::from_ref(&head)).unwrap().remove(0);
        match &merged {
            Outcome::Tree(_) => assert_eq!(told, None, "history {number}"),
            Outcome::Conflict(files) => assert_eq!(told.as_ref(), Some(files), "history {number}"),
            Outcome::GaveUp | Outcome::Unlisted(_) => {
                assert!(told.is_some_and(|files| !files.is_empty()), "history {number}");
            }
        }
        if let Candidate::Built(built) = build(&world.mirror, Style::Squash, &main, &head, "m").unwrap() {
            let stray =
                stray_paths(&world.mirror, &main, &built.commit, std::slice::from_ref(&head)).unwrap();
            assert!(stray.is_empty(), "history {number}: {stray:?}");
        }
        let kind = match (&merged, history.is_linear()) {
            (Outcome::Tree(_), true) => "clean, linear",
            (Outcome::Tree(_), false) => "clean, merges",
            (Outcome::Conflict(_), true) => "conflict, linear",
            (Outcome::Conflict(_), false) => "conflict, merges",
            (Outcome::Unlisted(_), _) => "conflict without a file",
            (Outcome::GaveUp, _) => "git gave up",
        };
        *seen.entry(kind).or_default() += 1;
        *seen.entry(history.odd.map_or("usual", |_| "odd")).or_default() += 1;
        if let Some(odd) = history.odd {
            *odds.entry(odd).or_default() += 1;
        }
    }
    println!("{seen:?} {odds:?}");
    // Random histories that never conflict, or always, would test little.
    if wanted.clone().count() as u64 >= HISTORIES {
        let often = |kind| seen.get(kind).is_some_and(|n| *n >= 2);
        let kinds = ["clean, linear", "clean, merges", "conflict, linear", "conflict, merges"];
        assert!(kinds.into_iter().all(often), "{seen:?}");
    }
}

#[test]
fn an_older_git_builds_the_same_candidates() {
    let world = World::new();
    let older = world.older_mirror();
    for history in imported(&world, wanted()) {
        let (main, head) = ends(&world, &history);
        for style in [Style::Rebase, Style::Merge, Style::Squash] {
            let [new, old] =
                [&world.mirror, &older].map(|mirror| build(mirror, style, &main, &head, "m").unwrap());
            assert_eq!(old, new, "history {}, {style:?}", history.number);
        }
        let heads = [head];
        let [new, old] =
            [&world.mirror, &older].map(|mirror| check_conflicts(mirror, &main, &heads).unwrap());
        assert_eq!(old, new, "history {}", history.number);
    }
}
