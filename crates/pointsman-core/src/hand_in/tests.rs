use super::*;
use crate::config::Config;
use crate::formula::{Formula, shipped, variables};
use crate::ids::{RunKey, Sha};
use crate::part::contribution::{self, CiVerdict, PrFact, QueueOutcome, ReviewVerdict};
use crate::role::Role;
use crate::run::{self, Event, Run, RunId, Status, Transition};
use crate::snapshot::Snapshot as _;
use crate::task::Effect;
use crate::time::Timestamp;
use crate::{log, words};

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
    assert_eq!(lines[0], "refused: src/0all.rs, which is not one of its files");
    assert_eq!(lines[10], "refused: 20 more");
    assert_eq!(words::hand_in::refused(RunId(3), &[]), [""; 0]);
}

fn sha(digit: &str) -> Sha {
    Sha::new(&digit.repeat(40)).unwrap()
}

fn files(run: u64, content: &str) -> HandInFiles {
    HandInFiles {
        run: RunId(run),
        commit: commit_of(run),
        base: sha("b"),
        content: content.to_owned(),
        files: vec!["AGENTS.md".to_owned()],
    }
}

fn commit_of(run: u64) -> Sha {
    Sha::new(&format!("{run:040x}")).unwrap()
}

const REVIEWED: &str = "[ci]\ncommand = [\"./ci.sh\"]\n[review]\nmode = \"human\"";
const UNREVIEWED: &str = "[ci]\ncommand = [\"./ci.sh\"]\n[review]\nmode = \"none\"";

/// The runs of a gardener, with the rules of a project.
struct Garden {
    config: Config,
    runs: Vec<Run>,
    dismissed: Vec<String>,
    now: Timestamp,
    ordered: Vec<Effect>,
    said: Vec<String>,
}

impl Garden {
    fn new(settings: &str) -> Self {
        let config = Config::parse(&format!("name = \"shop\"\n{settings}"), "test").unwrap();
        let now = Timestamp(1_000);
        Self { config, runs: Vec::new(), dismissed: Vec::new(), now, ordered: Vec::new(), said: Vec::new() }
    }

    /// A run that is done and handed this in.
    fn hands_in(&mut self, id: u64, content: &str) {
        self.hands_in_files(id, files(id, content));
    }

    fn hands_in_files(&mut self, id: u64, files: HandInFiles) {
        let text = shipped("run-gardener").unwrap();
        let formula = Formula::render(text, "x", &variables(&self.config)).unwrap();
        let mut run = Run::new(RunId(id), formula, &self.config, "test", self.now);
        (run.status, run.cleaning) = (Status::Done, true);
        self.runs.push(run);
        self.take(id, &Event::HandedIn { files: Some(files), refused: Vec::new() });
        assert_eq!(self.kinds(), ["clean_up"], "its tree goes once that is written");
        self.take(id, &Event::CleanedUp);
    }

    fn run(&self, id: u64) -> &Run {
        self.runs.iter().find(|run| run.id == RunId(id)).unwrap()
    }

    fn try_take(&mut self, id: u64, event: &Event) -> Result<(), crate::workflow::Refused> {
        let policy = run::Policy::new(&self.config, Role::Gardener);
        let before = self.run(id).clone();
        let Transition { run, effects } = run::step(&before, event, &policy, self.now)?;
        let written = serde_json::to_string(&run).unwrap();
        assert_eq!(Run::read(Run::VERSION, &written).unwrap(), run, "a snapshot reads back");
        self.said = match event.entry(&before, &run) {
            log::Entry::HandIn(said) | log::Entry::HandInOver(said) => said.lines,
            log::Entry::RunContribution(_)
            | log::Entry::RunCleanedUp(_)
            | log::Entry::RunTimePassed(_)
            | log::Entry::RunEffectFailed(_) => Vec::new(),
            other => panic!("{other:?}"),
        };
        self.ordered = effects;
        *self.runs.iter_mut().find(|run| run.id == RunId(id)).unwrap() = run;
        Ok(())
    }

    fn take(&mut self, id: u64, event: &Event) {
        self.try_take(id, event).unwrap_or_else(|refused| panic!("{event:?}: {refused}"));
    }

    fn hears(&mut self, id: u64, about: contribution::Event) {
        self.take(id, &Event::Contribution { about });
    }

