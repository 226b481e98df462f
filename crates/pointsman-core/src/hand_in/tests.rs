use std::time::Duration;

use super::*;
use crate::forge::{IssueState, PullRequest, Review};
use crate::ids::Sha;
use crate::queue::EntryId;
use crate::role::Role;
use crate::run::RunId;
use crate::task::{ReviewMode, ReviewVerdict};
use crate::time::Timestamp;
use crate::words;

fn change(path: &str, before: &str, after: &str) -> Change {
    let (before, after) = (Kind::of_mode(before), Kind::of_mode(after));
    Change { path: path.to_owned(), before, after, size: 100 }
}

const FILE: &str = "100644";
const RUN: &str = "100755";
const LINK: &str = "120000";
const REPOSITORY: &str = "160000";
const NONE: &str = "000000";

#[test]
fn each_role_hands_in_its_own_files_and_nothing_else() {
    use RefusalReason::{Deleted, NotPlain, NotTheirs};
    let long = format!("{}/AGENTS.md", "a".repeat(200));
    let table: &[(Role, &str, &str, &str, Option<RefusalReason>)] = &[
        (Role::Gardener, "AGENTS.md", FILE, FILE, None),
        (Role::Gardener, "AGENTS.md", NONE, FILE, None),
        (Role::Gardener, "crates/core/AGENTS.md", NONE, FILE, None),
        (Role::Gardener, "größe/AGENTS.md", NONE, FILE, None),
        (Role::Gardener, "AGENTS.md", RUN, RUN, None),
        (Role::Gardener, "AGENTS.md", FILE, NONE, Some(Deleted)),
        (Role::Gardener, "AGENTS.md", FILE, LINK, Some(NotPlain)),
        (Role::Gardener, "AGENTS.md", NONE, LINK, Some(NotPlain)),
        (Role::Gardener, "AGENTS.md", LINK, LINK, Some(NotPlain)),
        (Role::Gardener, "AGENTS.md", LINK, FILE, Some(NotPlain)),
        (Role::Gardener, "AGENTS.md", FILE, RUN, Some(NotPlain)),
        (Role::Gardener, "AGENTS.md", RUN, FILE, Some(NotPlain)),
        (Role::Gardener, "AGENTS.md", NONE, RUN, Some(NotPlain)),
        (Role::Gardener, "AGENTS.md", NONE, REPOSITORY, Some(NotPlain)),
        (Role::Gardener, "AGENTS.md", FILE, "100600", Some(NotPlain)),
        (Role::Gardener, "agents.md", NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, "XAGENTS.md", NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, "AGENTS.md/x", NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, "CLAUDE.md", FILE, FILE, Some(NotTheirs)),
        (Role::Gardener, "src/main.rs", FILE, FILE, Some(NotTheirs)),
        (Role::Gardener, ".claude/agents/AGENTS.md", NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, ".github/AGENTS.md", NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, "-x/AGENTS.md", NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, "packages/@shop/ui_kit-2.0/AGENTS.md", NONE, FILE, None),
        (Role::Gardener, "a\nb/AGENTS.md", NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, "closes #7 /AGENTS.md", NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, "`id`/AGENTS.md", NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, "a/../AGENTS.md", NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, "a\u{fffd}b/AGENTS.md", NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, &long, NONE, FILE, Some(NotTheirs)),
        (Role::Gardener, "planner/MEMORY.md", FILE, FILE, Some(NotTheirs)),
        (Role::Planner, "planner/MEMORY.md", NONE, FILE, None),
        (Role::Planner, "planner/journal/2026-11-16.md", NONE, FILE, None),
        (Role::Planner, "planner/journal/deep/x.md", NONE, FILE, Some(NotTheirs)),
        (Role::Planner, "planner/journal/.md", NONE, FILE, Some(NotTheirs)),
        (Role::Planner, "planner/journal/a b.md", NONE, FILE, Some(NotTheirs)),
        (Role::Planner, "planner/journal/x.toml", NONE, FILE, Some(NotTheirs)),
        (Role::Planner, "x/planner/MEMORY.md", NONE, FILE, Some(NotTheirs)),
        (Role::Planner, "AGENTS.md", FILE, FILE, Some(NotTheirs)),
        (Role::Planner, "planner/MEMORY.md", FILE, LINK, Some(NotPlain)),
        (Role::Predictor, "AGENTS.md", FILE, FILE, Some(NotTheirs)),
        (Role::Dev, "AGENTS.md", FILE, FILE, Some(NotTheirs)),
    ];
    for (role, path, before, after, why) in table {
        let choice = choose(*role, &[change(path, before, after)]);
        assert_eq!(choice.refused.first().map(|refusal| refusal.why), *why, "{role} {path} {before} {after}");
        assert_eq!(choice.taken.len(), usize::from(why.is_none()), "{role} {path}");
    }
}

