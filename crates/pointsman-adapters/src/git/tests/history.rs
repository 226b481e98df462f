use pointsman_core::ids::Sha;

use super::{World, build, to_main};
use crate::git::Error;
use crate::git::candidate::{Candidate, Style};
use crate::git::history::{
    MainChange, MainCommit, first_parents, first_parents_limited, landed_commits, reverting,
};
use crate::git::push::PushOutcome;

fn forward(walk: MainChange) -> (Vec<MainCommit>, bool) {
    match walk {
        MainChange::Forward { commits, cut } => (commits, cut),
        MainChange::Rewritten { .. } => panic!("{walk:?}"),
    }
}

fn shas(commits: &[MainCommit]) -> Vec<&Sha> {
    commits.iter().map(|commit| &commit.sha).collect()
}

impl World {
    /// Lands a branch on main and answers the commit.
    fn land(&self, style: Style, onto: &Sha, head: &Sha) -> Sha {
        let Candidate::Built(built) = build(&self.mirror, style, onto, head, "Land it").unwrap() else {
            panic!("nothing was built")
        };
        assert_eq!(self.mirror.push(&to_main(&built.commit, onto)).unwrap(), PushOutcome::Done);
        self.plain(&self.person, &["fetch", "-q", "origin"]);
        built.commit
    }
}

#[test]
fn main_is_walked_along_first_parents_and_landings_are_told_from_the_rest() {
    let world = World::new();
    let first = world.commit_on("one", &world.base, &[("b", "1")]);
    let one = world.commit_on("one", &first, &[("b", "2")]);
    let two = world.commit_on("two", &world.base, &[("c", "1")]);
    let merged = world.land(Style::Merge, &world.base, &one);
    let direct = world.commit_on("main", &merged, &[("direct", "by hand")]);
    let rebased = world.land(Style::Rebase, &direct, &two);

    let (commits, cut) = forward(first_parents(&world.mirror, &world.base, &rebased).unwrap());
    assert_eq!((shas(&commits), cut), (vec![&merged, &direct, &rebased], false));
    assert_eq!(commits[0].parents, [world.base.clone(), one.clone()]);
    assert_eq!(
        (commits[0].author.name.as_str(), commits[0].subject.as_str()),
        ("Pointsman", "Merge branch 'Land it'")
    );
    assert_eq!(
        (commits[1].author.name.as_str(), commits[1].author.email.as_str()),
        ("Ann Author", "ann@example.org")
    );
    assert_eq!(commits[1].committer.name, "Carl Committer");

    let mut through_the_queue = landed_commits(&world.mirror, &world.base, &merged).unwrap();
    through_the_queue.extend(landed_commits(&world.mirror, &direct, &rebased).unwrap());
    let others: Vec<&Sha> =
        commits.iter().map(|c| &c.sha).filter(|sha| !through_the_queue.contains(sha)).collect();
    assert_eq!(others, [&direct]);
    assert_eq!(forward(first_parents(&world.mirror, &rebased, &rebased).unwrap()), (vec![], false));
}

#[test]
fn a_long_walk_is_cut_at_its_oldest_part_and_can_go_on() {
    let world = World::new();
    let mut heads = vec![world.base.clone()];
    for n in 0..5 {
        heads.push(world.commit_on("main", &heads[n], &[("n", &n.to_string())]));
    }
    let walk = |after: &Sha| forward(first_parents_limited(&world.mirror, after, &heads[5], 3).unwrap());
    let (commits, cut) = walk(&heads[0]);
    assert_eq!((shas(&commits), cut), (vec![&heads[1], &heads[2], &heads[3]], true));
    let (commits, cut) = walk(&heads[3]);
    assert_eq!((shas(&commits), cut), (vec![&heads[4], &heads[5]], false));
}

#[test]
fn commits_that_take_others_back_are_found_by_their_words() {
    let world = World::new();
    let first = world.commit_on("main", &world.base, &[("a", "1")]);
    world.commit_on("main", &first, &[("b", "1")]);
    world.plain(&world.person, &["revert", "--no-edit", first.as_str()]);
    world.publish("main");
    let main = world.mirror.remote_head(&super::branch("main")).unwrap().unwrap();
    let [(by, message)] = reverting(&world.mirror, &world.base, &main).unwrap().try_into().unwrap();
    assert_eq!(by, main);
    assert!(message.contains(&format!("This reverts commit {first}")), "{message}");
    assert_eq!(reverting(&world.mirror, &main, &main).unwrap(), []);
}

