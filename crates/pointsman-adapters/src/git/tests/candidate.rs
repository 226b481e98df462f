use std::fs;

use pointsman_core::ids::Sha;
use pointsman_core::words::commit::Heading;

use super::{World, branch, build, lines};
use crate::git::candidate::{self, Built, Candidate, Order, Style, check_conflicts};
use crate::git::history::{MainChange, first_parents};
use crate::git::mirror::Mirror;
use crate::git::{Error, UnionGlobs};

fn built(candidate: Candidate) -> Built {
    match candidate {
        Candidate::Built(built) => built,
        other => panic!("{other:?}"),
    }
}

fn rebase(mirror: &Mirror, onto: &Sha, head: &Sha) -> Result<Candidate, Error> {
    build(mirror, Style::Rebase, onto, head, "task")
}

impl World {
    fn show(&self, sha: &Sha, format: &str) -> String {
        self.plain(self.mirror.dir(), &["show", "-s", &format!("--format={format}"), sha.as_str()])
    }

    fn file(&self, sha: &Sha, path: &str) -> Option<String> {
        let bytes = self.mirror.read_file_at(sha, path, 1 << 20).unwrap()?;
        Some(String::from_utf8(bytes).unwrap())
    }
}

#[test]
fn a_branch_that_sits_on_main_is_its_own_candidate() {
    let world = World::new();
    let head = world.commit_on("task", &world.base, &[("b", "b")]);
    let candidate = built(rebase(&world.mirror, &world.base, &head).unwrap());
    assert_eq!((&candidate.commit, candidate.same_as_head), (&head, true));
}

#[test]
fn commits_are_replayed_on_main_with_their_authors_and_the_same_id_every_time() {
    let world = World::new();
    world.commit_on("task", &world.base, &[("b", "1")]);
    let first = world.head(&world.person);
    let head = world.commit_on("task", &first, &[("b", "2"), ("c", "c")]);
    let main = world.commit_on("main", &world.base, &[("a.txt", "changed on main")]);

    let candidate = built(rebase(&world.mirror, &main, &head).unwrap());
    assert!(!candidate.same_as_head);
    assert_eq!(built(rebase(&world.mirror, &main, &head).unwrap()), candidate);
    assert_eq!(world.mirror.ahead(&main, &candidate.commit).unwrap(), 2);
    assert!(world.mirror.is_ancestor(&main, &candidate.commit).unwrap());
    assert_eq!(world.file(&candidate.commit, "a.txt").unwrap(), "changed on main");
    assert_eq!(world.file(&candidate.commit, "b").unwrap(), "2");
    assert_eq!(world.mirror.tree_of(&candidate.commit).unwrap(), candidate.tree);
    let told = world.show(&candidate.commit, "%an <%ae>|%cn|%s|%ad");
    assert_eq!(
        told,
        format!("Ann Author <ann@example.org>|Pointsman|change on task|{}", world.show(&head, "%ad"))
    );
    assert_eq!(
        world.mirror.patch_id(&main, &candidate.commit).unwrap(),
        world.mirror.patch_id(&world.base, &head).unwrap()
    );
}

#[test]
fn a_conflict_lists_the_files_even_if_their_names_are_odd() {
    let world = World::new();
    let odd = "odd \n\t\"é$(id)";
    let head = world.commit_on("task", &world.base, &[("a.txt", "task"), (odd, "task"), ("-x", "fine")]);
    let main = world.commit_on("main", &world.base, &[("a.txt", "main"), (odd, "main")]);
    let expected = Candidate::Conflict { files: vec!["a.txt".to_owned(), odd.to_owned()] };
    for style in [Style::Rebase, Style::Merge, Style::Squash] {
        assert_eq!(build(&world.mirror, style, &main, &head, "m").unwrap(), expected);
    }
}

#[test]
fn a_missing_commit_or_a_foreign_history_is_an_error_and_no_conflict() {
    let world = World::new();
    let head = world.commit_on("task", &world.base, &[("b", "b")]);
    let missing = Sha::new(&"1".repeat(40)).unwrap();
    for style in [Style::Rebase, Style::Merge, Style::Squash] {
        assert!(matches!(build(&world.mirror, style, &missing, &head, "m"), Err(Error::NoCommit { .. })));
        assert!(matches!(
            build(&world.mirror, style, &world.base, &missing, "m"),
            Err(Error::NoCommit { .. })
        ));
        let tree = world.mirror.tree_of(&head).unwrap();
        assert!(matches!(build(&world.mirror, style, &world.base, &tree, "m"), Err(Error::NoCommit { .. })));
    }
    world.plain(&world.person, &["checkout", "-q", "--orphan", "alien"]);
    let alien = world.commit(&world.person, "alien");
    world.publish("alien");
    assert!(matches!(rebase(&world.mirror, &world.base, &alien), Err(Error::Unrelated { .. })));
}

