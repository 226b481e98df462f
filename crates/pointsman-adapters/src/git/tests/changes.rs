use std::fs;
use std::os::unix::fs::PermissionsExt;

use pointsman_core::ids::Sha;
use pointsman_core::review::{self, Kind, Landed};

use super::{World, build, lines};
use crate::git::Error;
use crate::git::candidate::{Candidate, Style};
use crate::git::changes::{self, stray_paths, touched};

impl World {
    fn candidate(&self, style: Style, onto: &Sha, head: &Sha) -> Sha {
        match build(&self.mirror, style, onto, head, "message").unwrap() {
            Candidate::Built(built) => built.commit,
            other => panic!("{other:?}"),
        }
    }

    /// A commit with the tree of one commit on top of another: what a broken merge makes.
    fn graft(&self, tree: &Sha, onto: &Sha) -> Sha {
        let args = ["commit-tree", "-p", onto.as_str(), "-m", "graft", &format!("{tree}^{{tree}}")]
            .map(str::to_owned);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Sha::new(&self.plain(self.mirror.dir(), &args)).unwrap()
    }

    #[track_caller]
    fn stray(&self, base: &Sha, candidate: &Sha, heads: &[&Sha]) -> Vec<String> {
        let heads: Vec<Sha> = heads.iter().map(|&head| head.clone()).collect();
        stray_paths(&self.mirror, base, candidate, &heads).unwrap()
    }
}