#[test]
fn few_and_small_files_that_take_nobodys_place() {
    let large = |size| Change { size, ..change("AGENTS.md", FILE, FILE) };
    assert_eq!(choose(Role::Gardener, &[large(FILE_BYTES)]).taken, ["AGENTS.md"]);
    assert_eq!(choose(Role::Gardener, &[large(FILE_BYTES + 1)]).refused[0].why, RefusalReason::TooLarge);
    let many: Vec<Change> = (0..12).map(|n| change(&format!("d{n}/AGENTS.md"), NONE, FILE)).collect();
    let choice = choose(Role::Gardener, &many);
    assert_eq!((choice.taken.len(), choice.refused.len()), (FILES, 2));
    assert!(choice.refused.iter().all(|refusal| refusal.why == RefusalReason::TooMany));
    // A file became a folder, or a folder a file.
    let folder = [change("docs", FILE, NONE), change("docs/AGENTS.md", NONE, FILE)];
    assert_eq!(choose(Role::Gardener, &folder).refused[1].why, RefusalReason::InTheWay);
    let file = [change("AGENTS.md", NONE, FILE), change("AGENTS.md/a", FILE, NONE)];
    assert_eq!(choose(Role::Gardener, &file).refused[0].why, RefusalReason::InTheWay);
    let beside = [change("docs.md", FILE, NONE), change("docs/AGENTS.md", NONE, FILE)];
    assert_eq!(choose(Role::Gardener, &beside).taken, ["docs/AGENTS.md"]);
    assert!(is_text("größer".as_bytes()) && is_text(b""));
    assert!(!is_text(b"\xff\xfe") && !is_text(b"a\0b"));
    assert!(carries_on(Role::Planner) && !carries_on(Role::Gardener));
}

#[test]
fn what_is_refused_is_named_and_not_endlessly() {
    let many: Vec<Change> = (0..30).map(|n| change(&format!("src/{n}`@all`.rs"), FILE, FILE)).collect();
    let lines = words::hand_in::refused(RunId(3), &choose(Role::Gardener, &many).refused);
    assert_eq!(lines.len(), 12);
    assert_eq!(lines[0], "refused: src/0all.rs, which is none of its files");
    assert_eq!(lines[10], "refused: 20 more");
    assert_eq!(words::hand_in::refused(RunId(3), &[]), [""; 0]);
}

fn sha(digit: &str) -> Sha {
    Sha::new(&digit.repeat(40)).unwrap()
}

fn taken(run: u64, content: &str) -> HandInFiles {
    HandInFiles {
        run: RunId(run),
        commit: sha("a"),
        base: sha("b"),
        content: content.to_owned(),
        files: vec!["AGENTS.md".to_owned()],
    }
}

fn pr(verdicts: &[ReviewVerdict]) -> PullRequest {
    let review = |(id, verdict): (usize, &ReviewVerdict)| Review {
        id: id as u64,
        author: "ann".to_owned(),
        verdict: *verdict,
        body: String::new(),
        sha: sha("a"),
        at: Timestamp(0),
        dismissed: false,
    };
    PullRequest {
        number: 7,
        title: String::new(),
        body: String::new(),
        head: String::new(),
        base: "main".to_owned(),
        head_sha: Some(sha("a")),
        state: IssueState::Open,
        merged: false,
        merge_sha: None,
        reviews: verdicts.iter().enumerate().map(review).collect(),
        author: String::new(),
    }
}

