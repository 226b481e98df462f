//! Runs of formulas: numbered, written with their event, found while they are open and by their formula.

use pointsman_core::config::Config;
use pointsman_core::formula::{Formula, SHIPPED, variables};
use pointsman_core::ids::Sha;
use pointsman_core::role::Role;
use pointsman_core::run::{Event, Policy, Run, RunId, Subject, step};
use pointsman_store::{Change, RunScope, Store};

use crate::world::{at, project};

fn begin(store: &mut Store, config: &Config, place: usize) -> Run {
    let (name, text) = SHIPPED[place];
    let formula = Formula::render(text, name, &variables(config)).unwrap();
    let id = store.next_run(&config.name).unwrap();
    let run = Run::new(id, formula, config, "ann", at(1));
    write(store, &run);
    run
}

fn write(store: &mut Store, run: &Run) {
    let mut change = Change::new(at(2), "run_changed");
    change.project = Some(run.project.clone());
    change.run = Some(run.clone());
    store.commit(&[change]).unwrap();
}

pub(crate) fn runs_are_numbered_and_found(store: &mut Store) {
    let config = Config::parse("name = \"shop\"\n", "p.toml").unwrap();
    let first = begin(store, &config, 0);
    let second = begin(store, &config, 1);
    let third = begin(store, &config, 0);
    assert_eq!([first.id, second.id, third.id], [RunId(1), RunId(2), RunId(3)]);
    assert_eq!(store.next_run(&project("harbour")).unwrap(), RunId(1));
    let shop = project("shop");
    assert_eq!(store.run(&shop, RunId(2)).unwrap(), Some(second.clone()));
    assert_eq!(store.last_run(&shop, SHIPPED[0].0).unwrap(), Some(third.clone()));
    assert_eq!(store.last_run(&shop, "nothing").unwrap(), None);
    let policy = Policy::new(&config, Role::Action);
    let stopped = step(&first, &Event::Stopped { by: "ann".to_owned() }, &policy, at(3)).unwrap().run;
    write(store, &stopped);
    assert_eq!(store.runs(&shop, RunScope::Open).unwrap().len(), 3, "its session is still to be put away");
    let away = step(&stopped, &Event::CleanedUp, &policy, at(4)).unwrap().run;
    write(store, &away);
    assert_eq!(store.runs(&shop, RunScope::Open).unwrap(), [second.clone(), third.clone()]);
    assert_eq!(store.runs(&shop, RunScope::Last(2)).unwrap(), [second, third.clone()]);
    let sha = Sha::new(&"a".repeat(40)).unwrap();
    let about = Some(Subject::Review { pr: 5, sha, inputs: "x".to_owned() });
    let fourth = Run { id: RunId(4), ..third }.about(about);
    assert_eq!(store.runs_about(&shop, "review/5").unwrap(), []);
    write(store, &fourth);
    assert_eq!(store.runs_about(&shop, "review/5").unwrap(), [fourth]);
    assert_eq!(store.runs_about(&project("harbour"), "review/5").unwrap(), []);
}
