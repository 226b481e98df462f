//! Messages for hooks, and the message socket of a session.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use pointsman_adapters::claude::hook_messages::{HookMessageStatus, HookMessages};
use pointsman_adapters::claude::socket::Socket;

use crate::deadline::eventually;

/// Long enough for a test that would wait for ever otherwise.
const LIMIT: Duration = Duration::from_secs(20);

fn hook_inbox() -> (tempfile::TempDir, HookMessages) {
    let dir = tempfile::tempdir().unwrap();
    let hook_inbox = HookMessages::at(dir.path().join("mail"));
    hook_inbox.create().unwrap();
    (dir, hook_inbox)
}

#[test]
fn letters_are_taken_once_and_in_the_order_of_their_numbers() {
    let (_dir, hook_inbox) = hook_inbox();
    assert_eq!((hook_inbox.take(), hook_inbox.message_status("m-9-1")), (vec![], None));
    for (name, line) in [("m-10-1", "ten"), ("m-9-2", "nine again"), ("m-9-1", "nine\n")] {
        assert_eq!(hook_inbox.offer(name, line).unwrap(), HookMessageStatus::Offered);
    }
    assert_eq!(hook_inbox.take(), ["nine", "nine again", "ten"]);
    assert_eq!(hook_inbox.take(), Vec::<String>::new());
    assert_eq!(hook_inbox.offer("m-9-1", "nine").unwrap(), HookMessageStatus::Taken, "not a second time");
    assert!(!hook_inbox.withdraw("m-9-1").unwrap(), "it is too late");
}

#[test]
fn a_letter_has_one_owner_whoever_is_faster() {
    let (_dir, hook_inbox) = hook_inbox();
    for round in 0..200 {
        let name = format!("m-{round}-1");
        hook_inbox.offer(&name, "hello").unwrap();
        let (taken, back) = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..2).map(|_| scope.spawn(|| hook_inbox.take().len())).collect();
            let back = scope.spawn(|| hook_inbox.withdraw(&name).unwrap());
            let taken: usize = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
            (taken, back.join().unwrap())
        });
        assert_eq!(taken + usize::from(back), 1, "round {round}");
        let expected = if back { HookMessageStatus::Withdrawn } else { HookMessageStatus::Taken };
        assert_eq!(hook_inbox.message_status(&name), Some(expected));
    }
}

#[test]
fn a_letter_that_goes_another_way_is_written_down_first() {
    let (_dir, hook_inbox) = hook_inbox();
    assert!(hook_inbox.give("m-1-1").unwrap());
    assert!(!hook_inbox.give("m-1-1").unwrap(), "once");
    assert_eq!(hook_inbox.offer("m-1-1", "hello").unwrap(), HookMessageStatus::Given);
    assert_eq!(hook_inbox.take(), Vec::<String>::new());
}

#[test]
fn a_letter_wakes_the_one_who_waits() {
    let (_dir, hook_inbox) = hook_inbox();
    assert!(!hook_inbox.has_waiter());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| hook_inbox.wait(LIMIT).unwrap());
        eventually("somebody waits", || hook_inbox.has_waiter().then_some(()));
        assert_eq!(hook_inbox.wait(LIMIT).unwrap(), Vec::<String>::new(), "there is one already");
        hook_inbox.offer("m-1-1", "hello").unwrap();
        assert_eq!(waiter.join().unwrap(), ["hello"]);
    });
    assert!(!hook_inbox.has_waiter());
    hook_inbox.offer("m-2-1", "early").unwrap();
    assert_eq!(hook_inbox.wait(LIMIT).unwrap(), ["early"], "it was there before");
    assert_eq!(hook_inbox.wait(Duration::ZERO).unwrap(), Vec::<String>::new());
}

#[test]
fn nobody_waits_in_a_mailbox_that_is_not_there_or_goes_away() {
    let dir = tempfile::tempdir().unwrap();
    assert!(HookMessages::at(dir.path().join("none")).wait(LIMIT).is_err());
    let (_dir, hook_inbox) = hook_inbox();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| hook_inbox.wait(LIMIT).unwrap());
        eventually("somebody waits", || hook_inbox.has_waiter().then_some(()));
        std::fs::remove_dir_all(_dir.path().join("mail")).unwrap();
        assert_eq!(waiter.join().unwrap(), Vec::<String>::new());
    });
}

#[test]
fn a_socket_is_spoken_to_only_if_the_session_itself_listens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut other = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    assert!(Socket::connect(&path, other.id()).is_err(), "another process was meant");
    drop(other.stdin.take());
    other.wait().unwrap();
    let socket = Socket::connect(&path, std::process::id()).unwrap();
    socket.send("[pointsman m-7] CI\u{1b}[31m passed.\n{\"type\":\"control\"}").unwrap();
    let (_refused, _) = listener.accept().unwrap();
    let (stream, _) = listener.accept().unwrap();
    let lines: Vec<String> = BufReader::new(stream).lines().map(Result::unwrap).collect();
    assert_eq!(lines.len(), 1, "one line, whatever is in it: {lines:?}");
    let sent: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(sent["message"]["content"], "[pointsman m-7] CI [31m passed. {\"type\":\"control\"}");
    assert!(Socket::connect(&dir.path().join("none"), 1).is_err());
}

#[test]
fn a_link_or_a_pipe_of_the_session_among_its_messages_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, dir.path().join("mail")).unwrap();
    let messages = HookMessages::at(dir.path().join("mail"));
    assert!(messages.offer("m-1", "line").is_err());
    assert!(messages.give("m-1").is_err());
    std::fs::write(elsewhere.join("m-2.offered"), "of another").unwrap();
    assert!(messages.withdraw("m-2").is_err());
    assert!(messages.take().is_empty());
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1);
    std::fs::remove_file(dir.path().join("mail")).unwrap();
    messages.create().unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("mail/waiter"), mode).unwrap();
    assert!(!messages.has_waiter(), "it is not waited for");
}