#[test]
fn a_candidate_of_any_style_changes_only_what_its_branch_changed() {
    let world = World::new();
    let first = world.commit_on("task", &world.base, &[("b", "1"), ("odd \n\"", "x")]);
    fs::set_permissions(world.person.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("b", world.person.join("link")).unwrap();
    let head = world.commit_on("task", &first, &[("c", "2")]);
    let main = world.commit_on("main", &world.base, &[("e", "main"), (".gitignore", "more\n")]);
    for style in [Style::Rebase, Style::Merge, Style::Squash] {
        let candidate = world.candidate(style, &main, &head);
        assert_eq!(world.stray(&main, &candidate, &[&head]), [""; 0]);
        assert_eq!(world.stray(&main, &candidate, &[]), ["a.txt", "b", "c", "link", "odd \n\""]);
    }
    assert_eq!(world.stray(&main, &main, &[&head]), [""; 0], "nothing changes");
}

#[test]
fn a_candidate_that_takes_back_what_main_did_is_caught() {
    let world = World::new();
    let head = world.commit_on("task", &world.base, &[("b", "1")]);
    let main = world.commit_on("main", &world.base, &[("e", "main"), ("a.txt", "changed")]);
    // The branch's own tree on top of main: main's changes are gone, and the commit is a fast-forward all the same.
    let reverting = world.graft(&head, &main);
    assert!(world.mirror.is_ancestor(&main, &reverting).unwrap());
    assert_eq!(world.stray(&main, &reverting, &[&head]), ["a.txt", "e"]);
}

#[test]
fn a_group_of_squashed_branches_is_measured_by_all_of_them() {
    let world = World::new();
    let one = world.commit_on("one", &world.base, &[("b", "1")]);
    let two = world.commit_on("two", &world.base, &[("c", "2")]);
    let main = world.commit_on("main", &world.base, &[("e", "main")]);
    let first = world.candidate(Style::Squash, &main, &one);
    let group = world.candidate(Style::Squash, &first, &two);
    assert_eq!(world.stray(&main, &group, &[&one, &two]), [""; 0]);
    assert_eq!(world.stray(&main, &group, &[&two]), ["b"]);
    assert_eq!(world.stray(&first, &group, &[&two]), [""; 0]);

    // The second of the group was squashed from a tree that knew neither main's nor the first one's work.
    let broken = world.graft(&two, &first);
    assert_eq!(world.stray(&main, &broken, &[&one, &two]), ["e"]);
    assert_eq!(world.stray(&first, &broken, &[&two]), ["b", "e"]);
}

#[test]
fn modes_and_links_count() {
    let world = World::new();
    let head = world.commit_on("task", &world.base, &[("b", "1")]);
    world.plain(&world.person, &["checkout", "-q", "--detach", head.as_str()]);
    fs::set_permissions(world.person.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(world.person.join(".gitignore")).unwrap();
    std::os::unix::fs::symlink("a.txt", world.person.join(".gitignore")).unwrap();
    let other = world.commit(&world.person, "mode and link");
    world.publish("other");
    assert_eq!(world.stray(&world.base, &other, &[&head]), [".gitignore", "a.txt"]);
}

#[test]
fn an_edit_that_followed_a_rename_on_main_is_not_astray() {
    let world = World::new();
    let edited = lines(1..=20).replace("line 15\n", "changed\n");
    let head = world.commit_on("task", &world.base, &[("a.txt", &edited)]);
    world.plain(&world.person, &["checkout", "-q", "-B", "main", world.base.as_str()]);
    world.plain(&world.person, &["mv", "a.txt", "moved.txt"]);
    let main = world.commit_on_current("main");
    for style in [Style::Rebase, Style::Merge, Style::Squash] {
        let candidate = world.candidate(style, &main, &head);
        assert_eq!(world.stray(&main, &candidate, &[&head]), [""; 0]);
    }
    let unrelated = world.commit_on("unrelated", &world.base, &[("b", "b")]);
    let candidate = world.candidate(Style::Squash, &main, &head);
    assert_eq!(world.stray(&main, &candidate, &[&unrelated]), ["moved.txt"], "nobody edited it");
}

#[test]
fn a_branch_with_several_merge_bases_is_measured_from_each() {
    let world = World::new();
    let one = world.commit_on("task", &world.base, &[("b", "1")]);
    let two = world.commit_on("main", &world.base, &[("c", "2")]);
    for (name, other) in [("task", &two), ("main", &one)] {
        world.plain(&world.person, &["checkout", "-q", name]);
        world.plain(&world.person, &["merge", "-q", "--no-edit", other.as_str()]);
    }
    world.publish("main");
    let main = world.head(&world.person);
    world.plain(&world.person, &["checkout", "-q", "task"]);
    fs::write(world.person.join("d"), "3").unwrap();
    let head = world.commit_on_current("task");
    let candidate = world.candidate(Style::Squash, &main, &head);
    assert_eq!(world.stray(&main, &candidate, &[&head]), [""; 0]);
    assert_eq!(touched(&world.mirror, &main, &candidate).unwrap().into_iter().collect::<Vec<_>>(), ["d"]);
}

#[test]
fn what_is_missing_is_an_error_and_never_an_answer() {
    let world = World::new();
    let head = world.commit_on("task", &world.base, &[("b", "1")]);
    let missing = Sha::new(&"1".repeat(40)).unwrap();
    let tree = world.mirror.tree_of(&head).unwrap();
    for bad in [&missing, &tree] {
        for (base, candidate, other) in
            [(bad, &head, &head), (&world.base, bad, &head), (&world.base, &head, bad)]
        {
            let told = stray_paths(&world.mirror, base, candidate, std::slice::from_ref(other));
            assert!(matches!(&told, Err(Error::NoCommit { sha, .. }) if sha == bad), "{told:?}");
        }
    }
    world.plain(&world.person, &["checkout", "-q", "--orphan", "alien"]);
    let alien = world.commit_on_current("alien");
    let told = stray_paths(&world.mirror, &world.base, &head, &[alien]);
    assert!(matches!(told, Err(Error::Unrelated { .. })), "{told:?}");
}

#[test]
fn a_conflict_is_found_in_what_was_landed_before() {
    let world = World::new();
    let odd = "odd \n\t\"é$(id)";
    let head = world.commit_on("task", &world.base, &[(odd, "task"), ("fine", "x")]);
    let first = world.commit_on("main", &world.base, &[("b", "1")]);
    let second = world.commit_on("main", &first, &[(odd, "main"), ("c", "1")]);
    let Candidate::Conflict { files } = build(&world.mirror, Style::Squash, &second, &head, "m").unwrap()
    else {
        panic!("no conflict")
    };
    let clash = |base: &Sha, tip: &Sha| {
        let touched = touched(&world.mirror, base, tip).unwrap();
        files.iter().any(|file| touched.contains(file))
    };
    assert!(!clash(&world.base, &first) && clash(&first, &second));
}

#[test]
fn a_change_is_told_line_by_line() {
    let world = World::new();
    let main = world.commit_on("main", &world.base, &[("a.txt", "changed\n"), ("odd \"é", "x\n")]);
    fs::set_permissions(world.person.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(world.person.join(".gitignore")).unwrap();
    std::os::unix::fs::symlink("a.txt", world.person.join("link")).unwrap();
    fs::write(world.person.join("binary"), [0, 1, 2]).unwrap();
    world.commit_on_current("task");
    fs::remove_file(world.person.join("odd \"é")).unwrap();
    std::os::unix::fs::symlink("a.txt", world.person.join("odd \"é")).unwrap();
    let head = world.commit_on_current("task");
    let (raw, patch) = changes::lines(&world.mirror, &main, &head).unwrap();
    let change = review::parse(&raw, &patch).unwrap();
    let told: Vec<(&str, Kind, usize)> =
        change.files.iter().map(|f| (f.path.as_str(), f.kind, f.hunks.len())).collect();
    let expected = [
        (".gitignore", Kind::Deleted, 1),
        ("a.txt", Kind::Changed, 0),
        ("binary", Kind::Added, 0),
        ("link", Kind::Added, 1),
        ("odd \"é", Kind::Changed, 2),
    ];
    assert_eq!(told, expected);

    let paths = ["a.txt".to_owned()];
    let recent = |commits| {
        let text = changes::recent(&world.mirror, &main, &paths, Landed::FORMAT, commits, 1 << 20).unwrap();
        Landed::parse(text.as_bytes())
    };
    assert_eq!((recent(1).len(), recent(9).len()), (1, 2));
    assert_eq!((&recent(1)[0].sha, recent(1)[0].subject.as_str()), (&main, "change on main"));
    assert_eq!(recent(1)[0].hunks[0].1.added, ["changed"]);
}