#[test]
fn what_main_has_already_is_nothing() {
    let world = World::new();
    let head = world.commit_on("task", &world.base, &[("b", "b")]);
    let main = world.commit_on("main", &world.base, &[("b", "b")]);
    assert_eq!(rebase(&world.mirror, &main, &world.base).unwrap(), Candidate::Nothing, "an ancestor");
    for style in [Style::Rebase, Style::Squash] {
        assert_eq!(
            build(&world.mirror, style, &main, &head, "m").unwrap(),
            Candidate::Nothing,
            "the same change"
        );
    }
    assert_eq!(build(&world.mirror, Style::Merge, &main, &world.base, "m").unwrap(), Candidate::Nothing);
    // A merge brings the history, also if it changes no file.
    let merged = built(build(&world.mirror, Style::Merge, &main, &head, "m").unwrap());
    assert_eq!(world.show(&merged.commit, "%P"), format!("{main} {head}"));
    assert_eq!(merged.tree, world.mirror.tree_of(&main).unwrap());
    // One of two commits is on main already: the other one lands.
    let more = world.commit_on("task", &head, &[("c", "c")]);
    let candidate = built(rebase(&world.mirror, &main, &more).unwrap());
    assert_eq!(world.mirror.ahead(&main, &candidate.commit).unwrap(), 1);
}

#[test]
fn a_branch_that_merged_main_is_replayed_without_the_merge() {
    let world = World::new();
    world.commit_on("task", &world.base, &[("b", "1")]);
    let main = world.commit_on("main", &world.base, &[("c", "main")]);
    world.plain(&world.person, &["checkout", "-q", "task"]);
    world.plain(&world.person, &["merge", "-q", "--no-edit", main.as_str()]);
    fs::write(world.person.join("d"), "after").unwrap();
    let head = world.commit(&world.person, "after the merge");
    world.publish("task");
    let later = world.commit_on("main", &main, &[("e", "later")]);

    let candidate = built(rebase(&world.mirror, &later, &head).unwrap());
    assert_eq!(world.mirror.ahead(&later, &candidate.commit).unwrap(), 2);
    assert_eq!(world.mirror.changed_paths(&later, &candidate.commit).unwrap(), ["b", "d"]);
}

#[test]
fn a_merge_with_a_resolution_that_cannot_be_replayed_lands_as_one_commit() {
    let world = World::new();
    let text = |n: u32, s: &str| lines(1..=20).replace(&format!("line {n}\n"), &format!("{s}\n"));
    world.commit_on("task", &world.base, &[("a.txt", &text(5, "task"))]);
    let main = world.commit_on("main", &world.base, &[("a.txt", &text(5, "main"))]);
    world.plain(&world.person, &["checkout", "-q", "task"]);
    assert!(!world.try_plain(&world.person, &["merge", "-q", main.as_str()]).end.success());
    fs::write(world.person.join("a.txt"), text(5, "both")).unwrap();
    let head = world.commit(&world.person, "resolved");
    world.publish("task");
    let later = world.commit_on("main", &main, &[("e", "later")]);

    let candidate = built(rebase(&world.mirror, &later, &head).unwrap());
    assert_eq!(world.mirror.ahead(&later, &candidate.commit).unwrap(), 1);
    assert_eq!(world.file(&candidate.commit, "a.txt").unwrap(), text(5, "both"));
    assert_eq!(world.show(&candidate.commit, "%B"), "change on task");
    assert_eq!(built(rebase(&world.mirror, &later, &head).unwrap()), candidate);
}