#[test]
fn a_main_that_was_rewound_or_replaced_is_told() {
    let world = World::new();
    let one = world.commit_on("main", &world.base, &[("b", "1")]);
    let two = world.commit_on("main", &one, &[("b", "2")]);
    let other = world.commit_on("main", &one, &[("c", "other")]);
    let walk = |after: &Sha, upto: &Sha| first_parents(&world.mirror, after, upto).unwrap();
    assert_eq!(
        walk(&two, &one),
        MainChange::Rewritten { common: Some(one.clone()), commits: vec![], cut: false }
    );
    let MainChange::Rewritten { common, commits, cut } = walk(&two, &other) else {
        panic!("it was replaced")
    };
    assert_eq!((common, shas(&commits), cut), (Some(one.clone()), vec![&other], false));

    // The old main is in the new one, but on a side: somebody merged main into a branch and pushed that as main.
    world.plain(&world.person, &["checkout", "-q", "-B", "swapped", other.as_str()]);
    world.plain(&world.person, &["merge", "-q", "--no-edit", "--no-ff", two.as_str()]);
    let swapped = world.commit_on_current("swapped");
    assert!(world.mirror.is_ancestor(&two, &swapped).unwrap());
    let MainChange::Rewritten { common, commits, .. } = walk(&two, &swapped) else {
        panic!("main is on a side")
    };
    assert_eq!((common, commits.len()), (Some(one), 3));

    world.plain(&world.person, &["checkout", "-q", "--orphan", "alien"]);
    let alien = world.commit_on_current("alien");
    let MainChange::Rewritten { common, commits, .. } = walk(&two, &alien) else {
        panic!("it is another history")
    };
    assert_eq!((common, shas(&commits)), (None, vec![&alien]));
}

#[test]
fn names_and_subjects_are_fit_to_be_shown_and_cannot_pass_for_another_commit() {
    let world = World::new();
    let tree = world.mirror.tree_of(&world.base).unwrap();
    let raw = format!(
        "tree {tree}\nparent {}\nauthor \x1b[31mEve\u{202e} <e@e> 1700000000 +0000\n\
         committer \u{200b} <> 1700000000 +0000\n\n\x1b]0;owned\x07{}\nsecond line\n",
        world.base,
        "x".repeat(500)
    );
    let odd = world
        .mirror
        .call("hash-object")
        .args(["-t", "commit", "-w", "--stdin", "--literally"])
        .stdin(raw)
        .sha()
        .unwrap();
    let (commits, _) = forward(first_parents(&world.mirror, &world.base, &odd).unwrap());
    let commit = &commits[0];
    assert!(commit.author.name.contains("Eve") && commit.subject.ends_with("x…"));
    for shown in [&commit.author.name, &commit.subject] {
        assert!(!shown.contains(|c: char| c.is_control() || c == '\u{202e}'), "{shown:?}");
    }
}

#[test]
fn a_missing_commit_is_an_error_and_never_an_empty_walk() {
    let world = World::new();
    let missing = Sha::new(&"1".repeat(40)).unwrap();
    let tree = world.mirror.tree_of(&world.base).unwrap();
    for bad in [&missing, &tree] {
        for (after, upto) in [(bad, &world.base), (&world.base, bad)] {
            let told = first_parents(&world.mirror, after, upto);
            assert!(matches!(&told, Err(Error::NoCommit { sha, .. }) if sha == bad), "{told:?}");
            assert!(landed_commits(&world.mirror, after, upto).is_err());
        }
    }
}

#[test]
fn a_file_is_touched_when_it_is_written_changed_or_removed() {
    let world = World::new();
    let tree = world.tree();
    let touched = |path: &str| {
        let head = Sha::new(&world.plain(&tree, &["rev-parse", "HEAD"])).unwrap();
        let to = crate::git::RefName::new("refs/pointsman/test/touched").unwrap();
        world.mirror.fetch_path(&tree, &crate::git::RefName::head(), &to).unwrap();
        let touched = world.mirror.touched(&head, path).unwrap();
        (touched.commits, touched.is_there)
    };
    let all: u64 = world.plain(&tree, &["rev-list", "--count", "HEAD"]).parse().unwrap();
    assert_eq!(touched("AGENTS.md"), (all, false), "never there");
    std::fs::write(tree.join("AGENTS.md"), "x").unwrap();
    world.plain(&tree, &["add", "AGENTS.md"]);
    world.commit(&tree, "written");
    assert_eq!(touched("AGENTS.md"), (0, true));
    world.commit(&tree, "one");
    world.commit(&tree, "two");
    assert_eq!(touched("AGENTS.md"), (2, true));
    world.plain(&tree, &["rm", "--quiet", "AGENTS.md"]);
    world.commit(&tree, "removed");
    world.commit(&tree, "three");
    assert_eq!(touched("AGENTS.md"), (1, false));
    assert_eq!(touched("AGENTS.*"), (all + 5, false), "a name is no pattern");
}
