use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman_adapters::tmux::{Error, MESSAGE_LIMIT, Sent, Started, clean_line};
use rustix::process::{Pid, Signal, kill_process};

use super::Rig;
use crate::deadline::eventually;

/// A program that writes every line it is given to a file, and first asks for bracketed paste if told so.
fn listener(rig: &Rig, bracketed: bool) -> (Started, PathBuf) {
    let heard = rig.path().join("heard");
    let ask = if bracketed { r"printf '\033[?2004h'; " } else { "" };
    let script = format!("{ask}: >\"$0\"; stty -echo; echo ready; exec cat >>\"$0\"");
    let started = rig.start("dev-shop-4", &["sh", "-c", &script, heard.to_str().unwrap()]);
    eventually("the listener is ready", || rig.shows("dev-shop-4", "ready").then_some(()));
    (started, heard)
}

#[track_caller]
fn hears(heard: &Path, expected: &str) {
    eventually(&format!("{expected:?} is heard"), || {
        (fs::read_to_string(heard).unwrap() == expected).then_some(())
    });
}

const HOSTILE: &str =
    "-x #(touch x) #{pid} $(id) `id` ; Enter; C-c 'q\" \\ ~ %1 {a} \x1b[201~\u{9b}31m\r\n!rm ü;";

#[test]
fn a_hostile_text_is_typed_as_one_harmless_line() {
    let rig = Rig::new();
    let (pane, heard) = listener(&rig, false);
    assert_eq!(rig.server.send_message(&pane.pane_id, "e1", "m-1", HOSTILE).unwrap(), Sent::Sent);
    let expected = "-x #(touch x) #{pid} $(id) `id` ; Enter; C-c 'q\" \\ ~ %1 {a} [201~ 31m !rm ü;";
    hears(&heard, &format!("{expected}\n"));
    let long = "0123456789".repeat(1000);
    assert_eq!(rig.server.send_message(&pane.pane_id, "e1", "m-2", &long).unwrap(), Sent::Sent);
    hears(&heard, &format!("{expected}\n{}\n", &long[..MESSAGE_LIMIT]));
    assert!(matches!(
        rig.server.send_message(&pane.pane_id, "e1", "m-3", "\x1b\n"),
        Err(Error::EmptyMessage)
    ));
    assert!(!rig.path().join("x").exists() && !Path::new("/x").exists());
    assert_eq!(rig.tmux(&["list-buffers"]), "", "no buffer stays");
    let left = fs::read_dir(rig.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("message-"));
    assert_eq!(left.count(), 0, "no file stays");
}

#[test]
fn the_longest_message_fits_into_a_line_of_the_terminal() {
    let rig = Rig::new();
    let (pane, heard) = listener(&rig, false);
    let text = clean_line(&"\u{1f600}".repeat(5000));
    assert_eq!(rig.server.send_message(&pane.pane_id, "e1", "m-1", &text).unwrap(), Sent::Sent);
    hears(&heard, &format!("{text}\n"));
}

#[test]
fn a_program_that_wants_brackets_gets_them_and_enter_behind() {
    let rig = Rig::new();
    let (pane, heard) = listener(&rig, true);
    assert_eq!(rig.server.send_message(&pane.pane_id, "e1", "m-1", "hello").unwrap(), Sent::Sent);
    hears(&heard, "\x1b[200~hello\x1b[201~\n");
}

#[test]
fn a_message_reaches_a_pane_in_which_someone_scrolls() {
    let rig = Rig::new();
    let (pane, heard) = listener(&rig, false);
    rig.tmux(&["copy-mode", "-t", "=dev-shop-4:"]);
    assert_eq!(rig.server.send_message(&pane.pane_id, "e1", "m-1", "hello").unwrap(), Sent::Sent);
    hears(&heard, "hello\n");
}

#[test]
fn a_runtime_directory_with_a_format_in_its_name_works_too() {
    let rig = Rig::cold("a #[x] #{pid}");
    rig.server.ensure_running().unwrap();
    let (pane, heard) = listener(&rig, false);
    assert_eq!(rig.server.send_message(&pane.pane_id, "e1", "m-1", "hello").unwrap(), Sent::Sent);
    assert_eq!(rig.server.send_message(&pane.pane_id, "e1", "m-1", "hello").unwrap(), Sent::Duplicate);
    hears(&heard, "hello\n");
}