    /// Everybody has a turn whose turn it is; answers the runs that began.
    fn turns(&mut self) -> Vec<u64> {
        let open: Vec<&Run> = self.runs.iter().filter(|run| run.is_open()).collect();
        let due: Vec<(RunKey, Event)> = turns(&open, &self.dismissed);
        let mut begun = Vec::new();
        for (key, event) in due {
            self.take(key.id.0, &event);
            if matches!(event, Event::LandingBegun { .. }) {
                assert_eq!(self.kinds(), ["sync_branch"]);
                begun.push(key.id.0);
            }
        }
        let on_their_way = self.runs.iter().filter(|run| run.landing().is_some()).count();
        assert!(on_their_way <= 1, "one at a time");
        begun
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.ordered.iter().map(Effect::kind).collect()
    }

    fn pushed(&mut self, id: u64) {
        let head = self.run(id).hand_in.as_ref().unwrap().files.commit.clone();
        self.hears(
            id,
            contribution::Event::Pushed { head: Some(head), protected: vec![], secret: None, risk: None },
        );
    }

    fn opened(&mut self, id: u64) {
        assert_eq!(self.turns(), [id]);
        self.pushed(id);
        assert_eq!(self.kinds(), ["open_pull_request", "run_checks"]);
        self.hears(id, contribution::Event::Opened { number: 7 });
        assert_eq!(self.said, ["opened pull request #7 with AGENTS.md"]);
    }

    fn ci(&mut self, id: u64, verdict: CiVerdict) {
        let (sha, run) = self.run(id).contribution().unwrap().pending().unwrap();
        let sha = sha.clone();
        self.hears(id, contribution::Event::ChecksFinished { sha, run, verdict, flaky: false });
    }

    fn review(&mut self, id: u64, verdict: ReviewVerdict) {
        let sha = self.run(id).contribution().unwrap().head().unwrap().clone();
        let (by, body) = ("ann".to_owned(), String::new());
        self.hears(id, contribution::Event::Reviewed { sha, verdict, by, by_agent: false, body });
    }

    fn queue(&mut self, id: u64, outcome: QueueOutcome) {
        let head = self.run(id).contribution().unwrap().head().unwrap().clone();
        self.hears(id, contribution::Event::QueueReported { head, outcome });
    }

    fn observed(&mut self, id: u64, fact: PrFact) {
        self.hears(id, contribution::Event::Observed { fact });
    }

    fn told(&self, id: u64) -> Option<&Need> {
        self.run(id).landing().and_then(|landing| landing.told.as_ref())
    }

    fn outcome(&self, id: u64) -> Option<Outcome> {
        match &self.run(id).hand_in.as_ref().unwrap().stage {
            Stage::Over { outcome, .. } => Some(*outcome),
            Stage::Waiting | Stage::Open(_) => None,
        }
    }
}

fn red() -> CiVerdict {
    CiVerdict::Failed { summary: "exit 1".to_owned(), log: String::new() }
}

#[test]
fn it_goes_the_way_of_a_task_and_its_run_stays_open_until_it_is_there() {
    let mut garden = Garden::new(REVIEWED);
    garden.hands_in(1, "x");
    garden.opened(1);
    assert_eq!(garden.run(1).contribution().unwrap().branch, "pointsman/gardener-1-0000000000");
    garden.ci(1, CiVerdict::Passed);
    assert_eq!(garden.kinds(), ["request_review", "notify_need"]);
    assert_eq!(garden.said, ["pull request #7 needs the review of a person"]);
    garden.review(1, ReviewVerdict::Approve);
    assert_eq!(garden.kinds(), ["enqueue"]);
    assert!(garden.run(1).is_open() && garden.run(1).wake_at(&policy(&garden)).is_some());
    garden.queue(1, QueueOutcome::Landed { sha: sha("f") });
    assert_eq!(garden.said, ["pull request #7 is on the main branch: AGENTS.md"]);
    assert_eq!(garden.outcome(1), Some(Outcome::Merged));
    assert!(!garden.run(1).is_open() && garden.run(1).wake_at(&policy(&garden)).is_none());
    // Whoever else tells of it is late.
    assert!(garden.try_take(1, &Event::CommitPut { commit: sha("c") }).is_err());
}

fn policy(garden: &Garden) -> run::Policy {
    run::Policy::new(&garden.config, Role::Gardener)
}

