//! The roles that work by rules, on a clock of our own and with figures of our own: the engine and the store are real,
//! what was seen of the world is given.

mod gardener;
mod hand_in;
mod planner;
mod predictor;
mod supervisor;

use std::sync::Arc;

use pointsman::daemon::engine::{Engine, Input};
use pointsman_core::config::Config;
use pointsman_core::ids::{ProjectName, RoleKey};
use pointsman_core::part::session;
use pointsman_core::role::Role;
use pointsman_core::run::{Event, Run};
use pointsman_core::task::{Effect, Exit};
use pointsman_core::time::Timestamp;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::{Change, EventFilter, EventRow, NoticeRow, ProjectRow, RunScope, Store, Write};

const MINUTE: i64 = 60_000;
/// 2026-03-23, a Monday, 00:00 UTC.
const MONDAY: i64 = 20_535 * 24 * 60 * MINUTE;

struct Stage {
    engine: Engine,
    directory: tempfile::TempDir,
    more: String,
}

impl Stage {
    fn new(more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("db")).unwrap();
        let project = ProjectRow {
            name: shop(),
            config_path: directory.path().join("pointsman.toml"),
            checkout: directory.path().to_owned(),
            added_at: Timestamp(0),
        };
        let mut added = Change::new(Timestamp(0), "project_added");
        added.writes.push(Write::ProjectAdded(project));
        store.commit(&[added]).unwrap();
        Self { engine: serve(store, more), directory, more: more.to_owned() }
    }

    /// A new daemon on the same disk.
    fn restart(self) -> Self {
        let Self { engine, directory, more } = self;
        drop(engine);
        let store = Store::open(&directory.path().join("db")).unwrap();
        Self { engine: serve(store, &more), directory, more }
    }

    fn config(&self) -> Arc<Config> {
        self.engine.config(&shop()).unwrap()
    }

    /// All runs there ever were.
    fn runs(&mut self) -> Vec<Run> {
        self.engine.store().runs(&shop(), RunScope::Last(1000)).unwrap()
    }

    /// A run is ended, and its session is gone; answers the run as it is then.
    fn end_run(&mut self, run: &Run, minute: i64) -> Run {
        let generation = run.session.generation;
        let ended = session::Event::Ended { exit: Exit::Stopped, tail: String::new() };
        let stopped = Event::Stopped { by: "test".to_owned() };
        for event in [stopped, Event::Session { generation, told: ended }, Event::CleanedUp] {
            let taken = self.engine.take(&[Input::of_run(run.key(), event)], at(minute)).unwrap();
            taken.into_iter().for_each(|answer| answer.unwrap());
        }
        self.engine.store().run(&run.project, run.id).unwrap().unwrap()
    }

    /// Whatever is under way is over, and its sessions are gone.
    fn end_runs(&mut self, minute: i64) -> Vec<Run> {
        let open = self.engine.store().runs(&shop(), RunScope::Open).unwrap();
        for run in &open {
            self.end_run(run, minute);
        }
        open
    }

    /// Oldest first.
    fn notices(&mut self) -> Vec<NoticeRow> {
        let mut notices = self.engine.store().notices(Some(&shop()), 1000).unwrap();
        notices.reverse();
        notices
    }

    /// The orders of a role that are not carried out yet.
    fn orders_of(&mut self, role: Role) -> Vec<Effect> {
        let id = WorkflowId::Role(RoleKey { project: shop(), role });
        let pending = self.engine.store().pending_effects(&id).unwrap();
        pending.into_iter().map(|outgoing| outgoing.effect).collect()
    }

    /// The titles of what a role tells people.
    fn told_by(&mut self, role: Role) -> Vec<String> {
        let orders = self.orders_of(role).into_iter();
        orders
            .filter_map(|effect| if let Effect::Notify(notice) = effect { Some(notice.title) } else { None })
            .collect()
    }

    /// The names of the deeds that a role has ordered.
    fn deeds_of(&mut self, role: Role) -> Vec<String> {
        let orders = self.orders_of(role).into_iter();
        orders
            .filter_map(|effect| if let Effect::Deed { name, .. } = effect { Some(name) } else { None })
            .collect()
    }

    fn events(&mut self, kind: &str) -> Vec<EventRow> {
        let filter = EventFilter { kinds: vec![kind.to_owned()], ..EventFilter::default() };
        self.engine.store().events(&filter).unwrap()
    }
}

fn serve(store: Store, more: &str) -> Engine {
    let mut engine = Engine::open(store).unwrap();
    let config = Config::parse(&format!("name = \"shop\"\n{more}"), "test").unwrap();
    engine.serve([Arc::new(config)]);
    engine
}

fn shop() -> ProjectName {
    ProjectName::new("shop").unwrap()
}

fn at(minute: i64) -> Timestamp {
    Timestamp(MONDAY + minute * MINUTE)
}
