use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use pointsman_adapters::process::lineage::is_marked;
use pointsman_adapters::tmux::{Error, SOCKET_PATH_LIMIT, Sent, Server};
use rustix::process::{Pid, Signal, getpgid, getsid, kill_process};

use super::{Rig, session};
use crate::deadline::eventually;

fn server_pid(rig: &Rig) -> Pid {
    Pid::from_raw(rig.tmux(&["display-message", "-p", "#{pid}"]).parse().unwrap()).unwrap()
}

#[test]
fn the_installed_tmux_is_new_enough() {
    let rig = Rig::cold("");
    let version = rig.server.version().unwrap();
    assert!(version.is_supported(), "{version:?}");
}

#[test]
fn a_socket_path_that_does_not_fit_is_refused() {
    let longest = format!("/{}", "x".repeat(SOCKET_PATH_LIMIT - 1));
    assert!(Server::new(&longest, "/c").is_ok());
    let error = Server::new(format!("{longest}x"), "/c").unwrap_err();
    assert!(matches!(error, Error::SocketTooLong { len: 108, .. }), "{error:?}");
    assert!(Server::new("s", "/c").is_err(), "relative to what?");
}

#[test]
fn something_else_at_the_sockets_path_is_left_alone() {
    let rig = Rig::cold("");
    fs::write(rig.server.socket(), "precious").unwrap();
    assert!(matches!(rig.server.ensure_running(), Err(Error::SocketOccupied { .. })));
    assert_eq!(fs::read_to_string(rig.server.socket()).unwrap(), "precious");
}

#[test]
fn the_server_leaves_our_session_and_group() {
    let rig = Rig::new();
    let pid = server_pid(&rig);
    assert_eq!(getsid(Some(pid)), Ok(pid), "a session of its own");
    assert_eq!(getpgid(Some(pid)), Ok(pid), "a group of its own");
    rig.server.ensure_running().unwrap();
    assert_eq!(server_pid(&rig), pid, "a second start changes nothing");
    assert_eq!(rig.server.list().unwrap(), []);
}

#[test]
fn a_server_of_an_earlier_release_is_replaced_when_its_last_session_has_ended() {
    if is_marked(std::process::id()).unwrap() {
        return pointsman_testkit::not_run("privileges", "here every process carries the mark");
    }
    let rig = Rig::cold("");
    assert_eq!(rig.server.is_marked(), None, "nobody listens");
    rig.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", "_keeper", "sleep", "infinity"]);
    let old = server_pid(&rig);
    rig.start("dev-shop-1", &["sleep", "infinity"]);
    rig.server.ensure_running().unwrap();
    assert_eq!((server_pid(&rig), rig.server.is_marked()), (old, Some(false)), "a session is left");
    // A session that somebody else made in it does not keep it.
    rig.tmux(&["new-session", "-d", "-s", "mine", "sleep", "infinity"]);
    rig.server.kill("dev-shop-1").unwrap();
    rig.server.replace_unmarked().unwrap();
    assert_eq!(rig.server.is_marked(), Some(true));
    let new = server_pid(&rig);
    rig.server.ensure_running().unwrap();
    assert_eq!(server_pid(&rig), new, "once");
    rig.start("dev-shop-2", &["sleep", "infinity"]);
}

#[test]
fn the_server_is_known_and_marked_also_while_it_does_not_answer() {
    let rig = Rig::cold("");
    assert_eq!(rig.server.process(), None, "nobody listens");
    rig.server.ensure_running().unwrap();
    let pid = server_pid(&rig);
    let number = pid.as_raw_nonzero().get().unsigned_abs();
    assert!(is_marked(number).unwrap(), "whoever reaches its socket can have it start a program");
    kill_process(pid, Signal::STOP).unwrap();
    let found = rig.server.process();
    // More than its queue holds: nobody waits for a place there.
    let many: Vec<_> = (0..300).map(|_| rig.server.process()).collect();
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(found.map(|process| process.pid), Some(number));
    assert!(found.is_some_and(|process| process.is_alive()));
    assert_eq!(many.len(), 300);
}

