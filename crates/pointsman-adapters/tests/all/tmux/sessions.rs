use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use pointsman_adapters::tmux::{Error, PaneExit, Sent, Target};
use rustix::process::{Pid, Signal, kill_process};

use super::{Rig, session};
use crate::deadline::eventually;

fn exit(rig: &Rig, name: &str) -> PaneExit {
    rig.server.wait_for_exit(name, Duration::from_secs(20)).unwrap().unwrap().exit.expect("the program ends")
}

#[test]
fn a_name_is_never_taken_for_the_beginning_of_another() {
    let rig = Rig::new();
    rig.start("dev-a-42", &["sleep", "1000"]);
    assert_eq!(rig.server.find("dev-a-4").unwrap(), None);
    rig.server.kill("dev-a-4").unwrap();
    assert!(rig.server.find("dev-a-42").unwrap().is_some());
    assert!(matches!(rig.server.capture_tail(Target::Session("dev-a-4"), 5), Err(Error::NotFound(_))));
    let four = rig.start("dev-a-4", &["sleep", "1000"]);
    assert_eq!(rig.server.find("dev-a-4").unwrap().unwrap().pid, four.pid);
    rig.server.kill("dev-a-4").unwrap();
    let names: Vec<String> = rig.server.list().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["dev-a-42"]);
}

#[test]
fn names_and_commands_outside_the_rule_are_refused() {
    let rig = Rig::new();
    for name in ["", "a.b", "a:b", "a b", "#(touch x)", "A", "-a", "_keeper", "ä"] {
        assert!(
            matches!(rig.server.start(&session(name, &["sleep", "1"])), Err(Error::Malformed { .. })),
            "{name}"
        );
        assert!(rig.server.find(name).is_err() && rig.server.kill(name).is_err(), "{name}");
    }
    assert!(matches!(rig.server.start(&session("a", &["sleep 1000"])), Err(Error::BareCommand(_))));
    let mut bad = session("a", &["sleep", "1"]);
    bad.epoch = "e},1".to_owned();
    assert!(matches!(rig.server.start(&bad), Err(Error::Malformed { .. })));
    assert_eq!(rig.server.list().unwrap(), []);
}

#[test]
fn an_existing_session_is_not_replaced() {
    let rig = Rig::new();
    let first = rig.start("dev-shop-4", &["sleep", "1000"]);
    let error = rig.server.start(&session("dev-shop-4", &["sleep", "1000"])).unwrap_err();
    assert!(matches!(error, Error::Exists(name) if name == "dev-shop-4"));
    assert_eq!(rig.server.find("dev-shop-4").unwrap().unwrap().pid, first.pid);
}

/// A program that shows something and stays: what is printed just before an exit may be lost.
fn shown(rig: &Rig, argv: &[&str], last: &str) -> Vec<String> {
    rig.start("dev-shop-4", argv);
    eventually("the last line is shown", || rig.shows("dev-shop-4", last).then_some(()));
    rig.server.capture_tail(Target::Session("dev-shop-4"), 50).unwrap()
}