#[test]
fn people_are_told_once_what_it_needs() {
    let commit = commit_of(1);
    let mut garden = Garden::new(REVIEWED);
    garden.hands_in(1, "x");
    garden.opened(1);
    garden.ci(1, red());
    assert_eq!(
        (garden.kinds(), garden.told(1)),
        (vec!["notify_need"], Some(&Need::Checks { commit: commit.clone() }))
    );
    assert!(garden.run(1).landing().unwrap().is_stuck());

    let mut garden = Garden::new(REVIEWED);
    garden.hands_in(1, "x");
    garden.opened(1);
    garden.now = garden.now.after(garden.config.timing.ci_timeout.into());
    garden.take(1, &Event::TimePassed);
    assert_eq!(garden.told(1), Some(&Need::Silent { commit: commit.clone() }));
    assert_eq!(garden.said, [words::hand_in::waits(7, &Need::Silent { commit: commit.clone() })]);
    // A late answer is still an answer.
    let passed = contribution::Event::ChecksFinished {
        sha: commit.clone(),
        run: 1,
        verdict: CiVerdict::Passed,
        flaky: false,
    };
    garden.hears(1, passed);
    assert_eq!(garden.told(1), Some(&Need::Review { commit: commit.clone() }));
    garden.review(1, ReviewVerdict::Discuss);
    assert!(garden.ordered.is_empty(), "people know");
    garden.now = garden.now.after(garden.config.timing.review_timeout.into());
    garden.take(1, &Event::TimePassed);
    assert!(garden.ordered.is_empty());
    garden.review(1, ReviewVerdict::Approve);
    let conflict = QueueOutcome::Conflict { files: vec!["AGENTS.md".to_owned()], with: None };
    garden.queue(1, conflict);
    assert!(matches!(garden.told(1), Some(Need::Line { why, .. }) if why.contains("AGENTS.md")));
    assert_eq!(garden.kinds(), ["notify_need"]);

    // Without CI people are asked before there is a pull request, and the journal says so with its number.
    let mut garden = Garden::new("[review]\nmode = \"human\"");
    garden.hands_in(1, "x");
    assert_eq!(garden.turns(), [1]);
    garden.pushed(1);
    assert_eq!(garden.kinds(), ["open_pull_request", "request_review", "notify_need"]);
    garden.hears(1, contribution::Event::Opened { number: 7 });
    let said = ["opened pull request #7 with AGENTS.md", "pull request #7 needs the review of a person"];
    assert_eq!(garden.said, said);

    // A program that reviews is asked, and people only if nothing comes of it.
    let mut garden = Garden::new("[review]\nmode = \"agent\"\ncommand = [\"./review.sh\"]");
    garden.hands_in(1, "x");
    assert_eq!(garden.turns(), [1]);
    garden.pushed(1);
    assert_eq!(garden.kinds(), ["open_pull_request", "request_review"]);
    garden.hears(1, contribution::Event::Opened { number: 7 });
    garden.take(1, &Event::EffectGaveUp { effect: "request_review".to_owned(), error: "rubbish".to_owned() });
    assert_eq!(garden.told(1), Some(&Need::Review { commit }));
}

#[test]
fn what_cannot_be_brought_to_the_forge_is_brought_there_later() {
    for (effect, next) in [("sync_branch", "open_pull_request"), ("open_pull_request", "open_pull_request")] {
        let mut garden = Garden::new(UNREVIEWED);
        garden.hands_in(1, "x");
        assert_eq!(garden.turns(), [1]);
        if effect == "open_pull_request" {
            garden.pushed(1);
            garden.ci(1, CiVerdict::Passed);
            assert_eq!(garden.kinds(), ["enqueue"]);
        }
        garden.take(1, &Event::EffectGaveUp { effect: effect.to_owned(), error: "no".to_owned() });
        assert_eq!(garden.kinds().last(), Some(&"notify"), "people are told");
        assert_eq!(garden.kinds().contains(&"dequeue"), effect == "open_pull_request");
        garden.now = garden.run(1).wake_at(&policy(&garden)).unwrap();
        garden.take(1, &Event::TimePassed);
        assert_eq!(garden.kinds(), ["sync_branch"]);
        garden.pushed(1);
        assert_eq!(garden.kinds()[0], next);
        garden.hears(1, contribution::Event::Opened { number: 7 });
        assert!(garden.run(1).hand_in.as_ref().unwrap().is_brought());
    }
}