#[test]
fn merge_and_squash_make_one_commit_that_says_what_is_in_it() {
    let world = World::new();
    let first = world.commit_on("task", &world.base, &[("b", "1")]);
    let head = world.commit_on("task", &first, &[("c", "2")]);
    let main = world.commit_on("main", &world.base, &[("e", "main")]);
    let make = |style| built(build(&world.mirror, style, &main, &head, "$(id)").unwrap());
    let merged = make(Style::Merge);
    assert_eq!(
        world.show(&merged.commit, "%P|%an|%B"),
        format!("{main} {head}|Pointsman|Merge branch '$(id)'\n\n* change on task\n* change on task")
    );
    let squashed = make(Style::Squash);
    assert_eq!(
        world.show(&squashed.commit, "%P|%an|%B"),
        format!("{main}|Ann Author|$(id)\n\n* change on task\n\n* change on task")
    );
    assert_eq!(merged.tree, squashed.tree);
    assert_eq!(world.mirror.remote_head(&branch("main")).unwrap(), Some(main), "no reference has moved");
}

#[test]
fn the_committer_date_is_the_later_of_mains_and_the_time_in_the_queue() {
    let world = World::new();
    let head = world.commit_on("task", &world.base, &[("b", "1")]);
    let main = world.commit_on("main", &world.base, &[("e", "main")]);
    let at = |sha: &Sha| world.show(sha, "%ct").parse::<i64>().unwrap();
    let later = at(&main) + 1000;
    let heading = &Heading::Branch("task".to_owned());
    for style in [Style::Rebase, Style::Merge, Style::Squash] {
        for (queued_at_secs, expected) in [(0, at(&main)), (later, later)] {
            let order = Order { style, onto: &main, head: &head, heading, queued_at_secs };
            for mirror in [&world.mirror, &world.older_mirror()] {
                let built = built(candidate::build(mirror, &UnionGlobs::none(), &order).unwrap());
                assert_eq!(at(&built.commit), expected, "{style:?}");
            }
        }
    }
}

#[test]
fn a_long_branch_is_replayed_commit_by_commit_and_with_few_processes() {
    const COMMITS: u32 = 600;
    let world = World::new();
    let mut stream = String::new();
    for n in 1..=COMMITS {
        let from = if n == 1 { format!("from {}\n", world.base) } else { String::new() };
        let text = lines(1..=n);
        stream += &format!(
            "commit refs/heads/long\nauthor A <a@example.org> {n} +0000\ncommitter A <a@example.org> {n} +0000\n\
             data 3\n{n:03}\n{from}M 100644 inline long\ndata {}\n{text}\n",
            text.len()
        );
    }
    let import = world.mirror.call("fast-import").arg("--quiet").stdin(stream);
    import.ok().unwrap();
    let head = world.mirror.read_ref(&branch("long").full()).unwrap().unwrap();
    let main = world.commit_on("main", &world.base, &[("a.txt", "changed on main")]);
    let begun = std::time::Instant::now();
    let candidate = built(rebase(&world.mirror, &main, &head).unwrap());
    println!("{COMMITS} commits replayed in {:?}", begun.elapsed());
    assert_eq!(world.mirror.ahead(&main, &candidate.commit).unwrap(), u64::from(COMMITS));
    assert_eq!(world.show(&candidate.commit, "%an %s"), format!("A {COMMITS}"));
    let middle = world.plain(world.mirror.dir(), &["rev-parse", &format!("{}~300", candidate.commit)]);
    assert_eq!(world.file(&Sha::new(&middle).unwrap(), "long").unwrap(), lines(1..=COMMITS - 300));
    assert_eq!(world.file(&candidate.commit, "a.txt").unwrap(), "changed on main");
}

/// What is guessed for a whole branch at once is wrong here: as one change the branch does nothing.
#[test]
fn a_branch_that_makes_and_undoes_what_main_did_is_replayed_step_by_step() {
    let world = World::new();
    let text = |n: u32, s: &str| lines(1..=20).replace(&format!("line {n}\n"), &format!("{s}\n"));
    let made = world.commit_on("task", &world.base, &[("a.txt", &text(5, "other"))]);
    let undone = world.commit_on("task", &made, &[("a.txt", &lines(1..=20))]);
    let head = world.commit_on("task", &undone, &[("b", "b")]);
    let main = world.commit_on("main", &world.base, &[("a.txt", &text(5, "other"))]);
    let candidate = built(rebase(&world.mirror, &main, &head).unwrap());
    assert_eq!(built(rebase(&world.older_mirror(), &main, &head).unwrap()), candidate);
    assert_eq!(world.mirror.ahead(&main, &candidate.commit).unwrap(), 2);
    assert_eq!(world.file(&candidate.commit, "a.txt").unwrap(), lines(1..=20));
}

