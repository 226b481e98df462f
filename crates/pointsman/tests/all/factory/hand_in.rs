//! What roles hand in, in the engine: the turns of runs, the merge queue, and what an earlier version left.

use pointsman::daemon::engine::Input;
use pointsman_core::config::Config;
use pointsman_core::formula::{Formula, shipped, variables};
use pointsman_core::hand_in::{HandInFiles, Memory, Outcome, Stage as At};
use pointsman_core::ids::{RunKey, Sha};
use pointsman_core::part::contribution;
use pointsman_core::role::Role;
use pointsman_core::run::{Event, Run, RunId, Status};
use pointsman_core::task::{Effect, PrFact};
use pointsman_store::{Change, RunScope};
use serde_json::json;

use super::{Stage, at, shop};

fn sha(digit: &str) -> Sha {
    Sha::new(&digit.repeat(40)).unwrap()
}

fn key(id: u64) -> RunKey {
    RunKey { project: shop(), role: Role::Gardener, id: RunId(id) }
}

fn files(id: u64, content: &str) -> HandInFiles {
    let (run, files) = (RunId(id), vec!["AGENTS.md".to_owned()]);
    let commit = Sha::new(&format!("{id:040x}")).unwrap();
    HandInFiles { run, commit, base: sha("b"), content: content.to_owned(), files }
}

impl Stage {
    fn remember(&mut self, name: &str, snapshot: serde_json::Value) {
        let mut change = Change::new(at(0), "remembered");
        change.project = Some(shop());
        change.memories.push(pointsman_store::Memory { name: name.to_owned(), version: 1, snapshot });
        self.engine.write(&[change]).unwrap();
    }

    /// A run that is done and put away, as an earlier version left it or as this one does.
    fn done_run(&mut self, id: u64) {
        let config: &Config = &self.config();
        let text = shipped("run-gardener").unwrap();
        let formula = Formula::render(text, "x", &variables(config)).unwrap();
        let mut run = Run::new(RunId(id), formula, config, "test", at(0));
        (run.status, run.ended_at) = (Status::Done, Some(at(0)));
        let mut change = Change::new(at(0), "run_finished");
        (change.project, change.run) = (Some(shop()), Some(run));
        self.engine.write(&[change]).unwrap();
    }

    fn tell(&mut self, id: u64, event: Event) {
        let taken = self.engine.take(&[Input::of_run(key(id), event)], at(1)).unwrap();
        taken.into_iter().for_each(|answer| answer.unwrap());
    }

    fn hands_in(&mut self, id: u64, content: &str) {
        self.done_run(id);
        self.tell(id, Event::HandedIn { files: Some(files(id, content)), refused: Vec::new() });
        self.engine.tick(at(1)).unwrap();
    }

    fn stored(&self, id: u64) -> Run {
        self.engine.store().run(&shop(), RunId(id)).unwrap().unwrap()
    }

    fn ordered(&self, id: u64) -> Vec<&'static str> {
        let pending = self.engine.store().pending_effects(&key(id).into()).unwrap();
        pending.iter().map(|outgoing| outgoing.effect.kind()).collect()
    }
}

#[test]
fn what_people_did_not_want_is_remembered_with_the_event_that_says_so() {
    let mut stage = Stage::new("");
    stage.hands_in(1, "x");
    assert_eq!(stage.ordered(1), ["sync_branch"]);
    let head = Some(files(1, "x").commit);
    for about in [
        contribution::Event::Pushed { head, protected: vec![], secret: None, risk: None },
        contribution::Event::Opened { number: 7 },
        contribution::Event::Observed { fact: PrFact::Closed },
    ] {
        stage.tell(1, Event::Contribution { about });
    }
    let over = stage.events("hand_in_over");
    assert_eq!((&over[0].data["outcome"], &over[0].data["pr"]), (&json!("dismissed"), &json!(7)));
    let mut stage = stage.restart();
    assert!(stage.engine.runs().is_empty(), "its run is through");
    stage.hands_in(2, "x");
    assert_eq!(stage.ordered(2), [""; 0]);
    assert!(matches!(stage.stored(2).hand_in.unwrap().stage, At::Over { outcome: Outcome::Dropped, .. }));
    stage.hands_in(3, "y");
    assert_eq!(stage.ordered(3), ["sync_branch"]);
}

#[test]
fn what_an_earlier_version_had_open_is_handed_to_its_runs_once() {
    let mut stage = Stage::new("");
    stage.done_run(5);
    stage.done_run(6);
    let memory = json!({
        "looked": 6, "dismissed": ["old"], "newer": files(6, "n"),
        "open": { "taken": files(5, "k"), "branch": "pointsman/gardener-5-aaaaaaaaaa", "pr": 12, "entry": 8,
            "left": false, "told": null, "pushed": [sha("c")] },
    });
    stage.remember("hand-in.gardener", memory);
    stage.engine.tick(at(1)).unwrap();
    assert!(stage.engine.runs().is_empty(), "not before it is handed over");
    for _ in 0..2 {
        pointsman::daemon::adopt_hand_ins(&mut stage.engine, &shop(), at(1)).unwrap();
        let left: Memory = stage.engine.store().memory(&shop(), "hand-in.gardener").unwrap().unwrap();
        assert_eq!((left.open, left.newer, left.dismissed), (None, None, vec!["old".to_owned()]));
        assert_eq!(stage.ordered(5), ["sync_branch"], "once");
    }
    let run = stage.stored(5);
    let landing = run.landing().unwrap();
    assert_eq!((landing.contribution.pr(), &landing.ours), (Some(12), &vec![sha("c")]));
    // What was newer takes its place.
    stage.engine.tick(at(1)).unwrap();
    let open = stage.engine.store().runs(&shop(), RunScope::Open).unwrap();
    assert_eq!(open.iter().map(|run| run.id).collect::<Vec<_>>(), [RunId(6)]);
    assert_eq!(open[0].contribution().unwrap().branch, "pointsman/gardener-5-aaaaaaaaaa");
    assert_eq!(stage.ordered(6), ["sync_branch"]);
}

#[test]
fn a_memory_that_cannot_be_read_is_neither_forgotten_nor_written_over() {
    let mut stage = Stage::new("");
    stage.remember("hand-in.gardener", json!({ "open_pull_request": 12 }));
    pointsman::daemon::adopt_hand_ins(&mut stage.engine, &shop(), at(1)).unwrap();
    stage.hands_in(6, "x");
    assert_eq!(stage.ordered(6), [""; 0], "nobody knows whether it is wanted");
    assert_eq!(stage.stored(6).hand_in.unwrap().stage, At::Waiting);
    assert_eq!(stage.engine.store().unreadable().unwrap().len(), 1, "it is still there");
    // Once somebody has seen to it, it goes on.
    stage.remember("hand-in.gardener", json!({}));
    stage.engine.tick(at(2)).unwrap();
    assert_eq!(stage.ordered(6), ["sync_branch"]);
    assert!(matches!(stage.stored(6).hand_in.unwrap().stage, At::Open(_)));
    let outgoing = stage.engine.store().pending_effects(&key(6).into()).unwrap();
    assert_eq!(outgoing[0].effect, Effect::SyncBranch);
}