#[test]
fn it_lands_with_what_any_other_needs_and_not_with_less() {
    use ReviewMode::{Command, Human, None as Nobody};
    use ReviewVerdict::{Approve, Discuss, RequestChanges};
    let review = || Next::Tell(Need::Review { commit: sha("a") });
    let checks = || Next::Tell(Need::Checks { commit: sha("a") });
    let silent = || Next::Tell(Need::Silent { commit: sha("a") });
    let out = || QueueStatus::Out("red".to_owned());
    let line = || Next::Tell(Need::Line { commit: sha("a"), why: "red".to_owned() });
    type Row<'a> = (ReviewMode, Checks, QueueStatus, &'a [ReviewVerdict], Next);
    let table: Vec<Row<'_>> = vec![
        (Nobody, Checks::Open, QueueStatus::No, &[], Next::Wait),
        (Nobody, Checks::Silent, QueueStatus::No, &[], silent()),
        (Human, Checks::Silent, QueueStatus::No, &[Approve], silent()),
        (Nobody, Checks::Red, QueueStatus::No, &[], checks()),
        (Nobody, Checks::Green, QueueStatus::No, &[], Next::Enter),
        (Human, Checks::Green, QueueStatus::No, &[], review()),
        (Human, Checks::Open, QueueStatus::No, &[Approve], Next::Wait),
        (Human, Checks::Red, QueueStatus::No, &[Approve], checks()),
        (Human, Checks::Green, QueueStatus::No, &[Approve], Next::Enter),
        (Human, Checks::Green, QueueStatus::No, &[Approve, RequestChanges], review()),
        (Human, Checks::Green, QueueStatus::No, &[RequestChanges, Approve], Next::Enter),
        (Command, Checks::Green, QueueStatus::No, &[], Next::AskReview),
        (Command, Checks::Green, QueueStatus::No, &[Discuss], review()),
        (Command, Checks::Green, QueueStatus::No, &[Discuss, Approve], Next::Enter),
        (Command, Checks::Green, QueueStatus::Waiting, &[Approve], Next::Wait),
        (Command, Checks::Green, QueueStatus::Waiting, &[Approve, Discuss], Next::Leave),
        (Nobody, Checks::Green, QueueStatus::Waiting, &[], Next::Wait),
        (Nobody, Checks::Green, out(), &[], line()),
        (Nobody, Checks::Green, QueueStatus::Landed, &[], Next::Over(Outcome::Merged)),
    ];
    let hand_in =
        HandIn { pr: Some(7), entry: Some(EntryId(1)), ..HandIn::new(Role::Gardener, taken(3, "x")) };
    for (review, checks, line, verdicts, expected) in table {
        let pr = pr(verdicts);
        let at = format!("{review:?} {checks:?} {line:?} {verdicts:?}");
        let facts = HandInFacts { hand_in: &hand_in, pr: Some(&pr), line, checks, review, newer: None };
        assert_eq!(next(&facts), expected, "{at}");
    }
}

#[test]
fn a_ci_that_says_nothing_is_waited_for_and_then_told_of() {
    let (notes, code) = (["AGENTS.md".to_owned()], ["AGENTS.md".to_owned(), "a.rs".to_owned()]);
    let quiet = UnreportedCi {
        waited: Duration::from_secs(60),
        limit: Duration::from_secs(60),
        begun: false,
        required: false,
        gate: true,
        files: &notes,
    };
    for (silence, expected) in [
        (quiet, Checks::Green),
        (UnreportedCi { waited: Duration::from_secs(59), ..quiet }, Checks::Open),
        (UnreportedCi { begun: true, ..quiet }, Checks::Silent),
        (UnreportedCi { required: true, ..quiet }, Checks::Silent),
        (UnreportedCi { gate: false, ..quiet }, Checks::Silent),
        (UnreportedCi { files: &code, ..quiet }, Checks::Silent),
    ] {
        assert_eq!(silence.checks(), expected, "{silence:?}");
    }
}