#[test]
fn main_stays_on_the_line_of_first_parents() {
    let world = World::new();
    world.commit_on("task", &world.base, &[("b", "1")]);
    let main = world.commit_on("main", &world.base, &[("c", "main")]);
    world.plain(&world.person, &["checkout", "-q", "task"]);
    world.plain(&world.person, &["merge", "-q", "--no-edit", main.as_str()]);
    let head = world.commit_on_current("task");
    assert!(world.mirror.is_ancestor(&main, &head).unwrap());
    // Pushed as it is, it would make main a side line of itself.
    let candidate = built(rebase(&world.mirror, &main, &head).unwrap());
    assert!(!candidate.same_as_head);
    let walk = first_parents(&world.mirror, &main, &candidate.commit).unwrap();
    assert!(matches!(walk, MainChange::Forward { .. }), "{walk:?}");
    assert_eq!(candidate.tree, world.mirror.tree_of(&head).unwrap());
}

#[test]
fn a_history_of_its_own_that_took_main_in_lands_as_one_commit() {
    let world = World::new();
    world.plain(&world.person, &["checkout", "-q", "--orphan", "alien"]);
    world.plain(&world.person, &["rm", "-rfq", "."]);
    fs::write(world.person.join("z"), "z").unwrap();
    world.commit(&world.person, "alien");
    world.plain(
        &world.person,
        &["merge", "-q", "--no-edit", "--allow-unrelated-histories", world.base.as_str()],
    );
    let head = world.commit_on_current("alien");
    let main = world.commit_on("main", &world.base, &[("c", "main")]);
    let candidate = built(rebase(&world.mirror, &main, &head).unwrap());
    assert_eq!(world.show(&candidate.commit, "%P"), main.as_str());
    assert_eq!(world.mirror.changed_paths(&main, &candidate.commit).unwrap(), ["z"]);
}

#[test]
fn a_whole_queue_is_checked_for_conflicts_and_leaves_nothing_behind() {
    let world = World::new();
    let odd = "odd \n\t\"é$(id)";
    let clean = world.commit_on("clean", &world.base, &[("b", "b")]);
    let bad = world.commit_on("bad", &world.base, &[("a.txt", "task"), (odd, "task")]);
    let main = world.commit_on("main", &world.base, &[("a.txt", "main"), (odd, "main")]);
    let objects = || world.plain(world.mirror.dir(), &["count-objects"]);
    let before = objects();
    let heads = [clean.clone(), bad.clone(), world.base.clone(), clean.clone()];
    let told = check_conflicts(&world.mirror, &main, &heads).unwrap();
    assert_eq!(told, [None, Some(vec!["a.txt".to_owned(), odd.to_owned()]), None, None]);
    assert_eq!(objects(), before);
    assert_eq!(check_conflicts(&world.mirror, &main, &[]).unwrap(), []);

    let missing = Sha::new(&"1".repeat(40)).unwrap();
    for (main, heads) in [(&main, [&clean, &missing]), (&missing, [&clean, &bad])] {
        let told = check_conflicts(&world.mirror, main, &heads.map(Clone::clone));
        assert!(matches!(&told, Err(Error::NoCommit { sha, .. }) if *sha == missing), "{told:?}");
    }
    world.plain(&world.person, &["checkout", "-q", "--orphan", "alien"]);
    let alien = world.commit_on_current("alien");
    let told = check_conflicts(&world.mirror, &main, &[clean, alien.clone()]);
    assert!(matches!(&told, Err(Error::Unrelated { head, .. }) if *head == alien), "{told:?}");
}

#[test]
fn a_conflict_that_leaves_every_file_merged_still_names_files() {
    let world = World::new();
    fs::create_dir(world.person.join("d")).unwrap();
    let base = world.commit_on("base", &world.base, &[("d/a", &lines(1..=20)), ("d/b", &lines(5..=30))]);
    let head = world.commit_on("task", &base, &[("d/new", "task")]);
    world.plain(&world.person, &["checkout", "-q", "-B", "main", base.as_str()]);
    world.plain(&world.person, &["mv", "d", "e"]);
    fs::write(world.person.join("e/new"), "main").unwrap();
    let main = world.commit_on_current("main");
    let files = vec!["e/new".to_owned()];
    for style in [Style::Rebase, Style::Merge, Style::Squash] {
        let told = build(&world.mirror, style, &main, &head, "m").unwrap();
        assert_eq!(told, Candidate::Conflict { files: files.clone() }, "{style:?}");
    }
    assert_eq!(
        check_conflicts(&world.mirror, &main, &[world.base.clone(), head]).unwrap(),
        [None, Some(files)]
    );
}
