use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc;

use pointsman_adapters::watch::files::{FileEvent, FileWatch};
use tempfile::TempDir;

use crate::deadline::next;

fn watch() -> (FileWatch, mpsc::Receiver<FileEvent>) {
    let (sender, events) = mpsc::channel();
    let watch = FileWatch::start(move |event| {
        let _ = sender.send(event);
    });
    (watch.unwrap(), events)
}

fn watched(name: &str) -> (TempDir, PathBuf, FileWatch, mpsc::Receiver<FileEvent>) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join(name);
    let (watch, events) = watch();
    watch.watch_dir(dir.path()).unwrap();
    watch.register(&path);
    (dir, path, watch, events)
}

#[test]
fn a_file_is_told_when_its_writer_closes_it() {
    let (dir, path, _watch, events) = watched("a.phase");
    let mut file = File::create(&path).unwrap();
    file.write_all(b"PHASE:").unwrap();
    // A neighbour nobody asked about, and an unfinished write: the first event is still to come.
    fs::write(dir.path().join("b.phase"), "x").unwrap();
    assert!(events.try_recv().is_err());
    file.write_all(b"done\n").unwrap();
    drop(file);
    assert_eq!(next(&events), FileEvent::Changed(path.clone()));

    fs::write(dir.path().join("new"), "PHASE:failed\n").unwrap();
    fs::rename(dir.path().join("new"), &path).unwrap();
    assert_eq!(next(&events), FileEvent::Changed(path.clone()));
    fs::remove_file(&path).unwrap();
    assert_eq!(next(&events), FileEvent::Changed(path));
}

#[test]
fn an_unregistered_file_is_silent() {
    let (dir, path, watch, events) = watched("a.phase");
    let other = dir.path().join("b.phase");
    watch.register(&other);
    watch.unregister(&path);
    fs::write(&path, "x").unwrap();
    fs::write(&other, "x").unwrap();
    assert_eq!(next(&events), FileEvent::Changed(other));
    drop(watch);
    assert!(events.recv().is_err(), "nothing more, and the thread has ended");
}

#[test]
fn a_directory_that_goes_is_told_once_and_can_be_watched_again() {
    let (dir, path, watch, events) = watched("a.phase");
    let place = dir.path().to_owned();
    assert!(watch.watch_dir(place.join("missing")).is_err());
    fs::remove_dir(&place).unwrap();
    assert_eq!(next(&events), FileEvent::Gone(place.clone()));
    fs::create_dir(&place).unwrap();
    watch.watch_dir(&place).unwrap();
    fs::write(&path, "x").unwrap();
    assert_eq!(next(&events), FileEvent::Changed(path));
}

#[test]
fn an_overflow_is_told() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let (sender, events) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    // The thread is held in its first callback until the kernel's queue has run over.
    let watch = FileWatch::start(move |event| {
        let _ = sender.send(event);
        let _ = held.recv();
    })
    .unwrap();
    watch.watch_dir(dir.path()).unwrap();
    watch.register(&one);
    fs::write(&one, "x").unwrap();
    assert_eq!(next(&events), FileEvent::Changed(one.clone()));
    let queue: usize =
        fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    // Renames, because the kernel merges equal neighbours and a write is told only when every copy of its descriptor
    // is closed, also those in a child that another test is just starting.
    for _ in 0..queue {
        fs::rename(&one, &two).unwrap();
        fs::rename(&two, &one).unwrap();
    }
    drop(release);
    while next(&events) != FileEvent::Overflow {}
}
