use std::path::Path;
use std::time::{Duration, Instant};

use super::identity::Leftover;
use super::{Cancel, End, Error, Run, is_alive, kill_leftover_group, start_time};

fn sh(script: &str) -> Run {
    Run::new("/bin/sh").args(["-c", script]).inherit(&["PATH"])
}

/// Polls for a condition that another process brings about; fails the test if it does not come.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    pointsman_testkit::eventually(what, Duration::from_secs(10), || holds().then_some(()));
}

fn read_pid(path: &Path) -> u32 {
    let mut pid = None;
    eventually("the script writes its pid", || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        pid = text.strip_suffix('\n').and_then(|line| line.parse().ok());
        pid.is_some()
    });
    pid.unwrap()
}

#[test]
fn exit_code_output_and_input_come_through() {
    let done = sh("cat; echo err >&2; exit 3").stdin("hello").finish().unwrap();
    assert_eq!(done.end, End::Exited(3));
    assert_eq!((done.stdout, done.stderr), (b"hello".to_vec(), b"err\n".to_vec()));
}

#[test]
fn input_that_is_larger_than_a_pipe_does_not_block_nor_does_a_reader_that_stops() {
    let big = vec![b'x'; 3 << 20];
    let done = sh("cat").stdin(big.clone()).finish().unwrap();
    assert_eq!(done.stdout.len(), big.len());
    assert!(!done.truncated);
    assert!(sh("exit 0").stdin(big).finish().unwrap().end.success());
}

#[test]
fn the_environment_is_empty_but_for_what_was_named() {
    let done = Run::new("/usr/bin/env").env("A", "1").env("A", "2").finish().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "A=2\n");
}

#[test]
fn endless_output_is_capped() {
    let done = sh("head -c 200000 /dev/zero").output_cap(1000).finish().unwrap();
    assert!(done.truncated);
    assert!(done.stdout.len() < 1100);
}

#[test]
fn a_missing_program_and_a_missing_directory_are_told_apart() {
    assert!(matches!(Run::new("/no/such/program").finish(), Err(Error::NotFound { .. })));
    assert!(matches!(sh("true").cwd("/no/such/dir").finish(), Err(Error::NoDirectory { .. })));
}

#[test]
fn a_signal_is_not_an_exit_code() {
    assert_eq!(sh("kill -9 $$").finish().unwrap().end, End::Signalled(9));
}

#[test]
fn the_time_limit_ends_the_whole_group_even_if_it_ignores_sigterm() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let script = format!("trap '' TERM; sleep 600 & echo $! > '{}'; wait; sleep 600", file.display());
    let run = sh(&script).time_limit(Duration::from_secs(2)).grace(Duration::from_millis(100));
    let begun = Instant::now();
    assert_eq!(run.finish().unwrap().end, End::TimedOut);
    assert!(begun.elapsed() < Duration::from_secs(10));
    let pid = read_pid(&file);
    eventually("the background child is dead", || start_time(pid).is_none_or(|t| !is_alive(pid, t)));
}

#[test]
fn a_background_child_that_keeps_the_pipe_open_neither_hangs_us_nor_survives() {
    let begun = Instant::now();
    let done = sh("sleep 600 & echo $!").finish().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(done.end.success());
    let pid: u32 = String::from_utf8(done.stdout).unwrap().trim().parse().unwrap();
    eventually("the background child is dead", || start_time(pid).is_none_or(|t| !is_alive(pid, t)));
}

#[test]
fn a_cancelled_run_ends_now_and_says_so() {
    let cancel = Cancel::new().unwrap();
    cancel.cancel();
    assert_eq!(sh("sleep 600").cancel(cancel).finish().unwrap().end, End::Cancelled);
}

#[test]
fn a_job_writes_both_streams_to_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("job.log");
    let job = sh("echo out; echo err >&2; exit 4").start_job(&log).unwrap();
    assert_eq!(start_time(job.pid()), Some(job.start_time()));
    let end = job.wait(Duration::from_secs(30)).unwrap();
    assert_eq!(end.end, End::Exited(4));
    assert!(end.log_error.is_none() && !end.truncated);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "out\nerr\n");
}

