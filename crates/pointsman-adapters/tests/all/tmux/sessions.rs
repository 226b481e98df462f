use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use pointsman_adapters::tmux::{Error, PaneExit, Target};
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

#[test]
fn arguments_arrive_as_they_are_and_without_a_shell() {
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
    ];
    let mut argv = vec!["printf", "<%s>\n"];
    argv.extend(hostile);
    rig.start("dev-shop-4", &argv);
    exit(&rig, "dev-shop-4");
    let shown = rig.server.capture_tail(Target::Session("dev-shop-4"), 50).unwrap();
    let expected: Vec<String> = hostile
        .iter()
        .flat_map(|word| {
            let shown = format!("<{word}>");
            shown.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn a_dead_pane_tells_status_or_signal_and_its_last_words() {
    let rig = Rig::new();
    rig.start("dev-shop-1", &["sh", "-c", "seq 1 100; exit 7"]);
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

#[test]
fn a_captured_line_has_no_control_characters() {
    let rig = Rig::new();
    rig.start("dev-shop-4", &["sh", "-c", r"printf '\033[31mred\033[0m \302\233 plain ü\n%%end 1 1 1\n'"]);
    exit(&rig, "dev-shop-4");
    let shown = rig.server.capture_tail(Target::Session("dev-shop-4"), 5).unwrap();
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
        let mut new = session(&format!("dev-shop-{nth}"), &["printf", "first %s\\n", "last"]);
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