#[test]
fn a_client_whose_reader_was_killed_goes_and_does_not_hold_the_server() {
    let rig = Rig::new();
    let mut orphan = std::process::Command::new("tmux")
        .arg("-S")
        .arg(rig.server.socket())
        .args(["-N", "-C", "attach-session", "-t", "=_keeper:"])
        .env_remove("TMUX")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the client is attached", || (!rig.tmux(&["list-clients"]).is_empty()).then_some(()));
    // More than a pipe holds is due to a reader that never reads, and then both ends are closed.
    let asked = "list-commands\n".repeat(100);
    std::io::Write::write_all(orphan.stdin.as_mut().unwrap(), asked.as_bytes()).unwrap();
    (orphan.stdin, orphan.stdout) = (None, None);

    rig.second().end_orphaned_clients().unwrap();
    eventually("the client is gone", || orphan.try_wait().unwrap());
    eventually("the server has noticed", || rig.tmux(&["list-clients"]).is_empty().then_some(()));
    let pid = server_pid(&rig);
    rig.server.shut_down().unwrap();
    eventually("the server is gone", || kill_process(pid, Signal::WINCH).is_err().then_some(()));
}

#[test]
fn nothing_of_our_environment_reaches_the_server_or_a_pane() {
    // Cargo sets this for every test, the server must not pass it on: it stands for a key of the daemon.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let rig = Rig::new();
    let started = rig.start("dev-shop-4", &["sleep", "1000"]);
    let global = rig.tmux(&["show-environment", "-g"]);
    let names: Vec<&str> = global.lines().filter_map(|line| line.split('=').next()).collect();
    let allowed = ["PATH", "HOME", "LANG", "TERM", "SHELL", "PWD"];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
    assert_eq!(rig.tmux(&["show-environment", "-t", "=dev-shop-4:"]), "");
    let environ = eventually("the program runs", || {
        let comm = fs::read_to_string(format!("/proc/{}/comm", started.pid)).unwrap();
        (comm == "sleep\n").then(|| fs::read(format!("/proc/{}/environ", started.pid)).unwrap())
    });
    let of_tmux = ["TMUX", "TMUX_PANE", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"];
    for variable in environ.split(|byte| *byte == 0).filter(|variable| !variable.is_empty()) {
        let name = String::from_utf8_lossy(variable.split(|byte| *byte == b'=').next().unwrap()).into_owned();
        assert!(allowed.contains(&name.as_str()) || of_tmux.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn a_killed_server_is_noticed_and_started_anew() {
    let rig = Rig::new();
    let old = rig.start("dev-shop-4", &["sleep", "1000"]);
    assert!(rig.server.find("dev-shop-4").unwrap().is_some());
    kill_process(server_pid(&rig), Signal::KILL).unwrap();
    eventually("the server is missed", || match rig.server.list() {
        Err(Error::NotRunning { .. }) => Some(()),
        // The control client may not have noticed yet.
        Ok(_) | Err(Error::Interrupted { .. }) => None,
        Err(other) => panic!("{other:?}"),
    });
    assert!(rig.server.socket().exists(), "the dead socket is still there");
    rig.server.kill("dev-shop-4").unwrap();
    rig.server.ensure_running().unwrap();
    assert_eq!(rig.server.find("dev-shop-4").unwrap(), None);
    let mut again = session("dev-shop-4", &["cat", "-"]);
    again.epoch = "e2".to_owned();
    let new = rig.server.start(&again).unwrap();
    assert_eq!(new.pane_id, old.pane_id, "a new server counts from the beginning, so the epoch must tell");
    assert_eq!(rig.server.send_message(&old.pane_id, "e1", "m-1", "hello").unwrap(), Sent::StaleEpoch);
}

#[test]
fn a_second_object_adopts_what_the_first_one_started() {
    let rig = Rig::new();
    let started = rig.start("dev-shop-4", &["cat", "-"]);
    let second = rig.second();
    second.ensure_running().unwrap();
    let found = second.find("dev-shop-4").unwrap().unwrap();
    assert_eq!((found.pid, found.start_time, found.epoch.as_str()), (started.pid, started.start_time, "e1"));
    assert_eq!(rig.server.send_message(&started.pane_id, "e1", "m-1", "hello").unwrap(), Sent::Sent);
    assert_eq!(second.send_message(&found.pane_id, "e1", "m-1", "hello").unwrap(), Sent::Duplicate);
}

#[test]
fn several_starters_and_threads_share_one_server() {
    let rig = Rig::cold("");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| rig.second().ensure_running().unwrap());
        }
    });
    let server = Arc::new(rig.second());
    let threads: Vec<_> = (0..4)
        .map(|nth| {
            let server = Arc::clone(&server);
            std::thread::spawn(move || {
                let name = format!("dev-shop-{nth}");
                server.start(&session(&name, &["sleep", "1000"])).unwrap();
                for _ in 0..20 {
                    assert!(server.find(&name).unwrap().is_some());
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(server.list().unwrap().len(), 4);
}

#[test]
fn a_lost_control_client_is_replaced() {
    let rig = Rig::new();
    for _ in 0..3 {
        // The server may answer for a moment on behalf of a client that is dead, so a new one may need a second call.
        let client = eventually("a control client is attached", || {
            rig.server.list().unwrap();
            rig.tmux(&["list-clients", "-F", "#{client_pid}"]).parse().ok()
        });
        kill_process(Pid::from_raw(client).unwrap(), Signal::KILL).unwrap();
        eventually("the dead client is gone", || rig.tmux(&["list-clients"]).is_empty().then_some(()));
        assert_eq!(rig.server.list().unwrap(), []);
    }
}

#[test]
fn what_a_person_does_at_a_session_is_told_from_what_we_type() {
    let rig = Rig::new();
    let started = rig.start("dev-shop-4", &["sleep", "600"]);
    rig.start("dev-shop-44", &["sleep", "600"]);
    rig.server.send_message(&started.pane_id, "e-1", "m-1-1", "hello").unwrap();
    assert_eq!(rig.server.typed_at("dev-shop-4").unwrap(), None);
    let mut person = std::process::Command::new("tmux")
        .arg("-S")
        .arg(rig.server.socket())
        .args(["-N", "-C", "attach-session", "-t", "=dev-shop-4:"])
        .env_remove("TMUX")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let at = eventually("a person to be seen", || rig.server.typed_at("dev-shop-4").unwrap());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let now = i64::try_from(now).unwrap();
    assert!((now - 60_000..=now).contains(&at.0), "{at:?} is not just before {now}");
    assert_eq!(rig.server.typed_at("dev-shop-44").unwrap(), None, "only the session they look at");
    drop(person.stdin.take());
    eventually("the client to go", || person.try_wait().unwrap());
    assert!(rig.server.typed_at("dev-shop-4").unwrap().is_some(), "also after they left");
    assert_eq!(rig.server.typed_at("dev-shop-5").unwrap(), None);
}

#[test]
fn a_person_attaches_by_the_exact_name() {
    let rig = Rig::new();
    let command = rig.server.attach_command("dev-shop-4").unwrap();
    assert_eq!(command.last().unwrap().as_bytes(), b"=dev-shop-4:");
    assert!(rig.server.attach_command("dev shop").is_err());
}

#[test]
fn a_server_without_any_session_is_one_that_does_not_run_yet() {
    let rig = Rig::new();
    rig.start("dev-shop-1", &["sleep", "600"]);
    // As it is for a moment while it starts, or ends.
    rig.tmux(&["kill-session", "-a", "-t", "=dev-shop-1:"]);
    rig.tmux(&["kill-session", "-t", "=dev-shop-1:"]);
    let fresh = rig.second();
    assert!(
        matches!(fresh.find("dev-shop-1"), Err(Error::NotRunning { .. })),
        "{:?}",
        fresh.find("dev-shop-1")
    );
    fresh.kill("dev-shop-1").unwrap();
    fresh.ensure_running().unwrap();
    assert_eq!(fresh.find("dev-shop-1").unwrap(), None);
}