#[test]
fn an_operation_is_done_once_and_only_in_its_own_epoch() {
    let rig = Rig::new();
    let (pane, heard) = listener(&rig, false);
    let send =
        |epoch: &str, op: &str, text: &str| rig.server.send_message(&pane.pane_id, epoch, op, text).unwrap();
    assert_eq!(send("e1", "m-1", "one"), Sent::Sent);
    assert_eq!(send("e1", "m-2", "two"), Sent::Sent);
    assert_eq!(send("e1", "m-1", "one"), Sent::Duplicate, "also when another came between");
    assert_eq!(send("e0", "m-3", "late"), Sent::StaleEpoch);
    assert_eq!(
        rig.server.send_message(&"%999".parse().unwrap(), "e1", "m-3", "x").unwrap(),
        Sent::StaleEpoch
    );
    assert!(rig.server.send_message(&pane.pane_id, "e1", "m},1", "x").is_err());
    assert_eq!(send("e1", "m-4", "end"), Sent::Sent);
    hears(&heard, "one\ntwo\nend\n");
}

#[test]
fn a_dead_pane_gets_nothing() {
    let rig = Rig::new();
    let started = rig.start("dev-shop-4", &["sh", "-c", "exit 0"]);
    eventually("the pane is dead", || rig.server.find("dev-shop-4").unwrap().unwrap().exit);
    assert_eq!(rig.server.send_message(&started.pane_id, "e1", "m-1", "hello").unwrap(), Sent::Dead);
    assert_eq!(rig.tmux(&["list-buffers"]), "");
}

#[test]
fn killed_clients_neither_lose_nor_double_a_message() {
    const MESSAGES: usize = 200;
    let rig = Rig::new();
    let (pane, heard) = listener(&rig, false);
    let over = AtomicBool::new(false);
    let (mut killed, mut repeated) = (0, 0);
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut killed = 0;
            while !over.load(Ordering::Relaxed) {
                // All clients of this private server are the adapter's.
                for client in rig.tmux(&["list-clients", "-F", "#{client_pid}"]).lines() {
                    let pid = Pid::from_raw(client.parse().unwrap()).unwrap();
                    killed += usize::from(kill_process(pid, Signal::KILL).is_ok());
                }
            }
            killed
        });
        for nth in 0..MESSAGES {
            let (op, text) = (format!("m-{nth}"), format!("message {nth}"));
            // As the outbox does it: again with the same operation until the answer is clear.
            while let Err(error) = rig.server.send_message(&pane.pane_id, "e1", &op, &text) {
                assert!(matches!(error, Error::Interrupted { .. }), "{error:?}");
                repeated += 1;
            }
        }
        over.store(true, Ordering::Relaxed);
        killed = killer.join().unwrap();
    });
    assert!(killed > 0, "the test must have something to survive");
    let expected: String = (0..MESSAGES).map(|nth| format!("message {nth}\n")).collect();
    eventually(&format!("all is heard once; {killed} clients killed, {repeated} calls repeated"), || {
        (fs::read_to_string(&heard).unwrap() == expected).then_some(())
    });
}

#[test]
fn a_paste_waits_for_its_enter_and_enter_for_a_clear_screen() {
    let rig = Rig::new();
    let (pane, heard) = listener(&rig, false);
    let id = &pane.pane_id;
    assert_eq!(rig.server.paste_message(id, "e1", "m-1", "hello").unwrap(), Sent::Sent);
    assert_eq!(rig.server.paste_message(id, "e1", "m-1", "hello").unwrap(), Sent::Duplicate);
    let keys = ["Esc to cancel", "Enter to confirm"];
    assert_eq!(rig.server.press_enter_unless(id, "e2", &keys).unwrap(), Sent::StaleEpoch);
    assert_eq!(rig.server.press_enter_unless(id, "e1", &["ready"]).unwrap(), Sent::Refused, "it is shown");
    assert_eq!(rig.server.press_enter_unless(id, "e1", &["Esc to cancel", "ready"]).unwrap(), Sent::Refused);
    assert_eq!(fs::read_to_string(&heard).unwrap(), "", "no Enter, no line");
    assert_eq!(rig.server.press_enter_unless(id, "e1", &keys).unwrap(), Sent::Sent);
    hears(&heard, "hello\n");
    assert_eq!(rig.server.press_enter_unless(id, "e1", &[]).unwrap(), Sent::Sent);
    hears(&heard, "hello\n\n");
    for odd in ["", "#{pid}", "a,b", "x}", "*"] {
        assert!(rig.server.press_enter_unless(id, "e1", &[odd]).is_err(), "{odd:?}");
    }
}