#[test]
fn arguments_arrive_as_they_are() {
    let rig = Rig::new();
    let hostile = [
        "#(touch x)",
        "$(id)",
        "a;",
        ";",
        "it's",
        "\"",
        "\\",
        "~",
        "%1",
        "{",
        "#{pid}",
        "two\nlines",
        "",
        "-x",
        "end",
    ];
    let mut argv = vec!["sh", "-c", r#"printf '<%s>\n' "$@"; exec sleep 1000"#, "sh"];
    argv.extend(hostile);
    let expected: String = hostile.iter().map(|word| format!("<{word}>\n")).collect();
    assert_eq!(shown(&rig, &argv, "<end>"), expected.lines().collect::<Vec<_>>());
}

#[test]
fn a_program_is_started_without_a_shell() {
    let rig = Rig::new();
    let started = rig.start("dev-shop-4", &["sleep", "1000"]);
    eventually("the pane's own process is the program", || {
        (fs::read(format!("/proc/{}/cmdline", started.pid)).unwrap() == b"sleep\x001000\0").then_some(())
    });
}

#[test]
fn a_dead_pane_tells_status_or_signal_and_its_last_words() {
    let rig = Rig::new();
    let talker = rig.start("dev-shop-1", &["sh", "-c", "stty -echo; seq 1 100; read x; exit 7"]);
    eventually("it has spoken", || rig.shows("dev-shop-1", "100").then_some(()));
    assert_eq!(rig.server.send_message(&talker.pane_id, "e1", "m-1", "go").unwrap(), Sent::Sent);
    assert_eq!(exit(&rig, "dev-shop-1"), PaneExit { status: Some(7), signal: None });
    assert_eq!(rig.server.capture_tail(Target::Session("dev-shop-1"), 3).unwrap(), ["98", "99", "100"]);
    assert_eq!(rig.server.capture_tail(Target::Session("dev-shop-1"), 50).unwrap().len(), 50);

    let started = rig.start("dev-shop-2", &["sleep", "1000"]);
    assert_eq!(rig.server.find("dev-shop-2").unwrap().unwrap().exit, None);
    kill_process(Pid::from_raw(started.pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(exit(&rig, "dev-shop-2"), PaneExit { status: None, signal: Some(9) });
    let found = rig.server.find("dev-shop-2").unwrap().unwrap();
    assert!(found.dead && found.start_time.is_none() && found.epoch == "e1");
}

/// One after another, because the next end would make tmux collect a forgotten one. How often tmux forgets depends on
/// the machine's load; that a forgotten process is recognised is tested beside the code.
#[test]
fn every_end_is_told_also_when_no_other_follows() {
    let rig = Rig::new();
    for nth in 0..60 {
        let name = format!("dev-shop-{nth}");
        let pid = rig.start(&name, &["sleep", "1000"]).pid;
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
        assert_eq!(exit(&rig, &name), PaneExit { status: None, signal: Some(9) }, "{name}");
    }
}

#[test]
fn a_captured_line_has_no_control_characters() {
    let rig = Rig::new();
    let script = r"printf '\033[31mred\033[0m \302\233 plain ü\n%%end 1 1 1\n'; exec sleep 1000";
    let shown = shown(&rig, &["sh", "-c", script], "%end");
    assert!(shown[0].starts_with("red") && shown[0].ends_with('ü'), "{shown:?}");
    assert!(shown.iter().all(|line| !line.chars().any(char::is_control)));
    assert_eq!(shown[1], "%end 1 1 1");
}

#[test]
fn the_transcript_has_everything_from_the_first_byte_whatever_its_path() {
    let rig = Rig::new();
    let hostile = rig.path().join("a #[x] #{pid} #(touch x) %Y $h ; 'q \" \\");
    fs::create_dir(&hostile).unwrap();
    for nth in 0..10 {
        let mut new = session(&format!("dev-shop-{nth}"), &["sh", "-c", "echo first last; exec sleep 1000"]);
        let path = hostile.join(format!("{nth}.log"));
        new.transcript = Some(path.clone());
        rig.server.start(&new).unwrap();
        eventually("the transcript is written", || {
            (fs::read_to_string(&path).unwrap() == "first last\r\n").then_some(())
        });
    }
}

#[test]
fn a_transcript_never_follows_a_link() {
    let rig = Rig::new();
    let (target, link) = (rig.path().join("precious"), rig.path().join("log"));
    fs::write(&target, "precious").unwrap();
    symlink(&target, &link).unwrap();
    let mut new = session("dev-shop-4", &["echo", "hello"]);
    new.transcript = Some(link);
    assert!(matches!(rig.server.start(&new), Err(Error::Transcript { .. })));
    assert_eq!(rig.server.find("dev-shop-4").unwrap(), None);
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
}

#[test]
fn killing_a_session_ends_its_program() {
    let rig = Rig::new();
    let started = rig.start("dev-shop-4", &["sleep", "1000"]);
    rig.server.kill("dev-shop-4").unwrap();
    rig.server.kill("dev-shop-4").unwrap();
    eventually("the program has ended", || {
        (pointsman_adapters::process::start_time(started.pid) != started.start_time).then_some(())
    });
}
