use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pointsman_adapters::process::start_time;
use pointsman_adapters::watch::exits::{Error, ExitWatch, Exited};

use crate::deadline::{eventually, next};

fn sleeper() -> (Child, u64) {
    let child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let started = start_time(child.id()).unwrap();
    (child, started)
}

fn watch() -> (ExitWatch, mpsc::Receiver<(Exited, Instant)>) {
    let (sender, events) = mpsc::channel();
    let watch = ExitWatch::start(move |exited| {
        let _ = sender.send((exited, Instant::now()));
    });
    (watch.unwrap(), events)
}

#[test]
fn an_end_is_told_at_once_even_before_the_parent_collects_it() {
    let (watch, events) = watch();
    let (mut child, started) = sleeper();
    watch.watch("dev-shop-4", child.id(), started).unwrap();
    let killed = Instant::now();
    child.kill().unwrap();
    let (exited, told) = next(&events);
    assert_eq!(exited, Exited { key: "dev-shop-4".to_owned(), pid: child.id() });
    assert!(told - killed < Duration::from_secs(1));
    assert!(watch.is_empty());
    child.wait().unwrap();
}

#[test]
fn a_process_that_is_gone_or_another_one_cannot_be_watched() {
    let (watch, _events) = watch();
    let (mut child, started) = sleeper();
    let pid = child.id();
    assert!(matches!(watch.watch("a", pid, started + 1), Err(Error::AlreadyGone { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(watch.watch("a", pid, started), Err(Error::AlreadyGone { .. })));
    assert!(matches!(watch.watch("a", u32::MAX, started), Err(Error::AlreadyGone { .. })));
    assert!(watch.is_empty());
}

#[test]
fn a_forgotten_or_replaced_watch_stays_silent() {
    let (watch, events) = watch();
    let (mut old, old_started) = sleeper();
    let (mut new, new_started) = sleeper();
    let (mut other, other_started) = sleeper();
    watch.watch("same", old.id(), old_started).unwrap();
    watch.watch("same", new.id(), new_started).unwrap();
    watch.watch("other", other.id(), other_started).unwrap();
    watch.forget("other");
    assert_eq!(watch.len(), 1);
    for child in [&mut old, &mut other, &mut new] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(next(&events).0.pid, new.id());
    drop(watch);
    assert!(events.recv().is_err(), "one end was told, and the thread has ended");
}

#[test]
fn hundreds_at_once_are_all_told() {
    let (watch, events) = watch();
    let mut children: Vec<(Child, u64)> = (0..200).map(|_| sleeper()).collect();
    for (nth, (child, started)) in children.iter().enumerate() {
        watch.watch(nth.to_string(), child.id(), *started).unwrap();
    }
    for (child, _) in &mut children {
        child.kill().unwrap();
    }
    let mut told: Vec<usize> = children.iter().map(|_| next(&events).0.key.parse().unwrap()).collect();
    told.sort_unstable();
    assert_eq!(told, (0..200).collect::<Vec<_>>());
    for (child, _) in &mut children {
        child.wait().unwrap();
    }
    eventually("nothing is left", || watch.is_empty().then_some(()));
}