#[test]
fn its_pull_request_is_opened_once_followed_and_ended() {
    let hand_in = HandIn { pr: Some(7), ..HandIn::new(Role::Gardener, taken(3, "x")) };
    let (open, newer) = (pr(&[]), sha("d"));
    let facts = |line| HandInFacts {
        hand_in: &hand_in,
        pr: Some(&open),
        line,
        checks: Checks::Open,
        review: ReviewMode::Human,
        newer: None,
    };
    let new = HandIn::new(Role::Gardener, taken(3, "x"));
    assert_eq!(new.branch, "pointsman/gardener-3-aaaaaaaaaa");
    assert_eq!(next(&HandInFacts { hand_in: &new, pr: None, ..facts(QueueStatus::No) }), Next::Open);
    let ended = |pr: Option<&PullRequest>, line| next(&HandInFacts { pr, ..facts(line) });
    assert_eq!(ended(None, QueueStatus::No), Next::Over(Outcome::Dismissed));
    assert_eq!(ended(None, QueueStatus::Waiting), Next::Leave);
    let closed = PullRequest { state: IssueState::Closed, ..pr(&[]) };
    assert_eq!(ended(Some(&closed), QueueStatus::No), Next::Over(Outcome::Dismissed));
    assert_eq!(ended(Some(&closed), QueueStatus::Waiting), Next::Leave, "a person closed it in the queue");
    assert_eq!(ended(Some(&closed), QueueStatus::Landed), Next::Over(Outcome::Merged));
    let merged = PullRequest { merged: true, ..closed };
    assert_eq!(ended(Some(&merged), QueueStatus::No), Next::Over(Outcome::Merged));
    let moved = PullRequest { head_sha: Some(sha("c")), ..pr(&[]) };
    assert_eq!(ended(Some(&moved), QueueStatus::No), Next::Tell(Need::Taken));
    assert_eq!(
        next(&HandInFacts { newer: Some(&newer), pr: Some(&moved), ..facts(QueueStatus::No) }),
        Next::Tell(Need::Taken)
    );
    // We pushed what is newer, and did not live to write it down.
    let pushed = PullRequest { head_sha: Some(newer.clone()), ..pr(&[]) };
    assert_eq!(
        next(&HandInFacts { newer: Some(&newer), pr: Some(&pushed), ..facts(QueueStatus::No) }),
        Next::Replace
    );
    // What the merge queue put there, or an earlier one that was to take its place, is ours as well.
    let mut known = hand_in.clone();
    known.pushes(&sha("c"));
    let brought =
        |newer, line| next(&HandInFacts { hand_in: &known, pr: Some(&moved), newer, ..facts(line) });
    let out = || QueueStatus::Out("conflict".to_owned());
    assert_eq!(brought(Some(&newer), QueueStatus::No), Next::Replace);
    assert_eq!(brought(Some(&newer), out()), Next::Replace);
    let line = Need::Line { commit: sha("a"), why: "conflict".to_owned() };
    assert_eq!(brought(None, out()), Next::Tell(line));
    assert_eq!(brought(None, QueueStatus::No), Next::PutBack);
    for one in 0..30 {
        known.pushes(&Sha::new(&format!("{one:040x}")).unwrap());
        known.pushes(&sha("c"));
    }
    assert_eq!(known.pushed.len(), 20);
    // What is newer takes its place, but not while it may land at any moment.
    assert_eq!(next(&HandInFacts { newer: Some(&newer), ..facts(QueueStatus::No) }), Next::Replace);
    assert_eq!(
        next(&HandInFacts { newer: Some(&newer), ..facts(QueueStatus::Out("red".to_owned())) }),
        Next::Replace
    );
    let waiting =
        HandInFacts { newer: Some(&newer), review: ReviewMode::None, ..facts(QueueStatus::Waiting) };
    assert_eq!(next(&waiting), Next::Wait);
    // A reviewer that gave up is not asked again.
    let given_up = HandIn { told: Some(Need::Review { commit: sha("a") }), ..hand_in.clone() };
    let green = HandInFacts { checks: Checks::Green, review: ReviewMode::Command, ..facts(QueueStatus::No) };
    assert_eq!(next(&green), Next::AskReview);
    assert_eq!(next(&HandInFacts { hand_in: &given_up, ..green }), Next::Wait);
    let stuck = |told| HandIn { told: Some(told), ..hand_in.clone() }.is_stuck();
    assert!(stuck(Need::Checks { commit: sha("a") }) && stuck(Need::Silent { commit: sha("a") }));
    assert!(stuck(Need::Line { commit: sha("a"), why: "red".to_owned() }));
    assert!(!stuck(Need::Review { commit: sha("a") }) && !stuck(Need::Taken) && !hand_in.is_stuck());
    // People are told once.
    let told = HandIn { told: Some(Need::Taken), ..hand_in.clone() };
    assert_eq!(next(&HandInFacts { hand_in: &told, pr: Some(&moved), ..facts(QueueStatus::No) }), Next::Wait);
}