#[test]
fn a_job_log_is_capped_and_keeps_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("job.log");
    let job = sh("head -c 300000 /dev/zero; echo THE END").output_cap(2000).start_job(&log).unwrap();
    assert!(job.wait(Duration::from_secs(30)).unwrap().truncated);
    let text = std::fs::read(&log).unwrap();
    assert!(text.len() < 2100 && text.ends_with(b"THE END\n"));
}

#[test]
fn a_job_is_killed_from_another_thread() {
    let dir = tempfile::tempdir().unwrap();
    let job = sh("sleep 600").start_job(&dir.path().join("log")).unwrap();
    let killer = job.killer();
    let waiter = std::thread::spawn(move || job.wait(Duration::from_secs(60)).unwrap().end);
    killer.kill();
    assert_eq!(waiter.join().unwrap(), End::Cancelled);
}

#[test]
fn a_dropped_job_is_dead() {
    let dir = tempfile::tempdir().unwrap();
    let job = sh("sleep 600").start_job(&dir.path().join("log")).unwrap();
    let (pid, started) = (job.pid(), job.start_time());
    assert!(is_alive(pid, started));
    drop(job);
    assert!(!is_alive(pid, started));
}

#[test]
fn a_log_is_not_written_through_a_symlink() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    std::os::unix::fs::symlink(&target, dir.path().join("log")).unwrap();
    assert!(sh("echo x").start_job(&dir.path().join("log")).is_err());
    assert!(!target.exists());
}

#[test]
fn a_leftover_group_is_killed_only_if_pid_and_start_time_match() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let script = format!("sleep 600 & echo $! > '{}'; wait", file.display());
    let job = sh(&script).start_job(&dir.path().join("log")).unwrap();
    let (leader, started) = (job.pid(), job.start_time());
    let follower = read_pid(&file);
    let follower_started = start_time(follower).unwrap();

    assert_eq!(kill_leftover_group(leader, started + 1), Leftover::Gone);
    assert_eq!(kill_leftover_group(follower, follower_started), Leftover::NotALeader);
    assert!(is_alive(leader, started) && is_alive(follower, follower_started));

    assert_eq!(kill_leftover_group(leader, started), Leftover::Killed);
    assert!(!is_alive(leader, started));
    eventually("the follower is dead", || !is_alive(follower, follower_started));
}

/// Counts what it is given; wants an end after so many bytes.
struct Counted {
    bytes: usize,
    most: usize,
}

impl super::Sink for Counted {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
    }

    fn ends_by(&self) -> Option<std::time::Instant> {
        (self.bytes > self.most).then(std::time::Instant::now)
    }
}

#[test]
fn a_followed_run_is_fed_taken_from_and_ended_by_its_output() {
    let mut all = Counted { bytes: 0, most: usize::MAX };
    let run = Run::new("sh").args(["-c", "cat; echo oops >&2; exit 3"]).inherit(&["PATH"]).stdin("hello\n");
    let followed = run.start_following().unwrap();
    assert!(super::is_alive(followed.pid(), followed.start_time()) || followed.start_time() > 0);
    let end = followed.wait(Duration::from_secs(20), &mut all).unwrap();
    assert_eq!((end.end, all.bytes, end.stderr.as_slice()), (End::Exited(3), 6, &b"oops\n"[..]));

    let mut some = Counted { bytes: 0, most: 1000 };
    let endless = Run::new("sh").args(["-c", "while :; do echo more; done"]).inherit(&["PATH"]);
    let endless = endless.grace(Duration::from_millis(100)).start_following().unwrap();
    let end = endless.wait(Duration::from_secs(20), &mut some).unwrap();
    assert_eq!(end.end, End::TimedOut);
    assert!(some.bytes > 1000);
}

#[test]
fn a_detached_run_leads_no_group_of_its_own_and_is_collected() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    Run::new("sh")
        .args(["-c", "cut -d' ' -f1,5 /proc/$$/stat"])
        .inherit(&["PATH"])
        .start_detached(&log)
        .unwrap();
    let said = pointsman_testkit::eventually("it speaks", Duration::from_secs(20), || {
        std::fs::read_to_string(&log).ok().filter(|text| text.ends_with('\n'))
    });
    let (pid, group) = said.trim().split_once(' ').unwrap();
    assert_ne!(pid, group, "it may make a session of its own");
    let proc = format!("/proc/{pid}");
    pointsman_testkit::eventually("nothing is left of it", Duration::from_secs(20), || {
        (!std::path::Path::new(&proc).exists()).then_some(())
    });
}
