//! Sessions without a terminal, with a keeper of a few lines of shell: what daemon and keeper say to each other by
//! files, and processes that are ended.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use pointsman_adapters::driver::{AgentInput, Driver, NewSession, Sent, SessionHome};
use pointsman_adapters::headless::session_dir::KeeperLock;
use pointsman_adapters::headless::{Error, Headless, TurnState};
use pointsman_adapters::{phase_file, process};
use pointsman_testkit::eventually;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_millis(300);

/// Takes the lock as the keeper does, and stays until it is told to go.
const KEEPER: &str = r#"#!/bin/sh
[ -n "$LED" ] || LED=1 exec setsid "$0" "$@"
trap 'echo "{\"status\": 0}" > "$2/exit.json"; exit 0' TERM
started=$(cut -d' ' -f22 "/proc/$$/stat")
echo "{\"pid\": $$, \"start_time\": $started}" > "$2/seat.new" && mv "$2/seat.new" "$2/seat.json"
while :; do sleep 0.02; done
"#;

struct Stage {
    dir: TempDir,
    headless: Headless,
}

impl Stage {
    fn new(keeper: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("keeper");
        fs::write(&program, keeper).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { headless: Headless::new(dir.path().join("headless")), dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn session(&self, epoch: &str) -> NewSession {
        NewSession {
            name: "dev-shop-1".to_owned(),
            epoch: epoch.to_owned(),
            program: self.path("keeper"),
            spec: self.path("spec.json"),
            transcript: self.path("log"),
        }
    }

    /// Takes the keeper's side. The record stays with the real process: whoever ends the session must not end us.
    fn sit(&self) -> Option<KeeperLock> {
        let place = self.headless.session_dir("dev-shop-1").unwrap();
        let record = fs::read(place.dir().join("seat.json")).unwrap();
        let sitting = place.sit().unwrap();
        fs::write(place.dir().join("seat.json"), record).unwrap();
        sitting
    }

    /// The record of a keeper that is gone.
    fn forget_keeper(&self) {
        let place = self.headless.session_dir("dev-shop-1").unwrap();
        let running = self.headless.find("dev-shop-1").unwrap().unwrap();
        process::end_group(running.pid, running.start_time.unwrap(), LIMIT);
        fs::write(place.dir().join("seat.json"), "{\"pid\": 4000000, \"start_time\": 1}").unwrap();
    }

    fn say(&self, epoch: &str, operation: &str, last: bool) -> Sent {
        let running = self.headless.find("dev-shop-1").unwrap().unwrap();
        let text = format!("words of {operation}");
        self.headless
            .say("dev-shop-1", &running, epoch, &AgentInput { operation, text: &text, last })
            .unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Ok(Some(running)) = self.headless.find("dev-shop-1") {
            let _ = self.headless.end("dev-shop-1", &running, GRACE);
        }
    }
}

#[test]
fn a_session_is_started_found_listed_and_ended() {
    let stage = Stage::new(KEEPER);
    assert_eq!(stage.headless.find("dev-shop-1").unwrap(), None);
    assert!(stage.headless.list().unwrap().is_empty());
    stage.headless.start(&stage.session("e1")).unwrap();
    let running = stage.headless.find("dev-shop-1").unwrap().unwrap();
    assert_eq!(
        (running.placed.clone(), running.epoch.as_str(), running.dead),
        (SessionHome::Headless, "e1", false)
    );
    assert!(process::is_alive(running.pid, running.start_time.unwrap()));
    assert_eq!(stage.headless.list().unwrap(), [("dev-shop-1".to_owned(), running.clone())]);
    fs::write(stage.path("log"), "one\ntwo\nthree\n").unwrap();
    assert_eq!(stage.headless.tail("dev-shop-1", &running, 2).unwrap(), ["two", "three"]);
    stage.headless.end("dev-shop-1", &running, LIMIT).unwrap();
    assert!(!process::is_alive(running.pid, running.start_time.unwrap()));
    assert_eq!(stage.headless.find("dev-shop-1").unwrap(), None);
}

#[test]
fn a_second_start_of_the_same_run_finds_the_first_and_another_run_has_to_wait() {
    let stage = Stage::new(KEEPER);
    stage.headless.start(&stage.session("e1")).unwrap();
    assert!(matches!(stage.headless.start(&stage.session("e2")), Err(Error::Exists(_))));
    assert_eq!(stage.headless.find("dev-shop-1").unwrap().unwrap().epoch, "e1");
}

#[test]
fn a_keeper_that_leaves_at_once_is_no_trouble_if_another_one_sits() {
    let stage = Stage::new("#!/bin/sh\necho 'no seat for me' >&2\nexit 3\n");
    // Nobody waits for its limit here: what it said is on record at once.
    let place = stage.headless.session_dir("dev-shop-1").unwrap();
    std::thread::scope(|scope| {
        let started = scope.spawn(|| stage.headless.start(&stage.session("e1")));
        eventually("it says why", LIMIT, || {
            fs::read_to_string(place.log()).ok().filter(|log| log.contains("no seat for me"))
        });
        // Another keeper of the same run takes the lock.
        let running = place.dir().join("seat.json");
        phase_file::write_state_file(&running, b"{\"pid\": 4000000, \"start_time\": 1}").unwrap();
        started.join().unwrap().unwrap();
    });
}

#[test]
fn words_come_once_in_their_order_and_to_nobody_else() {
    let stage = Stage::new(KEEPER);
    stage.headless.start(&stage.session("e1")).unwrap();
    assert_eq!(stage.headless.doing("dev-shop-1").unwrap(), Some(TurnState::Nothing));
    for (operation, sent) in
        [("m-10-1", Sent::Sent), ("m-9-1", Sent::Sent), ("start", Sent::Sent), ("m-10-1", Sent::Duplicate)]
    {
        assert_eq!(stage.say("e1", operation, operation == "m-9-1"), sent, "{operation}");
    }
    assert_eq!(stage.say("e0", "m-11-1", false), Sent::StaleEpoch);
    assert_eq!(stage.headless.doing("dev-shop-1").unwrap(), Some(TurnState::Turn));
    // As its keeper, which has not taken the lock.
    let mut sitting = stage.sit().unwrap();
    assert!(stage.sit().is_none(), "there is one seat");
    let prompt = sitting.take().unwrap().unwrap();
    assert_eq!(prompt.text, "words of start\nwords of m-9-1\nwords of m-10-1");
    assert!(prompt.last, "one of them was the last");
    assert_eq!(sitting.take().unwrap(), None);
    assert!(!sitting.is_called().unwrap());
    assert_eq!(stage.say("e1", "m-9-1", false), Sent::Duplicate, "taken is not forgotten");
    assert_eq!(stage.headless.doing("dev-shop-1").unwrap(), Some(TurnState::Nothing));
}

#[test]
fn a_dead_session_hears_nothing_and_says_how_it_went() {
    let stage = Stage::new(KEEPER);
    stage.headless.start(&stage.session("e1")).unwrap();
    let running = stage.headless.find("dev-shop-1").unwrap().unwrap();
    process::end_group(running.pid, running.start_time.unwrap(), LIMIT);
    let place = stage.headless.session_dir("dev-shop-1").unwrap();
    let ended = stage.headless.wait_for_exit("dev-shop-1", LIMIT).unwrap().unwrap();
    assert!(ended.dead);
    assert_eq!(place.left().unwrap(), Some(0));
    assert_eq!(ended.exit.unwrap().status, Some(0));
    assert_eq!(stage.say("e1", "m-1-1", false), Sent::Dead);
    assert_eq!(stage.headless.doing("dev-shop-1").unwrap(), None);
    // Its place is taken by the next run.
    stage.headless.start(&stage.session("e2")).unwrap();
    assert_eq!(stage.headless.find("dev-shop-1").unwrap().unwrap().epoch, "e2");
    assert_eq!(stage.say("e2", "m-1-1", false), Sent::Sent);
}

#[test]
fn what_a_killed_keeper_left_is_ended_and_a_reused_pid_is_not() {
    let stage = Stage::new(KEEPER);
    stage.headless.start(&stage.session("e1")).unwrap();
    let sitting = stage.sit().unwrap();
    let turn = process::Run::new("sh")
        .args(["-c", "trap '' TERM; while :; do sleep 0.05; done"])
        .inherit(&["PATH"])
        .start_following()
        .unwrap();
    sitting.turn_begun(turn.pid(), turn.start_time() + 1).unwrap();
    stage.forget_keeper();
    let running = stage.headless.find("dev-shop-1").unwrap().unwrap();
    assert!(running.dead);
    stage.headless.end("dev-shop-1", &running, GRACE).unwrap();
    assert!(process::is_alive(turn.pid(), turn.start_time()), "another process with its number");

    stage.headless.start(&stage.session("e2")).unwrap();
    let sitting = stage.sit().unwrap();
    sitting.turn_begun(turn.pid(), turn.start_time()).unwrap();
    stage.forget_keeper();
    stage.headless.end("dev-shop-1", &running, GRACE).unwrap();
    eventually("the turn to be gone", LIMIT, || {
        (!process::is_alive(turn.pid(), turn.start_time())).then_some(())
    });
}

#[test]
fn names_that_are_paths_and_torn_or_foreign_files_are_refused() {
    let stage = Stage::new(KEEPER);
    for name in ["", "..", "a/b", "a b", "\u{1b}"] {
        assert!(matches!(stage.headless.find(name), Err(Error::Malformed { .. })), "{name:?}");
    }
    stage.headless.start(&stage.session("e1")).unwrap();
    let running = stage.headless.find("dev-shop-1").unwrap().unwrap();
    let words = AgentInput { operation: "../../x", text: "x", last: false };
    assert!(stage.headless.say("dev-shop-1", &running, "e1", &words).is_err());
    let place = stage.headless.session_dir("dev-shop-1").unwrap();
    // Nobody's prompt is passed over, and does not come back.
    let mut sitting = stage.sit().unwrap();
    fs::write(place.dir().join("prompts/m-1-1.json"), "{\"text\": ").unwrap();
    assert_eq!(sitting.take().unwrap(), None);
    assert!(!sitting.is_called().unwrap());
    for torn in [&b"{"[..], b"", b"[]"] {
        fs::write(place.dir().join("session.json"), torn).unwrap();
        let found = stage.headless.find("dev-shop-1").unwrap().unwrap();
        assert_eq!((found.pid, found.epoch.as_str()), (running.pid, ""), "nobody's run");
        assert!(matches!(stage.headless.start(&stage.session("e1")), Err(Error::Exists(_))));
    }
    stage.headless.end("dev-shop-1", &running, LIMIT).unwrap();
    stage.headless.start(&stage.session("e1")).unwrap();
    let record = fs::read(place.dir().join("seat.json")).unwrap();
    fs::write(place.dir().join("seat.json"), "{").unwrap();
    assert!(stage.headless.find("dev-shop-1").is_err(), "unknown is not gone");
    fs::write(place.dir().join("seat.json"), record).unwrap();
}