#[test]
fn what_waits_for_a_review_without_a_pull_request_is_brought_to_the_forge_again() {
    let mut garden = Garden::new(REVIEWED);
    garden.hands_in(1, "x");
    assert_eq!(garden.turns(), [1]);
    garden.pushed(1);
    let refused = Event::EffectGaveUp { effect: "open_pull_request".to_owned(), error: "no".to_owned() };
    garden.take(1, &refused);
    // CI may have begun before.
    garden.ci(1, CiVerdict::Passed);
    let mut orders = Vec::new();
    for _ in 0..4 {
        garden.now = garden.run(1).wake_at(&policy(&garden)).expect("it does not rest");
        garden.take(1, &Event::TimePassed);
        orders.extend(garden.kinds().iter().map(|kind| (*kind).to_owned()));
    }
    assert!(orders.contains(&"sync_branch".to_owned()), "{orders:?}");
    garden.pushed(1);
    assert_eq!(garden.kinds()[0], "open_pull_request");
}

#[test]
fn what_is_newer_takes_its_place_but_not_while_it_may_land() {
    let mut garden = Garden::new(REVIEWED);
    garden.hands_in(1, "x");
    assert_eq!(garden.turns(), [1]);
    garden.hands_in(2, "y");
    assert_eq!(garden.turns(), [0; 0], "its pull request is not there yet");
    garden.pushed(1);
    garden.hears(1, contribution::Event::Opened { number: 7 });
    garden.ci(1, CiVerdict::Passed);
    garden.review(1, ReviewVerdict::Approve);
    assert_eq!(garden.turns(), [0; 0], "it may land at any moment");
    garden.take(1, &Event::CommitPut { commit: sha("c") });
    garden.review(1, ReviewVerdict::RequestChanges);
    assert_eq!(garden.kinds()[0], "dequeue");
    garden.hands_in(3, "z");
    assert_eq!(garden.turns(), [3], "the newest");
    assert_eq!((garden.outcome(1), garden.outcome(2)), (Some(Outcome::Dropped), Some(Outcome::Dropped)));
    let branch = "pointsman/gardener-1-0000000000";
    assert_eq!(garden.run(3).contribution().unwrap().branch, branch);
    let handed_in = garden.run(3).hand_in.clone().unwrap();
    assert!(handed_in.owns(&sha("c")) && handed_in.owns(&commit_of(1)) && handed_in.owns(&commit_of(3)));
    assert!(!handed_in.owns(&sha("d")));
    garden.pushed(3);
    assert_eq!(garden.kinds(), ["run_checks"], "an approval is bound to a commit");
    assert_eq!(garden.said, ["brought pull request #7 up to date with AGENTS.md"]);
    // One that lands leaves its place to the next, on a branch of its own.
    garden.ci(3, CiVerdict::Passed);
    garden.review(3, ReviewVerdict::Approve);
    garden.hands_in(4, "w");
    garden.observed(3, PrFact::Merged { sha: sha("f") });
    assert_eq!(garden.turns(), [4]);
    assert_ne!(garden.run(4).contribution().unwrap().branch, branch);
}

#[test]
fn the_same_is_handed_in_once_and_what_people_closed_never_again() {
    let mut garden = Garden::new(REVIEWED);
    garden.hands_in(1, "x");
    garden.opened(1);
    garden.hands_in(2, "x");
    assert_eq!(garden.turns(), [0; 0]);
    assert_eq!((garden.outcome(2), garden.said.len()), (Some(Outcome::Dropped), 0));
    garden.observed(1, PrFact::Closed);
    assert_eq!(garden.said, ["pull request #7 was closed by somebody and will not be reopened"]);
    garden.dismissed.push("x".to_owned());
    garden.hands_in(3, "x");
    assert_eq!(garden.turns(), [0; 0]);
    assert_eq!(garden.said, [words::hand_in::unwanted(RunId(3))]);

    // What cannot land where it stands may land on another main, and only there.
    let mut garden = Garden::new(REVIEWED);
    garden.hands_in(1, "x");
    garden.opened(1);
    garden.ci(1, red());
    garden.hands_in(2, "x");
    assert_eq!((garden.turns(), garden.outcome(2)), (vec![], Some(Outcome::Dropped)));
    garden.hands_in_files(3, HandInFiles { base: sha("c"), ..files(3, "x") });
    garden.hands_in_files(4, HandInFiles { base: sha("d"), ..files(4, "x") });
    assert_eq!((garden.turns(), garden.outcome(4)), (vec![3], Some(Outcome::Dropped)));
}

