//! Formulas that run by themselves, on a clock of our own: what is written down is what a week would have brought.

use std::path::Path;
use std::sync::Arc;

use pointsman::daemon::engine::{Engine, Input};
use pointsman::daemon::timetable::{ProjectFacts, SystemZone, remembered, tick};
use pointsman_core::config::Config;
use pointsman_core::ids::ProjectName;
use pointsman_core::part::session;
use pointsman_core::run::{Event, Run};
use pointsman_core::task::Exit;
use pointsman_core::time::Timestamp;
use pointsman_core::timetable::Zone;
use pointsman_store::{Change, ProjectRow, RunScope, Store, Write};
use pointsman_testkit::not_run;

const MINUTE: i64 = 60_000;
/// 2026-03-23, a Monday, 00:00 UTC: the week in which Berlin's clocks go forward.
const MONDAY: i64 = 20_535 * 24 * 60 * MINUTE;
const FORMULA: &str = "name = \"tidy\"\ndescription = \"Tidies\"\nversion = 1\n[[steps]]\nid = \"look\"\n\
    title = \"Look\"\ndescription = \"Look.\"\n";

struct Stage {
    engine: Engine,
    directory: tempfile::TempDir,
    standing: ProjectFacts,
}

impl Stage {
    fn new(more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("formulas")).unwrap();
        std::fs::write(directory.path().join("formulas/tidy.toml"), FORMULA).unwrap();
        let engine = open(directory.path(), more);
        let standing = ProjectFacts { free_memory_mb: Some(8000), inputs: "a".to_owned() };
        Self { engine, directory, standing }
    }

    /// Looks at this minute; a run that began is over a minute later.
    fn look(&mut self, minute: i64) -> usize {
        let now = Timestamp(MONDAY + minute * MINUTE);
        for run in self.engine.store().runs(&shop(), RunScope::Open).unwrap() {
            let generation = run.session.generation;
            let ended = session::Event::Ended { exit: Exit::Stopped, tail: String::new() };
            let stopped = Event::Stopped { by: "test".to_owned() };
            for event in [stopped, Event::Session { generation, told: ended }, Event::CleanedUp] {
                let taken = self.engine.take(&[Input::of_run(run.key(), event)], now).unwrap();
                taken.into_iter().for_each(|answer| answer.unwrap());
            }
        }
        tick(&mut self.engine, &shop(), &self.standing, now).unwrap()
    }

    fn runs(&mut self) -> Vec<Run> {
        self.engine.store().runs(&shop(), RunScope::Last(1000)).unwrap()
    }

    fn skipped_because(&mut self) -> Option<String> {
        remembered(self.engine.store(), &shop(), "tidy").unwrap().unwrap().skipped_because
    }
}

fn shop() -> ProjectName {
    ProjectName::new("shop").unwrap()
}

fn open(directory: &Path, more: &str) -> Engine {
    let mut store = Store::open(&directory.join("db")).unwrap();
    let project = ProjectRow {
        name: shop(),
        config_path: directory.join("pointsman.toml"),
        checkout: directory.to_owned(),
        added_at: Timestamp(0),
    };
    let mut added = Change::new(Timestamp(0), "project_added");
    added.writes.push(Write::ProjectAdded(project));
    store.commit(&[added]).unwrap();
    let mut engine = Engine::open(store).unwrap();
    let config = Config::parse(&format!("name = \"shop\"\n{more}"), "test").unwrap();
    engine.serve([Arc::new(config)]);
    engine
}

#[test]
fn a_week_by_the_clock_of_a_place() {
    let more = "[schedule]\ntimezone = \"Europe/Berlin\"\n[schedule.formulas]\ntidy = \"30 2 * * *\"\n";
    let mut stage = Stage::new(more);
    if SystemZone::find("Europe/Berlin").is_none() {
        return not_run("tzdata", "this machine knows no time zones");
    }
    let begun: usize = (0..8 * 24 * 60).map(|minute| stage.look(minute)).sum();
    assert_eq!(begun, 8);
    let times: Vec<i64> =
        stage.runs().iter().map(|run| (run.started_at.0 - MONDAY) / MINUTE % (24 * 60)).collect();
    // On Sunday 02:30 is never shown; from then on Berlin is two hours ahead.
    assert_eq!(times, [90, 90, 90, 90, 90, 90, 90, 30]);
    assert!(stage.runs().iter().all(|run| run.by == "schedule" && run.formula.name == "tidy"));
}

#[test]
fn a_time_is_used_once_however_often_the_daemon_starts() {
    let more = "[schedule.formulas]\ntidy = \"0 6 * * *\"\n";
    let mut stage = Stage::new(more);
    stage.look(0);
    assert_eq!(stage.look(6 * 60), 1);
    // The same minute, a new daemon on the same disk.
    let Stage { engine, directory, standing } = stage;
    drop(engine);
    let mut again = Stage { engine: open(directory.path(), more), directory, standing };
    assert_eq!((again.look(6 * 60), again.look(6 * 60 + 1)), (0, 0));
    // Three days nobody looked: one run makes up for them.
    assert_eq!(again.look(3 * 24 * 60 + 13 * 60), 1);
    assert_eq!(again.look(3 * 24 * 60 + 13 * 60 + 1), 0);
    assert_eq!(again.runs().len(), 2);
}

#[test]
fn what_stands_in_the_way_is_remembered() {
    let more = "[schedule]\nonly_if_changed = [\"tidy\"]\n[schedule.formulas]\ntidy = \"0 * * * *\"\n";
    let mut stage = Stage::new(more);
    stage.look(0);
    stage.standing.free_memory_mb = Some(100);
    assert_eq!(stage.look(60), 0);
    assert_eq!(stage.skipped_because().as_deref(), Some("only 100 MB of memory are free, less than 2000 MB"));
    stage.standing.free_memory_mb = Some(8000);
    assert_eq!((stage.look(90), stage.look(120)), (0, 1), "that time was passed over, the next is used");
    assert_eq!(stage.skipped_because(), None);
    assert_eq!(stage.look(180), 0);
    assert_eq!(stage.skipped_because().as_deref(), Some("nothing has changed since the last run"));
    stage.standing.inputs = "b".to_owned();
    assert_eq!(stage.look(240), 1);
    // A formula that is broken is no reason to stop, and is said.
    std::fs::write(stage.directory.path().join("formulas/tidy.toml"), "name = 1").unwrap();
    stage.standing.inputs = "c".to_owned();
    assert_eq!(stage.look(300), 0);
    assert!(stage.skipped_because().unwrap().contains("tidy.toml:1"), "{:?}", stage.skipped_because());
}

#[test]
fn a_place_shows_the_time_and_finds_it() {
    let Some(berlin) = SystemZone::find("Europe/Berlin") else {
        return not_run("tzdata", "this machine knows no time zones");
    };
    for minute in [0, 6 * 24 * 60 + 59, 6 * 24 * 60 + 61, 200 * 24 * 60] {
        let at = Timestamp(MONDAY + minute * MINUTE);
        assert_eq!(berlin.utc(berlin.local(at)), at);
    }
    assert!(SystemZone::find("Nowhere/Town").is_none());
}