#[test]
fn there_is_one_at_a_time_and_none_that_was_dismissed() {
    let mut memory = Memory::default();
    assert_eq!(memory.take(Role::Gardener, RunId(1), None), NewFiles::Nothing);
    assert_eq!(memory.take(Role::Gardener, RunId(2), Some(taken(2, "x"))), NewFiles::New);
    assert_eq!(memory.take(Role::Gardener, RunId(2), Some(taken(2, "y"))), NewFiles::Before);
    assert_eq!(
        memory.take(Role::Gardener, RunId(3), Some(taken(3, "x"))),
        NewFiles::Nothing,
        "the same is open"
    );
    assert_eq!(memory.take(Role::Gardener, RunId(4), Some(taken(4, "y"))), NewFiles::New);
    assert_eq!(memory.take(Role::Gardener, RunId(5), Some(taken(5, "z"))), NewFiles::New, "the newest waits");
    assert_eq!((memory.open.as_ref().unwrap().taken.run, memory.latest().unwrap().run), (RunId(2), RunId(5)));
    let pr = HandIn { pr: Some(7), entry: Some(EntryId(1)), ..memory.open.clone().unwrap() };
    memory.open = Some(pr.clone());
    memory.replace();
    let open = memory.open.clone().unwrap();
    assert_eq!(
        (open.taken.run, open.pr, open.entry, memory.newer.is_none()),
        (RunId(5), Some(7), None, true)
    );
    assert_eq!(open.branch, pr.branch);
    assert_eq!(memory.take(Role::Gardener, RunId(6), Some(taken(6, "w"))), NewFiles::New);
    let over = memory.end(Role::Gardener, Outcome::Dismissed).unwrap();
    assert_eq!((over.taken.run, memory.open.as_ref().unwrap().taken.run), (RunId(5), RunId(6)));
    assert_eq!(memory.take(Role::Gardener, RunId(7), Some(taken(7, "z"))), NewFiles::Dismissed);
    assert_eq!(memory.end(Role::Gardener, Outcome::Merged).unwrap().taken.run, RunId(6));
    assert_eq!(memory.end(Role::Gardener, Outcome::Merged), None);
}

#[test]
fn the_same_takes_the_place_of_what_is_stuck_on_another_main_only() {
    let again = |run| HandInFiles { base: sha("c"), commit: sha("d"), ..taken(run, "x") };
    let red = Some(Need::Checks { commit: sha("a") });
    let review = Some(Need::Review { commit: sha("a") });
    for (told, handed_in, expected) in [
        (None, again(2), NewFiles::Nothing),
        (review, again(2), NewFiles::Nothing),
        (red.clone(), taken(2, "x"), NewFiles::Nothing),
        (red, again(2), NewFiles::New),
    ] {
        let mut memory = Memory::default();
        assert_eq!(memory.take(Role::Gardener, RunId(1), Some(taken(1, "x"))), NewFiles::New);
        let at = format!("{told:?} {handed_in:?}");
        if let Some(open) = &mut memory.open {
            open.told = told;
        }
        assert_eq!(memory.take(Role::Gardener, RunId(2), Some(handed_in)), expected, "{at}");
        assert_eq!(memory.newer.is_some(), expected == NewFiles::New, "{at}");
        if expected == NewFiles::New {
            let base = sha("e");
            let third = HandInFiles { base, ..again(3) };
            assert_eq!(
                memory.take(Role::Gardener, RunId(3), Some(third)),
                NewFiles::Nothing,
                "what waits is not stuck"
            );
        }
    }
}
