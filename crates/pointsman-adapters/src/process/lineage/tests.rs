use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use pointsman_testkit::eventually;

use super::{Lineage, ProcessHandle, Top, is_marked, reaper, user_of, variable_of};
use crate::process::{Job, Process, Run};

const LIMIT: Duration = Duration::from_secs(20);

fn me() -> Process {
    Process::of(std::process::id()).unwrap()
}

fn line(pid: u32) -> Lineage {
    ProcessHandle::open(pid).unwrap().lineage().unwrap()
}

fn start(dir: &Path, run: Run) -> Job {
    run.inherit(&["PATH"]).env("DIR", dir).start_job(&dir.join("log")).unwrap()
}

fn pid_in(file: &Path) -> u32 {
    eventually("a process says its pid", LIMIT, || {
        std::fs::read_to_string(file).ok()?.strip_suffix('\n')?.parse().ok()
    })
}

#[test]
fn our_own_line_begins_with_us_and_goes_to_the_top() {
    let lineage = line(std::process::id());
    assert_eq!(lineage.processes.first(), Some(&me()));
    assert!(lineage.processes.len() > 1);
    if lineage.top == Top::Init {
        assert_eq!(lineage.processes.last().map(|p| p.pid), Some(1));
    }
    assert_eq!(user_of(std::process::id()).unwrap(), rustix::process::getuid().as_raw());
}

/// A socket of this name in the working directory makes a process of this test the other side of another one.
const SOCKET: &str = "peer-of-a-test.sock";

/// Not a test: connects to the socket and ends. Where there is none it is nothing.
#[test]
fn connector() {
    if Path::new(SOCKET).exists() {
        UnixStream::connect(SOCKET).unwrap();
    }
}

#[test]
fn a_peer_that_has_ended_is_not_taken_for_the_next_process_with_its_pid() {
    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join(SOCKET)).unwrap();
    let ours = UnixStream::connect(dir.path().join(SOCKET)).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    assert!(ProcessHandle::peer(&accepted, std::process::id()).unwrap().is_there());
    drop(ours);
    if nix::sys::socket::getsockopt(&accepted, nix::sys::socket::sockopt::PeerPidfd).is_err() {
        return pointsman_testkit::not_run("SO_PEERPIDFD", "the kernel is older than 6.5");
    }
    let connector = Run::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::lineage::tests::connector"])
        .cwd(dir.path());
    assert!(connector.finish().unwrap().end.success());
    let (accepted, _) = listener.accept().unwrap();
    // As if its pid had been given to us.
    let held = ProcessHandle::peer(&accepted, std::process::id());
    assert!(!held.is_ok_and(|held| held.is_there()));
}

#[test]
fn a_process_two_hundred_levels_deep_still_descends_from_us() {
    let dir = tempfile::tempdir().unwrap();
    let script =
        "if [ $1 -gt 0 ]; then sh \"$0\" $(($1 - 1)); exit; else echo $$ > \"$DIR/pid\"; sleep 60; fi; :";
    let file = dir.path().join("deep.sh");
    std::fs::write(&file, script).unwrap();
    let job = start(dir.path(), Run::new("sh").arg(&file).arg("200"));
    let deepest = line(pid_in(&dir.path().join("pid")));
    assert!(deepest.processes.len() > 200, "{}", deepest.processes.len());
    assert!(deepest.processes.contains(&me()));
    let pid = deepest.processes[0].pid;
    assert!(super::walk(pid, 100).is_err(), "a line is followed to a limit");
    assert!(deepest.processes.iter().any(|p| p.pid == job.pid() && p.start_time == job.start_time()));
}

#[test]
fn the_mark_goes_with_a_process_that_leaves_its_group_its_parents_and_its_environment() {
    let dir = tempfile::tempdir().unwrap();
    let (inner, pid) = (dir.path().join("inner.sh"), dir.path().join("pid"));
    std::fs::write(&inner, format!("echo $$ > {}; exec sleep 60", pid.display())).unwrap();
    // Its group is ended with it, so it waits until the other one has left.
    let script = format!(
        "(setsid env -i /bin/sh {} &) & while [ ! -s {} ]; do sleep 0.02; done",
        inner.display(),
        pid.display()
    );
    let done =
        Run::new("sh").args(["-c", &script]).inherit(&["PATH"]).env("SECRET", "1").untrusted().finish();
    assert!(done.unwrap().end.success());
    let detached = pid_in(&pid);
    assert!(is_marked(detached).unwrap());
    assert_eq!(variable_of(detached, "SECRET"), None);
    let lineage =
        eventually("it is adopted", LIMIT, || Some(line(detached)).filter(|l| !l.processes.contains(&me())));
    assert_eq!(lineage.processes.get(1).map(|p| p.pid), Some(reaper().unwrap()), "as we foretold");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(detached.cast_signed()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

#[test]
fn only_what_is_run_as_foreign_is_marked_and_we_stay_as_we_were() {
    let before = is_marked(std::process::id()).unwrap();
    let mark = |run: Run| {
        let done = run.args(["NoNewPrivs:", "/proc/self/status"]).inherit(&["PATH"]).finish().unwrap();
        String::from_utf8(done.stdout).unwrap().trim_end().ends_with('1')
    };
    assert!(mark(Run::new("grep").untrusted()));
    assert_eq!(mark(Run::new("grep")), before);
    assert_eq!(is_marked(std::process::id()).unwrap(), before);
    let dir = tempfile::tempdir().unwrap();
    let job = start(dir.path(), Run::new("sleep").arg("60").untrusted());
    assert!(is_marked(job.pid()).unwrap());
}

#[test]
fn a_variable_is_read_from_what_a_process_was_started_with() {
    let dir = tempfile::tempdir().unwrap();
    let job =
        start(dir.path(), Run::new("sleep").arg("60").env("POINTSMAN_X", "a=b").env("POINTSMAN_XY", ""));
    let read = |name| variable_of(job.pid(), name);
    assert_eq!(eventually("it has become sleep", LIMIT, || read("POINTSMAN_X")), "a=b");
    assert_eq!((read("POINTSMAN_XY").as_deref(), read("POINTSMAN")), (Some(""), None));
}

#[test]
fn a_pid_that_was_given_out_again_is_not_the_process_that_was_held() {
    let dir = tempfile::tempdir().unwrap();
    let job = start(dir.path(), Run::new("sleep").arg("60"));
    let held = ProcessHandle::open(job.pid()).unwrap();
    assert!(held.is_there());
    assert_eq!(held.lineage().unwrap().processes[0].start_time, job.start_time());
    drop(job);
    // Whoever has the pid now, the handle does not follow it.
    assert!(!held.is_there());
    assert!(ProcessHandle::open(u32::MAX).is_err());
    assert!(held.lineage().is_err(), "nobody has it");
}