#[test]
fn a_pull_request_that_is_closed_in_the_queue_leaves_it_first() {
    let mut garden = Garden::new(UNREVIEWED);
    garden.hands_in(1, "x");
    garden.opened(1);
    garden.ci(1, CiVerdict::Passed);
    garden.observed(1, PrFact::Closed);
    assert_eq!(
        (garden.kinds(), garden.outcome(1)),
        (vec!["dequeue"], None),
        "the queue may say that it landed"
    );
    garden.observed(1, PrFact::Closed);
    assert_eq!(garden.outcome(1), Some(Outcome::Dismissed));
}

#[test]
fn a_branch_that_somebody_else_pushed_to_is_theirs() {
    let mut garden = Garden::new(REVIEWED);
    garden.hands_in(1, "x");
    garden.opened(1);
    assert!(garden.try_take(1, &Event::BranchTaken { commit: commit_of(1) }).is_err());
    garden.take(1, &Event::BranchTaken { commit: sha("d") });
    assert_eq!((garden.told(1), garden.kinds()), (Some(&Need::Taken), vec!["notify_need"]));
    garden.take(1, &Event::BranchTaken { commit: sha("d") });
    assert!(garden.ordered.is_empty(), "people are told once");
    let reviewed = contribution::Event::Reviewed {
        sha: commit_of(1),
        verdict: ReviewVerdict::Approve,
        by: "ann".to_owned(),
        by_agent: false,
        body: String::new(),
    };
    assert!(garden.try_take(1, &Event::Contribution { about: reviewed }).is_err(), "it is not ours to land");
    garden.hands_in(2, "y");
    assert_eq!(garden.turns(), [0; 0]);
    garden.observed(1, PrFact::Merged { sha: sha("f") });
    assert_eq!((garden.outcome(1), garden.turns()), (Some(Outcome::Merged), vec![2]));
    for one in 0..30 {
        let mut landing = garden.run(2).landing().unwrap().clone();
        landing.puts(&commit_of(one));
        assert!(landing.ours.len() <= 20);
    }
}

#[test]
fn what_an_earlier_version_had_open_goes_on_in_its_runs() {
    let stored = serde_json::json!({
        "looked": 2, "dismissed": ["z"],
        "open": { "taken": files(1, "x"), "branch": "pointsman/gardener-1-abc", "pr": 7, "entry": 3,
            "told": { "need": "review", "commit": commit_of(1) }, "pushed": [sha("c")] },
        "newer": files(2, "y"),
    });
    let mut memory = Memory::read(1, &stored.to_string()).unwrap();
    let events = memory.hand_over();
    assert_eq!((memory.open, memory.newer, memory.dismissed), (None, None, vec!["z".to_owned()]));
    let mut garden = Garden::new(REVIEWED);
    for id in [1, 2] {
        garden.hands_in(id, "w");
        let run = garden.runs.last_mut().unwrap();
        (run.hand_in, run.looked_through) = (None, false);
    }
    for (id, event) in events {
        garden.take(id.0, &event);
    }
    let landing = garden.run(1).landing().unwrap();
    assert_eq!(
        (landing.contribution.pr(), landing.contribution.branch.as_str()),
        (Some(7), "pointsman/gardener-1-abc")
    );
    garden.pushed(1);
    assert_eq!((garden.kinds(), garden.said.len()), (vec!["run_checks"], 0), "it is there already");
    assert_eq!(garden.turns(), [2], "what was newer takes its place");
    assert!(garden.run(2).hand_in.as_ref().unwrap().owns(&sha("c")));
}

#[test]
fn a_ci_that_leaves_out_changes_without_code_is_no_hindrance_where_the_queue_tests() {
    let (notes, code) = (["AGENTS.md".to_owned()], ["AGENTS.md".to_owned(), "a.rs".to_owned()]);
    let quiet = UnreportedCi { begun: false, required: false, gate: true, files: &notes };
    for (unreported, expected) in [
        (quiet, true),
        (UnreportedCi { begun: true, ..quiet }, false),
        (UnreportedCi { required: true, ..quiet }, false),
        (UnreportedCi { gate: false, ..quiet }, false),
        (UnreportedCi { files: &code, ..quiet }, false),
    ] {
        assert_eq!(unreported.leaves_out(), expected, "{unreported:?}");
    }
}
